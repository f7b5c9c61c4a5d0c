"""An H.264 key frame says how finely it is quantized (ITU-T H.264, section 7.3), whatever stands before it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from aiortc.codecs.h264 import H264Encoder
from hypothesis import given
from hypothesis import strategies as st

from realtime.tracks.h264_header import COARSE, FINE, key_grade, key_quantizer

HIGH, BASELINE = 100, 66


def encoded(profile: str, quantizer: int, more: str = "") -> list[bytes]:
    """The NAL units of a key frame."""
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 176, 144, "yuv420p", Fraction(1, 30)
    encoder.options = {
        "preset": "superfast",
        "tune": "zerolatency",
        "profile": profile,
        "qp": str(quantizer),
        "x264-params": f"ipratio=1.0:threads=1{more}",
    }
    noise = np.random.default_rng(1).integers(16, 235, (216, 176), dtype=np.uint8)
    frame = av.VideoFrame.from_ndarray(noise, format="yuv420p")
    frame.pts = 0
    [packet] = encoder.encode(frame)
    return list(H264Encoder._split_bitstream(bytes(packet)))


def payloads(units: Iterable[bytes]) -> list[bytes]:
    return H264Encoder._packetize(units)


@pytest.mark.parametrize("quantizer", [10, 26, 45])
@pytest.mark.parametrize(
    "more", ["", ":slices=3", ":interlaced=1", ":cqm=jvt", ":force-cfr=1:nal-hrd=vbr:vbv-maxrate=900:vbv-bufsize=900"]
)
@pytest.mark.parametrize("profile", ["baseline", "main", "high"])
def test_the_encoders_quantizer_is_read(profile, more, quantizer):
    if profile == "baseline" and "interlaced" in more:
        profile = "high444"  # which codes no planes apart in 4:2:0
    if "cqm" in more:
        profile = "high"
    assert key_quantizer(payloads(encoded(profile, quantizer, more))) == quantizer


def test_of_slices_the_coarsest_counts_each_by_the_parameters_before_it():
    fine, coarse = encoded("baseline", 12), encoded("baseline", 33)
    assert key_quantizer(payloads(fine + coarse)) == 33
    assert key_quantizer(payloads(coarse + fine)) == 33


def test_without_its_parameters_nothing_is_known():
    units = encoded("baseline", 20)
    for kind in (5, 7, 8):
        assert key_quantizer(payloads(unit for unit in units if unit[0] & 0x1F != kind)) is None


class Writer:
    """Bits, and numbers in the way of H.264."""

    def __init__(self) -> None:
        self.bits = ""

    def number(self, value: int, bits: int) -> None:
        self.bits += f"{value:0{bits}b}"[-bits:]

    def unsigned(self, value: int) -> None:
        code = f"{value + 1:b}"
        self.bits += "0" * (len(code) - 1) + code

    def signed(self, value: int) -> None:
        self.unsigned(2 * value - 1 if value > 0 else -2 * value)

    def unit(self, head: int) -> bytes:
        """With what keeps a start code from being in it."""
        bits = self.bits + "1" + "0" * (-(len(self.bits) + 1) % 8)
        content, zeros = bytearray(), 0
        for byte in int(bits, 2).to_bytes(len(bits) // 8, "big"):
            if zeros == 2 and byte <= 3:
                content.append(3)
                zeros = 0
            content.append(byte)
            zeros = 0 if byte else zeros + 1
        return bytes([head, *content])


@st.composite
def key_frames(draw: Any) -> tuple[list[bytes], int]:
    """Parameter sets and a slice of whatever may be in them, and its quantizer."""

    def number(most: int, least: int = 0) -> int:
        return int(draw(st.integers(least, most)))

    profile = draw(st.sampled_from([BASELINE, 77, HIGH, 244]))
    sequence, picture = number(31), number(255)
    sps = Writer()
    sps.number(profile, 8)
    sps.number(number(65_535), 16)
    sps.unsigned(sequence)
    are_planes_apart = False
    if profile in (HIGH, 244):
        chroma = number(3)
        sps.unsigned(chroma)
        if chroma == 3:
            are_planes_apart = draw(st.booleans())
            sps.number(are_planes_apart, 1)
        sps.unsigned(0)
        sps.unsigned(0)
        sps.number(number(1), 1)
        has_lists = draw(st.booleans())
        sps.number(has_lists, 1)
        for at in range(12 if chroma == 3 else 8) if has_lists else ():
            has_list = draw(st.booleans())
            sps.number(has_list, 1)
            last = 8
            for index in range(16 if at < 6 else 64) if has_list else ():
                ends = index == number(5)
                following = 0 if ends else number(255, 1)
                sps.signed((following - last + 128) % 256 - 128)
                last = following
                if ends:
                    break
    frame_number_bits = number(16, 4)
    sps.unsigned(frame_number_bits - 4)
    order_type = number(2)
    sps.unsigned(order_type)
    order_bits, has_deltas = number(16, 4), draw(st.booleans())
    if order_type == 0:
        sps.unsigned(order_bits - 4)
    elif order_type == 1:
        sps.number(not has_deltas, 1)
        for value in (number(50, -50), number(50, -50)):
            sps.signed(value)
        offsets = number(3)
        sps.unsigned(offsets)
        for _ in range(offsets):
            sps.signed(number(900, -900))
    sps.unsigned(number(16))
    sps.number(number(1), 1)
    sps.unsigned(number(300))
    sps.unsigned(number(300))
    has_fields = draw(st.booleans())
    sps.number(not has_fields, 1)
    sps.number(number(255), 8)

    has_bottom, has_redundant, first = draw(st.booleans()), draw(st.booleans()), number(51)
    pps = Writer()
    pps.unsigned(picture)
    pps.unsigned(sequence)
    pps.number(number(1), 1)
    pps.number(has_bottom, 1)
    pps.unsigned(0)
    pps.unsigned(number(31))
    pps.unsigned(number(31))
    pps.number(number(7), 3)
    pps.signed(first - 26)
    for value in (number(25, -26), number(12, -12)):
        pps.signed(value)
    pps.number(number(3), 2)
    pps.number(has_redundant, 1)

    quantizer, is_referred_to = number(51), draw(st.booleans())
    head = Writer()
    head.unsigned(number(10_000))
    head.unsigned(draw(st.sampled_from([2, 7])))
    head.unsigned(picture)
    if are_planes_apart:
        head.number(number(2), 2)
    head.number(number(65_535), frame_number_bits)
    is_field = has_fields and draw(st.booleans())
    if has_fields:
        head.number(is_field, 1)
        if is_field:
            head.number(number(1), 1)
    head.unsigned(number(65_535))
    if order_type == 0:
        head.number(number(65_535), order_bits)
    deltas = (order_type == 0 and has_bottom and not is_field) + (order_type == 1 and has_deltas) * (
        1 + (has_bottom and not is_field)
    )
    for _ in range(deltas):
        head.signed(number(900, -900))
    if has_redundant:
        head.unsigned(number(127))
    if is_referred_to:
        head.number(number(3), 2)
    head.signed(quantizer - first)
    head.number(number(255), 8)
    return [sps.unit(0x67), pps.unit(0x68), head.unit(0x65 if is_referred_to else 0x05)], quantizer


@given(key_frames())
def test_whatever_may_stand_before_it_is_passed_over(made):
    units, quantizer = made
    assert key_quantizer(payloads(units)) == quantizer
    assert key_quantizer(units) == quantizer  # each in a packet of its own


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_anything_may_come(made):
    quantizer = key_quantizer(made)
    assert quantizer is None or 0 <= quantizer <= 51


@given(key_frames(), st.data())
def test_a_damaged_frame_may_come(made, data):
    units = [bytearray(unit) for unit in made[0]]
    for unit in units:
        unit[data.draw(st.integers(0, len(unit) - 1))] ^= data.draw(st.integers(0, 255))
        del unit[data.draw(st.integers(1, len(unit))) :]
    quantizer = key_quantizer([bytes(unit) for unit in units])
    assert quantizer is None or 0 <= quantizer <= 51


def test_more_units_than_a_frame_has_are_not_read():
    assert key_quantizer([*payloads(encoded("baseline", 20)), *[b"\x09\x10"] * 100]) is None


def test_an_empty_unit_ends_the_reading():
    """Two bytes each: a frame has room for millions of them, and they are looked through on the event loop."""
    units = payloads(encoded("baseline", 20))
    assert key_quantizer([b"\x78" + b"\0\0" * 3, *units]) is None


def test_of_parameter_sets_no_more_are_read_than_frames_have():
    """The scaling lists of one take a third of a millisecond."""
    units = encoded("high", 20, ":cqm=jvt")
    [sequence] = [unit for unit in units if unit[0] & 0x1F == 7]
    assert key_quantizer([sequence, *units]) == 20
    assert key_quantizer([sequence] * 10 + units) is None


def test_a_fine_key_frame_is_told_from_a_coarse_one():
    assert key_grade(payloads(encoded("baseline", FINE))) == "fine"
    assert key_grade(payloads(encoded("baseline", FINE + 1))) == "fair"
    assert key_grade(payloads(encoded("baseline", COARSE - 1))) == "fair"
    assert key_grade(payloads(encoded("baseline", COARSE))) == "coarse"
    assert key_grade([]) == "fair"
