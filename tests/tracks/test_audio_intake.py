"""A remote voice at once, whole, and exact in time: behaviour.md A1–A3, field case B57 (drift)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from realtime.media import g711
from realtime.media.audio import PcmConverter
from realtime.media.voice import make_voice_decoder
from realtime.tracks import audio_intake
from realtime.tracks.audio_intake import AudioIntake

RATE = 24_000
DTX = b"\x08"
"""An Opus packet of 20 ms without content."""


class Clock:
    """Timers that are set off by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[_Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(self.now + delay, callback)
        self._waiting.append(timer)
        return timer

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self._waiting if timer.due <= end + 1e-9]:
            first = min(due, key=lambda timer: timer.due)
            self._waiting.remove(first)
            self.now = first.due
            first.run()
        self.now = end


class _Timer:
    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due = due
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def run(self) -> None:
        if self._callback is not None:
            self._callback()


class Line:
    """Sends packets of 20 ms to an intake and counts what comes out."""

    def __init__(self, packets: list[bytes], codec: str = "opus", clock_hz: int = 48_000, rate: int = RATE) -> None:
        self.clock = Clock()
        self.pieces: list[bytes] = []
        self.intake = AudioIntake(rate, self.pieces.append, self.clock)
        self._packets = packets
        self._codec = codec
        self._clock_hz = clock_hz

    def send(self, *indices: int, source: int = 1, first_number: int = 0, first_timestamp: int = 0) -> None:
        for index in indices:
            self.put(
                self._packets[index],
                number=first_number + index,
                timestamp=first_timestamp + index * self._clock_hz // 50,
                source=source,
            )

    def put(self, payload: bytes, *, number: int, timestamp: int, source: int = 1) -> None:
        self.intake.receive(
            self._codec,
            self._clock_hz,
            source,
            number & 0xFFFF,
            timestamp & 0xFFFFFFFF,
            payload,
            self.clock.now,
        )

    @property
    def sound(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(self.pieces), "<i2")

    @property
    def out_ms(self) -> float:
        return len(self.sound) * 1000 / RATE


def _voice(seconds: float, rate: int) -> np.ndarray[Any, Any]:
    t = np.arange(int(rate * seconds)) / rate
    return (9_000 * np.sin(2 * np.pi * 200 * t)).astype("<i2")


def _opus(seconds: float = 2.0, *, samples: int = 960) -> list[bytes]:
    encoder: Any = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format, encoder.bit_rate = 48_000, "mono", "s16", 32_000
    encoder.options = {"frame_duration": str(samples // 48)}
    voice = _voice(seconds, 48_000)
    packets: list[bytes] = []
    for begin in range(0, len(voice) - samples + 1, samples):
        frame = av.AudioFrame.from_ndarray(voice[None, begin : begin + samples], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, begin, Fraction(1, 48_000)
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


PACKETS = _opus()


def _straight() -> Line:
    line = Line(PACKETS)
    line.send(*range(50))
    return line


def _loudness(samples: np.ndarray[Any, Any]) -> float:
    return float(np.sqrt(np.mean(samples.astype(float) ** 2)))


def test_a_packet_in_order_is_delivered_when_it_comes():
    line = Line(PACKETS)
    for index in range(10):
        line.send(index)
        assert line.out_ms == (index + 1) * 20
    assert line.intake.statistics().packets == 10
    assert line.clock.now == 0


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 48_000])
def test_it_comes_at_the_rate_that_is_wanted(rate):
    """A1: one conversion, in the decoder."""
    line = Line(PACKETS, rate=rate)
    line.send(*range(50))
    assert len(line.sound) == rate
    middle = line.sound[rate // 4 : rate // 2]
    assert _loudness(middle) == pytest.approx(9_000 / np.sqrt(2), rel=0.1)
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert np.argmax(spectrum) * rate / len(middle) == pytest.approx(200, abs=5)


def test_a_rate_that_opus_does_not_know_is_converted():
    line = Line(PACKETS, rate=44_100)
    line.send(*range(50))
    line.intake.close()
    assert len(line.sound) == pytest.approx(44_100, abs=2)


@pytest.mark.parametrize(
    "order",
    [
        [0, 2, 1, 3, 4, 5],
        [0, 0, 1, 2, 2, 1, 3, 4, 5],
        [0, 1, 3, 2, 5, 4],
    ],
)
def test_what_changed_places_or_came_again_sounds_as_it_was_sent(order):
    line, straight = Line(PACKETS), Line(PACKETS)
    line.send(*order)
    straight.send(*range(6))
    assert b"".join(line.pieces) == b"".join(straight.pieces)
    assert line.intake.statistics().concealed_ms == 0


def test_numbers_and_time_stamps_wrap_around():
    line, straight = Line(PACKETS), _straight()
    line.send(*range(50), first_number=65_520, first_timestamp=0xFFFFFFFF - 20 * 960)
    assert b"".join(line.pieces) == b"".join(straight.pieces)


def test_a_lost_packet_is_waited_for_by_two_packets_and_made_up():
    line = Line(PACKETS)
    line.send(*range(20))
    line.send(21)
    assert line.out_ms == 400
    line.send(22)
    assert line.out_ms == 460  # the made-up one and both that waited
    line.send(*range(23, 50))
    assert line.out_ms == 1_000
    assert line.intake.statistics().concealed_ms == 20
    made = line.sound[20 * 480 : 21 * 480]
    assert _loudness(made) > 3_000  # the voice goes on


def test_a_gap_that_nothing_follows_ends_by_time():
    """The last words of a sentence are not held back (at most 60 ms)."""
    line = Line(PACKETS)
    line.send(*range(20))
    line.send(21)
    line.clock.run(0.059)
    assert line.out_ms == 400
    line.clock.run(0.002)
    assert line.out_ms == 440


def test_a_late_packet_is_left_out_because_its_place_is_filled():
    line = Line(PACKETS)
    line.send(0, 1, 3, 4, 2, 5)
    assert line.out_ms == 120
    assert line.intake.statistics().late == 1


@pytest.mark.parametrize("lost", [2, 3, 6, 10, 40])
def test_after_a_burst_of_loss_it_is_at_its_level_at_once_and_no_time_is_lost(lost):
    line = Line(_opus(3.0))
    line.send(*range(50))
    line.send(*range(50 + lost, 53 + lost))
    assert line.out_ms == (53 + lost) * 20
    line.send(53 + lost)
    assert line.out_ms == (54 + lost) * 20  # nothing waits any more
    assert line.intake.statistics().concealed_ms == min(lost * 20, 120)


def test_every_fifth_packet_lost_keeps_the_whole_timeline():
    line = Line(PACKETS)
    line.send(*(index for index in range(100) if index % 5 != 3))
    line.intake.close()
    assert line.out_ms == 2_000
    assert line.intake.statistics().concealed_ms == 400


def test_loss_duplication_and_disorder_together_keep_the_whole_timeline():
    line = Line(PACKETS)
    for index in range(0, 96, 8):
        a, b, c, d, e, f, g, h = range(index, index + 8)
        line.send(a, c, b, d, d, f, g, a, h)
        del e
    line.intake.close()
    assert line.out_ms == 96 * 20


def test_a_stall_and_a_burst_change_nothing():
    """B57 (drift): positions come from time stamps, not from when packets come."""
    line, straight = Line(PACKETS), _straight()
    line.send(*range(10))
    line.clock.run(2.0)
    line.send(*range(10, 50))
    assert b"".join(line.pieces) == b"".join(straight.pieces)


def test_ten_minutes_of_loss_disorder_and_silence_are_ten_minutes():
    """B57 (drift): less than a sample is lost or gained, whatever happens on the way."""
    line = Line(PACKETS)
    number = 0
    at = 0  # packets of 20 ms since the beginning
    while at < 30_000:
        for index in range(90):
            if index % 9 == 4:  # lost
                number, at = number + 1, at + 1
                continue
            line.put(PACKETS[at % 100], number=number, timestamp=at * 960)
            number, at = number + 1, at + 1
        line.put(DTX, number=number, timestamp=at * 960)
        line.clock.run(0.2 * (1 + at % 7))  # never as long as the silence says it was
        number, at = number + 1, at + 1 + 10
    line.put(PACKETS[0], number=number, timestamp=at * 960)
    line.intake.close()
    expected = (at + 1) * 20
    assert expected <= line.out_ms <= expected + 1_600  # silence that is ahead is paid back by the next one
    assert line.intake.statistics().late == 0


def test_a_gap_in_time_without_loss_is_silence():
    """A sender that is silent sends nothing; its time goes on (A3)."""
    line = Line(PACKETS)
    line.send(*range(10))
    line.send(*range(10, 20), first_timestamp=25 * 960)
    assert line.out_ms == 400 + 25 * 20
    assert not line.sound[10 * 480 : 35 * 480].any()
    assert line.intake.statistics().silence_ms == 500


def test_a_pause_of_seconds_is_silence_of_seconds():
    line = Line(PACKETS)
    line.send(*range(10))
    line.clock.run(4.0)
    line.send(*range(10, 20), first_timestamp=4 * 48_000)
    assert line.out_ms == 400 + 4_000
    assert line.intake.statistics().skipped_ms == 0


@pytest.mark.parametrize("step_seconds", [0.5, 5.0])
def test_time_stamps_that_outrun_the_clock_make_no_more_silence_than_time_has_passed(step_seconds):
    """A sender could else make hours of sound out of a thousand packets, each piece of it at once."""
    line = Line(PACKETS)
    for index in range(200):
        line.put(PACKETS[index % 100], number=index, timestamp=round(index * (0.020 + step_seconds) * 48_000))
        line.clock.run(0.020)
    assert line.out_ms <= 200 * 20 + 200 * 20 + 1_000
    statistics = line.intake.statistics()
    assert statistics.silence_ms + statistics.skipped_ms == pytest.approx(199 * step_seconds * 1_000, abs=1)


@pytest.mark.parametrize(("codec", "rate"), [("pcmu", 24_000), ("opus", 44_100)])
def test_a_pause_of_seconds_needs_no_conversion_and_moves_nothing(codec, rate, monkeypatch):
    """Nothing holds the loop over 5 ms. What follows stands where it would, to the sample."""
    converted: list[int] = []

    class Counting(PcmConverter):
        def convert(self, pcm: bytes | bytearray | memoryview) -> bytes:
            converted.append(len(pcm) // 2)
            return super().convert(pcm)

    monkeypatch.setattr(audio_intake, "PcmConverter", Counting)
    clock_hz = 8_000 if codec == "pcmu" else 48_000
    voice = _voice(1.0, 8_000).tobytes()
    packets = PACKETS if codec == "opus" else [g711.encode(voice[at : at + 320], "mu") for at in range(0, 16_000, 320)]
    line = Line(packets, codec, clock_hz, rate)
    line.send(*range(20))
    line.clock.run(5.0)
    line.send(*range(20, 40), first_timestamp=round(4.7 * clock_hz))
    line.intake.close()
    straight = PcmConverter(clock_hz, rate)
    decoder = make_voice_decoder(codec, rate)
    assert decoder.rate_hz == clock_hz
    pieces = [decoder.decode(packet) for packet in packets[:40]]
    whole = b"".join([*pieces[:20], bytes(round(4.7 * clock_hz) * 2), *pieces[20:]])
    reference = np.frombuffer(straight.convert(whole) + straight.flush(), "<i2")
    assert len(line.sound) == len(reference)
    assert np.abs(line.sound.astype(int) - reference).max() <= 2
    assert max(converted) <= 1.1 * clock_hz


def test_a_pause_of_minutes_does_not_become_minutes_of_silence():
    line = Line(PACKETS)
    line.send(*range(10))
    line.send(*range(10, 20), first_timestamp=50 * 60 * 48_000)
    assert line.out_ms == 400


def test_a_sender_that_says_it_is_silent_is_heard_to_be_silent():
    """DTX: the model hears the end of the sentence go by, 60 ms behind, without a packet."""
    line = Line(PACKETS)
    line.send(*range(10))
    line.put(DTX, number=10, timestamp=10 * 960)
    assert line.out_ms == 220
    line.clock.run(0.4)
    assert 220 + 400 - 120 <= line.out_ms <= 220 + 400 - 60
    line.put(PACKETS[0], number=11, timestamp=(11 + 20) * 960)
    assert line.out_ms == 220 + 400 + 20


def test_silence_that_lasted_less_than_it_was_given_for_is_paid_back():
    line = Line(PACKETS)
    line.send(*range(10))
    line.put(DTX, number=10, timestamp=10 * 960)
    line.clock.run(0.5)
    given = line.out_ms
    line.put(PACKETS[0], number=11, timestamp=(11 + 15) * 960)  # 300 ms of silence, and it came late
    assert line.out_ms == given + 20
    ahead = given - (220 + 300)
    line.put(DTX, number=12, timestamp=(11 + 16) * 960)
    line.put(PACKETS[0], number=13, timestamp=(11 + 16 + 1 + 20) * 960)
    assert ahead > 0
    assert line.out_ms == 220 + 300 + 20 + 20 + 400 + 20


def test_a_sender_that_vanishes_in_silence_is_not_silent_for_ever():
    line = Line(PACKETS)
    line.put(DTX, number=0, timestamp=0)
    line.clock.run(60)
    assert line.out_ms == 20 + 33 * 60


def test_another_sender_begins_where_the_one_before_ended():
    line = Line(PACKETS)
    line.send(*range(10), source=1)
    line.send(11, source=1)
    line.send(*range(20, 30), source=2, first_number=9_000, first_timestamp=123_456_789)
    assert line.out_ms == 200 + 40 + 200


def test_a_sender_that_begins_anew_is_followed():
    line = Line(PACKETS)
    line.send(*range(10), first_number=30_000, first_timestamp=1 << 30)
    line.send(*range(10), first_number=77, first_timestamp=5)
    assert line.out_ms == 200 + 180


def test_packets_of_other_lengths_are_as_long_as_they_are():
    for samples in (480, 1_920, 2_880):
        line = Line([])
        for index, packet in enumerate(packets := _opus(1.2, samples=samples)):
            if index != 5:
                line.put(packet, number=index, timestamp=index * samples)
        line.intake.close()
        assert len(line.sound) == len(packets) * samples // 2


def test_a_damaged_packet_is_counted_and_keeps_its_place():
    line = Line(PACKETS)
    line.send(*range(10))
    line.put(b"\xff" + bytes(200), number=10, timestamp=10 * 960)
    line.send(*range(11, 20))
    assert line.out_ms == 400
    assert line.intake.statistics().faults == 1


def test_an_empty_packet_only_fills_its_number():
    line = Line(PACKETS)
    line.send(0)
    line.put(b"", number=1, timestamp=960)
    line.put(PACKETS[1], number=2, timestamp=960)
    assert line.out_ms == 40
    assert line.intake.statistics().concealed_ms == 0


@pytest.mark.parametrize(("codec", "law"), [("pcmu", "mu"), ("pcma", "a")])
def test_the_telephones_codes(codec, law):
    """G.711: 8 kHz brought to the model's rate, loss made up, time kept."""
    voice = _voice(1.0, 8_000).tobytes()
    packets = [g711.encode(voice[begin : begin + 320], law) for begin in range(0, len(voice), 320)]
    line = Line(packets, codec, 8_000)
    line.send(*(index for index in range(50) if index != 20))
    line.intake.close()
    assert line.out_ms == pytest.approx(1_000, abs=0.1)
    assert line.intake.statistics().concealed_ms == 20
    assert _loudness(line.sound[20 * 480 + 60 : 21 * 480]) > 3_000
    assert _loudness(line.sound[2_400:7_200]) == pytest.approx(9_000 / np.sqrt(2), rel=0.05)


def test_the_codec_may_change_in_mid_call():
    line = Line(PACKETS)
    line.send(*range(10))
    line.intake.receive("pcmu", 8_000, 1, 10, 80, g711.encode(_voice(0.02, 8_000).tobytes()), 0.0)
    line.intake.close()
    assert line.out_ms == pytest.approx(220, abs=0.1)


class _Detour(AudioIntake):
    """Puts what is in order in order, too."""

    def receive(self, *packet: Any) -> None:
        self._put_in_order(*packet[:3], audio_intake._Voice(*packet[3:6]))


_CHANCES = (85, 3, 3, 2, 2, 1, 1, 2, 1)


def _mishaps(codec: str, packets: list[bytes], clock_hz: int, seed: int) -> Iterator[tuple[float, tuple[Any, ...]]]:
    """A call with everything that happens to packets, and how long after the one before each comes."""
    chance = random.Random(seed)
    number, timestamp, source = chance.randrange(1 << 16), chance.randrange(1 << 32), 1
    held: tuple[Any, ...] | None = None
    for index in range(600):
        payload, gap = packets[index % len(packets)], 0.02
        match chance.choices(["fine", "lost", "late", "twice", "dtx", "empty", "damaged", "pause", "new"], _CHANCES)[0]:
            case "lost":
                number += 1
                timestamp += clock_hz // 50
            case "late" if held is None:
                held = (codec, clock_hz, source, number & 0xFFFF, timestamp & 0xFFFFFFFF, payload)
                number += 1
                timestamp += clock_hz // 50
                continue
            case "twice":
                yield 0.0, (codec, clock_hz, source, number & 0xFFFF, timestamp & 0xFFFFFFFF, payload)
            case "dtx":
                payload, gap = DTX, chance.choice([0.02, 0.4, 3.0])
            case "empty":
                payload = b""
            case "damaged":
                payload = b"\xff" * 40
            case "pause":
                gap = chance.choice([0.0, 0.3, 2.0])
                timestamp += chance.choice([-1, 1, 2, 70]) * clock_hz // 50
            case "new":
                source, number, timestamp = source + 1, chance.randrange(1 << 16), chance.randrange(1 << 32)
            case _:
                pass
        yield gap, (codec, clock_hz, source, number & 0xFFFF, timestamp & 0xFFFFFFFF, payload)
        number += 1
        timestamp += clock_hz // 50
        if held is not None and chance.random() < 0.5:
            yield 0.0, held
            held = None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("codec", "rate"), [("opus", RATE), ("opus", 44_100), ("pcmu", RATE)])
def test_the_short_way_of_what_is_in_order_changes_nothing(codec, rate, seed):
    packets, clock_hz = {
        "opus": (PACKETS, 48_000),
        "pcmu": ([g711.encode(piece.tobytes()) for piece in np.split(_voice(1.0, 8_000), 50)], 8_000),
    }[codec]
    clock = Clock()
    pieces: tuple[list[bytes], list[bytes]] = [], []
    short, detour = AudioIntake(rate, pieces[0].append, clock), _Detour(rate, pieces[1].append, clock)
    for gap, packet in _mishaps(codec, packets, clock_hz, seed):
        clock.run(gap)
        short.receive(*packet, clock.now)
        detour.receive(*packet, clock.now)
        assert pieces[0] == pieces[1]
        assert short.statistics() == detour.statistics()
    assert short.statistics().packets > 400
