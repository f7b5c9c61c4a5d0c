"""What a frame tells unconverted: size, time, range, thumbprint (behaviour.md I3–I5)."""

from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from realtime.errors import ImageError
from realtime.media.frame import frame_size, luma_is_full_range, pts_ms, rotation_quarters, thumbprint

READ_DIRECTLY = [
    "yuv420p", "yuvj420p", "yuv422p", "yuv444p", "nv12", "nv21", "yuyv422", "uyvy422", "yvyu422", "yuv420p10le", "p010le",
    "p016le", "gray", "gray16le", "gray10le", "rgb24", "bgr24", "rgba", "bgra", "argb", "abgr", "rgb0", "0bgr",
]  # fmt: skip


def shape(**fields: object) -> SimpleNamespace:
    return SimpleNamespace(**{"width": 640, "height": 480, **fields})


@pytest.mark.parametrize(
    ("degrees", "quarters"),
    [
        (0, 0),
        (90, 1),
        (-90, 3),
        (180, 2),
        (-180, 2),
        (270, 3),
        (88.5, 1),
        (None, 0),
        ("90", 0),
        (float("inf"), 0),
        (True, 0),
    ],
)
def test_rotation_is_counted_in_quarters_counter_clockwise(degrees, quarters):
    assert rotation_quarters(shape(rotation=degrees)) == quarters


def test_size_is_what_is_seen_after_rotation():
    """I5."""
    assert frame_size(shape()) == (640, 480)
    assert frame_size(shape(rotation=90)) == (480, 640)
    assert frame_size(shape(rotation=-180)) == (640, 480)
    assert frame_size(av.VideoFrame(33, 35)) == (33, 35)


@pytest.mark.parametrize("fields", [{"width": 0}, {"height": -1}, {"width": None}, {"height": 4.0}])
def test_a_frame_without_a_size_is_refused(fields):
    with pytest.raises(ImageError, match="a frame with a size"):
        frame_size(shape(**fields))


@pytest.mark.parametrize(
    ("pts", "base", "wanted"),
    [
        (0, Fraction(1, 90_000), 0),
        (90_000, Fraction(1, 90_000), 1000),
        (3003, Fraction(1, 90_000), 33),
        (-45, Fraction(1, 90_000), 0),
        (-90_000, Fraction(1, 90_000), -1000),
        (None, Fraction(1, 90_000), None),
        (5, None, None),
        (5, SimpleNamespace(numerator=1, denominator=0), None),
        (2**40, Fraction(1, 90_000), 12216795864),
    ],
)
def test_media_time_is_counted_in_milliseconds(pts, base, wanted):
    assert pts_ms(shape(pts=pts, time_base=base)) == wanted


@pytest.mark.parametrize(
    ("form", "flag", "full"),
    [
        ("yuv420p", 0, False), ("yuv420p", 1, False), ("yuv420p", 2, True), ("yuvj420p", 0, True), ("yuvj420p", 1, True),
        ("nv12", 0, False), ("p010le", 0, False), ("gray", 0, True), ("gray", 1, False), ("rgb24", 0, True), ("x2rgb10le", 0, True),
        ("xv30le", 0, False), ("ayuv", 0, False),
    ],
)  # fmt: skip
def test_the_range_is_the_frames_own_or_that_of_its_format(form, flag, full):
    """B65."""
    frame = av.VideoFrame(2, 2, form)
    frame.color_range = flag
    assert luma_is_full_range(frame) is full


def cells_of(frame: av.VideoFrame) -> np.ndarray:
    return np.frombuffer(thumbprint(frame), np.uint8).reshape(32, 32).astype(int)


def checks(width: int, height: int) -> np.ndarray:
    """Bright and dark cells, 32 across and down, as grey RGB."""
    rows = np.arange(height) * 32 // height
    columns = np.arange(width) * 32 // width
    luma = np.where((rows[:, None] + columns[None, :]) % 2, 200, 60).astype(np.uint8)
    return np.repeat(luma[:, :, None], 3, 2)


@pytest.mark.parametrize("form", [*READ_DIRECTLY, "gbrp", "yuv440p12le", "pal8", "monow"])
def test_a_thumbprint_has_32_by_32_cells_of_luma_in_every_format(form):
    if form in {"pal8", "monow"}:
        assert len(thumbprint(av.VideoFrame(640, 480, form))) == 1024
        return
    frame = VideoReformatter().reformat(av.VideoFrame.from_ndarray(checks(640, 480), "rgb24"), format=form, threads=1)
    cells = cells_of(frame)
    bright = (np.arange(32)[:, None] + np.arange(32)[None, :]) % 2 == 1
    assert cells[bright].min() > 160
    assert cells[~bright].max() < 100


@pytest.mark.parametrize("size", [(1280, 720), (641, 479), (33, 35), (32, 32), (20, 10), (1, 1), (5, 400)])
def test_a_thumbprint_is_1024_bytes_of_any_size(size):
    frame = av.VideoFrame(*size)
    frame.planes[0].update(bytes([90]) * frame.planes[0].buffer_size)
    assert set(thumbprint(frame)) == {90}


def test_a_change_anywhere_is_seen_where_it_is():
    frame = av.VideoFrame(1280, 720)
    before = cells_of(frame)
    luma = np.frombuffer(bytes(frame.planes[0]), np.uint8).reshape(720, -1).copy()
    luma[:] = 50
    frame.planes[0].update(luma.tobytes())
    before = cells_of(frame)
    luma[360:, 640:1280] = 150
    frame.planes[0].update(luma.tobytes())
    change = cells_of(frame) - before
    assert (change[17:, 17:] == 100).all()
    assert (change[:16, :] == 0).all()
    assert (change[:, :15] == 0).all()


def test_sensor_noise_is_hardly_a_change():
    """I4: two frames of a still scene differ by less than the sampler's threshold of 1.5."""
    random = np.random.default_rng(3)
    still = random.integers(40, 200, (32, 32)).repeat(23, 0).repeat(40, 1)[:720].astype(float)
    prints = []
    for _ in range(2):
        frame = av.VideoFrame(1280, len(still))
        noisy = np.clip(still + random.normal(0, 4, still.shape), 0, 255).astype(np.uint8)
        frame.planes[0].update(noisy.tobytes())
        prints.append(cells_of(frame))
    assert np.abs(prints[0] - prints[1]).mean() < 1.5


def test_a_frame_from_the_bottom_up_gives_the_same_thumbprint():
    graph = av.filter.Graph()
    source = graph.add_buffer(width=64, height=64, format="yuv420p", time_base=Fraction(1, 30))
    flip, sink = graph.add("vflip"), graph.add("buffersink")
    source.link_to(flip)
    flip.link_to(sink)
    graph.configure()
    rows = np.arange(64, dtype=np.uint8)[:, None].repeat(64, 1)
    upright, upside_down = av.VideoFrame(64, 64), av.VideoFrame(64, 64)
    upright.planes[0].update(rows.tobytes())
    upside_down.planes[0].update(rows[::-1].tobytes())
    upside_down.pts, upside_down.time_base = 0, Fraction(1, 30)
    source.push(upside_down)
    flipped = sink.pull()
    assert flipped.planes[0].line_size < 0
    assert thumbprint(flipped) == thumbprint(upright)


@pytest.mark.parametrize("form", ["rgb4", "gray32le"])
def test_a_format_that_cannot_be_read_is_refused_by_name(form):
    """B60."""
    with pytest.raises(ImageError, match=f"pixel format '{form}'"):
        thumbprint(av.VideoFrame(64, 64, form))


def test_an_empty_frame_has_no_thumbprint():
    with pytest.raises(ImageError, match="a frame with a size"):
        thumbprint(av.VideoFrame())
