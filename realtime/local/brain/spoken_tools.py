"""Tool calls as people speak them: "what's the weather in London" for ``get_weather(city="London")``.

Owns: `find_calls`, `force_call` and `spoken_name`. Driven by the rules. A tool is meant when its name is said, or every
word of its name that is no mere verb; its arguments are found by their names, kinds and the words before them. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from realtime.local.brain.numbers import read_number_at, tokenize
from realtime.local.fields import as_list
from realtime.local.parts import Tool, ToolCall
from realtime.local.wordlists import word_set

__all__ = ["Missing", "find_calls", "force_call", "spoken_name"]

_VERBS: Final = word_set(
    "get set fetch look lookup find check search do make call run show tell use query list read give send create update the a"
    " an by for of to and up"
)
_LEADS: Final = word_set("in for of to at on from about with named called is as by near number like")
_POLITE: Final = word_set("please now today thanks thank you tool function right quickly")
_TRUE: Final = word_set("true yes on enabled")
_FALSE: Final = word_set("false no off disabled")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_AND: Final = re.compile(r"\band\b|\bthen\b|[.;]\s")
_WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|\d[\d.,]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A tool is meant, but one of its arguments was not said."""

    tool: Tool
    """Which tool."""
    argument: str
    """Its argument, as it is spoken."""


@dataclass(slots=True)
class _Said:
    """What was said, word by word, and which words are used up."""

    words: list[str]
    lower: list[str] = field(init=False)
    used: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.lower = [word.lower().replace("’", "'") for word in self.words]


def spoken_name(name: str) -> str:
    """A tool's or argument's name as it is spoken: ``get_weather`` is "get weather"."""
    return " ".join(_name_words(name))


def find_calls(heard: str, tools: Sequence[Tool]) -> list[ToolCall] | Missing:
    """The calls that a sentence asks for, one per tool at most; or what it lacks.

    Args:
        heard: What the user said.
        tools: What may be called.
    """
    calls: list[ToolCall] = []
    lacking: Missing | None = None
    for clause in _clauses(heard, tools):
        for tool in tools:
            said = _Said(_WORD.findall(clause))
            if not _is_meant(tool, said):
                continue
            arguments = _find_arguments(tool, said)
            missing = next((name for name in _required(tool) if name not in arguments), None)
            if missing is None:
                calls.append(ToolCall(name=tool.name, arguments=json.dumps(arguments, ensure_ascii=False)))
            else:
                lacking = lacking or Missing(tool=tool, argument=spoken_name(missing))
    return calls or lacking or []


def force_call(heard: str, tools: Sequence[Tool]) -> ToolCall:
    """The one call that must be made: of the tool that fits best, what was not said filled in by kind."""
    scored = [(_score(tool, _Said(_WORD.findall(heard))), -number, tool) for number, tool in enumerate(tools)]
    tool = max(scored, key=lambda entry: entry[:2])[2]
    said = _Said(_WORD.findall(heard))
    _is_meant(tool, said)
    arguments = _find_arguments(tool, said)
    for name in _required(tool):
        schema = _properties(tool)[name]
        arguments.setdefault(name, heard if _kind(schema) == "string" and not _choices(schema) else _default(schema))
    return ToolCall(name=tool.name, arguments=json.dumps(arguments, ensure_ascii=False))


def _clauses(heard: str, tools: Sequence[Tool]) -> list[str]:
    """A sentence in parts, if each part means a tool of its own; else whole."""
    parts = [part for part in _AND.split(heard) if part.strip()]
    if len(parts) > 1 and all(any(_is_meant(tool, _Said(_WORD.findall(part))) for tool in tools) for part in parts):
        return parts
    return [heard]


# -- which tool ------------------------------------------------------------------------------------------------------------


def _name_words(name: str) -> list[str]:
    return [word.lower() for word in re.split(r"[\W_]+", _CAMEL.sub(" ", name)) if word]


def _is_meant(tool: Tool, said: _Said) -> bool:
    """Whether a tool is meant; the words that say so are used up."""
    name = _name_words(tool.name)
    for start in range(len(said.lower) - len(name) + 1):
        if all(map(_same, said.lower[start : start + len(name)], name)):
            said.used.update(range(start + len(name)))
            return True
    telling = [word for word in name if word not in _VERBS]
    if not telling:
        return False
    places = [next((at for at, word in enumerate(said.lower) if _same(word, wanted)), None) for wanted in telling]
    if any(place is None for place in places):
        return False
    said.used.update(range(max(place for place in places if place is not None) + 1))
    return True


def _score(tool: Tool, said: _Said) -> int:
    words = [word for word in _name_words(tool.name) + tokenize(tool.description) if word not in _VERBS]
    return sum(any(_same(word, wanted) for word in said.lower) for wanted in set(words))


def _same(word: str, wanted: str) -> bool:
    return word.removesuffix("'s").rstrip("s") == wanted.rstrip("s")


# -- with which arguments --------------------------------------------------------------------------------------------------


def _properties(tool: Tool) -> dict[str, Mapping[str, Any]]:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {
        str(name): cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
        for name, schema in cast("Mapping[str, Any]", properties).items()
    }


def _required(tool: Tool) -> list[str]:
    required = tool.parameters.get("required")
    known = _properties(tool)
    return [name for name in as_list(required) if isinstance(name, str) and name in known]


def _find_arguments(tool: Tool, said: _Said) -> dict[str, Any]:
    properties = _properties(tool)
    found: dict[str, Any] = {}
    for name, schema in properties.items():
        value = _find_named(name, schema, said, properties)
        if value is not None:
            found[name] = value
    for name, schema in properties.items():
        if name not in found:
            value = _find_by_kind(schema, said)
            if value is not None:
                found[name] = value
    free = [name for name, schema in properties.items() if name not in found and _kind(schema) in ("string", "array")]
    required = _required(tool)
    for name in sorted(free, key=lambda name: name not in required)[:1]:
        rest = _rest(said)
        if rest:
            found[name] = rest.split(" and ") if _kind(properties[name]) == "array" else rest
    return found


def _find_named(name: str, schema: Mapping[str, Any], said: _Said, others: Mapping[str, Any]) -> Any:
    """The value behind an argument's name: "with order number 42"."""
    words = _name_words(name)
    for start in range(len(said.lower) - len(words)):
        span = range(start, start + len(words))
        if said.used & set(span) and _kind(schema) == "string" and len(said.lower) - start - len(words) < 1:
            continue
        if not all(map(_same, said.lower[start : start + len(words)], words)):
            continue
        at = start + len(words)
        while at < len(said.lower) and said.lower[at] in ("is", "to", "of", "equals", "as", "number"):
            at += 1
        end = _end_of_value(said, at, others)
        value = _convert(said.words[at:end], schema)
        if value is not None:
            said.used.update(range(start, end))
            return value
    return None


def _end_of_value(said: _Said, at: int, others: Mapping[str, Any]) -> int:
    """Where a named value ends: before another argument's name, before "and" or "with", or with the sentence."""
    for end in range(at, len(said.lower)):
        if end > at and said.lower[end] in ("and", "with"):
            return end
        for other in others:
            words = _name_words(other)
            if (
                end > at
                and all(map(_same, said.lower[end : end + len(words)], words))
                and end + len(words) < len(said.lower)
            ):
                return end
    return len(said.lower)


def _find_by_kind(schema: Mapping[str, Any], said: _Said) -> Any:
    """A value that can only be this argument's: one of its choices, a number, yes or no."""
    free = [at for at in range(len(said.lower)) if at not in said.used]
    for choice in _choices(schema):
        words = tokenize(str(choice))
        for at in range(len(said.lower) - len(words) + 1):
            if words and said.lower[at : at + len(words)] == words:
                said.used.update(range(at, at + len(words)))
                return choice
    kind = _kind(schema)
    if kind in ("integer", "number"):
        for at in free:
            number = read_number_at(said.lower, at)
            if number is not None:
                said.used.update(range(at, number[1]))
                return int(number[0]) if kind == "integer" or number[0] == int(number[0]) else number[0]
    if kind == "boolean":
        for at in free:
            if said.lower[at] in _TRUE | _FALSE:
                said.used.add(at)
                return said.lower[at] in _TRUE
    return None


def _rest(said: _Said) -> str:
    """What was said behind the tool's name and is not used yet, without the words that lead to it."""
    rest = [at for at in range(len(said.lower)) if at not in said.used]
    while rest and said.lower[rest[0]] in _LEADS | _POLITE | _VERBS:
        del rest[0]
    while rest and said.lower[rest[-1]] in _POLITE | _LEADS:
        del rest[-1]
    return " ".join(said.words[at] for at in rest)


def _convert(words: Sequence[str], schema: Mapping[str, Any]) -> Any:
    text = " ".join(words)
    if not text:
        return None
    kind = _kind(schema)
    choices = _choices(schema)
    if choices:
        return next((choice for choice in choices if str(choice).lower() == text.lower()), None)
    if kind in ("integer", "number"):
        number = read_number_at([word.lower() for word in words], 0)
        if number is None:
            return None
        return int(number[0]) if kind == "integer" or number[0] == int(number[0]) else number[0]
    if kind == "boolean":
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if kind == "array":
        return text.split(" and ")
    return None if kind == "object" else text


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((name for name in as_list(cast("object", kind)) if name != "null"), "string")
    return kind if isinstance(kind, str) else "string"


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    return as_list(schema.get("enum"))


def _default(schema: Mapping[str, Any]) -> Any:
    choices = _choices(schema)
    if choices:
        return choices[0]
    empty: dict[str, Any] = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    return empty.get(_kind(schema), "")
