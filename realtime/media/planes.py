"""Pixels to a JPEG by way of full-range 4:2:0 planes, off the GIL.

Owns: the fast way. swscale brings a picture to its size and to `yuvj420p` in one step, libjpeg-turbo compresses the planes.
Driven by `realtime.media.video` and `realtime.media.pillow`, from a worker thread. Never changes what it is given, never
starts a thread, keeps only a few scaling contexts per thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import av
import numpy as np
import simplejpeg  # pyright: ignore[reportMissingTypeStubs]  (only of its C part)
from av.error import FFmpegError
from av.video.reformatter import ColorRange, Interpolation, VideoReformatter
from numpy.typing import NDArray

from realtime.errors import ImageError
from realtime.media.frame import luma_is_full_range, plane_rows
from realtime.media.geometry import Placement

__all__ = ["LIMITED_TO_FULL", "convert", "frame_to_jpeg", "is_limited_gray", "rgb_to_jpeg"]

LIMITED_TO_FULL = np.clip(np.rint((np.arange(256) - 16) * (255 / 219)), 0, 255).astype(np.uint8)
"""Luma of 16–235 to 0–255."""

_CONTEXTS_PER_THREAD = 8
_MAX_JPEG_SIDE = 65_500
_BLACK = (0, 128, 128)
_Planes = tuple[NDArray[np.uint8], ...]

_BT601, _BT709, _FCC, _SMPTE240M, _BT2020 = 5, 1, 4, 7, 9
"""swscale's numbers of matrices; not every release of PyAV has a name for each."""
_MATRIX_OF_FRAME = {1: _BT709, 4: _FCC, 7: _SMPTE240M, 9: _BT2020, 10: _BT2020}
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


def convert(frame: av.VideoFrame, size: tuple[int, int], target: str) -> av.VideoFrame:
    """Scale and convert with swscale, on the calling thread only.

    The range and the matrix that the frame states are honoured; what comes out is full range BT.601.

    Args:
        frame: Any frame that swscale reads rightly (see `realtime.media.video`).
        size: Width and height of the result, not turned.
        target: The pixel format of the result.

    Raises:
        ImageError: The pixel format cannot be read.
    """
    name = frame.format.name
    source_range = ColorRange.JPEG if luma_is_full_range(frame) else ColorRange.MPEG
    matrix = _MATRIX_OF_FRAME.get(int(frame.colorspace), _BT601)
    context = _contexts.get((name, frame.width, frame.height, source_range, matrix, size, target))
    try:
        return context.reformat(
            frame,
            size[0],
            size[1],
            target,
            src_colorspace=matrix,
            dst_colorspace=_BT601,
            interpolation=Interpolation.LANCZOS,
            src_color_range=source_range,
            dst_color_range=ColorRange.JPEG,
            threads=1,
        )
    except (ValueError, OSError, MemoryError, NotImplementedError, FFmpegError) as error:
        raise ImageError(
            "frame", f"a frame of pixel format {name!r}", f"of a pixel format that swscale reads ({error})"
        ) from error


def is_limited_gray(frame: av.VideoFrame) -> bool:
    """Grey that says it is 16–235 (monochrome video). swscale takes all grey for full range."""
    return frame.color_range == ColorRange.MPEG and frame.format.name.startswith("gray")


def frame_to_jpeg(frame: av.VideoFrame, plan: Placement, quality: int, *, quarters: int = 0) -> bytes:
    """Compress a frame without an RGB picture in between.

    Args:
        frame: Any frame that swscale brings to planes rightly.
        plan: Where it goes, as displayed.
        quality: 0–100.
        quarters: By how many quarters it is to be turned counter-clockwise.

    Raises:
        ImageError: The pixel format cannot be read, or the picture is larger than a JPEG can be.
    """
    # hot path: scaled planes, no RGB
    width, height = plan.scaled
    if max(plan.size) > _MAX_JPEG_SIDE:
        raise ImageError("frame", f"a picture of {width}x{height}", f"at most {_MAX_JPEG_SIDE} pixels a side for JPEG")
    scaled = (height, width) if quarters % 2 else (width, height)
    planes = tuple(plane_rows(plane, plane.width) for plane in convert(frame, scaled, "yuvj420p").planes)
    if is_limited_gray(frame):
        planes = (LIMITED_TO_FULL[planes[0]], *planes[1:])
    if quarters:
        planes = tuple(np.rot90(plane, quarters) for plane in planes)
    if plan.size != plan.scaled:
        planes = _cut_and_border(planes, plan)
    luma, blue, red = (np.ascontiguousarray(plane) for plane in planes)
    if luma.shape[0] % 2 or luma.shape[1] % 2:
        luma = _in_even_memory(luma)
    return bytes(simplejpeg.encode_jpeg_yuv_planes(luma, blue, red, quality=max(1, quality)))


def rgb_to_jpeg(pixels: NDArray[np.uint8], plan: Placement, quality: int) -> bytes:
    """Compress an RGB picture of shape (h, w, 3)."""
    height, width, _ = pixels.shape
    frame = av.VideoFrame(width, height, "rgb24")
    # Copied into FFmpeg's own memory: swscale reads a little beyond the end of a line.
    plane_rows(frame.planes[0], width * 3)[:] = pixels.reshape(height, width * 3)
    return frame_to_jpeg(frame, plan, quality)


def _in_even_memory(luma: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same plane, with its last row and column repeated behind it.

    libjpeg-turbo takes 4:2:0 luma to be stored in an even number of rows and columns and reads them all.
    """
    height, width = luma.shape
    memory = np.empty((height + height % 2, width + width % 2), np.uint8)
    memory[:height, :width] = luma
    memory[height:, :width] = luma[-1]
    memory[:, width:] = memory[:, width - 1 : width]
    return memory[:height, :width]


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
