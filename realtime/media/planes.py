"""Pixels to a JPEG by way of full-range 4:2:0 planes, off the GIL.

Owns: the fast way. swscale brings a picture to its size and to `yuvj420p` in one step, libjpeg-turbo compresses the planes.
Driven by `realtime.media.video` and `realtime.media.pillow`, from a worker thread. Never changes what it is given, never
starts a thread, keeps only a few scaling contexts per thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
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


_LUMA_WEIGHTS = {_BT709: (0.2126, 0.0722), _FCC: (0.30, 0.11), _SMPTE240M: (0.212, 0.087), _BT2020: (0.2627, 0.0593)}
"""Of red and blue, by matrix."""
_BT601_WEIGHTS = (0.299, 0.114)
_TWICE = np.uint16(257)
_STRIPE = 65_536
"""Samples of a chroma plane that are worked on at once."""


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


def convert(frame: av.VideoFrame, size: tuple[int, int], target: str, *, keeps_matrix: bool = False) -> av.VideoFrame:
    """Scale and convert with swscale, on the calling thread only.

    The range and the matrix that the frame states are honoured; what comes out is full range BT.601.

    Args:
        frame: Any frame that swscale reads rightly (see `realtime.media.video`).
        size: Width and height of the result, not turned.
        target: The pixel format of the result.
        keeps_matrix: Leave the matrix as the frame states it.

    Raises:
        ImageError: The pixel format cannot be read.
    """
    name = frame.format.name
    source_range = ColorRange.JPEG if luma_is_full_range(frame) else ColorRange.MPEG
    matrix = _BT601 if keeps_matrix else _matrix_of(frame)
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


def _matrix_of(frame: av.VideoFrame) -> int:
    return _MATRIX_OF_FRAME.get(int(frame.colorspace), _BT601)


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
    # swscale changes a matrix by way of RGB, which takes three times as long as scaling.
    matrix = _matrix_of(frame)
    is_ours = matrix in _LUMA_WEIGHTS and not frame.format.is_rgb and not any(side % 2 for side in scaled)
    converted = convert(frame, scaled, "yuvj420p", keeps_matrix=is_ours)
    planes = tuple(plane_rows(plane, plane.width) for plane in converted.planes)
    if is_ours:
        planes = planes if converted is not frame else tuple(plane.copy() for plane in planes)
        _to_bt601(planes, matrix)
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


def _to_bt601(planes: _Planes, matrix: int) -> None:
    """Bring full-range 4:2:0 planes, of even size, from another matrix to BT.601, where they are.

    Grey stays as it is: what changes is a share of both chroma planes, added to each of the three.
    """
    luma, blue, red = planes
    shares = _shares_of_chroma(matrix)
    step = max(1, _STRIPE // blue.shape[1])  # what is worked on stays in the processor's cache
    for top in range(0, blue.shape[0], step):
        rows, double = slice(top, top + step), slice(2 * top, 2 * (top + step))
        u, v = blue[rows].astype(np.int16), red[rows].astype(np.int16)
        change, to_blue, to_red = (_mix(u, v, share) for share in shares)
        _add_doubled(luma[double], change)
        u += to_blue
        v += to_red
        np.clip(u, 0, 255, out=blue[rows], casting="unsafe")
        np.clip(v, 0, 255, out=red[rows], casting="unsafe")


def _mix(blue: NDArray[np.int16], red: NDArray[np.int16], share: tuple[int, int]) -> NDArray[np.int16]:
    """So many 128ths of each chroma plane, which have their zero at 128."""
    mixed = blue * np.int16(share[0])
    mixed += red * np.int16(share[1])
    mixed += np.int16(64 - 128 * (share[0] + share[1]))
    mixed >>= 7
    return mixed


def _add_doubled(luma: NDArray[np.uint8], change: NDArray[np.int16]) -> None:
    """Add a change of at most ±127 that each square of 2×2 luma samples shares, without wrapping."""
    pairs = luma.reshape(luma.shape[0] // 2, 2, luma.shape[1])
    is_less = change >> 15  # all bits set where it is negative
    if int(luma.max()) + int(change.max()) > 255:
        np.minimum(pairs, _doubled(255 - (change & ~is_less)), out=pairs)
    if int(luma.min()) + int(change.min()) < 0:
        np.maximum(pairs, _doubled(-(change & is_less)), out=pairs)
    np.add(pairs, _doubled(change & 255), out=pairs)


def _doubled(samples: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Numbers of 0–255 twice in their row, for two rows: as numbers of 16 bits that have the same byte twice."""
    twice = samples.view(np.uint16)
    twice *= _TWICE
    return twice.view(np.uint8)[:, np.newaxis]


@cache
def _shares_of_chroma(matrix: int) -> tuple[tuple[int, int], ...]:
    """What of blue and red chroma is added to luma, blue and red, in 128ths, to bring a matrix to BT.601."""

    def to_rgb(kr: float, kb: float) -> NDArray[np.float64]:
        kg = 1 - kr - kb
        blue, red = 2 * (1 - kb), 2 * (1 - kr)
        return np.array([[1, 0, red], [1, -blue * kb / kg, -red * kr / kg], [1, blue, 0]])

    change = np.linalg.inv(to_rgb(*_BT601_WEIGHTS)) @ to_rgb(*_LUMA_WEIGHTS[matrix]) - np.eye(3)
    return tuple((round(128 * float(row[1])), round(128 * float(row[2]))) for row in change)


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
