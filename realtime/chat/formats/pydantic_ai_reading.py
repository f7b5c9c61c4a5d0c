"""Reads messages of Pydantic AI. Loaded by `formats/pydantic_ai`, with that library there.

Owns: `read`. A message that we wrote is put together again from its parts and our metadata; any other is read part by part.
Parts are told apart by their ``part_kind``, so that one of a newer version is refused by name rather than misread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError
from pydantic_ai import messages as library
from pydantic_core import to_json

from realtime.chat.formats.context_messages import from_context_message
from realtime.chat.formats.pydantic_ai_writing import METADATA_KEY
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.errors import ArgumentError, UserError

__all__ = ["read"]

_OWN_USE: Final = frozenset(
    {
        "builtin-tool-call", "builtin-tool-return", "tool-availability-delta", "capability-load-delta",
        "model-settings-delta", "instruction-delta", "instruction-baseline",
    }
)  # fmt: skip
"""What the library or a provider adds for itself: it says nothing, and belongs to the run that made it."""
_SAID_BY_PARTS: Final = frozenset({"content", "audio", "thinking", "tool_call_id"})
"""What our own messages have from their parts; the rest is in our metadata."""
_FAILURES: Final = frozenset({"failed", "denied", "retried"})


def read(messages: Iterable[Any]) -> list[ChatMessage]:
    """Read a conversation."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            "messages", type(cast("object", messages)).__name__, "an iterable of pydantic_ai's messages"
        )
    found: list[ChatMessage] = []
    for message in messages:
        if not isinstance(message, (library.ModelRequest, library.ModelResponse)):
            raise ArgumentError("messages", type(message).__name__, "made of ModelRequest and ModelResponse")
        for fields, parts in _by_message(message):
            drafts = [draft for part in parts for draft in _drafts(part)]
            found += _restored(fields, drafts) if fields is not None else _joined(drafts)
    return found


class _Kept(BaseModel):
    """Our metadata: which message each part belongs to, and each message's fields."""

    parts: list[int | None]
    messages: list[dict[str, Any]]


def _by_message(
    message: library.ModelRequest | library.ModelResponse,
) -> Iterable[tuple[Mapping[str, Any] | None, Sequence[Any]]]:
    """The parts of each of our messages with its fields, or all parts without fields."""
    parts = list(message.parts)
    try:
        kept = _Kept.model_validate((message.metadata or {}).get(METADATA_KEY))
    except ValidationError:
        return [(None, parts)]
    numbers = kept.parts
    if len(numbers) != len(parts) or any(
        number is not None and not 0 <= number < len(kept.messages) for number in numbers
    ):
        return [(None, parts)]  # whoever changes parts need not know of our metadata
    found: dict[int, tuple[Mapping[str, Any] | None, list[Any]]] = {}
    for place, (number, part) in enumerate(zip(numbers, parts, strict=True)):
        if number is not None:
            found.setdefault(number, (kept.messages[number], []))[1].append(part)
        elif not _is_stand_in(part):
            found[-1 - place] = None, [part]
    return found.values()


def _is_stand_in(part: Any) -> bool:
    """A result that we made up for an open call; what else has no message of its own is read as any part is."""
    return bool(part.part_kind == "tool-return")


def _restored(fields: Mapping[str, Any], drafts: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    """Our own message, from its parts and its fields."""
    whole: dict[str, Any] = {"images": [], "tool_calls": []}
    for draft in drafts:
        for key, value in draft.items():
            if key in {"images", "tool_calls"}:
                whole[key] += value
            elif value and key in _SAID_BY_PARTS:
                whole.setdefault(key, value)
    return [from_context_message({**whole, **fields})]


def _joined(drafts: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    """Other people's messages: what the model thinks, says and calls in one response is one message, speech by speech."""
    found: list[dict[str, Any]] = []
    for draft in drafts:
        last = found[-1] if found else None
        if last is None or _begins_a_message(draft, last):
            found.append(dict(draft))
        else:
            if text := draft.get("content"):
                last["content"] = f"{last['content']}\n\n{text}" if last.get("content") else text
            last["tool_calls"] = [*last.get("tool_calls", ()), *draft.get("tool_calls", ())]
            last.update({key: value for key, value in draft.items() if key not in {"content", "tool_calls"} and value})
    return [from_context_message(draft) for draft in found]


def _begins_a_message(draft: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    if draft["role"] is not ChatRole.ASSISTANT or last["role"] is not ChatRole.ASSISTANT:
        return True
    return bool((draft.get("is_speech") or draft.get("thinking")) and (last.get("content") or last.get("tool_calls")))


def _drafts(part: Any) -> Iterator[dict[str, Any]]:
    """The fields that a part gives to its message."""
    kind: str = part.part_kind
    if kind in _OWN_USE:
        return
    match kind:
        case "system-prompt":
            yield {"role": ChatRole.SYSTEM, "content": part.content, "created_at": _seconds(part)}
        case "user-prompt":
            yield from _prompt(part)
        case "speech":
            yield _speech(part)
        case "text":
            yield {"role": ChatRole.ASSISTANT, "content": part.content}
        case "thinking":
            yield {"role": ChatRole.ASSISTANT, "thinking": part.content}
        case "tool-call":
            arguments = part.args if isinstance(part.args, str) or part.args is None else _json(part.args)
            call = FunctionCall(part.tool_name, arguments or "", part.tool_call_id)
            yield {"role": ChatRole.ASSISTANT, "tool_calls": [call]}
        case "tool-return":
            yield _return(part)
        case "retry-prompt" | "retry-feedback":
            yield _retry(part)
        case "compaction":
            if part.content:
                yield {"role": ChatRole.USER, "content": part.content, "summary": True}
        case _:
            raise UserError(f"a session cannot take a part of the kind {kind!r}: leave it out of the history")


def _prompt(part: Any) -> Iterator[dict[str, Any]]:
    """A prompt: one message per run of text and the pictures behind it (behaviour.md F9)."""
    content: Any = part.content
    draft = _new_prompt(part)
    texts: list[str] = []
    for piece in [content] if isinstance(content, str) else content:
        if isinstance(piece, str) or getattr(piece, "kind", "") in {"text-content", "structured-content"}:
            if draft["images"]:
                yield {**draft, "content": "\n".join(texts)}
                draft, texts = _new_prompt(part), []
            texts.append(piece if isinstance(piece, str) else str(piece.content))
        elif getattr(piece, "kind", "") == "cache-point":
            continue
        elif isinstance(piece, library.BinaryContent) and piece.is_audio and draft.get("audio") is None:
            draft["audio"] = _recording(piece, "")
        else:
            draft["images"].append(_image(piece))
    yield {**draft, "content": "\n".join(texts)}


def _new_prompt(part: Any) -> dict[str, Any]:
    return {"role": ChatRole.USER, "images": [], "created_at": _seconds(part)}


def _speech(part: Any) -> dict[str, Any]:
    role = ChatRole.USER if part.speaker == "user" else ChatRole.ASSISTANT
    return {
        "role": role,
        "content": part.transcript or "",
        "message_id": part.id or "",
        "audio": None if part.audio is None else _recording(part.audio, part.transcript or ""),
        "interrupted": part.interrupted_at_ms is not None,
        "heard_ms": part.interrupted_at_ms,
        "is_speech": True,
    }


def _return(part: Any) -> dict[str, Any]:
    content: Any = part.content
    files: list[Any] = []
    data = content
    if isinstance(content, library.MULTI_MODAL_CONTENT_TYPES):
        files, data = [content], ""
    elif isinstance(content, list):
        pieces: list[Any] = content  # pyright: ignore[reportUnknownVariableType]
        files = [piece for piece in pieces if isinstance(piece, library.MULTI_MODAL_CONTENT_TYPES)]
        rest = [piece for piece in pieces if not isinstance(piece, library.MULTI_MODAL_CONTENT_TYPES)]
        if files:
            data = rest[0] if len(rest) == 1 else rest or ""
    return {
        "role": ChatRole.TOOL,
        "content": data if isinstance(data, str) else _json(data),
        "tool_call_id": part.tool_call_id,
        "tool_name": part.tool_name,
        "images": [_image(piece) for piece in files],
        "is_error": part.outcome in _FAILURES,
        "created_at": _seconds(part),
    }


def _retry(part: Any) -> dict[str, Any]:
    """A demand to try again: of a call, its failed result; of an answer, the user's words."""
    name = getattr(part, "tool_name", None)
    draft = {"content": part.model_response(), "created_at": _seconds(part)}
    if name is None:
        return {**draft, "role": ChatRole.USER}
    return {**draft, "role": ChatRole.TOOL, "tool_call_id": part.tool_call_id, "tool_name": name, "is_error": True}


def _image(piece: Any) -> ImageContent:
    vendor: Mapping[str, Any] = getattr(piece, "vendor_metadata", None) or {}
    detail = str(vendor.get("detail", "auto"))
    if detail not in {"auto", "low", "high", "original"}:
        detail = "auto"
    if isinstance(piece, library.BinaryContent) and piece.is_image:
        return ImageContent.from_bytes(piece.data, piece.media_type, detail)
    if isinstance(piece, library.ImageUrl):
        return ImageContent.from_url(piece.url, detail)
    kind = getattr(piece, "media_type", "") if isinstance(piece, library.BinaryContent) else getattr(piece, "kind", "")
    raise UserError(f"a session cannot take {kind or type(piece).__name__}: leave it out of the history")


def _recording(audio: library.BinaryContent, transcript: str) -> AudioContent | None:
    try:
        return AudioContent(audio.data, transcript)
    except ArgumentError:
        if transcript:
            return None  # its words stay
        raise UserError(
            f"a session takes recordings as WAV, not {audio.media_type}: convert it, or add a transcript"
        ) from None


def _json(value: Any) -> str:
    return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()


def _seconds(part: Any) -> float | None:
    stamp = getattr(part, "timestamp", None)
    return None if stamp is None else stamp.timestamp()
