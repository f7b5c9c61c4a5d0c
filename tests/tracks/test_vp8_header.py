"""A key frame says how finely it is quantized and how strongly it is filtered (RFC 6386); its payloads say what of them it is (RFC 7741)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from aiortc.codecs.vpx import vp8_depayload
from hypothesis import given
from hypothesis import strategies as st

from realtime.tracks.vp8_header import (
    COARSEST,
    FAINT,
    FINE,
    KeyHeader,
    frame_of,
    is_faintly_filtered,
    key_grade,
    key_header,
)

HEAD = bytes([0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 64, 0, 64, 0])


def encoded(quantizer: int) -> list[bytes]:
    """A key frame and another one, of a quantizer on libvpx's scale of 0–63."""
    encoder: Any = av.CodecContext.create("libvpx", "w")
    encoder.width = encoder.height = 128
    encoder.pix_fmt, encoder.time_base = "yuv420p", Fraction(1, 30)
    encoder.qmin, encoder.qmax, encoder.bit_rate = quantizer, quantizer, 1_000_000
    encoder.options = {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0"}
    noise = np.random.default_rng(1).integers(16, 235, (2, 192, 128), dtype=np.uint8)
    packets: list[bytes] = []
    for index in range(2):
        frame = av.VideoFrame.from_ndarray(noise[index], format="yuv420p")
        frame.pts = index
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


@pytest.mark.parametrize(("quantizer", "index"), [(2, 2), (10, 12), (20, 25), (31, 41), (42, 64), (63, 127)])
def test_the_encoders_quantizer_is_read(quantizer, index):
    """libvpx spreads its scale of 0–63 over the indices."""
    key, other = encoded(quantizer)
    assert key_header(key).quantizer == index
    assert key_header(key[:50]) == key_header(key)
    assert key_header(key).pixels == 128 * 128
    assert key_header(other) == KeyHeader(COARSEST, 63, 0)


class Writer:
    """The boolean encoder of RFC 6386, section 7.3, for bits that are as likely 0 as 1."""

    def __init__(self) -> None:
        self.low, self.range, self.bits = 0, 255, 0

    def flag(self, bit: int) -> None:
        split = 1 + ((self.range - 1) * 128 >> 8)
        if bit:
            self.low += split
            self.range -= split
        else:
            self.range = split
        while self.range < 128:
            self.range <<= 1
            self.low <<= 1
            self.bits += 1

    def number(self, value: int, bits: int) -> None:
        for at in reversed(range(bits)):
            self.flag(value >> at & 1)

    def optional(self, value: int | None, bits: int) -> None:
        self.flag(value is not None)
        if value is not None:
            self.number(abs(value), bits)
            self.flag(value < 0)

    def data(self) -> bytes:
        padding = -(self.bits + 8) % 8 + 8
        return (self.low << padding).to_bytes((self.bits + 8 + padding) // 8, "big")


def header(
    index: int,
    *,
    level: int = 21,
    segments: list[int | None] | None = None,
    levels: tuple[int | None, ...] = (-5, -5, -5, -5),
    is_absolute: bool = False,
    has_map: bool = False,
    deltas: bool = False,
) -> bytes:
    writer = Writer()
    writer.number(0, 2)
    writer.flag(segments is not None or has_map)
    if segments is not None or has_map:
        writer.flag(has_map)
        writer.flag(segments is not None)
        if segments is not None:
            writer.flag(is_absolute)
            for value in segments:
                writer.optional(value, 7)
            for value in levels:
                writer.optional(value, 6)
        if has_map:
            for probability in (None, 7, 200):
                writer.flag(probability is not None)
                if probability is not None:
                    writer.number(probability, 8)
    writer.number(1, 1)
    writer.number(level, 6)
    writer.number(0b011, 3)
    writer.flag(deltas)
    if deltas:
        writer.flag(1)
        for value in (None, 3, -4, None, 63, None, -1, 0):
            writer.optional(value, 6)
    writer.number(2, 2)
    writer.number(index, 7)
    writer.number(0x5A5A, 16)
    return HEAD + writer.data()


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("has_map", [False, True])
@pytest.mark.parametrize(("index", "level"), [(0, 63), (17, 1), (90, 0), (127, 40)])
def test_what_stands_before_it_may_be_there_or_not(index, level, has_map, deltas):
    assert key_header(header(index, level=level, has_map=has_map, deltas=deltas)) == KeyHeader(index, level, 64 * 64)


@pytest.mark.parametrize(
    ("segments", "is_absolute", "coarsest"),
    [
        ([3, None, 40, 9], True, 40),
        ([-3, 12, None, -20], False, 42),
        ([-5, -6, -7, -8], False, 25),
        ([99] * 4, False, 127),
    ],
)
def test_of_segments_the_coarsest_counts(segments, is_absolute, coarsest):
    assert key_header(header(30, segments=segments, is_absolute=is_absolute, has_map=True)).quantizer == coarsest


@pytest.mark.parametrize(
    ("level", "levels", "is_absolute", "strongest"),
    [
        (21, (3, None, 40, 9), True, 40),
        (21, (-3, 12, None, -20), False, 33),
        (21, (-5, -6, -7, -8), False, 16),
        (21, (63,) * 4, False, 63),
        (1, (-9,) * 4, False, 0),
        (0, (40,) * 4, True, 0),  # which is how a frame says that it has none at all
    ],
)
def test_of_segments_the_most_strongly_filtered_counts(level, levels, is_absolute, strongest):
    made = header(30, level=level, segments=[0, 0, 0, 0], levels=levels, is_absolute=is_absolute, has_map=True)
    assert key_header(made).filter_level == strongest


@given(st.binary(max_size=120))
def test_anything_may_come(frame):
    quantizer, level, pixels = key_header(frame)
    assert 0 <= quantizer <= COARSEST
    assert 0 <= level <= 63
    assert 0 <= pixels < 1 << 28


def test_a_fine_key_frame_is_told_from_a_coarse_one():
    assert key_grade([b"\x10" + header(FINE)]) == "fine"
    assert key_grade([b"\x10" + header(FINE + 1)]) == "fair"


def test_a_faintly_filtered_key_frame_is_told_from_others():
    rich = bytes(64 * 64 // 24)
    faint, stronger = (b"\x10" + header(FINE, level=level) for level in (FAINT, FAINT + 1))
    assert is_faintly_filtered([faint, rich])
    assert not is_faintly_filtered([faint, rich[:-50]])  # smooth: there it shows
    assert not is_faintly_filtered([stronger, rich])
    assert not is_faintly_filtered([faint[:1] + b"\x11" + faint[2:], rich])  # no key frame


@given(st.binary(max_size=30))
def test_any_payload_may_come(payload):
    assert key_grade([payload]) in ("fine", "fair")
    assert is_faintly_filtered([payload, payload]) in (True, False)


def _or_refused(read: Any, payload: bytes) -> bytes | None:
    try:
        return bytes(read(payload))
    except ValueError:
        return None


@given(st.lists(st.integers(0, 255), max_size=7), st.binary(max_size=3))
def test_a_frame_is_taken_out_of_its_payloads_as_aiortc_does_it(descriptor, rest):
    payload = bytes(descriptor) + rest
    assert _or_refused(lambda each: frame_of([each]), payload) == _or_refused(vp8_depayload, payload)


@pytest.mark.parametrize("first", range(256))
def test_every_form_of_a_descriptor_is_read_as_aiortc_does_it(first):
    for extension in range(0, 256, 8):
        for size in range(8):
            payload = bytes([first, extension, 0x80 | size, 1, 2, 3, 4, 5])[:size]
            assert _or_refused(lambda each: frame_of([each]), payload) == _or_refused(vp8_depayload, payload)


def test_a_frame_is_its_payloads_in_order():
    assert frame_of([b"\x10ab", b"\x80\x80\x07cd", b"\x00e"]) == b"abcde"
    with pytest.raises(ValueError, match="descriptor"):
        frame_of([b"\x10ab", b""])
