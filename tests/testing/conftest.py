"""A clock that jumps to whatever is waited for, and a pool of worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from realtime.pipelines.worker import WorkerPool


class JumpingClock:
    """Time passes only by waiting, and waiting takes no time."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.Handle:
        self.time = max(self.time, when)
        return asyncio.get_running_loop().call_soon(callback)

    async def sleep_until(self, when: float) -> None:
        self.time = max(self.time, when)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool("realtime-kit-test", max_threads=2, max_waiting=16)
    member = pool.join()
    yield pool
    await pool.leave(member)
