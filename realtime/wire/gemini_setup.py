"""What a connection to Gemini Live is set up with.

Owns: `GeminiOptions` and `setup_message`. Driven by `wire/gemini.py`. A setup holds as long as its connection does. Never acts.

Facts: ai.google.dev/api/live (`BidiGenerateContentSetup`), and Google's own types (`google.genai.types.LiveClientSetup`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from realtime.core.commands import ConfigureSession
from realtime.core.settings import TurnDetection, check_count, check_number
from realtime.errors import ArgumentError, UserError
from realtime.wire.json_fields import JsonObject

__all__ = ["GeminiOptions", "setup_message"]

_COVERAGE: Final = {
    "activity": "TURN_INCLUDES_ONLY_ACTIVITY",
    "all": "TURN_INCLUDES_ALL_INPUT",
    "audio_activity_and_all_video": "TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO",
}
_CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "turn_coverage": (*_COVERAGE, None),
    "media_resolution": ("low", "medium", "high", None),
    "reasoning_effort": ("minimal", "low", "medium", "high", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiOptions:
    """What a Gemini model is told besides what every session says. None: the provider's default."""

    model: str
    """Its name; ``models/`` is put before it."""
    voice: str | None = None
    """Where the agent names none."""
    language: str | None = None
    """BCP 47, such as `en-US`; what it speaks."""
    transcription_language: str | None = None
    """BCP 47; what the user is expected to speak. None: found out by the provider."""
    temperature: float | None = None
    """How freely it chooses its words, 0 to 2."""
    max_output_tokens: int | None = None
    """Of one response."""
    turn_coverage: Literal["activity", "all", "audio_activity_and_all_video"] | None = None
    """Which video a spoken turn includes: that shown while the user spoke, or all since the last turn."""
    media_resolution: Literal["low", "medium", "high"] | None = None
    """How closely pictures are looked at, and so what they cost."""
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None
    """How long it thinks (Gemini 3 and later)."""
    thinking_budget: int | None = None
    """Tokens that it may think for; 0: none (Gemini 2.5)."""
    truncation: Literal["auto", "disabled"] | float = "auto"
    """`auto`: the context slides when it is full, which also lets a session last longer than 15 minutes (2 with video); a
    number: the share of `context_window` that is kept then; `disabled`: the session ends instead."""
    context_window: int | None = None
    """Tokens, to count that share from."""
    history_first: bool = False
    """An earlier conversation is told as such before anything else, and after it text goes as it is typed (Gemini 3.1 and
    later); otherwise both go as content at any time."""
    input_rate_hz: int = 16_000
    """Rate of the audio sent."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_number("temperature", self.temperature, most=2.0, none_is="the provider's default")
        check_count("max_output_tokens", self.max_output_tokens, least=1, none_is="the provider's default")
        check_count("thinking_budget", self.thinking_budget, none_is="the provider's default")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ArgumentError(name, getattr(self, name), "one of " + ", ".join(map(repr, allowed)))
        if isinstance(self.truncation, str):
            if self.truncation not in ("auto", "disabled"):
                raise ArgumentError("truncation", self.truncation, "'auto', 'disabled' or a share between 0 and 1")
        else:
            check_number("truncation", self.truncation, most=1.0, above=True)
            if self.context_window is None:
                raise ArgumentError(
                    "truncation", self.truncation, "'auto' or 'disabled': the context window is not known"
                )


def setup_message(options: GeminiOptions, command: ConfigureSession) -> JsonObject:
    """The setup of a connection, but for what depends on an earlier one.

    Raises:
        UserError: Gemini cannot take turns so.
    """
    name = options.model if "/" in options.model else f"models/{options.model}"
    setup: JsonObject = {"model": name, "generationConfig": _generation(options, command)}
    if command.instructions:
        setup["systemInstruction"] = {"parts": [{"text": command.instructions}], "role": "user"}
    if command.tools:
        setup["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in command.tools]}]
    if command.transcription is not None:
        language = options.transcription_language
        setup["inputAudioTranscription"] = {} if language is None else {"languageCodes": [language]}
    if command.output == "audio":
        setup["outputAudioTranscription"] = {}
    realtime_input = _realtime_input(command.turn_detection, options.turn_coverage)
    if realtime_input:
        setup["realtimeInputConfig"] = realtime_input
    if options.truncation != "disabled":
        window: JsonObject = {}
        if not isinstance(options.truncation, str):
            assert options.context_window is not None
            window["targetTokens"] = round(options.truncation * options.context_window)
        setup["contextWindowCompression"] = {"slidingWindow": window}
    return setup


def _generation(options: GeminiOptions, command: ConfigureSession) -> JsonObject:
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
    if options.media_resolution is not None:
        generation["mediaResolution"] = f"MEDIA_RESOLUTION_{options.media_resolution.upper()}"
    thinking: JsonObject = {}
    if options.reasoning_effort is not None:
        thinking["thinkingLevel"] = options.reasoning_effort.upper()
    if options.thinking_budget is not None:
        thinking["thinkingBudget"] = options.thinking_budget
    if thinking:
        generation["thinkingConfig"] = thinking
    return generation


def _declaration(tool: Any) -> JsonObject:
    declaration: JsonObject = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):
        declaration["parametersJsonSchema"] = dict(tool.parameters)
    return declaration


def _realtime_input(settings: TurnDetection, coverage: str | None) -> JsonObject:
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
        config["turnCoverage"] = _COVERAGE[coverage]
    return config
