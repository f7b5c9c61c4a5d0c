"""The arguments of a tool call, read as a provider wants them (behaviour.md F5; field case B08).

Owns: `arguments_text`, for providers that take text, and `arguments_object`, for those that take an object. Pure; never
raises for what a model wrote.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn, cast

from realtime.chat.formats.text import clean

__all__ = ["RAW_KEY", "arguments_object", "arguments_text"]

RAW_KEY: Final = "_raw"
"""Holds arguments that are no object, where an object is required."""
_MAX_DEPTH: Final = 64
"""Deeper nesting than anybody means; it is carried as text."""


class _NoJsonError(ValueError):
    """It is no JSON, or none that a provider would take."""


def arguments_text(arguments: str) -> str:
    """Arguments as a JSON text: empty means none; what is no JSON goes as it is."""
    return clean(arguments) if arguments.strip() else "{}"


def arguments_object(arguments: str) -> dict[str, Any]:
    """Arguments as a JSON object: empty means none; what is no object goes whole under ``_raw``."""
    if not arguments.strip():
        return {}
    text = clean(arguments)
    try:
        value = json.loads(text, parse_constant=_refuse)
        if isinstance(value, dict):
            return cast("dict[str, Any]", _checked(value, 0))
    except (ValueError, RecursionError):
        pass
    return {RAW_KEY: text}


def _refuse(constant: str) -> NoReturn:
    raise _NoJsonError(constant)  # NaN and Infinity are Python's own


def _checked(value: Any, depth: int) -> Any:
    """The same value with clean strings."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _NoJsonError(str(value))  # 1e999 is one
    if depth > _MAX_DEPTH:
        raise _NoJsonError("nested too deep")
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {clean(key): _checked(member, depth + 1) for key, member in members.items()}
    if isinstance(value, list):
        return [_checked(member, depth + 1) for member in value]  # pyright: ignore[reportUnknownVariableType]
    return value
