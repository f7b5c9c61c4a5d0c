"""The bytes in front of an RTP packet's payload, one after another of one stream.

Owns: `RtpHeader`. Driven by whoever sends. It knows which header extensions were negotiated, and neither counts nor measures.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from realtime.tracks.aiortc_names import HeaderExtensions

__all__ = ["RtpHeader"]

_FIXED = struct.Struct("!BBHLL")
_CHANGING = struct.Struct("!BHL")
"""Marker and payload type, sequence number, time stamp: from the second byte on."""
_EXTENSION = struct.Struct("!HH")
_VERSION = 0x80
_HAS_EXTENSION = 0x10
_MARKER = 0x80


class _Layout:
    """A header, and where in it what changes is; 0: nowhere."""

    __slots__ = ("header", "level_at", "sent_at")

    def __init__(self, fixed: bytes, extensions: Callable[[int, int], tuple[int, bytes]]) -> None:
        def packed(sent: int, level: int) -> bytearray:
            profile, value = extensions(sent, level)
            return bytearray(fixed + _EXTENSION.pack(profile, len(value) // 4) + value if value else fixed)

        self.header = packed(0, 0)
        self.sent_at = _first_difference(self.header, packed(0xFFFFFF, 0))
        self.level_at = _first_difference(self.header, packed(0, 127))
        if self.sent_at or self.level_at or len(self.header) > len(fixed):
            self.header[0] |= _HAS_EXTENSION


class RtpHeader:
    """The headers of one stream."""

    __slots__ = ("_payload_type", "_plain", "_with_level")

    def __init__(self, payload_type: int, ssrc: int, mid: str | None, names: Any) -> None:
        """Begin a stream.

        Args:
            payload_type: 0 to 127.
            ssrc: The stream's source.
            mid: The media section that it is of.
            names: The HeaderExtensionsMap that negotiation set up.
        """
        self._payload_type = payload_type
        fixed = _FIXED.pack(_VERSION, payload_type, 0, 0, ssrc)
        self._plain = _Layout(fixed, lambda sent, _: names.set(HeaderExtensions(mid=mid, abs_send_time=sent)))
        self._with_level = _Layout(
            fixed,
            lambda sent, level: names.set(HeaderExtensions(mid=mid, abs_send_time=sent, audio_level=(False, level))),
        )

    def write(
        self, sequence_number: int, timestamp: int, *, marker: bool, sent: int = 0, level: int | None = None
    ) -> bytes:
        """A packet's header.

        Args:
            sequence_number: 0 to 65,535.
            timestamp: 0 to 2³² − 1.
            marker: As the payload's format says.
            sent: When it is sent: 24 bits of an NTP time, 18 fractional ones among them. Left out if not negotiated.
            level: How loud it is, 0 to 127 decibels below the loudest; None: not said. Left out if not negotiated.
        """
        # hot path: every 20 ms of speech
        layout = self._plain if level is None else self._with_level
        header = layout.header
        kind = self._payload_type | _MARKER if marker else self._payload_type
        _CHANGING.pack_into(header, 1, kind, sequence_number, timestamp)
        if layout.sent_at:
            header[layout.sent_at : layout.sent_at + 3] = sent.to_bytes(3, "big")
        if level is not None and layout.level_at:
            header[layout.level_at] = level
        return bytes(header)


def _first_difference(one: bytearray, other: bytearray) -> int:
    return next((at for at, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs), 0)
