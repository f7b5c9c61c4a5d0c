"""xAI's voice protocol: OpenAI's names with a session, ids and transcripts of its own.

Owns: `XaiWire`. Driven by `pipelines/link.py`, one instance per connection. What differs from `wire/openai.py`, by
recordings and by docs.x.ai ("Voice Agent API"):

- turn detection and voice stand at the top of `session`, and there is no choice of modalities;
- the ids that we give to items are not kept (`wire/openai_mapped.py`);
- `previous_item_id` is null for most items, so null says only of the first that it is the first;
- user transcripts come whole each time (`….updated`), and only ``completed`` ones are final;
- tokens are counted beside `response`, not in it;
- a reply may be dropped without `response.done`: the next response ends it;
- a conversation is kept for half an hour and taken up again by its id; what it holds is then reported anew, item by item,
  and is no news (docs.x.ai, "Speech to Speech", session resumption).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from realtime.core.commands import ConfigureSession, CreateItem, LinkCommand, TruncateItem
from realtime.core.model_events import (
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ModelEvent,
    ResponseEnded,
    ResponseStarted,
    SessionUpdated,
    TokenUsage,
)
from realtime.core.settings import check_count, check_number
from realtime.errors import ArgumentError, UserError
from realtime.wire.base import Resumption
from realtime.wire.json_fields import JsonObject, count_of, object_of, required_text, text_of
from realtime.wire.openai import OpenAIOptions, turn_detection_config
from realtime.wire.openai_mapped import ItemIds, MappedDecoder, MappedWire, remember_id
from realtime.wire.openai_responses import ResponseReader, read_usage
from realtime.wire.openai_shapes import SessionConfig

__all__ = ["XaiDecoder", "XaiOptions", "XaiWire"]


@dataclass(frozen=True, slots=True, kw_only=True)
class XaiOptions:
    """What a model of xAI's is told besides what every session says. None: the provider's default."""

    voice: str | None = None
    """Where the agent names none."""
    transcription_model: str = "grok-transcribe"
    """Where the session says `auto`."""
    transcription_language: str | None = None
    """BCP 47, such as `en` or `es-MX`: what the user is expected to speak."""
    key_terms: tuple[str, ...] = ()
    """Names and words that the transcription should know; at most 100 of 50 characters."""
    speed: float | None = None
    """Of the model's speech, 0.7 to 1.5."""
    idle_timeout_ms: int | None = None
    """The model speaks up when nobody has for so long (server turn detection only)."""
    tool_choice: Literal["auto", "none", "required"] | None = None
    """Whether tools may or must be called."""
    reasoning_effort: Literal["none", "high"] | None = None
    """Whether it thinks before it answers."""
    resumption: bool = True
    """xAI keeps the conversation for half an hour, so that a dropped connection takes it up again."""
    input_rate_hz: int = 24_000
    """Rate of the audio sent."""
    output_rate_hz: int = 24_000
    """Rate of the audio received."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_number("speed", self.speed, least=0.7, most=1.5, none_is="the provider's default")
        check_count("idle_timeout_ms", self.idle_timeout_ms, least=1, none_is="never")
        object.__setattr__(self, "key_terms", tuple(self.key_terms))
        if len(self.key_terms) > 100 or any(len(term) > 50 for term in self.key_terms):
            raise ArgumentError("key_terms", self.key_terms, "at most 100 terms of at most 50 characters")
        if self.tool_choice not in ("auto", "none", "required", None):
            raise ArgumentError("tool_choice", self.tool_choice, "'auto', 'none', 'required' or None")
        if self.reasoning_effort not in ("none", "high", None):
            raise ArgumentError("reasoning_effort", self.reasoning_effort, "'none', 'high' or None")


class XaiDecoder(MappedDecoder):
    """The reading half of one connection."""

    ignored: ClassVar[frozenset[str]] = MappedDecoder.ignored | {"ping"}

    def __init__(self, resumption: Resumption | None = None) -> None:
        """Begin a connection.

        Args:
            resumption: What an earlier connection gave, if the conversation goes on.
        """
        state = resumption.state if resumption is not None else None
        self.conversation_id = ""
        self.is_resumed = False
        self._wanted = resumption.handle if resumption is not None else ""
        self._has_items = False
        self._replayed: dict[str, None] = {}
        super().__init__(ids=state if isinstance(state, ItemIds) else None)

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """OpenAI's, and what differs."""
        self.responses = ResponseReader(_usage_of)
        theirs = super().handlers()
        return {
            **theirs,
            "conversation.created": self._conversation_created,
            "response.created": lambda message: self._created(message, theirs["response.created"]),
            "conversation.item.input_audio_transcription.updated": self._grown,
            "conversation.item.input_audio_transcription.completed": self._completed,
        }

    def _conversation_created(self, message: JsonObject) -> list[ModelEvent]:
        self.conversation_id = text_of(object_of(message, "conversation"), "id")
        self.is_resumed = self._has_items = bool(self._wanted) and self.conversation_id == self._wanted
        return []

    def _session_updated(self, message: JsonObject) -> list[ModelEvent]:
        return [
            SessionUpdated(resumed=self.is_resumed) if isinstance(event, SessionUpdated) else event
            for event in super()._session_updated(message)
        ]

    def _is_replayed(self, item: JsonObject) -> bool:
        """Whether an item is one that the conversation held before the connection: nobody says it or waits for it now."""
        item_id = text_of(item, "id")
        if not self.is_resumed or item_id in self.spoken or text_of(item, "status") == "in_progress":
            return False
        by_us = text_of(item, "type") == "function_call_output" or text_of(item, "role") in ("user", "system")
        if by_us if self.ids.waiting else self.responses.running:
            return False
        remember_id(self._replayed, item_id)
        return True

    def _item_added(self, message: JsonObject) -> list[ModelEvent]:
        if self._is_replayed(object_of(message, "item")):
            return []
        events: list[ModelEvent] = []
        for event in super()._item_added(message):
            assert isinstance(event, ItemAdded)
            has_place = event.previous_item_id is not None or not self._has_items
            role = event.role if event.kind == "message" else None
            events.append(replace(event, role=role, has_place=has_place))
        self._has_items = True
        return events

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
        if item_id in self._replayed:
            return []
        return [InputTranscriptUpdated(item_id=item_id, content_index=index, text=text_of(message, "transcript"))]

    def _completed(self, message: JsonObject) -> list[ModelEvent]:
        if text_of(message, "status", "completed") != "completed":
            return self._grown(message)
        item_id, index = required_text(message, "item_id"), count_of(message, "content_index")
        if item_id in self._replayed:
            return []
        return [InputTranscriptDone(item_id=item_id, content_index=index, text=text_of(message, "transcript"))]


def _usage_of(message: JsonObject) -> TokenUsage | None:
    return read_usage(object_of(message, "usage")) or read_usage(object_of(object_of(message, "response"), "usage"))


class XaiWire(MappedWire):
    """The wire format of one connection to xAI."""

    def __init__(self, options: XaiOptions | None = None, *, resumption: Resumption | None = None) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            resumption: What an earlier connection gave; the conversation goes on, if xAI still has it.
        """
        self._xai = XaiDecoder(resumption)
        self._xai_options = options or XaiOptions()
        shared = OpenAIOptions(
            voice=self._xai_options.voice,
            transcription_model=self._xai_options.transcription_model,
            tool_choice=self._xai_options.tool_choice,
            input_rate_hz=self._xai_options.input_rate_hz,
            output_rate_hz=self._xai_options.output_rate_hz,
        )
        super().__init__(shared, decoder=self._xai, resumes=resumption is not None)

    def resumption(self) -> Resumption | None:
        """The conversation's id, once nothing is under way that xAI has not acknowledged: it could be lost, or be there."""
        if not self._xai_options.resumption or not self._xai.conversation_id or self._xai.ids.waiting:
            return None
        return Resumption(handle=self._xai.conversation_id, state=self._xai.ids)

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: It holds what the protocol has no place for (pictures, truncation, text output).
        """
        if isinstance(command, TruncateItem):
            raise UserError("xAI cannot cut a spoken item to what was heard (supports_truncation)")
        if isinstance(command, CreateItem) and command.message.images:
            raise UserError("xAI takes no pictures (supports_image_input)")
        return super().encode(command)

    def session_config(self, command: ConfigureSession) -> SessionConfig:
        """The whole configuration, in xAI's shape.

        Raises:
            UserError: Text output or semantic turn detection was asked for.
        """
        if command.output != "audio":
            raise UserError("xAI answers in speech only (supports_text_output)")
        if command.turn_detection.mode == "semantic":
            raise UserError(
                "xAI has no semantic turn detection (supports_semantic_turns): use mode 'server' or 'manual'"
            )
        options, config = self._xai_options, super().session_config(command)
        audio = config.get("audio", {})
        detection = turn_detection_config(command.turn_detection, options.idle_timeout_ms)
        heard: JsonObject = {key: value for key, value in audio.get("input", {}).items() if key != "turn_detection"}
        transcription = heard.get("transcription")
        if transcription is not None:
            heard["transcription"] = self._transcription(transcription)
        spoken: JsonObject = {"format": audio.get("output", {}).get("format")}
        if options.speed is not None:
            spoken["speed"] = options.speed
        shaped: JsonObject = {
            "instructions": command.instructions,
            "turn_detection": detection if detection is not None else {"type": None},
            "audio": {"input": heard, "output": spoken},
            "tools": config.get("tools", []),
        }
        if options.reasoning_effort is not None:
            shaped["reasoning"] = {"effort": options.reasoning_effort}
        if options.resumption:
            shaped["resumption"] = {"enabled": True}
        voice = audio.get("output", {}).get("voice")
        if voice is not None:
            shaped["voice"] = voice
        if "tool_choice" in config:
            shaped["tool_choice"] = config["tool_choice"]
        return shaped  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  (another shape of the same)

    def _transcription(self, transcription: JsonObject) -> JsonObject:
        named = {**transcription}
        if self._xai_options.transcription_language is not None:
            named["language_hint"] = self._xai_options.transcription_language
        if self._xai_options.key_terms:
            named["keyterms"] = [*self._xai_options.key_terms]
        return named
