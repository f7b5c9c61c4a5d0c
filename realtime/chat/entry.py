"""One place of a context: a message, and how it stands to its neighbors.

Owns: `ContextEntry`. Filled in by `entries` (order, turns) and `pairing` (tool rounds); changed by nobody else.
"""

from __future__ import annotations

from realtime.chat.messages import ChatMessage

__all__ = ["ContextEntry"]


class ContextEntry:
    """One place of a context. Opaque outside `realtime.chat`, but for its message; compared and hashed by identity."""

    __slots__ = (
        "answers",
        "following",
        "is_leading",
        "is_listed",
        "is_turn_start",
        "message",
        "next_said",
        "next_turn",
        "order",
        "preceding",
        "previous_said",
        "previous_turn",
        "results",
    )

    def __init__(self, message: ChatMessage) -> None:
        self.message = message
        """What stands here."""
        self.order = 0
        """Rises along the list."""
        self.is_listed = False
        """Whether it is still in its context."""
        self.is_leading = False
        """An instruction with only instructions before it."""
        self.is_turn_start = False
        """The first of its party's contribution."""
        self.preceding: ContextEntry | None = None
        self.following: ContextEntry | None = None
        self.previous_said: ContextEntry | None = None
        """The nearest entry before it that a party said (set for such entries only)."""
        self.next_said: ContextEntry | None = None
        self.previous_turn: ContextEntry | None = None
        """The start of the turn before (set for turn starts only)."""
        self.next_turn: ContextEntry | None = None
        self.results: list[ContextEntry | None] | None = None
        """The result of each of its calls, None while a call is open; None if it calls nothing."""
        self.answers: ContextEntry | None = None
        """The entry whose call it is the result of."""

    def __repr__(self) -> str:
        return f"<ContextEntry {self.message.role.value} {self.message.message_id!r}>"
