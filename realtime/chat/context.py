"""The context: a conversation's messages and handoffs, in order (behaviour.md V1–V6; seed: chat and context).

Owns: `ChatContext`. Driven by applications; in a session by the holder of its `ContextLease`. Never trims by itself
(`window` does), never converts by itself (`formats` does), asks no clock, and makes an id only where none is given.

Data structure (`store`): entries linked in order (`entries`), an index by message id, and totals that each change adjusts:
tokens (`tally`), turns, frames and tool rounds (`entries`, `pairing`). Appending, replacing, removing, counting and finding
by id are O(1) at any length; a snapshot of all messages copies references only. Reading and converting halves: `readable`,
`conversions`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as replaced
from typing import Any, Self

from realtime.chat.content import check_images
from realtime.chat.entry import ContextEntry
from realtime.chat.explain import Explainer, Explanation
from realtime.chat.messages import (
    AgentHandoff,
    ChatMessage,
    ChatRole,
    FunctionCall,
    ImageContent,
    as_arguments,
    as_output,
    as_parts,
    as_role,
)
from realtime.chat.readable import Readable
from realtime.chat.store import ContextLease
from realtime.chat.tokens import TokenCounter
from realtime.chat.truncation import newest
from realtime.errors import ArgumentError, UserError

__all__ = ["ChatContext", "ContextEntry", "ContextLease"]


class ChatContext(Readable):
    """A conversation's messages and handoffs, in order.

    Messages are frozen values; the context is the one thing that changes. Not safe for several threads at once. While a
    session runs on it, only the session changes it: every changing call raises `UserError`.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        initial_messages: Iterable[ChatMessage] | None = None,
        initial_handoffs: Iterable[AgentHandoff] | None = None,
    ) -> None:
        """Start with some messages and handoffs; both are copied in.

        Raises:
            ArgumentError: There is something else among them.
        """
        super().__init__()
        for message in as_parts(initial_messages, ChatMessage, "initial_messages"):
            self.store.append(message)
        self.store.handoffs += as_parts(initial_handoffs, AgentHandoff, "initial_handoffs")

    @classmethod
    def empty(cls) -> Self:
        """A context with nothing in it."""
        return cls()

    # -- adding -------------------------------------------------------------------------------------------------------

    def add_message(  # noqa: PLR0917  # the seed's signature
        self,
        role: ChatRole | str,
        content: str,
        message_id: str | None = None,
        images: Iterable[ImageContent] | None = None,
        created_at: float | None = None,
        replace: bool = False,
    ) -> ChatMessage:
        """Append a message.

        Args:
            role: Who speaks.
            content: The text; anything but text becomes `str()`.
            message_id: Its id; a UUID if None.
            images: Its pictures.
            created_at: When, in seconds since the epoch.
            replace: With role SYSTEM: put it in the place of the (first) system message, which keeps its id unless one is
                given; with none there, and for any other role, it is appended.

        Returns:
            The message.

        Raises:
            ArgumentError: The id is in the context already, or the role is none.
            ImageError: A picture is none.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        system = self._system() if replace and as_role(role) is ChatRole.SYSTEM else None
        if system is not None and message_id in (None, system.message.message_id):
            message_id = system.message.message_id or _new_id()
        else:
            message_id = self._fresh(message_id)
        message = ChatMessage(as_role(role), content, message_id, (), "", check_images(images), created_at=created_at)
        if system is not None:
            self.store.replace(system, message)
            return message
        return self.store.append(message).message

    def add_attributed_message(
        self,
        role: ChatRole | str,
        content: str,
        agent_id: str,
        message_id: str | None = None,
        images: Iterable[ImageContent] | None = None,
    ) -> ChatMessage:
        """Append a message of a certain agent's.

        Args:
            role: Who speaks.
            content: The text; anything but text becomes `str()`.
            agent_id: Which agent.
            message_id: Its id; a UUID if None.
            images: Its pictures.

        Raises:
            ArgumentError: The id is in the context already, or the role is none.
            ImageError: A picture is none.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        return self.store.append(
            ChatMessage(as_role(role), content, self._fresh(message_id), (), "", check_images(images), agent_id)
        ).message

    def add_function_call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        call_id: str | None = None,
        message_id: str | None = None,
        agent_id: str = "",
    ) -> ChatMessage:
        """Append a tool call of the assistant's. Calls added in a row are one parallel round (behaviour.md F2).

        Args:
            name: The tool.
            arguments: Its arguments as JSON text; a mapping is encoded.
            call_id: Pairs it with its result; made if None.
            message_id: Its id; a UUID if None.
            agent_id: Which agent calls.

        Raises:
            ArgumentError: The message id is in the context already.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        call = FunctionCall(name, as_arguments(arguments), f"call_{uuid.uuid4().hex}" if call_id is None else call_id)
        return self.store.append(
            ChatMessage(ChatRole.ASSISTANT, "", self._fresh(message_id), (call,), agent_id=agent_id)
        ).message

    def add_function_output(  # noqa: PLR0917  # the seed's signature
        self,
        name: str,
        output: Any,
        call_id: str,
        is_error: bool = False,
        message_id: str | None = None,
        agent_id: str = "",
    ) -> ChatMessage:
        """Append a tool's result.

        Args:
            name: The tool.
            output: What it gave; anything but text is encoded as JSON, so that None, 0 and {} are results (F6).
            call_id: The call that it answers.
            is_error: Whether it says what went wrong.
            message_id: Its id; a UUID if None.
            agent_id: Which agent called.

        Raises:
            ArgumentError: The message id is in the context already.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        return self.store.append(
            ChatMessage(
                ChatRole.TOOL, as_output(output), self._fresh(message_id), (), call_id,
                agent_id=agent_id, is_error=is_error, tool_name=name,
            )
        ).message  # fmt: skip

    def append(self, message: ChatMessage) -> ChatMessage:
        """Append a message as it is.

        Raises:
            ArgumentError: It is none, or its id is in the context already.
            ImageError: A picture of it holds nothing.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("message", message, "a ChatMessage")
        check_images(message.images)
        if message.message_id:
            self._fresh(message.message_id)
        return self.store.append(message).message

    def add_handoff(self, to_agent: str, from_agent: str = "", reason: str = "") -> AgentHandoff:
        """Record that one agent handed the conversation to another.

        Raises:
            UserError: A session is running on the context.
        """
        self.store.check_free()
        handoff = AgentHandoff(to_agent, from_agent, reason, _new_id())
        self.store.handoffs.append(handoff)
        return handoff

    def merge(self, other: ChatContext | Iterable[ChatMessage]) -> Self:
        """Append another context's messages, but those whose id is here already.

        Returns:
            This context.

        Raises:
            ArgumentError: There is something else than messages in it.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        if other is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ArgumentError("other", other, "a ChatContext or an iterable of ChatMessage")
        for message in as_parts(other, ChatMessage, "other"):
            if not message.message_id or message.message_id not in self.store.by_id:
                self.store.append(message)
        return self

    # -- changing -----------------------------------------------------------------------------------------------------

    def update(self, message_id: str, **changes: Any) -> ChatMessage:
        """Put a changed message in a message's place: its fields but for `changes`. Its id stays.

        Raises:
            ArgumentError: No message has that id, or there is no such field, or it cannot have that value.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        entry = self._find(message_id)
        try:
            message = replaced(entry.message, **changes)
        except TypeError as error:
            raise ArgumentError("changes", sorted(changes), f"fields of ChatMessage ({error})") from None
        check_images(message.images)
        self.store.replace(entry, message)
        return message

    def remove(self, message_id: str) -> ChatMessage:
        """Take a message out.

        Raises:
            ArgumentError: No message has that id.
            UserError: A session is running on the context.
        """
        self.store.check_free()
        entry = self._find(message_id)
        self.store.remove((entry,))
        return entry.message

    def _find(self, message_id: str) -> ContextEntry:
        entry = self._entry(message_id)
        if entry is None:
            raise ArgumentError("message_id", message_id, "the id of a message of this context")
        return entry

    def _fresh(self, message_id: str | None) -> str:
        if message_id is None:
            return _new_id()
        if not isinstance(message_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("message_id", message_id, "text, or None")
        if message_id in self.store.by_id:
            raise ArgumentError(
                "message_id", message_id, "an id that is not in the context yet (update() changes a message)"
            )
        return message_id

    def _system(self) -> ContextEntry | None:
        return next(iter(self.store.entries.systems), None)

    # -- copies -------------------------------------------------------------------------------------------------------

    def copy(self, *, exclude_system_messages: bool = False, exclude_empty_messages: bool = False) -> Self:
        """A context with the same messages and handoffs. Messages are values, so it is independent.

        Args:
            exclude_system_messages: Leave out messages of role SYSTEM.
            exclude_empty_messages: Leave out what says and shows nothing and is part of no tool round.
        """
        return type(self)(
            (
                message
                for message in self.store.snapshot()
                if not (exclude_system_messages and message.role is ChatRole.SYSTEM)
                and not (exclude_empty_messages and message.is_empty)
            ),
            self.store.handoffs,
        )

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.messages(), self.handoffs()))

    def truncate(
        self, max_items: int | None = None, max_tokens: int | None = None, *, keep_instructions: bool = False
    ) -> Self:
        """A new context of the newest messages (behaviour.md V5).

        A tool call and its results stay or go together, and a result never leads.

        Args:
            max_items: Most messages; 0 keeps none.
            max_tokens: Most tokens by the rule of `estimated_tokens`; where nothing fits, the newest message stays, with
                its tool round.
            keep_instructions: The leading system and developer messages stay and count, even if they alone exceed a limit.

        Raises:
            ArgumentError: A limit is negative.
        """
        kept = newest(
            self.store.entries,
            max_items=max_items,
            max_tokens=max_tokens,
            keep_instructions=keep_instructions,
            tokens_of=self.words().of,
        )
        return type(self)((entry.message for entry in kept), self.store.handoffs)

    @staticmethod
    def new_id() -> str:
        """A fresh message id, as given to what has none."""
        return _new_id()

    def explain(
        self, window: Explainer, counter: TokenCounter | Callable[[str], int] | str | None = None
    ) -> list[Explanation]:
        """What a window would make of this context: per message its tokens, whether it stays, and why.

        Args:
            window: The `ContextWindow` that would be applied; nothing is changed.
            counter: Counts instead of the window's own.

        Raises:
            ArgumentError: It is no window, or no counter.
        """
        if not hasattr(window, "explain"):
            raise ArgumentError("window", window, "a ContextWindow")
        return window.explain(self, counter)

    # -- a session's way in -------------------------------------------------------------------------------------------

    def lease(self, holder: str) -> ContextLease:
        """Let one holder change the context; until it releases, nobody else can.

        Args:
            holder: What others shall use instead, such as ``session.send``.

        Raises:
            UserError: It is leased already.
            ArgumentError: `holder` is no text.
        """
        if not isinstance(holder, str) or not holder:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("holder", holder, "text: what others shall use instead")
        if self.store.holder is not None:
            raise UserError("this context already belongs to a running session: give each session its own (copy())")
        self.store.holder = holder
        return ContextLease(self.store)


def _new_id() -> str:
    return str(uuid.uuid4())
