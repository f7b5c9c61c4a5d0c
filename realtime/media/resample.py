"""One mono stream from one sample rate to another, by chunks of any length, with a millisecond of look-ahead.

Owns: `Resampler`. Driven by `realtime.media.audio` and by the reply track. Never starts a thread, never holds more than
the width of its filter and one block.

A windowed sinc applied as one small matrix product per block of samples. soxr costs less but works in blocks of 20 to
40 ms, which a conversation hears; it takes over where the two rates have next to nothing in common and the matrix would
be large.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, cast

import numpy as np
import soxr  # pyright: ignore[reportMissingTypeStubs]  (it has none)
from numpy.typing import NDArray

from realtime.errors import ArgumentError

__all__ = ["MAX_RATE_HZ", "MIN_RATE_HZ", "Resampler", "check_rate"]

MIN_RATE_HZ = 1_000
MAX_RATE_HZ = 768_000

_ZERO_CROSSINGS = 24
"""Half the filter's width, in samples of the lower rate: 1 ms at 24 kHz, 1.5 ms at 16 kHz."""
_PASSBAND = 0.92
"""The middle of the filter's slope, as a share of the lower Nyquist frequency."""
_KAISER_BETA = 7.0
"""70 dB of stop band."""
_BLOCK = 32
_MAX_MATRIX = 1_000_000

_Samples = NDArray[np.float32]


def check_rate(argument: str, rate_hz: object) -> int:
    """Give `rate_hz` back, or raise `ArgumentError` if it is no sample rate."""
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, int) or not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise ArgumentError(argument, rate_hz, f"a sample rate, an int of {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz")
    return rate_hz


class Resampler:
    """Resamples one mono stream. What comes out in all, after `flush`, is as long as what went in to half a sample.

    Output sample k stands at the same instant as input sample k × from / to: there is no delay in the samples, only
    that the last few milliseconds wait until what follows them is known.
    """

    __slots__ = ("_given", "_matrix", "_stream", "_taken", "_waiting", "from_rate_hz", "to_rate_hz")

    def __init__(self, from_rate_hz: int, to_rate_hz: int) -> None:
        """Prepare for one direction.

        Raises:
            ArgumentError: A rate is out of range.
        """
        self.from_rate_hz = check_rate("from_rate_hz", from_rate_hz)
        self.to_rate_hz = check_rate("to_rate_hz", to_rate_hz)
        self._matrix = _block_filter(from_rate_hz, to_rate_hz)
        self._stream: Any = None
        self._begin()

    def _begin(self) -> None:
        self._taken = 0
        self._given = 0
        if self._matrix is None:
            self._stream = soxr.ResampleStream(self.from_rate_hz, self.to_rate_hz, 1, dtype="float32", quality="HQ")
            self._waiting: _Samples = np.zeros(0, np.float32)
        else:
            self._waiting = np.zeros(self._matrix.lead, np.float32)

    @property
    def look_ahead(self) -> int:
        """How many samples of what follows are needed before a block can be given; 0 where soxr decides."""
        return 0 if self._matrix is None else self._matrix.lead

    def push(self, samples: _Samples) -> _Samples:
        """Take samples (shape (n,), any n) and give what can be given already; may be empty."""
        self._taken += len(samples)
        if self._matrix is None:
            out = cast("_Samples", self._stream.resample_chunk(samples))
        else:
            out = self._blocks(samples, self._matrix)
        self._given += len(out)
        return out

    def skip_silence(self, samples: int) -> tuple[int, int]:
        """Pass over silence without filtering it, where nothing but silence is held back.

        Args:
            samples: How many samples of silence come.

        Returns:
            ``(taken, given)``: how many of them were taken, and how many samples of silence they give. The rest, less
            than what the two rates' samples meet after, is to be pushed.
        """
        if self._matrix is None or self._waiting.any():
            return 0, 0
        common = math.gcd(self.from_rate_hz, self.to_rate_hz)
        periods = samples * common // self.from_rate_hz
        taken, given = periods * self.from_rate_hz // common, periods * self.to_rate_hz // common
        self._taken += taken
        self._given += given
        return taken, given

    def flush(self) -> _Samples:
        """Give the rest, as if silence followed. What is pushed next starts a new stream (behaviour.md A1)."""
        total = (self._taken * self.to_rate_hz * 2 + self.from_rate_hz) // (2 * self.from_rate_hz)
        missing = total - self._given
        if self._taken == 0:
            out = np.zeros(0, np.float32)
        elif self._matrix is None:
            out = cast("_Samples", self._stream.resample_chunk(np.zeros(0, np.float32), last=True))
        else:
            tail = np.zeros(self._matrix.lead + self._matrix.step, np.float32)
            out = self._blocks(tail, self._matrix)[:missing]
        self._begin()
        return out

    def _blocks(self, samples: _Samples, matrix: _BlockFilter) -> _Samples:
        """Every whole block that the waiting and the new samples make."""
        # hot path
        line = np.concatenate((self._waiting, samples))
        count = (len(line) - matrix.width) // matrix.step + 1
        if count <= 0:
            self._waiting = line
            return np.zeros(0, np.float32)
        # Overlapping windows; built by hand because sliding_window_view costs three times the product itself.
        windows: _Samples = np.ndarray((count, matrix.width), np.float32, line, 0, (matrix.step * 4, 4))
        out = np.ascontiguousarray(windows) @ matrix.weights
        self._waiting = line[count * matrix.step :].copy()
        return cast("_Samples", out.reshape(-1))


class _BlockFilter:
    """The filter of one pair of rates: `width` input samples times `weights` are the outputs of `step` inputs."""

    __slots__ = ("lead", "step", "weights", "width")

    def __init__(self, weights: _Samples, step: int, lead: int) -> None:
        self.weights = weights
        self.step = step
        self.lead = lead
        self.width = weights.shape[0]


@lru_cache(maxsize=16)
def _block_filter(from_rate_hz: int, to_rate_hz: int) -> _BlockFilter | None:
    """Design the filter, or None where it would be too large."""
    common = math.gcd(from_rate_hz, to_rate_hz)
    up, down = to_rate_hz // common, from_rate_hz // common
    ratio = min(1.0, up / down)
    lead = math.ceil(_ZERO_CROSSINGS / ratio)
    periods = max(1, _BLOCK // max(up, down))
    step, outputs = down * periods, up * periods
    if (step + 2 * lead) * outputs > _MAX_MATRIX:
        return None
    at = np.arange(outputs) * (down / up)
    distance = at[np.newaxis, :] - (np.arange(step + 2 * lead) - lead)[:, np.newaxis]
    cutoff = ratio * _PASSBAND
    reach = np.clip(1.0 - (distance * ratio / _ZERO_CROSSINGS) ** 2, 0.0, None)
    weights = np.sinc(distance * cutoff) * np.i0(_KAISER_BETA * np.sqrt(reach)) * (reach > 0.0)
    weights /= weights.sum(axis=0, keepdims=True)
    return _BlockFilter(np.ascontiguousarray(weights, np.float32), step, lead)
