"""Which way a decoded video frame becomes a picture.

Owns: `encode_video_frame`, and what is known of the pixel formats that FFmpeg's scaler reads wrongly. Driven by
`realtime.media.image`, from a worker thread. Never changes a frame.
"""

from __future__ import annotations

import contextlib
from typing import Any

import av
import numpy as np
from av.video.format import VideoFormat
from numpy.typing import NDArray
from PIL import Image

from realtime.errors import ImageError
from realtime.media.arrays import picture_from_array
from realtime.media.frame import float_gray, frame_size, is_float_gray, plane_rows, rotation_quarters
from realtime.media.geometry import place
from realtime.media.options import EncodeOptions
from realtime.media.pillow import encode_image, rotate_quarters
from realtime.media.planes import LIMITED_TO_FULL, convert, frame_to_jpeg, is_limited_gray

__all__ = ["encode_video_frame"]

_NOT_STRAIGHT_TO_YUV = ("bayer", "rgbf32")
"""swscale leaves the first in limited range, and mixes the colours of the second up."""
_MISREAD_RGB = ("rgb555", "rgb565", "bgr555", "bgr565")
"""swscale forgets the byte order of the big-endian ones when it unpacks them to whole bytes without scaling."""
_ALPHA_BYTE = {"rgba": 3, "bgra": 3, "argb": 0, "abgr": 0}
"""Where alpha stands in a pixel of four bytes."""
_ALPHA_PLANE = frozenset({"yuva420p", "yuva422p", "yuva444p", "gbrap"})
"""Formats whose fourth plane is 8-bit alpha."""


def encode_video_frame(frame: av.VideoFrame, options: EncodeOptions) -> bytes:
    """Encode a decoded frame of any pixel format that swscale reads.

    Rotation is applied, the range and colour matrix that the frame states are honoured (unmarked: limited range unless
    the format says otherwise, BT.601), transparency is laid on white.

    Raises:
        ImageError: The frame is empty, or of a pixel format that cannot be read (hardware surfaces, for example).
    """
    plan = place(frame_size(frame), options.resize_options)
    quarters = rotation_quarters(frame)
    turned_odd = quarters != 0 and any(side % 2 for side in plan.scaled)  # 4:2:0 planes of odd size cannot be turned
    if options.format == "JPEG" and not turned_odd and not plan.is_wasteful and _goes_straight(frame):
        with contextlib.suppress(ImageError):  # the careful way says what is wrong, or manages
            return frame_to_jpeg(frame, plan, options.quality, quarters=quarters)
    return encode_image(rotate_quarters(_to_pillow(frame), quarters), options)


def _goes_straight(frame: av.VideoFrame) -> bool:
    """Whether swscale brings this frame to full-range planes in one step, and there is no transparency to lay down."""
    form = frame.format
    if form.has_palette or form.name.startswith(_NOT_STRAIGHT_TO_YUV) or is_float_gray(form.name):
        return False
    return not _has_alpha(form) or _is_opaque(frame)


def _has_alpha(form: VideoFormat) -> bool:
    return any(component.is_alpha for component in form.components)


def _is_opaque(frame: av.VideoFrame) -> bool:
    """Whether a frame with alpha is known to have no transparent pixel, as screens and most pictures have none."""
    name = frame.format.name
    if name in _ALPHA_PLANE:
        return int(plane_rows(frame.planes[3], frame.width).min()) == 255
    at = _ALPHA_BYTE.get(name)
    if at is None:
        return False
    pixels = np.ascontiguousarray(plane_rows(frame.planes[0], frame.width * 4)).view(np.uint32)
    together = np.array([np.bitwise_and.reduce(pixels, axis=None)], np.uint32)
    return int(together.view(np.uint8)[at]) == 255


def _to_pillow(frame: av.VideoFrame) -> Image.Image:
    """The frame at its own size as an RGB, RGBA or grey image."""
    if is_float_gray(frame.format.name):
        picture = picture_from_array(float_gray(frame))
        return Image.fromarray(picture if picture.shape[2] > 1 else picture[:, :, 0])
    size = (frame.width, frame.height)
    if frame.format.name.startswith(_MISREAD_RGB):
        green, blue, red = (plane_rows(plane, frame.width) for plane in convert(frame, size, "gbrp").planes)
        return Image.fromarray(np.dstack((red, green, blue)))
    alpha = frame.format.has_palette or _has_alpha(frame.format)
    channels = 4 if alpha else 3
    converted = convert(frame, size, "rgba" if alpha else "rgb24")
    rows = np.ascontiguousarray(plane_rows(converted.planes[0], frame.width * channels))
    pixels = rows.reshape(frame.height, frame.width, channels)
    if is_limited_gray(frame):
        pixels = LIMITED_TO_FULL[pixels]
    if frame.format.has_palette and not _palette_has_alpha(frame):
        pixels = np.ascontiguousarray(pixels[:, :, :3])
    return Image.fromarray(pixels)


def _palette_has_alpha(frame: av.VideoFrame) -> bool:
    """Whether any colour of the palette is more than wholly transparent; makers of palettes often leave alpha at 0."""
    plane: Any = frame.planes[1]
    palette: NDArray[np.uint32] = np.frombuffer(plane, np.uint32, count=256)
    return int(palette.max()) >= 1 << 24
