"""What an av video frame tells without being converted: size, rotation, range, time, and a thumbprint.

Owns: `check_frame`, `frame_size`, `rotation_quarters`, `luma_is_full_range`, `pts_ms`, `thumbprint`, and views of planes. Driven by the
sampler's pipeline, once per received frame, so everything here is cheap; and by the encoder. Never converts a whole
picture, never changes a frame.
"""

from __future__ import annotations

import math
from typing import Any, cast

import av
import numpy as np
from av.error import FFmpegError
from av.video.reformatter import ColorRange, Interpolation, VideoReformatter
from numpy.typing import NDArray

from realtime.errors import ImageError

__all__ = [
    "THUMBPRINT_SIDE",
    "check_frame",
    "float_gray",
    "frame_size",
    "is_float_gray",
    "luma_is_full_range",
    "plane_rows",
    "pts_ms",
    "rotation_quarters",
    "thumbprint",
]

THUMBPRINT_SIDE = 32
"""A thumbprint has this many cells across and down."""

_FULL_RANGE_NAMES = (
    "yuvj", "gray", "ya8", "ya16", "mono", "rgb", "bgr", "gbr", "arg", "abg", "0rg", "0bg", "pal8", "bayer", "xyz",
    "x2rgb", "x2bgr",
)  # fmt: skip

_ROWS_PER_CELL = 4
_COLUMNS_PER_CELL = 6

_LUMA_PLANES: dict[str, tuple[int, int, str, int]] = {
    # name: (bytes from one luma sample to the next, offset of the first, numpy type, bits to drop)
    **dict.fromkeys(
        ["yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "yuv440p", "yuvj440p", "yuv410p",
         "yuv411p", "yuvj411p", "nv12", "nv21", "nv16", "nv24", "nv42", "gray", "yuva420p", "yuva422p", "yuva444p"],
        (1, 0, "u1", 0),
    ),
    "yuyv422": (2, 0, "u1", 0),
    "yvyu422": (2, 0, "u1", 0),
    "uyvy422": (2, 1, "u1", 0),
    **dict.fromkeys(["yuv420p10le", "yuv422p10le", "yuv444p10le", "gray10le"], (2, 0, "<u2", 2)),
    **dict.fromkeys(["p010le", "p016le", "p210le", "yuv420p16le", "gray16le"], (2, 0, "<u2", 8)),
}  # fmt: skip
"""Where the luma of common formats lies in their first plane."""

_RGB_PIXELS: dict[str, tuple[int, int, int, int]] = {
    # name: (bytes per pixel, offsets of red, green, blue)
    "rgb24": (3, 0, 1, 2), "bgr24": (3, 2, 1, 0),
    "rgba": (4, 0, 1, 2), "rgb0": (4, 0, 1, 2), "bgra": (4, 2, 1, 0), "bgr0": (4, 2, 1, 0),
    "argb": (4, 1, 2, 3), "0rgb": (4, 1, 2, 3), "abgr": (4, 3, 2, 1), "0bgr": (4, 3, 2, 1),
}  # fmt: skip

_CELL_MEANS = np.kron(
    np.eye(THUMBPRINT_SIDE, dtype=np.float32),
    np.full((_COLUMNS_PER_CELL, 1), 1.0 / (_ROWS_PER_CELL * _COLUMNS_PER_CELL), np.float32),
)


def rotation_quarters(frame: Any) -> int:
    """By how many quarter turns counter-clockwise the frame is to be turned for display: 0–3.

    From `rotation`, counter-clockwise degrees as in PyAV; rounded to the nearest quarter; 0 where there is none.
    """
    degrees = getattr(frame, "rotation", 0)
    if isinstance(degrees, bool) or not isinstance(degrees, (int, float)) or not math.isfinite(degrees):
        return 0
    return round(degrees / 90) % 4


def check_frame(frame: object) -> None:
    """Refuse what is no frame of pictures.

    Raises:
        ImageError: It is none.
    """
    if not isinstance(frame, av.VideoFrame):
        raise ImageError("frame", type(frame).__name__, "an av.VideoFrame")


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

    The ``yuvj`` formats always do. Else the frame's own flag decides; without one, grey and RGB are full and others
    limited, as in FFmpeg.
    """
    name = frame.format.name
    if frame.color_range == ColorRange.JPEG or name.startswith("yuvj"):
        return True
    return frame.color_range != ColorRange.MPEG and name.startswith(_FULL_RANGE_NAMES)


def plane_rows(plane: Any, row_bytes: int) -> NDArray[np.uint8]:
    """A view of a plane the right way up and without the padding at the end of its lines.

    Args:
        plane: A plane of an av.VideoFrame; a negative line size (the lowest line first in memory) is turned round.
        row_bytes: Bytes of one line that belong to the picture.

    Returns:
        Shape (plane.height, row_bytes), uint8; keeps the frame alive; not to be written to.
    """
    stride = abs(plane.line_size)
    rows = np.frombuffer(plane, np.uint8, count=stride * plane.height).reshape(plane.height, stride)[:, :row_bytes]
    return rows[::-1] if plane.line_size < 0 else rows


def is_float_gray(name: str) -> bool:
    """Whether a pixel format is grey in floats: swscale takes those for limited range, or aborts the process."""
    return name.startswith(("grayf", "yaf"))


def float_gray(frame: av.VideoFrame) -> NDArray[Any]:
    """The values of a frame of grey floats, shape (h, w, 1), or (h, w, 2) with alpha; clipped to 0..1."""
    name = frame.format.name
    order = ">" if name.endswith("be") else "<"
    width = 2 if "16" in name else 4
    channels = 2 if name.startswith("yaf") else 1
    rows = plane_rows(frame.planes[0], frame.width * channels * width)
    values = np.ascontiguousarray(rows).view(f"{order}f{width}")
    return cast("NDArray[Any]", np.clip(values, 0.0, 1.0).reshape(frame.height, frame.width, channels))


def thumbprint(frame: av.VideoFrame) -> bytes:
    """The frame's luma as 32×32 means, row by row: 1024 bytes, for telling whether two frames of a source differ.

    In the frame's own luma range and before rotation, so it is comparable within one source. Each cell is the mean of a
    grid of its pixels, so that sensor noise does not look like change.

    Raises:
        ImageError: The format cannot be read.
    """
    # hot path: once per received frame
    name = frame.format.name
    if min(frame.width, frame.height) >= THUMBPRINT_SIDE:
        luma = _LUMA_PLANES.get(name)
        if luma is not None:
            return _means(_cells(frame.planes[0], frame.width, *luma[:3]), 1.0 / (1 << luma[3]))
        rgb = _RGB_PIXELS.get(name)
        if rgb is not None:
            step, red, green, blue = rgb
            red_sum, green_sum, blue_sum = (
                _cells(frame.planes[0], frame.width, step, at, "u1") for at in (red, green, blue)
            )
            red_sum *= 0.299
            green_sum *= 0.587
            blue_sum *= 0.114
            return _means(red_sum + green_sum + blue_sum)
    return _scaled_thumbprint(frame)


def _cells(plane: Any, width: int, step: int, offset: int, dtype: str) -> NDArray[np.float32]:
    """Sums over the rows of each cell's grid: shape (32, 32 * columns per cell)."""
    stride = plane.line_size
    tall, wide = plane.height // THUMBPRINT_SIDE, width // THUMBPRINT_SIDE
    row, column = tall // _ROWS_PER_CELL, wide // _COLUMNS_PER_CELL
    top = 0 if stride > 0 else (plane.height - 1) * -stride
    grid: NDArray[Any] = np.ndarray(
        (THUMBPRINT_SIDE, _ROWS_PER_CELL, THUMBPRINT_SIDE, _COLUMNS_PER_CELL),
        dtype,
        plane,
        top + row // 2 * stride + column // 2 * step + offset,
        (tall * stride, row * stride, wide * step, column * step),
    )
    sums = grid.sum(axis=1, dtype=np.uint32).astype(np.float32)
    return cast("NDArray[np.float32]", sums.reshape(THUMBPRINT_SIDE, -1))


def _means(sums: NDArray[np.float32], scale: float = 1.0) -> bytes:
    means = sums @ _CELL_MEANS
    if scale != 1.0:
        means *= np.float32(scale)
    return np.minimum(means, 255.0).astype(np.uint8).tobytes()


def _scaled_thumbprint(frame: av.VideoFrame) -> bytes:
    """The careful way, for rare formats and tiny frames."""
    frame_size(frame)
    name = frame.format.name
    rows = np.arange(THUMBPRINT_SIDE) * frame.height // THUMBPRINT_SIDE
    columns = np.arange(THUMBPRINT_SIDE) * frame.width // THUMBPRINT_SIDE
    if is_float_gray(name):
        points: Any = np.nan_to_num(float_gray(frame)[:, :, 0][np.ix_(rows, columns)])
        return bytes((points * 255.0).astype(np.uint8).tobytes())
    if _LUMA_PLANES.get(name, (0,))[0] == 1:
        return plane_rows(frame.planes[0], frame.width)[np.ix_(rows, columns)].tobytes()
    try:
        small = VideoReformatter().reformat(
            frame, THUMBPRINT_SIDE, THUMBPRINT_SIDE, "gray", interpolation=Interpolation.AREA, threads=1
        )
    except (ValueError, OSError, FFmpegError) as error:
        raise ImageError("frame", f"a frame of pixel format {name!r}", "of one that can be read") from error
    return plane_rows(small.planes[0], THUMBPRINT_SIDE).tobytes()
