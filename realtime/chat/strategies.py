"""Which messages of a conversation a prompt holds (seed: context manager and strategies).

Owns: `ContextManagement` and its three strategies, the shapes of the context manager's messages (OpenAI's), and `choose`,
the one rule by which whole units are chosen within a limit. Driven by `ContextManager`, and usable alone. Pure, but for
what a strategy remembers of its last application, so that `get_stats` tells what was really kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from realtime.chat.formats.context_messages import from_context_message
from realtime.chat.formats.rounds import Rounds, Unit
from realtime.chat.messages import ChatMessage
from realtime.errors import ArgumentError

__all__ = [
    "AssistantMessage",
    "ContextManagement",
    "ContextMessage",
    "NoContextManagement",
    "SmartWindowSizeContext",
    "SystemMessage",
    "ToolCall",
    "ToolCallFunction",
    "ToolResultMessage",
    "UserMessage",
    "WindowSizeContext",
    "choose",
]

# -- messages ----------------------------------------------------------------------------------------------------------


class SystemMessage(TypedDict):
    """Instructions."""

    role: Literal["system", "developer"]
    content: str


class UserMessage(TypedDict):
    """What the user said."""

    role: Literal["user"]
    content: str | list[dict[str, Any]]
    name: NotRequired[str]


class ToolCallFunction(TypedDict):
    """The tool that is called, and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A call of a tool."""

    id: str
    type: Literal["function"]
    function: ToolCallFunction


class AssistantMessage(TypedDict):
    """What the model said, or which tools it called."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: NotRequired[list[ToolCall]]


class ToolResultMessage(TypedDict):
    """What a tool gave."""

    role: Literal["tool"]
    content: str
    tool_call_id: str


ContextMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
"""Any message of a context manager. Other keys are metadata: kept in the history, never sent."""

# -- choosing ----------------------------------------------------------------------------------------------------------


def choose(
    messages: Sequence[ChatMessage],
    *,
    limit: int,
    cost: Callable[[ChatMessage], int],
    preserve_initial: int = 0,
    tools_first: bool = False,
    keep_newest: bool = False,
) -> list[int]:
    """Choose messages within a limit: whole units (behaviour.md F2), the newest first, in their own order.

    Leading instructions and the first messages are taken before anything but the newest unit; a unit that does not fit is
    passed over whole, and so is a result without its call.

    Args:
        messages: The conversation.
        limit: The most that the chosen messages may cost together.
        cost: What a message costs.
        preserve_initial: How many of the first messages are taken before newer ones.
        tools_first: Take tool rounds before other messages.
        keep_newest: Take the newest unit even if it costs more than the limit.

    Returns:
        Positions, ascending. All of them if all are within the limit.
    """
    costs = [cost(message) for message in messages]
    if sum(costs) <= limit:
        return list(range(len(messages)))
    rounds = Rounds()
    for message in messages:
        rounds.add(message)
    newest_first = sorted(rounds.units, key=lambda unit: unit.positions()[-1], reverse=True)
    head = [unit for unit in rounds.units if unit.is_leading or unit.positions()[0] < preserve_initial]
    if sum(costs[position] for unit in head for position in unit.positions()) >= limit:
        head = [unit for unit in head if unit.positions()[0] < preserve_initial]
    ranked: list[Unit] = [*newest_first[:1], *head]
    if tools_first:
        ranked += (unit for unit in newest_first if unit.calls)
    ranked += newest_first
    chosen: set[int] = set()
    room = limit
    for unit in ranked:
        missing = [position for position in unit.positions() if position not in chosen]
        needed = sum(costs[position] for position in missing)
        if needed <= room or (keep_newest and not chosen and unit is newest_first[0]):
            chosen.update(missing)
            room -= needed
    return sorted(chosen)


def _listed(messages: Sequence[ContextMessage]) -> list[ContextMessage]:
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("messages", type(messages).__name__, "a list of mappings with role and content")
    listed = list(messages)
    for message in listed:
        if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("messages", message, "made of mappings with role and content")
    return listed


def _one(message: ChatMessage) -> int:
    return 1


# -- strategies --------------------------------------------------------------------------------------------------------


class ContextManagement(ABC):
    """Decides which messages of a conversation a prompt holds. Subclass it for a rule of your own."""

    @abstractmethod
    def apply_context_strategy(
        self, messages: Sequence[ContextMessage], system_prompt: str | None = None
    ) -> list[ContextMessage]:
        """Choose from a conversation.

        Args:
            messages: The conversation, oldest first, without the system prompt. It is not changed.
            system_prompt: The system prompt that goes before them, to be reckoned with if a rule wishes.

        Returns:
            What the prompt holds, in order.
        """

    @abstractmethod
    def get_stats(self, total_messages: int) -> dict[str, Any]:
        """What the strategy does to a conversation.

        Args:
            total_messages: How many messages the conversation has.

        Returns:
            At least ``strategy``, ``total_messages``, ``messages_in_context`` and ``messages_dropped``.

        Raises:
            ArgumentError: `total_messages` is negative.
        """


class NoContextManagement(ContextManagement):
    """Keeps every message."""

    def apply_context_strategy(
        self, messages: Sequence[ContextMessage], system_prompt: str | None = None
    ) -> list[ContextMessage]:
        """All messages, in a new list."""
        return _listed(messages)

    def get_stats(self, total_messages: int) -> dict[str, Any]:
        """Nothing is dropped."""
        return {"strategy": "none", **_counts(total_messages, total_messages)}


class WindowSizeContext(ContextManagement):
    """Keeps the newest messages; tool calls with their results or not at all, leading instructions always."""

    def __init__(self, max_messages: int = 20) -> None:
        """Set the size.

        Args:
            max_messages: The most messages that are kept.

        Raises:
            ArgumentError: It is not greater than 0.
        """
        self.max_messages = _checked(max_messages, "max_messages", least=1, wanted="greater than 0")
        self._last: tuple[int, int] | None = None

    def apply_context_strategy(
        self, messages: Sequence[ContextMessage], system_prompt: str | None = None
    ) -> list[ContextMessage]:
        """At most `max_messages`; fewer where a tool round does not fit whole.

        Raises:
            ArgumentError: They are no messages.
        """
        given = _listed(messages)
        kept = self._choose(given)
        self._last = len(given), len(kept)
        return kept

    def _choose(self, messages: list[ContextMessage]) -> list[ContextMessage]:
        if len(messages) <= self.max_messages:
            return messages
        read = [from_context_message(_skeleton(message)) for message in messages]
        return [messages[position] for position in self._positions(read)]

    def _positions(self, messages: Sequence[ChatMessage]) -> list[int]:
        return choose(messages, limit=self.max_messages, cost=_one)

    def get_stats(self, total_messages: int) -> dict[str, Any]:
        """What was kept of the last conversation, if it had that many messages; else the most that can be."""
        _checked(total_messages, "total_messages", least=0, wanted="at least 0")
        kept = min(total_messages, self.max_messages)
        if self._last is not None and self._last[0] == total_messages:
            kept = self._last[1]
        return {
            "strategy": "window_size",
            "max_messages": self.max_messages,
            **_counts(total_messages, kept),
        }


class SmartWindowSizeContext(WindowSizeContext):
    """Keeps the newest messages, and the first ones or tool rounds before others."""

    def __init__(self, max_messages: int = 20, preserve_initial: int = 0, prioritize_tools: bool = False) -> None:
        """Set the size and what comes first.

        Args:
            max_messages: The most messages that are kept.
            preserve_initial: How many of the first messages are always kept.
            prioritize_tools: Whether tool rounds are kept before other messages, but for the newest.

        Raises:
            ArgumentError: `max_messages` is not greater than 0, or `preserve_initial` is negative or not less than it.
        """
        super().__init__(max_messages)
        self.preserve_initial = _checked(preserve_initial, "preserve_initial", least=0, wanted=">= 0")
        if preserve_initial >= max_messages:
            raise ArgumentError("preserve_initial", preserve_initial, "less than max_messages")
        self.prioritize_tools = bool(prioritize_tools)

    def _positions(self, messages: Sequence[ChatMessage]) -> list[int]:
        return choose(
            messages,
            limit=self.max_messages,
            cost=_one,
            preserve_initial=self.preserve_initial,
            tools_first=self.prioritize_tools,
        )

    def get_stats(self, total_messages: int) -> dict[str, Any]:
        """As `WindowSizeContext.get_stats`, with this strategy's settings."""
        return {
            **super().get_stats(total_messages),
            "strategy": "smart_window_size",
            "preserve_initial": self.preserve_initial,
            "prioritize_tools": self.prioritize_tools,
        }


def _counts(total: int, kept: int) -> dict[str, int]:
    _checked(total, "total_messages", least=0, wanted="at least 0")
    return {"total_messages": total, "messages_in_context": kept, "messages_dropped": total - kept}


def _checked(value: int, argument: str, *, least: int, wanted: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(argument, value, "an int")
    if value < least:
        raise ArgumentError(argument, value, wanted)
    return value


def _skeleton(message: ContextMessage) -> dict[str, Any]:
    """What of a message tells its unit: pictures are not read for it."""
    kept = ("role", "tool_calls", "tool_call_id")
    return {key: value for key, value in message.items() if key in kept}
