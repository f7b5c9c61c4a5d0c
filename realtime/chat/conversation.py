"""The bundle that a next session or a text agent continues.

Owns: `Conversation` (messages, hand-offs, usage, id, revision) and `TokenUsage`. Made by `RealtimeSession.conversation`,
given to the next session as ``conversation=``. Never changes: it is a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, cast
from uuid import uuid4

from realtime.chat.context import ChatContext
from realtime.chat.messages import AgentHandoff, ChatMessage, as_parts, as_text
from realtime.errors import ArgumentError

__all__ = ["Conversation", "TokenUsage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one response or of several, as the provider counts them."""

    input_tokens: int = 0
    """Everything that went in."""
    output_tokens: int = 0
    """Everything that came out."""
    total_tokens: int = 0
    """The provider's sum."""
    cached_tokens: int = 0
    """Of the input, served from its cache."""
    input_audio_tokens: int = 0
    """Of the input, audio."""
    input_image_tokens: int = 0
    """Of the input, pictures."""
    output_audio_tokens: int = 0
    """Of the output, audio."""

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """Sum field by field."""
        return TokenUsage(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(TokenUsage)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a session leaves behind, whole: enough to go on where it ended (seed: history and handoff)."""

    messages: tuple[ChatMessage, ...] = ()
    """The history, oldest first."""
    handoffs: tuple[AgentHandoff, ...] = ()
    """Who handed to whom."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Tokens so far, over all sessions; limits keep counting from here."""
    id: str = field(default_factory=lambda: uuid4().hex)
    """The same in every session that continues it."""
    revision: int = 0
    """Rises with every change of the history, over all sessions."""

    def __post_init__(self) -> None:
        """Copy the messages and hand-offs in.

        Raises:
            ArgumentError: There is something else among them, or the usage, id or revision is none.
        """
        object.__setattr__(self, "messages", as_parts(self.messages, ChatMessage, "messages"))
        object.__setattr__(self, "handoffs", as_parts(self.handoffs, AgentHandoff, "handoffs"))
        if not isinstance(self.usage, TokenUsage):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("usage", self.usage, "a TokenUsage")
        if not isinstance(self.id, str) or not self.id:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("id", self.id, "text that is not empty")
        if not _is_count(self.revision):
            raise ArgumentError("revision", self.revision, "an int of at least 0")

    def to_context(self) -> ChatContext:
        """A context of its own with the messages and hand-offs."""
        return ChatContext(list(self.messages), list(self.handoffs))

    def to_dict(self) -> dict[str, Any]:
        """As plain values that encode as JSON; `from_dict` gives an equal conversation back."""
        return {
            **self.to_context().to_dict(),
            "usage": asdict(self.usage),
            "id": self.id,
            "revision": self.revision,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a conversation.

        Args:
            data: What `to_dict` gave; what it lacks has its default. `ChatContext.to_dict()` will do too.

        Raises:
            ArgumentError: It is no mapping, or its usage, id or revision is none.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("data", data, "a mapping, as Conversation.to_dict() gives it")
        context = ChatContext.from_dict(data)
        more = {"id": as_text(data["id"])} if data.get("id") else {}
        return cls(
            messages=tuple(context.messages()),
            handoffs=tuple(context.handoffs()),
            usage=_usage_of(data.get("usage", {})),
            revision=data.get("revision", 0),
            **more,
        )


def _usage_of(given: Any) -> TokenUsage:
    """Token counts from a mapping; what is not known here is passed over."""
    counts = cast("Mapping[str, Any]", given)
    if not isinstance(given, Mapping) or not all(_is_count(value) for value in counts.values()):
        raise ArgumentError("usage", cast("object", given), "a mapping of token counts")
    known = {one.name for one in fields(TokenUsage)}
    return TokenUsage(**{name: value for name, value in counts.items() if name in known})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
