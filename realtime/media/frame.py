"""What an av video frame tells without being converted: size, rotation, range, matrix, time, and a thumbprint.

Owns: `frame_size`, `rotation_quarters`, `luma_is_full_range`, `pts_ms`, `thumbprint`. Driven by the sampler's pipeline (once per received frame, so everything
here is cheap) and by the encoder. Never converts a whole picture, never changes a frame.
"""

from __future__ import annotations

import math
from typing import Any

import av
import numpy as np
from av.video.reformatter import ColorRange, Interpolation, VideoReformatter
from numpy.typing import NDArray

from realtime.errors import ImageError

__all__ = [
    "THUMBPRINT_SIDE",
    "frame_size",
    "luma_is_full_range",
    "plane_rows",
    "pts_ms",
    "rotation_quarters",
    "thumbprint",
]

THUMBPRINT_SIDE = 32
"""A thumbprint has this many cells across and down."""

_FULL_RANGE_NAMES = (
    "yuvj",
    "gray",
    "ya8",
    "ya16",
    "mono",
    "rgb",
    "bgr",
    "gbr",
    "arg",
    "abg",
    "0rg",
    "0bg",
    "pal8",
    "bayer",
    "xyz",
    "x2",
)
_EIGHT_BIT_LUMA_FIRST = frozenset({
    "yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "yuv440p", "yuvj440p", "yuv410p", "yuv411p",
    "nv12", "nv21", "nv16", "nv24", "nv42", "gray", "yuva420p", "yuva422p", "yuva444p",
})  # fmt: skip


def rotation_quarters(frame: Any) -> int:
    """By how many quarter turns counter-clockwise the frame is to be turned for display: 0–3.

    From `rotation`, counter-clockwise degrees as in PyAV; rounded to the nearest quarter; 0 where there is none.
    """
    degrees = getattr(frame, "rotation", 0)
    if isinstance(degrees, bool) or not isinstance(degrees, (int, float)) or not math.isfinite(degrees):
        return 0
    return round(degrees / 90) % 4


def frame_size(frame: Any) -> tuple[int, int]:
    """Width and height in pixels as displayed, that is after rotation.

    Args:
        frame: An av.VideoFrame, or any object with `width` and `height`.

    Raises:
        ImageError: It has no size, or an empty one.
    """
    width, height = getattr(frame, "width", None), getattr(frame, "height", None)
    if not isinstance(width, int) or not isinstance(height, int) or width < 1 or height < 1:
        raise ImageError("frame", type(frame).__name__, f"a frame with a size, not {width}x{height}")
    return (height, width) if rotation_quarters(frame) % 2 else (width, height)


def pts_ms(frame: Any) -> int | None:
    """The frame's media time in whole milliseconds, or None if it has none. Counted by the track, from its own zero."""
    pts, base = getattr(frame, "pts", None), getattr(frame, "time_base", None)
    if pts is None or base is None:
        return None
    numerator, denominator = int(base.numerator), int(base.denominator)
    if denominator == 0:
        return None
    return (int(pts) * numerator * 1000 + denominator // 2) // denominator


def luma_is_full_range(frame: av.VideoFrame) -> bool:
    """Whether the frame's samples use all of their range (0–255) rather than 16–235.

    The frame's own flag decides; without one, formats of the ``yuvj`` family, grey and RGB are full, others limited,
    as in FFmpeg.
    """
    if frame.color_range == ColorRange.JPEG:
        return True
    if frame.color_range == ColorRange.MPEG:
        return False
    return frame.format.name.startswith(_FULL_RANGE_NAMES)


def thumbprint(frame: av.VideoFrame) -> bytes:
    """The frame's luma as 32×32 means, row by row: 1024 bytes, for telling whether two frames of a source differ.

    In the frame's own luma range and before rotation, so it is comparable within one source. Each cell is the mean of a
    grid of its pixels, so that sensor noise does not look like change.

    Raises:
        ImageError: The format cannot be read.
    """
    # hot path: once per received frame
    if frame.format.name in _EIGHT_BIT_LUMA_FIRST and frame.width >= 1 and frame.height >= 1:
        return _cell_means(plane_rows(frame.planes[0], frame.width))
    try:
        small = VideoReformatter().reformat(
            frame, THUMBPRINT_SIDE, THUMBPRINT_SIDE, "gray", interpolation=Interpolation.AREA, threads=1
        )
    except (ValueError, av.FFmpegError) as error:
        raise ImageError(
            "frame", f"a frame of pixel format {frame.format.name!r}", "of one that can be read"
        ) from error
    return plane_rows(small.planes[0], THUMBPRINT_SIDE).tobytes()


def plane_rows(plane: Any, row_bytes: int) -> NDArray[np.uint8]:
    """A view of a plane the right way up and without the padding at the end of its lines.

    Args:
        plane: A plane of an av.VideoFrame; a negative line size (the lowest line first in memory) is turned round.
        row_bytes: Bytes of one line that belong to the picture.

    Returns:
        Shape (plane.height, row_bytes), uint8, not writable unless the frame is; keeps the frame alive.
    """
    stride = abs(plane.line_size)
    rows = np.frombuffer(plane, np.uint8, count=stride * plane.height).reshape(plane.height, stride)[:, :row_bytes]
    return rows[::-1] if plane.line_size < 0 else rows


def _sample_points(length: int, per_cell: int) -> NDArray[np.intp]:
    """`per_cell` evenly spread positions for each of the cells along a side of `length` pixels."""
    count = THUMBPRINT_SIDE * per_cell
    return ((np.arange(count) * 2 + 1) * length // (2 * count)).astype(np.intp)


def _cell_means(luma: NDArray[np.uint8]) -> bytes:
    height, width = luma.shape
    points = luma[np.ix_(_sample_points(height, 4), _sample_points(width, 6))]
    cells = points.reshape(THUMBPRINT_SIDE, 4, THUMBPRINT_SIDE, 6).sum(axis=(1, 3), dtype=np.uint32)
    return (cells // 24).astype(np.uint8).tobytes()
