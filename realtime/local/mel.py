"""Whisper's log-mel features, with numpy alone.

Owns: `MelFeatures`. Driven by the recognizer, in a worker thread. The recipe is Whisper's (arXiv:2212.04356, section
2.2): 16 kHz, windows of 25 ms every 10 ms, mel bands on Slaney's scale normalized by area, log10, the lowest 80 dB
kept, then (x + 4) / 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from realtime.local.parts import Samples

__all__ = ["FRAMES_PER_SECOND", "RATE_HZ", "MelFeatures"]

RATE_HZ = 16_000
"""The sample rate of the audio that features are made of."""
FRAMES_PER_SECOND = 100
"""How many feature frames a second of audio makes."""

_HOP = RATE_HZ // FRAMES_PER_SECOND
_WINDOW = 400
_BREAK_HZ = 1000.0
_LINEAR_HZ_PER_MEL = 200.0 / 3.0
_BREAK_MEL = _BREAK_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27.0

Features = npt.NDArray[np.float32]


class MelFeatures:
    """Makes log-mel features. Its state never changes, so threads may share one."""

    def __init__(self, bands: int = 80) -> None:
        """Prepare the filters.

        Args:
            bands: Mel bands, as the model was trained with: 80, or 128 for the newest models.
        """
        self.bands = bands
        self._filters = _mel_filters(bands)
        angles = 2.0 * np.pi * np.arange(_WINDOW) / _WINDOW
        self._taper = (0.5 - 0.5 * np.cos(angles)).astype(np.float32)

    def extract(self, samples: Samples, frames: int) -> Features:
        """Features of exactly `frames` frames, shape (bands, frames), float32.

        Args:
            samples: 16 kHz, mono, -1..1. What is longer than `frames` is cut, what is shorter is followed by silence.
            frames: 100 a second.
        """
        length = frames * _HOP
        half = _WINDOW // 2
        padded = np.zeros(length + 2 * half, np.float32)
        taken = min(length, len(samples))
        padded[half : half + taken] = samples[:taken]
        padded[:half] = padded[half + 1 : 2 * half + 1][::-1]
        padded[half + length :] = padded[length - 1 : half + length - 1][::-1]
        windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP][:frames]
        spectrum = np.fft.rfft(windows * self._taper, axis=1)
        power = np.square(spectrum.real, dtype=np.float32) + np.square(spectrum.imag, dtype=np.float32)
        log_power = np.log10(np.maximum(power @ self._filters, 1e-10))
        np.maximum(log_power, log_power.max() - 8.0, out=log_power)
        features: Features = np.ascontiguousarray((log_power.T + 4.0) / 4.0, dtype=np.float32)
        return features


def _mel_filters(bands: int) -> npt.NDArray[np.float32]:
    """Triangles on the mel scale, shape (201, bands)."""
    bins = np.fft.rfftfreq(_WINDOW, 1.0 / RATE_HZ)
    corners = _to_hz(np.linspace(0.0, _to_mel(RATE_HZ / 2), bands + 2))
    rising = (bins[:, None] - corners[None, :-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[None, 2:] - bins[:, None]) / (corners[2:] - corners[1:-1])
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    filters: npt.NDArray[np.float32] = (triangles * (2.0 / (corners[2:] - corners[:-2]))).astype(np.float32)
    return filters


def _to_mel(hz: float) -> float:
    """Slaney's scale: linear up to 1 kHz, logarithmic above."""
    if hz < _BREAK_HZ:
        return hz / _LINEAR_HZ_PER_MEL
    return float(_BREAK_MEL + np.log(hz / _BREAK_HZ) / _LOG_STEP)


def _to_hz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    logarithmic = _BREAK_HZ * np.exp((mel - _BREAK_MEL) * _LOG_STEP)
    return np.where(mel < _BREAK_MEL, mel * _LINEAR_HZ_PER_MEL, logarithmic)
