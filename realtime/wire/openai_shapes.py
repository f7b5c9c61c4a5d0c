"""What the events of OpenAI's Realtime protocol are made of, as typed values.

Owns: the `TypedDict`s of a session's configuration, a conversation item, a response, its usage and an error. The events
that carry them are in `wire/openai_messages.py`. Never acts.
"""

from __future__ import annotations

from typing import Literal, Required, TypedDict

from realtime.wire.json_fields import JsonObject

__all__ = [
    "AudioConfig",
    "AudioFormat",
    "AudioInputConfig",
    "AudioOutputConfig",
    "ContentPart",
    "ErrorDetails",
    "FunctionTool",
    "Item",
    "ItemStatus",
    "Modality",
    "NoiseReduction",
    "RateLimit",
    "Response",
    "ResponseConfig",
    "RetentionRatio",
    "Role",
    "SessionConfig",
    "StatusDetails",
    "ToolChoice",
    "ToolChoiceFunction",
    "TranscriptionConfig",
    "TranscriptionUsage",
    "TurnDetectionConfig",
    "Usage",
    "UsageDetails",
]

Role = Literal["system", "user", "assistant"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]
Modality = Literal["text", "audio"]


class AudioFormat(TypedDict, total=False):
    """How audio is coded: PCM16 mono at `rate` (24,000), or G.711."""

    type: Required[Literal["audio/pcm", "audio/pcmu", "audio/pcma"]]
    rate: int


class TurnDetectionConfig(TypedDict, total=False):
    """Who decides when the user has finished; None in its place is push-to-talk."""

    type: Required[Literal["server_vad", "semantic_vad"]]
    threshold: float
    prefix_padding_ms: int
    silence_duration_ms: int
    idle_timeout_ms: int | None
    eagerness: Literal["low", "medium", "high", "auto"]
    create_response: bool
    interrupt_response: bool


class TranscriptionConfig(TypedDict, total=False):
    """The model that transcribes the user's speech."""

    model: str
    language: str | None
    prompt: str | None


class NoiseReduction(TypedDict):
    """What is taken out of the input audio."""

    type: Literal["near_field", "far_field"]


class AudioInputConfig(TypedDict, total=False):
    """The user's audio."""

    format: AudioFormat
    turn_detection: TurnDetectionConfig | None
    transcription: TranscriptionConfig | None
    noise_reduction: NoiseReduction | None


class AudioOutputConfig(TypedDict, total=False):
    """The model's audio."""

    format: AudioFormat
    voice: str
    speed: float


class AudioConfig(TypedDict, total=False):
    """Both directions of audio."""

    input: AudioInputConfig
    output: AudioOutputConfig


class FunctionTool(TypedDict, total=False):
    """A function that the model may call."""

    type: Required[Literal["function"]]
    name: Required[str]
    description: str
    parameters: JsonObject


class ToolChoiceFunction(TypedDict):
    """Forces one function."""

    type: Literal["function"]
    name: str


ToolChoice = Literal["auto", "none", "required"] | ToolChoiceFunction


class RetentionRatio(TypedDict):
    """Truncation down to a share of the context window at once, which keeps the cache useful for longer."""

    type: Literal["retention_ratio"]
    retention_ratio: float


class SessionConfig(TypedDict, total=False):
    """What `session.update` changes and `session.created` and `session.updated` report."""

    type: Required[Literal["realtime"]]
    object: Literal["realtime.session"]
    id: str
    model: str
    expires_at: int
    instructions: str
    output_modalities: list[Modality]
    audio: AudioConfig
    tools: list[FunctionTool]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    max_output_tokens: int | Literal["inf"]
    truncation: Literal["auto", "disabled"] | RetentionRatio
    reasoning: dict[str, str]


class ContentPart(TypedDict, total=False):
    """A part of a message: text, a picture as a data URL, or audio with its transcript."""

    type: Required[Literal["input_text", "input_image", "input_audio", "output_text", "output_audio", "text", "audio"]]
    text: str
    transcript: str | None
    audio: str
    image_url: str
    detail: Literal["auto", "low", "high"]


class Item(TypedDict, total=False):
    """One entry of the provider's conversation. Which fields it has depends on `type`."""

    type: Required[Literal["message", "function_call", "function_call_output"]]
    id: str
    object: Literal["realtime.item"]
    status: ItemStatus
    role: Role
    phase: str
    content: list[ContentPart]
    call_id: str
    name: str
    arguments: str
    output: str


class ResponseConfig(TypedDict, total=False):
    """What one response does otherwise than its session says."""

    conversation: Literal["auto", "none"]
    instructions: str
    output_modalities: list[Modality]
    audio: AudioConfig
    input: list[Item]
    tools: list[FunctionTool]
    tool_choice: ToolChoice
    max_output_tokens: int | Literal["inf"]
    metadata: dict[str, str] | None


class UsageDetails(TypedDict, total=False):
    """Tokens by kind."""

    text_tokens: int
    audio_tokens: int
    image_tokens: int
    cached_tokens: int


class Usage(TypedDict, total=False):
    """Tokens of one response."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: UsageDetails
    output_token_details: UsageDetails


class ErrorDetails(TypedDict, total=False):
    """What went wrong; `event_id` names the client event that caused it."""

    type: Required[str]
    code: str | None
    message: Required[str]
    param: str | None
    event_id: str | None


class StatusDetails(TypedDict, total=False):
    """Why a response did not complete."""

    type: Literal["completed", "cancelled", "incomplete", "failed"]
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"]
    error: ErrorDetails


class Response(TypedDict, total=False):
    """One generation."""

    id: Required[str]
    object: Literal["realtime.response"]
    status: Required[Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]]
    status_details: StatusDetails | None
    output: list[Item]
    conversation_id: str | None
    output_modalities: list[Modality]
    max_output_tokens: int | Literal["inf"]
    audio: AudioConfig
    usage: Usage | None
    metadata: dict[str, str] | None


class TranscriptionUsage(TypedDict, total=False):
    """What transcribing one turn cost: by duration or by tokens."""

    type: Required[Literal["duration", "tokens"]]
    seconds: float
    total_tokens: int
    input_tokens: int
    output_tokens: int


class RateLimit(TypedDict, total=False):
    """How much of one limit is left."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float
