"""Pictures of every kind to JPEG or PNG: the seeds' `encode` and `coerce_image_to_jpeg_bytes`.

Owns: which way a picture is encoded. Driven by `ImageContent.from_frame` and by the video pipeline, from a worker
thread: it is synchronous CPU work, 2–40 ms, most of it without the GIL. Never changes what it is given.
"""

from __future__ import annotations

from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from realtime.errors import ArgumentError, ImageError
from realtime.media.arrays import picture_from_array
from realtime.media.frame import rotation_quarters
from realtime.media.options import DEFAULT_REALTIME_ENCODE_OPTIONS, EncodeOptions, ResizeMode, ResizeOptions
from realtime.media.pillow import decode_bytes, encode_image, rotate_quarters
from realtime.media.video import encode_video_frame

__all__ = [
    "DEFAULT_REALTIME_ENCODE_OPTIONS",
    "EncodeOptions",
    "ResizeMode",
    "ResizeOptions",
    "coerce_image_to_jpeg_bytes",
    "encode",
]


def encode(frame: Any, options: EncodeOptions | None = None) -> bytes:
    """Encode a picture to JPEG or PNG (seed; behaviour.md I1–I3).

    Args:
        frame: What to encode: an `av.VideoFrame` of any pixel format; a `PIL.Image.Image` of any mode; a numpy array of
            shape (h, w), (h, w, 1|2|3|4) or (1|3|4, h, w), grey, grey + alpha, RGB or RGBA, of bool, uint8, uint16
            (full range), float (0 to 1) or integers within 0 to 255; an encoded picture as bytes; or any object with
            `to_image()` (its `rotation`, counter-clockwise degrees, is honoured). Nothing is changed in it.
        options: Format, size and quality; None: `EncodeOptions()`, which is JPEG, 1024×1024, quality 75.

    Returns:
        The encoded picture: exactly the size asked for, upright, without metadata. JPEG has three channels, full
        range BT.601, 4:2:0; what is transparent lies on white.

    Raises:
        ImageError: It is no picture, or none that can be read; the text names its type, shape, dtype or format.
        ArgumentError: `options` is no `EncodeOptions`.
    """
    chosen = _check_options(EncodeOptions() if options is None else options)
    if isinstance(frame, av.VideoFrame):
        return encode_video_frame(frame, chosen)
    return encode_image(_as_pillow(frame), chosen)


def coerce_image_to_jpeg_bytes(frame: Any, *, options: EncodeOptions | None = None) -> bytes:
    """The bytes of a picture: bytes as they are, anything else encoded (seed; behaviour.md I1).

    Args:
        frame: bytes, bytearray or memoryview, passed through unchanged and unchecked; or whatever `encode` takes.
        options: Used when it must be encoded; None: `DEFAULT_REALTIME_ENCODE_OPTIONS`.

    Raises:
        ImageError: It is no picture, or none that can be read.
        ArgumentError: `options` is no `EncodeOptions`.
    """
    if isinstance(frame, bytes):
        return frame
    if isinstance(frame, (bytearray, memoryview)):
        return bytes(cast("bytearray", frame))
    return encode(frame, DEFAULT_REALTIME_ENCODE_OPTIONS if options is None else options)


def _check_options(options: object) -> EncodeOptions:
    if not isinstance(options, EncodeOptions):
        raise ArgumentError("options", options, "EncodeOptions or None")
    return options


def _as_pillow(frame: Any) -> Image.Image:
    if isinstance(frame, Image.Image):
        return frame
    if isinstance(frame, np.ndarray):
        picture = picture_from_array(cast("NDArray[Any]", frame))
        return Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)
    if isinstance(frame, (bytes, bytearray, memoryview)):
        return decode_bytes(bytes(cast("bytes", frame)))
    to_image = getattr(frame, "to_image", None)
    if not callable(to_image):
        raise ImageError(
            "frame",
            frame,
            "an av.VideoFrame, a PIL image, a numpy array, the bytes of a picture, or an object with to_image()",
        )
    image = to_image()
    if not isinstance(image, Image.Image):
        raise ImageError("frame", f"{type(frame).__name__} whose to_image() gave {type(image).__name__}", "a picture")
    return rotate_quarters(image, rotation_quarters(frame))
