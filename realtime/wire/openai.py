"""OpenAI's Realtime protocol: commands to wire messages, wire messages to model events.

Owns: `OpenAIOptions` and `OpenAIWire`, for everything that speaks this protocol (OpenAI, Azure, our local server, others).
Driven by `pipelines/link.py`, one instance per connection. Reading is in `wire/openai_decode.py`, items in
`wire/openai_items.py`. It never waits and never opens a socket.

Every wire message carries our command's id as its `event_id`, so that an error names its cause (behaviour.md L6); a command
that takes several numbers the later ones (``c7``, ``c7#2``, …).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from realtime.chat.messages import ImageContent
from realtime.core.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    ConfigureSession,
    CreateItem,
    CreateResponse,
    DeleteItem,
    LinkCommand,
    TruncateItem,
)
from realtime.core.model_events import ModelEvent
from realtime.core.settings import TurnDetection, check_count, check_number
from realtime.errors import ArgumentError
from realtime.wire.base import WireStatistics
from realtime.wire.json_fields import dump_around, dump_message, encode_base64, quote
from realtime.wire.openai_client_events import (
    AudioClearEvent,
    AudioCommitEvent,
    ClientEvent,
    ItemCreateEvent,
    ItemDeleteEvent,
    ItemTruncateEvent,
    ResponseCancelEvent,
    ResponseCreateEvent,
    SessionUpdateEvent,
)
from realtime.wire.openai_decode import OpenAIDecoder
from realtime.wire.openai_items import address_head, items_of
from realtime.wire.openai_shapes import (
    AudioFormat,
    AudioInputConfig,
    AudioOutputConfig,
    FunctionTool,
    NoiseReduction,
    ResponseConfig,
    RetentionRatio,
    SessionConfig,
    TranscriptionConfig,
    TurnDetectionConfig,
)

__all__ = ["OpenAIOptions", "OpenAIWire", "turn_detection_config"]

_APPEND = '{"type":"input_audio_buffer.append","event_id":'
_MAX_APPEND_BYTES = 192_000  # four seconds at 24 kHz: one message never holds much (field case B39)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIOptions:
    """What a model of this protocol is told besides what every session says. None: the provider's default."""

    voice: str | None = None
    """Where the agent names none."""
    transcription_model: str = "gpt-realtime-whisper"
    """Where the session says `auto`."""
    transcription_language: str | None = None
    """ISO 639-1, such as `en`; None: found out by the provider."""
    transcription_prompt: str | None = None
    """Words to expect."""
    noise_reduction: Literal["near_field", "far_field"] | None = None
    """What is taken out of the input audio."""
    speed: float | None = None
    """Of the model's speech, 0.25 to 1.5."""
    idle_timeout_ms: int | None = None
    """The model speaks up when nobody has for so long (server turn detection only)."""
    tool_choice: Literal["auto", "none", "required"] | None = None
    """Whether tools may or must be called."""
    parallel_tool_calls: bool | None = None
    """Whether several tools may be called at once (reasoning models only)."""
    max_output_tokens: int | None = None
    """Of one response."""
    truncation: Literal["auto", "disabled"] | float | None = None
    """What the provider does when its context is full; a number is the share that it keeps."""
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    """How long the model thinks (reasoning models only)."""
    input_rate_hz: int = 24_000
    """Rate of the audio sent."""
    output_rate_hz: int = 24_000
    """Rate of the audio received."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_number("speed", self.speed, least=0.25, most=1.5, none_is="the provider's default")
        check_count("idle_timeout_ms", self.idle_timeout_ms, least=1, none_is="never")
        check_count("max_output_tokens", self.max_output_tokens, least=1, none_is="the provider's default")
        choices: dict[str, tuple[object, ...]] = {
            "noise_reduction": ("near_field", "far_field", None),
            "tool_choice": ("auto", "none", "required", None),
            "reasoning_effort": ("minimal", "low", "medium", "high", "xhigh", None),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ArgumentError(name, getattr(self, name), "one of " + ", ".join(map(repr, allowed)))
        if isinstance(self.truncation, str):
            if self.truncation not in ("auto", "disabled"):
                raise ArgumentError("truncation", self.truncation, "'auto', 'disabled' or a share between 0 and 1")
        else:
            check_number("truncation", self.truncation, most=1.0, none_is="the provider's default")


def turn_detection_config(settings: TurnDetection, idle_timeout_ms: int | None = None) -> TurnDetectionConfig | None:
    """Who decides when the user has finished, as OpenAI says it; None is push-to-talk."""
    if settings.mode == "manual":
        return None
    config = TurnDetectionConfig(
        type="server_vad" if settings.mode == "server" else "semantic_vad",
        create_response=settings.create_response,
        interrupt_response=settings.interrupt_response,
    )
    if settings.mode == "semantic":
        config["eagerness"] = settings.eagerness
        return config
    if settings.threshold is not None:
        config["threshold"] = settings.threshold
    if settings.silence_ms is not None:
        config["silence_duration_ms"] = settings.silence_ms
    if settings.prefix_padding_ms is not None:
        config["prefix_padding_ms"] = settings.prefix_padding_ms
    if idle_timeout_ms is not None:
        config["idle_timeout_ms"] = idle_timeout_ms
    return config


class OpenAIWire:
    """The wire format of one connection that speaks OpenAI's protocol."""

    def __init__(
        self,
        options: OpenAIOptions | None = None,
        *,
        wall: float | None = None,
        decoder: OpenAIDecoder | None = None,
        resumes: bool = False,
    ) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            wall: The time of day now, in seconds since the epoch, to count the provider's `expires_at` from.
            decoder: Reads a protocol that differs in parts.
            resumes: The connection takes an earlier conversation up again; it is configured before anything else, and a
                configuration that is the same is not told twice.
        """
        self._options = options or OpenAIOptions()
        self._decoder = decoder or OpenAIDecoder(wall=wall)
        self._resumes = resumes
        self._configured: SessionConfig | None = None
        self._encoded = 0

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: It holds what the protocol has no place for. Nothing was changed.
        """
        messages: list[str | bytes]
        if isinstance(command, AppendAudio):
            # hot path: fifty times a second; base64 needs no escaping
            pcm, event_id = command.pcm, quote(command.command_id)
            if len(pcm) <= _MAX_APPEND_BYTES:
                self._encoded += 1
                return [f'{_APPEND}{event_id},"audio":"{encode_base64(pcm)}"}}']
            chunks = (pcm[at : at + _MAX_APPEND_BYTES] for at in range(0, len(pcm), _MAX_APPEND_BYTES))
            messages = [f'{_APPEND}{event_id},"audio":"{encode_base64(chunk)}"}}' for chunk in chunks]
        else:
            events = self._events(command)
            for number, event in enumerate(events, 1):
                event["event_id"] = command.command_id if number == 1 else f"{command.command_id}#{number}"
            images = iter(command.message.images if isinstance(command, CreateItem) else ())
            messages = [_write(event, images) for event in events]
        self._encoded += len(messages)
        return messages

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        """Read one wire message; never raises."""
        return self._decoder.decode(data)

    def statistics(self) -> WireStatistics:
        """What was encoded and decoded so far."""
        decoder = self._decoder
        return WireStatistics(
            encoded=self._encoded,
            decoded=decoder.decoded,
            malformed=decoder.malformed,
            unknown=decoder.unknown.counts(),
        )

    def _events(self, command: LinkCommand) -> list[ClientEvent]:
        match command:
            case ConfigureSession():
                return self._configure(command)
            case CommitAudio():
                return [AudioCommitEvent(type="input_audio_buffer.commit")]
            case ClearAudio():
                return [AudioClearEvent(type="input_audio_buffer.clear")]
            case CreateItem():
                return [*self._create(command)]
            case DeleteItem():
                return [ItemDeleteEvent(type="conversation.item.delete", item_id=command.item_id)]
            case TruncateItem():
                return [
                    ItemTruncateEvent(
                        type="conversation.item.truncate",
                        item_id=command.item_id,
                        content_index=command.content_index,
                        audio_end_ms=command.audio_end_ms,
                    )
                ]
            case CreateResponse():
                return [_response_event(command)]
            case CancelResponse():
                event = ResponseCancelEvent(type="response.cancel")
                if command.response_id:
                    event["response_id"] = command.response_id
                return [event]
            case AppendAudio():  # in `encode`
                return []
            case _:
                assert_never(command)

    def _create(self, command: CreateItem) -> list[ItemCreateEvent]:
        items = items_of(
            command.message,
            input_rate_hz=self._options.input_rate_hz,
            known_calls=self._decoder.responses.calls,
        )
        if len(items) != len(command.item_ids):
            raise ArgumentError("item_ids", command.item_ids, f"{len(items)} ids, one per item")
        events: list[ItemCreateEvent] = []
        previous = command.previous_item_id
        for item_id, item in zip(command.item_ids, items, strict=True):
            event = ItemCreateEvent(type="conversation.item.create", item={"id": item_id, **item})
            if previous is not None:  # else each goes to the end, which is behind the one before
                event["previous_item_id"] = previous
                previous = item_id
            events.append(event)
        return events

    def _configure(self, command: ConfigureSession) -> list[ClientEvent]:
        config = self.session_config(command)
        if self._resumes and config == self._configured:
            return []
        self._configured = config
        if not self._decoder.configure_id:
            self._decoder.configure_id = command.command_id
        return [SessionUpdateEvent(type="session.update", session=config)]

    def session_config(self, command: ConfigureSession) -> SessionConfig:
        """The whole configuration. Fields that are left out keep their value, so what can be cleared is always there."""
        options = self._options
        config = SessionConfig(
            type="realtime",
            instructions=command.instructions,
            output_modalities=[command.output],
            audio={"input": self._audio_input(command), "output": self._audio_output(command)},
            tools=[
                FunctionTool(
                    type="function", name=tool.name, description=tool.description, parameters=dict(tool.parameters)
                )
                for tool in command.tools
            ],
        )
        if options.tool_choice is not None:
            config["tool_choice"] = options.tool_choice
        if options.parallel_tool_calls is not None:
            config["parallel_tool_calls"] = options.parallel_tool_calls
        if options.max_output_tokens is not None:
            config["max_output_tokens"] = options.max_output_tokens
        if isinstance(options.truncation, str):
            config["truncation"] = options.truncation
        elif options.truncation is not None:
            config["truncation"] = RetentionRatio(type="retention_ratio", retention_ratio=options.truncation)
        if options.reasoning_effort is not None:
            config["reasoning"] = {"effort": options.reasoning_effort}
        return config

    def _audio_input(self, command: ConfigureSession) -> AudioInputConfig:
        options = self._options
        transcription: TranscriptionConfig | None = None
        if command.transcription is not None:
            auto = command.transcription == "auto"
            transcription = TranscriptionConfig(model=options.transcription_model if auto else command.transcription)
            if options.transcription_language is not None:
                transcription["language"] = options.transcription_language
            if options.transcription_prompt is not None:
                transcription["prompt"] = options.transcription_prompt
        config = AudioInputConfig(
            format=AudioFormat(type="audio/pcm", rate=options.input_rate_hz),
            turn_detection=turn_detection_config(command.turn_detection, options.idle_timeout_ms),
            transcription=transcription,
        )
        if options.noise_reduction is not None:
            config["noise_reduction"] = NoiseReduction(type=options.noise_reduction)
        return config

    def _audio_output(self, command: ConfigureSession) -> AudioOutputConfig:
        options = self._options
        config = AudioOutputConfig(format=AudioFormat(type="audio/pcm", rate=options.output_rate_hz))
        voice = command.voice or options.voice
        # a voice cannot be changed once it was heard, and naming it again refuses all else: another one waits for the
        # next connection
        if voice is not None and not self._decoder.responses.has_spoken:
            config["voice"] = voice
        if options.speed is not None:
            config["speed"] = options.speed
        return config


def _write(event: ClientEvent, images: Iterator[ImageContent]) -> str:
    """Write an event; `images` gives the data of its pictures, which are nearly all of it."""
    if event["type"] != "conversation.item.create":
        return dump_message(event)
    parts = [part for part in event["item"].get("content", ()) if part["type"] == "input_image"]
    if not parts:
        return dump_message(event)
    shown = [next(images) for _ in parts]
    return dump_around(event, "image_url", [(address_head(image), encode_base64(image.data)) for image in shown])


def _response_event(command: CreateResponse) -> ResponseCreateEvent:
    response = ResponseConfig()
    if command.metadata:
        response["metadata"] = dict(command.metadata)
    if command.tool_choice is not None:
        response["tool_choice"] = command.tool_choice
    if command.instructions is not None:
        response["instructions"] = command.instructions
    event = ResponseCreateEvent(type="response.create")
    if response:
        event["response"] = response
    return event
