"""A conversation as OpenAI's chat messages (Chat Completions), which most other servers take, too.

Owns: `to_openai_messages`. Driven by `ChatContext.to_openai_messages`, the context manager and `models/chat.py`.

The shapes are those of ``openai.types.chat.ChatCompletionMessageParam``. Pictures and audio may stand in user messages
only, so those of anyone else go in a user message behind the whole round (behaviour.md F11). Call ids are at most 40
characters (https://platform.openai.com/docs/api-reference/chat/create).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from realtime.chat.formats.arguments import arguments_text
from realtime.chat.formats.conversion import UnitContent, convert_once, copied
from realtime.chat.formats.text import clean, legal_name, pictures_of, result_text, words_of
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, ImageContent

__all__ = ["OpenAIChatFormat", "fit_id", "to_openai_messages"]

_MAX_PARTICIPANT: Final = 64
_NOT_IN_PARTICIPANTS: Final = re.compile(r"[\s<|\\/>]+")

Message = dict[str, Any]


def to_openai_messages(
    messages: Iterable[ChatMessage], *, reasoning_model: bool = False, audio: bool = False, unheard: bool = False
) -> list[Message]:
    """Convert messages to OpenAI's chat messages.

    Args:
        messages: The conversation, in any state.
        reasoning_model: Send instructions as ``developer`` rather than ``system`` (behaviour.md F7).
        audio: Send the user's recordings rather than their transcripts (behaviour.md F11).
        unheard: Add to an interrupted reply what was not heard of it (behaviour.md F10).

    Returns:
        Messages that ``client.chat.completions.create(messages=…)`` takes; empty for an empty conversation.
    """
    return convert_once(OpenAIChatFormat(reasoning_model=reasoning_model, audio=audio, unheard=unheard), messages)


def fit_id(call_id: str, most: int) -> str:
    """A call's id, or, if it is longer than the provider takes, always the same shorter one."""
    text = clean(call_id).strip()
    if len(text) <= most:
        return text
    return "call_" + hashlib.sha256(text.encode()).hexdigest()[: most - len("call_")]


class OpenAIChatFormat:
    """OpenAI's chat messages, a `conversion.Format`."""

    max_id_length = 40
    holds_recordings: bool

    def __init__(self, *, reasoning_model: bool = False, audio: bool = False, unheard: bool = False) -> None:
        """Settings as in `to_openai_messages`."""
        self._reasoning_model = reasoning_model
        self.holds_recordings = audio
        self._unheard = unheard

    def legal_id(self, call_id: str) -> str:
        """Any text, up to 40 characters."""
        return fit_id(call_id, self.max_id_length)

    def convert(self, unit: UnitContent) -> Sequence[Message]:
        """Convert one unit to the messages that it becomes."""
        if unit.calls:
            return self._round(unit)
        return self._plain(unit.speakers[0])

    def assemble(self, pieces: Iterable[Sequence[Message]]) -> list[Message]:
        """Join the messages; a text right before the calls of the same turn becomes one message with them."""
        joined: list[Message] = []
        for piece in pieces:
            for message in piece:
                if "tool_calls" in message and joined and _is_bare_text(joined[-1]):
                    joined[-1] = _with_calls(joined[-1], message)
                else:
                    joined.append(copied(message))
        return joined

    def _plain(self, message: ChatMessage) -> Sequence[Message]:
        text = words_of(message, unheard=self._unheard, transcript=not self._sends_audio(message))
        if message.role is ChatRole.USER:
            return self._user(message, text)
        behind = _pictures_message(pictures_of(message))
        if not text:
            return behind
        role = "developer" if self._reasoning_model and message.is_instruction else message.role.value
        return [{"role": role, "content": text, **_participant(message)}, *behind]

    def _user(self, message: ChatMessage, text: str) -> Sequence[Message]:
        parts = [_picture(image) for image in pictures_of(message)]
        if message.audio is not None and self._sends_audio(message):
            if text == clean(message.audio.transcript):
                text = ""  # the recording says it
            parts.append(_recording(message.audio))
        if text and not parts:
            return [{"role": "user", "content": text, **_participant(message)}]
        if text:
            parts.insert(0, {"type": "text", "text": text})
        return [{"role": "user", "content": parts, **_participant(message)}] if parts else []

    def _sends_audio(self, message: ChatMessage) -> bool:
        return self.holds_recordings and message.audio is not None and message.role is ChatRole.USER

    def _round(self, unit: UnitContent) -> Sequence[Message]:
        said = [text for message in unit.speakers if (text := words_of(message, unheard=self._unheard))]
        pictures = [image for message in unit.speakers for image in pictures_of(message)]
        calls: list[Message] = []
        results: list[Message] = []
        for call, call_id, result in unit.calls:
            function = {"name": legal_name(call.name), "arguments": arguments_text(call.arguments)}
            calls.append({"id": call_id, "type": "function", "function": function})
            results.append({"role": "tool", "content": result_text(result), "tool_call_id": call_id})
            if result is not None:
                pictures += pictures_of(result)
        asked = {"role": "assistant", "content": "\n\n".join(said) or None, "tool_calls": calls}
        return [asked, *results, *_pictures_message(pictures)]


def _is_bare_text(message: Message) -> bool:
    return message["role"] == "assistant" and "tool_calls" not in message


def _with_calls(text: Message, asked: Message) -> Message:
    """One message of the two; the text stands before what the calls' message says itself."""
    said = [part for part in (text["content"], asked["content"]) if part]
    return {**text, "content": "\n\n".join(said) or None, "tool_calls": copied(asked["tool_calls"])}


def _pictures_message(pictures: Sequence[ImageContent]) -> list[Message]:
    """Pictures that were not shown by the user: only a user's message can hold them."""
    return [{"role": "user", "content": [_picture(image) for image in pictures]}] if pictures else []


def _picture(image: ImageContent) -> Message:
    return {"type": "image_url", "image_url": {"url": clean(image.url), "detail": image.detail}}


def _recording(audio: AudioContent) -> Message:
    data = base64.b64encode(audio.data).decode("ascii")
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def _participant(message: ChatMessage) -> Message:
    """The speaker's name, if the message has one for OpenAI (``provider_data["name"]``)."""
    name = message.provider_data.get("name")
    if not isinstance(name, str):
        return {}
    legal = _NOT_IN_PARTICIPANTS.sub("_", clean(name).strip())[:_MAX_PARTICIPANT]
    return {"name": legal} if legal else {}
