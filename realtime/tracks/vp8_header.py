"""What a VP8 frame says of itself before it is decoded: whether a key frame is a good picture by itself, and how it may be decoded.

Owns: `frame_of`, which takes the frame out of its RTP payloads (RFC 7741, section 4.2), and `key_header`, which reads as much of
a key frame's header as lies before its quantizer (RFC 6386, sections 7, 9 and 19.2). Driven by `sampled_decode`, once for a
key frame, and by `picture_decoder`. It decodes no pixel and takes anything for a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

__all__ = ["COARSEST", "FAINT", "FINE", "KeyHeader", "frame_of", "is_faintly_filtered", "key_grade", "key_header"]

FINE = 24
"""A key frame that is quantized no coarser is as good a picture as those after it (docs/frame-cost.md)."""
FAINT = 2
"""A loop filter of no higher level can be left out of a key frame that no other is decoded from (docs/frame-cost.md) …"""
_RICH = 1 / 3
"""… if the frame has as many bits a pixel: a smooth picture shows where its blocks meet."""

COARSEST = 127
"""The largest quantizer index; 0 is the finest."""
_STRONGEST = 63
"""The highest level of the loop filter."""
_START = 10
"""Frame tag, start code and size come first."""
_LONGEST = 32
"""No header up to the quantizer takes as many bytes."""


class KeyHeader(NamedTuple):
    """Of a key frame; of its segments, if it has some, the most."""

    quantizer: int
    """The quantizer index of its luma, 0–127."""
    filter_level: int
    """How strong its loop filter is, 0–63; 0: there is none."""
    pixels: int
    """Its width times its height; 0 if it is no key frame."""


_UNKNOWN = KeyHeader(COARSEST, _STRONGEST, 0)


def frame_of(payloads: Iterable[bytes]) -> bytes:
    """The frame that RTP payloads carry.

    Raises:
        ValueError: One of them ends within its descriptor.
    """
    return b"".join([payload[_descriptor_bytes(payload) :] for payload in payloads])


def _descriptor_bytes(payload: bytes) -> int:
    """How much of an RTP payload stands before its part of the frame."""
    # hot path: dozens of packets a picture
    try:
        if not payload[0] & 0x80:
            return 1
        extension, size = payload[1], 2
        if extension & 0x80:
            size = 4 if payload[2] & 0x80 else 3
        size += (extension & 0x40 != 0) + (extension & 0x30 != 0)
    except IndexError:
        size = len(payload) + 1
    if size > len(payload):
        raise ValueError("a VP8 payload ends within its descriptor")
    return size


class _Bits:
    """A boolean decoder (RFC 6386, section 7.3) of bits that are as likely 0 as 1, or nearly."""

    __slots__ = ("_range", "_shift", "_value")

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data.ljust(_LONGEST, b"\0"), "big")
        self._shift = 8 * (max(len(data), _LONGEST) - 1)
        """How far below the value's top byte the next bit is told; it shrinks by one a bit at most."""
        self._range = 255

    def number(self, bits: int) -> int:
        number = 0
        for _ in range(bits):
            split = (self._range + 1) >> 1
            rest = self._value - (split << self._shift)
            number <<= 1
            if rest < 0:
                self._range = split
            else:
                number |= 1
                self._value = rest
                self._range -= split
            if self._range < 128:
                self._range <<= 1
                self._shift -= 1
        return number

    def optional(self, bits: int) -> int:
        if not self.number(1):
            return 0
        value = self.number(bits)
        return -value if self.number(1) else value


def key_grade(payloads: Sequence[bytes]) -> Literal["fine", "fair"]:
    """How good a picture a key frame says that it is.

    Args:
        payloads: Its RTP payloads.
    """
    return "fine" if _header_in(payloads[0]).quantizer <= FINE else "fair"


def is_faintly_filtered(payloads: Sequence[bytes]) -> bool:
    """Whether a key frame says of itself that it looks the same without its loop filter.

    Args:
        payloads: Its RTP payloads.
    """
    _, level, pixels = _header_in(payloads[0])
    return level <= FAINT and 8 * sum(map(len, payloads)) >= pixels * _RICH


def _header_in(payload: bytes) -> KeyHeader:
    try:
        return key_header(frame_of((payload,)))
    except ValueError:
        return _UNKNOWN


def key_header(frame: bytes) -> KeyHeader:
    """What a key frame says of itself. Of what is none: the coarsest, most strongly filtered.

    Args:
        frame: Its beginning, at least 50 bytes if it is as long.
    """
    if len(frame) <= _START or frame[0] & 1:
        return _UNKNOWN
    bits = _Bits(frame[_START : _START + _LONGEST])
    bits.number(2)  # color space, clamping
    is_absolute, quantizers, levels = _read_segments(bits) if bits.number(1) else (False, [0], [0])
    bits.number(1)  # the filter's type
    level = bits.number(6)
    bits.number(3)  # its sharpness
    if bits.number(1) and bits.number(1):
        for _ in range(8):
            bits.optional(6)
    bits.number(2)  # partitions
    index = bits.number(7)
    if is_absolute:
        index, level = max(quantizers), max(levels) if level else 0
    else:
        index, level = index + max(quantizers), level + max(levels) if level else 0
    width, height = ((frame[at] | frame[at + 1] << 8) & 0x3FFF for at in (6, 8))
    return KeyHeader(min(max(index, 0), COARSEST), min(max(level, 0), _STRONGEST), width * height)


def _read_segments(bits: _Bits) -> tuple[bool, list[int], list[int]]:
    """Whether what the segments say stands for itself or is added to the frame's; their quantizers, and their filters' levels."""
    has_map, has_data = bits.number(1), bits.number(1)
    is_absolute, quantizers, levels = False, [0], [0]
    if has_data:
        is_absolute = bool(bits.number(1))
        quantizers = [bits.optional(7) for _ in range(4)]
        levels = [bits.optional(6) for _ in range(4)]
    if has_map:
        for _ in range(3):
            if bits.number(1):
                bits.number(8)
    return is_absolute, quantizers, levels
