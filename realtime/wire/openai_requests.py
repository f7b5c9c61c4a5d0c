"""What a server of OpenAI's Realtime protocol does with a client's event: read it, check it, refuse it.

Owns: the error codes, `parse_client_event` and `error_event`. Used by `realtime.local` and `realtime.testing`; the
client's side uses the codes. Never acts.
"""

from __future__ import annotations

from typing import Final, cast

from realtime.errors import ModelError
from realtime.wire.json_fields import parse_message, text_of
from realtime.wire.openai_client_events import ClientEvent
from realtime.wire.openai_server_events import ErrorEvent
from realtime.wire.openai_shapes import ErrorDetails

__all__ = [
    "ACTIVE_RESPONSE",
    "CANCEL_NOT_ACTIVE",
    "CANNOT_UPDATE_VOICE",
    "COMMIT_EMPTY",
    "CREATE_BAD_PREVIOUS",
    "DELETE_UNKNOWN_ITEM",
    "INVALID_API_KEY",
    "INVALID_EVENT",
    "INVALID_TYPE",
    "INVALID_VALUE",
    "MISSING_PARAMETER",
    "RATE_LIMIT",
    "RETRIEVE_UNKNOWN_ITEM",
    "SERVER_FULL",
    "SESSION_EXPIRED",
    "TRUNCATE_UNKNOWN_ITEM",
    "UNKNOWN_PARAMETER",
    "client_event_id",
    "error_event",
    "parse_client_event",
]

# -- error codes -----------------------------------------------------------------------------------------------------

INVALID_EVENT: Final = "invalid_event"
"""No JSON object, or no `type`."""
INVALID_VALUE: Final = "invalid_value"
"""A field has a value that cannot be; `param` names it."""
INVALID_TYPE: Final = "invalid_type"
"""A field is of another JSON type."""
MISSING_PARAMETER: Final = "missing_required_parameter"
"""A required field is missing."""
UNKNOWN_PARAMETER: Final = "unknown_parameter"
"""A field that does not exist."""
ACTIVE_RESPONSE: Final = "conversation_already_has_active_response"
"""`response.create` while a response is running."""
CANCEL_NOT_ACTIVE: Final = "response_cancel_not_active"
"""`response.cancel` while none is."""
COMMIT_EMPTY: Final = "input_audio_buffer_commit_empty"
"""`input_audio_buffer.commit` with less than 100 ms of audio."""
DELETE_UNKNOWN_ITEM: Final = "item_delete_invalid_item_id"
"""`conversation.item.delete` of an item that is not there."""
TRUNCATE_UNKNOWN_ITEM: Final = "item_truncate_invalid_item_id"
"""`conversation.item.truncate` of an item that is not there, or no spoken one."""
RETRIEVE_UNKNOWN_ITEM: Final = "item_retrieve_invalid_item_id"
"""`conversation.item.retrieve` of an item that is not there."""
CREATE_BAD_PREVIOUS: Final = "item_create_invalid_previous_item_id"
"""`conversation.item.create` behind an item that is not there."""
CANNOT_UPDATE_VOICE: Final = "cannot_update_voice"
"""`session.update` of the voice after the model has spoken."""
SESSION_EXPIRED: Final = "session_expired"
"""The session reached its maximum duration; the server closes."""
INVALID_API_KEY: Final = "invalid_api_key"
"""No such key; the server closes."""
RATE_LIMIT: Final = "rate_limit_exceeded"
"""Too much was asked for."""
SERVER_FULL: Final = "server_busy"
"""Ours: the server holds as many sessions as it may; it closes."""

_CLIENT_FIELDS: Final[dict[str, dict[str, type]]] = {
    "session.update": {"session": dict},
    "input_audio_buffer.append": {"audio": str},
    "input_audio_buffer.commit": {},
    "input_audio_buffer.clear": {},
    "output_audio_buffer.clear": {},
    "conversation.item.create": {"item": dict},
    "conversation.item.truncate": {"item_id": str, "content_index": int, "audio_end_ms": int},
    "conversation.item.delete": {"item_id": str},
    "conversation.item.retrieve": {"item_id": str},
    "response.create": {},
    "response.cancel": {},
}
_JSON_NAMES: Final = {dict: "an object", str: "a string", int: "an integer", list: "an array"}


def parse_client_event(data: str | bytes) -> ClientEvent:
    """Read what a client sent: its `type`, and that its required fields are there and of their kind.

    What is inside `session`, `item` and `response` is left to the server that has a meaning for it.

    Args:
        data: One wire message.

    Raises:
        ModelError: With the code and param that OpenAI's server gives. `ErrorEvent` carries it back; the client's
            `event_id` for it is `client_event_id(data)`.
    """
    try:
        message = parse_message(data)
    except ModelError as error:
        raise ModelError(error.message, code=INVALID_EVENT) from None
    kind = message.get("type")
    if not isinstance(kind, str):
        raise ModelError("The 'type' field is missing.", code=INVALID_EVENT)
    fields = _CLIENT_FIELDS.get(kind)
    if fields is None:
        wanted = ", ".join(f"'{name}'" for name in _CLIENT_FIELDS)
        raise ModelError(
            f"Invalid value: '{kind[:80]}'. Supported values are: {wanted}.", code=INVALID_VALUE, param="type"
        )
    for name, wanted_type in fields.items():
        value = message.get(name)
        if value is None:
            raise ModelError(f"Missing required parameter: '{name}'.", code=MISSING_PARAMETER, param=name)
        if not isinstance(value, wanted_type) or isinstance(value, bool):
            text = f"Invalid type for '{name}': expected {_JSON_NAMES[wanted_type]}, but got {type(value).__name__} instead."
            raise ModelError(text, code=INVALID_TYPE, param=name)
    if not isinstance(message.get("response", {}), dict):
        raise ModelError("Invalid type for 'response': expected an object.", code=INVALID_TYPE, param="response")
    return cast("ClientEvent", message)


def client_event_id(data: str | bytes) -> str | None:
    """The client's own id of an event, also of one that `parse_client_event` refused; None if it gave none."""
    try:
        return text_of(parse_message(data), "event_id") or None
    except ModelError:
        return None


def error_event(event_id: str, error: ModelError, *, cause: str | None = None) -> ErrorEvent:
    """Build the `error` event that tells a client of `error`.

    Args:
        event_id: The server's id of the event.
        error: What went wrong. A fatal one, or one without a code, is the server's fault, else the client's.
        cause: The `event_id` that the client gave to what caused it.
    """
    kind = "server_error" if error.fatal or not error.code else "invalid_request_error"
    details = ErrorDetails(
        type=kind, code=error.code or None, message=error.message, param=error.param or None, event_id=cause
    )
    return ErrorEvent(type="error", event_id=event_id, error=details)
