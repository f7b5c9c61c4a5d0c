"""What one response is to be: its session's configuration with what `response.create` says.

Owns: `ResponseSettings` and `read_response`. Driven by the session. Never acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from realtime.errors import ModelError
from realtime.local.config import SessionConfiguration
from realtime.local.config_fields import (
    ToolChoice,
    check_choice_exists,
    read_format,
    read_max_tokens,
    read_modality,
    read_tool_choice,
    read_tools,
    read_voice,
)
from realtime.local.fields import Fields, check_known, read_choice, read_list, read_object, read_text, wrong_type
from realtime.local.items import StoredItem, read_item
from realtime.local.parts import Tool
from realtime.local.wordlists import word_set
from realtime.wire.openai_messages import INVALID_VALUE

__all__ = ["ResponseSettings", "read_response"]

_FIELDS = word_set(
    "conversation instructions output_modalities audio input tools tool_choice max_output_tokens metadata"
    " parallel_tool_calls reasoning prompt"
)
_MAX_METADATA = 16
_MAX_METADATA_KEY = 64
_MAX_METADATA_VALUE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSettings:
    """What one response is to be."""

    instructions: str = ""
    """What the responder is told about its part."""
    modality: Literal["audio", "text"] = "audio"
    """Whether it speaks or writes."""
    output_format: str = "audio/pcm"
    """How the client wants its audio."""
    voice: str = "heart"
    """The voice's name."""
    speed: float = 1.0
    """The voice's pace."""
    tools: tuple[Tool, ...] = ()
    """What the responder may call."""
    tool_choice: ToolChoice = "auto"
    """Whether it may, must not or must call one."""
    max_output_tokens: int | None = None
    """The longest reply."""
    metadata: Mapping[str, str] | None = None
    """The client's, echoed."""
    in_conversation: bool = True
    """False: out of band; nothing of it joins the conversation."""
    input: tuple[StoredItem, ...] | None = None
    """What it answers instead of the conversation."""

    @classmethod
    def of_session(cls, session: SessionConfiguration) -> ResponseSettings:
        """As the session says, for a response that the end of a turn asks for."""
        return cls(
            instructions=session.instructions,
            modality=session.modality,
            output_format=session.output_format,
            voice=session.voice,
            speed=session.speed,
            tools=session.tools,
            tool_choice=session.tool_choice,
            max_output_tokens=session.max_output_tokens,
        )


def read_response(
    session: SessionConfiguration,
    response: Fields,
    *,
    find: Callable[[str], StoredItem],
    make_id: Callable[[str], str],
) -> ResponseSettings:
    """Read the `response` of a `response.create`.

    Args:
        session: What holds where it says nothing.
        response: The object; may be empty.
        find: Gives the item of an id, for references to it; raises if there is none.
        make_id: Makes an id with a prefix, for items of `input` that have none.

    Raises:
        ModelError: A field cannot be; `param` names it.
    """
    param = "response"
    check_known(response, _FIELDS, param)
    settings = ResponseSettings.of_session(session)
    changes: dict[str, Any] = {}
    if response.get("conversation") is not None:
        changes["in_conversation"] = read_choice(response, "conversation", param, ("auto", "none")) == "auto"
    if response.get("instructions") is not None:
        changes["instructions"] = read_text(response, "instructions", param, empty=True)
    if response.get("output_modalities") is not None:
        changes["modality"] = read_modality(response, param)
    if response.get("tools") is not None:
        changes["tools"] = read_tools(response, param)
        if settings.tool_choice.startswith("function:"):
            changes["tool_choice"] = "auto"
    if response.get("tool_choice") is not None:
        changes["tool_choice"] = read_tool_choice(response, param)
    if response.get("max_output_tokens") is not None:
        changes["max_output_tokens"] = read_max_tokens(response, param)
    if response.get("metadata") is not None:
        changes["metadata"] = _read_metadata(response)
    if response.get("input") is not None:
        changes["input"] = _read_input(response, session.input_format, find, make_id)
    changes |= _read_output(response)
    settings = replace(settings, **changes)
    check_choice_exists(settings.tool_choice, settings.tools, "response.tool_choice")
    return settings


def _read_output(response: Fields) -> dict[str, Any]:
    audio = read_object(response, "audio", "response")
    check_known(audio, ("input", "output"), "response.audio")
    output = read_object(audio, "output", "response.audio")
    param = "response.audio.output"
    check_known(output, ("format", "voice"), param)
    changes: dict[str, Any] = {}
    if output.get("format") is not None:
        changes["output_format"] = read_format(output, param)
    if output.get("voice") is not None:
        changes["voice"] = read_voice(output, param)
    return changes


def _read_metadata(response: Fields) -> Mapping[str, str]:
    metadata = read_object(response, "metadata", "response")
    if len(metadata) > _MAX_METADATA:
        text = f"Invalid 'response.metadata': too many properties. Expected at most {_MAX_METADATA}."
        raise ModelError(text, code=INVALID_VALUE, param="response.metadata")
    for key in metadata:
        if len(key) > _MAX_METADATA_KEY:
            text = f"Invalid 'response.metadata': keys have at most {_MAX_METADATA_KEY} characters."
            raise ModelError(text, code=INVALID_VALUE, param="response.metadata")
        read_text(metadata, key, "response.metadata", empty=True, longest=_MAX_METADATA_VALUE)
    return {key: str(value) for key, value in metadata.items()}


def _read_input(
    response: Fields, audio_format: str, find: Callable[[str], StoredItem], make_id: Callable[[str], str]
) -> tuple[StoredItem, ...]:
    items: list[StoredItem] = []
    for number, value in enumerate(read_list(response, "input", "response")):
        where = f"response.input[{number}]"
        if not isinstance(value, dict):
            raise wrong_type(where, value, "an object")
        item = cast("Fields", value)
        if item.get("type") == "item_reference":
            try:
                items.append(find(read_text(item, "id", where)))
            except ModelError as error:
                raise ModelError(error.message, code=INVALID_VALUE, param=f"{where}.id") from None
        else:
            items.append(read_item(item, new_id=make_id("item_"), audio_format=audio_format, param=where))
    return tuple(items)
