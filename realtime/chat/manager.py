"""Many conversations by id, each made into a prompt within limits (seed: context manager and strategies).

Owns: `ContextManager`. Driven by applications that answer several people at once. A conversation is kept as it was given,
with its metadata; what is sent is made anew from it each time: chosen by the strategy, brought within `max_tokens`, and
converted like any context, so that it is valid whatever was added (behaviour.md F1). Never talks to a model, never forgets
by itself: `clear` does.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from realtime.chat.context import ChatContext
from realtime.chat.formats.context_messages import from_context_message, to_context_message
from realtime.chat.formats.openai import to_openai_messages
from realtime.chat.messages import ChatMessage, ChatRole, as_output
from realtime.chat.strategies import ContextManagement, ContextMessage, NoContextManagement, choose
from realtime.chat.tokens import TokenCounter
from realtime.chat.window import ContextWindow
from realtime.errors import ArgumentError

__all__ = ["ContextManager", "ReceivedMessage"]

_ALL = "all"
"""What `clear` takes for every conversation; so none can have this id."""
_COUNTING = ContextWindow()


class ReceivedMessage(Protocol):
    """A message of a messaging library; `to` and `thread` are kept too, where it has them."""

    @property
    def body(self) -> Any:
        """What it says."""
        ...

    @property
    def sender(self) -> Any:
        """Who sent it."""
        ...


@dataclass(slots=True)
class _Conversation:
    """One conversation."""

    given: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Each message as it was given."""
    read: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """… and as it is sent."""


class ContextManager:
    """Conversations by id, and prompts made of them."""

    def __init__(
        self,
        max_tokens: int = 4096,
        system_prompt: str | None = None,
        context_management: ContextManagement | None = None,
        *,
        counter: TokenCounter | str | None = None,
    ) -> None:
        """Start without a conversation.

        Args:
            max_tokens: The most tokens of a prompt, system prompt included. The newest message stays even if it is longer.
            system_prompt: Goes first in every prompt.
            context_management: Which messages a prompt holds; None: all of them.
            counter: How tokens are counted; None: the rule of `ChatContext.estimated_tokens`, and pictures by size.

        Raises:
            ArgumentError: A limit cannot be, or something is of another kind.
        """
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("max_tokens", max_tokens, "an int greater than 0")
        if system_prompt is not None and not isinstance(system_prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("system_prompt", system_prompt, "text or None")
        self.max_tokens = max_tokens
        """The most tokens of a prompt."""
        self.system_prompt = system_prompt
        """Goes first in every prompt."""
        self._count = _COUNTING.count_message if counter is None else ContextWindow(counter=counter).count_message
        self._strategy = _checked_strategy(context_management)
        self._conversations: dict[str, _Conversation] = {}
        self._current: str | None = None

    # -- adding --------------------------------------------------------------------------------------------------------

    def add_message(self, message: ReceivedMessage | ChatMessage | Mapping[str, Any], conversation_id: str) -> None:
        """Add a message to a conversation, which becomes the current one.

        Args:
            message: What another party said: anything with `body` and `sender` (then it is the user's, and `sender`, `to`
                and `thread` are its metadata); a `ChatMessage`; or a mapping as for `add_message_dict`.
            conversation_id: The conversation; it begins with its first message.

        Raises:
            ArgumentError: It is none of these, or the id is none.
        """
        if isinstance(message, ChatMessage):
            self._add(_written(message), message, conversation_id)
        elif isinstance(message, Mapping):
            self.add_message_dict(message, conversation_id)
        elif hasattr(message, "body") and hasattr(message, "sender"):
            body = "" if message.body is None else str(message.body)
            given: dict[str, Any] = {"role": "user", "content": body, "sender": str(message.sender)}
            if (receiver := getattr(message, "to", None)) is not None:
                given["receiver"] = str(receiver)
            if hasattr(message, "thread"):
                given["thread"] = getattr(message, "thread")  # noqa: B009  # no part of the protocol
            self._add(given, ChatMessage(ChatRole.USER, body), conversation_id)
        else:
            raise ArgumentError("message", message, "an object with body and sender, a ChatMessage, or a mapping")

    def add_message_dict(self, message_dict: ContextMessage | Mapping[str, Any], conversation_id: str) -> None:
        """Add a message in OpenAI's shape (or as a transport dict). Keys that are neither are metadata.

        Raises:
            ArgumentError: It is no mapping, has an unknown role, or the id is none.
        """
        if not isinstance(message_dict, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("message_dict", message_dict, "a mapping with role and content")
        given = copy.deepcopy(dict(cast("Mapping[str, Any]", message_dict)))
        role = given.get("role")
        if role not in list(ChatRole):
            raise ArgumentError("role", role, f"one of {', '.join(ChatRole)}")
        self._add(given, _read(given), conversation_id)

    def add_assistant_message(self, content: str, conversation_id: str | None = None) -> None:
        """Add what the model said.

        Args:
            content: Its words.
            conversation_id: The conversation; None: the current one.

        Raises:
            ArgumentError: There is no current one, or the id is none.
        """
        self.add_message_dict({"role": "assistant", "content": content}, self._named(conversation_id))

    def add_tool_result(
        self, tool_name: str, result: Any, tool_call_id: str, conversation_id: str | None = None
    ) -> None:
        """Add what a tool gave.

        Args:
            tool_name: The tool; metadata.
            result: Text as it is; anything else as JSON (None, 0 and {} are results, behaviour.md F6).
            tool_call_id: The call that it answers.
            conversation_id: The conversation; None: the current one.

        Raises:
            ArgumentError: There is no current one, or the id is none.
        """
        given = {"role": "tool", "content": as_output(result), "tool_call_id": tool_call_id, "tool_name": tool_name}
        self.add_message_dict(given, self._named(conversation_id))

    def _add(self, given: dict[str, Any], message: ChatMessage, conversation_id: str) -> None:
        if not isinstance(conversation_id, str) or conversation_id in {"", _ALL}:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("conversation_id", conversation_id, f"text that is neither empty nor {_ALL!r}")
        conversation = self._conversations.setdefault(conversation_id, _Conversation())
        conversation.given.append(given)
        conversation.read.append(message)
        self._current = conversation_id

    def _named(self, conversation_id: str | None) -> str:
        found = self._current if conversation_id is None else conversation_id
        if found is None:
            raise ArgumentError("conversation_id", None, "given while no conversation is the current one")
        return found

    # -- reading -------------------------------------------------------------------------------------------------------

    def get_prompt(self, conversation_id: str | None = None) -> list[ContextMessage]:
        """Make a conversation into messages for a model: valid, within `max_tokens`, without metadata.

        Args:
            conversation_id: The conversation; None: the current one. One that does not exist has no messages.

        Returns:
            The system prompt, if there is one, and what the strategy keeps, tool calls with their results.
        """
        prompt = [] if not self.system_prompt else [ChatMessage(ChatRole.SYSTEM, self.system_prompt)]
        chosen = self._chosen(self._find(conversation_id))
        room = self.max_tokens - sum(map(self._count, prompt))
        places = choose(
            chosen,
            limit=room,
            cost=self._count,
            preserve_initial=getattr(self._strategy, "preserve_initial", 0),
            keep_newest=True,
        )
        messages = [*prompt, *(chosen[place] for place in places)]
        return cast("list[ContextMessage]", to_openai_messages(messages))

    def _chosen(self, conversation: _Conversation) -> list[ChatMessage]:
        """What the strategy keeps of a conversation, whatever objects it gives back."""
        shown = [dict(given) for given in conversation.given]
        places = {id(one): place for place, one in enumerate(shown)}
        kept = self._strategy.apply_context_strategy(cast("list[ContextMessage]", shown), self.system_prompt)
        chosen: list[ChatMessage] = []
        for one in kept:
            place = places.get(id(one))
            is_unchanged = place is not None and one == conversation.given[place]
            chosen.append(conversation.read[place] if place is not None and is_unchanged else _read(one))
        return chosen

    def get_conversation_history(self, conversation_id: str | None = None) -> list[ContextMessage]:
        """Every message of a conversation as it was given, metadata too, in dicts of the caller's own.

        Args:
            conversation_id: The conversation; None: the current one. One that does not exist has none.
        """
        return cast("list[ContextMessage]", copy.deepcopy(self._find(conversation_id).given))

    def get_context(self, conversation_id: str | None = None) -> ChatContext:
        """A conversation as a context of its own, without the system prompt.

        Args:
            conversation_id: The conversation; None: the current one. One that does not exist is empty.
        """
        return ChatContext(self._find(conversation_id).read)

    def get_context_stats(self, conversation_id: str | None = None) -> dict[str, Any]:
        """What the strategy does to a conversation now (see `ContextManagement.get_stats`).

        Args:
            conversation_id: The conversation; None: the current one. One that does not exist has no messages.
        """
        conversation = self._find(conversation_id)
        self._chosen(conversation)
        return self._strategy.get_stats(len(conversation.given))

    def _find(self, conversation_id: str | None) -> _Conversation:
        name = self._current if conversation_id is None else _checked_id(conversation_id)
        return _Conversation() if name is None else self._conversations.get(name) or _Conversation()

    # -- managing ------------------------------------------------------------------------------------------------------

    def clear(self, conversation_id: str | None = None) -> None:
        """Forget a conversation.

        Args:
            conversation_id: The conversation; None: the current one; ``"all"``: all of them. One that does not exist is
                forgotten already.
        """
        if conversation_id == _ALL:
            self._conversations.clear()
            self._current = None
            return
        name = self._current if conversation_id is None else _checked_id(conversation_id)
        if name is not None:
            self._conversations.pop(name, None)
        if name == self._current:
            self._current = None

    def get_active_conversations(self) -> list[str]:
        """The ids of all conversations that have messages, in the order in which they began."""
        return list(self._conversations)

    def set_current_conversation(self, conversation_id: str) -> bool:
        """Make a conversation the one that is meant when none is named.

        Returns:
            Whether there is such a conversation; if not, nothing was changed.
        """
        if _checked_id(conversation_id) not in self._conversations:
            return False
        self._current = conversation_id
        return True

    def update_context_management(self, strategy: ContextManagement | None) -> None:
        """Choose by another strategy from now on.

        Args:
            strategy: The strategy; None: every message is kept.

        Raises:
            ArgumentError: It is none.
        """
        self._strategy = _checked_strategy(strategy)


def _checked_id(conversation_id: str) -> str:
    if not isinstance(conversation_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("conversation_id", conversation_id, "text")
    return conversation_id


def _checked_strategy(strategy: ContextManagement | None) -> ContextManagement:
    if strategy is None:
        return NoContextManagement()
    if not isinstance(strategy, ContextManagement):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("context_management", strategy, "a ContextManagement or None")
    return strategy


def _read(given: Mapping[str, Any]) -> ChatMessage:
    """A dict as a message. A speaker's name is a field of OpenAI's, which its format finds in `provider_data`."""
    named = {"provider_data": {"name": given["name"]}} if isinstance(given.get("name"), str) else {}
    return from_context_message({**given, **named})


def _written(message: ChatMessage) -> dict[str, Any]:
    """A message as a dict of the history: in OpenAI's shape where it has one, the rest as metadata."""
    written = to_context_message(message)
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return written
