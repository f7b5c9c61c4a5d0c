"""Reads fields of what others give: a mapping or an object, in snake case or camel case.

Owns: `Loose` and `read_image`. Driven by the formats that read. Pure; a missing field is no error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from realtime.chat.messages import ImageContent, as_text
from realtime.errors import ArgumentError, ImageError

__all__ = ["Loose", "read_image"]


class Loose:
    """The fields of a mapping or an object."""

    __slots__ = ("_mapping", "_object")

    def __init__(self, given: Any, argument: str) -> None:
        """Take either.

        Raises:
            ArgumentError: It is a bare value.
        """
        if given is None or isinstance(given, (str, bytes, bytearray, int, float, list, tuple, set)):
            raise ArgumentError(
                argument, type(cast("object", given)).__name__, "made of mappings or objects with attributes"
            )
        self._object: object = given
        self._mapping: Mapping[str, Any] | None = None
        if isinstance(given, Mapping):
            self._mapping = cast("Mapping[str, Any]", given)

    def get(self, name: str) -> Any:
        """A field, or None."""
        for spelling in (name, _camel_case(name)):
            value = getattr(self._object, spelling, None) if self._mapping is None else self._mapping.get(spelling)
            if value is not None:
                return value
        return None

    def text(self, name: str) -> str:
        """A field as text; empty if there is none."""
        value = self.get(name)
        return "" if value is None else as_text(value)

    def flag(self, name: str) -> bool:
        """A field as yes or no."""
        return bool(self.get(name))

    def number(self, name: str) -> float | None:
        """A field as a number, or None if it is none."""
        value = self.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value if isinstance(value, int) or math.isfinite(value) else None
        return None

    def whole(self, name: str) -> int | None:
        """A field as a whole number, or None if it is none."""
        value = self.number(name)
        return None if value is None else int(value)

    def sequence(self, name: str) -> Sequence[Any]:
        """A field as a list; a single value is a list of one."""
        value = self.get(name)
        if value is None:
            return ()
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            return (cast("Any", value),)
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def read_image(given: Any) -> ImageContent:
    """Read a picture: an `ImageContent`, a URL, or a mapping or object in our shape or OpenAI's.

    Raises:
        ImageError: It is none of these, or no picture.
    """
    if isinstance(given, ImageContent):
        return given
    if isinstance(given, str):
        return ImageContent(url=given)
    try:
        fields = Loose(given, "images")
    except ArgumentError as error:
        raise ImageError("images", type(given).__name__, "made of pictures, URLs, or mappings with a 'url'") from error
    inner = fields.get("image_url")
    detail = fields.text("detail")
    url = fields.get("url")
    if isinstance(inner, str):
        url = inner
    elif inner is not None:
        nested = Loose(inner, "image_url")
        url, detail = nested.get("url"), nested.text("detail") or detail
    if not isinstance(url, str):
        raise ImageError("images", type(given).__name__, "made of pictures, URLs, or mappings with a 'url'")
    try:
        return ImageContent(url=url, detail=detail or "auto")
    except ImageError:
        raise
    except ArgumentError:  # a detail that nobody knows is no reason to lose the picture
        return ImageContent(url=url)


def _camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
