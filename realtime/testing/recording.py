"""What one side of a call said, as samples on one time line.

Owns: `Recording` and `stereo`, which lays two of them side by side. Driven by the microphone and the listener. Positions
come from sample counts, never from arrival times (behaviour.md A3); only the first sample has a time of day.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_RECORDED_SECONDS", "RECORDED_RATE_HZ", "Recording", "stereo"]

RECORDED_RATE_HZ = 24_000
"""Samples a second of every recording."""
MAX_RECORDED_SECONDS = 600
"""A recording keeps this much and counts what came after it."""
_SOUND_LEVEL = 200
"""A sample at or above this is sound; Opus' own noise floor is below it."""


class Recording:
    """Mono PCM16 at 24 kHz of one side, from a known moment on.

    Attributes:
        begun_at: When its first sample was given or came, on the clock; None before.
        pcm: The samples.
        dropped_bytes: What came after `MAX_RECORDED_SECONDS`.
    """

    def __init__(self) -> None:
        """Make an empty recording."""
        self.begun_at: float | None = None
        self.pcm = bytearray()
        self.dropped_bytes = 0

    def begin(self, now: float) -> None:
        """Say when the first sample is."""
        if self.begun_at is None:
            self.begun_at = now

    def append(self, pcm: bytes) -> None:
        """Add samples at the end."""
        room = MAX_RECORDED_SECONDS * RECORDED_RATE_HZ * 2 - len(self.pcm)
        if room >= len(pcm):
            self.pcm += pcm
        else:
            self.dropped_bytes += len(pcm)

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.pcm) / 2 / RECORDED_RATE_HZ

    def sound(self) -> bytes:
        """The samples from the first sound to the last, with 200 ms of what was around them; empty if all is silence."""
        samples = np.frombuffer(bytes(self.pcm), dtype="<i2")
        loud = np.flatnonzero(np.abs(samples.astype(np.int32)) >= _SOUND_LEVEL)
        if not len(loud):
            return b""
        around = RECORDED_RATE_HZ // 5
        return samples[max(0, int(loud[0]) - around) : int(loud[-1]) + around].tobytes()


def stereo(left: Recording, right: Recording) -> bytes:
    """Lay two recordings side by side, aligned by when they began: interleaved PCM16."""
    begun = [side.begun_at for side in (left, right) if side.begun_at is not None]
    zero = min(begun, default=0.0)
    rows: list[NDArray[np.int16]] = []
    for side in (left, right):
        ahead = round(((side.begun_at or zero) - zero) * RECORDED_RATE_HZ)
        rows.append(np.concatenate([np.zeros(ahead, np.int16), np.frombuffer(bytes(side.pcm), dtype="<i2")]))
    both = np.zeros((max(map(len, rows)), 2), np.int16)
    for channel, row in enumerate(rows):
        both[: len(row), channel] = row
    return both.tobytes()
