"""Running the tools that the model calls.

Owns: the calls under way. Driven by the commands `RunTool` and `CancelTool`; the outcome goes to the machine, exactly
once per call: the value, or an error text (behaviour.md T2, T3). Async tools run on the loop, synchronous ones on
threads of their own pool. It never decides which calls may run, and never lets a tool's fault reach the session.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol, cast

from realtime.chat.messages import ImageContent
from realtime.core.commands import CancelTool, RunTool
from realtime.errors import BusyError, LinkLost, UserError
from realtime.pipelines.clock import Clock, Timer
from realtime.pipelines.pictures import PictureFetcher, has_addresses
from realtime.pipelines.tool import BadArgumentsError, CallContext, Tool
from realtime.pipelines.tool_result import ToolResult, describe_error, make_result
from realtime.pipelines.worker import WorkerPool

__all__ = ["ToolReport", "ToolRunner"]

_current_call: ContextVar[_Call | None] = ContextVar("realtime_current_call", default=None)
"""The call that this task, or a task or thread begun by it, is inside of."""


class ToolReport(Protocol):
    """How a call's output is told."""

    def __call__(
        self,
        call_id: str,
        output: str,
        *,
        is_error: bool,
        images: Sequence[ImageContent],
        error: BaseException | None,
    ) -> None:
        """Report; `error` is what was raised, for the application."""
        ...


class _Call:
    """One call under way."""

    __slots__ = ("answered", "command", "is_protected", "over", "owner", "task", "timer")

    def __init__(self, command: RunTool, owner: ToolRunner) -> None:
        self.command = command
        self.owner = owner
        self.over = asyncio.Event()
        self.answered = False
        self.is_protected = False
        self.task: asyncio.Task[None] | None = None
        self.timer: Timer | None = None


class ToolRunner:
    """Runs the calls of one session."""

    def __init__(
        self,
        *,
        report: ToolReport,
        make_context: Callable[[RunTool], CallContext],
        pool: WorkerPool,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        pictures: PictureFetcher | None = None,
    ) -> None:
        """Start without tools.

        Args:
            report: Takes each call's output.
            make_context: Makes what is injected into a call.
            pool: Where synchronous tools run.
            clock: For timeouts.
            spawn: Starts a task that belongs to the session.
            pictures: Fetches pictures that a tool gives by address.
        """
        self._report = report
        self._make_context = make_context
        self._pool = pool
        self._clock = clock
        self._spawn = spawn
        self._pictures = pictures or PictureFetcher()
        self._tools: dict[str, Mapping[str, Tool]] = {}
        self._calls: dict[str, _Call] = {}

    def use(self, agent_id: str, tools: Mapping[str, Tool]) -> None:
        """Say what an agent may call."""
        self._tools[agent_id] = tools

    @property
    def running(self) -> int:
        """Calls under way."""
        return len(self._calls)

    def execute(self, command: RunTool | CancelTool) -> None:
        """Carry a command out."""
        if isinstance(command, CancelTool):
            self._cancel(command.call_id)
            return
        call = _Call(command, self)
        self._calls[command.call_id] = call
        call.task = self._spawn(self._run(call))

    def protect_current(self) -> bool:
        """If this is called from inside a call, let that call run to its end though the session closes.

        Returns:
            Whether it was.
        """
        call = _current_call.get()
        if call is None or call.owner is not self or call.task is None or call.task.done():
            return False
        call.is_protected = True
        return True

    def cancel_all(self) -> None:
        """Stop whatever still runs, but for calls that are closing the session themselves."""
        for call_id in list(self._calls):
            self._cancel(call_id)

    def _cancel(self, call_id: str) -> None:
        call = self._calls.get(call_id)
        if call is None:
            return
        call.answered = True
        self._finish(call)
        if call.task is not None and not call.is_protected:
            call.task.cancel()

    # -- one call -------------------------------------------------------------------------------------------------------

    async def _run(self, call: _Call) -> None:
        _current_call.set(call)
        command = call.command
        try:
            for other in command.wait_for:
                earlier = self._calls.get(other)
                if earlier is not None:
                    await earlier.over.wait()
            when = self._clock.now() + command.timeout_seconds
            call.timer = self._clock.call_at(when, lambda: self._expire(call))
            result = await self._outcome(command)
        except asyncio.CancelledError:
            # Somebody's who cancels this task: it goes on. The tool's own: the model is told.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            result = ToolResult(output="The tool was cancelled.", is_error=True)
        finally:
            if call.timer is not None:
                call.timer.cancel()
            if self._calls.get(command.call_id) is call:
                del self._calls[command.call_id]
        self._answer(call, result)

    async def _outcome(self, command: RunTool) -> ToolResult:
        tool = self._tools.get(command.agent_id, {}).get(command.name)
        if tool is None:
            return ToolResult(output=f"There is no tool named {command.name!r}.", is_error=True)
        try:
            bound = tool.bind(command.arguments, self._make_context(command))
        except BadArgumentsError as error:
            return ToolResult(output=f"Not run: the arguments are not valid. {error}", is_error=True)
        try:
            value = await self._call(tool, bound)
            return await self._make_result(value)
        except BusyError as error:
            return ToolResult(output="Not run: too many tools are running.", is_error=True, error=error)
        except (Exception, SystemExit) as error:
            return ToolResult(output=describe_error(error), is_error=True, error=error)

    async def _call(self, tool: Tool, bound: Callable[[], Any]) -> Any:
        value = bound() if tool.is_async else await self._pool.run(bound)
        while inspect.isawaitable(value):
            value = await cast("Any", value)
        return value

    async def _make_result(self, value: Any) -> ToolResult:
        if value is None or isinstance(value, (str, bool, int, float)):
            return make_result(value)
        result = await self._pool.run(make_result, value)
        if not has_addresses(result.images):
            return result
        try:
            return replace(result, images=tuple(await self._pictures.embed(result.images)))
        except (UserError, LinkLost) as error:  # the tool has done its work: what it says stays
            held = tuple(image for image in result.images if image.is_embedded)
            return replace(result, images=held, output=f"{result.output} [{error}]", error=error)

    def _expire(self, call: _Call) -> None:
        if call.answered:
            return
        seconds = call.command.timeout_seconds
        error = TimeoutError(f"{call.command.name} gave no result within {seconds:g} s")
        text = f"The tool gave no result within {seconds:g} seconds."
        self._answer(call, ToolResult(output=text, is_error=True, error=error))
        if call.task is not None:
            call.task.cancel()

    def _answer(self, call: _Call, result: ToolResult) -> None:
        if not call.answered:
            call.answered = True
            self._report(
                call.command.call_id,
                result.output,
                is_error=result.is_error,
                images=result.images,
                error=result.error,
            )
        self._finish(call)

    def _finish(self, call: _Call) -> None:
        if call.timer is not None:
            call.timer.cancel()
        call.over.set()
