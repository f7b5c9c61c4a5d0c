"""Opus at the model's rate: quality, silence, bounds (issue: audio out encodes nothing twice and costs little)."""

import subprocess
import sys
from typing import Any

import av
import numpy as np
import pytest

from realtime.errors import ArgumentError
from realtime.media import opus_encoder
from realtime.media.opus_encoder import OPUS_INPUT_RATES, OpusEncoder
from realtime.media.opus_library import OpusError

DELAY = 120
"""What the low-delay mode looks ahead, in samples at 48 kHz."""


def decode(packets: list[bytes]) -> np.ndarray:
    """The packets at 48 kHz, as any receiver of ours or theirs would."""
    decoder = av.AudioCodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.format, decoder.layout = 48_000, "s16", "mono"
    frames = [frame.to_ndarray().reshape(-1) for packet in packets for frame in decoder.decode(av.Packet(packet))]
    return np.concatenate(frames).astype(float)


def voice(rate: int, seconds: float) -> np.ndarray:
    """A buzz with harmonics up to 3 kHz that swells and fades."""
    t = np.arange(round(rate * seconds)) / rate
    buzz = sum(np.sin(2 * np.pi * 150 * harmonic * t) / harmonic for harmonic in range(1, 21))
    return (4000 * buzz * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))).astype("<i2")


def encode(encoder: OpusEncoder, samples: np.ndarray) -> list[bytes]:
    step = encoder.samples
    return [encoder.encode(samples[at : at + step].tobytes()) for at in range(0, len(samples), step)]


@pytest.mark.parametrize("rate", OPUS_INPUT_RATES)
def test_what_is_heard_is_what_was_said(rate):
    heard = decode(encode(OpusEncoder(rate), voice(rate, 1.0)))
    wanted = voice(48_000, 1.0).astype(float)
    length = len(wanted) - DELAY
    noise = heard[DELAY : DELAY + length] - wanted[:length]
    assert 10 * np.log10(np.mean(wanted**2) / np.mean(noise**2)) > 12


def test_a_packet_is_20_ms_and_about_as_large_as_was_settled():
    packets = encode(OpusEncoder(24_000), voice(24_000, 2.0))
    assert len(packets) == 100
    assert len(decode(packets)) == 96_000
    assert 100 < np.mean([len(packet) for packet in packets]) < 220


def test_less_than_20_ms_is_filled_with_silence():
    encoder = OpusEncoder(24_000)
    heard = decode([encoder.encode(voice(24_000, 0.01).tobytes()), encoder.encode(b""), encoder.encode(b"")])
    assert np.abs(heard[:480]).max() > 1000
    assert np.abs(heard[1200:]).max() < 200


@pytest.mark.parametrize("rate", OPUS_INPUT_RATES)
def test_silence_is_three_bytes_and_soon_all_there_is(rate):
    encoder = OpusEncoder(rate)
    assert encoder.is_quiet
    assert encoder.encode(b"") == encoder.silence
    encode(encoder, np.random.default_rng(0).normal(0, 5000, rate // 5).astype("<i2"))
    assert not encoder.is_quiet
    rest = 0
    while not encoder.is_quiet:
        encoder.encode(b"")
        rest += 1
        assert rest <= 25
    assert len(encoder.silence) == 3
    assert not decode([encoder.silence] * 5).any()


def test_how_long_silence_lasted_changes_nothing_of_what_follows():
    """Packets of silence that were never sent are missed by nobody."""
    encoder, speech = OpusEncoder(24_000), voice(24_000, 0.4)
    before = encode(encoder, speech)
    while not encoder.is_quiet:
        before.append(encoder.encode(b""))
    after = encode(encoder, speech[::-1])
    short, long = (decode([*before, *[encoder.silence] * count, *after]) for count in (1, 200))
    assert np.array_equal(short[-len(after) * 960 :], long[-len(after) * 960 :])


@pytest.mark.parametrize("rate", [0, 22_050, 44_100, 96_000, "24000"])
def test_a_rate_that_opus_does_not_know_is_refused(rate):
    with pytest.raises(ArgumentError, match="rate_hz must be one of 8000, 12000, 16000, 24000, 48000 Hz"):
        OpusEncoder(rate)


@pytest.fixture
def without_libopus(monkeypatch):
    monkeypatch.setattr(opus_encoder, "find_opus", lambda: None)


@pytest.mark.parametrize("rate", OPUS_INPUT_RATES)
@pytest.mark.usefixtures("without_libopus")
def test_without_libopus_pyav_encodes(rate):
    encoder = OpusEncoder(rate)
    assert len(encoder.silence) == 3
    heard = decode([*encode(encoder, voice(rate, 0.2)), encoder.encode(b""), encoder.encode(b"")])
    wanted = voice(48_000, 0.2).astype(float)
    noise = heard[DELAY : DELAY + len(wanted)] - wanted
    assert 10 * np.log10(np.mean(wanted**2) / np.mean(noise**2)) > 10


@pytest.mark.parametrize("rate", OPUS_INPUT_RATES)
def test_libopus_is_set_as_pyav_sets_it(rate, monkeypatch):
    """Byte by byte: the measured settings are those that are used, and nobody hears which of the two encodes."""
    ours = OpusEncoder(rate)
    monkeypatch.setattr(opus_encoder, "find_opus", lambda: None)
    theirs = OpusEncoder(rate)
    assert ours.silence == theirs.silence
    speech = voice(rate, 1.0)
    assert encode(ours, speech) == encode(theirs, speech)


def test_an_encoder_that_nobody_holds_any_more_is_freed(monkeypatch):
    library: Any = opus_encoder.find_opus()
    freed: list[int] = []

    class Watched:
        opus_encoder_create = library.opus_encoder_create
        opus_encoder_ctl = library.opus_encoder_ctl
        opus_encode = library.opus_encode

        @staticmethod
        def opus_encoder_destroy(state):
            freed.append(state)
            library.opus_encoder_destroy(state)

    monkeypatch.setattr(opus_encoder, "find_opus", Watched)
    encoder = OpusEncoder(24_000)
    encoder.encode(b"")
    del encoder
    assert len(freed) == 1


AT_WORK_TO_THE_LAST = """
from realtime.media import opus_decoder, opus_encoder

library = opus_encoder.find_opus()

class Watched:
    def __getattr__(self, name):
        return print if name.endswith("destroy") else getattr(library, name)

    def __getitem__(self, name):
        return library[name]

opus_encoder.find_opus = opus_decoder.find_opus = Watched
held = opus_encoder.OpusEncoder(24_000), opus_decoder.OpusDecoder(24_000)
"""


def test_nothing_is_freed_at_the_end_of_the_process():
    """A loop in a daemon thread works to the last: what is taken from under it ends the process with a segmentation fault."""
    ended = subprocess.run([sys.executable, "-c", AT_WORK_TO_THE_LAST], capture_output=True, check=True)
    assert ended.stdout == b""


def test_libopus_that_cannot_is_an_error_and_no_packet(monkeypatch):
    library: Any = opus_encoder.find_opus()

    class Failing:
        opus_encoder_create = library.opus_encoder_create
        opus_encoder_ctl = library.opus_encoder_ctl
        opus_encoder_destroy = library.opus_encoder_destroy
        opus_encode = staticmethod(lambda *_: -3)

    monkeypatch.setattr(opus_encoder, "find_opus", Failing)
    with pytest.raises(OpusError, match="-3"):
        OpusEncoder(24_000)
    Failing.opus_encoder_create = staticmethod(lambda *_: None)
    with pytest.raises(OpusError, match="no encoder"):
        OpusEncoder(24_000)
