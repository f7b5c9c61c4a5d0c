"""How many responses a session may ask for, and how long it may live.

Owns: `RequestLimit`. Driven by the session with the time as an argument. Never acts.
"""

from __future__ import annotations

from collections import deque

from realtime.wire.openai_messages import RateLimit

__all__ = ["RequestLimit"]

WINDOW_SECONDS = 60.0
"""The limit is counted over this."""


class RequestLimit:
    """So many responses in any minute."""

    def __init__(self, most: int) -> None:
        """Begin with none asked for.

        Args:
            most: How many a minute.
        """
        self._most = most
        self._times: deque[float] = deque()

    def take(self, now: float) -> bool:
        """Ask for one more. Returns whether it is allowed; if not, nothing is counted."""
        self._forget(now)
        if len(self._times) >= self._most:
            return False
        self._times.append(now)
        return True

    def state(self, now: float) -> RateLimit:
        """What is left, as `rate_limits.updated` has it."""
        self._forget(now)
        reset = self._times[0] + WINDOW_SECONDS - now if self._times else 0.0
        return RateLimit(
            name="requests",
            limit=self._most,
            remaining=self._most - len(self._times),
            reset_seconds=round(max(0.0, reset), 3),
        )

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] <= now - WINDOW_SECONDS:
            self._times.popleft()
