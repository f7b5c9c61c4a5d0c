"""A clock that a test moves."""

import asyncio

import pytest

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Deadline
from realtime.testing import ManualClock


async def test_time_stands_still_until_it_is_moved():
    clock = ManualClock(5.0, wall=1000.0)
    await asyncio.sleep(0)
    assert (clock.now(), clock.wall()) == (5.0, 1000.0)
    clock.advance(2.5)
    assert (clock.now(), clock.wall()) == (7.5, 1002.5)


async def test_sleepers_wake_in_the_order_of_their_times_and_see_their_own_time():
    clock = ManualClock()
    woken = []

    async def sleeper(when):
        await clock.sleep_until(when)
        woken.append((when, clock.now()))

    tasks = [asyncio.create_task(sleeper(when)) for when in (3.0, 1.0, 2.0, 9.0)]
    await clock.run(5.0)
    assert woken == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert (clock.now(), clock.waiting, clock.next_wake) == (5.0, 1, 9.0)
    tasks[3].cancel()
    await asyncio.wait(tasks)
    assert clock.waiting == 0
    assert clock.next_wake is None


async def test_a_task_that_sleeps_again_is_woken_within_the_same_run():
    clock = ManualClock()
    ticks = []

    async def ticker():
        for number in range(1, 6):
            await clock.sleep_until(number)
            ticks.append(clock.now())

    task = asyncio.create_task(ticker())
    await clock.run(5.0)
    assert ticks == [1.0, 2.0, 3.0, 4.0, 5.0]
    await task


async def test_a_time_that_is_past_gives_the_loop_one_turn():
    clock = ManualClock(5.0)
    turns = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    await clock.sleep_until(4.0)
    assert turns == [1]


async def test_calls_come_at_their_time_unless_they_are_cancelled():
    clock = ManualClock()
    called = []
    clock.call_at(1.0, lambda: called.append("one"))
    clock.call_at(1.0, lambda: called.append("cancelled")).cancel()
    late = clock.call_at(1.0, lambda: called.append("cancelled when due"))
    clock.call_at(0.0, lambda: called.append("past"))
    clock.advance(1.0)
    late.cancel()
    late.cancel()
    await clock.settle()
    assert called == ["past", "one"]


async def test_deadlines_run_on_it():
    clock = ManualClock()

    async def patient():
        async with Deadline(clock, 10.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(patient())
    await clock.run(9.9)
    assert not task.done()
    await clock.run(0.1)
    with pytest.raises(TimeoutError):
        await task


@pytest.mark.parametrize("seconds", [-1, float("nan")])
async def test_time_does_not_run_backwards(seconds):
    clock = ManualClock()
    with pytest.raises(ArgumentError, match="seconds"):
        clock.advance(seconds)
    with pytest.raises(ArgumentError, match="seconds"):
        await clock.run(seconds)
