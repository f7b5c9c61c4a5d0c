"""An av.VideoFrame to a JPEG without an RGB picture in between.

Owns: the fast way. swscale brings the frame's planes to the size and to full range 4:2:0 (`yuvj420p`), libjpeg-turbo
compresses the planes; both without the GIL. Driven by `realtime.media.image`, from a worker thread. Never changes a
frame, never starts a thread, keeps only a few scaling contexts per thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import av
import numpy as np
import simplejpeg  # pyright: ignore[reportMissingTypeStubs]  (only of its C part)
from av.error import FFmpegError
from av.video.format import VideoFormat
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from numpy.typing import NDArray
from PIL import Image

from realtime.errors import ImageError
from realtime.media.arrays import picture_from_array
from realtime.media.frame import (
    float_gray,
    frame_size,
    is_float_gray,
    luma_is_full_range,
    plane_rows,
    rotation_quarters,
)
from realtime.media.geometry import Placement, place
from realtime.media.options import EncodeOptions
from realtime.media.pillow import encode_image, rotate_quarters

__all__ = ["encode_video_frame"]

_CONTEXTS_PER_THREAD = 8
_BLACK = (0, 128, 128)
_NOT_STRAIGHT_TO_YUV = ("bayer", "rgbf32")
"""swscale leaves the first in limited range, and mixes the colours of the second up."""
_MISREAD_RGB = ("rgb555", "rgb565", "bgr555", "bgr565")
"""swscale forgets the byte order of the big-endian ones when it unpacks them to whole bytes without scaling."""
_LIMITED_TO_FULL = np.clip(np.rint((np.arange(256) - 16) * (255 / 219)), 0, 255).astype(np.uint8)
_Planes = tuple[NDArray[np.uint8], ...]

_MATRIX_OF_FRAME = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,
}
"""AVColorSpace of a frame → swscale's matrix; all others are BT.601, which is what an unmarked frame is taken for."""


class _Contexts(threading.local):
    """The scaling contexts of one thread, the least recently used dropped first: setting one up costs a millisecond."""

    def __init__(self) -> None:
        self.by_key: OrderedDict[tuple[Any, ...], VideoReformatter] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> VideoReformatter:
        context = self.by_key.get(key)
        if context is None:
            context = self.by_key[key] = VideoReformatter()
            if len(self.by_key) > _CONTEXTS_PER_THREAD:
                self.by_key.popitem(last=False)
        else:
            self.by_key.move_to_end(key)
        return context


_contexts = _Contexts()


def encode_video_frame(frame: av.VideoFrame, options: EncodeOptions) -> bytes:
    """Encode a decoded frame of any pixel format that swscale reads.

    Rotation is applied, the range and colour matrix that the frame states are honoured (unmarked: limited range unless
    the format says otherwise, BT.601), transparency is laid on white.

    Raises:
        ImageError: The frame is empty, or of a pixel format that cannot be read (hardware surfaces, for example).
    """
    size = frame_size(frame)
    plan = place(size, options.resize_options)
    quarters = rotation_quarters(frame)
    odd = any(side % 2 for side in plan.scaled)
    if options.format != "JPEG" or _needs_rgb(frame.format) or (quarters and odd):
        return encode_image(rotate_quarters(_to_pillow(frame), quarters), options)
    # hot path: scaled planes, no RGB
    width, height = plan.scaled
    scaled = (height, width) if quarters % 2 else (width, height)
    planes = tuple(plane_rows(plane, plane.width) for plane in _convert(frame, scaled, "yuvj420p").planes)
    if _is_limited_gray(frame):
        planes = (_LIMITED_TO_FULL[planes[0]], *planes[1:])
    if quarters:
        planes = tuple(np.rot90(plane, quarters) for plane in planes)
    if plan.size != plan.scaled:
        planes = _cut_and_border(planes, plan)
    luma, blue, red = (np.ascontiguousarray(plane) for plane in planes)
    return bytes(simplejpeg.encode_jpeg_yuv_planes(luma, blue, red, quality=max(1, options.quality)))


def _needs_rgb(form: VideoFormat) -> bool:
    """Whether swscale cannot bring this format to full-range planes in one step, or there is transparency to lay down."""
    special = form.has_palette or form.name.startswith(_NOT_STRAIGHT_TO_YUV) or is_float_gray(form.name)
    return special or _has_alpha(form)


def _has_alpha(form: VideoFormat) -> bool:
    return any(component.is_alpha for component in form.components)


def _is_limited_gray(frame: av.VideoFrame) -> bool:
    """Grey that says it is 16–235 (monochrome video). swscale takes all grey for full range."""
    return frame.color_range == ColorRange.MPEG and frame.format.name.startswith("gray")


def _convert(frame: av.VideoFrame, size: tuple[int, int], target: str) -> av.VideoFrame:
    """Scale and convert with swscale, on the calling thread only."""
    name = frame.format.name
    source_range = ColorRange.JPEG if luma_is_full_range(frame) else ColorRange.MPEG
    matrix = _MATRIX_OF_FRAME.get(int(frame.colorspace), Colorspace.ITU601)
    context = _contexts.get((name, frame.width, frame.height, source_range, matrix, size, target))
    try:
        return context.reformat(
            frame,
            size[0],
            size[1],
            target,
            src_colorspace=matrix,
            dst_colorspace=Colorspace.ITU601,
            interpolation=Interpolation.LANCZOS,
            src_color_range=source_range,
            dst_color_range=ColorRange.JPEG,
            threads=1,
        )
    except (ValueError, OSError, MemoryError, NotImplementedError, FFmpegError) as error:
        raise ImageError(
            "frame", f"a frame of pixel format {name!r}", f"of a pixel format that swscale reads ({error})"
        ) from error


def _cut_and_border(planes: _Planes, plan: Placement) -> _Planes:
    """Lay 4:2:0 planes into the target: cut where they hang over, black where they do not reach."""
    out: list[NDArray[np.uint8]] = []
    for index, plane in enumerate(planes):
        half = 2 if index else 1
        width, height = (-(-side // half) for side in plan.size)
        left, top = (side // half for side in plan.offset)
        page = np.full((height, width), _BLACK[index], np.uint8)
        part = plane[max(0, -top) : height - min(0, top), max(0, -left) : width - min(0, left)]
        part = part[: height - max(0, top), : width - max(0, left)]
        page[max(0, top) : max(0, top) + part.shape[0], max(0, left) : max(0, left) + part.shape[1]] = part
        out.append(page)
    return tuple(out)


def _to_pillow(frame: av.VideoFrame) -> Image.Image:
    """The frame at its own size as an RGB, RGBA or grey image."""
    if is_float_gray(frame.format.name):
        picture = picture_from_array(float_gray(frame))
        return Image.fromarray(picture if picture.shape[2] > 1 else picture[:, :, 0])
    size = (frame.width, frame.height)
    if frame.format.name.startswith(_MISREAD_RGB):
        green, blue, red = (plane_rows(plane, frame.width) for plane in _convert(frame, size, "gbrp").planes)
        return Image.fromarray(np.dstack((red, green, blue)))
    alpha = frame.format.has_palette or _has_alpha(frame.format)
    channels = 4 if alpha else 3
    converted = _convert(frame, size, "rgba" if alpha else "rgb24")
    rows = np.ascontiguousarray(plane_rows(converted.planes[0], frame.width * channels))
    pixels = rows.reshape(frame.height, frame.width, channels)
    if _is_limited_gray(frame):
        pixels = _LIMITED_TO_FULL[pixels]
    if frame.format.has_palette and not _palette_has_alpha(frame):
        pixels = np.ascontiguousarray(pixels[:, :, :3])
    return Image.fromarray(pixels)


def _palette_has_alpha(frame: av.VideoFrame) -> bool:
    """Whether any colour of the palette is more than wholly transparent; makers of palettes often leave alpha at 0."""
    plane: Any = frame.planes[1]
    palette: NDArray[np.uint32] = np.frombuffer(plane, np.uint32, count=256)
    return int(palette.max()) >= 1 << 24
