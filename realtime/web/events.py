"""A session's events as a page is told them.

Owns: `event_to_dict`. Pure; driven by `realtime.web.call`. It gives words and figures, never pictures, sound or a trace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.core.events import AudioReceived, ErrorReported, SessionEvent

__all__ = ["event_to_dict", "message_to_dict"]

_MAX_TEXT = 20_000
"""Characters of one text; the rest is left out with a mark."""
_MAX_ARGUMENTS = 2_000
"""Characters of the arguments of one tool call."""


def event_to_dict(event: SessionEvent, *, at: float) -> dict[str, Any] | None:
    """An event as JSON values, or None for one that a page is not told (sound comes as sound).

    Args:
        event: What happened.
        at: When, in seconds since the call began.
    """
    if isinstance(event, AudioReceived):
        return None
    told: dict[str, Any] = {"type": "event", "event": type(event).__name__, "at": round(at, 3)}
    for each in fields(event):
        told[each.name] = _value(getattr(event, each.name))
    if isinstance(event, ErrorReported):
        told["error"] = _cut(str(event.error)) or type(event.error).__name__
    return told


def message_to_dict(message: ChatMessage) -> dict[str, Any]:
    """A message's words, without pictures and sound; `images` is how many pictures it has."""
    told: dict[str, Any] = {
        "id": message.message_id,
        "role": message.role.value,
        "text": _cut(message.content),
        "images": len(message.images),
        "interrupted": message.interrupted,
    }
    for name in ("unheard", "source", "tool_name", "tool_call_id", "agent_id"):
        value = getattr(message, name)
        if value:
            told[name] = _cut(str(value))
    if message.heard_ms is not None:
        told["heard_ms"] = message.heard_ms
    if message.created_at is not None:
        told["created_at"] = message.created_at
    if message.summary:
        told["summary"] = True
    if message.is_error:
        told["is_error"] = True
    if message.tool_calls:
        told["tool_calls"] = [
            {"name": call.name, "call_id": call.call_id, "arguments": _cut(call.arguments, _MAX_ARGUMENTS)}
            for call in message.tool_calls
        ]
    return told


def _value(value: Any) -> Any:
    """Anything that an event holds, as JSON."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return _cut(str(value))
        case ChatMessage():
            return message_to_dict(value)
        case AgentHandoff():
            return _fields_of(value)
        case BaseException():
            return _cut(str(value)) or type(value).__name__
        case Mapping():
            return {str(key): _value(each) for key, each in cast("Mapping[object, object]", value).items()}
        case Sequence() if not isinstance(value, (bytes, bytearray, memoryview)):
            return [_value(each) for each in cast("Sequence[object]", value)]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _fields_of(value)
        case _:
            return None


def _fields_of(value: Any) -> dict[str, Any]:
    return {each.name: _value(getattr(value, each.name)) for each in fields(value)}


def _cut(text: str, most: int = _MAX_TEXT) -> str:
    shown = text if len(text) <= most else text[:most] + "…"
    return shown.encode("utf-8", "replace").decode()  # lone surrogates cannot be sent
