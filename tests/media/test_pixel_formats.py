"""Every pixel format that PyAV knows is either encoded with its right colours or refused by its name (I3, B60).

Formats that swscale can write are filled by it from 4:4:4 samples or from RGB; the others are written by hand here, so
that no format is judged by a reader and writer that make the same mistake.
"""

import io

import av
import numpy as np
import pytest
from av.video.format import VideoFormat, names
from av.video.reformatter import ColorRange, VideoReformatter
from PIL import Image

from realtime.errors import ImageError
from realtime.media.frame import thumbprint
from realtime.media.image import EncodeOptions, ResizeOptions, encode

SIDE = 64
COLORS = np.array([(220, 40, 40), (40, 200, 60), (40, 60, 210), (180, 180, 180)])
LUMA = COLORS @ (0.299, 0.587, 0.114)
OPTIONS = [
    EncodeOptions("JPEG", ResizeOptions(128, 128), 95),
    EncodeOptions("JPEG", None, 95),
    EncodeOptions("PNG", None),
    EncodeOptions("JPEG", ResizeOptions(33, 35), 95),
]

HARDWARE = frozenset(
    [
        "amf",
        "cuda",
        "d3d11",
        "d3d11va_vld",
        "d3d12",
        "drm_prime",
        "dxva2_vld",
        "mediacodec",
        "mmal",
        "ohcodec",
        "opencl",
        "qsv",
        "vaapi",
        "vdpau",
        "videotoolbox_vld",
        "vulkan",
    ]
)
"""Surfaces of devices: no frame of these exists without its device."""

COARSE = {"bgr8": 20, "rgb8": 20, "rgb444": 10, "bgr444": 10, "bgr4_byte": 40, "rgb4_byte": 40}
"""Formats of few bits, by how far a colour may be off in the mean of a dithered corner."""

BLACK_AND_WHITE = {"monow", "monob"}


def by_corner(values: np.ndarray) -> np.ndarray:
    """Four values, or four tuples of values, spread over the four corners of a picture."""
    corner = np.repeat(np.repeat(np.array([[0, 1], [2, 3]]), SIDE // 2, 0), SIDE // 2, 1)
    return np.asarray(values)[corner]


def put(frame: av.VideoFrame, index: int, rows: np.ndarray) -> None:
    plane = frame.planes[index]
    raw = np.ascontiguousarray(rows).reshape(rows.shape[0], -1).view(np.uint8)
    lines = np.zeros((plane.height, plane.line_size), np.uint8)
    lines[: raw.shape[0], : raw.shape[1]] = raw
    plane.update(lines.tobytes())


def yuv444() -> av.VideoFrame:
    """The corners in limited range, computed here."""
    red, green, blue = (COLORS / 255).T
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    frame = av.VideoFrame(SIDE, SIDE, "yuv444p")
    for index, values in enumerate(
        (16 + 219 * luma, 128 + 224 * (blue - luma) / 1.772, 128 + 224 * (red - luma) / 1.402)
    ):
        put(frame, index, by_corner(values.round().astype(np.uint8)))
    return frame


def float_type(name: str) -> str:
    return (">" if name.endswith("be") else "<") + ("f2" if "16" in name else "f4")


def by_hand(name: str) -> av.VideoFrame | None:
    """A frame of a format that swscale cannot write, or reads as it writes: wrongly."""
    colors, luma = by_corner(COLORS), by_corner(LUMA)
    kind = name.removesuffix("le").removesuffix("be")
    frame = av.VideoFrame(SIDE, SIDE, name)
    if kind in {"grayf16", "grayf32"}:
        put(frame, 0, (luma / 255).astype(float_type(name)))
    elif kind in {"yaf16", "yaf32"}:
        put(frame, 0, np.dstack([luma / 255, np.ones_like(luma)]).astype(float_type(name)))
    elif kind in {"rgbf16", "rgbf32"}:
        put(frame, 0, (colors / 255).astype(float_type(name)))
    elif kind == "rgbaf16":
        put(frame, 0, np.dstack([colors / 255, np.ones_like(luma)]).astype(float_type(name)))
    elif kind in {"gbrpf16", "gbrapf16"}:
        for index, channel in enumerate((1, 2, 0)):
            put(frame, index, (colors[:, :, channel] / 255).astype(float_type(name)))
        if kind == "gbrapf16":
            put(frame, 3, np.ones((SIDE, SIDE), float_type(name)))
    elif kind.startswith("bayer_"):
        put(frame, 0, mosaic(kind, ">u2" if name.endswith("be") else "<u2"))
    elif kind in {"gray9", "gray10", "gray12", "gray14", "gray16"}:
        bits = int(kind.removeprefix("gray"))
        order = ">u2" if name.endswith("be") else "<u2"
        put(frame, 0, (luma / 255 * ((1 << bits) - 1)).round().astype(order))
    elif kind == "gray":
        put(frame, 0, luma.round().astype(np.uint8))
    elif kind == "pal8":
        palette = np.zeros((256, 4), np.uint8)
        palette[:4, 0], palette[:4, 1:] = 255, COLORS
        return av.VideoFrame.from_ndarray((by_corner(np.arange(4, dtype=np.uint8)), palette), "pal8")
    elif kind == "uyyvyy411":
        samples = [np.frombuffer(plane, np.uint8).reshape(SIDE, -1)[:, :SIDE] for plane in yuv444().planes]
        luma4, blue, red = samples[0].reshape(SIDE, -1, 4), samples[1][:, ::4], samples[2][:, ::4]
        put(frame, 0, np.dstack([blue, luma4[:, :, 0], luma4[:, :, 1], red, luma4[:, :, 2], luma4[:, :, 3]]))
    else:
        return None
    return frame


def mosaic(kind: str, order: str) -> np.ndarray:
    """The picture as a sensor with a colour filter sees it."""
    colors, pattern = by_corner(COLORS), kind.removeprefix("bayer_")
    values = np.zeros((SIDE, SIDE))
    for index, letter in enumerate(pattern.rstrip("0123456789")):
        row, column = divmod(index, 2)
        values[row::2, column::2] = colors[row::2, column::2, "rgb".index(letter)]
    return (values * 257).astype(order) if kind.endswith("16") else values.astype(np.uint8)


def make(name: str) -> av.VideoFrame | None:
    """A frame of the four corners in a format, or None if nobody can make one."""
    frame = by_hand(name)
    if frame is not None:
        return frame
    form = VideoFormat(name, SIDE, SIDE)
    from_yuv = not form.is_rgb and not name.startswith(("mono", "xyz", "ya")) and "gb" not in name
    try:
        if from_yuv and not name.startswith("yuvj"):
            # No range is given, so samples are copied as they are, and only the layout is swscale's.
            made = VideoReformatter().reformat(yuv444(), format=name, threads=1)
            made.color_range = ColorRange.UNSPECIFIED
            return made
        colors = av.VideoFrame.from_ndarray(by_corner(COLORS).astype(np.uint8), "rgb24")
        return VideoReformatter().reformat(colors, format=name, threads=1)
    except (ValueError, OSError):
        return None


def look(data: bytes) -> np.ndarray:
    """The mean colours of the middles of the four corners."""
    picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(float)
    half = len(picture) // 2
    middle = slice(half // 4, 3 * half // 4)
    return np.array(
        [picture[y : y + half, x : x + half][middle, middle].mean((0, 1)) for y in (0, half) for x in (0, half)]
    )


@pytest.mark.parametrize("name", sorted(set(names) - HARDWARE))
def test_every_pixel_format_is_right_or_refused_by_name(name):
    frame = make(name)
    if frame is None:
        with pytest.raises(ImageError, match=f"pixel format '{name}'"):
            encode(av.VideoFrame(SIDE, SIDE, name))
        with pytest.raises(ImageError, match=f"pixel format '{name}'"):
            thumbprint(av.VideoFrame(SIDE, SIDE, name))
        return
    kind = name.removesuffix("le").removesuffix("be")
    if name in {"rgb4", "bgr4"}:  # four bits a pixel: swscale writes them and cannot read them
        with pytest.raises(ImageError, match=f"pixel format '{name}'"):
            encode(frame)
        return
    for options in OPTIONS:
        got = look(encode(frame, options))
        if name in BLACK_AND_WHITE:
            assert np.abs(got - LUMA[:, None]).max() <= 40
            continue
        gray = kind.startswith(("gray", "ya"))
        wanted = np.repeat(LUMA[:, None], 3, 1) if gray else COLORS
        tolerance = COARSE.get(kind, 7)
        assert np.abs(got - wanted).max() <= tolerance, (options, got.tolist())
        assert gray or [int(color.argmax()) for color in got[:3]] == [0, 1, 2]  # red stays red
    assert len(thumbprint(frame)) == 1024


def test_hardware_frames_cannot_be_made_without_their_device():
    """The list above is of formats that no test can fill; each is still in PyAV's table."""
    assert set(names) >= HARDWARE
    for name in HARDWARE:
        with pytest.raises((ValueError, OSError)):
            av.VideoFrame(SIDE, SIDE, name)


def test_a_palette_whose_alpha_was_never_set_is_opaque():
    palette = np.zeros((256, 4), np.uint8)
    palette[:4, 1:] = COLORS
    frame = av.VideoFrame.from_ndarray((by_corner(np.arange(4, dtype=np.uint8)), palette), "pal8")
    assert np.abs(look(encode(frame, OPTIONS[1])) - COLORS).max() <= 7


def test_a_palette_with_transparent_colours_lies_on_white():
    palette = np.zeros((256, 4), np.uint8)
    palette[:4, 1:] = COLORS
    palette[1:4, 0] = 255
    frame = av.VideoFrame.from_ndarray((by_corner(np.arange(4, dtype=np.uint8)), palette), "pal8")
    assert look(encode(frame, OPTIONS[1]))[0].min() >= 250


def test_gray_floats_beyond_their_range_are_clipped():
    frame = av.VideoFrame(SIDE, SIDE, "grayf32le")
    put(frame, 0, by_corner(np.array([-1.0, 2.0, np.nan, np.inf], "<f4")))
    assert np.abs(look(encode(frame, OPTIONS[2]))[:, 0] - (0, 255, 0, 255)).max() < 1
