"""A conversation as Anthropic's messages.

Owns: `to_anthropic_messages`. Driven by `ChatContext.to_anthropic_messages` and by applications.

The shapes are those of ``anthropic.types.MessageParam``. All results of a round stand first in the one user message
behind its calls, with their pictures in them (https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from realtime.chat.formats.alternating import Part, Said, alternate, instruction
from realtime.chat.formats.arguments import arguments_object
from realtime.chat.formats.conversion import AnsweredCall, UnitContent, convert_once
from realtime.chat.formats.openai import fit_id
from realtime.chat.formats.text import clean, legal_name, pictures_of, result_text, words_of
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent

__all__ = ["AnthropicFormat", "AnthropicMessages", "to_anthropic_messages"]

_NOT_IN_IDS: Final = re.compile(r"[^a-zA-Z0-9_-]")
_TEXT: Final[Part] = {"type": "text"}


class AnthropicMessages(NamedTuple):
    """What ``client.messages.create`` takes."""

    messages: list[dict[str, Any]]
    """The messages, beginning and ending with the user; empty for an empty conversation."""
    system: str | None
    """The leading instructions, or None if there are none."""


def to_anthropic_messages(messages: Iterable[ChatMessage], *, unheard: bool = False) -> AnthropicMessages:
    """Convert messages to Anthropic's.

    Args:
        messages: The conversation, in any state.
        unheard: Add to an interrupted reply what was not heard of it (behaviour.md F10).

    Returns:
        ``(messages, system)``.
    """
    return convert_once(AnthropicFormat(unheard=unheard), messages)


class AnthropicFormat:
    """Anthropic's messages, a `conversion.Format`."""

    max_id_length = 64
    holds_recordings = False

    def __init__(self, *, unheard: bool = False) -> None:
        """Settings as in `to_anthropic_messages`."""
        self._unheard = unheard

    def legal_id(self, call_id: str) -> str:
        """Letters, digits, ``_`` and ``-``."""
        return _NOT_IN_IDS.sub("_", fit_id(call_id, self.max_id_length))

    def convert(self, unit: UnitContent) -> Sequence[Said]:
        """Convert one unit to what each side says in it."""
        if unit.calls:
            return self._round(unit)
        message = unit.speakers[0]
        text = words_of(message, unheard=self._unheard)
        pictures = [_picture(image) for image in pictures_of(message)]
        if message.is_instruction:
            return [*([instruction(unit, text, _TEXT)] if text else []), Said("user", pictures)]
        words = [_text(text)] if text else []
        if message.role is ChatRole.USER:
            return [Said("user", [*words, *pictures])]
        return [Said("model", words), Said("user", pictures)]

    def assemble(self, pieces: Iterable[Sequence[Said]]) -> AnthropicMessages:
        """Merge neighbors, and see to the beginning and the end."""
        turns, system = alternate(pieces, _TEXT)
        roles = {"user": "user", "model": "assistant"}
        return AnthropicMessages([{"role": roles[side], "content": parts} for side, parts in turns], system)

    def _round(self, unit: UnitContent) -> Sequence[Said]:
        said = [_text(text) for message in unit.speakers if (text := words_of(message, unheard=self._unheard))]
        pictures = [_picture(image) for message in unit.speakers for image in pictures_of(message)]
        asked = [
            {
                "type": "tool_use",
                "id": answered.call_id,
                "name": legal_name(answered.call.name),
                "input": arguments_object(answered.call.arguments),
            }
            for answered in unit.calls
        ]
        return [Said("model", [*said, *asked]), Said("user", [*map(_result, unit.calls), *pictures])]


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _result(answered: AnsweredCall) -> Part:
    result = answered.result
    pictures = [_picture(image) for image in pictures_of(result)] if result is not None else []
    words = words_of(result) if result is not None and pictures else result_text(result)
    block: Part = {
        "type": "tool_result",
        "tool_use_id": answered.call_id,
        "content": [*([_text(words)] if words else []), *pictures],
    }
    if result is not None and result.is_error:
        block["is_error"] = True
    return block


def _picture(image: ImageContent) -> Part:
    if not image.byte_length:
        return {"type": "image", "source": {"type": "url", "url": clean(image.url)}}
    data = base64.b64encode(image.data).decode("ascii")
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": data}}
