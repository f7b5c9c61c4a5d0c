"""Puts a chat message as items of OpenAI's conversation.

Owns: `items_of`. Driven by `wire/openai.py`. Which parts may stand under which role is the provider's rule: `input_text`,
`input_image` and `input_audio` for the user, `input_text` for the system, `output_text` for the model.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, Literal

from realtime.chat.formats.openai import fit_id
from realtime.chat.formats.text import INTERRUPTED_NOTE, SUMMARY_NOTE
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.errors import ArgumentError, UserError
from realtime.pcm import read_wav
from realtime.wire.json_fields import encode_base64
from realtime.wire.openai_shapes import ContentPart, Item, Role

__all__ = ["address_head", "items_of"]

_ROLES: Final[dict[str, Role]] = {
    ChatRole.SYSTEM: "system",
    ChatRole.DEVELOPER: "system",
    ChatRole.USER: "user",
    ChatRole.ASSISTANT: "assistant",
}
_MAX_CALL_ID: Final = 32
_DETAILS: Final[dict[str, Literal["auto", "low", "high"]]] = {"auto": "auto", "low": "low", "high": "high"}


def items_of(message: ChatMessage, *, input_rate_hz: int, known_calls: Container[str] = ()) -> list[Item]:
    """Put a message as items, as many as `wire.base.item_count` says, without their ids and without their pictures' data.

    Of each picture, in the message's order, only the `address_head` is there: the data are put in when it is written.

    Args:
        message: Any message.
        input_rate_hz: Rate of the audio that the provider takes.
        known_calls: Calls that the provider made itself: their ids go back as they came, however long.

    Raises:
        UserError: It holds what the protocol has no place for: a picture by address, audio at another rate without a
            transcript, a spoken reply without its text.
    """
    if message.is_result:
        return _result_items(message, _fitted(message.tool_call_id, known_calls))
    items: list[Item] = []
    content = _content_of(message, input_rate_hz)
    if content:
        item = Item(type="message", role=_ROLES[message.role], content=content)
        phase = message.provider_data.get("phase")
        if isinstance(phase, str):
            item["phase"] = phase
        items.append(item)
    if message.images and message.role != ChatRole.USER:
        items.append(_pictures_item(message.images))
    items += [_call_item(call, _fitted(call.call_id, known_calls)) for call in message.tool_calls]
    return items


def _fitted(call_id: str, known_calls: Container[str]) -> str:
    return call_id if call_id in known_calls else fit_id(call_id, _MAX_CALL_ID)


def _call_item(call: FunctionCall, call_id: str) -> Item:
    arguments = call.arguments if call.arguments.strip() else "{}"
    return Item(type="function_call", call_id=call_id, name=call.name, arguments=arguments)


def _result_items(message: ChatMessage, call_id: str) -> list[Item]:
    output = Item(type="function_call_output", call_id=call_id, output=message.content)
    return [output, _pictures_item(message.images)] if message.images else [output]


def _pictures_item(images: Sequence[ImageContent]) -> Item:
    """Pictures that the user did not show: only a user's message can hold them (behaviour.md F11)."""
    return Item(type="message", role="user", content=[_picture(image) for image in images])


def _content_of(message: ChatMessage, input_rate_hz: int) -> list[ContentPart]:
    text = message.content or (message.audio.transcript if message.audio is not None else "")
    if message.summary and text:
        text = f"{SUMMARY_NOTE} {text}"
    if message.role == ChatRole.ASSISTANT:
        return _reply_content(message, text)
    parts: list[ContentPart] = []
    if text:
        parts.append(ContentPart(type="input_text", text=text))
    elif message.audio is not None:
        if message.role != ChatRole.USER:
            raise UserError(
                f"audio in a {message.role.value} message needs a transcript: only the user's is sent as audio"
            )
        parts.append(_speech(message.audio, input_rate_hz))
    if message.role == ChatRole.USER:
        parts += [_picture(image) for image in message.images]
    return parts


def _reply_content(message: ChatMessage, text: str) -> list[ContentPart]:
    if not text and message.audio is not None:
        raise UserError("the model's earlier audio cannot be sent back to it, and this message has no transcript")
    parts: list[ContentPart] = []
    if message.thinking:
        parts.append(ContentPart(type="output_text", text=f"<thinking>{message.thinking}</thinking>"))
    if text:
        if message.interrupted and not text.endswith(INTERRUPTED_NOTE):  # F10; a replayed message says it already
            text = f"{text} {INTERRUPTED_NOTE}"
        parts.append(ContentPart(type="output_text", text=text))
    return parts


def _picture(image: ImageContent) -> ContentPart:
    if not image.is_embedded:
        raise UserError(
            "OpenAI's realtime protocol takes pictures as data URLs, not by address: fetch it first (ImageContent.from_bytes)"
        )
    return ContentPart(type="input_image", image_url=address_head(image), detail=_DETAILS.get(image.detail, "auto"))


def address_head(image: ImageContent) -> str:
    """A picture's data URL, as far as its data."""
    return f"data:{image.mime_type};base64,"


def _speech(audio: AudioContent, rate_hz: int) -> ContentPart:
    pcm, given_hz, channels = read_wav(audio.data)
    if given_hz != rate_hz or channels != 1:
        given = f"{given_hz} Hz with {channels} channel(s)"
        raise ArgumentError("audio", given, f"mono at {rate_hz} Hz, or have a transcript")
    return ContentPart(type="input_audio", audio=encode_base64(pcm))
