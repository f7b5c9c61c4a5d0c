"""How much comes in, over the last second: what the estimate of a path's capacity begins with.

Owns: `ReceivedRate`. Driven by `path_estimate`, frame by frame; pure, time is an argument. It says what `aiortc.rate.RateCounter`
says, in whose place it stands. That one goes through a thousand places a second for each track; this one only through what came.
"""

from __future__ import annotations

from collections import deque

__all__ = ["ReceivedRate"]


class ReceivedRate:
    """A sliding window."""

    __slots__ = ("_came", "_is_under_way", "_origin_ms", "_scale", "_total", "_window_ms")

    def __init__(self, window_ms: int, scale: int) -> None:
        """Begin an empty window.

        Args:
            window_ms: So long it is.
            scale: What one unit in a millisecond is, of what `rate` gives: 8,000 for bytes and bits a second.
        """
        self._window_ms = window_ms
        self._scale = scale
        self._came: deque[tuple[int, int]] = deque()
        self._total = 0
        self._origin_ms: int | None = None
        self._is_under_way = False

    def add(self, value: int, now_ms: int) -> None:
        """So much came. Time never goes back. Where nothing came for as long as the window is, that begins anew."""
        # hot path: every third frame
        self._forget(now_ms)
        if self._origin_ms is not None and self._came and now_ms > self._origin_ms:
            self._is_under_way = True
        elif self._is_under_way or self._origin_ms is None:
            self._came.clear()
            self._total = 0
            self._origin_ms = now_ms
            self._is_under_way = False
        self._came.append((now_ms, value))
        self._total += value

    def rate(self, now_ms: int) -> int | None:
        """What comes per second; None: too little came to say so."""
        self._forget(now_ms)
        if self._origin_ms is None or not self._came or now_ms <= self._origin_ms:
            return None
        return round(self._scale * self._total / (now_ms - self._origin_ms + 1))

    def _forget(self, now_ms: int) -> None:
        origin_ms = now_ms - self._window_ms + 1
        if self._origin_ms is None or origin_ms <= self._origin_ms:
            return
        self._origin_ms = origin_ms
        came = self._came
        while came and came[0][0] < origin_ms:
            self._total -= came.popleft()[1]
