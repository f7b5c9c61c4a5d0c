"""`realtime.pipelines.tools`: one answer per call, whatever the tool does (T2, T3, T5; B03, B04, B08, B72)."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

import pytest
from PIL import Image

from realtime.core.commands import CancelTool, RunTool
from realtime.pipelines.tool import CallContext, Tool, build_tools
from realtime.pipelines.tools import ToolRunner
from realtime.pipelines.worker import WorkerPool
from realtime.testing import ManualClock


class Bench:
    """A tool runner and what it reports."""

    def __init__(self, *tools: Any, max_threads: int = 4, max_waiting: int = 4) -> None:
        self.clock = ManualClock()
        self.pool = WorkerPool("test-tools", max_threads=max_threads, max_waiting=max_waiting)
        self.member = self.pool.join()
        self.answers: dict[str, str] = {}
        self.errors: dict[str, BaseException | None] = {}
        self.failed: set[str] = set()
        self.images: dict[str, Any] = {}
        self.answered: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.tasks: set[asyncio.Task[None]] = set()
        self.runner = ToolRunner(
            report=self.report,
            make_context=lambda command: CallContext(call_id=command.call_id, agent_id=command.agent_id),
            pool=self.pool,
            clock=self.clock,
            spawn=self.spawn,
        )
        self.runner.use("agent", build_tools(tools))

    def report(self, call_id: str, output: str, *, is_error: bool, images: Any, error: BaseException | None) -> None:
        assert call_id not in self.answers, "answered twice"
        self.answers[call_id] = output
        self.errors[call_id] = error
        self.images[call_id] = images
        self.answered[call_id].set()
        if is_error:
            self.failed.add(call_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def call(self, call_id: str, name: str, arguments: str = "", *, timeout: float = 30, wait_for: Any = ()) -> None:
        self.runner.execute(
            RunTool(
                command_id=call_id,
                call_id=call_id,
                name=name,
                arguments=arguments,
                agent_id="agent",
                timeout_seconds=timeout,
                wait_for=tuple(wait_for),
            )
        )

    def cancel(self, call_id: str) -> None:
        self.runner.execute(CancelTool(command_id="x", call_id=call_id))

    async def settle(self) -> None:
        while self.tasks:
            await asyncio.wait(self.tasks)


@pytest.fixture
async def make():
    made: list[Bench] = []

    def build(*tools: Any, **options: Any) -> Bench:
        made.append(Bench(*tools, **options))
        return made[-1]

    yield build
    for bench in made:
        bench.runner.cancel_all()
        await bench.settle()
        await bench.pool.leave(bench.member)
        assert bench.clock.waiting == 0


async def test_async_tools_run_on_the_loop_and_others_on_threads(make):
    here = threading.get_ident()

    async def on_loop() -> bool:
        return threading.get_ident() == here

    def on_thread() -> bool:
        return threading.get_ident() != here

    bench = make(on_loop, on_thread)
    bench.call("a", "on_loop")
    bench.call("b", "on_thread")
    await bench.settle()
    assert bench.answers == {"a": "true", "b": "true"}
    assert not bench.failed


async def test_a_slow_synchronous_tool_does_not_hold_the_loop(make):
    """B72."""
    released = threading.Event()
    bench = make(Tool(released.wait, name="slow"), Tool(lambda: "quick", name="quick"))
    bench.call("slow", "slow", '{"timeout": null}')
    bench.call("quick", "quick")
    await bench.answered["quick"].wait()
    assert "slow" not in bench.answers
    released.set()
    await bench.settle()
    assert bench.answers["slow"] == "true"


async def test_calls_run_side_by_side(make):
    both = asyncio.Barrier(2)

    async def meet() -> None:
        await both.wait()

    bench = make(meet)
    bench.call("a", "meet")
    bench.call("b", "meet")
    await bench.settle()
    assert set(bench.answers) == {"a", "b"}


async def test_a_sequential_call_waits_for_those_before_it(make):
    """T2."""
    order: list[str] = []
    gate = asyncio.Event()

    async def first() -> None:
        await gate.wait()
        order.append("first")

    async def second() -> None:
        order.append("second")

    bench = make(first, second)
    bench.call("a", "first")
    bench.call("b", "second", wait_for=["a", "long gone"])
    await bench.clock.settle()
    assert order == []
    gate.set()
    await bench.settle()
    assert order == ["first", "second"]


async def test_a_call_that_timed_out_does_not_hold_the_sequential_one_behind_it(make):
    async def first() -> None:
        await asyncio.Event().wait()

    async def second() -> str:
        return "done"

    bench = make(first, second)
    bench.call("a", "first", timeout=5)
    bench.call("b", "second", wait_for=["a"], timeout=1)
    await bench.clock.run(5.1)
    assert bench.answers["b"] == "done"


@pytest.mark.parametrize(
    "error", [ValueError("no such city"), KeyError("x"), asyncio.CancelledError(), SystemExit(3), TimeoutError("slow")]
)
async def test_a_tool_that_raises_gives_an_error_text_and_the_exception_to_the_application(make, error):
    """T3, B04."""

    async def fails() -> None:
        raise error

    bench = make(fails)
    bench.call("a", "fails")
    await bench.settle()
    assert bench.failed == {"a"}
    assert 0 < len(bench.answers["a"]) <= 500
    if not isinstance(error, asyncio.CancelledError):
        assert bench.errors["a"] is error


async def test_a_thread_s_exit_is_an_error_of_the_call(make):
    bench = make(Tool(lambda: sys.exit(2), name="leave"))
    bench.call("a", "leave")
    await bench.settle()
    assert bench.failed == {"a"}


async def test_bad_arguments_are_answered_and_the_tool_is_not_run(make):
    """B08."""
    ran: list[str] = []

    def weather(city: str) -> None:
        ran.append(city)

    bench = make(weather)
    for number, arguments in enumerate(['{"city": "San Fra', "[1]", "{}", '{"city": 1}']):
        bench.call(str(number), "weather", arguments)
    await bench.settle()
    assert len(bench.answers) == 4
    assert bench.failed == set(bench.answers)
    assert ran == []


async def test_an_unknown_tool_is_answered(make):
    bench = make()
    bench.call("a", "nothing")
    await bench.settle()
    assert bench.failed == {"a"}
    assert "nothing" in bench.answers["a"]


async def test_a_timeout_answers_at_once_and_a_late_result_is_ignored(make):
    """Also when the tool will not be cancelled."""
    gate = asyncio.Event()

    async def stubborn() -> str:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    bench = make(stubborn)
    bench.call("a", "stubborn", timeout=5)
    await bench.clock.run(4.9)
    assert bench.answers == {}
    await bench.clock.run(0.2)
    assert bench.failed == {"a"}
    assert isinstance(bench.errors["a"], TimeoutError)
    assert "5 seconds" in bench.answers["a"]
    gate.set()
    await bench.settle()
    assert "5 seconds" in bench.answers["a"]


async def test_a_synchronous_tool_that_times_out_is_answered_and_left_alone(make):
    gate = threading.Event()
    bench = make(Tool(gate.wait, name="stuck"))
    bench.call("a", "stuck", timeout=5)
    await bench.clock.run(5.1)
    assert bench.failed == {"a"}
    gate.set()


async def test_cancelling_gives_no_answer(make):
    async def waits() -> None:
        await asyncio.Event().wait()

    bench = make(waits)
    bench.call("a", "waits")
    await bench.clock.settle()
    bench.cancel("a")
    bench.cancel("a")
    bench.cancel("unknown")
    await bench.settle()
    assert bench.answers == {}
    assert bench.runner.running == 0


async def test_a_cancelled_call_lets_the_one_behind_it_run(make):
    async def waits() -> None:
        await asyncio.Event().wait()

    async def second() -> str:
        return "done"

    bench = make(waits, second)
    bench.call("a", "waits")
    bench.call("b", "second", wait_for=["a"])
    await bench.clock.settle()
    bench.cancel("a")
    await bench.settle()
    assert bench.answers == {"b": "done"}


async def test_more_synchronous_tools_than_may_wait_are_answered(make):
    gate = threading.Event()
    bench = make(Tool(gate.wait, name="wait"), max_threads=1, max_waiting=1)
    for number in range(4):
        bench.call(str(number), "wait", '{"timeout": null}')
        await bench.clock.settle()
    assert len(bench.failed) >= 1
    gate.set()
    await bench.settle()
    assert len(bench.answers) == 4


async def test_a_function_that_gives_an_awaitable_is_awaited(make):
    async def inner() -> str:
        return "awaited"

    def outer() -> Coroutine[Any, Any, str]:
        return inner()

    bench = make(Tool(outer, name="f"))
    bench.call("a", "f")
    await bench.settle()
    assert bench.answers == {"a": "awaited"}


async def test_pictures_come_back(make):
    """T5."""
    bench = make(Tool(lambda: ("a red square", Image.new("RGB", (8, 8), "red")), name="draw"))
    bench.call("a", "draw")
    await bench.settle()
    assert bench.answers == {"a": "a red square"}
    assert [image.mime_type for image in bench.images["a"]] == ["image/jpeg"]


async def test_a_large_result_is_written_off_the_loop(make):
    """B72: JSON of a long list is CPU work too."""
    threads: list[str] = []

    class Item:
        def __repr__(self) -> str:
            threads.append(threading.current_thread().name)
            return "item"

    async def many() -> list[Item]:
        return [Item()]

    bench = make(many)
    bench.call("a", "many")
    await bench.settle()
    assert bench.answers == {"a": '["item"]'}
    assert all(name.startswith("test-tools") for name in threads)


async def test_the_context_says_which_call_it_is(make):
    async def who(context: CallContext) -> str:
        return f"{context.call_id} {context.agent_id}"

    bench = make(who)
    bench.call("a", "who")
    await bench.settle()
    assert bench.answers == {"a": "a agent"}


async def test_a_call_that_protects_itself_runs_to_its_end(make):
    """L4, T5: a tool that closes the session is not cancelled by that."""
    ended: list[bool] = []
    found: list[bool] = []

    async def closes() -> None:
        found.append(bench.runner.protect_current())
        bench.runner.cancel_all()
        await asyncio.sleep(0)
        ended.append(True)

    bench = make(closes)
    assert not bench.runner.protect_current()
    bench.call("a", "closes")
    await bench.settle()
    assert (found, ended, bench.answers) == ([True], [True], {})


async def test_a_thread_that_asks_is_known_as_inside_its_call(make):
    def asks() -> bool:
        return bench.runner.protect_current()

    bench = make(asks)
    bench.call("a", "asks")
    await bench.settle()
    assert bench.answers == {"a": "true"}


async def test_cancellation_of_the_session_s_tasks_passes(make):
    """L7: it is not taken for the tool's own."""

    async def waits() -> None:
        await asyncio.Event().wait()

    bench = make(waits)
    bench.call("a", "waits")
    await bench.clock.settle()
    [task] = bench.tasks
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.answers == {}


async def test_side_effects_run_once_under_any_interleaving(make):
    """B03: no call runs twice, every call has one answer."""
    ran: list[int] = []

    async def work(number: int) -> int:
        await asyncio.sleep(0)
        ran.append(number)
        return number

    bench = make(work)
    for number in range(100):
        bench.call(str(number), "work", f'{{"number": {number}}}', wait_for=[str(number - 1)] if number % 3 else ())
    await bench.settle()
    assert sorted(ran) == list(range(100))
    assert {int(answer) for answer in bench.answers.values()} == set(range(100))
