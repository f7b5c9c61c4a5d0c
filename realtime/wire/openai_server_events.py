"""What a server of OpenAI's Realtime protocol says, one `TypedDict` per event.

Owns: the union `ServerEvent` and the names that events had before the GA protocol. Calling a class builds an event.
`OutputWordsEvent` is ours: a server that knows when each word of a spoken reply sounds says so with it, and clients that
do not know it ignore it. Never acts.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

from realtime.wire.openai_shapes import (
    ContentPart,
    ErrorDetails,
    Item,
    RateLimit,
    Response,
    SessionConfig,
    TranscriptionUsage,
)

__all__ = [
    "ArgumentsDeltaEvent",
    "ArgumentsDoneEvent",
    "AudioClearedEvent",
    "AudioCommittedEvent",
    "ContentPartAddedEvent",
    "ContentPartDoneEvent",
    "ErrorEvent",
    "InputTranscriptCompletedEvent",
    "InputTranscriptDeltaEvent",
    "InputTranscriptFailedEvent",
    "ItemAddedEvent",
    "ItemDeletedEvent",
    "ItemDoneEvent",
    "ItemRetrievedEvent",
    "ItemTruncatedEvent",
    "OutputAudioDeltaEvent",
    "OutputAudioDoneEvent",
    "OutputItemAddedEvent",
    "OutputItemDoneEvent",
    "OutputTextDeltaEvent",
    "OutputTextDoneEvent",
    "OutputTranscriptDeltaEvent",
    "OutputTranscriptDoneEvent",
    "OutputWordsEvent",
    "RateLimitsUpdatedEvent",
    "ResponseCreatedEvent",
    "ResponseDoneEvent",
    "ServerEvent",
    "SessionCreatedEvent",
    "SessionUpdatedEvent",
    "SpeechStartedEvent",
    "SpeechStoppedEvent",
    "TimeoutTriggeredEvent",
]


class _ServerEvent(TypedDict):
    event_id: str


class _OutputEvent(_ServerEvent):
    response_id: str
    item_id: str
    output_index: int
    content_index: int


class SessionCreatedEvent(_ServerEvent):
    """The first event of a connection."""

    type: Literal["session.created"]
    session: SessionConfig


class SessionUpdatedEvent(_ServerEvent):
    """The whole configuration that holds from now on."""

    type: Literal["session.updated"]
    session: SessionConfig


class SpeechStartedEvent(_ServerEvent):
    """Speech was heard; `item_id` is the item that it will become. Milliseconds of input audio, prefix padding included."""

    type: Literal["input_audio_buffer.speech_started"]
    item_id: str
    audio_start_ms: int


class SpeechStoppedEvent(_ServerEvent):
    """The user has finished."""

    type: Literal["input_audio_buffer.speech_stopped"]
    item_id: str
    audio_end_ms: int


class AudioCommittedEvent(_ServerEvent):
    """The input audio became an item."""

    type: Literal["input_audio_buffer.committed"]
    item_id: str
    previous_item_id: str | None


class AudioClearedEvent(_ServerEvent):
    """The input audio was thrown away."""

    type: Literal["input_audio_buffer.cleared"]


class TimeoutTriggeredEvent(_ServerEvent):
    """Nobody spoke for `idle_timeout_ms`; the silence becomes an item and is answered."""

    type: Literal["input_audio_buffer.timeout_triggered"]
    item_id: str
    audio_start_ms: int
    audio_end_ms: int


class ItemAddedEvent(_ServerEvent):
    """An item joined the conversation, behind `previous_item_id` (None: it is the first)."""

    type: Literal["conversation.item.added"]
    item: Item
    previous_item_id: str | None


class ItemDoneEvent(_ServerEvent):
    """An item is final. Its `previous_item_id` is not to be relied on: providers leave it out for spoken replies."""

    type: Literal["conversation.item.done"]
    item: Item
    previous_item_id: str | None


class ItemRetrievedEvent(_ServerEvent):
    """An item whole, as asked for."""

    type: Literal["conversation.item.retrieved"]
    item: Item


class ItemTruncatedEvent(_ServerEvent):
    """A spoken item was cut."""

    type: Literal["conversation.item.truncated"]
    item_id: str
    content_index: int
    audio_end_ms: int


class ItemDeletedEvent(_ServerEvent):
    """An item was deleted."""

    type: Literal["conversation.item.deleted"]
    item_id: str


class InputTranscriptDeltaEvent(_ServerEvent):
    """The transcript of the user's speech grew."""

    type: Literal["conversation.item.input_audio_transcription.delta"]
    item_id: str
    content_index: int
    delta: str


class InputTranscriptCompletedEvent(_ServerEvent):
    """The transcript of the user's speech is final."""

    type: Literal["conversation.item.input_audio_transcription.completed"]
    item_id: str
    content_index: int
    transcript: str
    usage: NotRequired[TranscriptionUsage]


class InputTranscriptFailedEvent(_ServerEvent):
    """The user's speech could not be transcribed."""

    type: Literal["conversation.item.input_audio_transcription.failed"]
    item_id: str
    content_index: int
    error: ErrorDetails


class ResponseCreatedEvent(_ServerEvent):
    """A response began; its `status` is ``in_progress``."""

    type: Literal["response.created"]
    response: Response


class ResponseDoneEvent(_ServerEvent):
    """A response is over, however it ended."""

    type: Literal["response.done"]
    response: Response


class _OutputItemEvent(_ServerEvent):
    response_id: str
    output_index: int
    item: Item


class OutputItemAddedEvent(_OutputItemEvent):
    """A response began an item."""

    type: Literal["response.output_item.added"]


class OutputItemDoneEvent(_OutputItemEvent):
    """An item of a response is complete."""

    type: Literal["response.output_item.done"]


class ContentPartAddedEvent(_OutputEvent):
    """A part of an item began."""

    type: Literal["response.content_part.added"]
    part: ContentPart


class ContentPartDoneEvent(_OutputEvent):
    """A part of an item is complete."""

    type: Literal["response.content_part.done"]
    part: ContentPart


class OutputAudioDeltaEvent(_OutputEvent):
    """More of a spoken reply, as base64; may decode to an odd number of bytes.

    `words` is ours, not OpenAI's: the words that begin to sound with this chunk, as in `OutputWordsEvent`. A field of an
    event that every client knows is ignored by those that do not know it; an event of its own makes some of them fail.
    """

    type: Literal["response.output_audio.delta"]
    delta: str
    words: NotRequired[list[tuple[str, int]]]


class OutputAudioDoneEvent(_OutputEvent):
    """All audio of a part was sent."""

    type: Literal["response.output_audio.done"]


class OutputTranscriptDeltaEvent(_OutputEvent):
    """More of what a spoken reply says."""

    type: Literal["response.output_audio_transcript.delta"]
    delta: str


class OutputTranscriptDoneEvent(_OutputEvent):
    """All that a spoken part says."""

    type: Literal["response.output_audio_transcript.done"]
    transcript: str


class OutputTextDeltaEvent(_OutputEvent):
    """More of a written reply."""

    type: Literal["response.output_text.delta"]
    delta: str


class OutputTextDoneEvent(_OutputEvent):
    """A written part whole."""

    type: Literal["response.output_text.done"]
    text: str


class OutputWordsEvent(_ServerEvent):
    """When words of a spoken reply sound: each with its leading white space, and the millisecond at which it has been said.

    Ours, not OpenAI's. Milliseconds count from the first audio of the item.
    """

    type: Literal["response.output_audio_transcript.words"]
    response_id: str
    item_id: str
    content_index: int
    words: list[tuple[str, int]]


class _ArgumentsEvent(_ServerEvent):
    response_id: str
    item_id: str
    output_index: int
    call_id: str


class ArgumentsDeltaEvent(_ArgumentsEvent):
    """More of a call's arguments."""

    type: Literal["response.function_call_arguments.delta"]
    delta: str


class ArgumentsDoneEvent(_ArgumentsEvent):
    """A call whole."""

    type: Literal["response.function_call_arguments.done"]
    name: str
    arguments: str


class RateLimitsUpdatedEvent(_ServerEvent):
    """What is left of the limits."""

    type: Literal["rate_limits.updated"]
    rate_limits: list[RateLimit]


class ErrorEvent(_ServerEvent):
    """Something went wrong; most connections go on."""

    type: Literal["error"]
    error: ErrorDetails


ServerEvent = (
    SessionCreatedEvent
    | SessionUpdatedEvent
    | SpeechStartedEvent
    | SpeechStoppedEvent
    | AudioCommittedEvent
    | AudioClearedEvent
    | TimeoutTriggeredEvent
    | ItemAddedEvent
    | ItemDoneEvent
    | ItemRetrievedEvent
    | ItemTruncatedEvent
    | ItemDeletedEvent
    | InputTranscriptDeltaEvent
    | InputTranscriptCompletedEvent
    | InputTranscriptFailedEvent
    | ResponseCreatedEvent
    | ResponseDoneEvent
    | OutputItemAddedEvent
    | OutputItemDoneEvent
    | ContentPartAddedEvent
    | ContentPartDoneEvent
    | OutputAudioDeltaEvent
    | OutputAudioDoneEvent
    | OutputTranscriptDeltaEvent
    | OutputTranscriptDoneEvent
    | OutputTextDeltaEvent
    | OutputTextDoneEvent
    | OutputWordsEvent
    | ArgumentsDeltaEvent
    | ArgumentsDoneEvent
    | RateLimitsUpdatedEvent
    | ErrorEvent
)

OLDER_NAMES: Final[dict[str, str]] = {
    "conversation.item.created": "conversation.item.added",
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
}
"""Names of server events before the GA protocol, and today's. Some servers still send the older ones."""
