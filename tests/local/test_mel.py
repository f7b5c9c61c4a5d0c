"""Log-mel features: Whisper's recipe, checked against a slow reading of it."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.local.mel import FRAMES_PER_SECOND, RATE_HZ, MelFeatures


def slow_features(samples: np.ndarray, frames: int) -> np.ndarray:
    """The same recipe in plain steps, at double precision: reflected padding, Hann window, power, Slaney mel, log."""
    signal = np.zeros(frames * 160)
    signal[: len(samples)] = samples[: frames * 160]
    signal = np.pad(signal, 200, mode="reflect")
    window = np.hanning(401)[:-1]
    power = np.array([np.abs(np.fft.rfft(signal[160 * n : 160 * n + 400] * window)) ** 2 for n in range(frames)]).T

    def hz(mel: float) -> float:
        return mel * 200 / 3 if mel < 15 else 1000 * np.exp((mel - 15) * np.log(6.4) / 27)

    top = 15 + np.log(8000 / 1000) / (np.log(6.4) / 27)
    corners = [hz(top * n / 81) for n in range(82)]
    bands = np.zeros((80, 201))
    for band in range(80):
        low, middle, high = corners[band : band + 3]
        for number in range(201):
            at = number * 40.0
            height = min((at - low) / (middle - low), (high - at) / (high - middle))
            bands[band, number] = max(0.0, height) * 2 / (high - low)
    logs = np.log10(np.maximum(bands @ power, 1e-10))
    return (np.maximum(logs, logs.max() - 8) + 4) / 4


@pytest.fixture
def chirp() -> np.ndarray:
    t = np.arange(RATE_HZ) / RATE_HZ
    return (0.3 * np.sin(2 * np.pi * (200 + 3000 * t) * t)).astype(np.float32)


def test_features_follow_the_recipe(chirp: np.ndarray) -> None:
    np.testing.assert_allclose(MelFeatures().extract(chirp, 120), slow_features(chirp, 120), atol=2e-3)


def test_features_have_the_shape_asked_for(chirp: np.ndarray) -> None:
    for frames in (50, 100, 1000):
        features = MelFeatures().extract(chirp, frames)
        assert features.shape == (80, frames)
        assert features.dtype == np.float32
        assert features.flags.c_contiguous
    assert MelFeatures(128).extract(chirp, 100).shape == (128, 100)


def test_what_is_beyond_the_window_does_not_count(chirp: np.ndarray) -> None:
    longer = np.concatenate([chirp, chirp])
    np.testing.assert_array_equal(
        MelFeatures().extract(longer, FRAMES_PER_SECOND),
        MelFeatures().extract(longer[: RATE_HZ + 0], FRAMES_PER_SECOND),
    )


def test_silence_is_flat() -> None:
    features = MelFeatures().extract(np.zeros(RATE_HZ, np.float32), 100)
    assert features.min() == features.max() == pytest.approx((-10 + 4) / 4)
