"""Speech or not, per window of 20 ms, by level alone: a fallback where neither provider nor model says.

Owns: `VoiceDetector`. Driven by whoever holds a stream of PCM16. Never decides whether the user has finished (that is turn
detection), never holds more than a window of audio.

It hears *that* something rises above the background, not *what*: a door or a cough is speech to it, and so is a second
speaker in the room. Providers' own detection, or a trained model, is better wherever there is one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realtime.errors import ArgumentError
from realtime.media.resample import check_rate
from realtime.pcm import OddByteCarry

__all__ = ["VoiceChange", "VoiceDetector"]

_WINDOW_MS = 20
_QUIETEST_SPEECH_DB = -62.0
"""Below this nothing is speech, however quiet the background: full scale is 0 dB, measured without rumble."""
_FIRST_BACKGROUND_DB = -55.0
"""A stream may begin with speech, so its first window is not believed to be louder background than this."""
_FALL = 0.3
"""How much of the way down the background goes with each quieter window."""
_RISE_DB = 0.06
"""How much it rises in a window while nobody speaks."""
_MEMORY_WINDOWS = 150
"""What was never quieter than this for three seconds is background: speech has pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceChange:
    """Speech began or ended."""

    speaking: bool
    """True: it began."""
    at_ms: int
    """Where in the stream, in milliseconds: the start of the first window of speech, or the end of the last."""


class VoiceDetector:
    """Follows the background's level and reports what rises above it.

    The background falls at once with the quietest windows and rises slowly while nobody speaks. A fan or a street that
    stays is background after three seconds; the pauses between words keep it down while somebody speaks.

    Attributes:
        speaking: Whether speech is going on.
    """

    __slots__ = (
        "_above_db",
        "_active_in_row",
        "_background_db",
        "_carry",
        "_last_active_end",
        "_recent",
        "_rest",
        "_start_windows",
        "_stop_windows",
        "_window",
        "_windows",
        "speaking",
    )

    def __init__(self, rate_hz: int, *, above_db: float = 9.0, start_ms: int = 60, stop_ms: int = 500) -> None:
        """Start in silence.

        Args:
            rate_hz: Samples a second of the PCM16 mono that will be pushed.
            above_db: How far above the background speech is, 1–40 dB.
            start_ms: How long it must last to be speech, 20–1000 ms.
            stop_ms: How long silence must last to end it, 20–5000 ms.

        Raises:
            ArgumentError: A number is out of range.
        """
        self._window = check_rate("rate_hz", rate_hz) * _WINDOW_MS // 1000
        self._above_db = _check("above_db", above_db, 1, 40)
        self._start_windows = round(_check("start_ms", start_ms, 20, 1000) / _WINDOW_MS)
        self._stop_windows = round(_check("stop_ms", stop_ms, 20, 5000) / _WINDOW_MS)
        self._carry = OddByteCarry()
        self._rest: NDArray[np.float32] = np.zeros(0, np.float32)
        self._recent: deque[float] = deque(maxlen=_MEMORY_WINDOWS)
        self._background_db: float | None = None
        self._windows = 0
        self._active_in_row = 0
        self._last_active_end = 0
        self.speaking = False

    def push(self, pcm: bytes | bytearray | memoryview) -> tuple[VoiceChange, ...]:
        """Take a chunk of any length and give what changed in it, in order; mostly nothing."""
        samples = np.frombuffer(self._carry.push(pcm), "<i2").astype(np.float32)
        line = np.concatenate((self._rest, samples))
        count = len(line) // self._window
        self._rest = line[count * self._window :].copy()
        if not count:
            return ()
        changes: list[VoiceChange] = []
        for level in _levels(line[: count * self._window].reshape(count, self._window)):
            change = self._step(float(level))
            if change is not None:
                changes.append(change)
        return tuple(changes)

    def _step(self, level: float) -> VoiceChange | None:
        background = self._background_db
        if background is None:
            background = min(level, _FIRST_BACKGROUND_DB)
        active = level > max(background + self._above_db, _QUIETEST_SPEECH_DB)
        if level < background:
            background += (level - background) * _FALL
        elif not self.speaking:
            background += min(level - background, _RISE_DB)
        self._recent.append(level)
        if len(self._recent) == _MEMORY_WINDOWS:
            background = max(background, min(self._recent))
        self._background_db = background
        self._windows += 1
        self._active_in_row = self._active_in_row + 1 if active else 0
        if active and (self.speaking or self._active_in_row >= self._start_windows):
            self._last_active_end = self._windows
        if not self.speaking and self._active_in_row >= self._start_windows:
            self.speaking = True
            return VoiceChange(speaking=True, at_ms=(self._windows - self._active_in_row) * _WINDOW_MS)
        if self.speaking and self._windows - self._last_active_end >= self._stop_windows:
            self.speaking = False
            return VoiceChange(speaking=False, at_ms=self._last_active_end * _WINDOW_MS)
        return None


def _levels(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The level of each window (rows) in dB of full scale, without its offset and slope: rumble is no voice."""
    count = windows.shape[1]
    ramp = np.linspace(-1.0, 1.0, count, dtype=np.float32)
    flat = windows - windows.mean(axis=1, keepdims=True)
    flat = flat - (flat @ ramp)[:, np.newaxis] * (ramp / np.float32(ramp @ ramp))
    power: NDArray[np.float32] = np.mean(flat * flat, axis=1) / np.float32(32768.0**2)
    levels: NDArray[np.float32] = 10 * np.log10(power + np.float32(1e-10))
    return levels


def _check(argument: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ArgumentError(argument, value, f"a number of {least:g} to {most:g}")
    return float(value)
