"""Frames and raw audio to a model's PCM16 (behaviour.md A1–A3)."""

import struct
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ArgumentError
from realtime.media.audio import AudioConverter, PcmConverter, Timeline

FULL_SCALE = {"u8": 128, "s16": 2**15, "s32": 2**31, "s64": 2**63, "flt": 1, "dbl": 1}
DTYPES = {"u8": np.uint8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "flt": np.float32, "dbl": np.float64}


def make_frame(
    channels: np.ndarray, form: str = "s16", rate: int = 48_000, pts: int | None = None, align: int = 0
) -> av.AudioFrame:
    """A frame of values −1..1, shape (channels, samples), with padding after each plane."""
    layout = {1: "mono", 2: "stereo", 3: "2.1", 6: "5.1"}[len(channels)]
    kind = form.removesuffix("p")
    scaled = np.asarray(channels, np.float64) * FULL_SCALE[kind]
    if kind not in {"flt", "dbl"}:
        offset = 128 if kind == "u8" else 0
        top = (FULL_SCALE[kind] - (1024 if kind == "s64" else 1)) if kind != "u8" else 255
        scaled = np.clip(np.rint(scaled) + offset, 0 if kind == "u8" else -FULL_SCALE[kind], top)
    values = scaled.astype(DTYPES[kind])
    frame = av.AudioFrame(form, layout, channels.shape[1], align)
    rows = list(values) if form.endswith("p") else [values.T.ravel()]
    for plane, row in zip(frame.planes, rows, strict=True):
        raw = row.tobytes()
        plane.update(raw + b"\x55" * (plane.buffer_size - len(raw)))
    frame.sample_rate = rate
    if pts is not None:
        frame.pts, frame.time_base = pts, Fraction(1, rate)
    return frame


def constant(*levels: int, samples: int = 960) -> np.ndarray:
    return np.repeat(np.array(levels, float)[:, None] / 2**15, samples, 1)


def pcm(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2").astype(int)


# -- A1: format, layout, rate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [kind + planar for kind in FULL_SCALE for planar in ("", "p")])
@pytest.mark.parametrize("layout", [1, 2, 3, 6])
@pytest.mark.parametrize("samples", [1, 160, 882, 960, 1000])
def test_every_sample_format_and_layout_is_read_without_its_padding(form, layout, samples):
    """A1, B50, B53: bytes are samples × 2, never the plane's padding."""
    levels = [1000 * (index + 1) for index in range(layout)]
    got = pcm(AudioConverter(48_000).convert(make_frame(constant(*levels, samples=samples), form)))
    assert len(got) == samples
    tolerance = 257 if form.startswith("u8") else 1
    assert np.abs(got - sum(levels) / layout).max() <= tolerance


@pytest.mark.parametrize("form", ["s16", "s16p", "fltp"])
@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (1000, 3000, 2000),
        (30_000, 30_000, 30_000),
        (-32_768, -32_768, -32_768),
        (32_000, 0, 16_000),
        (0, -32_000, -16_000),
        (20_000, -20_000, 0),
    ],
)
def test_stereo_is_mixed_though_the_rate_matches_and_never_wraps(form, left, right, wanted):
    """A1, B50: 20 ms in, 20 ms out."""
    got = pcm(AudioConverter(48_000).convert(make_frame(constant(left, right), form)))
    assert len(got) == 960
    assert set(got) == {wanted}


def test_floats_beyond_full_scale_are_clipped_and_no_number_is_silence():
    channels = np.array([[2.0, -2.0, np.nan, np.inf, 0.5]])
    frame = av.AudioFrame("flt", "mono", 5)
    frame.planes[0].update(channels.astype(np.float32).tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
    frame.sample_rate = 24_000
    assert list(pcm(AudioConverter(24_000).convert(frame))) == [32_767, -32_768, 0, 32_767, 16_384]


@pytest.mark.parametrize("value", [3e38, -3e38, np.inf, np.nan])
@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1"])
def test_floats_that_would_overflow_leave_the_stream_as_it_was(value, layout):
    """A1: one broken frame is heard as a click at most, and the next ones are right."""
    converter = AudioConverter(24_000)
    quiet, broken = (av.AudioFrame("flt", layout, 960) for _ in range(2))
    for frame, level in ((quiet, 0.25), (broken, value)):
        frame.sample_rate = 48_000
        frame.planes[0].update(np.full(frame.planes[0].buffer_size // 4, level, np.float32).tobytes())
    out = pcm(b"".join(converter.convert(frame) for frame in (quiet, broken, quiet, quiet)) + converter.flush())
    assert len(out) == 4 * 480
    assert set(out[-480 - 48 : -48]) == {8192}


def test_a_frame_without_samples_is_nothing():
    frame = av.AudioFrame("s16", "mono", 0)
    frame.sample_rate = 48_000
    assert AudioConverter(24_000).convert(frame) == b""


@pytest.mark.parametrize("chunk", [1, 7, 160, 441, 480, 960])
@pytest.mark.parametrize(
    "rates", [(48_000, 24_000), (48_000, 16_000), (8_000, 24_000), (44_100, 16_000), (16_000, 24_000)]
)
def test_frames_of_any_size_convert_like_one(rates, chunk):
    """A1, B51: one stateful converter per stream."""
    source, target = rates
    wave = 0.5 * np.sin(2 * np.pi * 440 * np.arange(source // 4) / source)[None, :]
    one = AudioConverter(target)
    whole = pcm(one.convert(make_frame(wave, rate=source)) + one.flush())
    many = AudioConverter(target)
    parts = b"".join(
        many.convert(make_frame(wave[:, at : at + chunk], rate=source, pts=at)) for at in range(0, wave.shape[1], chunk)
    )
    pieces = pcm(parts + many.flush())
    assert len(pieces) == len(whole) == pytest.approx(target / 4, abs=1)
    assert np.abs(pieces - whole).max() <= 1
    ideal = 0.5 * 2**15 * 2 * np.pi * 440 / target
    assert np.abs(np.diff(pieces[100:-100])).max() < ideal * 1.02 + 2
    assert np.sqrt(np.mean(pieces[100:-100] ** 2.0)) == pytest.approx(0.5 * 2**15 / np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("change", ["rate", "layout", "format", "all"])
def test_a_change_in_mid_stream_loses_no_time_and_no_level(change):
    """A1, I5: what is held of the old kind comes first."""
    converter = AudioConverter(24_000)
    got = b""
    for index in range(40):
        other = index // 10 % 2
        rate = 16_000 if other and change in {"rate", "all"} else 48_000
        channels = 2 if other and change in {"layout", "all"} else 1
        form = "fltp" if other and change in {"format", "all"} else "s16"
        levels = [5000] if channels == 1 else [4000, 6000]
        got += converter.convert(make_frame(constant(*levels, samples=rate // 50), form, rate))
    values = pcm(got + converter.flush())
    assert abs(len(values) - 24_000 * 0.8) <= 24
    # Each new stream rises from silence within the filter's millisecond; between them the level stands.
    assert (np.abs(values - 5000) > 100).sum() <= 4 * 2 * 24


def test_push_after_flush_starts_a_new_stream():
    """A1."""
    converter = AudioConverter(16_000)
    wave = np.sin(np.arange(4800) / 9)[None, :] * 0.3
    first = converter.convert(make_frame(wave, pts=0)) + converter.flush()
    assert converter.flush() == b""
    second = converter.convert(make_frame(wave, pts=9_999_999)) + converter.flush()
    assert first == second
    assert len(first) == 2 * 1600
    assert converter.samples_out == 3200
    assert converter.position_ms == 200


@pytest.mark.parametrize("rate", [0, "24000", 24_000.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ArgumentError, match="rate_hz must be a sample rate"):
        AudioConverter(rate)


def test_a_frame_whose_rate_was_never_set_is_refused_by_name():
    frame = av.AudioFrame("s16", "mono", 10)
    with pytest.raises(ArgumentError, match=r"frame\.sample_rate must be a sample rate"):
        AudioConverter(24_000).convert(frame)


# -- A3: holes, late frames, new timelines -----------------------------------------------------------------------------


def played(converter: AudioConverter, pts: list[int | None], level: int = 8000, rate: int = 48_000) -> np.ndarray:
    """Convert 20 ms frames of a level at these time stamps, in samples."""
    data = b"".join(
        converter.convert(make_frame(constant(level, samples=rate // 50), rate=rate, pts=stamp)) for stamp in pts
    )
    return pcm(data + converter.flush())


@pytest.mark.parametrize("target", [48_000, 24_000, 16_000])
@pytest.mark.parametrize("lost", [1, 3, 40, 2000])
def test_lost_packets_are_silence_of_their_length(target, lost):
    """A3, B57: time is kept, whatever the arrival."""
    converter = AudioConverter(target)
    got = played(converter, [0, 960, 1920, (3 + lost) * 960, (4 + lost) * 960])
    assert len(got) == pytest.approx((5 + lost) * target // 50, abs=1)
    quiet = got[3 * target // 50 + target // 500 : (3 + lost) * target // 50 - target // 500]
    assert not quiet.any()
    assert np.abs(got[(3 + lost) * target // 50 + target // 200 : -target // 200] - 8000).max() < 20
    assert converter.filled_samples == lost * 960


def test_a_sender_that_stops_in_silence_keeps_its_time():
    """A3: DTX, one packet every 400 ms, for a minute."""
    converter = AudioConverter(24_000)
    got = played(converter, [index * 19_200 for index in range(150)])
    assert len(got) == pytest.approx(149 * 9600 + 480, abs=1)


def test_a_burst_after_a_stall_changes_nothing():
    """A3, B57: positions come from pts, so late arrival is no hole."""
    stamps: list[int | None] = [index * 960 for index in range(500)]
    assert len(played(AudioConverter(24_000), stamps)) == pytest.approx(500 * 480, abs=1)


def test_a_frame_whose_place_was_filled_comes_too_late():
    """A3, B57: silence is not put in and the late frame added too."""
    converter = AudioConverter(48_000)
    got = played(converter, [0, 960, 3840, 1920, 2880, 4800])
    assert len(got) == 6 * 960
    assert converter.late_samples == 2 * 960
    assert not got[1920:3840].any()


def test_a_late_frame_is_not_played_beside_what_stands_in_its_place():
    converter = AudioConverter(48_000)
    got = played(converter, [0, 2400, 1920, 3360])
    assert len(got) == 3360 + 960
    assert converter.late_samples == 960


def test_a_late_frame_that_reaches_beyond_what_was_played_gives_its_rest():
    converter = AudioConverter(48_000)
    data = b"".join(
        converter.convert(make_frame(constant(100, samples=samples), pts=pts))
        for pts, samples in ((0, 960), (1920, 480), (1440, 1920), (3360, 960))
    )
    assert len(data) // 2 == 4320
    assert converter.late_samples == 960


def test_time_stamps_in_milliseconds_leave_no_holes():
    """A3: 22.05 kHz in frames of 20 ms and a time base of 1/1000."""
    converter = AudioConverter(22_050)
    total = 0
    for index in range(1000):
        frame = make_frame(constant(100, samples=512), rate=22_050)
        frame.pts, frame.time_base = index * 512 * 1000 // 22_050, Fraction(1, 1000)
        total += len(converter.convert(frame)) // 2
    assert total == 512_000
    assert converter.filled_samples == 0


@pytest.mark.parametrize(
    "stamps",
    [
        [None] * 6,
        [0] * 6,
        [0, 960, None, None, 3840, 4800],
        [5_000_000, 5_000_960, 0, 960, 1920, 2880],
        [0, 960, 48_000 * 61, 48_000 * 61 + 960, 48_000 * 61 + 1920, 48_000 * 61 + 2880],
        [0, 960, 2**40, 2**40 + 960, 0, 960],
    ],
)
def test_tracks_without_stamps_and_new_timelines_lose_nothing_and_add_nothing(stamps):
    """A3, I5: a jump back, or beyond a minute, is another stream."""
    converter = AudioConverter(48_000)
    assert len(played(converter, stamps)) == 6 * 960
    assert (converter.filled_samples, converter.late_samples) == (0, 0)


def test_holes_may_be_left_as_they_are():
    converter = AudioConverter(48_000, max_gap_seconds=0)
    assert len(played(converter, [0, 9600])) == 2 * 960


@pytest.mark.parametrize(("passed", "silence"), [(0.0, 1.0), (0.5, 1.5), (3.0, 4.0), (30.0, 5.0)])
@pytest.mark.parametrize("target", [48_000, 24_000])
def test_no_more_silence_is_made_than_time_has_passed(passed, silence, target):
    """A3: a sender whose time stamps outrun the clock is not followed, but for a second."""
    now = [100.0]
    converter = AudioConverter(target, now=lambda: now[0])
    wave = constant(100)
    data = converter.convert(make_frame(wave, pts=0))
    now[0] += passed
    data += converter.convert(make_frame(wave, pts=960 + 48_000 * 5)) + converter.flush()
    assert len(data) // 2 == pytest.approx((0.04 + silence) * target, abs=2)
    assert converter.filled_samples == silence * 48_000
    assert converter.skipped_samples == 48_000 * 5 - converter.filled_samples


def test_time_that_sound_filled_is_not_kept_for_silence():
    """A sender that spoke for a minute may not make a minute of silence after it."""
    now = [0.0]
    converter = AudioConverter(48_000, now=lambda: now[0])
    for step in range(200):
        converter.convert(make_frame(constant(100), pts=step * 960))
        now[0] += 0.02
    converter.convert(make_frame(constant(100), pts=200 * 960 + 48_000 * 5))
    assert converter.filled_samples <= 48_000 * 1.1


def test_hours_of_silence_cannot_be_made_in_minutes():
    now = [0.0]
    converter = AudioConverter(16_000, now=lambda: now[0])
    for step in range(100):
        converter.convert(make_frame(constant(100), pts=step * 48_000 * 5))
        now[0] += 0.02
    assert converter.filled_samples <= 48_000 * 3


@pytest.mark.parametrize("seconds", [-1, 3601, "60", None, True, float("nan")])
def test_a_longest_hole_that_cannot_be_is_refused(seconds):
    with pytest.raises(ArgumentError, match="max_gap_seconds must be a number of 0 to 3600"):
        AudioConverter(48_000, max_gap_seconds=seconds)


def test_silence_in_a_long_hole_is_the_same_as_pushed_silence():
    """The way past the filter is the same to the sample."""
    wave = np.sin(np.arange(960) / 7)[None, :] * 0.5
    short = AudioConverter(16_000)
    skipped = short.convert(make_frame(wave, pts=0)) + short.convert(make_frame(wave, pts=960 + 44_101)) + short.flush()
    pushed = AudioConverter(16_000, max_gap_seconds=0)
    plain = pushed.convert(make_frame(wave))
    plain += b"".join(pushed.convert(make_frame(np.zeros((1, size)))) for size in (44_100, 1))
    plain += pushed.convert(make_frame(wave)) + pushed.flush()
    assert np.abs(pcm(skipped) - pcm(plain)).max() <= 1


@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 100_000)), max_size=20),
    st.sampled_from([48_000, 24_000, 16_000, 22_050]),
)
def test_the_output_is_as_long_as_the_time_stamps_say(pieces, target):
    """A3: any run of frames and holes, to a millisecond."""
    converter = AudioConverter(target)
    position, total = 0, 0
    for samples, hole in pieces:
        # Less than five milliseconds is rounding; before the first frame there is no hole.
        position += hole if hole > 240 and position else 0
        total += len(converter.convert(make_frame(constant(50, samples=samples), pts=position)))
        position += samples
    total += len(converter.flush())
    assert abs(total / 2 - position * target / 48_000) <= max(1, target // 1000)


def test_a_timeline_starts_where_its_first_frame_says():
    timeline = Timeline(10.0)
    assert timeline.place(100.0, 960, 48_000) == (0, 0)
    assert timeline.place(100.04, 960, 48_000) == (960, 0)
    timeline.restart()
    assert timeline.place(5.0, 960, 48_000) == (0, 0)


# -- raw PCM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3, 33, 160, 4095])
@pytest.mark.parametrize("rates", [(24_000, 16_000), (16_000, 24_000), (8_000, 24_000), (24_000, 24_000)])
def test_raw_chunks_of_any_length_in_bytes_convert_like_one(rates, chunk):
    """A1, A2, B51, B55: odd bytes are carried."""
    source, target = rates
    data = (8000 * np.sin(np.arange(source // 5) / 11)).astype("<i2").tobytes()
    one = PcmConverter(source, target)
    whole = one.convert(data) + one.flush()
    many = PcmConverter(source, target)
    pieces = b"".join(many.convert(data[at : at + chunk]) for at in range(0, len(data), chunk)) + many.flush()
    assert len(pieces) == len(whole) == target // 5 * 2
    assert np.abs(pcm(pieces) - pcm(whole)).max() <= 1


def test_an_odd_byte_at_the_end_is_dropped_and_not_carried_into_the_next_stream():
    """A2, B55."""
    converter = PcmConverter(24_000, 24_000)
    assert converter.convert(b"\1\2\3") == b"\1\2"
    assert converter.flush() == b""
    assert converter.convert(struct.pack("<h", 77)) == struct.pack("<h", 77)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind):
    assert PcmConverter(8_000, 8_000).convert(kind(b"\1\2")) == b"\1\2"


def test_loud_raw_audio_is_clipped_not_wrapped():
    square = np.where(np.arange(2400) // 60 % 2, 32_767, -32_768).astype("<i2")
    converter = PcmConverter(24_000, 48_000)
    got = pcm(converter.convert(square.tobytes()) + converter.flush())
    expected = np.repeat(square, 2)
    settled = np.abs(np.arange(len(got)) % 120 - 60) < 30
    assert (np.sign(got[settled]) == np.sign(expected[settled])).all()
