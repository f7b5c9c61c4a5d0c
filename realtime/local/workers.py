"""The server's worker pool: a few threads, fair turns, and bounds on what may wait.

Owns: `FairPool`. Driven by the parts on the event loop; the threads are a `WorkerPool`'s. Work of four kinds waits in
order of urgency; within a kind the sessions take turns, one piece of work each, so that one that asks for much delays
the others by one piece at most. Work that may turn out not to be needed never holds the last free thread. Decides on
the loop only, so it has no lock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, Self, TypeVar

from realtime.core.settings import check_count
from realtime.errors import BusyError, SessionClosed
from realtime.pipelines.worker import WorkerPool

__all__ = ["FairPool", "PoolStatistics", "Urgency"]

P = ParamSpec("P")
T = TypeVar("T")

Urgency = Literal["first", "now", "soon", "maybe"]
"""`first`: the last step of something that somebody waits for, such as the first sentence of a reply: where there is more
work than time, what was begun is brought to its end, and some get their reply rather than none. `now`: somebody waits for
it; `soon`: somebody will; `maybe`: it may turn out not to be needed."""

_ORDER: tuple[Urgency, ...] = ("first", "now", "soon", "maybe")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatistics:
    """What the pool is doing."""

    threads: int
    """Threads that it may use."""
    busy: int
    """Pieces of work under way."""
    waiting: int
    """Pieces of work that no thread has taken up."""
    done: int
    """Pieces of work finished since the beginning."""
    refused: int
    """Pieces of work refused since the beginning, because their session had too much waiting."""


class _Work:
    """One call that waits or runs."""

    __slots__ = ("answer", "call", "task", "urgency")

    def __init__(self, call: Callable[[], Any], urgency: Urgency, answer: asyncio.Future[Any]) -> None:
        self.call = call
        self.urgency: Urgency = urgency
        self.answer = answer
        self.task: asyncio.Task[None] | None = None


class FairPool:
    """Runs functions on a few threads, in fair turns.

    Use it as an async context manager; leaving it ends the threads.
    """

    def __init__(self, threads: int = 2, *, max_waiting: int = 16) -> None:
        """Make a pool without threads.

        Args:
            threads: How many functions run at once.
            max_waiting: How many pieces of work of one session may wait; more are refused.

        Raises:
            ArgumentError: One of them is no int of at least 1.
        """
        check_count("threads", threads, least=1)
        check_count("max_waiting", max_waiting, least=1)
        self._threads = threads
        self._max_waiting = max_waiting
        self._pool = WorkerPool("realtime-llm", max_threads=threads, max_waiting=threads, finite_jobs=True)
        self._member = self._pool.join()
        self._lines: dict[Urgency, OrderedDict[str, deque[_Work]]] = {kind: OrderedDict() for kind in _ORDER}
        self._running: set[_Work] = set()
        self._closed = False
        self._done = 0
        self._refused = 0

    async def __aenter__(self) -> Self:
        """Nothing is to be done."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """End the threads."""
        await self.aclose()

    def statistics(self) -> PoolStatistics:
        """What it is doing now."""
        waiting = sum(len(line) for lines in self._lines.values() for line in lines.values())
        return PoolStatistics(
            threads=self._threads, busy=len(self._running), waiting=waiting, done=self._done, refused=self._refused
        )

    @property
    def has_room(self) -> bool:
        """Whether a thread is free for work that may turn out not to be needed."""
        return not any(self._lines.values()) and len(self._running) < self._threads

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits: the time for work that is only nice to have."""
        return not self._running and not any(self._lines.values())

    async def run(
        self, owner: str, urgency: Urgency, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function on a thread when it is its owner's turn, and return what it returns.

        Cancelled, it returns at once: a call that has not begun never will, one that has is left to end alone.

        Raises:
            BusyError: As much of this owner's work as may wait is waiting.
            SessionClosed: The pool is closed.
            Exception: Whatever the function raises.
        """
        if self._closed:
            raise SessionClosed("the worker pool is closed")
        if sum(len(lines.get(owner, ())) for lines in self._lines.values()) >= self._max_waiting:
            self._refused += 1
            raise BusyError(f"{self._max_waiting} pieces of work of this session are waiting")
        work = _Work(lambda: function(*args, **kwargs), urgency, asyncio.get_running_loop().create_future())
        self._lines[work.urgency].setdefault(owner, deque()).append(work)
        self._dispatch()
        try:
            result: T = await work.answer
            return result
        except asyncio.CancelledError:
            self._forget(owner, work)
            raise

    def promote(self, owner: str) -> None:
        """What `owner` asked for on a guess is needed after all: put it in front."""
        line = self._lines["maybe"].pop(owner, None)
        if line:
            for work in line:
                work.urgency = "now"
            self._lines["now"].setdefault(owner, deque()).extend(line)
            self._dispatch()

    async def aclose(self) -> None:
        """Refuse further work, end what waits with `SessionClosed`, and leave what runs to end alone."""
        if self._closed:
            return
        self._closed = True
        for lines in self._lines.values():
            for line in lines.values():
                for work in line:
                    if not work.answer.done():
                        work.answer.set_exception(SessionClosed("the worker pool is closed"))
            lines.clear()
        for work in list(self._running):
            if work.task is not None:
                work.task.cancel()
        await self._pool.leave(self._member)

    def _dispatch(self) -> None:
        while len(self._running) < self._threads and (work := self._take()) is not None:
            self._running.add(work)
            work.task = asyncio.get_running_loop().create_task(self._do(work))

    def _take(self) -> _Work | None:
        for urgency in _ORDER:
            if urgency == "maybe" and self._threads > 1 and self._speculating >= self._threads - 1:
                return None
            lines = self._lines[urgency]
            while lines:
                owner, line = next(iter(lines.items()))
                work = line.popleft()
                if line:
                    lines.move_to_end(owner)  # the next turn is another session's
                else:
                    del lines[owner]
                if not work.answer.done():
                    return work
        return None

    @property
    def _speculating(self) -> int:
        return sum(work.urgency == "maybe" for work in self._running)

    async def _do(self, work: _Work) -> None:
        try:
            result = await self._pool.run(work.call)
        except asyncio.CancelledError:
            work.answer.cancel()
            raise
        except BaseException as error:
            if not work.answer.done():
                work.answer.set_exception(error)
        else:
            if not work.answer.done():
                work.answer.set_result(result)
        finally:
            self._running.discard(work)
            self._done += 1
            if not self._closed:
                self._dispatch()

    def _forget(self, owner: str, work: _Work) -> None:
        line = self._lines[work.urgency].get(owner)
        if line is not None and work in line:
            line.remove(work)
            if not line:
                del self._lines[work.urgency][owner]
