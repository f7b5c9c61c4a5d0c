"""Arrays of any layout that people use for pictures, brought to one: 8 bit, height × width × channels.

Owns: `picture_from_array` and `depth_to_8bit`. Driven by `realtime.media.image`. Never changes its input; never guesses
between two readings that differ in sight: what is not listed here is refused with its shape and dtype (behaviour.md I3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from realtime.errors import ImageError

__all__ = ["depth_to_8bit", "picture_from_array"]

_WANTED = (
    "a picture of shape (h, w), (h, w, 1|2|3|4) or (1|3|4, h, w) "
    "and of dtype bool, uint8, uint16, float (0 to 1) or an integer type holding 0 to 255"
)
_OVERSHOOT = 0.25
"""Resampling filters overshoot 0..1 by less than this; a float beyond it was meant on another scale."""


def picture_from_array(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Bring an array to 8 bit and height × width × channels.

    Channels are grey, grey + alpha, RGB or RGBA. Three axes are read as (h, w, c) if the last has 1 to 4 entries, else
    as (c, h, w) if the first has 1, 3 or 4. Values: bool is black and white; uint8 as it is; uint16 is scaled by its
    full range (65535 is white); floats are 0 to 1, NaN is 0, a little beyond is clipped; other integers must hold 0 to
    255. Strides, byte order and writability do not matter.

    Returns:
        A C-contiguous array of shape (h, w, 1|2|3|4); it may share memory with the input, which is not to be written to.

    Raises:
        ImageError: Anything else; the text names shape and dtype.
    """
    picture = array
    if picture.ndim == 2:
        picture = picture[:, :, np.newaxis]
    elif picture.ndim == 3 and picture.shape[2] not in {1, 2, 3, 4} and picture.shape[0] in {1, 3, 4}:
        picture = np.moveaxis(picture, 0, 2)
    if picture.ndim != 3 or picture.shape[2] not in {1, 2, 3, 4} or picture.size == 0:
        raise _refusal(array)
    return np.ascontiguousarray(_to_8bit(picture, array))


def _to_8bit(picture: NDArray[Any], given: NDArray[Any]) -> NDArray[np.uint8]:
    kind = picture.dtype.kind
    if picture.dtype == np.uint8:
        return picture
    if kind == "b":
        return picture.astype(np.uint8) * np.uint8(255)
    if kind == "u" and picture.dtype.itemsize == 2:
        return _from_16bit(picture)
    if kind in "ui":
        if int(picture.min()) < 0 or int(picture.max()) > 255:
            raise _refusal(given, f" with values {int(picture.min())} to {int(picture.max())}")
        return picture.astype(np.uint8)
    if kind == "f":
        values = np.nan_to_num(picture, nan=0.0, posinf=1.0, neginf=0.0)
        low, high = float(values.min()), float(values.max())
        if low < -_OVERSHOOT or high > 1.0 + _OVERSHOOT:
            raise _refusal(given, f" with values {low:g} to {high:g}")
        return _from_unit(values)
    raise _refusal(given)


def _from_16bit(values: NDArray[Any]) -> NDArray[np.uint8]:
    """0..65535 to 0..255, rounded to the nearest (257 steps to one)."""
    wide: Any = values.astype(np.uint32)
    scaled: NDArray[np.uint8] = np.asarray((wide + 128) // 257, np.uint8)
    return scaled


def _from_unit(values: NDArray[Any]) -> NDArray[np.uint8]:
    clipped: NDArray[np.float32] = np.clip(values, 0.0, 1.0).astype(np.float32)
    rounded: NDArray[np.float32] = np.rint(clipped * np.float32(255.0))
    return rounded.astype(np.uint8)


def depth_to_8bit(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Bring one channel of wide values (Pillow's modes I;16, I and F) to 8 bit so that all of it can be seen.

    uint16 is scaled by its full range. Pillow's I and F carry no scale of their own, so the values decide: floats
    within 0..1 and anything within 0..255 are taken as they are, anything within 0..65535 as 16 bit, the rest is
    stretched from its smallest to its largest value. NaN is the smallest.

    Args:
        values: Shape (h, w), at least 1×1.

    Returns:
        Shape (h, w), uint8.
    """
    if values.dtype.kind == "u" and values.dtype.itemsize == 2:
        return _from_16bit(values)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    wide = np.nan_to_num(wide, nan=low, posinf=high, neginf=low)
    if low >= 0.0 and high <= 65535.0:
        if values.dtype.kind == "f" and high <= 1.0:
            scale = 255.0
        else:
            scale = 1.0 if high <= 255.0 else 255.0 / 65535.0
        return np.rint(wide * scale).astype(np.uint8)
    return np.rint((wide - low) * (255.0 / max(high - low, 1e-300))).astype(np.uint8)


def _refusal(array: NDArray[Any], detail: str = "") -> ImageError:
    return ImageError("frame", _Given(f"an array of shape {array.shape} and dtype {array.dtype}{detail}"), _WANTED)


class _Given:
    """Stands for an array in an error: says its shape and dtype, not its pixels."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
