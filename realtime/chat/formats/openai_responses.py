"""A conversation as the input items of OpenAI's Responses API.

Owns: `to_openai_responses_input`. Driven by applications that hand a conversation to that API.

The shapes are those of ``openai.types.responses.ResponseInputItemParam``. A result's pictures stand inside it
(behaviour.md F11); an assistant message keeps its ``phase``, which the API asks to be sent again
(https://platform.openai.com/docs/api-reference/responses/create).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from realtime.chat.formats.arguments import arguments_text
from realtime.chat.formats.conversion import AnsweredCall, UnitContent, convert_once, copied
from realtime.chat.formats.openai import fit_id
from realtime.chat.formats.text import clean, legal_name, pictures_of, result_text, words_of
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent

__all__ = ["OpenAIResponsesFormat", "to_openai_responses_input"]

_PHASES = ("commentary", "final_answer")

Item = dict[str, Any]


def to_openai_responses_input(
    messages: Iterable[ChatMessage], *, reasoning_model: bool = False, unheard: bool = False
) -> list[Item]:
    """Convert messages to the input of OpenAI's Responses API.

    Args:
        messages: The conversation, in any state.
        reasoning_model: Send instructions as ``developer`` rather than ``system`` (behaviour.md F7).
        unheard: Add to an interrupted reply what was not heard of it (behaviour.md F10).

    Returns:
        Items that ``client.responses.create(input=…)`` takes; empty for an empty conversation.
    """
    return convert_once(OpenAIResponsesFormat(reasoning_model=reasoning_model, unheard=unheard), messages)


class OpenAIResponsesFormat:
    """Items of OpenAI's Responses API, a `conversion.Format`."""

    max_id_length = 64
    holds_recordings = False

    def __init__(self, *, reasoning_model: bool = False, unheard: bool = False) -> None:
        """Settings as in `to_openai_responses_input`."""
        self._reasoning_model = reasoning_model
        self._unheard = unheard

    def legal_id(self, call_id: str) -> str:
        """Any text, up to 64 characters."""
        return fit_id(call_id, self.max_id_length)

    def convert(self, unit: UnitContent) -> Sequence[Item]:
        """Convert one unit to the items that it becomes."""
        items: list[Item] = []
        pictures: list[ImageContent] = []
        for message in unit.speakers:
            items += self._spoken(message)
            if message.role is not ChatRole.USER:
                pictures += pictures_of(message)
        items += [_call(answered) for answered in unit.calls]
        items += [_result(answered) for answered in unit.calls]
        if pictures:  # only a user's message can hold them
            items.append({"type": "message", "role": "user", "content": [_picture(image) for image in pictures]})
        return items

    def assemble(self, pieces: Iterable[Sequence[Item]]) -> list[Item]:
        """Join the items."""
        return [copied(item) for piece in pieces for item in piece]

    def _spoken(self, message: ChatMessage) -> Sequence[Item]:
        text = words_of(message, unheard=self._unheard)
        if message.role is ChatRole.ASSISTANT:
            if not text:
                return []
            phase = message.provider_data.get("phase")
            kept = {"phase": phase} if phase in _PHASES else {}
            return [{"type": "message", "role": "assistant", "content": text, **kept}]
        role = "developer" if self._reasoning_model and message.is_instruction else message.role.value
        content: list[Item] = [{"type": "input_text", "text": text}] if text else []
        if message.role is ChatRole.USER:
            content += [_picture(image) for image in pictures_of(message)]
        return [{"type": "message", "role": role, "content": content}] if content else []


def _call(answered: AnsweredCall) -> Item:
    return {
        "type": "function_call",
        "call_id": answered.call_id,
        "name": legal_name(answered.call.name),
        "arguments": arguments_text(answered.call.arguments),
    }


def _result(answered: AnsweredCall) -> Item:
    output: str | list[Item] = result_text(answered.result)
    if answered.result is not None and (pictures := pictures_of(answered.result)):
        text = words_of(answered.result)
        output = [{"type": "input_text", "text": text}] if text else []
        output += [_picture(image) for image in pictures]
    return {"type": "function_call_output", "call_id": answered.call_id, "output": output}


def _picture(image: ImageContent) -> Item:
    return {"type": "input_image", "image_url": clean(image.url), "detail": image.detail}
