"""One place in the conversation.

Owns: `Place` and how far it is (`PlaceState`). Handed out by `realtime.core.history`, which sets its fields; everyone reads
them. Never acts.
"""

from __future__ import annotations

from enum import Enum

from realtime.chat.context import ContextEntry
from realtime.chat.messages import ChatMessage

__all__ = ["Place", "PlaceState"]


class PlaceState(Enum):
    """How far a place is."""

    OPEN = "open"
    FINAL = "final"


class Place:
    """One place in the conversation. Handed out by `History`; its fields are read by everyone, set by `History`."""

    __slots__ = (
        "awaits_result",
        "entry",
        "following",
        "is_new",
        "item_ids",
        "message",
        "number",
        "preceding",
        "response_id",
        "round_id",
        "said_at",
        "settled_at",
        "state",
        "visible",
        "waits_for_transcript",
    )

    def __init__(self, item_ids: tuple[str, ...]) -> None:
        self.item_ids = item_ids
        """The provider's items that it stands for."""
        self.message: ChatMessage | None = None
        """What it says; None while open, or if it became nothing."""
        self.state = PlaceState.OPEN
        self.visible = False
        """Whether its message is in the history."""
        self.entry: ContextEntry | None = None
        """Its place in the context; None if it is not visible or the window trimmed it."""
        self.round_id: str | None = None
        """The response, if it is a tool call or a result: those stay together."""
        self.response_id: str | None = None
        """The response that made it, where `begin_reply` marked one."""
        self.settled_at: float | None = None
        """When it became final."""
        self.waits_for_transcript = False
        """Whether what it waits for is the user's words, all of which have been said."""
        self.said_at = 0.0
        """When the user had said them."""
        self.awaits_result = False
        """Whether it is a call that is not answered yet: its result will stand beside it."""
        self.is_new = True
        """False for seeded messages."""
        self.number = 0
        """Rises in the order in which places were made, which is not the order in which they stand."""
        self.preceding: Place | None = None
        self.following: Place | None = None
