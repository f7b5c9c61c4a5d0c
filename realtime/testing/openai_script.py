"""What a server of OpenAI's protocol says, for scripts: whole turns as lists of wire messages.

Owns: builders of server messages in the order in which OpenAI sends them. Driven by tests, with `ScriptedModel`. Never
acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from realtime.wire.json_fields import encode_base64
from realtime.wire.openai_messages import (
    ErrorDetails,
    ErrorEvent,
    Item,
    ItemAddedEvent,
    ItemDoneEvent,
    Response,
    ResponseCreatedEvent,
    ResponseDoneEvent,
    ServerEvent,
    SessionConfig,
    SessionCreatedEvent,
    SessionUpdatedEvent,
    StatusDetails,
    Usage,
)

__all__ = [
    "error",
    "item_created",
    "response_created",
    "response_done",
    "session_created",
    "session_updated",
    "spoken_reply",
    "tool_call",
    "user_speech",
    "user_transcript",
    "written_reply",
]


def session_created(session_id: str = "sess_1", *, expires_at: int | None = None) -> list[ServerEvent]:
    """The first message of a connection."""
    session = SessionConfig(type="realtime", id=session_id)
    if expires_at is not None:
        session["expires_at"] = expires_at
    return [SessionCreatedEvent(type="session.created", event_id="event_created", session=session)]


def session_updated() -> list[ServerEvent]:
    """The answer to `session.update`."""
    return [
        SessionUpdatedEvent(type="session.updated", event_id="event_updated", session=SessionConfig(type="realtime"))
    ]


def item_created(item: Item, previous_item_id: str | None) -> list[ServerEvent]:
    """The answer to `conversation.item.create`."""
    return [
        ItemAddedEvent(
            type="conversation.item.added", event_id="event_a", item=item, previous_item_id=previous_item_id
        ),
        ItemDoneEvent(type="conversation.item.done", event_id="event_d", item=item, previous_item_id=previous_item_id),
    ]


def user_speech(
    item_id: str, *, start_ms: int = 0, end_ms: int = 1000, previous_item_id: str | None = None
) -> list[ServerEvent]:
    """A spoken turn as turn detection hears it: began, ended, committed, an item."""
    item = Item(type="message", id=item_id, role="user", status="completed", content=[{"type": "input_audio"}])
    return [
        {
            "type": "input_audio_buffer.speech_started",
            "event_id": "event_s",
            "item_id": item_id,
            "audio_start_ms": start_ms,
        },
        {
            "type": "input_audio_buffer.speech_stopped",
            "event_id": "event_e",
            "item_id": item_id,
            "audio_end_ms": end_ms,
        },
        {
            "type": "input_audio_buffer.committed",
            "event_id": "event_c",
            "item_id": item_id,
            "previous_item_id": previous_item_id,
        },
        *item_created(item, previous_item_id),
    ]


def user_transcript(item_id: str, text: str) -> list[ServerEvent]:
    """What the user said, whole."""
    return [
        {
            "type": "conversation.item.input_audio_transcription.completed",
            "event_id": "event_t",
            "item_id": item_id,
            "content_index": 0,
            "transcript": text,
        }
    ]


def response_created(response_id: str, *, metadata: Mapping[str, str] | None = None) -> list[ServerEvent]:
    """A response begins."""
    response = Response(id=response_id, status="in_progress", metadata=dict(metadata) if metadata else None)
    return [ResponseCreatedEvent(type="response.created", event_id="event_r", response=response)]


def response_done(
    response_id: str,
    output: Iterable[Item] = (),
    *,
    status: Literal["completed", "cancelled", "failed", "incomplete"] = "completed",
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"] | None = None,
    usage: Usage | None = None,
) -> list[ServerEvent]:
    """A response is over."""
    response = Response(id=response_id, status=status, output=list(output), usage=usage, status_details=None)
    if reason is not None and status != "completed":
        response["status_details"] = StatusDetails(type=status, reason=reason)
    return [ResponseDoneEvent(type="response.done", event_id="event_x", response=response)]


def _output(response_id: str, item_id: str) -> dict[str, Any]:
    return {
        "event_id": "event_o",
        "response_id": response_id,
        "item_id": item_id,
        "output_index": 0,
        "content_index": 0,
    }


def spoken_reply(
    response_id: str,
    item_id: str,
    text: str,
    pcm: bytes,
    *,
    previous_item_id: str | None = None,
    chunk_bytes: int = 9600,
    done: bool = True,
    usage: Usage | None = None,
) -> list[ServerEvent]:
    """A spoken reply from `response.created` to `response.done`: its words, then its audio in chunks.

    Args:
        response_id: The response.
        item_id: Its one message.
        text: What it says.
        pcm: PCM16 mono, 24 kHz.
        previous_item_id: The item that the message stands behind.
        chunk_bytes: Of each audio message.
        done: False: the response is left running after its audio.
        usage: Its tokens.
    """
    begun = Item(type="message", id=item_id, role="assistant", status="in_progress", content=[])
    whole = Item(
        type="message",
        id=item_id,
        role="assistant",
        status="completed",
        content=[{"type": "output_audio", "transcript": text}],
    )
    output = _output(response_id, item_id)
    events: list[Any] = [
        *response_created(response_id),
        {"type": "response.output_item.added", **output, "item": begun},
        item_created(begun, previous_item_id)[0],
        *(
            {"type": "response.output_audio_transcript.delta", **output, "delta": word}
            for word in text.replace(" ", "\0 ").split("\0")
        ),
        *(
            {"type": "response.output_audio.delta", **output, "delta": encode_base64(pcm[at : at + chunk_bytes])}
            for at in range(0, len(pcm), chunk_bytes)
        ),
    ]
    if done:
        events += [
            {"type": "response.output_audio.done", **output},
            {"type": "response.output_audio_transcript.done", **output, "transcript": text},
            item_created(whole, None)[1],
            {"type": "response.output_item.done", **output, "item": whole},
            *response_done(response_id, [whole], usage=usage),
        ]
    return events


def written_reply(
    response_id: str, item_id: str, text: str, *, previous_item_id: str | None = None, usage: Usage | None = None
) -> list[ServerEvent]:
    """A written reply from `response.created` to `response.done`."""
    begun = Item(type="message", id=item_id, role="assistant", status="in_progress", content=[])
    whole = Item(
        type="message",
        id=item_id,
        role="assistant",
        status="completed",
        content=[{"type": "output_text", "text": text}],
    )
    output = _output(response_id, item_id)
    events: list[Any] = [
        *response_created(response_id),
        {"type": "response.output_item.added", **output, "item": begun},
        item_created(begun, previous_item_id)[0],
        {"type": "response.output_text.delta", **output, "delta": text},
        {"type": "response.output_text.done", **output, "text": text},
        item_created(whole, previous_item_id)[1],
        {"type": "response.output_item.done", **output, "item": whole},
        *response_done(response_id, [whole], usage=usage),
    ]
    return events


def tool_call(
    response_id: str,
    item_id: str,
    call_id: str,
    name: str,
    arguments: str = "{}",
    *,
    previous_item_id: str | None = None,
) -> list[ServerEvent]:
    """A response that calls one tool, from `response.created` to `response.done`."""
    item = Item(type="function_call", id=item_id, call_id=call_id, name=name, arguments="", status="in_progress")
    whole = Item(type="function_call", id=item_id, call_id=call_id, name=name, arguments=arguments, status="completed")
    output = _output(response_id, item_id)
    events: list[Any] = [
        *response_created(response_id),
        {"type": "response.output_item.added", **output, "item": item},
        item_created(item, previous_item_id)[0],
        {
            "type": "response.function_call_arguments.done",
            **output,
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
        },
        item_created(whole, previous_item_id)[1],
        {"type": "response.output_item.done", **output, "item": whole},
        *response_done(response_id, [whole]),
    ]
    return events


def error(code: str, message: str = "", *, cause: str | None = None, param: str | None = None) -> list[ServerEvent]:
    """An `error`, caused by the client event with the id `cause`."""
    details = ErrorDetails(
        type="invalid_request_error", code=code, message=message or code, param=param, event_id=cause
    )
    return [ErrorEvent(type="error", event_id="event_f", error=details)]
