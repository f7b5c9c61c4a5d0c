"""The fields that a session's configuration and a single response share, read and written.

Owns: one reader per field, its inverse, and what the fields may hold. Driven by `config.py` and `response_config.py`.
Never acts.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

from realtime.errors import ModelError
from realtime.local.codecs import FORMATS
from realtime.local.fields import (
    Fields,
    check_known,
    invalid,
    read_choice,
    read_list,
    read_number,
    read_object,
    read_text,
    wrong_type,
)
from realtime.local.parts import Tool
from realtime.wire.openai_messages import INVALID_VALUE, AudioFormat, FunctionTool

__all__ = [
    "VOICES",
    "ToolChoice",
    "check_choice_exists",
    "choice_to_wire",
    "format_to_wire",
    "read_format",
    "read_max_tokens",
    "read_modality",
    "read_tool_choice",
    "read_tools",
    "read_voice",
    "tool_to_wire",
]

VOICES = ("heart", "alloy", "ash", "ballad", "cedar", "coral", "echo", "marin", "sage", "shimmer", "verse")
"""The embedded voice, and the names of OpenAI's that it also answers to."""
MAX_TOOLS = 128
MAX_OUTPUT_TOKENS = 4096

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

ToolChoice = str
"""``auto``, ``none``, ``required``, or ``function:NAME``."""


def read_modality(fields: Fields, param: str) -> Literal["audio", "text"]:
    """`output_modalities`: one of the two."""
    given = read_list(fields, "output_modalities", param)
    if given not in (["audio"], ["text"]):
        raise invalid(f"{param}.output_modalities", given, "['audio'] and ['text']")
    return cast("Literal['audio', 'text']", given[0])


def read_format(fields: Fields, param: str) -> str:
    """An audio format."""
    param = f"{param}.format"
    value = fields["format"]
    if not isinstance(value, dict):
        raise wrong_type(param, value, "an object")
    audio_format = cast("Fields", value)
    check_known(audio_format, ("type", "rate"), param)
    kind = read_choice(audio_format, "type", param, tuple(FORMATS))
    rate = FORMATS[kind].rate_hz
    read_number(audio_format, "rate", param, default=rate, least=rate, most=rate, whole=True)
    return kind


def read_voice(fields: Fields, param: str) -> str:
    """A voice by name, or OpenAI's object for a voice of one's own, which is not here."""
    if isinstance(fields["voice"], dict):
        raise invalid(f"{param}.voice", "an object", ", ".join(f"'{voice}'" for voice in VOICES))
    return read_choice(fields, "voice", param, VOICES)


def read_max_tokens(fields: Fields, param: str) -> int | None:
    """`max_output_tokens`: a number, or ``inf``."""
    if fields["max_output_tokens"] == "inf":
        return None
    return int(read_number(fields, "max_output_tokens", param, default=0, least=1, most=MAX_OUTPUT_TOKENS, whole=True))


def read_tools(fields: Fields, param: str) -> tuple[Tool, ...]:
    """The functions that may be called; names are unique."""
    given = read_list(fields, "tools", param)
    if len(given) > MAX_TOOLS:
        text = f"Invalid '{param}.tools': array too long. Expected at most {MAX_TOOLS}, but got {len(given)} instead."
        raise ModelError(text, code=INVALID_VALUE, param=f"{param}.tools")
    tools: dict[str, Tool] = {}
    for number, value in enumerate(given):
        where = f"{param}.tools[{number}]"
        if not isinstance(value, dict):
            raise wrong_type(where, value, "an object")
        tool = cast("Fields", value)
        read_choice(tool, "type", where, ("function",))
        name = read_text(tool, "name", where)
        if not _TOOL_NAME.fullmatch(name):
            raise invalid(f"{where}.name", name, "strings that match '^[a-zA-Z0-9_-]{1,64}$'")
        if name in tools:
            raise invalid(f"{where}.name", name, "names that no other tool has")
        description = read_text(tool, "description", where, default="", empty=True)
        tools[name] = Tool(name=name, description=description, parameters=read_object(tool, "parameters", where))
    return tuple(tools.values())


def read_tool_choice(fields: Fields, param: str) -> ToolChoice:
    """`tool_choice`: a word, or one function."""
    value = fields["tool_choice"]
    if isinstance(value, dict):
        where = f"{param}.tool_choice"
        choice = cast("Fields", value)
        read_choice(choice, "type", where, ("function",))
        return f"function:{read_text(choice, 'name', where)}"
    return read_choice(fields, "tool_choice", param, ("auto", "none", "required"))


def check_choice_exists(choice: ToolChoice, tools: tuple[Tool, ...], param: str) -> None:
    """Refuse a forced function that is not offered."""
    name = choice.removeprefix("function:")
    if name != choice and all(tool.name != name for tool in tools):
        raise invalid(param, name, ", ".join(f"'{tool.name}'" for tool in tools) or "none, as there are no tools")


def format_to_wire(kind: str) -> AudioFormat:
    """As an audio `format`."""
    if kind == "audio/pcm":
        return AudioFormat(type="audio/pcm", rate=FORMATS[kind].rate_hz)
    return AudioFormat(type=cast("Any", kind))


def tool_to_wire(tool: Tool) -> FunctionTool:
    """As an entry of `tools`."""
    parameters = dict(tool.parameters)
    return FunctionTool(type="function", name=tool.name, description=tool.description, parameters=parameters)


def choice_to_wire(choice: ToolChoice) -> Any:
    """As `tool_choice`."""
    name = choice.removeprefix("function:")
    return choice if name == choice else {"type": "function", "name": name}
