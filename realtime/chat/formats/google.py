"""A conversation as Gemini's contents.

Owns: `to_google_contents`. Driven by `ChatContext.to_google_contents` and by applications.

The shapes are those of ``google.genai.types.Content``, as dicts with bytes in base64, as its JSON has them. A round is one
model content with all calls and one user content with as many responses, in the same order
(https://ai.google.dev/gemini-api/docs/function-calling). A thought signature goes back on the very part that it came on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from realtime.chat.formats.alternating import Part, Said, alternate, instruction
from realtime.chat.formats.arguments import arguments_object
from realtime.chat.formats.conversion import AnsweredCall, UnitContent, convert_once
from realtime.chat.formats.openai import fit_id
from realtime.chat.formats.text import UNSEEN_PICTURE, clean, legal_name, pictures_of, result_text, words_of
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent

__all__ = ["GoogleContents", "GoogleFormat", "sees", "to_google_contents"]

_TEXT: Final[Part] = {}
_RESOLUTIONS: Final = {
    "low": "MEDIA_RESOLUTION_LOW",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_ULTRA_HIGH",
}
"""Levels for one part, which models from Gemini 3 on take (https://ai.google.dev/gemini-api/docs/media-resolution)."""
_DEFAULT_TYPE: Final = "image/jpeg"
_REFUSED_TYPE: Final = "image/gif"
"""The one kind of picture of ours that Gemini refuses (https://ai.google.dev/gemini-api/docs/image-understanding)."""


class GoogleContents(NamedTuple):
    """What ``client.models.generate_content`` takes."""

    contents: list[dict[str, Any]]
    """The contents, beginning and ending with the user; empty for an empty conversation."""
    system_instruction: str | None
    """The leading instructions, or None if there are none."""


def to_google_contents(
    messages: Iterable[ChatMessage], *, audio: bool = False, unheard: bool = False
) -> GoogleContents:
    """Convert messages to Gemini's contents.

    Args:
        messages: The conversation, in any state.
        audio: Send the user's recordings rather than their transcripts (behaviour.md F11).
        unheard: Add to an interrupted reply what was not heard of it (behaviour.md F10).

    Returns:
        ``(contents, system_instruction)``.
    """
    return convert_once(GoogleFormat(audio=audio, unheard=unheard), messages)


class GoogleFormat:
    """Gemini's contents, a `conversion.Format`."""

    max_id_length = 64
    holds_recordings: bool

    def __init__(self, *, audio: bool = False, unheard: bool = False) -> None:
        """Settings as in `to_google_contents`."""
        self.holds_recordings = audio
        self._unheard = unheard

    def legal_id(self, call_id: str) -> str:
        """Any text, up to 64 characters."""
        return fit_id(call_id, self.max_id_length)

    def convert(self, unit: UnitContent) -> Sequence[Said]:
        """Convert one unit to what each side says in it."""
        if unit.calls:
            return self._round(unit)
        message = unit.speakers[0]
        text = words_of(message, unheard=self._unheard, transcript=not self._sends_audio(message))
        pictures = [_picture(image) for image in pictures_of(message)]
        if message.is_instruction:
            return [*([instruction(unit, text, _TEXT)] if text else []), Said("user", pictures)]
        if message.role is not ChatRole.USER:
            return [Said("model", [{"text": text}] if text else []), Said("user", pictures)]
        if message.audio is not None and self._sends_audio(message):
            if text == clean(message.audio.transcript):
                text = ""  # the recording says it
            pictures.append({"inline_data": {"mime_type": "audio/wav", "data": _base64(message.audio.data)}})
        return [Said("user", [*([{"text": text}] if text else []), *pictures])]

    def assemble(self, pieces: Iterable[Sequence[Said]]) -> GoogleContents:
        """Merge neighbors, and see to the beginning and the end."""
        turns, system = alternate(pieces, _TEXT)
        return GoogleContents([{"role": side, "parts": parts} for side, parts in turns], system)

    def _sends_audio(self, message: ChatMessage) -> bool:
        return self.holds_recordings and message.audio is not None and message.role is ChatRole.USER

    def _round(self, unit: UnitContent) -> Sequence[Said]:
        said = [{"text": text} for message in unit.speakers if (text := words_of(message, unheard=self._unheard))]
        pictures = [_picture(image) for message in unit.speakers for image in pictures_of(message)]
        asked = [
            {
                "function_call": {
                    "id": answered.call_id,
                    "name": _name(answered.call),
                    "args": arguments_object(answered.call.arguments),
                },
                **_signature(answered.call.provider_data),
            }
            for answered in unit.calls
        ]
        return [Said("model", [*said, *asked]), Said("user", [*map(_response, unit.calls), *pictures])]


def _name(call: FunctionCall) -> str:
    name = legal_name(call.name)
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[:63]}"


def _signature(provider_data: Mapping[str, Any]) -> Part:
    """The signature that came with a part, under the name that it came under."""
    for key in ("thought_signature", "thoughtSignature"):
        signature = provider_data.get(key)
        if isinstance(signature, bytes):
            return {key: _base64(signature)}
        if isinstance(signature, str) and _is_base64(signature):
            return {key: signature}
    return {}


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)
    except ValueError:
        return False
    return bool(text)


def _response(answered: AnsweredCall) -> Part:
    result = answered.result
    key = "error" if result is not None and result.is_error else "output"
    text = result_text(result)
    response: Part = {"id": answered.call_id, "name": _name(answered.call), "response": {key: text}}
    if result is not None and (pictures := pictures_of(result)):
        seen = [_data(image) for image in pictures if sees(image)]
        if len(seen) < len(pictures):
            response["response"][key] = " ".join((words_of(result), UNSEEN_PICTURE)).strip()
        if seen:
            response["parts"] = seen
    return {"function_response": response}


def sees(image: ImageContent) -> bool:
    """Whether Gemini takes pictures of this kind."""
    return image.mime_type != _REFUSED_TYPE


def _picture(image: ImageContent) -> Part:
    if not sees(image):
        return {"text": UNSEEN_PICTURE}
    level = _RESOLUTIONS.get(image.detail)
    return {**_data(image), "media_resolution": {"level": level}} if level else _data(image)


def _data(image: ImageContent) -> Part:
    if image.byte_length:
        return {"inline_data": {"mime_type": image.mime_type, "data": _base64(image.data)}}
    return {"file_data": {"file_uri": clean(image.url), "mime_type": image.mime_type or _DEFAULT_TYPE}}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
