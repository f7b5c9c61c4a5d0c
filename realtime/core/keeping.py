"""Carrying out retention: what the budgets name leaves the history and the context (behaviour.md R1–R5).

Owns: the budgets and the bytes that the history holds, and what an evicted message becomes. Driven by `SessionMachine`'s
parts, whenever something was added. Never decides what is too much: the budgets do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from realtime.chat.messages import ChatMessage, ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import DeleteItem
from realtime.core.effects import Effects
from realtime.core.events import MessageChanged, MessagesRemoved, RemovalReason
from realtime.core.history import History
from realtime.core.ledger import Ledger
from realtime.core.places import Place
from realtime.core.retention import AudioBudget, ImageBudget
from realtime.core.settings import Retention

__all__ = ["PICTURE_MARKER", "Keeping"]

PICTURE_MARKER = "[picture no longer kept]"
"""Stands in a message's text where a picture was (R1)."""


class Keeping:
    """The budgets of one session and the hand that evicts."""

    def __init__(
        self,
        *,
        retention: Retention,
        capabilities: ModelCapabilities,
        tokens_of: Callable[[ChatMessage], int],
        history: History,
        ledger: Ledger,
        effects: Effects,
    ) -> None:
        """Start with nothing kept.

        Args:
            retention: The budgets.
            capabilities: What the model can do.
            tokens_of: What a message costs in the window.
            history: Where the messages stand.
            ledger: What the provider has.
            effects: Where events and commands go.
        """
        self._retention = retention
        self._capabilities = capabilities
        self._tokens_of = tokens_of
        self._history = history
        self._ledger = ledger
        self._effects = effects
        self.images = ImageBudget(retention)
        self.audio = AudioBudget(
            retention, input_rate_hz=capabilities.input_rate_hz, output_rate_hz=capabilities.output_rate_hz
        )
        self.image_bytes = 0
        """Bytes of the pictures kept (seeded ones are not counted)."""
        self.evicted_images = 0
        """Pictures evicted so far."""
        self.evicted_audio = 0
        """Recordings evicted so far."""
        self.bound_memory: Callable[[], None] = _nothing
        """Called when something was added: the hard cap's (`realtime.core.memory`)."""

    def use(self, capabilities: ModelCapabilities) -> None:
        """Another model answers from now on."""
        self._capabilities = capabilities

    @property
    def keeps_output_audio(self) -> bool:
        """Whether replies are recorded."""
        return self._retention.keeps_output_audio

    @property
    def keeps_input_audio(self) -> bool:
        """Whether the user is recorded."""
        return self._retention.keeps_input_audio

    # -- pictures ---------------------------------------------------------------------------------------------------

    def admit_pictures(self, message: ChatMessage) -> ChatMessage | None:
        """Count a sent message's pictures and leave out those that `retain_images_every_n` or a maximum of 0 refuse.

        Returns:
            The message to record; None if nothing of it is kept.
        """
        if not message.images:
            return message
        kept = tuple(image for image in message.images if self.images.admit())
        if len(kept) == len(message.images):
            return message
        return _without(message, kept)

    def add_pictures(self, place: Place) -> None:
        """A message with admitted pictures got its place; the oldest leave first, so that the budget always holds."""
        message = place.message
        if message is None:
            return
        for image in message.images:
            for leaving in self.images.room():
                self._evict_picture(leaving, "image_budget")
            if place.message is None:
                return
            self.images.add(place)
            self.image_bytes += image.byte_length
        self.bound_memory()

    def evict_oldest_picture(self, incoming: str | None) -> bool:
        """For the memory cap: the oldest picture leaves, unless only the newest of each source are left.

        Args:
            incoming: A newer picture of this source is about to come.

        Returns:
            False if none may leave.
        """
        place = self.images.oldest_but_newest_of_source(incoming)
        if place is not None:
            self._evict_picture(place, "memory_limit")
        return place is not None

    def _evict_picture(self, place: Place, reason: Literal["image_budget", "memory_limit"]) -> None:
        message = place.message
        if message is None or not message.images:
            return
        self.evicted_images += 1
        self.image_bytes -= message.images[0].byte_length
        left = _without(message, message.images[1:])
        if left is not None:
            if place.entry is not None and place.item_ids:
                tokens = self._tokens_of(message) - self._tokens_of(replace(message, images=message.images[1:]))
                self._ledger.lost_picture(place.item_ids[0], tokens)
            self._history.change(place, left)
            if place.visible:
                self._effects.emit(MessageChanged(message=left, reason=reason))
            return
        self._forget_at_provider(place, message)
        visible = place.visible
        self._history.remove(place)
        place.message = None
        if visible:
            self._effects.emit(MessagesRemoved(message_ids=(message.message_id,), reason=reason))

    def _forget_at_provider(self, place: Place, message: ChatMessage) -> None:
        """A message left here: delete it there too (R4), or remember that the provider still holds it (W5)."""
        tokens = self._tokens_of(message)
        for item_id in place.item_ids:
            if item_id not in self._ledger:
                continue
            if self._retention.mirror_evictions and self._capabilities.supports_item_deletion:
                self._effects.send(DeleteItem(command_id=self._effects.new_id(), item_id=item_id))
                self._ledger.delete(item_id)
            else:
                self._ledger.mark_gone(item_id, tokens)
                tokens = 0

    # -- audio ------------------------------------------------------------------------------------------------------

    def add_audio(self, place: Place, samples: int, *, is_input: bool) -> None:
        """A message's audio is finished."""
        self.audio.add(place, samples, is_input=is_input)
        self.bound_audio()

    def add_recording(self, place: Place) -> None:
        """A message with a recording of the application's own got its place: it counts as any other."""
        message = place.message
        if message is not None and message.audio is not None:
            audio = message.audio
            self.audio.add_recording(place, duration_ms=audio.duration_ms, byte_length=audio.byte_length)
            self.bound_audio()

    def bound_audio(self) -> None:
        """Bring audio back within its seconds."""
        for place in self.audio.excess():
            self._evict_audio(place, "audio_budget")
        self.bound_memory()

    def evict_oldest_audio(self) -> None:
        """For the memory cap: the oldest finished recording leaves."""
        self._evict_audio(self.audio.pop_oldest(), "memory_limit")

    def _evict_audio(self, place: Place, reason: Literal["audio_budget", "memory_limit"]) -> None:
        message = place.message
        if message is None or message.audio is None:
            return
        self.evicted_audio += 1
        silent = replace(message, audio=None)
        self._history.change(place, silent)
        if place.visible:
            self._effects.emit(MessageChanged(message=silent, reason=reason))

    # -- bytes and length -------------------------------------------------------------------------------------------

    @property
    def audio_bytes(self) -> int:
        """Bytes of audio kept, turns in progress included."""
        return self.audio.bytes_kept + self.audio.live_bytes

    def bound_history(self) -> None:
        """`max_history_messages`: the oldest whole units leave."""
        while self._history.visible_count > self._retention.max_history_messages:
            unit = self._history.oldest_unit()
            if not unit or len(unit) >= self._history.visible_count:
                return
            self.remove(unit, "history_limit")

    def remove(self, places: list[Place], reason: RemovalReason) -> None:
        """Whole messages leave the history, with what they hold."""
        ids: list[str] = []
        for place in places:
            message = place.message
            if message is not None:
                if place.visible:
                    ids.append(message.message_id)
                counted = self.images.forget(place)
                self.image_bytes -= sum(image.byte_length for image in message.images[-counted:]) if counted else 0
                self.audio.forget(place)
                if reason == "rejected":
                    for item_id in place.item_ids:
                        self._ledger.remove(item_id)
                else:
                    self._forget_at_provider(place, message)
            self._history.remove(place)
            place.message = None
        if ids:
            self._effects.emit(MessagesRemoved(message_ids=tuple(ids), reason=reason))


def _nothing() -> None:
    """No cap."""


def _without(message: ChatMessage, kept: tuple[ImageContent, ...]) -> ChatMessage | None:
    """The message with only these pictures: a frame without its picture is nothing, a text says that one is gone."""
    if not kept and not message.content and not message.tool_call_id:
        return None
    if PICTURE_MARKER in message.content:
        return replace(message, images=kept)
    content = f"{message.content}\n{PICTURE_MARKER}" if message.content else PICTURE_MARKER
    return replace(message, images=kept, content=content)
