"""`realtime.pipelines.summary`: in the background, with a deadline, never raising (W4, B15)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core.commands import RequestSummary
from realtime.pipelines.summary import SummaryRunner
from realtime.testing import ManualClock

MESSAGES = (ChatMessage(ChatRole.USER, "hello"),)


class Summarizer:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: Any = None

    async def summarize(self, messages: Any) -> Any:
        self.seen = messages
        if isinstance(self.answer, BaseException):
            raise self.answer
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
        return self.answer


async def run(summarizer: Any, *, seconds: float = 0.0) -> tuple[list[Any], list[Any]]:
    reports: list[Any] = []
    errors: list[Any] = []
    clock, tasks = ManualClock(), []

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        tasks.append(asyncio.get_running_loop().create_task(work))
        return tasks[-1]

    runner = SummaryRunner(
        summarizer,
        report=lambda *given: reports.append(given),
        report_error=lambda *given: errors.append(given),
        clock=clock,
        spawn=spawn,
    )
    runner.execute(RequestSummary(command_id="c", basis_revision=7, messages=MESSAGES, timeout_seconds=10))
    await clock.run(seconds)
    await asyncio.gather(*tasks)
    assert clock.waiting == 0
    return reports, errors


async def test_the_digest_comes_back_with_its_basis():
    summarizer = Summarizer("They greeted.")
    assert await run(summarizer) == ([(7, "They greeted.")], [])
    assert summarizer.seen == MESSAGES


@pytest.mark.parametrize("answer", ["", "  \n"])
async def test_an_empty_digest_is_none(answer):
    assert await run(Summarizer(answer)) == ([(7, None)], [])


@pytest.mark.parametrize("answer", [ValueError("no"), None, 5])
async def test_a_failing_summarizer_is_reported_and_leaves_things_as_they_are(answer):
    reports, errors = await run(Summarizer(answer))
    assert reports == [(7, None)]
    assert [where for _, where in errors] == ["summary"]


async def test_a_late_digest_is_given_up():
    reports, errors = await run(Summarizer(asyncio.Event()), seconds=10.5)
    assert reports == [(7, None)]
    assert isinstance(errors[0][0], TimeoutError)


async def test_without_a_summarizer_there_is_none():
    assert await run(None) == ([(7, None)], [])
