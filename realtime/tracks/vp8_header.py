"""How finely a VP8 key frame is quantized: whether it is a good picture by itself.

Owns: `is_fine_key`, and `key_quantizer`, which reads as much of a key frame's header as lies before that (RFC 6386, sections 7, 9
and 19.2). Driven by `sampled_decode`, once for a key frame. It decodes no pixel and takes anything for a frame.
"""

from __future__ import annotations

from realtime.tracks.aiortc_names import vp8_depayload

__all__ = ["COARSEST", "FINE", "is_fine_key", "key_quantizer"]

FINE = 24
"""A key frame that is quantized no coarser is as good a picture as those after it (docs/frame-cost.md)."""

COARSEST = 127
"""The largest quantizer index; 0 is the finest."""
_START = 10
"""Frame tag, start code and size come first."""
_LONGEST = 100
"""No header before the quantizer takes as many bytes."""


class _Bits:
    """A boolean decoder (RFC 6386, section 7.3) of bits that are as likely 0 as 1, or nearly."""

    __slots__ = ("_at", "_data", "_left", "_range", "_value")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._value = int.from_bytes(data[:2].ljust(2, b"\0"), "big")
        self._at = 2
        self._range = 255
        self._left = 8

    def flag(self) -> bool:
        split = 1 + ((self._range - 1) * 128 >> 8)
        is_set = self._value >= split << 8
        if is_set:
            self._range -= split
            self._value -= split << 8
        else:
            self._range = split
        while self._range < 128:
            self._range <<= 1
            self._value <<= 1
            self._left -= 1
            if not self._left:
                self._left = 8
                self._value |= self._data[self._at] if self._at < len(self._data) else 0
                self._at += 1
        return is_set

    def number(self, bits: int) -> int:
        value = 0
        for _ in range(bits):
            value = value << 1 | self.flag()
        return value

    def signed(self, bits: int) -> int:
        value = self.number(bits)
        return -value if self.flag() else value

    def optional(self, bits: int) -> int:
        return self.signed(bits) if self.flag() else 0


def is_fine_key(codec: str, payload: bytes) -> bool:
    """Whether a key frame says of itself that it is a good picture, as only VP8's does in a place that is cheap to read.

    Args:
        codec: Its codec, in small letters.
        payload: Its first RTP payload.
    """
    if codec != "vp8":
        return False
    try:
        return key_quantizer(vp8_depayload(payload)) <= FINE
    except ValueError:
        return False


def key_quantizer(frame: bytes) -> int:
    """The quantizer index of a key frame's luma, 0–127; of its segments', if it has some, the coarsest.

    Args:
        frame: Its beginning, at least 100 bytes if it is as long.
    """
    if len(frame) <= _START or frame[0] & 1:
        return COARSEST
    bits = _Bits(frame[_START:_LONGEST])
    bits.number(2)  # color space, clamping
    is_absolute, segments = False, list[int]()
    if bits.flag():
        is_absolute, segments = _read_segments(bits)
    bits.number(10)  # the loop filter: type, level, sharpness
    if bits.flag() and bits.flag():
        for _ in range(8):
            bits.optional(6)
    bits.number(2)  # partitions
    index = bits.number(7)
    if segments:
        index = max(segments) if is_absolute else index + max(segments)
    return min(max(index, 0), COARSEST)


def _read_segments(bits: _Bits) -> tuple[bool, list[int]]:
    """Whether the segments' quantizers stand for themselves or are added to the frame's; and those."""
    has_map, has_data = bits.flag(), bits.flag()
    is_absolute, segments = False, list[int]()
    if has_data:
        is_absolute = bits.flag()
        segments = [bits.optional(7) for _ in range(4)]
        for _ in range(4):
            bits.optional(6)
    if has_map:
        for _ in range(3):
            if bits.flag():
                bits.number(8)
    return is_absolute, segments
