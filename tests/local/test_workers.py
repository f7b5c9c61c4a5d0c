"""The worker pool: fair turns, urgency, bounds."""

from __future__ import annotations

import asyncio
import threading

import pytest

from realtime.errors import ArgumentError, BusyError, SessionClosed
from realtime.local.workers import FairPool

from .kit import until


class Gate:
    """Work that waits on its thread until it is let go, and notes the order of what ran."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.order: list[str] = []

    def wait(self) -> None:
        self.open.wait(10)

    def note(self, name: str) -> str:
        self.order.append(name)
        return name


async def start(pool: FairPool, *works: tuple[str, str, str], gate: Gate) -> list[asyncio.Task[str]]:
    tasks = [
        asyncio.create_task(pool.run(owner, urgency, gate.note, name))  # type: ignore[arg-type]
        for owner, urgency, name in works
    ]
    await asyncio.sleep(0)
    return tasks


async def test_sessions_take_turns_whatever_one_of_them_asks_for() -> None:
    gate = Gate()
    async with FairPool(1) as pool:
        blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
        await asyncio.sleep(0)
        tasks = await start(pool, *(("a", "now", f"a{n}") for n in range(4)), ("b", "now", "b0"), gate=gate)
        gate.open.set()
        await asyncio.gather(blocker, *tasks)
    assert gate.order.index("b0") <= 1


async def test_urgent_work_goes_before_work_that_may_not_be_needed() -> None:
    gate = Gate()
    async with FairPool(1) as pool:
        blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
        await asyncio.sleep(0)
        works = (("a", "maybe", "guess"), ("b", "soon", "soon"), ("c", "now", "now"), ("d", "first", "first"))
        tasks = await start(pool, *works, gate=gate)
        gate.open.set()
        await asyncio.gather(blocker, *tasks)
    assert gate.order == ["first", "now", "soon", "guess"]


async def test_a_guess_that_is_needed_after_all_goes_to_the_front() -> None:
    gate = Gate()
    async with FairPool(1) as pool:
        blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
        await asyncio.sleep(0)
        tasks = await start(pool, ("b", "soon", "soon"), ("a", "maybe", "guess"), gate=gate)
        pool.promote("a")
        gate.open.set()
        await asyncio.gather(blocker, *tasks)
    assert gate.order == ["guess", "soon"]


async def test_guesses_never_hold_the_last_free_thread() -> None:
    first, second = threading.Event(), threading.Event()
    async with FairPool(2) as pool:
        guesses = [asyncio.create_task(pool.run(owner, "maybe", first.wait, 10)) for owner in "ab"]
        await until(lambda: pool.statistics().busy == 1)
        assert pool.statistics().waiting == 1
        urgent = asyncio.create_task(pool.run("c", "now", second.wait, 10))
        await until(lambda: pool.statistics().busy == 2)
        second.set()
        assert await urgent
        first.set()
        await asyncio.gather(*guesses)


async def test_more_than_may_wait_is_refused_and_counted() -> None:
    gate = Gate()
    async with FairPool(1, max_waiting=2) as pool:
        blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
        await asyncio.sleep(0)
        tasks = await start(pool, ("a", "now", "1"), ("a", "maybe", "2"), gate=gate)
        with pytest.raises(BusyError, match="2 pieces of work"):
            await pool.run("a", "now", gate.note, "3")
        other = await start(pool, ("b", "now", "b"), gate=gate)
        assert pool.statistics().refused == 1
        gate.open.set()
        await asyncio.gather(blocker, *tasks, *other)


async def test_cancelled_work_that_has_not_begun_never_runs() -> None:
    gate = Gate()
    async with FairPool(1) as pool:
        blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
        await asyncio.sleep(0)
        (waiting,) = await start(pool, ("a", "now", "never"), gate=gate)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert pool.statistics().waiting == 0
        gate.open.set()
        await blocker
    assert gate.order == []


async def test_cancelled_work_that_runs_keeps_its_thread_until_it_ends() -> None:
    gate = Gate()
    async with FairPool(1) as pool:
        running = asyncio.create_task(pool.run("a", "now", gate.wait))
        await until(lambda: pool.statistics().busy == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pool.statistics().busy == 1
        (after,) = await start(pool, ("b", "now", "after"), gate=gate)
        gate.open.set()
        assert await after == "after"


async def test_an_error_reaches_whoever_asked_and_the_pool_goes_on() -> None:
    def fail() -> None:
        raise ValueError("broken")

    async with FairPool(1) as pool:
        with pytest.raises(ValueError, match="broken"):
            await pool.run("a", "now", fail)
        assert await pool.run("a", "now", int, "7") == 7
        assert pool.idle
        assert pool.statistics().done == 2


async def test_a_closed_pool_refuses_work_and_ends_what_waits() -> None:
    gate = Gate()
    pool = FairPool(1)
    blocker = asyncio.create_task(pool.run("a", "now", gate.wait))
    await asyncio.sleep(0)
    (waiting,) = await start(pool, ("a", "now", "never"), gate=gate)
    await pool.aclose()
    with pytest.raises(SessionClosed):
        await waiting
    with pytest.raises(SessionClosed):
        await pool.run("a", "now", gate.note, "never")
    gate.open.set()
    with pytest.raises(asyncio.CancelledError):
        await blocker
    assert gate.order == []


@pytest.mark.parametrize("bad", [0, -1, True, 1.5])
def test_a_pool_without_threads_is_refused(bad: object) -> None:
    with pytest.raises(ArgumentError, match="threads"):
        FairPool(bad)  # type: ignore[arg-type]
