"""One remote track by its packets, without a network (architecture.md section 5; B43: nothing grows at a peer's will)."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiortc.rtp import unpack_remb_fci

from realtime.errors import UserError
from realtime.media import g711
from realtime.testing import FakeTrack
from realtime.tracks.direct import DirectReader
from realtime.tracks.path_estimate import PathEstimate
from realtime.tracks.rtp_receiver import TrackIntake
from realtime.tracks.rtp_streams import MAX_STREAMS, RtpStreams
from realtime.tracks.sampled_decode import VideoIntake

RATE = 24_000
VOICE = g711.encode(bytes(range(160)) * 2, "mu")


class Port:
    """Our end of a transceiver, without one."""

    ssrc = 99
    transport_id = "transport"

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def send_rtcp(self, packet: Any) -> None:
        self.reports.append(packet)

    def end_track(self) -> None: ...

    def queue_frame(self, frame: Any) -> None: ...


class Line:
    """Packets to an intake, by hand."""

    def __init__(self, kind: str) -> None:
        self.jobs: list[Any] = []
        self.intake = TrackIntake(kind, lambda job, done: self.jobs.append((job, done)))
        self.port: Any = Port()
        self.intake.open(self.port)
        self.heard = bytearray()
        voice = SimpleNamespace(payloadType=0, name="PCMU", clockRate=8_000, parameters={})
        picture = SimpleNamespace(payloadType=96, name="VP8", clockRate=90_000, parameters={})
        self.payload_type = 0 if kind == "audio" else 96
        self.intake.start(SimpleNamespace(codecs=[voice if kind == "audio" else picture], encodings=[]))

    def send(self, source: int, number: int, *, at_ms: int = 0, payload: bytes = VOICE, step: int = 160) -> None:
        self.intake.receive_rtp(
            self.payload_type,
            source,
            number,
            number * step,
            True,
            payload,
            len(payload),
            at_ms * 262 & 0xFFFFFF,
            at_ms / 1000,
        )


@pytest.fixture
async def voice() -> Any:
    line = Line("audio")
    yield line
    line.intake.end()


@pytest.fixture
async def pictures() -> Any:
    line = Line("video")
    yield line
    line.intake.end()


def _streams(line: Line) -> list[int]:
    return [entry.ssrc for entry in line.intake.reports() if entry.type == "inbound-rtp"]


async def test_a_track_whose_stream_changes_all_the_time_is_heard_for_ever(voice):
    """`replaceTrack`, relays and browsers that restart give a track another SSRC each time."""
    voice.intake.listen(RATE, voice.heard.extend)
    for source in range(60):
        before = len(voice.heard)
        for number in range(5):
            voice.send(source, number, at_ms=100 * source + 20 * number)
        assert len(voice.heard) > before
    assert _streams(voice) == list(range(60 - MAX_STREAMS, 60))


async def test_a_stream_that_goes_on_is_not_the_one_that_is_forgotten(voice):
    for step in range(100):
        voice.send(7, step, at_ms=20 * step)
        voice.send(1_000 + step, 0, at_ms=20 * step)
    (mine,) = [entry for entry in voice.intake.reports() if entry.ssrc == 7]
    assert mine.packetsReceived == 100
    assert len(_streams(voice)) == MAX_STREAMS


async def test_what_the_path_carries_is_told_of_the_streams_that_are_there(pictures):
    """REMB; a peer that goes through SSRCs makes neither it nor what is remembered longer."""
    for step in range(300):
        pictures.send(step, 0, at_ms=33 * step, payload=b"\x10\x01" + bytes(500))
        pictures.send(step, 1, at_ms=33 * step + 16, payload=b"\x10\x01" + bytes(500))
    assert len(pictures.intake._feedback._path.sources) <= MAX_STREAMS + 1
    told = [packet for packet in pictures.port.reports if packet.fmt == 15]
    assert told
    assert max(len(packet.fci) for packet in told) <= 8 + 4 * (MAX_STREAMS + 1)


async def test_what_the_path_carries_is_estimated_for_every_third_frame_and_of_all_bytes(pictures, monkeypatch):
    estimates: list[tuple[int, int]] = []

    def add(_: Any, source: int, sent_at: int, arrived_ms: int, size: int) -> None:
        del source, sent_at
        estimates.append((arrived_ms, size))

    monkeypatch.setattr(PathEstimate, "add", add)
    for number in range(100):
        pictures.send(1, number, at_ms=33 * number, payload=b"\x10\x01" + bytes(98))
    assert estimates == [(0, 100), *((99 * index, 300) for index in range(1, 34))]


async def test_what_came_again_is_known_to_have_come_again(pictures, monkeypatch):
    """RTX (RFC 4588): such a packet never shows that its sender began anew."""
    again = SimpleNamespace(payloadType=97, name="rtx", clockRate=90_000, parameters={"apt": 96})
    encoding = SimpleNamespace(ssrc=5, rtx=SimpleNamespace(ssrc=6))
    pictures.intake.start(SimpleNamespace(codecs=[again], encodings=[encoding]))
    came: list[tuple[int, int, bytes, bool]] = []

    def receive(  # noqa: PLR0917  (as it is)
        _: Any,
        codec: str,
        source: int,
        number: int,
        timestamp: int,
        payload: bytes,
        is_last: bool,
        is_again: bool = False,
    ) -> None:
        del codec, timestamp, is_last
        came.append((source, number, payload, is_again))

    monkeypatch.setattr(VideoIntake, "receive", receive)
    pictures.send(5, 9, payload=b"content")
    pictures.payload_type = 97
    pictures.send(6, 1, payload=b"\x00\x07" + b"missing")
    pictures.send(5, 10, payload=b"\x00\x08" + b"of one stream")
    pictures.send(6, 2, payload=b"\x00")  # it only probes the path
    assert came == [(5, 9, b"content", False), (5, 7, b"missing", True), (5, 8, b"of one stream", False)]


async def test_packets_in_the_middle_of_frames_are_counted_too(pictures):
    """RR: exactly what is missing, at any moment; not only after the last packet of a frame (RFC 3550, A.3)."""
    rng = random.Random(4)
    expected = RtpStreams()
    sink = Sink()
    pictures.intake.look(sink, decodes_all=False)
    number, count, runs = 65_000, 0, 0
    for index in range(400):
        sink.time, source = index / 30, 1 + index // 250
        last = number + rng.randrange(6)
        numbers = [each for each in range(number, last + 1) if rng.random() < 0.97]
        if rng.random() < 0.2:
            rng.shuffle(numbers)
        for each in numbers:
            begin = b"\x10" + bytes([index % 40 != 0])
            payload = (begin if each == number else b"\x00\x00") + bytes(30)
            stamp, arrived_at = index * 3_000, index / 30 + rng.random() / 100
            pictures.intake.receive_rtp(96, source, each & 0xFFFF, stamp, each == last, payload, 32, None, arrived_at)
            expected.add(source, each & 0xFFFF, stamp, 90_000, arrived_at)
            count += 1
            if rng.random() < 0.1:
                runs += pictures.intake._uncounted > 1
                pictures.intake._timers[0].cancel()
                pictures.intake._report()
                assert pictures.port.reports[-1].reports == expected.receiver_reports()
        number = last + 1
    (one, other) = pictures.intake.reports()
    assert one.packetsReceived + other.packetsReceived == pictures.intake.packets == count
    assert pictures.intake.video.frames > 200
    assert runs > 10


def _send_over(line: Line, path_bits: int, seconds: int, fps: int) -> tuple[list[int], list[float]]:
    """A sender that does as it is told, over a path with a queue: its rate, and how late its frames were, second by second."""
    rate, free_at, number = 1_500_000, 0.0, 0
    rates: list[int] = []
    late: list[float] = []
    for index in range(seconds * fps):
        sent_at = index / fps
        parts = max(1, rate // fps // 8 // 1_100)
        for part in range(parts):
            size = rate // fps // 8 // parts
            free_at = max(sent_at, free_at) + size * 8 / path_bits
            is_last = part == parts - 1
            told = int(sent_at * 2**18) & 0xFFFFFF if is_last else None
            line.intake.receive_rtp(
                96, 1, number & 0xFFFF, index * 3_000, is_last, b"\x10\x01" + bytes(size - 2), size, told, free_at
            )
            number += 1
        told_rates = [unpack_remb_fci(packet.fci)[0] for packet in line.port.reports if packet.fmt == 15]
        rate = min(1_500_000, max(50_000, told_rates[-1])) if told_rates else rate
        if index % fps == fps - 1:
            rates.append(rate)
            late.append(free_at - sent_at)
    return rates, late


@pytest.mark.parametrize("path_bits", [300_000, 800_000])
@pytest.mark.parametrize("fps", [15, 30])
async def test_a_sender_on_a_narrow_path_is_told_what_it_carries(pictures, path_bits, fps):
    """REMB, though not every frame is looked at: the rate comes down to the path's, and what has piled up goes."""
    rates, late = _send_over(pictures, path_bits, 30, fps)
    assert 0.6 * path_bits < min(rates[15:])
    assert max(rates[15:]) < 1.2 * path_bits
    assert max(late[25:]) < 0.3


class Sink:
    """Looks at nothing, unless it is told to."""

    def __init__(self) -> None:
        self.time = 0.0
        self.jobs: list[Any] = []

    def now(self) -> float:
        return self.time

    def is_due(self, pts_ms: int) -> bool:
        del pts_ms
        return False

    def may_hold(self, pts_ms: int) -> bool:
        del pts_ms
        return False

    def lull(self) -> None:
        return None

    def develop(self, frame: Any, /) -> Any:
        return frame

    def receive(self, frame: Any, arrived_at: float, /) -> None: ...

    def run(self, job: Any, done: Any, /) -> None:
        self.jobs.append((job, done))


def refused(_: bytes) -> None:
    pytest.fail("a listener that was refused hears nothing")


KEY = b"\x10\x00" + bytes(50)


async def test_a_second_listener_is_refused_and_the_first_one_goes_on(voice):
    voice.intake.listen(RATE, voice.heard.extend)
    with pytest.raises(UserError, match="already"):
        voice.intake.listen(16_000, refused)
    voice.send(1, 0)
    assert len(voice.heard) > 0
    voice.intake.let_go()
    second = bytearray()
    voice.intake.listen(RATE, second.extend)
    voice.send(1, 1)
    assert len(second) > 0


async def test_a_second_looker_is_refused_but_not_for_an_application_that_reads_the_track(pictures):
    first, second = Sink(), Sink()
    pictures.intake.read_by_others()
    pictures.intake.look(first, decodes_all=False)
    with pytest.raises(UserError, match="already"):
        pictures.intake.look(second, decodes_all=False)
    pictures.send(1, 0, payload=KEY)
    assert len(first.jobs) == 1
    pictures.intake.let_go()
    pictures.intake.look(second, decodes_all=False)
    pictures.send(1, 1, payload=KEY)
    assert len(second.jobs) == 1


async def test_a_reader_that_is_refused_takes_nothing_and_lets_nothing_go(voice):
    """Two sessions on one track: the second is told, and ends without harm to the first."""
    voice.intake.listen(RATE, voice.heard.extend)
    reader = DirectReader(FakeTrack("audio"), voice.intake, lambda intake: intake.listen(RATE, refused))
    with pytest.raises(UserError):
        reader.start()
    assert not reader.running
    await reader.aclose()
    voice.send(1, 0)
    assert len(voice.heard) > 0


async def test_pictures_are_not_decoded_for_an_application_that_has_stopped_reading(pictures):
    pictures.intake.read_by_others()
    pictures.send(1, 0, payload=KEY)
    assert len(pictures.jobs) == 1
    pictures.intake.read_no_more()
    for number in range(1, 5):
        pictures.send(1, number, payload=KEY)
    assert len(pictures.jobs) == 1
    pictures.intake.read_by_others()
    pictures.send(1, 5, payload=KEY)
    assert len(pictures.jobs) == 2


@pytest.mark.parametrize("decodes_all", [False, True])
async def test_a_session_looks_on_as_it_did_when_an_application_has_stopped_reading(pictures, decodes_all):
    sink = Sink()
    pictures.intake.look(sink, decodes_all=decodes_all)
    pictures.intake.read_by_others()
    pictures.intake.read_no_more()
    pictures.send(1, 0, payload=KEY)
    assert len(sink.jobs) == decodes_all


async def test_sound_is_not_decoded_for_an_application_that_has_stopped_reading(voice):
    voice.intake.read_by_others()
    voice.send(1, 0)
    assert voice.intake.voice_statistics().packets == 1
    voice.intake.read_no_more()
    voice.send(1, 1)
    assert voice.intake.voice_statistics().packets == 0
    voice.intake.listen(RATE, voice.heard.extend)
    voice.intake.read_by_others()
    voice.intake.read_no_more()
    voice.send(1, 2)
    assert len(voice.heard) > 0


async def test_who_begins_to_read_in_mid_call_and_begins_again_gets_sound_at_its_time(voice, monkeypatch):
    """The session hears it at any time; frames stand where its sound stands."""
    frames: list[Any] = []
    monkeypatch.setattr(voice.port, "queue_frame", frames.append)
    voice.intake.listen(8_000, voice.heard.extend)
    numbers = iter(range(100))

    def send(packets: int) -> None:
        for number in itertools.islice(numbers, packets):
            voice.send(1, number, at_ms=20 * number)

    send(3)
    voice.intake.read_by_others()
    send(2)
    voice.intake.read_no_more()
    send(4)
    voice.intake.read_by_others()
    send(1)
    voice.intake.let_go()
    send(1)
    assert [frame.pts for frame in frames] == [number * 160 for number in (3, 4, 9, 10)]
    assert [bytes(frame.planes[0])[:320] for frame in frames[:3]] == [
        bytes(voice.heard)[number * 320 :][:320] for number in (3, 4, 9)
    ]
    assert len(voice.heard) == 10 * 320
