"""Gemini Live: commands to wire messages, wire messages to model events.

Owns: `GeminiOptions` and `GeminiWire`. Driven by `pipelines/link.py`, one instance per connection. Reading is in
`wire/gemini_decode.py`. It never waits and never opens a socket.

Gemini keeps no items that could be named, so nothing can be deleted, cut to what was heard or put between others, and what
a connection was set up with stays as long as it does. A typed turn does not see what the camera showed: the newest
picture of the last ten seconds goes into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from realtime import pcm
from realtime.chat.formats.text import result_text, tagged_instruction, words_of
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
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
from realtime.core.settings import TurnDetection, check_count
from realtime.errors import UserError
from realtime.wire.base import WireStatistics
from realtime.wire.gemini_decode import GeminiDecoder
from realtime.wire.json_fields import JsonObject, dump_message, encode_base64

__all__ = ["GeminiOptions", "GeminiWire"]

_MAX_AUDIO_BYTES: Final = 128_000  # four seconds at 16 kHz
_PICTURE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiOptions:
    """What a Gemini model is told besides what every session says. None: the provider's default."""

    model: str
    """Its name; ``models/`` is put before it."""
    voice: str | None = None
    """Where the agent names none."""
    language: str | None = None
    """BCP 47, such as `en-US`; what it speaks."""
    temperature: float | None = None
    """How freely it chooses its words."""
    max_output_tokens: int | None = None
    """Of one response."""
    turn_coverage: Literal["activity", "all"] | None = None
    """Which video a spoken turn includes: that shown while the user spoke, or all since the last turn."""
    compress_context: bool = False
    """Gemini shortens its context itself when it is full."""
    input_rate_hz: int = 16_000
    """Rate of the audio sent."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_count("max_output_tokens", self.max_output_tokens, least=1, none_is="the provider's default")


class GeminiWire:
    """The wire format of one connection to Gemini Live."""

    def __init__(self, options: GeminiOptions, *, prefix: str) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            prefix: What the ids that Gemini does not give begin with; another one for each connection.
        """
        self._options = options
        self._decoder = GeminiDecoder(prefix)
        self._encoded = 0
        self._setup: JsonObject | None = None
        self._is_manual = False
        self._is_active = False
        self._has_typed = False
        self._sent_bytes = 0
        self._newest: tuple[ImageContent, float] | None = None

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: Gemini cannot do it. Nothing was changed.
        """
        messages: list[str | bytes] = [dump_message(message) for message in self._messages(command)]
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

    def _messages(self, command: LinkCommand) -> list[JsonObject]:
        match command:
            case ConfigureSession():
                return self._configure(command)
            case AppendAudio():
                return self._append(command.pcm)
            case CommitAudio():
                return self._commit()
            case ClearAudio():
                raise UserError("Gemini cannot throw away audio that it has heard")
            case CreateItem():
                return self._create(command)
            case CreateResponse():
                return self._respond(command)
            case CancelResponse():
                return []  # it stops when the user speaks; until then its output is dropped here
            case DeleteItem():
                raise UserError("Gemini cannot delete a part of its conversation")
            case TruncateItem():
                raise UserError("Gemini cannot cut a spoken item to what was heard")
            case _:
                assert_never(command)

    # -- setting up -------------------------------------------------------------------------------------------------

    def _configure(self, command: ConfigureSession) -> list[JsonObject]:
        setup = self.setup(command)
        if self._setup is not None:
            if setup != self._setup:
                raise UserError("Gemini cannot be configured anew while it is connected: it needs another connection")
            return []
        self._setup = setup
        self._is_manual = command.turn_detection.mode == "manual"
        return [{"setup": setup}]

    def setup(self, command: ConfigureSession) -> JsonObject:
        """What a connection is set up with."""
        options = self._options
        name = options.model if "/" in options.model else f"models/{options.model}"
        generation: JsonObject = {"responseModalities": [command.output.upper()]}
        speech: JsonObject = {}
        voice = command.voice or options.voice
        if voice is not None:
            speech["voiceConfig"] = {"prebuiltVoiceConfig": {"voiceName": voice}}
        if options.language is not None:
            speech["languageCode"] = options.language
        if speech:
            generation["speechConfig"] = speech
        if options.temperature is not None:
            generation["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            generation["maxOutputTokens"] = options.max_output_tokens
        setup: JsonObject = {"model": name, "generationConfig": generation}
        if command.instructions:
            setup["systemInstruction"] = {"parts": [{"text": command.instructions}], "role": "user"}
        if command.tools:
            setup["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in command.tools]}]
        if command.transcription is not None:
            setup["inputAudioTranscription"] = {}
        if command.output == "audio":
            setup["outputAudioTranscription"] = {}
        realtime_input = _realtime_input(command.turn_detection, options.turn_coverage)
        if realtime_input:
            setup["realtimeInputConfig"] = realtime_input
        if options.compress_context:
            setup["contextWindowCompression"] = {"slidingWindow": {}}
        return setup

    # -- sound ------------------------------------------------------------------------------------------------------

    def _append(self, data: bytes) -> list[JsonObject]:
        # hot path: fifty times a second
        rate_hz = self._options.input_rate_hz
        messages: list[JsonObject] = []
        if self._is_manual and not self._is_active:
            self._is_active = True
            messages.append({"realtimeInput": {"activityStart": {}}})
        for at in range(0, len(data), _MAX_AUDIO_BYTES):
            chunk = encode_base64(data[at : at + _MAX_AUDIO_BYTES])
            messages.append({"realtimeInput": {"audio": {"data": chunk, "mimeType": f"audio/pcm;rate={rate_hz}"}}})
        self._sent_bytes += len(data)
        self._decoder.sent_ms = pcm.bytes_to_ms(self._sent_bytes, rate_hz)
        self._decoder.expects_speech = True
        return messages

    def _commit(self) -> list[JsonObject]:
        if not self._is_manual:
            return [{"realtimeInput": {"audioStreamEnd": True}}]
        if not self._is_active:
            return []
        self._is_active = False
        return [{"realtimeInput": {"activityEnd": {}}}]

    # -- words and pictures -----------------------------------------------------------------------------------------

    def _create(self, command: CreateItem) -> list[JsonObject]:
        message = command.message
        if message.is_frame:
            self._newest = (message.images[0], message.created_at or 0.0)
            return [{"realtimeInput": {"video": _blob(message.images[0])}}]
        if message.is_result and message.tool_call_id in self._decoder.calls:
            return [{"toolResponse": {"functionResponses": [self._result(message)]}}]
        turns = _turns(message)
        if not turns:
            return []
        if message.role == ChatRole.USER:
            self._has_typed = True
            picture = self._recent_picture(message)
            if picture is not None:
                turns[0]["parts"].insert(0, {"inlineData": _blob(picture)})
        return [{"clientContent": {"turns": turns, "turnComplete": False}}]

    def _recent_picture(self, message: ChatMessage) -> ImageContent | None:
        newest, self._newest = self._newest, None
        if newest is None or message.images or not message.content:
            return None
        is_recent = message.created_at is None or message.created_at - newest[1] <= _PICTURE_SECONDS
        return newest[0] if is_recent else None

    def _result(self, message: ChatMessage) -> JsonObject:
        key = "error" if message.is_error else "output"
        response: JsonObject = {
            "id": message.tool_call_id,
            "name": message.tool_name or self._decoder.calls[message.tool_call_id],
            "response": {key: result_text(message)},
        }
        if message.images:
            response["parts"] = [{"inlineData": _blob(image)} for image in message.images]
        return response

    def _respond(self, command: CreateResponse) -> list[JsonObject]:
        """A typed turn is complete. What was said, and what a tool gave, is answered without being asked."""
        if not self._has_typed:
            return []
        self._has_typed = False
        self._decoder.metadata = dict(command.metadata)
        self._decoder.expects_speech = False
        return [{"clientContent": {"turnComplete": True}}]


def _declaration(tool: Any) -> JsonObject:
    declaration: JsonObject = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):
        declaration["parametersJsonSchema"] = dict(tool.parameters)
    return declaration


def _realtime_input(settings: TurnDetection, coverage: Literal["activity", "all"] | None) -> JsonObject:
    if settings.mode == "semantic":
        raise UserError("Gemini has one turn detection of its own: use mode 'server' or 'manual'")
    if not settings.create_response and settings.mode != "manual":
        raise UserError("Gemini answers every turn that it hears: create_response=False needs mode 'manual'")
    detection: JsonObject = {}
    if settings.mode == "manual":
        detection["disabled"] = True
    else:
        if settings.silence_ms is not None:
            detection["silenceDurationMs"] = settings.silence_ms
        if settings.prefix_padding_ms is not None:
            detection["prefixPaddingMs"] = settings.prefix_padding_ms
        if settings.threshold is not None:
            level = "LOW" if settings.threshold > 0.5 else "HIGH"
            detection["startOfSpeechSensitivity"] = f"START_SENSITIVITY_{level}"
    config: JsonObject = {"automaticActivityDetection": detection} if detection else {}
    if not settings.interrupt_response:
        config["activityHandling"] = "NO_INTERRUPTION"
    if coverage is not None:
        covers = {"activity": "TURN_INCLUDES_ONLY_ACTIVITY", "all": "TURN_INCLUDES_ALL_INPUT"}
        config["turnCoverage"] = covers[coverage]
    return config


def _turns(message: ChatMessage) -> list[JsonObject]:
    """A message as turns of the conversation; an earlier tool round as text that can be read."""
    if message.is_result:
        name = message.tool_name or message.tool_call_id or "a tool"
        parts: list[JsonObject] = [{"text": f"[{name} gave: {result_text(message)}]"}]
        return [{"role": "user", "parts": parts + [{"inlineData": _blob(image)} for image in message.images]}]
    text = words_of(message)
    if message.audio is not None and not text:
        raise UserError("Gemini takes no earlier audio, and this message has no transcript")
    if message.is_instruction and text:
        text = tagged_instruction(text)
    is_model = message.role == ChatRole.ASSISTANT
    parts = [{"text": text}] if text else []
    calls = [{"text": f"[called {call.name}({call.arguments})]"} for call in message.tool_calls]
    pictures = [{"inlineData": _blob(image)} for image in message.images]
    if is_model:
        turns: list[JsonObject] = [{"role": "model", "parts": parts + calls}] if parts or calls else []
        return turns + ([{"role": "user", "parts": pictures}] if pictures else [])
    return [{"role": "user", "parts": pictures + parts}] if pictures or parts else []


def _blob(image: ImageContent) -> JsonObject:
    if not image.is_embedded:
        raise UserError("Gemini Live takes pictures as data, not by address: fetch it first (ImageContent.from_bytes)")
    return {"data": encode_base64(image.data), "mimeType": image.mime_type}
