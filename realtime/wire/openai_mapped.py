"""OpenAI's protocol as servers speak it that give items ids of their own.

Owns: `ItemIds`, our ids and theirs; `MappedDecoder` and `MappedWire`, which put one for the other, so that whatever is above
knows only ours. Driven by `pipelines/link.py`, one instance per connection; `wire/xai.py` builds on it. For models with
`supports_own_item_ids=False`.

The next item of ours that is added is the one that we created first: a server adds in order what it is told in order. What the
user speaks is none of ours, and is known by its id before it is added.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace

from realtime.core.commands import CreateItem, DeleteItem, LinkCommand, TruncateItem
from realtime.core.model_events import ItemAdded, ModelEvent, ModelFault
from realtime.wire.json_fields import JsonObject, object_of, required_text, text_of
from realtime.wire.openai import OpenAIOptions, OpenAIWire
from realtime.wire.openai_decode import OpenAIDecoder

__all__ = ["ItemIds", "MappedDecoder", "MappedWire", "remember_id"]

_MAX_IDS = 4096


def remember_id(ids: dict[str, None], item_id: str) -> None:
    """Note an id, and forget the oldest of too many."""
    ids[item_id] = None
    if len(ids) > _MAX_IDS:
        del ids[next(iter(ids))]


class ItemIds:
    """Our ids of items and the provider's, both ways; the newest 4,096."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque(maxlen=_MAX_IDS)
        self._asked: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._ours: OrderedDict[str, str] = OrderedDict()
        self._theirs: dict[str, str] = {}

    def created(self, ours: tuple[str, ...], command_id: str) -> None:
        """We asked for items."""
        self.waiting.extend(ours)
        self._asked[command_id] = ours
        if len(self._asked) > _MAX_IDS:
            self._asked.popitem(last=False)

    def refused(self, command_id: str) -> None:
        """What a command asked for will not come: the next that comes is another."""
        for ours in self._asked.pop(command_id, ()):
            if ours in self.waiting:
                self.waiting.remove(ours)

    def added(self, theirs: str) -> None:
        """An item of ours was added: the one that was asked for first, unless the provider kept the id that we gave."""
        if theirs in self.waiting:
            self.waiting.remove(theirs)
        elif self.waiting and theirs not in self._ours:
            ours = self.waiting.popleft()
            self._ours[theirs], self._theirs[ours] = ours, theirs
            if len(self._ours) > _MAX_IDS:
                self._theirs.pop(self._ours.popitem(last=False)[1], None)

    def ours(self, theirs: str) -> str:
        """What we call an item."""
        return self._ours.get(theirs, theirs)

    def theirs(self, ours: str) -> str:
        """What the provider calls an item."""
        return self._theirs.get(ours, ours)


class MappedDecoder(OpenAIDecoder):
    """The reading half of one connection.

    Attributes:
        ids: Our ids and theirs, told by the writing half what was created.
    """

    def __init__(self, *, wall: float | None = None, ids: ItemIds | None = None) -> None:
        """Begin a connection.

        Args:
            wall: As for `OpenAIDecoder`.
            ids: An earlier connection's, if the conversation goes on.
        """
        self.ids = ids or ItemIds()
        self.spoken: dict[str, None] = {}
        super().__init__(wall=wall)

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """OpenAI's, and what differs."""
        theirs = super().handlers()
        return {
            **theirs,
            "input_audio_buffer.speech_started": lambda message: self._speaking(
                message, theirs["input_audio_buffer.speech_started"]
            ),
        }

    def _speaking(self, message: JsonObject, read: Callable[[JsonObject], list[ModelEvent]]) -> list[ModelEvent]:
        remember_id(self.spoken, required_text(message, "item_id"))
        return read(message)

    def _committed(self, message: JsonObject) -> list[ModelEvent]:
        remember_id(self.spoken, required_text(message, "item_id"))
        return super()._committed({**message, "previous_item_id": self.ids.ours(text_of(message, "previous_item_id"))})

    def is_ours(self, item: JsonObject) -> bool:
        """Whether an item is one that we created: no reply, no call, and nothing that the user spoke."""
        if text_of(item, "id") in self.spoken or text_of(item, "status") == "in_progress":
            return False
        kind, role = text_of(item, "type"), text_of(item, "role")
        return kind == "function_call_output" or (kind == "message" and role in ("user", "system"))

    def _item_added(self, message: JsonObject) -> list[ModelEvent]:
        item = object_of(message, "item")
        item_id = required_text(item, "id")
        if self.is_ours(item):
            self.ids.added(item_id)
        events: list[ModelEvent] = []
        for event in super()._item_added(message):
            assert isinstance(event, ItemAdded)
            previous = event.previous_item_id
            mapped = self.ids.ours(previous) if previous else None
            events.append(replace(event, item_id=self.ids.ours(item_id), previous_item_id=mapped))
        return events

    def _item_deleted(self, message: JsonObject) -> list[ModelEvent]:
        return super()._item_deleted({**message, "item_id": self.ids.ours(required_text(message, "item_id"))})

    def _item_truncated(self, message: JsonObject) -> list[ModelEvent]:
        return super()._item_truncated({**message, "item_id": self.ids.ours(required_text(message, "item_id"))})

    def _error(self, message: JsonObject) -> list[ModelEvent]:
        faults = super()._error(message)
        for fault in faults:
            if isinstance(fault, ModelFault) and fault.command_id is not None:
                self.ids.refused(fault.command_id)
        return faults


class MappedWire(OpenAIWire):
    """The wire format of one connection to such a server."""

    def __init__(
        self,
        options: OpenAIOptions | None = None,
        *,
        wall: float | None = None,
        decoder: MappedDecoder | None = None,
        resumes: bool = False,
    ) -> None:
        """Begin a connection; as for `OpenAIWire`."""
        self._mapped = decoder or MappedDecoder(wall=wall)
        super().__init__(options, wall=wall, decoder=self._mapped, resumes=resumes)

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: It holds what the protocol has no place for. Nothing was changed.
        """
        ids = self._mapped.ids
        if isinstance(command, (DeleteItem, TruncateItem)):
            return super().encode(replace(command, item_id=ids.theirs(command.item_id)))
        if not isinstance(command, CreateItem):
            return super().encode(command)
        previous = command.previous_item_id
        messages = super().encode(replace(command, previous_item_id=ids.theirs(previous) if previous else None))
        ids.created(command.item_ids, command.command_id)
        return messages
