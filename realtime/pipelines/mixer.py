"""Several microphones become one input stream.

Owns: `Mixer`, the sum of PCM16 sources aligned by their sample positions. Driven by `pipelines/audio.py`. Positions come
from sample counts alone, never from arrival times (behaviour.md A3); one source passes through untouched. It holds at
most `max_lag_ms` of audio per source.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from realtime import pcm

__all__ = ["Mixer"]

_MAX_LAG_MS = 200
"""A source that is further behind than this is not waited for: its silence must not mute the others."""


class Mixer:
    """Adds sources sample by sample, with clipping."""

    def __init__(self, rate_hz: int, *, max_lag_ms: int = _MAX_LAG_MS) -> None:
        """Start without sources, at position 0.

        Args:
            rate_hz: The sample rate of everything.
            max_lag_ms: How far a source may be behind the foremost before it is no longer waited for.
        """
        self._max_lag = pcm.ms_to_samples(max_lag_ms, rate_hz)
        self._emitted = 0
        self._ends: dict[str, int] = {}
        self.alone: str | None = None
        """The only source, if it stands where the stream does: its audio need not be pushed, as it goes through untouched."""
        self._sum: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.late = 0
        """Samples that came too late for their place and were put at the present one."""

    def add(self, source: str) -> None:
        """Make room for a source; its first sample stands where the stream now is."""
        self.alone = None
        self._ends.setdefault(source, self._emitted)

    def remove(self, source: str) -> bytes:
        """Forget a source.

        Returns:
            What could be given now that it is not waited for.
        """
        self.alone = None
        self._ends.pop(source, None)
        if not self._ends:
            return self._take(len(self._sum))
        return self._take(min(self._ends.values()) - self._emitted)

    def push(self, source: str, samples: bytes) -> bytes:  # hot path: every audio frame
        """Add audio of a source.

        Args:
            source: Which; it must have been added.
            samples: PCM16 mono, whole samples.

        Returns:
            The mixed audio that is complete, perhaps empty.
        """
        end = self._ends[source]
        if end < self._emitted:
            self.late += self._emitted - end
            end = self._emitted
        self._ends[source] = end + len(samples) // 2
        if len(self._ends) == 1 and not len(self._sum):
            self._emitted = self._ends[source]
            self.alone = source
            return samples
        self._add(end - self._emitted, samples)
        foremost = max(self._ends.values())
        waits_for = [position for position in self._ends.values() if position >= foremost - self._max_lag]
        return self._take(min(waits_for) - self._emitted)

    def _add(self, offset: int, samples: bytes) -> None:
        values = np.frombuffer(samples, "<i2")
        end = offset + len(values)
        if end > len(self._sum):
            self._sum = np.concatenate((self._sum, np.zeros(end - len(self._sum), np.int32)))
        self._sum[offset:end] += values

    def _take(self, count: int) -> bytes:
        count = min(count, len(self._sum))
        if count <= 0:
            return b""
        mixed = np.clip(self._sum[:count], -32768, 32767).astype("<i2")
        self._sum = self._sum[count:].copy()
        self._emitted += count
        return mixed.tobytes()
