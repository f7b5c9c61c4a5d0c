"""Packets of a voice to PCM16: Opus through libopus or PyAV, G.711, G.722; what stands in for lost ones (behaviour.md A1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from realtime.errors import ArgumentError
from realtime.media import voice
from realtime.media.concealment import Concealer
from realtime.media.opus_decoder import OpusDecoder
from realtime.media.opus_library import OPUS_RATES, OpusError, find_opus
from realtime.media.voice import VOICE_CODECS, make_voice_decoder


def _tone(seconds: float, rate: int, hz: float = 200.0) -> np.ndarray[Any, Any]:
    return np.round(9_000 * np.sin(np.arange(int(rate * seconds)) * 2 * np.pi * hz / rate)).astype("<i2")


def _encode(codec: str, samples: np.ndarray[Any, Any], rate: int, layout: str = "mono") -> list[bytes]:
    encoder: Any = av.CodecContext.create(codec, "w")
    encoder.sample_rate, encoder.layout, encoder.format = rate, layout, "s16"
    step = rate // 50
    packets: list[bytes] = []
    for begin in range(0, samples.shape[-1], step):
        part = np.ascontiguousarray(samples[..., begin : begin + step].T).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(part, format="s16", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, begin, Fraction(1, rate)
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


def _rms(pcm: bytes) -> float:
    return float(np.sqrt(np.mean(np.frombuffer(pcm, "<i2").astype(float) ** 2)))


OPUS = _encode("libopus", _tone(1.0, 48_000), 48_000)


def test_the_wheels_that_are_installed_bring_libopus():
    """Without it everything works, for more: that is worth a failing test."""
    assert find_opus() is not None


@pytest.mark.parametrize("rate", OPUS_RATES)
def test_opus_comes_straight_at_the_models_rate(rate):
    decoder = make_voice_decoder("opus", rate)
    assert decoder.rate_hz == rate
    sounds = [decoder.decode(packet) for packet in OPUS]
    assert {len(sound) for sound in sounds} == {rate // 50 * 2}
    assert _rms(b"".join(sounds[10:])) == pytest.approx(9_000 / np.sqrt(2), rel=0.1)


def test_mono_is_the_mean_of_both_channels():
    """B50: one side silent is half as loud, not twice as fast."""
    left = np.stack([_tone(1.0, 48_000), np.zeros(48_000, "<i2")])
    decoder = make_voice_decoder("opus", 24_000)
    sounds = [decoder.decode(packet) for packet in _encode("libopus", left, 48_000, "stereo")]
    assert {len(sound) for sound in sounds} == {960}
    assert _rms(b"".join(sounds[10:])) == pytest.approx(9_000 / np.sqrt(2) / 2, rel=0.15)


def test_another_rate_comes_at_48_khz():
    assert make_voice_decoder("opus", 44_100).rate_hz == 48_000


def test_without_libopus_pyav_decodes(monkeypatch):
    monkeypatch.setattr(voice, "find_opus", lambda: None)
    decoder = make_voice_decoder("opus", 24_000)
    assert decoder.rate_hz == 48_000
    sound = b"".join(decoder.decode(packet) for packet in OPUS)
    assert len(sound) // 2 == pytest.approx(48_000, abs=960)
    assert _rms(sound[19_200:]) == pytest.approx(9_000 / np.sqrt(2), rel=0.1)
    assert _rms(decoder.conceal(960, None)) > 2_000


def test_g722():
    packets = _encode("g722", _tone(1.0, 16_000), 16_000)
    decoder = make_voice_decoder("g722", 24_000)
    assert decoder.rate_hz == 16_000
    sound = b"".join(decoder.decode(packet) for packet in packets)
    assert len(sound) == 32_000
    assert _rms(sound[6_400:]) == pytest.approx(9_000 / np.sqrt(2), rel=0.05)


def test_a_codec_that_is_none():
    assert "speex" not in VOICE_CODECS
    with pytest.raises(ValueError, match="speex"):
        make_voice_decoder("speex", 24_000)


@pytest.mark.parametrize("packet", [b"\xff" * 40, b"\x03\xff\xff", b"\xfc" + bytes(3)])
def test_damaged_opus_is_an_error_or_sound_and_never_more_than_120_ms(packet):
    decoder = OpusDecoder(24_000)
    decoder.decode(OPUS[0])
    try:
        sound = decoder.decode(packet)
    except OpusError:
        sound = b""
    assert len(sound) <= 24_000 * 0.12 * 2
    assert len(decoder.decode(OPUS[1])) == 960


def test_a_rate_that_libopus_does_not_know_is_refused():
    with pytest.raises(ArgumentError, match="rate_hz"):
        OpusDecoder(22_050)


def test_what_opus_makes_up_goes_on_and_fades():
    decoder = OpusDecoder(24_000)
    for packet in OPUS[:20]:
        decoder.decode(packet)
    made = [_rms(decoder.conceal(480)) for _ in range(6)]
    assert made[0] > 3_000
    assert made[-1] < made[0] / 2
    assert len(decoder.conceal(24_000)) == 2_880 * 2
    assert decoder.conceal(59) == b""  # less than 2.5 ms


def test_a_packet_tells_what_the_one_before_it_said():
    """In-band FEC: a word that began in the lost packet is there."""
    decoder = OpusDecoder(24_000)
    decoder.decode(OPUS[0])
    assert len(decoder.conceal(480, OPUS[2])) == 960
    assert len(decoder.conceal(480, b"\xff\xff")) == 960  # it is damaged itself


def test_made_up_sound_keeps_the_voices_pitch_and_ends_in_silence():
    concealer = Concealer(8_000)
    concealer.heard(_tone(0.1, 8_000, 160.0).tobytes())
    made = np.frombuffer(concealer.conceal(160) + concealer.conceal(320), "<i2").astype(float)
    expected = _tone(0.12, 8_000, 160.0)[800:960].astype(float)
    likeness = np.corrcoef(made[:160], expected)[0, 1]
    assert likeness > 0.98
    assert not concealer.conceal(160).strip(b"\0")
    assert abs(made[400:]).max() < abs(made[:160]).max() / 4


def test_nothing_was_heard_so_nothing_is_made_up():
    assert Concealer(8_000).conceal(160) == bytes(320)
