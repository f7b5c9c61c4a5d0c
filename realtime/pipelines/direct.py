"""What a session does with tracks that it receives directly.

Owns: `Viewer`, which looks at one camera or screen for the sampler, and `JobRunner` and `track_jobs`, which run decoding on the
encoding threads. Driven by `tracks/sampled_decode.py`. It never decides which frame matters: it asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from realtime.core.sampling import Lull
from realtime.pipelines.driver import Driver
from realtime.pipelines.worker import WorkerPool, encode_pool

__all__ = ["JobRunner", "Viewer", "track_jobs"]


class JobRunner:
    """Runs jobs of one session's tracks on a pool's threads, one at a time for each track."""

    def __init__(self, pool: WorkerPool) -> None:
        """Say where."""
        self._pool = pool
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        """Run a job; `done` is called on the loop with its result or its error."""
        task = asyncio.get_running_loop().create_task(self._run(job, done), name="realtime decode")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Wait for nobody: what runs ends by itself, and tells nobody."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        try:
            result = await self._pool.run(job)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)


class _TrackJobs(JobRunner):
    """A member of the pool while there is work, so that its threads end with it when no session is left."""

    async def _run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        member = self._pool.join()
        try:
            await super()._run(job, done)
        finally:
            self._pool.forget(member)


track_jobs = _TrackJobs(encode_pool)
"""For applications that read a track themselves: the track outlives the session that received it first."""


class Viewer:
    """Looks at one source's pictures when the sampler says so (`realtime.tracks.sampled_decode.PictureSink`)."""

    def __init__(
        self,
        driver: Driver,
        source: str,
        *,
        now: Callable[[], float],
        develop: Callable[[Any], Any],
        receive: Callable[[Any, float], None],
        run: JobRunner,
    ) -> None:
        """Look for a session.

        Args:
            driver: Has the sampler.
            source: The track's name.
            now: The session's clock.
            develop: Makes of each decoded picture what `receive` takes, on the worker thread.
            receive: Takes each frame and when it came.
            run: Runs decoding.
        """
        self._machine = driver.machine
        self._source = source
        self.now = now
        self.develop = develop
        self.receive = receive
        self.run = run

    def is_due(self, pts_ms: int) -> bool:  # hot path: every frame
        """Whether the sampler would show a frame of this media time."""
        return self._machine.is_frame_due(self._source, pts_ms=pts_ms)

    def may_hold(self, pts_ms: int) -> bool:  # hot path: every frame
        """Whether the sampler would hold a frame of this media time, which is not due, for the end of the user's turn."""
        del pts_ms
        return self._machine.would_hold_frame(self._source, captured_at=self.now())

    def lull(self) -> Lull | None:
        """For how long the sampler would neither show nor hold a frame, as far as is known."""
        return self._machine.frame_lull(self._source)
