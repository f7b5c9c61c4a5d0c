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
_SSRC_AT = 8
"""What comes before changes with every packet; what comes behind, but for the extensions that measure, with none."""
_EXTENSION = struct.Struct("!HH")
_VERSION = 0x80
_HAS_EXTENSION = 0x10
_MARKER = 0x80


class _Layout:
    """A header around what changes in it."""

    __slots__ = ("after", "before", "first", "level_at", "pack", "says_sent")

    def __init__(self, fixed: bytes, extensions: Callable[[int, int], tuple[int, bytes]]) -> None:
        def packed(sent: int, level: int) -> bytearray:
            profile, value = extensions(sent, level)
            return bytearray(fixed + _EXTENSION.pack(profile, len(value) // 4) + value if value else fixed)

        header = packed(0, 0)
        sent_at = _first_difference(header, packed(0xFFFFFF, 0))
        self.level_at = _first_difference(header, packed(0, 127))
        """0: nowhere."""
        self.first = header[0] | _HAS_EXTENSION if len(header) > len(fixed) else header[0]
        self.says_sent = sent_at > 0
        self.before = bytes(header[_SSRC_AT : sent_at or None])
        self.after = bytes(header[sent_at + 3 :])
        sent = f"BH{len(self.after)}s" if self.says_sent else ""
        self.pack = struct.Struct(f"!BBHL{len(self.before)}s{sent}").pack


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
        kind = self._payload_type | _MARKER if marker else self._payload_type
        if layout.says_sent:
            header = layout.pack(
                layout.first, kind, sequence_number, timestamp, layout.before, sent >> 16, sent & 0xFFFF, layout.after
            )
        else:
            header = layout.pack(layout.first, kind, sequence_number, timestamp, layout.before)
        if level is None or not layout.level_at:
            return header
        return header[: layout.level_at] + bytes((level,)) + header[layout.level_at + 1 :]


def _first_difference(one: bytearray, other: bytearray) -> int:
    return next((at for at, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs), 0)
