"""Azure's Voice Live: OpenAI's older event names, and a flat session of its own.

Owns: `VoiceLiveOptions` and `VoiceLiveWire`. Driven by `pipelines/link.py`, one instance per connection. What differs from
`wire/openai.py`, by learn.microsoft.com ("How to use the Voice Live API", API version 2026-04-10) and the types of
`azure-ai-voicelive`:

- the session is flat: `modalities`, `input_audio_format`, `input_audio_transcription`, `turn_detection`, `voice {type, name}`;
- events have the names from before the GA protocol, and text that the model said goes back as ``text``;
- turns are told by meaning with ``azure_semantic_vad``, for every model; noise and echo are taken out by the service;
- Azure's voices say when each word sounds, and a warning, which is no error, is counted among what is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from realtime.core.commands import ConfigureSession, CreateItem
from realtime.core.model_events import ModelEvent, OutputWords, UnknownReport
from realtime.core.settings import TurnDetection, check_count, check_number
from realtime.errors import ArgumentError
from realtime.wire.json_fields import JsonObject, count_of, object_of, required_text, text_of
from realtime.wire.openai import OpenAIOptions, OpenAIWire
from realtime.wire.openai_client_events import ItemCreateEvent
from realtime.wire.openai_decode import OpenAIDecoder
from realtime.wire.openai_shapes import SessionConfig

__all__ = ["VoiceLiveDecoder", "VoiceLiveOptions", "VoiceLiveWire"]

_AZURE_VOICE: Final = re.compile(r"^[a-z]{2,3}(-[A-Za-z]{2,4})+-")
"""Azure's own voices are named by their locale (``en-US-AvaNeural``); OpenAI's by one word."""
_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "noise_reduction": ("azure_deep_noise_suppression", "near_field", "far_field", None),
    "tool_choice": ("auto", "none", "required", None),
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", None),
    "voice_type": ("openai", "azure-standard", "azure-realtime-native", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceLiveOptions:
    """What a Voice Live model is told besides what every session says. None: the provider's default."""

    voice: str | None = None
    """Where the agent names none: an Azure voice such as ``en-US-Ava:DragonHDLatestNeural``, or one of OpenAI's."""
    voice_type: Literal["openai", "azure-standard", "azure-realtime-native"] | None = None
    """Whose voice that is; None: told by its name."""
    voice_temperature: float | None = None
    """How lively an HD voice of Azure's is, 0 to 1."""
    speed: float | None = None
    """Of Azure's voices, 0.5 to 1.5."""
    transcription_model: str = "azure-speech"
    """Where the session says `auto`."""
    transcription_language: str | None = None
    """BCP 47, such as `en-US`, or several with commas between."""
    phrases: tuple[str, ...] = ()
    """Names and words that Azure's transcription should know."""
    noise_reduction: Literal["azure_deep_noise_suppression", "near_field", "far_field"] | None = None
    """What is taken out of the input audio."""
    echo_cancellation: bool = False
    """The service takes the model's own voice out of the input audio."""
    remove_filler_words: bool = False
    """“Um” and “uh” do not interrupt (`TurnDetection(mode="semantic")`)."""
    multilingual: bool = False
    """Meaning is told in ten languages rather than in English (`TurnDetection(mode="semantic")`)."""
    tool_choice: Literal["auto", "none", "required"] | None = None
    """Whether tools may or must be called."""
    parallel_tool_calls: bool | None = None
    """Whether several tools may be called at once."""
    max_output_tokens: int | None = None
    """Of one response."""
    temperature: float | None = None
    """How freely the model chooses its words, 0 to 2."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How long the model thinks (reasoning models only)."""
    input_rate_hz: int = 24_000
    """Rate of the audio sent: 16,000 or 24,000."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_number("voice_temperature", self.voice_temperature, most=1.0, none_is="the provider's default")
        check_number("temperature", self.temperature, most=2.0, none_is="the provider's default")
        check_number("speed", self.speed, least=0.5, most=1.5, none_is="the provider's default")
        check_count("max_output_tokens", self.max_output_tokens, least=1, none_is="the provider's default")
        object.__setattr__(self, "phrases", tuple(self.phrases))
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ArgumentError(name, getattr(self, name), "one of " + ", ".join(map(repr, allowed)))
        if self.input_rate_hz not in (16_000, 24_000):
            raise ArgumentError("input_rate_hz", self.input_rate_hz, "16000 or 24000")


class VoiceLiveDecoder(OpenAIDecoder):
    """The reading half of one connection."""

    ignored: ClassVar[frozenset[str]] = OpenAIDecoder.ignored | {
        "response.audio_timestamp.done",
        "response.animation_blendshapes.delta",
        "response.animation_blendshapes.done",
        "response.animation_viseme.delta",
        "response.animation_viseme.done",
        "response.audio_transcript.annotation.added",
        "session.avatar.connecting",
        "session.avatar.switch_to_speaking",
        "session.avatar.switch_to_idle",
    }

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """OpenAI's, and what differs."""
        return {**super().handlers(), "response.audio_timestamp.delta": self._word, "warning": self._warning}

    def _word(self, message: JsonObject) -> list[ModelEvent]:
        said_at = count_of(message, "audio_offset_ms") + count_of(message, "audio_duration_ms")
        return [
            OutputWords(
                response_id=required_text(message, "response_id"),
                item_id=required_text(message, "item_id"),
                words=((required_text(message, "text"), said_at),),
            )
        ]

    def _warning(self, message: JsonObject) -> list[ModelEvent]:
        name = f"warning {text_of(object_of(message, 'warning'), 'code')[:60]}".rstrip()
        self.unknown.add(name)
        return [UnknownReport(type=name)]


class VoiceLiveWire(OpenAIWire):
    """The wire format of one connection to Voice Live."""

    def __init__(self, options: VoiceLiveOptions | None = None, *, wall: float | None = None) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            wall: The time of day now, in seconds since the epoch, to count the provider's `expires_at` from.
        """
        self._live = options or VoiceLiveOptions()
        shared = OpenAIOptions(input_rate_hz=self._live.input_rate_hz)
        super().__init__(shared, wall=wall, decoder=VoiceLiveDecoder(wall=wall))

    def _create(self, command: CreateItem) -> list[ItemCreateEvent]:
        events = super()._create(command)
        for event in events:
            for part in event["item"].get("content", []):
                if part["type"] == "output_text":
                    part["type"] = "text"
        return events

    def session_config(self, command: ConfigureSession) -> SessionConfig:
        """The whole configuration, in Voice Live's shape."""
        options = self._live
        config: JsonObject = {
            "modalities": ["text", "audio"] if command.output == "audio" else ["text"],
            "instructions": command.instructions,
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm16",
            "input_audio_sampling_rate": options.input_rate_hz,
            "input_audio_transcription": self._transcription(command),
            "turn_detection": self._turn_detection(command.turn_detection),
            "tools": super().session_config(command).get("tools", []),
        }
        if options.noise_reduction is not None:
            config["input_audio_noise_reduction"] = {"type": options.noise_reduction}
        if options.echo_cancellation:
            config["input_audio_echo_cancellation"] = {"type": "server_echo_cancellation"}
        voice = self._voice(command.voice or options.voice)
        if voice is not None:
            if not self._decoder.responses.has_spoken:  # as with OpenAI: one that was heard stays
                config["voice"] = voice
            if voice["type"] != "openai":
                config["output_audio_timestamp_types"] = ["word"]
        named: dict[str, Any] = {
            "tool_choice": options.tool_choice,
            "parallel_tool_calls": options.parallel_tool_calls,
            "max_response_output_tokens": options.max_output_tokens,
            "temperature": options.temperature,
            "reasoning_effort": options.reasoning_effort,
        }
        config.update({name: value for name, value in named.items() if value is not None})
        return config  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  (another shape of the same)

    def _voice(self, name: str | None) -> JsonObject | None:
        if name is None:
            return None
        options = self._live
        kind = options.voice_type or ("azure-standard" if _AZURE_VOICE.match(name) else "openai")
        voice: JsonObject = {"type": kind, "name": name}
        if kind == "azure-standard":
            if options.voice_temperature is not None:
                voice["temperature"] = options.voice_temperature
            if options.speed is not None:
                voice["rate"] = f"{options.speed:g}"
        return voice

    def _transcription(self, command: ConfigureSession) -> JsonObject | None:
        if command.transcription is None:
            return None
        options = self._live
        model = options.transcription_model if command.transcription == "auto" else command.transcription
        config: JsonObject = {"model": model}
        if options.transcription_language is not None:
            config["language"] = options.transcription_language
        if options.phrases:
            config["phrase_list"] = [*options.phrases]
        return config

    def _turn_detection(self, settings: TurnDetection) -> JsonObject | None:
        if settings.mode == "manual":
            return None
        options = self._live
        semantic = "azure_semantic_vad_multilingual" if options.multilingual else "azure_semantic_vad"
        config: JsonObject = {
            "type": semantic if settings.mode == "semantic" else "server_vad",
            "create_response": settings.create_response,
            "interrupt_response": settings.interrupt_response,
        }
        named = {
            "threshold": settings.threshold,
            "silence_duration_ms": settings.silence_ms,
            "prefix_padding_ms": settings.prefix_padding_ms,
        }
        config.update({name: value for name, value in named.items() if value is not None})
        if settings.mode == "semantic" and options.remove_filler_words:
            config["remove_filler_words"] = True
        return config
