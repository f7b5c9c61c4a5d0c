"""Mappings and lists that cannot be changed, for what a message carries of its provider (behaviour.md V1, V3).

Owns: `freeze` (JSON-like data → values that compare equal to it and refuse every change), `thaw` (back to plain dicts and
lists), `encode_json` and `decode_json` (the same data as strict JSON and back, losing nothing). Driven by `messages` and
the transport shapes. Never interprets what it carries.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard

from realtime.errors import ArgumentError

__all__ = ["EMPTY", "FrozenDict", "FrozenList", "decode_json", "encode_json", "freeze", "thaw"]

_BYTES, _TUPLE, _FLOAT, _DICT = "$bytes", "$tuple", "$float", "$dict"
_MARKS = frozenset({_BYTES, _TUPLE, _FLOAT, _DICT})
_MAX_DEPTH = 100
"""Deeper nesting than anybody means: it would exhaust the stack of whoever walks it."""


def _refuse(self: object, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__} cannot be changed: a message is a value; put another one in its place")


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change. Equal to a plain dict with the same items; goes through `json.dumps`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none; a value may be in a set
        """By its keys: equal mappings have equal keys."""
        return hash(frozenset(self))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (thaw(self),))


class FrozenList(list[Any]):
    """A list that refuses every change. Equal to a plain list with the same items; goes through `json.dumps`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (thaw(self),))


EMPTY = FrozenDict()
"""The mapping with nothing in it, shared."""


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def freeze(value: Any, argument: str = "provider_data", *, depth: int = 0) -> Any:
    """Copy JSON-like data (and bytes and tuples within it) into values that cannot be changed.

    Args:
        value: None, bool, int, float, str, bytes, or mappings with string keys, lists and tuples of these.
        argument: What the caller calls it, for the error.
        depth: How deep it sits in what is frozen.

    Raises:
        ArgumentError: There is something else in it, or it is nested more than 100 deep.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes, FrozenDict, FrozenList)):
        return value
    _check_depth(depth, argument)
    if _is_mapping(value):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentError(argument, key, "a mapping whose keys are strings")
        return FrozenDict({key: freeze(item, argument, depth=depth + 1) for key, item in value.items()})
    if _is_tuple(value):
        return tuple(freeze(item, argument, depth=depth + 1) for item in value)
    if _is_list(value):
        return FrozenList(freeze(item, argument, depth=depth + 1) for item in value)
    raise ArgumentError(argument, value, "made of None, bool, int, float, str, bytes, mappings, lists and tuples")


def thaw(value: Any) -> Any:
    """The same data as plain dicts, lists and tuples that may be changed."""
    if _is_mapping(value):
        return {key: thaw(item) for key, item in value.items()}
    if _is_tuple(value):
        return tuple(thaw(item) for item in value)
    if _is_list(value):
        return [thaw(item) for item in value]
    return value


def encode_json(value: Any) -> Any:
    """The same data in strict JSON: bytes, tuples and numbers that are none (NaN) are marked so that they come back."""
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    if _is_tuple(value):
        return {_TUPLE: [encode_json(item) for item in value]}
    if _is_list(value):
        return [encode_json(item) for item in value]
    if _is_mapping(value):
        encoded = {key: encode_json(item) for key, item in value.items()}
        return {_DICT: encoded} if len(encoded) == 1 and not _MARKS.isdisjoint(encoded) else encoded
    return value


def decode_json(value: Any, *, depth: int = 0) -> Any:
    """What `encode_json` made, as it was. What only looks like its marks stays as it is.

    Args:
        value: Data as `json.loads` gives it.
        depth: How deep it sits in what is decoded.

    Raises:
        ArgumentError: It is nested far deeper than frozen data can be.
    """
    if _is_list(value):
        _check_depth(depth, "data", 2 * _MAX_DEPTH)
        return [decode_json(item, depth=depth + 1) for item in value]
    if not _is_mapping(value):
        return value
    _check_depth(depth, "data", 2 * _MAX_DEPTH)
    if len(value) == 1:
        mark, inner = next(iter(value.items()))
        if mark == _BYTES and isinstance(inner, str):
            with contextlib.suppress(ValueError):
                return base64.b64decode(inner, validate=True)
        if mark == _FLOAT and inner in ("nan", "inf", "-inf"):
            return float(inner)
        if mark == _TUPLE and _is_list(inner):
            return tuple(decode_json(item, depth=depth + 2) for item in inner)
        if mark == _DICT and _is_mapping(inner):
            return {key: decode_json(item, depth=depth + 2) for key, item in inner.items()}
    return {key: decode_json(item, depth=depth + 1) for key, item in value.items()}


def _check_depth(depth: int, argument: str, most: int = _MAX_DEPTH) -> None:
    if depth >= most:
        raise ArgumentError(argument, f"data of more than {most} levels", f"nested at most {most} deep")
