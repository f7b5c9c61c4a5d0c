"""Transport messages: plain dicts that lose nothing, and the reading of whatever looks like them (behaviour.md V4, V7).

Owns: `to_context_messages`, `from_context_messages`, and the same for a whole context with its handoffs. Driven by
`ChatContext`. A message is written with `role` and `content`; everything else only where there is something to say.
Reading takes mappings and objects, in snake case or camel case, in our shape or OpenAI's; a picture that cannot be read is
dropped and reported, its message is kept.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from realtime.chat.formats.loose import Loose, read_image
from realtime.chat.frozen import decode_json, encode_json
from realtime.chat.messages import (
    AgentHandoff,
    AudioContent,
    ChatMessage,
    ChatRole,
    FunctionCall,
    ImageContent,
    as_text,
)
from realtime.errors import ArgumentError, ImageError

__all__ = [
    "from_context_dict",
    "from_context_message",
    "from_context_messages",
    "to_context_dict",
    "to_context_message",
    "to_context_messages",
]

logger = logging.getLogger("realtime.chat.formats")

_TEXT_FIELDS = ("agent_id", "tool_name", "thinking", "unheard", "source")
_FLAGS = ("is_error", "interrupted", "summary")


# -- writing -----------------------------------------------------------------------------------------------------------


def to_context_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Write messages as transport dicts, ready for JSON."""
    return [to_context_message(message) for message in messages]


def to_context_message(message: ChatMessage) -> dict[str, Any]:
    """Write one message as a transport dict; `from_context_message` gives the same message back."""
    written: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.message_id:
        written["message_id"] = message.message_id
    if message.images:
        written["images"] = [{"url": image.url, "detail": image.detail} for image in message.images]
    if message.tool_calls:
        written["tool_calls"] = [_written_call(call) for call in message.tool_calls]
    if message.tool_call_id:
        written["tool_call_id"] = message.tool_call_id
    if message.created_at is not None:
        written["created_at"] = message.created_at
    if message.audio is not None:
        data = base64.b64encode(message.audio.data).decode("ascii")
        written["audio"] = {"data": data, "transcript": message.audio.transcript}
    if message.heard_ms is not None:
        written["heard_ms"] = message.heard_ms
    written.update((name, text) for name in _TEXT_FIELDS if (text := getattr(message, name)))
    written.update((name, True) for name in _FLAGS if getattr(message, name))
    if message.provider_data:
        written["provider_data"] = encode_json(message.provider_data)
    return written


def _written_call(call: FunctionCall) -> dict[str, Any]:
    written: dict[str, Any] = {"call_id": call.call_id, "name": call.name, "arguments_json": call.arguments}
    if call.provider_data:
        written["provider_data"] = encode_json(call.provider_data)
    return written


def to_context_dict(messages: Iterable[ChatMessage], handoffs: Iterable[AgentHandoff]) -> dict[str, Any]:
    """Write a whole context: ``{"items": […], "handoffs": […]}``."""
    return {
        "items": to_context_messages(messages),
        "handoffs": [
            {
                "to_agent": handoff.to_agent,
                "from_agent": handoff.from_agent,
                "reason": handoff.reason,
                "handoff_id": handoff.handoff_id,
            }
            for handoff in handoffs
        ],
    }


# -- reading -----------------------------------------------------------------------------------------------------------


def from_context_messages(messages: Any) -> list[ChatMessage]:
    """Read messages from mappings or objects.

    Args:
        messages: An iterable of them; None is none.

    Raises:
        ArgumentError: It is no iterable of such.
    """
    if messages is None:
        return []
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise ArgumentError(
            "messages", type(cast("object", messages)).__name__, "an iterable of mappings or objects, or None"
        )
    return [from_context_message(message) for message in messages]  # pyright: ignore[reportUnknownVariableType]


def from_context_message(message: Any) -> ChatMessage:
    """Read one message. An unknown role is the user's; pictures that cannot be read are left out and reported.

    Raises:
        ArgumentError: It is neither a mapping nor an object with attributes of a message.
    """
    if isinstance(message, ChatMessage):
        return message
    fields = Loose(message, "messages")
    content, shown, recorded = _content_of(fields.get("content"))
    given = fields.get("audio")
    audio = _audio_of(recorded if given is None else given)
    heard_ms = fields.whole("heard_ms")
    return ChatMessage(
        _role_of(fields.get("role")),
        content,
        fields.text("message_id"),
        tuple(_call_of(call) for call in fields.sequence("tool_calls")),
        fields.text("tool_call_id"),
        tuple(image for given in [*shown, *fields.sequence("images")] if (image := _image_of(given)) is not None),
        fields.text("agent_id"),
        fields.number("created_at"),
        audio=audio,
        is_error=fields.flag("is_error"),
        tool_name=fields.text("tool_name"),
        thinking=fields.text("thinking"),
        interrupted=fields.flag("interrupted"),
        heard_ms=None if heard_ms is None else max(0, heard_ms),
        unheard=fields.text("unheard"),
        source=fields.text("source"),
        summary=fields.flag("summary"),
        provider_data=_data_of(fields.get("provider_data")),
    )


def from_context_dict(data: Any) -> tuple[list[ChatMessage], list[AgentHandoff]]:
    """Read what `to_context_dict` wrote.

    Returns:
        ``(messages, handoffs)``.

    Raises:
        ArgumentError: It is no mapping, or what it holds are no messages or handoffs.
    """
    if not isinstance(data, Mapping):
        raise ArgumentError("data", type(data).__name__, "a mapping with 'items' and 'handoffs', as to_dict() makes it")
    mapping = cast("Mapping[str, Any]", data)
    handoffs = [
        AgentHandoff(*(fields.text(name) for name in ("to_agent", "from_agent", "reason", "handoff_id")))
        for fields in (Loose(handoff, "handoffs") for handoff in Loose(mapping, "data").sequence("handoffs"))
    ]
    return from_context_messages(mapping.get("items")), handoffs


def _role_of(given: Any) -> ChatRole:
    try:
        return ChatRole(as_text(getattr(given, "value", given)).lower())
    except ValueError:
        return ChatRole.USER


def _content_of(given: Any) -> tuple[str, Sequence[Any], Any]:
    """The text of a content, and the pictures and the recording among its parts."""
    if given is None or isinstance(given, str):
        return given or "", (), None
    if not isinstance(given, (list, tuple)):
        return as_text(given), (), None
    texts: list[str] = []
    pictures: list[Any] = []
    recording: Any = None
    for part in cast("Sequence[Any]", given):
        fields = Loose({"text": part} if isinstance(part, str) else part, "content")
        kind = fields.text("type")
        if "image" in kind:
            pictures.append(part)
        elif "audio" in kind:
            recording = recording or fields.get("input_audio")
        else:
            texts.append(fields.text("text") or fields.text("refusal"))
    return "\n".join(text for text in texts if text), pictures, recording


def _call_of(given: Any) -> FunctionCall:
    if isinstance(given, FunctionCall):
        return given
    fields = Loose(given, "tool_calls")
    function = fields.get("function")
    inner = fields if function is None else Loose(function, "function")
    arguments = inner.get("arguments_json")
    if arguments is None:
        arguments = inner.get("arguments")
    name = inner.text("name")
    call_id = fields.text("call_id") or fields.text("id")
    return FunctionCall(name, arguments, call_id, provider_data=_data_of(fields.get("provider_data")))


def _image_of(given: Any) -> ImageContent | None:
    try:
        return read_image(given)
    except ImageError as error:
        logger.warning("a picture was left out, its message is kept: %s", error)
        return None


def _audio_of(given: Any) -> AudioContent | None:
    if given is None or isinstance(given, AudioContent):
        return given
    try:
        fields = Loose(given, "audio")
        data = fields.get("data")
        return AudioContent(base64.b64decode(data) if isinstance(data, str) else data, fields.text("transcript"))
    except (ArgumentError, ValueError, TypeError) as error:
        logger.warning("a recording was left out, its message is kept: %s", type(error).__name__)
        return None


def _data_of(given: Any) -> Mapping[str, Any]:
    decoded = decode_json(given)
    return cast("Mapping[str, Any]", decoded) if isinstance(decoded, Mapping) else {}
