"""`realtime.pipelines.worker`: bounded threads apart from the loop, none left behind (L7, field case B72)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref

import pytest

from realtime.errors import BusyError
from realtime.pipelines.worker import WorkerPool, encode_threads


def threads_of(name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(name)]


class Gate:
    """A job that says when a thread has taken it up, and that ends when it is told to."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.entered = asyncio.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.loop.call_soon_threadsafe(self.entered.set)
        self.opened.wait()


async def test_work_runs_on_another_thread_and_its_result_comes_back():
    pool = WorkerPool("test-a", max_threads=2, max_waiting=4)
    member = pool.join()
    here = threading.get_ident()
    assert await pool.run(lambda x, *, y: (x + y, threading.get_ident() != here), 1, y=2) == (3, True)
    await pool.leave(member)


async def test_threads_end_with_the_last_member():
    pool = WorkerPool("test-b", max_threads=3, max_waiting=9)
    one, two = pool.join(), pool.join()
    await asyncio.gather(*(pool.run(threading.get_ident) for _ in range(5)))
    assert threads_of("test-b")
    await pool.leave(one)
    await pool.leave(one)  # a second time does nothing
    assert threads_of("test-b")
    await pool.leave(two)
    assert not threads_of("test-b")
    three = pool.join()  # and begins anew
    assert await pool.run(int, "7") == 7
    await pool.leave(three)
    assert not threads_of("test-b")


async def test_no_more_threads_than_allowed_and_no_more_waiting_than_allowed():
    pool = WorkerPool("test-c", max_threads=1, max_waiting=2)
    member, gate = pool.join(), Gate()
    running = asyncio.create_task(pool.run(gate))
    await gate.entered.wait()
    waiting = [asyncio.create_task(pool.run(int)) for _ in range(2)]
    await asyncio.sleep(0)
    assert pool.statistics().waiting == 2
    with pytest.raises(BusyError):
        await pool.run(int)
    assert pool.statistics().threads == 1
    gate.opened.set()
    await asyncio.gather(running, *waiting)
    await pool.leave(member)


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4), (64, 4)])
def test_encoding_leaves_a_processor_to_the_loop(processors, threads):
    assert encode_threads(processors) == threads


async def test_jobs_that_come_at_once_are_done_in_the_order_in_which_they_came():
    """Pictures of many calls that fall due at the same moment: none overtakes another."""
    pool = WorkerPool("test", max_threads=1, max_waiting=32)
    member = pool.join()
    done: list[int] = []
    await asyncio.gather(*(pool.run(done.append, number) for number in range(20)))
    assert done == list(range(20))
    await pool.leave(member)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), AssertionError()])
async def test_errors_come_back(error):
    pool = WorkerPool("test-d", max_threads=1, max_waiting=2)
    member = pool.join()

    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        await pool.run(fail)
    await pool.leave(member)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError])
async def test_what_would_end_a_thread_or_a_loop_is_an_ordinary_error(kind):
    pool = WorkerPool("test-e", max_threads=1, max_waiting=2)
    member = pool.join()

    def leave() -> None:
        raise kind

    with pytest.raises(RuntimeError, match=kind.__name__):
        await pool.run(leave)
    assert await pool.run(int) == 0  # the thread lives
    await pool.leave(member)


async def test_cancelled_before_it_began_never_runs():
    pool = WorkerPool("test-f", max_threads=1, max_waiting=4)
    member, gate, ran = pool.join(), Gate(), []
    first = asyncio.create_task(pool.run(gate))
    second = asyncio.create_task(pool.run(ran.append, 1))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.opened.set()
    await first
    await pool.leave(member)
    assert ran == []


async def test_busy_thread_is_given_up_and_does_not_hold_the_last_member():
    """L4: a tool that never returns cannot draw out the end."""
    pool = WorkerPool("test-g", max_threads=1, max_waiting=4)
    member, gate = pool.join(), Gate()
    running = asyncio.create_task(pool.run(gate))
    await gate.entered.wait()
    async with asyncio.timeout(5):
        await pool.leave(member)
    assert threads_of("test-g")
    gate.opened.set()
    await running


async def test_where_jobs_are_short_the_last_member_waits_for_them_too():
    pool = WorkerPool("test-j", max_threads=1, max_waiting=4, short_jobs=True)
    member, gate = pool.join(), Gate()
    running = asyncio.create_task(pool.run(gate))
    await gate.entered.wait()
    leaving = asyncio.create_task(pool.leave(member))
    await asyncio.sleep(0)
    assert not leaving.done()
    gate.opened.set()
    await leaving
    assert not threads_of("test-j")
    await running


async def test_idle_threads_hold_nothing_of_their_last_job():
    """R3: a frame that was encoded is free."""

    class Frame:
        pass

    pool = WorkerPool("test-h", max_threads=1, max_waiting=4)
    member, frame = pool.join(), Frame()
    ghost = weakref.ref(frame)
    await pool.run(id, frame)
    del frame
    await pool.run(int)
    gc.collect()
    assert ghost() is None
    await pool.leave(member)


async def test_context_variables_travel():
    pool = WorkerPool("test-i", max_threads=1, max_waiting=4)
    member = pool.join()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert await pool.run(variable.get) == "set"
    await pool.leave(member)


@pytest.mark.parametrize(
    ("seconds", "kind", "ends"),
    [(0.2, "", True), (600, "", False), (3, "finite_jobs=True", True), (3, "short_jobs=True", True)],
    ids=["quick", "endless", "finite", "short"],
)
def test_the_end_of_the_process_lets_work_end_and_waits_for_no_endless_one(seconds, kind, ends):
    """From under native code the interpreter could not take a thread without aborting the process."""
    program = f"""
import asyncio, time
from realtime.pipelines.worker import WorkerPool

def work():
    time.sleep({seconds})
    print("ended", flush=True)

async def main():
    pool = WorkerPool("realtime-test", max_threads=1, max_waiting=1, {kind})
    member = pool.join()
    working = asyncio.create_task(pool.run(work))
    while not pool.statistics().busy:
        await asyncio.sleep(0)
    working.cancel()
    await pool.leave(member)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("ended\n" if ends else "")
