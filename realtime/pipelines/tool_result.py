"""What a tool gave back, as the text and the pictures that a model is told.

Owns: `ToolResult` and the translation into it. Driven by `pipelines/tools.py`, on a worker thread when pictures must be
encoded. It never raises: the tool's side effects have happened, so a result that JSON does not know still becomes text
(behaviour.md T2, T3, T5; field cases B09, B11).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic_core import PydanticSerializationError, to_jsonable_python

from realtime.chat.messages import ImageContent

__all__ = ["MAX_OUTPUT_CHARACTERS", "ToolResult", "describe_error", "is_frame", "make_result"]

MAX_OUTPUT_CHARACTERS = 100_000
"""A longer result is cut: whatever does not fit one wire message would leave its call without an answer."""
_MAX_ERROR_CHARACTERS = 500
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model is told of a call."""

    output: str
    """Text, or JSON."""
    images: tuple[ImageContent, ...] = ()
    """Pictures that belong to it."""
    is_error: bool = False
    """True if the call failed, was refused, was cancelled or timed out."""
    error: BaseException | None = None
    """What was raised, for the application; the model is told `output` only."""


def describe_error(error: BaseException) -> str:
    """Name an error in a line that is short enough for a model."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:_MAX_ERROR_CHARACTERS]


def is_frame(value: object) -> bool:
    """Whether it is a video frame or a Pillow image: something that is shown, not written as JSON."""
    return hasattr(value, "to_image") or (type(value).__module__.startswith("PIL.") and hasattr(value, "getbands"))


def make_result(value: Any) -> ToolResult:
    """Make text and pictures of whatever a tool returned.

    Text stays as it is. `ImageContent`, video frames and Pillow images are taken out, wherever they sit in lists,
    tuples and mappings. Everything else becomes JSON: None, 0, False, ``{}`` and ``[]`` are results; dates, bytes, sets,
    dataclasses and pydantic models as pydantic writes them; NaN as null; what nobody knows by its repr.
    """
    images: list[ImageContent] = []
    value = _take_images(value, images, 0)
    if value is _Nothing:
        output = "The picture is attached." if len(images) == 1 else f"{len(images)} pictures are attached."
    elif isinstance(value, str):
        output = value
    else:
        output = _to_json(value)
    output = output.encode("utf-8", "replace").decode("utf-8")
    if len(output) > MAX_OUTPUT_CHARACTERS:
        output = output[:MAX_OUTPUT_CHARACTERS] + f"… (cut; {len(output)} characters in all)"
    return ToolResult(output=output, images=tuple(images))


class _Nothing:
    """What is left where a picture has been taken out."""


def _take_images(value: Any, images: list[ImageContent], depth: int) -> Any:
    if isinstance(value, ImageContent):
        images.append(value)
        return _Nothing
    if is_frame(value):
        images.append(ImageContent.from_frame(value))
        return _Nothing
    if depth >= _MAX_DEPTH:
        return value
    found = len(images)
    if _is_sequence(value):
        members = [_take_images(each, images, depth + 1) for each in value]
        if len(images) == found:
            return value
        rest = [each for each in members if each is not _Nothing]
        if depth == 0 and len(rest) <= 1:
            return rest[0] if rest else _Nothing
        return rest
    if _is_dict(value):
        shown = {key: _take_images(each, images, depth + 1) for key, each in value.items()}
        if len(images) == found:
            return value
        return {key: "(picture attached)" if each is _Nothing else each for key, each in shown.items()}
    return value


def _to_json(value: Any) -> str:
    try:
        plain = to_jsonable_python(
            value, inf_nan_mode="null", bytes_mode="base64", serialize_unknown=True, fallback=_by_repr
        )
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return _by_hand(value, 0)
    except Exception:  # an object whose own methods raise
        return _by_hand(value, 0)


def _by_hand(value: Any, depth: int) -> str:
    """For what pydantic cannot write (cycles, methods that raise): JSON of the outer layers, repr within."""
    return json.dumps(_plain(value, depth), ensure_ascii=False)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if depth >= _MAX_DEPTH:
        return _by_repr(value)
    try:
        if _is_mapping(value):
            return {_key(key): _plain(each, depth + 1) for key, each in value.items()}
        if _is_sequence(value) or _is_set(value):
            return [_plain(each, depth + 1) for each in value]
    except Exception:
        return _by_repr(value)
    return _by_repr(value)


def _is_sequence(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, (list, tuple))


def _is_set(value: Any) -> TypeGuard[AbstractSet[Any]]:
    return isinstance(value, AbstractSet)


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else _by_repr(key)


def _by_repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_ERROR_CHARACTERS else text[: _MAX_ERROR_CHARACTERS - 1] + "…"
