"""What the shells must do, as imperative values.

Owns: two closed unions. `LinkCommand`s go to the provider (`wire/` encodes them, `pipelines/link.py` pulls them when the
socket is writable: control before audio before pictures). `LocalCommand`s are done at once by `pipelines/driver.py`
and the pipelines it serves. Every command has a `command_id`; `SessionMachine.receive_command_done` and
`receive_command_failed` answer link commands. Never acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from realtime.chat.messages import ChatMessage
from realtime.core.settings import Agent, ToolSpec, TurnDetection

__all__ = [
    "AppendAudio",
    "ApproveTool",
    "CancelResponse",
    "CancelTool",
    "ClearAudio",
    "CommitAudio",
    "ConfigureSession",
    "CreateItem",
    "CreateResponse",
    "DeleteItem",
    "DropHeldFrame",
    "EncodeHeldFrame",
    "EndReply",
    "EndSession",
    "LinkCommand",
    "LocalCommand",
    "PlayAudio",
    "RequestSummary",
    "ResumeReply",
    "RunTool",
    "StopReply",
    "SwitchAgent",
    "TruncateItem",
]


# -- to the provider -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureSession:
    """Tell the provider who the agent is and how turns are taken. The first command of every connection."""

    command_id: str
    """Ours; a provider's error may name it."""
    instructions: str = ""
    """What the model is told about its part."""
    tools: tuple[ToolSpec, ...] = ()
    """What it may call."""
    voice: str | None = None
    """Its voice; None: the provider's default."""
    turn_detection: TurnDetection = field(default_factory=TurnDetection)
    """Who decides when the user has finished."""
    transcription: str | None = "auto"
    """The transcription model, `auto` for the provider's default, None for none."""
    output: Literal["audio", "text"] = "audio"
    """Whether the model speaks or writes."""
    earlier_items: int = 0
    """How many `CreateItem`s follow at once that tell an earlier conversation; some providers take them in another way."""


class AppendAudio(NamedTuple):
    """Send input audio. No dataclass, as the others are: one is made fifty times a second, and that takes a third as long."""

    command_id: str
    """Ours."""
    pcm: bytes
    """PCM16 mono at `ModelCapabilities.input_rate_hz`, whole samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAudio:
    """Make the input audio so far an item. Travels in the audio lane, behind its audio."""

    command_id: str
    """Ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearAudio:
    """Throw the uncommitted input audio away. Travels in the audio lane."""

    command_id: str
    """Ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateItem:
    """Put a message, a function call or a function output into the provider's conversation.

    A message with `tool_calls` is created as one item per call (its text, if any, as an item before them); the item ids
    are `item_ids`, in that order.
    """

    command_id: str
    """Ours."""
    message: ChatMessage
    """What to create."""
    item_ids: tuple[str, ...]
    """The id of each item that it makes (see `wire.base.item_count`)."""
    previous_item_id: str | None = None
    """The item to stand behind; None: at the end."""
    lane: Literal["control", "picture"] = "control"
    """Sampled frames travel in the picture lane."""
    source: str = ""
    """The source of a sampled frame; a newer one of the same source replaces one that waits too long."""
    captured_at: float | None = None
    """When a sampled frame was captured, on the session's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteItem:
    """Delete an item from the provider's conversation."""

    command_id: str
    """Ours."""
    item_id: str
    """Which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateItem:
    """Cut a spoken item of the model's to what was heard."""

    command_id: str
    """Ours."""
    item_id: str
    """Which."""
    content_index: int
    """Which of its parts."""
    audio_end_ms: int
    """How much was heard; never more than was received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateResponse:
    """Ask for a response. Never sent while one is active."""

    command_id: str
    """Ours."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """Echoed by providers that can, so that a response is matched to its wish."""
    tool_choice: Literal["auto", "none", "required"] | None = None
    """Overrides the session's; `none` when the turn's tool calls are used up (behaviour.md T4)."""
    instructions: str | None = None
    """Overrides the session's, for this response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelResponse:
    """Stop the running response."""

    command_id: str
    """Ours."""
    response_id: str
    """Which."""


LinkCommand = (
    ConfigureSession
    | AppendAudio
    | CommitAudio
    | ClearAudio
    | CreateItem
    | DeleteItem
    | TruncateItem
    | CreateResponse
    | CancelResponse
)


# -- to our own shells -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayAudio:
    """Queue reply audio on the reply track and for `stream_audio()` readers."""

    command_id: str
    """Ours."""
    reply_id: str
    """Whose audio; positions are counted per reply."""
    pcm: bytes
    """PCM16 mono at `ModelCapabilities.output_rate_hz`, whole samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReply:
    """No more audio of this reply will come; report its end when the queue has been played out."""

    command_id: str
    """Ours."""
    reply_id: str
    """Which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReply:
    """Throw away what is queued of this reply; the next frame of the reply track is silence (behaviour.md P3)."""

    command_id: str
    """Ours."""
    reply_id: str
    """Which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeReply:
    """Go on playing a reply from where it was stopped (a false interruption)."""

    command_id: str
    """Ours."""
    reply_id: str
    """Which."""
    pcm: bytes
    """What had not been heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeHeldFrame:
    """Encode the frame that was held and give it to `receive_image`."""

    command_id: str
    """Ours."""
    source: str
    """Whose frame."""
    frame_id: int
    """Which frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropHeldFrame:
    """Let the held frame go."""

    command_id: str
    """Ours."""
    source: str
    """Whose frame."""
    frame_id: int
    """Which frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTool:
    """Run a tool; its output goes to `receive_tool_output`."""

    command_id: str
    """Ours."""
    call_id: str
    """The call."""
    name: str
    """Which tool."""
    arguments: str
    """As the model wrote them."""
    agent_id: str
    """Whose tool."""
    timeout_seconds: float
    """How long it may take."""
    wait_for: tuple[str, ...] = ()
    """Calls that must be over before it begins (sequential tools)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveTool:
    """Ask the application whether a tool may run; the answer goes to `receive_approval`."""

    command_id: str
    """Ours."""
    call_id: str
    """The call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTool:
    """Stop a running tool; no output is wanted any more."""

    command_id: str
    """Ours."""
    call_id: str
    """The call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """Summarize messages in the background; the result goes to `receive_summary`."""

    command_id: str
    """Ours."""
    basis_revision: int
    """What the summary is based on; a stale one is ignored."""
    messages: tuple[ChatMessage, ...]
    """What to digest."""
    timeout_seconds: float
    """How long it may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchAgent:
    """The next connection or configuration is another agent's; with another model the link is made anew."""

    command_id: str
    """Ours."""
    agent: Agent
    """Who speaks from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """Everything is recorded; let the link, the tracks and the tools go."""

    command_id: str
    """Ours."""
    error: BaseException | None = None
    """Why, if not by the application's wish."""


LocalCommand = (
    PlayAudio
    | EndReply
    | StopReply
    | ResumeReply
    | EncodeHeldFrame
    | DropHeldFrame
    | RunTool
    | ApproveTool
    | CancelTool
    | RequestSummary
    | SwitchAgent
    | EndSession
)
