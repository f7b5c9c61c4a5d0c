"""A clock that stands still until a test moves it.

Owns: `ManualClock`, a `realtime.pipelines.clock.Clock`. Driven by tests. It never asks the system for the time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Timer

__all__ = ["ManualClock"]


class ManualClock:
    """Time by hand, for tests of anything that takes a clock.

    ::

        clock = ManualClock()
        task = asyncio.create_task(waits_ten_seconds(clock))
        await clock.run(10.0)          # moves through every wake-up on the way, and lets each task go on

    Attributes:
        settle_rounds: How many turns of the event loop `run` and `settle` give woken tasks to go on.
    """

    def __init__(self, now: float = 0.0, *, wall: float = 1_700_000_000.0, settle_rounds: int = 50) -> None:
        """Start.

        Args:
            now: Monotonic seconds to begin with.
            wall: Time of day at that moment, in seconds since the epoch.
            settle_rounds: How many turns of the event loop woken tasks get.
        """
        self._now = float(now)
        self._wall_offset = float(wall) - self._now
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = count()
        self.settle_rounds = settle_rounds

    def now(self) -> float:
        """Monotonic seconds."""
        return self._now

    def wall(self) -> float:
        """Time of day, in seconds since the epoch."""
        return self._wall_offset + self._now

    @property
    def waiting(self) -> int:
        """How many sleepers and calls wait for a time to come."""
        return sum(not timer.is_over for _, _, timer in self._timers)

    @property
    def next_wake(self) -> float | None:
        """When the next of them is due, or None."""
        while self._timers and self._timers[0][2].is_over:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the running loop once `now()` has reached `when`; at the next turn if it has."""
        timer = _ManualTimer(asyncio.get_running_loop(), callback)
        if when <= self._now:
            timer.fire()
        else:
            heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`; a time that is past gives the loop one turn."""
        if when <= self._now:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        timer = self.call_at(when, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Move the time at once and wake whoever is due; they go on when the event loop runs.

        Args:
            seconds: How far, at least 0.
        """
        if not seconds >= 0:
            raise ArgumentError("seconds", seconds, "at least 0")
        self._move_to(self._now + seconds)

    async def run(self, seconds: float) -> None:
        """Move the time, stopping at every wake-up on the way and letting the woken go on there.

        A task that sleeps again within the span is woken again at its time.

        Args:
            seconds: How far, at least 0.
        """
        if not seconds >= 0:
            raise ArgumentError("seconds", seconds, "at least 0")
        end = self._now + seconds
        await self.settle()
        while (wake := self.next_wake) is not None and wake <= end:
            self._move_to(wake)
            await self.settle()
        self._move_to(end)
        await self.settle()

    async def settle(self) -> None:
        """Let every task that can go on do so, without moving the time."""
        for _ in range(self.settle_rounds):
            await asyncio.sleep(0)

    def _move_to(self, now: float) -> None:
        self._now = max(self._now, now)
        while self._timers and self._timers[0][0] <= self._now:
            heapq.heappop(self._timers)[2].fire()


class _ManualTimer:
    """One call to come, on the loop that asked for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop = loop
        self._callback: Callable[[], object] | None = callback
        self._handle: asyncio.Handle | None = None

    @property
    def is_over(self) -> bool:
        return self._callback is None

    def fire(self) -> None:
        """Let the loop make the call at its next turn."""
        callback, self._callback = self._callback, None
        if callback is not None:
            self._handle = self._loop.call_soon(callback)

    def cancel(self) -> None:
        """Forget it."""
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()
