"""Puts a chat message as turns of Gemini's conversation.

Owns: `turns_of`, `picture_part`, `picture_blob`; what Gemini sees is `chat/formats/google.py`'s. Driven by `wire/gemini.py`. A tool round that another connection had goes as text that can
be read: Gemini pairs calls and results within a connection only. Never acts.
"""

from __future__ import annotations

from realtime.chat.formats.google import sees
from realtime.chat.formats.text import UNSEEN_PICTURE, result_text, tagged_instruction, words_of
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.errors import UserError
from realtime.wire.json_fields import JsonObject, encode_base64

__all__ = ["picture_blob", "picture_part", "turns_of"]


def turns_of(message: ChatMessage) -> list[JsonObject]:
    """A message as turns of the conversation; an earlier tool round as text that can be read.

    Raises:
        UserError: It holds a picture by address, or speech without a transcript.
    """
    if message.is_result:
        name = message.tool_name or message.tool_call_id or "a tool"
        parts: list[JsonObject] = [{"text": f"[{name} gave: {result_text(message)}]"}]
        return [{"role": "user", "parts": parts + _pictures(message)}]
    text = words_of(message)
    if message.audio is not None and not text:
        raise UserError("Gemini takes no earlier audio, and this message has no transcript")
    if message.is_instruction and text:
        text = tagged_instruction(text)
    parts = [{"text": text}] if text else []
    calls = [{"text": f"[called {call.name}({call.arguments})]"} for call in message.tool_calls]
    pictures = _pictures(message)
    if message.role == ChatRole.ASSISTANT:
        turns: list[JsonObject] = [{"role": "model", "parts": parts + calls}] if parts or calls else []
        return turns + ([{"role": "user", "parts": pictures}] if pictures else [])
    return [{"role": "user", "parts": parts + pictures}] if pictures or parts else []


def _pictures(message: ChatMessage) -> list[JsonObject]:
    return [picture_part(image) for image in message.images]


def picture_part(image: ImageContent) -> JsonObject:
    """A picture among words; of a kind that Gemini does not take, a note in its place.

    Raises:
        UserError: Only its address is known.
    """
    return {"inlineData": picture_blob(image)} if sees(image) else {"text": UNSEEN_PICTURE}


def picture_blob(image: ImageContent) -> JsonObject:
    """A picture as data.

    Raises:
        UserError: Only its address is known, or it is of a kind that Gemini does not take.
    """
    if not sees(image):
        raise UserError(f"Gemini takes no {image.mime_type}: make a JPEG of it first (realtime.encode)")
    if not image.is_embedded:
        raise UserError("Gemini Live takes pictures as data, not by address: fetch it first (ImageContent.from_bytes)")
    return {"data": encode_base64(image.data), "mimeType": image.mime_type}
