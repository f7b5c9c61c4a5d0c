"""Calls owed and answered (behaviour.md T2–T5).

Owns: the calls that are not answered yet, the order in which they may run, the limit per turn. Driven by
`SessionMachine`. Never runs a tool; running one is a command.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import ApproveTool, CancelTool, CreateItem, DeleteItem, RunTool
from realtime.core.effects import Effects
from realtime.core.events import ApprovalRequested, ToolCalled, ToolFinished
from realtime.core.history import History
from realtime.core.keeping import Keeping
from realtime.core.ledger import Ledger
from realtime.core.model_events import ToolCallDone
from realtime.core.places import Place
from realtime.core.settings import ToolSpec

__all__ = ["ToolCall", "ToolRounds"]

_MOST_AGENTS = 64
"""Agents whose tools are remembered, the last that took over first."""


class ToolCall:
    """One call that is not answered yet."""

    __slots__ = (
        "agent_id",
        "arguments",
        "call_id",
        "is_sequential",
        "name",
        "place",
        "response_id",
        "stand_in",
        "started_at",
    )

    def __init__(self, event: ToolCallDone, *, place: Place, agent_id: str, is_sequential: bool, now: float) -> None:
        self.call_id = event.call_id
        self.response_id = event.response_id
        self.name = event.name
        self.arguments = event.arguments
        self.place = place
        self.agent_id = agent_id
        self.is_sequential = is_sequential
        self.stand_in = ""
        """The provider's item that says that the call is not finished."""
        self.started_at = now


class ToolRounds:
    """The open calls of one session, oldest first."""

    def __init__(
        self,
        *,
        agent_id: str,
        tools: Iterable[ToolSpec],
        max_calls_per_turn: int,
        timeout_seconds: float,
        capabilities: ModelCapabilities,
        history: History,
        ledger: Ledger,
        keeping: Keeping,
        effects: Effects,
    ) -> None:
        """Start with no open call."""
        self._tools: OrderedDict[str, Mapping[str, ToolSpec]] = OrderedDict()
        self.use(agent_id, tools)
        self._max = max_calls_per_turn
        self._timeout_seconds = timeout_seconds
        self._capabilities = capabilities
        self._history = history
        self._ledger = ledger
        self._keeping = keeping
        self._effects = effects
        self._open: OrderedDict[str, ToolCall] = OrderedDict()
        self._in_turn = 0
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._due: OrderedDict[str, None] = OrderedDict()

    def use(self, agent_id: str, tools: Iterable[ToolSpec]) -> None:
        """What an agent may call. Those of earlier agents stay: a response that runs on may still call them."""
        self._tools[agent_id] = {tool.name: tool for tool in tools}
        self._tools.move_to_end(agent_id)
        while len(self._tools) > _MOST_AGENTS:
            self._tools.popitem(last=False)

    def use_capabilities(self, capabilities: ModelCapabilities) -> None:
        """Another model calls from now on."""
        self._capabilities = capabilities

    def note_stand_ins(self, items: Mapping[str, str]) -> None:
        """A new connection was told of open calls that they are not finished; the real result takes that place (F3)."""
        for call_id, item_id in items.items():
            call = self._open.get(call_id)
            if call is not None:
                call.stand_in = item_id

    def new_turn(self) -> None:
        """The user contributed: calls are counted anew."""
        self._in_turn = 0

    @property
    def is_spent(self) -> bool:
        """Whether the turn's calls are used up (T4)."""
        return self._in_turn >= self._max

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls that are not answered yet."""
        return list(self._open.values())

    def find(self, call_id: str) -> ToolCall | None:
        """A call that is not answered yet."""
        return self._open.get(call_id)

    def take_follow_up(self, response_id: str, *, is_over: bool) -> bool:
        """Whether the model is now to be asked to go on after a response: once, when it is over and all its calls are answered."""
        if not is_over or response_id not in self._due:
            return False
        if any(call.response_id == response_id for call in self._open.values()):
            return False
        del self._due[response_id]
        return True

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, event: ToolCallDone, *, place: Place, agent_id: str) -> None:
        """The model called a tool; a call id that was met before is only repeated (H5)."""
        if event.call_id in self._open or event.call_id in self._answered:
            return
        spec = self._spec(agent_id, event.name)
        place.round_id = event.response_id
        self._history.settle(
            place,
            ChatMessage(
                ChatRole.ASSISTANT,
                "",
                event.item_id,
                (FunctionCall(event.name, event.arguments, event.call_id, provider_data=event.provider_data),),
                agent_id=agent_id,
                created_at=self._effects.wall,
            ),
        )
        is_sequential = spec is not None and spec.sequential
        earlier = [call for call in self._open.values() if is_sequential or call.is_sequential]
        call = ToolCall(event, place=place, agent_id=agent_id, is_sequential=is_sequential, now=self._effects.now)
        self._open[event.call_id] = call
        place.awaits_result = True
        self._due[event.response_id] = None
        self._effects.emit(
            ToolCalled(message_id=event.item_id, call_id=event.call_id, name=event.name, arguments=event.arguments)
        )
        if self.is_spent:
            self.output(
                event.call_id,
                f"Not run: this turn's limit of {self._max} tool calls is used up. Answer with what you have.",
                is_error=True,
            )
            return
        self._in_turn += 1
        if spec is None:
            known = ", ".join(sorted(self._tools.get(agent_id, ()))) or "none"
            self.output(event.call_id, f"There is no tool named {event.name!r}. Tools: {known}.", is_error=True)
        elif spec.needs_approval:
            self._effects.emit(ApprovalRequested(call_id=event.call_id, name=event.name, arguments=event.arguments))
            self._effects.do(ApproveTool(command_id=self._effects.new_id(), call_id=event.call_id))
        else:
            self._run(call, wait_for=tuple(other.call_id for other in earlier))

    def _spec(self, agent_id: str, name: str) -> ToolSpec | None:
        return self._tools.get(agent_id, {}).get(name)

    def _run(self, call: ToolCall, *, wait_for: tuple[str, ...]) -> None:
        spec = self._spec(call.agent_id, call.name)
        timeout = (
            spec.timeout_seconds if spec is not None and spec.timeout_seconds is not None else self._timeout_seconds
        )
        self._effects.do(
            RunTool(
                command_id=self._effects.new_id(),
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
                agent_id=call.agent_id,
                timeout_seconds=timeout,
                wait_for=wait_for,
            )
        )

    def approve(self, call_id: str, *, ok: bool) -> bool:
        """The application answered an `ApprovalRequested`.

        Returns:
            False if no such call waits.
        """
        call = self._open.get(call_id)
        if call is None:
            return False
        if ok:
            self._run(call, wait_for=())
        else:
            self.output(call_id, "Not run: it was not approved.", is_error=True)
        return True

    # -- outputs ----------------------------------------------------------------------------------------------------

    def output(
        self, call_id: str, output: str, *, is_error: bool, images: Sequence[ImageContent] = ()
    ) -> ToolCall | None:
        """A call is answered: its result stands beside it and goes to the provider, whatever became of the reply (B03).

        Returns:
            The call, or None if it was answered before: exactly one output per call (T2).
        """
        call = self._open.pop(call_id, None)
        if call is None:
            return None
        call.place.awaits_result = False
        self._answered[call_id] = None
        while len(self._answered) > 1024:
            self._answered.popitem(last=False)
        message = ChatMessage(
            ChatRole.TOOL,
            output,
            self._effects.new_id(),
            (),
            call_id,
            tuple(images),
            agent_id=call.agent_id,
            created_at=self._effects.wall,
            is_error=is_error,
            tool_name=call.name,
        )
        if call.stand_in in self._ledger and self._capabilities.supports_item_deletion:
            self._effects.send(DeleteItem(command_id=self._effects.new_id(), item_id=call.stand_in))
            self._ledger.delete(call.stand_in)
        item_ids = (message.message_id, self._effects.new_id()) if images else (message.message_id,)
        if self._effects.outbox.is_open:  # else the whole conversation is told anew
            for item_id in item_ids:
                self._ledger.add(item_id)
        self._effects.send(CreateItem(command_id=self._effects.new_id(), message=message, item_ids=item_ids))
        kept = self._keeping.admit_pictures(message) or message
        place = self._history.add_result(call.place, kept, item_ids)
        self._keeping.add_pictures(place)
        self._effects.emit(
            ToolFinished(
                message_id=message.message_id,
                call_id=call_id,
                name=call.name,
                output=output,
                is_error=is_error,
                seconds=self._effects.now - call.started_at,
            )
        )
        return call

    def close(self) -> None:
        """The session ends: running tools are cancelled and say so (H7)."""
        for call in self.open_calls:
            self._effects.do(CancelTool(command_id=self._effects.new_id(), call_id=call.call_id))
            self.output(call.call_id, "Cancelled: the session ended before the tool had finished.", is_error=True)
