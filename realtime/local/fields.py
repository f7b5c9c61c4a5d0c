"""Readers of a client's fields that refuse what cannot be, with OpenAI's codes and the field's full name.

Owns: one reader per kind of field, and the three errors that they raise. Driven by `items.py`, `config.py` and
`response_config.py`. (What a *server* sends is read leniently: see `realtime.wire.json_fields`.) Never acts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from realtime.errors import ModelError
from realtime.wire.openai_messages import INVALID_TYPE, INVALID_VALUE, MISSING_PARAMETER, UNKNOWN_PARAMETER

__all__ = [
    "Fields",
    "as_list",
    "check_known",
    "invalid",
    "missing",
    "read_choice",
    "read_flag",
    "read_list",
    "read_number",
    "read_object",
    "read_text",
    "wrong_type",
]

MAX_TEXT_CHARS = 1_000_000
"""Longest text of one field; pictures and audio are bounded by the message."""

Fields = Mapping[str, Any]
"""A JSON object as it was parsed."""


def missing(param: str) -> ModelError:
    """A required field is missing."""
    return ModelError(f"Missing required parameter: '{param}'.", code=MISSING_PARAMETER, param=param)


def invalid(param: str, given: object, supported: str) -> ModelError:
    """A field has a value that cannot be.

    Args:
        param: The field.
        given: What it holds.
        supported: What would do, as the end of "Supported values are …".
    """
    shown = str(given)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ModelError(f"Invalid value: '{shown}'. Supported values are: {supported}.", code=INVALID_VALUE, param=param)


def wrong_type(param: str, given: object, wanted: str) -> ModelError:
    """A field is of another JSON type."""
    found = _JSON_NAMES.get(type(given), "null")
    return ModelError(
        f"Invalid type for '{param}': expected {wanted}, but got {found} instead.", code=INVALID_TYPE, param=param
    )


_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
}


def check_known(fields: Fields, known: Collection[str], param: str) -> None:
    """Refuse fields that do not exist.

    Args:
        fields: The object.
        known: The fields that exist.
        param: The object's own name.
    """
    for name in fields:
        if name not in known:
            where = f"{param}.{name}"
            raise ModelError(f"Unknown parameter: '{where[:120]}'.", code=UNKNOWN_PARAMETER, param=where[:120])


def read_text(
    fields: Fields,
    key: str,
    param: str,
    *,
    default: str | None = None,
    empty: bool = False,
    longest: int = MAX_TEXT_CHARS,
) -> str:
    """A string.

    Args:
        fields: The object that holds it.
        key: Its name in the object.
        param: The object's own name.
        default: What a missing or null field means; None: it must be there.
        empty: Whether it may be empty.
        longest: How long it may be, in characters.
    """
    where = f"{param}.{key}"
    value = fields.get(key)
    if value is None:
        if default is None:
            raise missing(where)
        return default
    if not isinstance(value, str):
        raise wrong_type(where, value, "a string")
    if not value and not empty:
        raise ModelError(f"Invalid '{where}': empty string.", code=INVALID_VALUE, param=where)
    if len(value) > longest:
        text = f"Invalid '{where}': string too long. Expected a string with maximum length {longest}, but got {len(value)}."
        raise ModelError(text, code=INVALID_VALUE, param=where)
    return value


def read_choice(fields: Fields, key: str, param: str, choices: Collection[str], *, default: str | None = None) -> str:
    """One of a few strings; the default if it is missing or null, unless that is None."""
    value = read_text(fields, key, param, default=default, empty=True)
    if value not in choices:
        raise invalid(f"{param}.{key}", value, ", ".join(f"'{choice}'" for choice in choices))
    return value


def read_flag(fields: Fields, key: str, param: str, *, default: bool) -> bool:
    """A boolean."""
    if key not in fields:
        return default
    value = fields[key]
    if not isinstance(value, bool):
        raise wrong_type(f"{param}.{key}", value, "a boolean")
    return value


def read_number(
    fields: Fields, key: str, param: str, *, default: float, least: float, most: float, whole: bool = False
) -> float:
    """A number within a range, the default if it is missing or null."""
    value = fields.get(key)
    if value is None:
        return default
    where = f"{param}.{key}"
    wanted = "an integer" if whole else "a decimal"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise wrong_type(where, value, wanted)
    if not least <= value <= most:
        text = f"Invalid '{where}': {wanted} from {least:g} to {most:g} is expected, but got {value:g} instead."
        raise ModelError(text, code=INVALID_VALUE, param=where)
    return value


def read_object(fields: Fields, key: str, param: str) -> Fields:
    """An object, empty if it is missing or null."""
    value = fields.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong_type(f"{param}.{key}", value, "an object")
    return cast("Fields", value)


def read_list(fields: Fields, key: str, param: str) -> list[Any]:
    """An array, empty if it is missing or null."""
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type(f"{param}.{key}", value, "an array")
    return as_list(cast("object", value))


def as_list(value: object) -> list[Any]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  (whatever is in it)
