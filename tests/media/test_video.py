"""Video frames to pictures: sizes, ranges, matrices, rotation, memory layouts, threads (behaviour.md I1–I3, I5)."""

import io
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import av
import numpy as np
import pytest
from av.video.reformatter import Interpolation, VideoReformatter
from PIL import Image

from realtime.errors import ImageError
from realtime.media import planes
from realtime.media.image import EncodeOptions, ResizeOptions, encode
from realtime.media.pillow import encode_image

OWN_SIZE = EncodeOptions("JPEG", None, 95)
RED, GREEN, BLUE, GRAY = (220, 40, 40), (40, 200, 60), (40, 60, 210), (180, 180, 180)
COLORS = [RED, GREEN, BLUE, GRAY]


def as_frame(rgb: np.ndarray, form: str = "yuv420p") -> av.VideoFrame:
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), "rgb24")
    return VideoReformatter().reformat(frame, format=form, threads=1)


def gradient(width: int, height: int) -> np.ndarray:
    """A picture whose every column and row has its own shade."""
    across = np.linspace(20, 230, width)[None, :].repeat(height, 0)
    down = np.linspace(230, 20, height)[:, None].repeat(width, 1)
    return np.stack([across, down, (across + down) / 2], axis=2).round().astype(np.uint8)


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["yuv420p", "nv12", "yuyv422", "rgb24", "gray"])
@pytest.mark.parametrize("size", [(101, 57), (57, 101), (1, 1), (2, 1), (1, 2), (1294, 964), (639, 479)])
def test_odd_and_unaligned_sizes_are_kept_to_the_last_column_and_row(form, size, opened, close_to):
    """I1, I3, B59."""
    width, height = size
    picture = gradient(width, height)
    if form == "gray":
        picture = picture[:, :, 2:].repeat(3, 2)
    image = opened(encode(as_frame(picture, form), OWN_SIZE))
    assert (image.size, image.mode) == ((width, height), "RGB")
    got = np.asarray(image)
    if min(size) > 2:
        tolerance = 8
        for rows, columns in ((slice(None), -1), (-1, slice(None)), (slice(None), 0), (0, slice(None))):
            assert close_to(got[rows, columns].mean(axis=0), picture[rows, columns].mean(axis=0), tolerance)
    else:
        luma = np.array([0.299, 0.587, 0.114])  # two pixels share one colour
        assert close_to(got @ luma, picture @ luma, 12)


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 3), (5, 7), (31, 17), (17, 32), (101, 57)])
@pytest.mark.parametrize("level", [0, 90, 255])
def test_a_plain_picture_of_odd_size_is_plain_to_the_edge(size, level, opened):
    """B59: nothing of the memory behind a plane gets in."""
    rgb = np.full((size[1], size[0], 3), level, np.uint8)
    image = np.asarray(opened(encode(as_frame(rgb, "gray"), EncodeOptions("JPEG", None, 75))))
    assert np.abs(image.astype(int) - level).max() <= 1


@pytest.mark.parametrize("size", [(1024, 1024), (333, 77), (1, 1), (2, 3), (1920, 1080)])
@pytest.mark.parametrize("source", [(101, 57), (1, 1), (640, 480)])
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_a_frame_is_scaled_to_exactly_the_size_asked_for(source, size, form, opened):
    """I1."""
    made = encode(as_frame(gradient(*source)), EncodeOptions(form, ResizeOptions(*size), 75))
    image = opened(made)
    assert (image.format, image.size) == (form, size)


@pytest.mark.parametrize(
    ("mode", "size"), [("stretch", (64, 64)), ("fit", (64, 32)), ("cover", (64, 64)), ("pad", (64, 64))]
)
def test_each_mode_keeps_the_corners_where_the_careful_way_has_them(quadrants, opened, mode, size):
    """I2: the fast way and Pillow's way give the same picture."""
    options = EncodeOptions("JPEG", ResizeOptions(64, 64, mode), 95)
    picture = quadrants(256, 128)
    fast = opened(encode(as_frame(picture, "yuv444p"), options))
    careful = opened(encode_image(Image.fromarray(picture), options))
    assert fast.size == careful.size == size
    difference = np.abs(np.asarray(fast).astype(int) - np.asarray(careful))
    assert difference.mean() < 3


@pytest.mark.parametrize(
    "case", [(*box, mode) for box in ((64, 31), (31, 64), (63, 33), (7, 5)) for mode in ("cover", "pad")]
)
def test_odd_boxes_are_cut_and_bordered_without_a_seam(quadrants, opened, corners, close_to, case):
    """I1, I2."""
    width, height, mode = case
    made = encode(as_frame(quadrants(200, 120), "yuv444p"), EncodeOptions("JPEG", ResizeOptions(*case), 95))
    assert opened(made).size == (width, height)
    if mode == "cover" and min(width, height) > 8:
        assert close_to(corners(made), COLORS, 16)


# -- range and matrix --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case_of",
    [
        ("yuv420p", 0, 16, 0),
        ("yuv420p", 0, 235, 255),
        ("yuv420p", 1, 16, 0),
        ("yuv420p", 1, 235, 255),
        ("yuv420p", 1, 2, 0),
        ("yuv420p", 1, 250, 255),
        ("yuv420p", 2, 16, 16),
        ("yuv420p", 2, 235, 235),
        ("yuv420p", 2, 0, 0),
        ("yuvj420p", 0, 16, 16),
        ("yuvj420p", 1, 16, 16),
        ("yuvj420p", 2, 235, 235),
        ("gray", 0, 16, 16),
        ("gray", 1, 16, 0),
        ("gray", 1, 235, 255),
        ("gray", 2, 16, 16),
    ],
)
@pytest.mark.parametrize("form_out", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [None, ResizeOptions(24, 24)])
def test_the_range_that_a_frame_states_is_honoured(case_of, opened, make_yuv, form_out, size):
    """I3, B65: JPEG is full range."""
    form, flag, luma, wanted = case_of
    frame = make_yuv(np.full((32, 32), luma, np.uint8), form)
    frame.color_range = flag
    image = opened(encode(frame, EncodeOptions(form_out, size, 95))).convert("RGB")
    assert np.abs(np.asarray(image).astype(int) - wanted).max() <= 2
    assert frame.color_range == flag


MATRICES = {
    1: (0.2126, 0.0722),
    2: (0.299, 0.114),
    5: (0.299, 0.114),
    6: (0.299, 0.114),
    7: (0.212, 0.087),
    9: (0.2627, 0.0593),
    4: (0.30, 0.11),
}


@pytest.mark.parametrize("space", sorted(MATRICES))
@pytest.mark.parametrize("full", [False, True])
def test_the_matrix_that_a_frame_states_is_honoured(make_yuv, corners, close_to, space, full):
    """I3, B65: BT.709, 601, 240M and 2020; an unmarked frame is BT.601. JFIF is BT.601."""
    for color in COLORS:
        red_weight, blue_weight = MATRICES[space]
        red, green, blue = (part / 255 for part in color)
        luma = red_weight * red + (1 - red_weight - blue_weight) * green + blue_weight * blue
        cb, cr = (blue - luma) / (2 - 2 * blue_weight), (red - luma) / (2 - 2 * red_weight)
        scale, low, wide = (255, 0, 255) if full else (219, 16, 224)
        values = [round(low + scale * luma), round(128 + wide * cb), round(128 + wide * cr)]
        frame = make_yuv(np.full((32, 32), values[0], np.uint8), "yuv420p", *values[1:])
        frame.colorspace, frame.color_range = space, 2 if full else 1
        for size, form in product((None, ResizeOptions(24, 24)), ("JPEG", "PNG")):
            assert close_to(corners(encode(frame, EncodeOptions(form, size, 95))), [color] * 4, 5)
        assert (frame.colorspace, frame.color_range) == (space, 2 if full else 1)


# -- orientation and memory --------------------------------------------------------------------------------------------


def rotated_frame(rgb: np.ndarray, degrees: int) -> av.VideoFrame:
    """A decoded frame with a display matrix, as a phone's file has."""
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = rgb.shape[1], rgb.shape[0], "yuv420p", 8_000_000
        for packet in [*stream.encode(av.VideoFrame.from_ndarray(rgb, "rgb24")), *stream.encode()]:
            container.mux(packet)
    data = bytearray(out.getvalue())
    cosine, sine = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    at = data.index(b"tkhd") + 44  # the matrix of the track header
    data[at : at + 36] = struct.pack(">9i", cosine << 16, -sine << 16, 0, sine << 16, cosine << 16, 0, 0, 0, 1 << 30)
    return next(av.open(io.BytesIO(bytes(data))).decode(video=0))


TURNED = {
    0: [RED, GREEN, BLUE, GRAY],
    90: [GREEN, GRAY, RED, BLUE],
    180: [GRAY, BLUE, GREEN, RED],
    270: [BLUE, RED, GRAY, GREEN],
}


@pytest.mark.parametrize("degrees", TURNED)
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
@pytest.mark.parametrize("resize", [None, ResizeOptions(64, 64), ResizeOptions(63, 65), ResizeOptions(64, 64, "cover")])
def test_a_frame_is_turned_as_its_display_matrix_says(quadrants, opened, degrees, form, resize):
    """I3, I5: rotation is counter-clockwise."""
    frame = rotated_frame(quadrants(96, 64), degrees)
    assert frame.rotation % 360 == degrees
    image = opened(encode(frame, EncodeOptions(form, resize, 95)))
    upright = (96, 64) if degrees % 180 == 0 else (64, 96)
    assert image.size == (upright if resize is None else (resize.width, resize.height))
    for index, wanted in enumerate(TURNED[degrees]):
        x, y = image.width * (1 + 2 * (index % 2)) // 4, image.height * (1 + 2 * (index // 2)) // 4
        assert np.abs(np.array(image.getpixel((x, y))) - wanted).max() <= 14


@pytest.mark.parametrize("form", ["yuv420p", "nv12", "rgb24", "yuvj420p", "yuva420p", "gray"])
def test_a_frame_stored_from_the_bottom_up_stands_upright(quadrants, corners, close_to, form):
    """I3: negative line size, as FFmpeg's vflip gives."""
    graph = av.filter.Graph()
    source = graph.add_buffer(width=64, height=64, format=form, time_base=Fraction(1, 30))
    flip, sink = graph.add("vflip"), graph.add("buffersink")
    source.link_to(flip)
    flip.link_to(sink)
    graph.configure()
    frame = as_frame(quadrants()[::-1], form)
    frame.pts, frame.time_base = 0, Fraction(1, 30)
    source.push(frame)
    flipped = sink.pull()
    assert flipped.planes[0].line_size < 0
    wanted = COLORS
    if form == "gray":
        wanted = [(round(0.299 * red + 0.587 * green + 0.114 * blue),) * 3 for red, green, blue in COLORS]
    for options in (OWN_SIZE, EncodeOptions("JPEG", ResizeOptions(48, 48), 95), EncodeOptions("PNG", None)):
        assert close_to(corners(encode(flipped, options)), wanted, 8)


def test_transparent_parts_of_a_frame_lie_on_white(corners, close_to):
    """I3."""
    rgba = np.zeros((32, 32, 4), np.uint8)
    rgba[:, :, 0] = 255
    rgba[:16, :, 3] = 255
    frame = av.VideoFrame.from_ndarray(rgba, "rgba")
    assert close_to(corners(encode(frame, OWN_SIZE)), [(255, 0, 0)] * 2 + [(255, 255, 255)] * 2)
    planar = VideoReformatter().reformat(frame, format="yuva444p", threads=1)
    assert close_to(corners(encode(planar, OWN_SIZE)), [(255, 0, 0)] * 2 + [(255, 255, 255)] * 2)


def test_size_rotation_format_and_range_may_change_at_any_frame(quadrants, opened, corners, close_to):
    """I5."""
    turned = [GREEN, GRAY, RED, BLUE]
    frames = [
        (as_frame(quadrants(64, 48)), COLORS),
        (as_frame(quadrants(48, 64), "yuvj420p"), COLORS),
        (rotated_frame(quadrants(64, 48), 90), turned),
        (as_frame(quadrants(200, 100), "nv12"), COLORS),
        (as_frame(quadrants(33, 35), "rgb24"), COLORS),
        (as_frame(quadrants(64, 48)), COLORS),
    ] * 2
    for frame, wanted in frames:
        made = encode(frame, EncodeOptions("JPEG", ResizeOptions(40, 40), 95))
        assert opened(made).size == (40, 40)
        assert close_to(corners(made), wanted, 14)


# -- errors, threads, memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["rgb4", "bgr4", "gray32le", "rgbaf32le", "y210be"])
def test_a_format_that_cannot_be_read_is_refused_by_name_and_the_next_frame_is_fine(form, quadrants, corners, close_to):
    """I3, B60: one bad frame stops nothing."""
    with pytest.raises(ImageError, match=f"pixel format '{form}'"):
        encode(av.VideoFrame(64, 64, form))
    assert close_to(corners(encode(as_frame(quadrants()), OWN_SIZE)), COLORS)


def test_a_frame_without_a_size_is_refused():
    with pytest.raises(ImageError, match="a frame with a size, not 0x0"):
        encode(av.VideoFrame())


def test_many_threads_encode_many_frames_and_the_same_frame(quadrants):
    """B72: the encoder belongs in worker threads; what it keeps is each thread's own."""
    frames = [
        as_frame(quadrants(64 + 2 * index, 48), form) for index, form in enumerate(["yuv420p", "nv12", "rgb24"] * 4)
    ]
    options = EncodeOptions("JPEG", ResizeOptions(96, 96), 80)
    wanted = [encode(frame, options) for frame in frames]
    together = threading.Barrier(4)

    def work(_: int) -> list[bytes]:
        together.wait(10)
        return [encode(frame, options) for frame in frames]

    with ThreadPoolExecutor(4) as pool:
        assert all(made == wanted for made in pool.map(work, range(4)))


def test_a_thread_keeps_only_a_few_scaling_contexts():
    """Bounded: sources and sizes come and go in a process that lives for weeks."""
    kept: list[int] = []

    def work() -> None:
        for width in range(16, 16 + 2 * 40, 2):
            encode(av.VideoFrame(width, 16), EncodeOptions("JPEG", ResizeOptions(8, 8)))
        kept.append(len(planes._contexts.by_key))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert kept == [8]


def test_a_frame_is_let_go_once_it_is_encoded(quadrants):
    frame = as_frame(quadrants())
    before = sys.getrefcount(frame)
    for options in (OWN_SIZE, EncodeOptions(), EncodeOptions("PNG", None)):
        encode(frame, options)
    assert sys.getrefcount(frame) == before


def test_a_frame_is_not_changed(quadrants):
    frame = as_frame(quadrants())
    frame.pts, frame.time_base = 77, Fraction(1, 90_000)
    before = [bytes(plane) for plane in frame.planes]
    for options in (OWN_SIZE, EncodeOptions(), EncodeOptions("PNG", None)):
        encode(frame, options)
    assert [bytes(plane) for plane in frame.planes] == before
    assert (frame.pts, frame.color_range, frame.colorspace) == (77, 0, 2)


# -- quality -----------------------------------------------------------------------------------------------------------


def webcam_frame() -> av.VideoFrame:
    """1280×720: smooth shapes, sharp edges, fine texture and sensor noise, as a camera has."""
    random = np.random.default_rng(5)
    y, x = np.mgrid[0:720, 0:1280].astype(np.float32)
    base = np.stack(
        [
            120 + 60 * np.sin(x / 210) + 40 * np.cos(y / 130),
            110 + 50 * np.cos((x + y) / 170) + 30 * np.sin(y / 41),
            100 + 70 * np.sin((x - y) / 260),
        ],
        axis=2,
    )
    disc = ((x - 640) ** 2 + (y - 380) ** 2) < 200**2
    base[disc] = base[disc] * 0.4 + np.array([170, 120, 95])
    base[(y > 600) & (x % 24 < 3)] *= 0.4
    base += random.normal(0, 5, base.shape)
    return as_frame(np.clip(base, 0, 255).astype(np.uint8))


def psnr(picture: np.ndarray, wanted: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((picture.astype(np.float64) - wanted) ** 2)))


def ssim(picture: np.ndarray, wanted: np.ndarray) -> float:
    """Mean structural similarity of luma over 8×8 blocks."""

    def blocks(rgb: np.ndarray) -> np.ndarray:
        luma = rgb.astype(np.float64) @ (0.299, 0.587, 0.114)
        return luma.reshape(luma.shape[0] // 8, 8, -1, 8).swapaxes(1, 2).reshape(-1, 64)

    a, b = blocks(picture), blocks(wanted)
    mean_a, mean_b = a.mean(1), b.mean(1)
    covariance = ((a - mean_a[:, None]) * (b - mean_b[:, None])).mean(1)
    one, two = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    score = (2 * mean_a * mean_b + one) * (2 * covariance + two)
    return float((score / ((mean_a**2 + mean_b**2 + one) * (a.var(1) + b.var(1) + two))).mean())


@pytest.mark.parametrize("size", [(1024, 1024), (1024, 576), (512, 288)])
def test_the_fast_way_is_as_good_as_the_seeds_way(size, opened):
    """Within 0.4 dB PSNR and 0.005 SSIM of Pillow at the same quality, both against the exact resize.

    Exact is the frame's colours converted with full precision: `to_image()` itself rounds down, by one to two steps.
    """
    frame = webcam_frame()
    precise = int(Interpolation.BICUBIC) | 0x2000 | 0x40000 | 0x80000  # full chroma, accurate rounding, bit-exact
    colors = Image.fromarray(frame.reformat(format="rgb24", interpolation=precise).to_ndarray())
    exact = np.asarray(colors.resize(size, Image.Resampling.LANCZOS))
    slow = io.BytesIO()
    frame.to_image().resize(size, Image.Resampling.LANCZOS).save(slow, "JPEG", quality=75, optimize=True)
    fast = encode(frame, EncodeOptions("JPEG", ResizeOptions(*size), 75))
    of_fast, of_slow = np.asarray(opened(fast)), np.asarray(opened(slow.getvalue()))
    assert psnr(of_fast, exact) > psnr(of_slow, exact) - 0.4
    assert ssim(of_fast, exact) > ssim(of_slow, exact) - 0.005
    assert len(fast) < 1.25 * len(slow.getvalue())
