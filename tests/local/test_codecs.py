"""The protocol's three audio formats. G.711 itself is tested in tests/media."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from realtime.local.codecs import AudioDecoder, AudioEncoder, duration_ms

FORMATS = ["audio/pcm", "audio/pcmu", "audio/pcma"]


def tone(rate: int, ms: int = 500, hz: float = 440.0) -> np.ndarray:
    return (8000 * np.sin(2 * np.pi * hz * np.arange(rate * ms // 1000) / rate)).astype("<i2")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_tone_survives_both_ways(kind: str) -> None:
    encoder = AudioEncoder(kind, 24_000)
    pcm = tone(24_000).tobytes()
    data = b"".join(encoder.encode(pcm[start : start + 960]) for start in range(0, len(pcm), 960)) + encoder.flush()
    assert duration_ms(len(data), kind) == 500
    decoder = AudioDecoder(kind, 16_000)
    samples = np.concatenate([decoder.decode(data), decoder.flush()])
    assert len(samples) == 8000
    wanted = tone(16_000) / 32768
    error = (samples - wanted)[200:-200]
    assert np.sqrt(np.mean(error**2)) < 0.02 * np.sqrt(np.mean(wanted**2))


def test_chunks_of_any_length_give_the_same_samples() -> None:
    """A1, A2: half a sample waits for its other half."""
    data = tone(24_000).tobytes()
    whole = AudioDecoder("audio/pcm", 16_000)
    expected = np.concatenate([whole.decode(data), whole.flush()])
    pieces = AudioDecoder("audio/pcm", 16_000)
    cuts = [0, 1, 4, 4, 7, 500, 501, 1801, len(data)]
    parts = [pieces.decode(data[a:b]) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_allclose(np.concatenate([*parts, pieces.flush()]), expected, atol=1e-6)


def test_durations_never_reach_beyond_the_audio() -> None:
    assert duration_ms(48 * 100 + 47, "audio/pcm") == 100
    assert duration_ms(8 * 100 + 7, "audio/pcmu") == 100
