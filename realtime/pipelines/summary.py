"""Summaries in the background (behaviour.md W4).

Owns: the one summary under way. Driven by the command `RequestSummary`; the digest, or None if there is none, goes to the
machine, which ignores a stale one. It never delays a reply, and never raises for what a summarizer does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from realtime.chat.window import Summarizer
from realtime.core.commands import RequestSummary
from realtime.pipelines.clock import Clock, Deadline

__all__ = ["SummaryRunner"]


class SummaryRunner:
    """Asks a session's summarizer, with a deadline."""

    def __init__(
        self,
        summarizer: Summarizer | None,
        *,
        report: Callable[[int, str | None], None],
        report_error: Callable[[BaseException, str], None],
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """Start idle.

        Args:
            summarizer: What makes the digest; None: nothing does.
            report: Takes the basis revision and the digest.
            report_error: Told of what the summarizer raised.
            clock: For the deadline.
            spawn: Starts a task that belongs to the session.
        """
        self._summarizer = summarizer
        self._report = report
        self._report_error = report_error
        self._clock = clock
        self._spawn = spawn

    def execute(self, command: RequestSummary) -> None:
        """Carry a command out."""
        self._spawn(self._run(command))

    async def _run(self, command: RequestSummary) -> None:
        self._report(command.basis_revision, await self._digest(command))

    async def _digest(self, command: RequestSummary) -> str | None:
        if self._summarizer is None:
            return None
        try:
            async with Deadline(self._clock, self._clock.now() + command.timeout_seconds):
                text = await self._summarizer.summarize(command.messages)
        except Exception as error:  # TimeoutError too
            self._report_error(error, "summary")
            return None
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users' objects answer anything)
            self._report_error(TypeError(f"summarize() returned {type(text).__name__}, not str"), "summary")
            return None
        return text if text.strip() else None
