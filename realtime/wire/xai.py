"""xAI's voice protocol: OpenAI's names with a session, ids and transcripts of its own.

Owns: `XaiWire`. Driven by `pipelines/link.py`, one instance per connection. What differs from `wire/openai.py`, by
recordings and by docs.x.ai ("Voice Agent API"):

- turn detection and voice stand at the top of `session`, and there is no choice of modalities;
- the ids that we give to items are not kept: the next item of ours that is added is the one that we created first;
- `previous_item_id` is null for most items, so null says only of the first that it is the first;
- user transcripts come whole each time (`….updated`), and only ``completed`` ones are final;
- tokens are counted beside `response`, not in it;
- a reply may be dropped without `response.done`: the next response ends it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import ClassVar

from realtime.core.commands import ConfigureSession, CreateItem, DeleteItem, LinkCommand, TruncateItem
from realtime.core.model_events import (
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ModelEvent,
    ResponseEnded,
    ResponseStarted,
    TokenUsage,
)
from realtime.errors import UserError
from realtime.wire.json_fields import JsonObject, count_of, object_of, required_text, text_of
from realtime.wire.openai import OpenAIOptions, OpenAIWire, turn_detection_config
from realtime.wire.openai_decode import OpenAIDecoder
from realtime.wire.openai_responses import ResponseReader, read_usage
from realtime.wire.openai_shapes import SessionConfig

__all__ = ["XaiDecoder", "XaiWire"]

_MAX_IDS = 4096


class _ItemIds:
    """Our ids of items and the provider's, both ways; the newest 4,096."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque(maxlen=_MAX_IDS)
        self._ours: OrderedDict[str, str] = OrderedDict()
        self._theirs: dict[str, str] = {}

    def created(self, ours: str) -> None:
        """We asked for an item."""
        self.waiting.append(ours)

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


class XaiDecoder(OpenAIDecoder):
    """The reading half of one connection."""

    ignored: ClassVar[frozenset[str]] = OpenAIDecoder.ignored | {"ping"}

    def __init__(self) -> None:
        """Begin a connection."""
        self.ids = _ItemIds()
        self._has_items = False
        self._spoken: dict[str, None] = {}
        super().__init__()

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """OpenAI's, and what differs."""
        self.responses = ResponseReader(_usage_of)
        theirs = super().handlers()
        return {
            **theirs,
            "response.created": lambda message: self._created(message, theirs["response.created"]),
            "input_audio_buffer.speech_started": lambda message: self._speaking(
                message, theirs["input_audio_buffer.speech_started"]
            ),
            "conversation.item.input_audio_transcription.updated": self._grown,
            "conversation.item.input_audio_transcription.completed": self._completed,
        }

    def _item_added(self, message: JsonObject) -> list[ModelEvent]:
        item = object_of(message, "item")
        item_id = required_text(item, "id")
        kind, role = text_of(item, "type"), text_of(item, "role")
        is_ours = kind == "function_call_output" or (kind == "message" and role in ("user", "system"))
        if is_ours and item_id not in self._spoken and text_of(item, "status") != "in_progress":
            self.ids.added(item_id)
        events: list[ModelEvent] = []
        for event in super()._item_added(message):
            assert isinstance(event, ItemAdded)
            previous = event.previous_item_id
            events.append(
                ItemAdded(
                    item_id=self.ids.ours(item_id),
                    kind=event.kind,
                    role=event.role if event.kind == "message" else None,
                    previous_item_id=self.ids.ours(previous) if previous else None,
                    has_place=previous is not None or not self._has_items,
                    call_id=event.call_id,
                )
            )
        self._has_items = True
        return events

    def _item_deleted(self, message: JsonObject) -> list[ModelEvent]:
        return super()._item_deleted({**message, "item_id": self.ids.ours(required_text(message, "item_id"))})

    def _committed(self, message: JsonObject) -> list[ModelEvent]:
        self._is_spoken(required_text(message, "item_id"))
        return super()._committed({**message, "previous_item_id": self.ids.ours(text_of(message, "previous_item_id"))})

    def _speaking(self, message: JsonObject, read: Callable[[JsonObject], list[ModelEvent]]) -> list[ModelEvent]:
        self._is_spoken(required_text(message, "item_id"))
        return read(message)

    def _is_spoken(self, item_id: str) -> None:
        """The user says this item: it is none that we asked for."""
        self._spoken[item_id] = None
        if len(self._spoken) > _MAX_IDS:
            del self._spoken[next(iter(self._spoken))]

    def _created(self, message: JsonObject, read: Callable[[JsonObject], list[ModelEvent]]) -> list[ModelEvent]:
        """A response begins; one that is still running was dropped without a word."""
        dropped = list(self.responses.running)
        started = read(message)
        fresh = {event.response_id for event in started if isinstance(event, ResponseStarted)}
        ended: list[ModelEvent] = []
        for response_id in dropped:
            if response_id not in fresh:
                del self.responses.running[response_id]
                ended.append(ResponseEnded(response_id=response_id, status="cancelled", reason="turn_detected"))
        return ended + started

    def _grown(self, message: JsonObject) -> list[ModelEvent]:
        item_id, index = required_text(message, "item_id"), count_of(message, "content_index")
        return [InputTranscriptUpdated(item_id=item_id, content_index=index, text=text_of(message, "transcript"))]

    def _completed(self, message: JsonObject) -> list[ModelEvent]:
        if text_of(message, "status", "completed") != "completed":
            return self._grown(message)
        item_id, index = required_text(message, "item_id"), count_of(message, "content_index")
        return [InputTranscriptDone(item_id=item_id, content_index=index, text=text_of(message, "transcript"))]


def _usage_of(message: JsonObject) -> TokenUsage | None:
    return read_usage(object_of(message, "usage")) or read_usage(object_of(object_of(message, "response"), "usage"))


class XaiWire(OpenAIWire):
    """The wire format of one connection to xAI."""

    def __init__(self, options: OpenAIOptions | None = None) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says; what xAI does not know is left out.
        """
        self._xai = XaiDecoder()
        super().__init__(options or OpenAIOptions(transcription_model="grok-transcribe"), decoder=self._xai)

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: It holds what the protocol has no place for (pictures, truncation, text output).
        """
        if isinstance(command, TruncateItem):
            raise UserError("xAI cannot cut a spoken item to what was heard")
        if isinstance(command, DeleteItem):
            command = DeleteItem(command_id=command.command_id, item_id=self._xai.ids.theirs(command.item_id))
        if isinstance(command, CreateItem):
            return self._encode_item(command)
        return super().encode(command)

    def _encode_item(self, command: CreateItem) -> list[str | bytes]:
        if command.message.images:
            raise UserError("xAI takes no pictures")
        previous = command.previous_item_id
        messages = super().encode(
            CreateItem(
                command_id=command.command_id,
                message=command.message,
                item_ids=command.item_ids,
                previous_item_id=self._xai.ids.theirs(previous) if previous else None,
            )
        )
        for item_id in command.item_ids:
            self._xai.ids.created(item_id)
        return messages

    def session_config(self, command: ConfigureSession) -> SessionConfig:
        """The whole configuration, in xAI's shape.

        Raises:
            UserError: Text output or semantic turn detection was asked for.
        """
        if command.output != "audio":
            raise UserError("xAI answers in speech only")
        if command.turn_detection.mode == "semantic":
            raise UserError("xAI has no semantic turn detection: use mode 'server' or 'manual'")
        config = super().session_config(command)
        audio = config.get("audio", {})
        detection = turn_detection_config(command.turn_detection)
        shaped: JsonObject = {
            "instructions": command.instructions,
            "turn_detection": detection if detection is not None else {"type": None},
            "audio": {
                "input": {key: value for key, value in audio.get("input", {}).items() if key != "turn_detection"},
                "output": {key: value for key, value in audio.get("output", {}).items() if key == "format"},
            },
            "tools": config.get("tools", []),
        }
        voice = audio.get("output", {}).get("voice")
        if voice is not None:
            shaped["voice"] = voice
        if "tool_choice" in config:
            shaped["tool_choice"] = config["tool_choice"]
        return shaped  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  (another shape of the same)
