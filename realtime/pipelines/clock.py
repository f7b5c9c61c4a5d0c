"""Time for the shells: the one place of the package that asks the system what time it is.

Owns: `Clock`, what every shell is given; `SystemClock`, the real one. Driven by whoever holds it. It never decides
anything: the core gets `now` as an argument, and wall time is for records only (`created_at`). Tests use
`realtime.testing.ManualClock`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from types import TracebackType
from typing import Protocol, Self

__all__ = ["Clock", "Deadline", "SystemClock", "Timer"]


_OUR_TIME = asyncio.BaseEventLoop.time
"""Of asyncio's own loops: the monotonic clock. Another's may have another zero."""


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

    now = staticmethod(time.monotonic)
    """Monotonic seconds, as of the event loop's clock. Hot path: several times for every 20 ms of a call."""

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()  # noqa: TID251  (the one place that may)

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the running loop once `now()` has reached `when`, in a context of its own.

        A loop keeps a cancelled call, and with it the context that it was asked for in, until its time has come.
        """
        # hot path: for every 20 ms of a reply
        loop = asyncio.get_running_loop()
        if type(loop).time is _OUR_TIME:
            return loop.call_at(when, callback, context=Context())
        return loop.call_later(max(0.0, when - time.monotonic()), callback, context=Context())

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`."""
        await asyncio.sleep(max(0.0, when - time.monotonic()))


class Deadline:
    """``async with Deadline(clock, when):`` cancels its body when `when` is reached, and raises `TimeoutError` then.

    As `asyncio.timeout`, but by a `Clock`. A cancellation from outside passes through.
    """

    def __init__(self, clock: Clock, when: float) -> None:
        """Say when, on the clock."""
        self._clock = clock
        self._when = when
        self._timer: Timer | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False

    async def __aenter__(self) -> Self:
        """Start the timer."""
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._timer = self._clock.call_at(self._when, self._expire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer; turn the cancellation that it caused into `TimeoutError`."""
        assert self._timer is not None
        assert self._task is not None
        self._timer.cancel()
        task, self._task = self._task, None
        if self._expired and task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        if self._task is not None:
            self._expired = True
            self._task.cancel()
