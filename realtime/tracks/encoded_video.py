"""From RTP packets of a picture codec to whole encoded frames, without decoding anything.

Owns: `EncodedFrame`, `FrameAssembler` and what VP8 and H.264 payloads tell of themselves. Driven by the receiver, packet by
packet; pure, no clock of its own. It holds one unfinished frame and what stands behind a gap, both bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from realtime.tracks.packet_order import PacketOrder

__all__ = ["BEGINS_KEY_FRAME", "VIDEO_CODECS", "EncodedFrame", "FrameAssembler", "carries_parameter_sets"]

VIDEO_CODECS: Final = ("vp8", "h264")
"""Names, as in SDP but in small letters, of what can be assembled here."""

MAX_HELD = 256
"""Packets that wait behind a gap."""
_MAX_BACK = 3_000
"""Packets that were asked for again come late by as many: seconds of a good picture."""
MAX_FRAME_BYTES = 4_000_000
"""A larger frame is none: it is given up."""

_IDR, _SPS, _STAP_A, _FU_A = 5, 7, 24, 28
_NAL_TYPE = 0x1F


class _Packet(NamedTuple):
    number: int
    timestamp: int
    marker: bool
    payload: bytes


class EncodedFrame(NamedTuple):
    """One frame as it came."""

    timestamp: int
    """Of its packets, 90,000 ticks a second, 32 bit."""
    payloads: tuple[bytes, ...]
    """RTP payloads, in order; empty: parts of it, or of one that it needs, are lost."""
    is_key: bool
    """It can be decoded without any other."""

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.payloads))


def carries_parameter_sets(payloads: Sequence[bytes]) -> bool:
    """Whether an H.264 frame's RTP payloads have sequence parameters (SPS) with them, as every key frame of WebRTC has."""
    return any(_begins_frame("h264", payload) for payload in payloads)


def _begins_frame(codec: str, payload: bytes) -> bool:
    """Whether an RTP payload is surely the first of a frame. Of H.264 only one with parameter sets tells."""
    if codec == "vp8":
        return bool(payload[0] & 0x10) and not payload[0] & 0x0F
    kind = payload[0] & _NAL_TYPE
    return kind == _SPS or (kind == _STAP_A and len(payload) > 3 and payload[3] & _NAL_TYPE == _SPS)


def _begins_vp8_key(payload: bytes) -> bool:
    """RFC 7741: the first partition's first packet, and bit 0 of the frame's own first byte is 0."""
    size = len(payload)
    first = payload[0] if size else 0
    if not first & 0x10 or first & 0x0F:
        return False
    at = 1
    if first & 0x80:
        if size < 2:
            return False
        extension = payload[1]
        at = 2
        if extension & 0x80:
            at += 2 if size > at and payload[at] & 0x80 else 1
        if extension & 0x40:
            at += 1
        if extension & 0x30:
            at += 1
    return size > at and not payload[at] & 1


def _begins_h264_key(payload: bytes) -> bool:
    """RFC 6184: parameter sets or an IDR slice, alone, aggregated first, or as a first fragment."""
    if len(payload) < 2:
        return False
    kind = payload[0] & _NAL_TYPE
    if kind == _FU_A:
        return bool(payload[1] & 0x80) and payload[1] & _NAL_TYPE in (_IDR, _SPS)
    if kind == _STAP_A:
        return len(payload) > 3 and payload[3] & _NAL_TYPE in (_IDR, _SPS)
    return kind in (_IDR, _SPS)


BEGINS_KEY_FRAME: Final[Mapping[str, Callable[[bytes], bool]]] = {"vp8": _begins_vp8_key, "h264": _begins_h264_key}
"""Whether an RTP payload is the first of what makes a frame need no other: VP8's first partition, H.264's SPS or IDR."""


class FrameAssembler:
    """Puts one stream's packets in order and together.

    Attributes:
        lost: How often a gap was given up.
    """

    __slots__ = (
        "_begins_key",
        "_bytes",
        "_codec",
        "_follows",
        "_is_broken",
        "_is_whole",
        "_last_number",
        "_order",
        "_parts",
        "_timestamp",
        "lost",
    )

    def __init__(self, codec: str) -> None:
        """Begin a stream of a codec (`VIDEO_CODECS`)."""
        self._codec = codec
        self._begins_key = BEGINS_KEY_FRAME[codec]
        self._order: PacketOrder[_Packet] = PacketOrder(MAX_HELD, max_back=_MAX_BACK)
        self._parts: list[bytes] = []
        self._bytes = 0
        self._timestamp: int | None = None
        self._last_number: int | None = None
        self._follows = False
        """The last packet was there: the next one of another frame is that frame's first."""
        self._is_whole = False
        """The frame at hand has all its packets so far."""
        self._is_broken = True
        """Something was lost since the last key frame."""
        self.lost = 0

    @property
    def waits(self) -> bool:
        """Whether a gap holds packets up."""
        return self._order.waits

    def missing(self) -> list[int]:
        """The sequence numbers that are waited for."""
        return self._order.missing()

    def continues(self, number: int, timestamp: int, payload: bytes) -> bool:
        """Whether a packet is the one that is due, in the middle of its frame; then it is taken, and that is all.

        The short form of `push` for most packets of a picture. If not, nothing has changed.
        """
        # hot path: every packet
        order = self._order
        if number != order.due or not payload:
            return False
        if timestamp != self._timestamp:
            if self._timestamp is not None or not self._follows:
                return False
            self._timestamp = timestamp
            self._is_whole = True
        elif not self._is_whole or self._bytes + len(payload) > MAX_FRAME_BYTES:
            return False
        order.due = (number + 1) & 0xFFFF
        self._last_number = number
        self._parts.append(payload)
        self._bytes += len(payload)
        return True

    def ends(self, number: int, timestamp: int, payload: bytes) -> tuple[bytes, ...] | None:
        """The payloads of a frame that ends with a packet which is the one that is due, if it is whole and builds on those before it.

        The short form of `push` for the last packet of most frames. If None, nothing has changed.
        """
        # hot path: nearly every frame
        order = self._order
        if number != order.due or self._is_broken or not payload or self._bytes + len(payload) > MAX_FRAME_BYTES:
            return None
        if not (self._is_whole if timestamp == self._timestamp else self._timestamp is None and self._follows):
            return None
        parts = (*self._parts, payload)
        if self._is_key(parts):
            return None
        order.due = (number + 1) & 0xFFFF
        self._last_number = number
        self._clear()
        return parts

    def push(
        self, number: int, timestamp: int, payload: bytes, *, marker: bool, is_again: bool = False
    ) -> list[EncodedFrame]:
        """Take a packet; gives the frames that are whole, or known to be lost, now.

        Args:
            number: Its sequence number.
            timestamp: Its frame's.
            payload: Its content; empty: padding, which only fills its number.
            marker: It is its frame's last.
            is_again: It is a retransmission, and was marked as one.
        """
        # hot path: the first and the last packet of every frame
        if not payload or not self._order.let_through(number):
            packet = _Packet(number, timestamp, marker, payload)
            return self._take(self._order.push(number, packet, is_again=is_again))
        frames: list[EncodedFrame] = []
        self._last_number = number
        self._add(timestamp, payload, marker, frames)
        self._follows = True
        return frames

    def give_up(self) -> list[EncodedFrame]:
        """Wait no longer for the first gap. What follows it cannot be decoded until the next key frame."""
        return self._take(self._order.give_up())

    def _take(self, packets: list[_Packet]) -> list[EncodedFrame]:
        frames: list[EncodedFrame] = []
        for packet in packets:
            if self._last_number is not None and packet.number != (self._last_number + 1) & 0xFFFF:
                self.lost += 1
                self._follows = False
                self._break()
            self._last_number = packet.number
            if packet.payload:
                self._add(packet.timestamp, packet.payload, packet.marker, frames)
                self._follows = True
        return frames

    def _add(self, timestamp: int, payload: bytes, marker: bool, frames: list[EncodedFrame]) -> None:
        """Take a packet whose turn has come."""
        if timestamp != self._timestamp:
            if self._timestamp is not None:
                self._finish(frames)  # its marker did not come, but all its packets did
            self._timestamp = timestamp
            self._is_whole = self._follows or _begins_frame(self._codec, payload)
        if self._is_whole:
            self._parts.append(payload)
            self._bytes += len(payload)
            if self._bytes > MAX_FRAME_BYTES:
                self._break()
        if marker:
            self._finish(frames)

    def _finish(self, frames: list[EncodedFrame]) -> None:
        assert self._timestamp is not None
        is_key = self._is_key(self._parts)
        if is_key:
            self._is_broken = False
        parts = () if self._is_broken else tuple(self._parts)
        frames.append(EncodedFrame(self._timestamp, parts, is_key and bool(parts)))
        self._clear()

    def _is_key(self, parts: Sequence[bytes]) -> bool:
        """Whether a frame of these payloads needs no other: VP8 says so in the first, H.264 in any."""
        if self._codec == "vp8":
            parts = parts[:1]
        return any(map(self._begins_key, parts))

    def _clear(self) -> None:
        """The frame at hand is none any more."""
        self._parts.clear()
        self._bytes = 0
        self._timestamp = None
        self._is_whole = False

    def _break(self) -> None:
        """Something is lost: this frame, and all until the next that needs no other."""
        self._is_broken = True
        self._is_whole = False
        self._parts.clear()
        self._bytes = 0
