"""Pictures whose every corner is known, and ways to look at what was made of them."""

from __future__ import annotations

import io
from collections.abc import Callable

import av
import numpy as np
import pytest
from PIL import Image

RED, GREEN, BLUE, GRAY = (220, 40, 40), (40, 200, 60), (40, 60, 210), (180, 180, 180)


def quadrant_array(width: int = 64, height: int = 64) -> np.ndarray:
    """Red top left, green top right, blue bottom left, grey bottom right; uint8 RGB."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2] = RED
    picture[: height // 2, width // 2 :] = GREEN
    picture[height // 2 :, : width // 2] = BLUE
    picture[height // 2 :, width // 2 :] = GRAY
    return picture


@pytest.fixture
def quadrants() -> Callable[..., np.ndarray]:
    """Make the four coloured corners."""
    return quadrant_array


@pytest.fixture
def opened() -> Callable[[bytes], Image.Image]:
    """Decode what was encoded."""

    def open_(data: bytes) -> Image.Image:
        image = Image.open(io.BytesIO(data))
        image.load()
        return image

    return open_


@pytest.fixture
def corners() -> Callable[[bytes], list[tuple[int, int, int]]]:
    """The colours in the middle of the four corners of an encoded picture: top left, top right, bottom left, right."""

    def look(data: bytes) -> list[tuple[int, int, int]]:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        width, height = image.size
        return [image.getpixel((width * x // 4, height * y // 4)) for y in (1, 3) for x in (1, 3)]

    return look


@pytest.fixture
def close_to() -> Callable[..., bool]:
    """Whether colours are equal but for what a codec does to them."""

    def compare(got: object, wanted: object, tolerance: int = 6) -> bool:
        return bool((np.abs(np.asarray(got, int) - np.asarray(wanted, int)) <= tolerance).all())

    return compare


def yuv_frame(luma: np.ndarray, form: str = "yuv420p", blue: int = 128, red: int = 128) -> av.VideoFrame:
    """A planar 4:2:0 frame of the given luma and one colour."""
    height, width = luma.shape
    frame = av.VideoFrame(width, height, form)
    for index, plane in enumerate(frame.planes):
        rows = luma if index == 0 else np.full((plane.height, plane.width), (blue, red)[index - 1], np.uint8)
        put_plane(frame, index, rows)
    return frame


def put_plane(frame: av.VideoFrame, index: int, rows: np.ndarray) -> None:
    """Write rows of any sample type into a plane, padding and all."""
    plane = frame.planes[index]
    raw = np.ascontiguousarray(rows).reshape(rows.shape[0], -1).view(np.uint8)
    lines = np.full((plane.height, plane.line_size), 99, np.uint8)
    lines[: raw.shape[0], : raw.shape[1]] = raw
    plane.update(lines.tobytes())


@pytest.fixture
def make_yuv() -> Callable[..., av.VideoFrame]:
    """Make a planar 4:2:0 frame of a luma array."""
    return yuv_frame


@pytest.fixture
def put() -> Callable[[av.VideoFrame, int, np.ndarray], None]:
    """Write into a plane of a frame."""
    return put_plane
