"""What a client of OpenAI's Realtime protocol says, one `TypedDict` per event.

Owns: the union `ClientEvent`. Calling a class builds an event. Never acts.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from realtime.wire.openai_shapes import Item, ResponseConfig, SessionConfig

__all__ = [
    "AudioAppendEvent",
    "AudioClearEvent",
    "AudioCommitEvent",
    "ClientEvent",
    "ItemCreateEvent",
    "ItemDeleteEvent",
    "ItemRetrieveEvent",
    "ItemTruncateEvent",
    "OutputAudioClearEvent",
    "ResponseCancelEvent",
    "ResponseCreateEvent",
    "SessionUpdateEvent",
]


class _ClientEvent(TypedDict):
    event_id: NotRequired[str]


class SessionUpdateEvent(_ClientEvent):
    """Change the session. Answered by `session.updated`."""

    type: Literal["session.update"]
    session: SessionConfig


class AudioAppendEvent(_ClientEvent):
    """More input audio, as base64. Not answered."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class AudioCommitEvent(_ClientEvent):
    """Make the input audio an item. Answered by `input_audio_buffer.committed`."""

    type: Literal["input_audio_buffer.commit"]


class AudioClearEvent(_ClientEvent):
    """Throw the input audio away. Answered by `input_audio_buffer.cleared`."""

    type: Literal["input_audio_buffer.clear"]


class OutputAudioClearEvent(_ClientEvent):
    """Stop what plays (WebRTC and SIP only)."""

    type: Literal["output_audio_buffer.clear"]


class ItemCreateEvent(_ClientEvent):
    """Add an item; `previous_item_id` absent: at the end, ``root``: at the front. Answered by `…item.added`, `.done`."""

    type: Literal["conversation.item.create"]
    item: Item
    previous_item_id: NotRequired[str | None]


class ItemTruncateEvent(_ClientEvent):
    """Cut a spoken item to what was heard. Answered by `conversation.item.truncated`."""

    type: Literal["conversation.item.truncate"]
    item_id: str
    content_index: int
    audio_end_ms: int


class ItemDeleteEvent(_ClientEvent):
    """Delete an item. Answered by `conversation.item.deleted`."""

    type: Literal["conversation.item.delete"]
    item_id: str


class ItemRetrieveEvent(_ClientEvent):
    """Ask for an item whole, audio included. Answered by `conversation.item.retrieved`."""

    type: Literal["conversation.item.retrieve"]
    item_id: str


class ResponseCreateEvent(_ClientEvent):
    """Ask for a response. Answered by `response.created` … `response.done`."""

    type: Literal["response.create"]
    response: NotRequired[ResponseConfig]


class ResponseCancelEvent(_ClientEvent):
    """Stop the running response. Answered by its `response.done`."""

    type: Literal["response.cancel"]
    response_id: NotRequired[str]


ClientEvent = (
    SessionUpdateEvent
    | AudioAppendEvent
    | AudioCommitEvent
    | AudioClearEvent
    | OutputAudioClearEvent
    | ItemCreateEvent
    | ItemTruncateEvent
    | ItemDeleteEvent
    | ItemRetrieveEvent
    | ResponseCreateEvent
    | ResponseCancelEvent
)
