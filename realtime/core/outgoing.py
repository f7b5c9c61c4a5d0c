"""Messages of ours on their way into the provider's conversation (behaviour.md H1, H6, H8, R1).

Owns: what was given to the link and has no place yet. Driven by `SessionMachine`. Never sends by itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, ImageContent
from realtime.core.commands import CreateItem
from realtime.core.effects import Effects
from realtime.core.events import FrameKept, FrameSkipped, InputRejected, KeepReason, SkipReason
from realtime.core.history import History
from realtime.core.keeping import Keeping
from realtime.core.ledger import Ledger
from realtime.core.places import Place
from realtime.core.seeding import item_count

__all__ = ["Outgoing", "as_messages"]

_MOST_UNPLACED = 32
"""Frames that were sent and that the provider has not placed; beyond, the oldest stands at the end."""


class _Waiting:
    """One message without a place."""

    __slots__ = ("command", "keep_reason", "kept", "message", "source_size", "tokens", "was_sent")

    def __init__(self, message: ChatMessage, command: CreateItem, keep_reason: KeepReason | None, tokens: int) -> None:
        self.tokens = tokens
        self.message = message
        self.command = command
        self.keep_reason: KeepReason | None = keep_reason
        self.was_sent = False
        self.source_size: tuple[int, int] = (0, 0)
        """Of the frame that it was made from."""
        self.kept: ChatMessage | None = message
        """What is recorded of it, once it was sent."""


class Outgoing:
    """The messages that wait for their place, oldest first."""

    def __init__(
        self,
        *,
        history: History,
        ledger: Ledger,
        keeping: Keeping,
        effects: Effects,
        tokens_of: Callable[[ChatMessage], int],
        waits_for_order: bool,
    ) -> None:
        """Start with none.

        Args:
            history: Where they go.
            ledger: What the provider has.
            keeping: Where their pictures are counted.
            effects: Where events and commands go.
            tokens_of: What a message costs in the window.
            waits_for_order: The provider says where an item joined; otherwise it joins when it was sent.
        """
        self._history = history
        self._ledger = ledger
        self._keeping = keeping
        self._effects = effects
        self._tokens_of = tokens_of
        self.waits_for_order = waits_for_order
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._sent_frames: OrderedDict[str, None] = OrderedDict()
        self.picture_bytes = 0
        """Bytes of pictures that were given to the link and have no place yet."""
        self.unsent_pictures = 0
        """Pictures that wait for the socket."""
        self.tokens = 0
        """What costs in the window and has no place in it yet."""

    def _wait(self, message: ChatMessage, command: CreateItem, reason: KeepReason | None) -> None:
        tokens = self._tokens_of(message)
        self._waiting[message.message_id] = _Waiting(message, command, reason, tokens)
        self.tokens += tokens
        self.picture_bytes += sum(image.byte_length for image in message.images)
        self.unsent_pictures += len(message.images)

    def _leave(self, item_id: str) -> _Waiting | None:
        waiting = self._waiting.pop(item_id, None)
        self._sent_frames.pop(item_id, None)
        if waiting is not None:
            self.tokens -= waiting.tokens
            self.picture_bytes -= sum(image.byte_length for image in waiting.message.images)
            if not waiting.was_sent:
                self.unsent_pictures -= len(waiting.message.images)
        return waiting

    def __contains__(self, item_id: object) -> bool:
        """Whether an item is ours and waits for its place."""
        return item_id in self._waiting

    def item_ids(self, message: ChatMessage) -> tuple[str, ...]:
        """Ids for a new message's items; the first is the message's own."""
        count = max(1, item_count(message))
        return (message.message_id, *(self._effects.new_id() for _ in range(count - 1)))

    def send(self, message: ChatMessage) -> None:
        """Give a message of the application's to the link."""
        command = CreateItem(command_id=self._effects.new_id(), message=message, item_ids=self.item_ids(message))
        self._wait(message, command, None)
        self._effects.send(command)

    def send_frame(
        self, message: ChatMessage, *, captured_at: float, reason: KeepReason, source_size: tuple[int, int]
    ) -> None:
        """Give a sampled frame to the link; a waiting one of the same source makes way."""
        command = CreateItem(
            command_id=self._effects.new_id(),
            message=message,
            item_ids=self.item_ids(message),
            lane="picture",
            source=message.source,
            captured_at=captured_at,
        )
        self._wait(message, command, reason)
        self._waiting[message.message_id].source_size = source_size
        replaced = self._effects.outbox.put_picture(command)
        if replaced is not None:
            self.skip_frame(replaced, "replaced")

    def skip_frame(self, command: CreateItem, reason: SkipReason) -> None:
        """A waiting frame is not sent after all."""
        self._leave(command.item_ids[0])
        self._effects.emit(FrameSkipped(source=command.source, reason=reason, captured_at=command.captured_at or 0.0))

    def drop_oldest_waiting(self) -> bool:
        """For the memory cap: the frame that has waited longest for the socket is not sent.

        Returns:
            False if none waits.
        """
        command = self._effects.outbox.oldest_picture()
        if command is None:
            return False
        self._effects.outbox.drop_picture(command)
        self.skip_frame(command, "image_limit")
        return True

    def sent(self, item_id: str) -> None:
        """A message was really sent: its pictures count now (R1)."""
        waiting = self._waiting.get(item_id)
        if waiting is None or waiting.was_sent:
            return
        waiting.was_sent = True
        message = waiting.message
        self.unsent_pictures -= len(message.images)
        waiting.kept = self._keeping.admit_pictures(message)
        if waiting.keep_reason is not None:
            captured_at = waiting.command.captured_at or 0.0
            width, height = message.images[0].size or (0, 0)
            self._effects.emit(
                FrameKept(
                    message_id=message.message_id,
                    source=message.source,
                    reason=waiting.keep_reason,
                    captured_at=captured_at,
                    age_ms=round((self._effects.now - captured_at) * 1000),
                    width=width,
                    height=height,
                    byte_length=message.images[0].byte_length,
                    source_width=waiting.source_size[0],
                    source_height=waiting.source_size[1],
                )
            )
        if not self.waits_for_order:
            self.placed(item_id, self._history.reserve(item_id))
        elif waiting.keep_reason is not None:
            self._sent_frames[item_id] = None
            if len(self._sent_frames) > _MOST_UNPLACED:
                oldest = next(iter(self._sent_frames))
                self.placed(oldest, self._history.reserve(oldest))

    def placed(self, item_id: str, place: Place) -> None:
        """A message joined the provider's conversation."""
        self.sent(item_id)
        waiting = self._leave(item_id)
        if waiting is None:
            return
        self._history.settle(place, waiting.kept)
        lost = self._tokens_of(waiting.message) if waiting.message.images else 0
        if waiting.kept is None:
            self._ledger.mark_gone(item_id, lost)
            return
        if waiting.kept is not waiting.message:
            self._ledger.lost_picture(item_id, max(0, lost - self._tokens_of(waiting.kept)))
        self._keeping.add_pictures(place)
        self._keeping.add_recording(place)

    def reject(self, command: CreateItem, reason: str) -> None:
        """A message did not reach the provider, or was refused there: it leaves the history (H6)."""
        item_id = command.item_ids[0]
        waiting = self._leave(item_id)
        place = self._history.find(item_id)
        if place is not None and place.message is not None:
            self._keeping.remove([place], "rejected")
        elif place is not None:
            self._history.settle(place, None)
        if waiting is not None or place is not None:
            self._effects.emit(InputRejected(message_id=item_id, reason=reason))

    def resend(self, *, takes_pictures: bool) -> list[CreateItem]:
        """A new connection: what had not reached the old one's conversation is sent again, in order, under new commands.

        A frame is not: a newer one will come.

        Args:
            takes_pictures: Whether the model does; if not, words go without theirs, and an event says so.
        """
        again: list[CreateItem] = []
        for item_id, waiting in list(self._waiting.items()):
            if waiting.keep_reason is not None:
                if waiting.was_sent:
                    self._leave(item_id)
                else:
                    self.skip_frame(waiting.command, "stale")
                continue
            if waiting.message.images and not takes_pictures and not self._strip(item_id, waiting):
                continue
            self._count(waiting)  # another model's provider prices pictures by a rule of its own
            waiting.command = replace(waiting.command, command_id=self._effects.new_id(), message=waiting.message)
            again.append(waiting.command)
        return again

    def _strip(self, item_id: str, waiting: _Waiting) -> bool:
        """Take the pictures from a waiting message; False if nothing is left of it."""
        images = waiting.message.images
        self.picture_bytes -= sum(image.byte_length for image in images)
        if not waiting.was_sent:
            self.unsent_pictures -= len(images)
        waiting.message = waiting.kept = replace(waiting.message, images=())
        reason = "the model that took over takes no pictures (supports_image_input)"
        self._effects.emit(InputRejected(message_id=item_id, reason=reason))
        if waiting.message.is_empty:
            self._leave(item_id)
            return False
        return True

    def _count(self, waiting: _Waiting) -> None:
        self.tokens -= waiting.tokens
        waiting.tokens = self._tokens_of(waiting.message)
        self.tokens += waiting.tokens

    def pending(self) -> list[ChatMessage]:
        """What was sent by the application and has no place yet."""
        return [waiting.message for waiting in self._waiting.values() if waiting.keep_reason is None]

    def close(self) -> None:
        """The session ends: what was sent is recorded at the end, what was not is rejected."""
        for item_id, waiting in list(self._waiting.items()):
            if waiting.was_sent:
                self.placed(item_id, self._history.reserve(item_id))
            elif waiting.keep_reason is not None:
                self.skip_frame(waiting.command, "closed")
            else:
                self._leave(item_id)
                self._effects.emit(InputRejected(message_id=item_id, reason="the session ended before it was sent"))


def as_messages(
    content: Sequence[str | ImageContent | AudioContent], *, make_id: Callable[[], str], wall: float, source: str = ""
) -> list[ChatMessage]:
    """Text and pictures in turn make one message per run: its text, then its pictures (F9); a recording is one of its own.

    A picture alone, with the name of a `source`, is a frame of it (H8).
    """
    messages: list[ChatMessage] = []
    text: list[str] = []
    images: list[ImageContent] = []

    def flush() -> None:
        if text or images:
            joined = "\n".join(text)
            camera = source if len(images) == 1 and not text else ""
            messages.append(
                ChatMessage(ChatRole.USER, joined, make_id(), images=tuple(images), created_at=wall, source=camera)
            )
            text.clear()
            images.clear()

    for part in content:
        match part:
            case str():
                if images:
                    flush()
                if part:
                    text.append(part)
            case ImageContent():
                images.append(part)
            case AudioContent():
                flush()
                messages.append(ChatMessage(ChatRole.USER, part.transcript, make_id(), created_at=wall, audio=part))
            case _:
                assert_never(part)
    flush()
    return messages
