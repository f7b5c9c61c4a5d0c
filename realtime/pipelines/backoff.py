"""How long to wait before the next attempt to connect (behaviour.md L1).

Owns: the count of attempts and the waits between them. Driven by `pipelines/link.py`. It never connects.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from realtime.core.settings import ReconnectPolicy
from realtime.pipelines.clock import Clock

__all__ = ["Backoff"]

_LASTING_SECONDS = 10.0
"""A connection that lived for so long was a good one: attempts are counted anew after it."""


class Backoff:
    """Waits that double, spread by jitter, up to the policy's bounds."""

    def __init__(self, policy: ReconnectPolicy, clock: Clock, *, spread: Callable[[], float] = random.random) -> None:
        """Start with no attempt.

        Args:
            policy: The bounds.
            clock: What waits are measured by.
            spread: Gives numbers from 0 to 1 for the jitter.
        """
        self._policy = policy
        self._clock = clock
        self._spread = spread
        self._attempts = 0

    def lost(self, opened_at: float) -> None:
        """A connection that had been open since then is gone."""
        if self._clock.now() - opened_at >= _LASTING_SECONDS:
            self._attempts = 0

    def next_delay(self) -> float | None:
        """Seconds to wait before the next attempt, None if there is none. The first is made at once."""
        limit = self._policy.max_attempts
        if limit is not None and self._attempts >= limit:
            return None
        self._attempts += 1
        if self._attempts == 1:
            return 0.0
        doublings = min(self._attempts - 2, 30)  # more would overflow nothing but patience
        delay = min(self._policy.max_delay_seconds, self._policy.first_delay_seconds * 2.0**doublings)
        return delay * (1 + self._policy.jitter * (2 * self._spread() - 1))

    async def wait(self) -> bool:
        """Wait for the next attempt.

        Returns:
            False, at once, if the policy allows no more.
        """
        delay = self.next_delay()
        if delay is None:
            return False
        await self._clock.sleep_until(self._clock.now() + delay)
        return True
