"""What a model reported, in words that no provider owns.

Owns: the closed union `ModelEvent`, the input of `SessionMachine.receive_model_event`. `wire/` makes them, the core
reads them. Never acts. Times in audio (`*_ms`) are integer milliseconds since the connection's first audio sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from realtime.chat.conversation import TokenUsage

__all__ = [
    "ConversationSaved",
    "ExpiryAnnounced",
    "InputBufferCleared",
    "InputCommitted",
    "InputTranscriptDone",
    "InputTranscriptFailed",
    "InputTranscriptUpdated",
    "ItemAdded",
    "ItemDeleted",
    "ItemKind",
    "ItemTruncated",
    "ModelEvent",
    "ModelFault",
    "OutputAudio",
    "OutputItemDone",
    "OutputItemStarted",
    "OutputTextDone",
    "OutputTextUpdated",
    "OutputWords",
    "ResponseEnded",
    "ResponseStarted",
    "ResponseStatus",
    "SessionReady",
    "SessionUpdated",
    "SpeechBegan",
    "SpeechEnded",
    "ThinkingUpdated",
    "TokenUsage",
    "ToolCallDone",
    "UnknownReport",
]

ItemKind = Literal["message", "function_call", "function_call_output"]
ResponseStatus = Literal["completed", "cancelled", "failed", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReady:
    """The provider opened its session: the first message of a connection."""

    session_id: str = ""
    """The provider's id of it."""
    expires_in_seconds: float | None = None
    """How long the provider will keep this connection, if it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdated:
    """The provider accepted a `ConfigureSession`."""

    resumed: bool = False
    """The provider took an earlier conversation up again by its own means: it need not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryAnnounced:
    """The provider will end this connection soon, whatever it said when it opened it."""

    seconds_left: float
    """How soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSaved:
    """The provider could take its conversation up again as it is now, on another connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechBegan:
    """The provider's turn detection heard the user begin to speak."""

    item_id: str
    """The item that this speech will become."""
    at_ms: int
    """Where in the input audio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEnded:
    """The provider's turn detection heard the user stop."""

    item_id: str
    """The item that this speech will become."""
    at_ms: int
    """Where in the input audio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCommitted:
    """The input audio so far became an item."""

    item_id: str
    """The item that it became."""
    previous_item_id: str | None = None
    """The item before it, None if it is the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBufferCleared:
    """The uncommitted input audio was thrown away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAdded:
    """An item joined the provider's conversation. Reported once per item; a second report only repeats it."""

    item_id: str
    """Its id; ours if we gave one."""
    kind: ItemKind
    """What it is."""
    role: str | None = None
    """`system`, `user` or `assistant`, for messages."""
    previous_item_id: str | None = None
    """The item that it stands behind; None: at the front, or the provider does not say (`has_place`)."""
    has_place: bool = True
    """False if the provider did not say where; it then stands at the end."""
    call_id: str | None = None
    """The call, for function calls and their outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDeleted:
    """An item left the provider's conversation."""

    item_id: str
    """Which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTruncated:
    """A spoken item was cut in the provider's conversation."""

    item_id: str
    """Which."""
    audio_end_ms: int
    """How much of its audio remains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTranscriptUpdated:
    """The transcript of a user's spoken item grew."""

    item_id: str
    """Which item."""
    content_index: int = 0
    """Which of its parts."""
    delta: str = ""
    """What was added; ignored if `text` is given."""
    text: str | None = None
    """The whole transcript so far, where the provider sends it cumulatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTranscriptDone:
    """The transcript of a user's spoken item is final."""

    item_id: str
    """Which item."""
    content_index: int = 0
    """Which of its parts."""
    text: str = ""
    """The whole transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTranscriptFailed:
    """The user's speech could not be transcribed."""

    item_id: str
    """Which item."""
    code: str = ""
    """The provider's code."""
    message: str = ""
    """The provider's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStarted:
    """The model began a response."""

    response_id: str
    """Its id."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """What we sent with `CreateResponse`, if the provider echoes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseEnded:
    """A response is over, whatever its outcome."""

    response_id: str
    """Its id."""
    status: ResponseStatus = "completed"
    """How it ended."""
    reason: str = ""
    """Why, if it did not complete: `turn_detected`, `client_cancelled`, `max_output_tokens`, …"""
    usage: TokenUsage | None = None
    """What it cost, if the provider says so."""
    error_code: str = ""
    """The provider's code, if it failed."""
    error_message: str = ""
    """The provider's words, if it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputItemStarted:
    """A response began a message or a function call."""

    response_id: str
    """Whose."""
    item_id: str
    """The item."""
    kind: ItemKind
    """`message` or `function_call`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAudio:
    """A chunk of spoken reply."""

    response_id: str
    """Whose."""
    item_id: str
    """Which item."""
    content_index: int = 0
    """Which of its parts."""
    pcm: bytes = b""
    """PCM16 mono at `ModelCapabilities.output_rate_hz`; always whole samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTextUpdated:
    """Text of a reply grew."""

    response_id: str
    """Whose."""
    item_id: str
    """Which item."""
    content_index: int = 0
    """Which of its parts."""
    delta: str = ""
    """What was added."""
    spoken: bool = False
    """True: the transcript of spoken audio; False: text output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTextDone:
    """Text of one part of a reply is final."""

    response_id: str
    """Whose."""
    item_id: str
    """Which item."""
    content_index: int = 0
    """Which of its parts."""
    text: str = ""
    """The whole text of the part."""
    spoken: bool = False
    """True: the transcript of spoken audio; False: text output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWords:
    """When words of a spoken reply sound, where the provider or synthesizer knows."""

    response_id: str
    """Whose."""
    item_id: str
    """Which item."""
    words: tuple[tuple[str, int], ...]
    """Each word (with the white space before it) and the millisecond of the item's audio at which it has been said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingUpdated:
    """The model thought aloud; never part of a transcript."""

    response_id: str
    """Whose."""
    item_id: str
    """Which item."""
    delta: str
    """What was added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDone:
    """The model asked for a tool, its arguments complete."""

    response_id: str
    """Whose response."""
    item_id: str
    """The item of the call."""
    call_id: str
    """The call."""
    name: str
    """Which tool."""
    arguments: str
    """Its arguments as the model wrote them: JSON, if the model behaves."""
    provider_data: Mapping[str, object] = field(default_factory=dict[str, object])
    """What must be carried back unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputItemDone:
    """An output item is complete."""

    response_id: str
    """Whose."""
    item_id: str
    """Which."""
    provider_data: Mapping[str, object] = field(default_factory=dict[str, object])
    """What must be carried with the message within this session (an OpenAI message's `phase`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFault:
    """The provider reported an error."""

    message: str
    """Its words."""
    code: str = ""
    """Its code."""
    param: str = ""
    """The field that it blames."""
    command_id: str | None = None
    """The command that caused it, if the provider says so."""
    fatal: bool = False
    """The connection cannot go on (a handshake refused, a key expired)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownReport:
    """A wire message of a type that this version does not know. Counted, otherwise ignored."""

    type: str
    """The provider's name for it."""


ModelEvent = (
    SessionReady
    | SessionUpdated
    | ExpiryAnnounced
    | ConversationSaved
    | SpeechBegan
    | SpeechEnded
    | InputCommitted
    | InputBufferCleared
    | ItemAdded
    | ItemDeleted
    | ItemTruncated
    | InputTranscriptUpdated
    | InputTranscriptDone
    | InputTranscriptFailed
    | ResponseStarted
    | ResponseEnded
    | OutputItemStarted
    | OutputAudio
    | OutputTextUpdated
    | OutputTextDone
    | OutputWords
    | ThinkingUpdated
    | ToolCallDone
    | OutputItemDone
    | ModelFault
    | UnknownReport
)
