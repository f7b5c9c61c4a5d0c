"""Time for the shells: the one place of the package that asks the system what time it is.

Owns: `Clock`, what every shell is given; `SystemClock`, the real one. Driven by whoever holds it. It never decides
anything: the core gets `now` as an argument, and wall time is for records only (`created_at`). Tests use
`realtime.testing.ManualClock`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["Clock", "SystemClock", "Timer"]


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Forget it. Cancelling one that has run, or twice, does nothing."""
        ...


class Clock(Protocol):
    """What time it is, and how to wait for a time.

    `now()` is monotonic and is the only time that decisions are made by. Its zero means nothing.
    """

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, for records."""
        ...

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the running loop once `now()` has reached `when`; at the next turn if it has."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`; a time that is past gives the loop one turn."""
        ...


class SystemClock:
    """The system's clocks. `now()` is the event loop's time, so that timers and decisions agree."""

    def now(self) -> float:
        """Monotonic seconds, as of the event loop's clock."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()  # noqa: TID251  (the one place that may)

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the running loop once `now()` has reached `when`."""
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, when - time.monotonic()), callback)

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`."""
        # asyncio's timers may fire up to one clock resolution early: whoever waited for `when` must find it reached.
        await asyncio.sleep(0)
        while (left := when - time.monotonic()) > 0:
            await asyncio.sleep(left)
