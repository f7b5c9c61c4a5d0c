"""What an H.264 key frame says of itself before it is decoded: how finely it is quantized.

Owns: `key_grade` and `key_quantizer`, which read as much of parameter sets and slice headers as lies before the quantizer (ITU-T
H.264, sections 7.3.2.1, 7.3.2.2 and 7.3.3) out of RTP payloads (RFC 6184). Driven by `sampled_decode`, once for a key frame. It decodes no pixel and
takes anything for a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

__all__ = ["COARSE", "FINE", "key_grade", "key_quantizer"]

FINE = 26
"""A key frame that is quantized no coarser is as good a picture as those after it (docs/frame-cost.md)."""
COARSE = 35
"""One that is quantized no finer is a poor picture, and so are those of the next second."""

_COARSEST = 51
_IDR, _SPS, _PPS, _STAP_A, _FU_A = 5, 7, 8, 24, 28
_NAL_TYPE = 0x1F
_LONGEST = 400
"""No header up to the quantizer takes as many bytes: most of them are scaling lists."""
_MOST_OFFSETS = 255
_MOST_UNITS = 64
"""A frame has no more slices and parameter sets, or is none that we know …"""
_MOST_SETS = 4
"""… nor more sets of a sequence's parameters. One with scaling lists takes a third of a millisecond of the event loop."""
_WITH_CHROMA_FORMAT = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})
"""Profiles whose parameters say more."""
_INTRA_SLICES = (2, 7)


class _Sequence(NamedTuple):
    """Of a sequence's parameters, what a slice header is read by."""

    has_planes_apart: bool
    frame_number_bits: int
    order_type: int
    order_bits: int
    has_order_deltas: bool
    has_fields: bool


class _Picture(NamedTuple):
    """Of a picture's parameters, what a slice header is read by."""

    sequence: int
    has_bottom_order: bool
    quantizer: int
    has_redundant: bool


class _Bits:
    """Bits and the numbers that H.264 writes with them (section 9.1)."""

    __slots__ = ("_left", "_value")

    def __init__(self, unit: bytes) -> None:
        """Begin behind the header of a NAL unit."""
        content = unit[1:_LONGEST].replace(b"\0\0\3", b"\0\0")
        self._value = int.from_bytes(content, "big")
        self._left = 8 * len(content)

    def number(self, bits: int) -> int:
        self._left -= bits
        if self._left < 0:
            raise ValueError("a header ends too soon")
        return self._value >> self._left & (1 << bits) - 1

    def flag(self) -> bool:
        return self.number(1) == 1

    def unsigned(self) -> int:
        zeros = self._left - (self._value & (1 << self._left) - 1).bit_length()
        if zeros > 31:
            raise ValueError("a number is too large")
        self.number(zeros)
        return self.number(zeros + 1) - 1

    def signed(self) -> int:
        value = self.unsigned()
        return (value + 1) // 2 if value % 2 else -value // 2


def key_grade(payloads: Sequence[bytes]) -> Literal["fine", "fair", "coarse"]:
    """How good a picture a key frame says that it is; fair, if it does not say.

    Args:
        payloads: Its RTP payloads, parameter sets and all.
    """
    quantizer = key_quantizer(payloads)
    if quantizer is None:
        return "fair"
    return "fine" if quantizer <= FINE else "coarse" if quantizer >= COARSE else "fair"


def key_quantizer(payloads: Sequence[bytes]) -> int | None:
    """The quantizer that a key frame's slices begin with, 0–51; the coarsest. None: it has none, or not all that it is read by.

    Args:
        payloads: Its RTP payloads, parameter sets and all.
    """
    sequences: dict[int, _Sequence] = {}
    pictures: dict[int, _Picture] = {}
    coarsest: int | None = None
    sets = 0
    try:
        for number, unit in enumerate(_units(payloads)):
            kind = unit[0] & _NAL_TYPE
            if number == _MOST_UNITS:
                return None
            if kind == _SPS:
                sets += 1
                if sets > _MOST_SETS:
                    return None
                name, sequence = _read_sequence(_Bits(unit))
                sequences[name] = sequence
            elif kind == _PPS:
                name, picture = _read_picture(_Bits(unit))
                pictures[name] = picture
            elif kind == _IDR:
                coarsest = max(coarsest or 0, _slice_quantizer(unit, sequences, pictures))
    except (ValueError, LookupError):
        return None
    return coarsest


def _units(payloads: Sequence[bytes]) -> Iterator[bytes]:
    """The beginning of each NAL unit; an empty one is none that can be read."""
    for payload in payloads:
        kind = payload[0] & _NAL_TYPE
        if kind == _FU_A:
            if payload[1] & 0x80:
                yield bytes([payload[0] & 0xE0 | payload[1] & _NAL_TYPE]) + payload[2:_LONGEST]
        elif kind == _STAP_A:
            at = 1
            while at + 2 < len(payload):
                end = at + 2 + int.from_bytes(payload[at : at + 2], "big")
                yield payload[at + 2 : end]
                at = end
        else:
            yield payload


def _read_sequence(bits: _Bits) -> tuple[int, _Sequence]:
    profile = bits.number(8)
    bits.number(16)  # constraints, level
    name = bits.unsigned()
    has_planes_apart = profile in _WITH_CHROMA_FORMAT and _skip_chroma_format(bits)
    frame_number_bits = bits.unsigned() + 4
    order_type, order_bits, has_order_deltas = bits.unsigned(), 0, False
    if order_type == 0:
        order_bits = bits.unsigned() + 4
    elif order_type == 1:
        has_order_deltas = not bits.flag()
        bits.signed()
        bits.signed()
        offsets = bits.unsigned()
        if offsets > _MOST_OFFSETS:
            raise ValueError("more offsets than there can be")
        for _ in range(offsets):
            bits.signed()
    bits.unsigned()  # reference frames
    bits.flag()
    bits.unsigned()  # width
    bits.unsigned()  # height
    has_fields = not bits.flag()
    if max(frame_number_bits, order_bits) > 16:
        raise ValueError("a longer number than there can be")
    return name, _Sequence(has_planes_apart, frame_number_bits, order_type, order_bits, has_order_deltas, has_fields)


def _skip_chroma_format(bits: _Bits) -> bool:
    """Whether the color planes are coded apart. Of other than 8 bits a sample the quantizer means something else."""
    chroma = bits.unsigned()
    has_planes_apart = chroma == 3 and bits.flag()
    if bits.unsigned() or bits.unsigned():
        raise ValueError("more than 8 bits a sample")
    bits.flag()
    if bits.flag():
        for number in range(12 if chroma == 3 else 8):
            if bits.flag():
                _skip_scaling_list(bits, 16 if number < 6 else 64)
    return has_planes_apart


def _skip_scaling_list(bits: _Bits, size: int) -> None:
    last = 8
    for _ in range(size):
        last = (last + bits.signed()) % 256
        if not last:
            return


def _read_picture(bits: _Bits) -> tuple[int, _Picture]:
    name, sequence = bits.unsigned(), bits.unsigned()
    bits.flag()  # CABAC
    has_bottom_order = bits.flag()
    if bits.unsigned():
        raise ValueError("slice groups are not read")
    bits.unsigned()
    bits.unsigned()
    bits.number(3)  # weighted prediction
    quantizer = 26 + bits.signed()
    bits.signed()
    bits.signed()
    bits.number(2)  # deblocking, constrained prediction
    return name, _Picture(sequence, has_bottom_order, quantizer, bits.flag())


def _slice_quantizer(unit: bytes, sequences: dict[int, _Sequence], pictures: dict[int, _Picture]) -> int:
    bits = _Bits(unit)
    bits.unsigned()  # where it begins
    if bits.unsigned() not in _INTRA_SLICES:
        raise ValueError("a key frame has intra slices only")
    picture = pictures[bits.unsigned()]
    sequence = sequences[picture.sequence]
    if sequence.has_planes_apart:
        bits.number(2)
    bits.number(sequence.frame_number_bits)
    is_field = sequence.has_fields and bits.flag()
    if is_field:
        bits.flag()
    bits.unsigned()  # which key frame
    has_bottom_order = picture.has_bottom_order and not is_field
    if sequence.order_type == 0:
        bits.number(sequence.order_bits)
        if has_bottom_order:
            bits.signed()
    elif sequence.has_order_deltas:
        bits.signed()
        if has_bottom_order:
            bits.signed()
    if picture.has_redundant:
        bits.unsigned()
    if unit[0] & 0x60:  # it is referred to
        bits.number(2)
    return min(max(picture.quantizer + bits.signed(), 0), _COARSEST)
