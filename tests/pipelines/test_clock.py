"""`realtime.pipelines.clock`: one place asks the system for the time."""

from __future__ import annotations

import asyncio

import pytest

from realtime.pipelines.clock import Deadline, SystemClock
from realtime.testing import ManualClock


async def test_system_clock_wakes_at_or_after_the_time():
    clock = SystemClock()
    begin = clock.now()
    await clock.sleep_until(begin + 0.01)
    assert clock.now() >= begin + 0.01 - 1e-6
    await clock.sleep_until(begin)  # past: returns


async def test_system_clock_calls_and_forgets():
    clock, called = SystemClock(), asyncio.Event()
    forgotten = clock.call_at(clock.now(), lambda: pytest.fail("it was cancelled"))
    forgotten.cancel()
    clock.call_at(clock.now() + 0.001, called.set)
    async with asyncio.timeout(5):
        await called.wait()


async def test_deadline_cancels_its_body_at_the_time():
    clock = ManualClock()

    async def wait() -> None:
        async with Deadline(clock, clock.now() + 10):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await clock.run(9.9)
    assert not task.done()
    await clock.run(0.2)
    with pytest.raises(TimeoutError):
        await task


async def test_deadline_that_is_met_leaves_no_timer():
    clock = ManualClock()
    async with Deadline(clock, clock.now() + 10):
        pass
    assert clock.waiting == 0


async def test_cancellation_from_outside_passes_a_deadline():
    """L7: it is not taken for the deadline's own."""
    clock = ManualClock()

    async def wait() -> None:
        async with Deadline(clock, clock.now() + 10):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.waiting == 0


class Ahead(asyncio.SelectorEventLoop):
    """A loop whose time is not the system's."""

    def time(self) -> float:
        """An hour later."""
        return super().time() + 3_600


@pytest.mark.parametrize(("make", "ahead"), [(asyncio.SelectorEventLoop, 0), (Ahead, 3_600)])
def test_a_call_comes_at_its_time_whatever_the_loop_calls_it(make, ahead):
    """One that was 3,600 s early or late would be on a loop with another zero."""

    async def ask() -> None:
        clock, called = SystemClock(), asyncio.Event()
        late = clock.call_at(clock.now() + 60, lambda: pytest.fail("it was not its time"))
        assert isinstance(late, asyncio.TimerHandle)
        assert abs(late.when() - (clock.now() + 60 + ahead)) < 30
        clock.call_at(clock.now() + 0.001, called.set)
        async with asyncio.timeout(30):
            await called.wait()
        late.cancel()

    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(ask())
