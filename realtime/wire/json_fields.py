"""Reads and writes the JSON of wire messages without trusting it.

Owns: the one parser and writer of wire messages, and the readers that take a field if it is what it should be and a
default if it is not. Used by every wire format, by the local server and by `realtime.testing`. Never acts.

With the extra ``fast`` (orjson, pybase64) audio messages cost a fraction (`benchmarks/bench_wire.py`). What those refuse is
tried again with the standard library, so that both ways accept the same messages.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, cast

from realtime.errors import ModelError

__all__ = [
    "MALFORMED",
    "JsonObject",
    "MissingFieldError",
    "as_count",
    "count_of",
    "decode_base64",
    "dump_around",
    "dump_message",
    "encode_base64",
    "flag_of",
    "list_of",
    "number_of",
    "object_of",
    "objects_of",
    "optional_text_of",
    "parse_message",
    "quote",
    "required_text",
    "strings_of",
    "text_of",
    "whole_text",
]


def _optional(module: str, function: str) -> Callable[..., Any] | None:
    """A function of a package that may not be installed."""
    try:
        return cast("Callable[..., Any]", getattr(import_module(module), function))
    except ImportError:
        return None


_fast_loads: Final = _optional("orjson", "loads")
_fast_decode: Final = _optional("pybase64", "b64decode")

quote: Final[Callable[[str], str]] = json.encoder.encode_basestring_ascii
"""A string as JSON, in ASCII."""

JsonObject = dict[str, Any]
"""A JSON object as it was parsed: any field may be missing or of another type than its name says."""

MALFORMED = "malformed_message"
"""Code of what is reported of a wire message that cannot be read, or lacks what it must have."""


class MissingFieldError(Exception):
    """A wire message lacks a field that its type must have. Never leaves `wire`: it becomes a `ModelFault`."""


def parse_message(data: str | bytes) -> JsonObject:
    """Parse one wire message.

    Args:
        data: A text message, or a binary one that holds UTF-8.

    Raises:
        ModelError: With code ``malformed_message``, if it is no JSON object.
    """
    # hot path: every wire message
    value: Any = None
    try:
        value = json.loads(data) if _fast_loads is None else _fast_loads(data)
    except (ValueError, RecursionError) as error:
        if _fast_loads is None:
            raise _no_json(error) from None
    if value is None:  # large numbers, lone surrogates, NaN: orjson knows none of them
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _no_json(error) from None
    if not isinstance(value, dict):
        raise ModelError(f"a wire message is a JSON {type(value).__name__}, no object", code=MALFORMED)
    return cast("JsonObject", value)


def _no_json(error: Exception) -> ModelError:
    return ModelError(f"a wire message is no JSON: {error}", code=MALFORMED)


def dump_message(message: Mapping[str, Any]) -> str:
    """Write one wire message: compact, characters as themselves, lone surrogates replaced (behaviour.md F9)."""
    return whole_text(json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def dump_around(message: Mapping[str, Any], key: str, long: Iterable[tuple[str, str]]) -> str:
    """Write one wire message that holds long base64, which needs no escaping: nobody looks through it.

    Args:
        message: All but that.
        key: The fields which end with it.
        long: For each of them, in order, how it begins, as it stands in the message, and what follows.
    """
    rest, pieces = dump_message(message), list[str]()
    for begin, data in long:
        # a quote within a string has a backslash before it: nothing but the field looks like this
        before, field, rest = rest.partition(f'"{key}":"{begin}"')
        pieces += (before, field[:-1], data, '"')
    pieces.append(rest)
    return "".join(pieces)


def whole_text(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot carry, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _plain_encode(data: bytes, /) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


encode_base64: Final[Callable[[bytes], str]] = _optional("pybase64", "b64encode_as_string") or _plain_encode
"""Writes bytes as base64. Hot path: every chunk of input audio; nothing of ours stands around it."""


def decode_base64(text: str) -> bytes | None:
    """Read base64, also unpadded, url-safe or broken over lines; None if it is none."""
    # hot path: every chunk of reply audio
    try:
        if _fast_decode is not None:
            data: bytes = _fast_decode(text, validate=True)
            return data
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        pass
    try:
        plain = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:
        return None


def text_of(message: Mapping[str, Any], key: str, default: str = "") -> str:
    """The string under a key, or `default`."""
    value = message.get(key)
    return whole_text(value) if isinstance(value, str) else default


def required_text(message: Mapping[str, Any], key: str) -> str:
    """The string under a key.

    Raises:
        MissingFieldError: There is none, or it is empty.
    """
    text = text_of(message, key)
    if not text:
        raise MissingFieldError(key)
    return text


def optional_text_of(message: Mapping[str, Any], key: str) -> str | None:
    """The string under a key; None if there is none or it is empty."""
    return text_of(message, key) or None


def count_of(message: Mapping[str, Any], key: str, default: int = 0) -> int:
    """The whole number of at least 0 under a key, or `default`; a float is rounded."""
    return as_count(message.get(key), default)


def as_count(value: object, default: int = 0) -> int:
    """A value if it is a whole number of at least 0, or `default`; a float is rounded."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    if not 0 <= value < 1 << 53:  # also refuses NaN
        return default
    return round(value)


def number_of(message: Mapping[str, Any], key: str) -> float | None:
    """The finite number under a key, or None."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -(1 << 53) < value < 1 << 53:
        return None
    return float(value)


def flag_of(message: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    """The boolean under a key, or `default`."""
    value = message.get(key)
    return value if isinstance(value, bool) else default


def object_of(message: Mapping[str, Any], key: str) -> JsonObject:
    """The object under a key, or an empty one."""
    value = message.get(key)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def list_of(message: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key, or an empty one."""
    value = message.get(key)
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  (whatever is in it)


def objects_of(message: Mapping[str, Any], key: str) -> list[JsonObject]:
    """The objects in the list under a key; whatever else is in it is left out."""
    return [cast("JsonObject", value) for value in list_of(message, key) if isinstance(value, dict)]


def strings_of(message: Mapping[str, Any], key: str) -> dict[str, str]:
    """The string members of the object under a key."""
    return {name: value for name, value in object_of(message, key).items() if isinstance(value, str)}
