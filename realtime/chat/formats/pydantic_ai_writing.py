"""Writes messages as Pydantic AI's. Loaded by `formats/pydantic_ai`, with that library there.

Owns: `write`. What a message is beside its parts goes into its request's or response's metadata under `METADATA_KEY`:
``{"parts": [message of each part], "messages": [fields]}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pydantic_ai import messages as library

from realtime.chat.formats.context_messages import to_context_message
from realtime.chat.formats.conversion import AnsweredCall, UnitContent, convert_once
from realtime.chat.formats.text import clean, pictures_of, result_text, words_of
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent

__all__ = ["HAS_SPEECH", "METADATA_KEY", "write"]

HAS_SPEECH: Final = hasattr(library, "SpeechPart")
"""Whether the installed version knows speech."""
METADATA_KEY: Final = "realtime"
_DEFAULT_TYPE: Final = "image/jpeg"


def write(messages: Iterable[ChatMessage]) -> list[library.ModelMessage]:
    """Write a conversation."""
    return convert_once(_PydanticAIFormat(has_speech=HAS_SPEECH), messages)


class _Written(NamedTuple):
    """One part."""

    part: Any
    """Pydantic AI's part."""
    is_response: bool
    """Whether the model says it."""
    message: ChatMessage | None
    """Whose part it is; None for what no message says."""
    text: str
    """Which text of the message it gives."""


class _PydanticAIFormat:
    """Pydantic AI's messages, a `conversion.Format`."""

    max_id_length = 1 << 16
    holds_recordings = True

    def __init__(self, *, has_speech: bool) -> None:
        self._has_speech = has_speech

    def legal_id(self, call_id: str) -> str:
        return clean(call_id).strip()

    def convert(self, unit: UnitContent) -> Sequence[_Written]:
        parts = [part for message in unit.speakers for part in self._spoken(message)]
        if not unit.calls:
            return parts
        said = [part for part in parts if part.is_response]
        for call, call_id, _ in unit.calls:
            asking = next((one for one in unit.speakers if any(each is call for each in one.tool_calls)), None)
            said.append(
                _Written(
                    library.ToolCallPart(clean(call.name), clean(call.arguments) or None, call_id), True, asking, ""
                )
            )
        return [*said, *map(_result, unit.calls), *(part for part in parts if not part.is_response)]

    def assemble(self, pieces: Iterable[Sequence[_Written]]) -> list[library.ModelMessage]:
        written: list[library.ModelMessage] = []
        run: list[_Written] = []
        for piece in pieces:
            for part in piece:
                if run and run[-1].is_response is not part.is_response:
                    written.append(_message_of(run))
                    run = []
                run.append(part)
        if run:
            written.append(_message_of(run))
        return written

    def _spoken(self, message: ChatMessage) -> list[_Written]:
        if message.role is ChatRole.ASSISTANT:
            return self._reply(message)
        if message.is_instruction:
            text = words_of(message)
            prompt = library.SystemPromptPart(text, **_timestamp(message))
            return [*([_Written(prompt, False, message, text)] if text else []), *_shown(message)]
        return self._question(message)

    def _question(self, message: ChatMessage) -> list[_Written]:
        text = words_of(message)
        if self._has_speech and (message.audio is not None or message.is_empty):
            audio = None if message.audio is None else _wav(message.audio.data)
            speech = library.SpeechPart(speaker="user", transcript=text or None, audio=audio)
            return [_Written(speech, False, message, text), *_shown(message)]
        content: list[Any] = [text] if text else []
        if message.audio is not None and not text:
            content.append(_wav(message.audio.data))
        content += [_picture(image) for image in pictures_of(message)]
        if not content:
            return []
        whole = content[0] if content == [text] else content
        return [_Written(library.UserPromptPart(whole, **_timestamp(message)), False, message, text)]

    def _reply(self, message: ChatMessage) -> list[_Written]:
        parts: list[_Written] = []
        if message.thinking.strip():
            parts.append(_Written(library.ThinkingPart(clean(message.thinking)), True, message, ""))
        heard = words_of(replace(message, interrupted=False))
        is_cut = message.interrupted and message.heard_ms is not None
        if self._has_speech and heard and (message.audio is not None or is_cut) and (is_cut or not message.interrupted):
            audio = None if message.audio is None else _wav(message.audio.data)
            cut_at = message.heard_ms if is_cut else None
            speech = library.SpeechPart(speaker="assistant", transcript=heard, audio=audio, interrupted_at_ms=cut_at)
            parts.append(_Written(speech, True, message, heard))
        elif text := words_of(message):
            parts.append(_Written(library.TextPart(text), True, message, text))
        return [*parts, *_shown(message)]


def _result(answered: AnsweredCall) -> _Written:
    call, call_id, result = answered
    text = result_text(result)
    if result is None:
        return _Written(library.ToolReturnPart(clean(call.name), text, call_id), False, None, "")
    content: Any = text
    if pictures := pictures_of(result):
        content = [*([words] if (words := words_of(result)) else []), *map(_picture, pictures)]
        text = words
    outcome: Any = {"outcome": "failed"} if result.is_error else {}
    part = library.ToolReturnPart(clean(call.name), content, call_id, **outcome, **_timestamp(result))
    return _Written(part, False, result, text)


def _shown(message: ChatMessage) -> list[_Written]:
    """A message's pictures, as what the user shows; those of the model are no longer its own then."""
    pictures = [_picture(image) for image in pictures_of(message)]
    owner = None if message.role is ChatRole.ASSISTANT else message
    return [_Written(library.UserPromptPart(pictures), False, owner, "")] if pictures else []


def _picture(image: ImageContent) -> library.BinaryContent | library.ImageUrl:
    extra: Any = {} if image.detail == "auto" else {"vendor_metadata": {"detail": image.detail}}
    if image.byte_length:
        return library.BinaryContent(image.data, media_type=image.mime_type, **extra)
    return library.ImageUrl(clean(image.url), media_type=image.mime_type or _DEFAULT_TYPE, **extra)


def _wav(data: bytes) -> library.BinaryContent:
    return library.BinaryContent(data, media_type="audio/wav")


def _timestamp(message: ChatMessage) -> dict[str, Any]:
    if message.created_at is None:
        return {}
    try:
        return {"timestamp": datetime.fromtimestamp(message.created_at, UTC)}
    except (OverflowError, ValueError, OSError):  # no date that anybody knows
        return {}


def _message_of(run: Sequence[_Written]) -> library.ModelMessage:
    """One request or response of neighboring parts, with what their messages are besides."""
    numbers: dict[int, int] = {}
    fields: list[dict[str, Any]] = []
    texts: list[str] = []
    of_part: list[int | None] = []
    for part in run:
        if part.message is None:
            of_part.append(None)
            continue
        number = numbers.setdefault(id(part.message), len(numbers))
        if number == len(fields):
            fields.append(_fields_of(part.message))
            texts.append("")
        texts[number] = texts[number] or part.text
        of_part.append(number)
    for part in run:
        if part.message is not None:
            number = numbers[id(part.message)]
            if part.message.content != texts[number]:
                fields[number]["content"] = clean(part.message.content)
    metadata = {METADATA_KEY: {"parts": of_part, "messages": fields}}
    parts = [part.part for part in run]
    if not run[0].is_response:
        return library.ModelRequest(parts=parts, metadata=metadata)
    spoken = next((part.message for part in run if part.message is not None), ChatMessage())
    return library.ModelResponse(parts=parts, metadata=metadata, **_timestamp(spoken))


def _fields_of(message: ChatMessage) -> dict[str, Any]:
    """What no part says."""
    bare = replace(
        message, content="", tool_calls=(), tool_call_id="", images=(), audio=None, thinking="", provider_data={}
    )
    fields = to_context_message(bare)
    del fields["content"]
    return {name: clean(value) if isinstance(value, str) else value for name, value in fields.items()}
