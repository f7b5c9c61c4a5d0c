"""Threads for work that must not run on the event loop.

Owns: `WorkerPool`, and the two pools of a process: `encode_pool` (conversion, scaling, JPEG) and `tool_pool`
(applications' synchronous tools). They are apart so that slow tools never hold back pictures; neither is asyncio's
default executor, which belongs to the application.

Driven by `pipelines/video.py` and `pipelines/tools.py`. A session joins a pool when it starts and leaves it when it
ends; with the last one the pool's threads end. Threads are daemons: a tool that never returns cannot keep the process
alive, and cannot be killed either, so its thread is given up with its session. It never takes a lock on the loop.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from realtime.errors import BusyError

__all__ = ["WorkerPool", "WorkerStatistics", "encode_pool", "encode_threads", "tool_pool"]

P = ParamSpec("P")
T = TypeVar("T")

_LEAVE_SECONDS = 0.5
"""How long the last session to leave waits for idle threads to end. Busy ones end with their work."""
_EXIT_SECONDS = 2.0
"""How long the end of the process waits for threads at work; a tool that never returns is given up after it."""
_FINITE_EXIT_SECONDS = 60.0
"""The same for work that ends by itself, on a machine however slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatistics:
    """What a pool is doing."""

    threads: int
    """Threads that exist."""
    busy: int
    """Of them, at work."""
    waiting: int
    """Jobs that no thread has taken up."""
    members: int
    """Sessions that have joined."""


class _Job:
    """One call: run by a thread, answered on the loop that asked."""

    __slots__ = ("_call", "_context", "_loop", "answer")

    def __init__(self, call: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
        self._call = call
        self._context = contextvars.copy_context()
        self._loop = answer.get_loop()
        self.answer = answer

    def run(self) -> tuple[Any, BaseException | None]:
        if self.answer.cancelled():
            return None, None
        try:
            return self._context.run(self._call), None
        except BaseException as error:  # SystemExit too: it is the job's, not the thread's
            return None, error

    def post(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(result)
        elif isinstance(error, (StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError)):
            # A future refuses the first, and the loop would take the others for its own.
            wrapped = RuntimeError(f"{type(error).__name__} left the worker's function")
            wrapped.__cause__ = error
            self.answer.set_exception(wrapped)
        else:
            self.answer.set_exception(error)


def _let_work_end() -> None:
    """At the end of the process, wait for threads at work, each as long as its pool says.

    The interpreter ends a daemon thread where it next takes the lock; from under native code (a codec, a voice) that
    aborts the whole process. Idle threads wait in Python and may be ended.
    """
    began = time.monotonic()
    while (waits := list(_at_work.values())) and time.monotonic() < began + max(waits):
        time.sleep(0.005)


_at_work: dict[threading.Thread, float] = {}
"""Threads of all pools that are at work, and for how long the end of the process waits for each. Safe without a lock."""
atexit.register(_let_work_end)


class _Crew:
    """The threads of one generation of a pool, and their queue. Sets and the queue are safe to use without a lock."""

    def __init__(self, exit_seconds: float) -> None:
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._exit_seconds = exit_seconds
        self.threads: set[threading.Thread] = set()
        self.busy: set[threading.Thread] = set()

    def work(self) -> None:
        me = threading.current_thread()
        try:
            while (job := self.jobs.get()) is not None:
                self.busy.add(me)
                _at_work[me] = self._exit_seconds
                result, error = job.run()
                self.busy.discard(me)  # before anybody can know that it is done
                _at_work.pop(me, None)
                job.post(result, error)
                del job, result, error  # an idle thread holds nothing of its last job
        finally:
            self.threads.discard(me)


class WorkerPool:
    """A bounded set of daemon threads, started when there is work, ended when no session is left."""

    def __init__(
        self,
        name: str,
        *,
        max_threads: int,
        max_waiting: int,
        short_jobs: bool = False,
        finite_jobs: bool = False,
    ) -> None:
        """Make a pool without threads.

        Args:
            name: What its threads are called.
            max_threads: The most threads it starts.
            max_waiting: The most jobs that may wait for a thread.
            short_jobs: All of them end soon, so that the last member to leave waits for those at work too.
            finite_jobs: All of them end by themselves, soon or not, so that the end of the process waits for them.
        """
        self._exit_seconds = _FINITE_EXIT_SECONDS if short_jobs or finite_jobs else _EXIT_SECONDS
        self._short_jobs = short_jobs
        self._name = name
        self._max_threads = max_threads
        self._max_waiting = max_waiting
        self._crew = _Crew(self._exit_seconds)
        self._members: set[object] = set()

    def statistics(self) -> WorkerStatistics:
        """What the pool is doing now."""
        crew = self._crew
        return WorkerStatistics(
            threads=len(crew.threads),
            busy=len(crew.busy),
            waiting=crew.jobs.qsize(),
            members=len(self._members),
        )

    def join(self) -> object:
        """Become a member; the pool's threads live while there is one. Returns what `leave` takes."""
        member = object()
        self._members.add(member)
        return member

    async def leave(self, member: object) -> None:
        """Stop being a member. With the last one the threads end.

        Idle ones have ended when this returns. Those at work end after it, and are waited for, half a second at most,
        where jobs are short.

        Leaving twice does nothing.
        """
        leaving = self.forget(member)
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                while any(thread.is_alive() for thread in leaving):  # noqa: ASYNC110  (nothing tells a thread's very end)
                    await asyncio.sleep(0)
        except TimeoutError:
            return

    def forget(self, member: object) -> list[threading.Thread]:
        """As `leave`, without waiting. Returns the threads that are about to end."""
        if member not in self._members:
            return []
        self._members.discard(member)
        if self._members:
            return []
        crew, self._crew = self._crew, _Crew(self._exit_seconds)
        leaving = list(crew.threads if self._short_jobs else crew.threads - crew.busy)
        for _thread in list(crew.threads):
            crew.jobs.put(None)
        return leaving

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on a thread, in a copy of the caller's context variables, and return what it returns.

        Cancelled, it returns at once: a call that has not begun never will, one that has is left to end alone.

        Raises:
            BusyError: As many jobs as may wait are waiting.
            Exception: Whatever the function raises; what would end a thread or a loop as a RuntimeError.
        """
        crew = self._crew
        waiting = crew.jobs.qsize()
        if waiting >= self._max_waiting:
            raise BusyError(f"{waiting} jobs wait for a thread of {self._name}")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        crew.jobs.put(_Job(lambda: function(*args, **kwargs), answer))
        if len(crew.threads) < self._max_threads and len(crew.threads) - len(crew.busy) <= waiting:
            thread = threading.Thread(target=crew.work, name=f"{self._name}-{len(crew.threads)}", daemon=True)
            crew.threads.add(thread)
            thread.start()
        return await answer


def encode_threads(processors: int) -> int:
    """How many threads may encode on a machine: one processor is the event loop's.

    Each picture takes about 15 ms of a thread, so that one thread has time for some sixty pictures a second.
    """
    return max(1, min(4, processors - 1))


encode_pool = WorkerPool(
    "realtime-encode", max_threads=encode_threads(os.cpu_count() or 1), max_waiting=256, short_jobs=True
)
"""Decoding, scaling and JPEG, for all sessions of this process, first come, first served. At most one frame per source is in
it, and what is to become of a frame is one job: where many fall due at once, the first is ready at once."""

tool_pool = WorkerPool("realtime-tool", max_threads=32, max_waiting=256)
"""Applications' synchronous tools, for all sessions of this process."""
