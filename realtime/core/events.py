"""What a session tells the application.

Owns: the closed union `SessionEvent`. Each happened already; when an event arrives, `RealtimeSession.context` and
`all_messages()` are at least that far along. Applications import them from `realtime.events`. Never acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from realtime.chat.messages import AgentHandoff, ChatMessage, ChatRole
from realtime.core.model_events import TokenUsage

__all__ = [
    "ApprovalRequested",
    "AudioReceived",
    "ConnectionDropped",
    "ContextSummarized",
    "DtmfReceived",
    "ErrorReported",
    "FrameKept",
    "FrameSkipped",
    "HandedOff",
    "InputRejected",
    "KeepReason",
    "MessageChanged",
    "MessageCommitted",
    "MessagesRemoved",
    "Reconnected",
    "RemovalReason",
    "ReplyInterrupted",
    "ReplyStarted",
    "SessionEnded",
    "SessionEvent",
    "SkipReason",
    "SpeechStarted",
    "SpeechStopped",
    "ToolCalled",
    "ToolFinished",
    "TrackEnded",
    "TranscriptUpdated",
    "TranscriptionFailed",
    "TurnCompleted",
    "TurnLatency",
]

KeepReason = Literal["first", "schedule", "max_gap", "end_of_turn", "look"]
"""Why a frame was kept: the first of its source; its time in the schedule had come and it differed; nothing had been
kept for `max_gap_seconds`; the user's turn ended; somebody asked for it."""
SkipReason = Literal["not_due", "unchanged", "stale", "encode_failed", "replaced", "image_limit", "closed"]
"""Why a frame was not kept: too soon; too alike; waited too long; could not be encoded; a newer one took its place;
the session keeps and sends no more pictures (`UsageLimits`, memory cap); the session is over, or the model that speaks now
takes no pictures."""
RemovalReason = Literal[
    "image_budget", "image_every_n", "window", "summary", "history_limit", "memory_limit", "rejected"
]
"""Why messages left: the picture budget; `retain_images_every_n`; the context window; a digest took their place; the
history's length; the memory cap; the provider refused them. `window` and `summary` leave the context only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted:
    """The user began to speak."""

    message_id: str
    """The message that this speech will become."""
    at_ms: int
    """Where in the input audio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStopped:
    """The user stopped speaking."""

    message_id: str
    """The message that this speech will become."""
    at_ms: int
    """Where in the input audio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptUpdated:
    """The transcript of either side grew or became final."""

    message_id: str
    """Whose."""
    role: ChatRole
    """USER or ASSISTANT."""
    delta: str
    """What was added; empty when only its finality or an earlier word changed."""
    text: str
    """The whole transcript so far."""
    final: bool
    """True: it will not change any more (a reply may still be cut to what is heard)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCommitted:
    """A message joined the history and the context."""

    message: ChatMessage
    """The message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChanged:
    """A message in the history changed: its audio or picture was evicted, a reply was cut."""

    message: ChatMessage
    """As it is now."""
    reason: Literal["audio_budget", "image_budget", "image_every_n", "memory_limit", "interrupted", "late_result"]
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRemoved:
    """Messages left the context (and, unless `window` or `summary` took them, the history)."""

    message_ids: tuple[str, ...]
    """Which, oldest first."""
    reason: RemovalReason
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameKept:
    """A frame was kept, encoded and sent."""

    message_id: str
    """Its message."""
    source: str
    """Which camera or screen."""
    reason: KeepReason
    """Why this frame."""
    captured_at: float
    """When it was captured, on the session's clock, in seconds."""
    age_ms: int
    """How old it was when it was sent."""
    width: int
    """Of the encoded picture, in pixels."""
    height: int
    """Of the encoded picture, in pixels."""
    byte_length: int
    """Of the encoded picture."""
    source_width: int = 0
    """Of the frame before it was encoded, as displayed, in pixels; 0: unknown. The default options stretch it."""
    source_height: int = 0
    """Of the frame before it was encoded, as displayed, in pixels; 0: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSkipped:
    """A frame that had been due was not kept. Frames that were not due are only counted (`statistics()`)."""

    source: str
    """Which camera or screen."""
    reason: SkipReason
    """Why not."""
    captured_at: float
    """When it was captured, on the session's clock, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStarted:
    """The model began a reply."""

    reply_id: str
    """Its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioReceived:
    """A chunk of spoken reply arrived from the model (it is played by the reply track on its own)."""

    reply_id: str
    """Whose."""
    pcm: bytes
    """PCM16 mono."""
    rate_hz: int
    """Its sample rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyInterrupted:
    """A reply was cut short."""

    reply_id: str
    """Which."""
    cause: Literal["barge_in", "interrupt", "connection", "close", "hand_off", "provider"]
    """By whom."""
    heard_ms: int
    """How much of it was heard."""
    heard: str
    """What was heard of its text."""
    unheard: str
    """What was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLatency:
    """How long a turn's steps took, in milliseconds from the end of the user's speech (or of `send`). None: not met."""

    transcript_ms: int | None = None
    """To the final transcript."""
    response_ms: int | None = None
    """To the start of the response."""
    first_audio_ms: int | None = None
    """To the first reply audio from the model."""
    first_played_ms: int | None = None
    """To the first reply audio taken by the listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """A reply is over: done and played out, or cut."""

    reply_id: str
    """Which."""
    messages: tuple[ChatMessage, ...]
    """The reply's messages, tool rounds included."""
    interrupted: bool
    """True if it was cut."""
    usage: TokenUsage | None
    """What it cost, where the provider says so."""
    latency: TurnLatency
    """How long its steps took."""

    @property
    def text(self) -> str:
        """What the model said in it, without tool calls and results; of a cut reply, what was heard."""
        said = (message.content for message in self.messages if message.role is ChatRole.ASSISTANT)
        return " ".join(words for words in said if words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model called a tool."""

    message_id: str
    """The message that the call stands in; it never comes again, as a provider's call id may."""
    call_id: str
    """The call."""
    name: str
    """Which tool."""
    arguments: str
    """As the model wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool call was answered."""

    message_id: str
    """The message of the result."""
    call_id: str
    """The call."""
    name: str
    """Which tool."""
    output: str
    """What the model is told."""
    is_error: bool
    """True if it failed, was refused, cancelled or timed out."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A tool that needs approval was called; answer with `RealtimeSession.approve(call_id, ok)`."""

    call_id: str
    """The call."""
    name: str
    """Which tool."""
    arguments: str
    """As the model wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRejected:
    """Something that was sent did not reach the provider's conversation; it left the history."""

    message_id: str
    """Which message; empty if it never became one."""
    reason: str
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionFailed:
    """The user's speech could not be transcribed; the turn is recorded without words."""

    message_id: str
    """Which message."""
    code: str
    """The provider's code."""
    detail: str
    """The provider's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSummarized:
    """Older messages of the context were replaced by a digest."""

    message: ChatMessage
    """The digest."""
    digested: tuple[str, ...]
    """The ids of the messages that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOff:
    """Another agent took over."""

    handoff: AgentHandoff
    """From whom, to whom and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackEnded:
    """A track gave its last frame."""

    source: str
    """Which."""
    kind: str
    """`audio` or `video`."""
    error: BaseException | None
    """Why, if it did not end by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DtmfReceived:
    """The caller pressed a key of the telephone."""

    source: str
    """The name of the call's track."""
    digit: str
    """One of `0`–`9`, `*`, `#`, `A`–`D`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDropped:
    """The connection to the provider was lost."""

    reason: str
    """Why, in words."""
    will_retry: bool
    """True: the session tries to come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected:
    """The connection to the provider is back."""

    state_restored: bool
    """True: the provider holds the conversation again, whole; False: only what is in the window."""
    gap_ms: int
    """How long it was away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReported:
    """Something went wrong and the session goes on."""

    error: BaseException
    """What."""
    where: str
    """Which part noticed, such as `model`, `tool get_weather` or `track camera`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """The last event of a session, exactly once."""

    reason: Literal["closed", "error", "usage_limit", "link_lost"]
    """Why."""
    error: BaseException | None
    """What, if not by the application's wish."""


SessionEvent = (
    SpeechStarted
    | SpeechStopped
    | TranscriptUpdated
    | MessageCommitted
    | MessageChanged
    | MessagesRemoved
    | FrameKept
    | FrameSkipped
    | ReplyStarted
    | AudioReceived
    | ReplyInterrupted
    | TurnCompleted
    | ToolCalled
    | ToolFinished
    | ApprovalRequested
    | InputRejected
    | TranscriptionFailed
    | ContextSummarized
    | HandedOff
    | TrackEnded
    | DtmfReceived
    | ConnectionDropped
    | Reconnected
    | ErrorReported
    | SessionEnded
)
