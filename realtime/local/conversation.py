"""The conversation as the server holds it: items in order, bounded, and what a responder sees of it.

Owns: `LocalConversation`. Driven by the session. Its order is the protocol's: an item stands behind its previous one.
What it holds is bounded by items and bytes; the oldest leave first, as OpenAI's server truncates, and are counted. The
newest audio of the user's is kept for `conversation.item.retrieve`, older audio only as its transcript. Never acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.errors import ModelError
from realtime.local.items import StoredItem
from realtime.wire.openai_messages import (
    CREATE_BAD_PREVIOUS,
    DELETE_UNKNOWN_ITEM,
    INVALID_VALUE,
    RETRIEVE_UNKNOWN_ITEM,
    TRUNCATE_UNKNOWN_ITEM,
)

__all__ = ["DUPLICATE_ITEM", "LocalConversation", "messages_of"]

DUPLICATE_ITEM = "item_create_duplicate_item_id"
"""Error code: an item of that id is there already."""
UNKNOWN_CALL = "invalid_tool_call_id"
"""Error code: a result for a call that is not there."""
NOT_SPOKEN = "unsupported_content_type"
"""Error code: only the model's audio can be truncated."""
ROOT = "root"
"""As `previous_item_id`: at the front."""
SHOWN = "shown"
"""The source of pictures that came without a word: frames, as far as one can tell, which a window lets go first."""


class LocalConversation:
    """The items of one session, in order."""

    def __init__(self, *, max_items: int = 2_000, max_bytes: int = 64_000_000, max_audio_ms: int = 120_000) -> None:
        """Begin empty.

        Args:
            max_items: Items held.
            max_bytes: About how much memory they may take, pictures above all.
            max_audio_ms: How much of the user's audio is kept.
        """
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._max_audio_ms = max_audio_ms
        self._items: dict[str, StoredItem] = {}
        self._order: list[str] = []
        self._bytes = 0
        self._sizes: dict[str, int] = {}
        self.dropped = 0
        """Items that left because there were too many, since the beginning."""

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._order)

    def __iter__(self) -> Iterator[StoredItem]:
        """The items, in order."""
        return (self._items[item_id] for item_id in self._order)

    @property
    def last_id(self) -> str | None:
        """The last item, if there is one."""
        return self._order[-1] if self._order else None

    def find(self, item_id: str) -> StoredItem | None:
        """The item of an id, or None."""
        return self._items.get(item_id)

    def add(self, item: StoredItem, previous_item_id: str | None = None) -> str | None:
        """Put an item in.

        Args:
            item: The item.
            previous_item_id: What it stands behind; ``root``: at the front; None or empty: at the end.

        Returns:
            The item before it, None if it is the first.

        Raises:
            ModelError: Its id is taken, the previous item is not there, or it is the result of an unknown call.
        """
        if item.id in self._items:
            text = f"Error adding item: an item with id '{item.id}' already exists."
            raise ModelError(text, code=DUPLICATE_ITEM, param="item.id")
        if item.kind == "function_call_output" and not any(
            other.kind == "function_call" and other.call_id == item.call_id for other in self._items.values()
        ):
            text = f"Tool call ID '{item.call_id}' not found in conversation."
            raise ModelError(text, code=UNKNOWN_CALL, param="item.call_id")
        place = self._place(previous_item_id)
        previous = self._order[place - 1] if place else None
        self._order.insert(place, item.id)
        self._items[item.id] = item
        self.measure(item)
        self._make_room(item)
        return previous

    def previous_of(self, item_id: str) -> str | None:
        """The item before one, None if it is the first."""
        place = self._order.index(item_id)
        return self._order[place - 1] if place else None

    def measure(self, item: StoredItem) -> None:
        """Take note of an item, when it was added and whenever it changed."""
        item.changed()
        if item.id in self._items:
            size = item.byte_length
            self._bytes += size - self._sizes.get(item.id, 0)
            self._sizes[item.id] = size

    def retrieve(self, item_id: str) -> StoredItem:
        """An item.

        Raises:
            ModelError: There is none of that id.
        """
        return self._get(item_id, "retrieving", RETRIEVE_UNKNOWN_ITEM)

    def delete(self, item_id: str) -> StoredItem:
        """Take an item out.

        Raises:
            ModelError: There is none of that id.
        """
        item = self._get(item_id, "deleting", DELETE_UNKNOWN_ITEM)
        self._remove(item_id)
        return item

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> StoredItem:
        """Cut the model's audio to what was heard, and its transcript to the words said by then.

        Raises:
            ModelError: There is no such item or part, it is no audio of the model's, or it is shorter than that.
        """
        item = self._get(item_id, "truncating", TRUNCATE_UNKNOWN_ITEM)
        if not 0 <= content_index < len(item.parts):
            text = f"Invalid 'content_index': the item has {len(item.parts)} content part(s)."
            raise ModelError(text, code=INVALID_VALUE, param="content_index")
        part = item.parts[content_index]
        if part.type != "output_audio":
            raise ModelError("Only model output audio messages can be truncated.", code=NOT_SPOKEN, param="item_id")
        if audio_end_ms < 0:
            raise ModelError("Invalid 'audio_end_ms': must not be negative.", code=INVALID_VALUE, param="audio_end_ms")
        if audio_end_ms > part.audio_ms:
            text = f"Audio content of {part.audio_ms}ms is already shorter than {audio_end_ms}ms"
            raise ModelError(text, code=INVALID_VALUE, param="audio_end_ms")
        if audio_end_ms < part.audio_ms:
            part.words = [(word, end) for word, end in part.words if end <= audio_end_ms]
            part.text = "".join(word for word, _end in part.words).strip()
            part.audio_ms = audio_end_ms
            item.truncated = True
        self.measure(item)
        return item

    def messages(self) -> list[ChatMessage]:
        """The conversation as chat messages."""
        return messages_of(self)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _place(self, previous_item_id: str | None) -> int:
        if not previous_item_id:
            return len(self._order)
        if previous_item_id == ROOT:
            return 0
        if previous_item_id not in self._items:
            text = f"Error adding item: the previous item with id '{previous_item_id[:80]}' does not exist."
            raise ModelError(text, code=CREATE_BAD_PREVIOUS, param="previous_item_id")
        if previous_item_id == self._order[-1]:
            return len(self._order)
        return self._order.index(previous_item_id) + 1

    def _get(self, item_id: str, doing: str, code: str) -> StoredItem:
        item = self._items.get(item_id)
        if item is None:
            text = f"Error {doing} item: the item with id '{item_id[:80]}' does not exist."
            raise ModelError(text, code=code, param="item_id")
        return item

    def _remove(self, item_id: str) -> None:
        if self._order[0] == item_id:
            del self._order[0]
        else:
            self._order.remove(item_id)
        del self._items[item_id]
        self._bytes -= self._sizes.pop(item_id)

    def _make_room(self, newest: StoredItem) -> None:
        while len(self._order) > 1 and (len(self._order) > self._max_items or self._bytes > self._max_bytes):
            oldest = next(item_id for item_id in self._order if item_id != newest.id)
            self._remove(oldest)
            self.dropped += 1
        if any(part.pcm is not None for part in newest.parts):
            self._let_audio_go()

    def _let_audio_go(self) -> None:
        """Keep the newest audio of the user's within its budget; audio not transcribed yet is always kept."""
        kept = 0
        for item_id in reversed(self._order):
            item = self._items[item_id]
            for part in item.parts:
                if part.pcm is None:
                    continue
                kept += part.audio_ms
                if kept > self._max_audio_ms and part.transcribed:
                    part.pcm = None
                    self.measure(item)


def messages_of(items: Iterable[StoredItem]) -> list[ChatMessage]:
    """Items as chat messages, for a responder: what was said, typed, shown, called and answered.

    A message is made once and kept with its item.
    """
    names: dict[str, str] = {}
    messages: list[ChatMessage] = []
    for item in items:
        if item.kind == "function_call":
            names[item.call_id] = item.name
        elif item.kind == "message" and not item.parts:
            continue
        if item.message is None:
            item.message = _message_of(item, names)
        messages.append(item.message)
    return messages


def _message_of(item: StoredItem, names: Mapping[str, str]) -> ChatMessage:
    if item.kind == "function_call":
        call = FunctionCall(name=item.name, arguments=item.arguments, call_id=item.call_id)
        return ChatMessage(role=ChatRole.ASSISTANT, content="", message_id=item.id, tool_calls=(call,))
    if item.kind == "function_call_output":
        return ChatMessage(
            role=ChatRole.TOOL,
            content=item.output,
            message_id=item.id,
            tool_call_id=item.call_id,
            tool_name=names.get(item.call_id, ""),
        )
    shown_alone = all(part.image is not None for part in item.parts)
    return ChatMessage(
        role=ChatRole(item.role or "user"),
        content=" ".join(part.text for part in item.parts if part.text),
        message_id=item.id,
        images=tuple(part.image for part in item.parts if part.image is not None),
        interrupted=item.truncated or item.status == "incomplete",
        source=SHOWN if shown_alone else "",
    )
