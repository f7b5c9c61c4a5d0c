"""A session's configuration: what `session.update` may change, checked field by field.

Owns: `SessionConfiguration`, `TurnTaking` and the fields that exist. Driven by the session. A value that cannot be
raises with OpenAI's code and the field's full name, and nothing has changed. Never acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from realtime.errors import ModelError
from realtime.local.config_fields import (
    VOICES,
    ToolChoice,
    check_choice_exists,
    choice_to_wire,
    format_to_wire,
    read_format,
    read_max_tokens,
    read_modality,
    read_tool_choice,
    read_tools,
    read_voice,
    tool_to_wire,
)
from realtime.local.endpointing import Eagerness, EndpointingSettings
from realtime.local.fields import (
    Fields,
    check_known,
    missing,
    read_choice,
    read_flag,
    read_number,
    read_object,
    read_text,
    wrong_type,
)
from realtime.local.parts import Tool
from realtime.local.wordlists import word_set
from realtime.wire.openai_messages import SessionConfig, TurnDetectionConfig

__all__ = ["SessionConfiguration", "TurnTaking"]

_SESSION_FIELDS = word_set(
    "type object id model expires_at instructions output_modalities audio tools tool_choice max_output_tokens truncation"
    " parallel_tool_calls reasoning include tracing prompt"
)
_INPUT_FIELDS = ("format", "turn_detection", "transcription", "noise_reduction")
_OUTPUT_FIELDS = ("format", "voice", "speed")
_TURN_FIELDS = word_set(
    "type threshold prefix_padding_ms silence_duration_ms idle_timeout_ms eagerness create_response interrupt_response"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTaking:
    """Who decides when the user has finished, if the server does."""

    endpointing: EndpointingSettings = field(default_factory=EndpointingSettings)
    """How turns are told apart."""
    idle_timeout_ms: int | None = None
    """After so much silence behind a reply the server speaks again; None: never."""
    create_response: bool = True
    """The end of a turn is answered."""
    interrupt_response: bool = True
    """The user's speech stops a running reply."""

    def to_wire(self) -> TurnDetectionConfig:
        """As `session.audio.input.turn_detection`."""
        settings = self.endpointing
        if settings.semantic is not None:
            return TurnDetectionConfig(
                type="semantic_vad",
                eagerness=settings.semantic,
                create_response=self.create_response,
                interrupt_response=self.interrupt_response,
            )
        return TurnDetectionConfig(
            type="server_vad",
            threshold=settings.threshold,
            prefix_padding_ms=settings.prefix_padding_ms,
            silence_duration_ms=settings.silence_ms,
            idle_timeout_ms=self.idle_timeout_ms,
            create_response=self.create_response,
            interrupt_response=self.interrupt_response,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfiguration:
    """Everything that `session.update` can change."""

    instructions: str = ""
    """What the responder is told about its part."""
    modality: Literal["audio", "text"] = "audio"
    """Whether it speaks or writes."""
    input_format: str = "audio/pcm"
    """How the client's audio is coded."""
    output_format: str = "audio/pcm"
    """How the client wants its audio."""
    turn_taking: TurnTaking | None = field(default_factory=TurnTaking)
    """Who decides when the user has finished; None: the client."""
    transcription: Mapping[str, Any] | None = None
    """What the client asked for of transcripts of the user's speech; None: they are not sent."""
    noise_reduction: Mapping[str, Any] | None = None
    """What the client said of its microphone. It is reported back; nothing is done to the audio."""
    voice: str = VOICES[0]
    """The voice's name."""
    speed: float = 1.0
    """The voice's pace."""
    tools: tuple[Tool, ...] = ()
    """What the responder may call."""
    tool_choice: ToolChoice = "auto"
    """Whether it may, must not or must call one."""
    max_output_tokens: int | None = None
    """The longest reply; None: as long as it likes."""
    truncation: Any = "auto"
    """What the client said of truncation. It is reported back; the server truncates by its own bounds."""

    @property
    def language(self) -> str | None:
        """The language of the user's speech, if the client says so."""
        language = (self.transcription or {}).get("language")
        return language if isinstance(language, str) and language else None

    def updated(
        self, session: Fields, *, default_turn_taking: TurnTaking, spoken: bool = False
    ) -> SessionConfiguration:
        """This configuration with what a `session.update` says.

        Args:
            session: Its `session`. What it leaves out stays.
            default_turn_taking: What `turn_detection` has where it says nothing.
            spoken: The model has spoken: its voice can no longer be changed.

        Raises:
            ModelError: A field cannot be; `param` names it.
        """
        check_known(session, _SESSION_FIELDS, "session")
        read_choice(session, "type", "session", ("realtime",))
        audio = read_object(session, "audio", "session")
        check_known(audio, ("input", "output"), "session.audio")
        changes: dict[str, Any] = {
            **self._general(session),
            **self._input(read_object(audio, "input", "session.audio"), default_turn_taking),
            **self._output(read_object(audio, "output", "session.audio"), spoken=spoken),
        }
        changed = replace(self, **changes)
        check_choice_exists(changed.tool_choice, changed.tools, "session.tool_choice")
        return changed

    def to_wire(self, *, session_id: str, model: str, expires_at: int) -> SessionConfig:
        """As the `session` of `session.created` and `session.updated`."""
        return SessionConfig(
            type="realtime",
            object="realtime.session",
            id=session_id,
            model=model,
            output_modalities=[self.modality],
            instructions=self.instructions,
            tools=[tool_to_wire(tool) for tool in self.tools],
            tool_choice=choice_to_wire(self.tool_choice),
            max_output_tokens=self.max_output_tokens or "inf",
            truncation=self.truncation,
            expires_at=expires_at,
            audio={
                "input": {
                    "format": format_to_wire(self.input_format),
                    "transcription": cast("Any", self.transcription),
                    "noise_reduction": cast("Any", self.noise_reduction),
                    "turn_detection": None if self.turn_taking is None else self.turn_taking.to_wire(),
                },
                "output": {
                    "format": format_to_wire(self.output_format),
                    "voice": self.voice,
                    "speed": self.speed,
                },
            },
        )

    def _general(self, session: Fields) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if session.get("instructions") is not None:
            changes["instructions"] = read_text(session, "instructions", "session", empty=True)
        if session.get("output_modalities") is not None:
            changes["modality"] = read_modality(session, "session")
        if session.get("tools") is not None:
            changes["tools"] = read_tools(session, "session")
        if session.get("tool_choice") is not None:
            changes["tool_choice"] = read_tool_choice(session, "session")
        elif "tools" in changes and self.tool_choice.startswith("function:"):
            changes["tool_choice"] = "auto"
        if session.get("max_output_tokens") is not None:
            changes["max_output_tokens"] = read_max_tokens(session, "session")
        if session.get("truncation") is not None:
            changes["truncation"] = _read_truncation(session)
        return changes

    def _input(self, audio: Fields, default: TurnTaking) -> dict[str, Any]:
        param = "session.audio.input"
        check_known(audio, _INPUT_FIELDS, param)
        changes: dict[str, Any] = {}
        if audio.get("format") is not None:
            changes["input_format"] = read_format(audio, param)
        if "turn_detection" in audio:
            changes["turn_taking"] = _read_turn_taking(audio, param, default)
        if "transcription" in audio:
            changes["transcription"] = _read_transcription(audio, param)
        if "noise_reduction" in audio:
            reduction = read_object(audio, "noise_reduction", param)
            if reduction:
                read_choice(reduction, "type", f"{param}.noise_reduction", ("near_field", "far_field"))
            changes["noise_reduction"] = dict(reduction) or None
        return changes

    def _output(self, audio: Fields, *, spoken: bool) -> dict[str, Any]:
        param = "session.audio.output"
        check_known(audio, _OUTPUT_FIELDS, param)
        changes: dict[str, Any] = {}
        if audio.get("format") is not None:
            changes["output_format"] = read_format(audio, param)
        if audio.get("voice") is not None:
            voice = read_voice(audio, param)
            if spoken and voice != self.voice:
                text = "Cannot update a conversation's voice if assistant audio is present."
                raise ModelError(text, code="cannot_update_voice", param=f"{param}.voice")
            changes["voice"] = voice
        if audio.get("speed") is not None:
            changes["speed"] = float(read_number(audio, "speed", param, default=1.0, least=0.25, most=1.5))
        return changes


# -- fields of a session alone ---------------------------------------------------------------------------------------------


def _read_turn_taking(audio: Fields, param: str, default: TurnTaking) -> TurnTaking | None:
    if audio["turn_detection"] is None:
        return None
    param = f"{param}.turn_detection"
    if not isinstance(audio["turn_detection"], dict):
        raise wrong_type(param, audio["turn_detection"], "an object")
    given = cast("Fields", audio["turn_detection"])
    check_known(given, _TURN_FIELDS, param)
    if given.get("type") is None:
        raise missing(f"{param}.type")
    kind = read_choice(given, "type", param, ("server_vad", "semantic_vad"))
    base = default.endpointing
    endpointing = EndpointingSettings(
        threshold=read_number(given, "threshold", param, default=base.threshold, least=0.0, most=1.0),
        prefix_padding_ms=_read_ms(given, "prefix_padding_ms", param, base.prefix_padding_ms, most=10_000),
        silence_ms=_read_ms(given, "silence_duration_ms", param, base.silence_ms, most=60_000),
    )
    if kind == "semantic_vad":
        eagerness = read_choice(given, "eagerness", param, ("low", "medium", "high", "auto"), default="auto")
        endpointing = replace(endpointing, semantic=cast("Eagerness", eagerness))
    idle: int | None = None
    if given.get("idle_timeout_ms") is not None:
        idle = int(read_number(given, "idle_timeout_ms", param, default=0, least=5_000, most=30_000, whole=True))
    return TurnTaking(
        endpointing=endpointing,
        idle_timeout_ms=idle,
        create_response=read_flag(given, "create_response", param, default=True),
        interrupt_response=read_flag(given, "interrupt_response", param, default=True),
    )


def _read_ms(fields: Fields, key: str, param: str, default: int, *, most: int) -> int:
    return int(read_number(fields, key, param, default=default, least=0, most=most, whole=True))


def _read_transcription(audio: Fields, param: str) -> Mapping[str, Any] | None:
    if audio["transcription"] is None:
        return None
    given = read_object(audio, "transcription", param)
    param = f"{param}.transcription"
    check_known(given, ("model", "language", "languages", "prompt", "keywords", "delay"), param)
    return {
        "model": read_text(given, "model", param, default="whisper-1"),
        "language": read_text(given, "language", param, default="", empty=True) or None,
        "prompt": read_text(given, "prompt", param, default="", empty=True) or None,
    }


def _read_truncation(session: Fields) -> Any:
    value = session["truncation"]
    if isinstance(value, dict):
        ratio = cast("Fields", value)
        read_choice(ratio, "type", "session.truncation", ("retention_ratio",))
        if ratio.get("retention_ratio") is None:
            raise missing("session.truncation.retention_ratio")
        read_number(ratio, "retention_ratio", "session.truncation", default=1.0, least=0.0, most=1.0)
        return dict(ratio)
    return read_choice(session, "truncation", "session", ("auto", "disabled"))
