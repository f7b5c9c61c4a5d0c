"""What a picture's first bytes tell: its type and its size, without decoding it (behaviour.md V7, W1).

Owns: `image_type` and `image_size` for JPEG, PNG, GIF and WEBP, the types that providers take. Driven by `content`. Never decodes a pixel and never raises: what cannot be told is None.

Layouts: JPEG from ITU-T T.81 annex B, PNG from its specification (IHDR, 11.2.1), GIF from GIF89a section 18, WEBP from
RFC 9649.
"""

from __future__ import annotations

import re

__all__ = ["image_size", "image_type"]

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_JPEG_START = b"\xff\xd8"
_NOT_FRAME_HEADERS = frozenset({0xC4, 0xC8, 0xCC})
"""Markers between SOF0 and SOF15 that start no frame: Huffman tables, an extension, arithmetic conditioning."""
_SEGMENT = re.compile(rb"\xff([\x02-\xcf\xda-\xfe])")
"""A marker with a length: none that stands alone (01, D0 to D9), no fill byte (FF), no stuffed one (00)."""
_START_OF_SCAN = 0xDA
_MOST_SEGMENTS, _MOST_FILLING = 1_000, 4_096
"""Before the frame header, and bytes between two of them; more is no picture of anybody's but work for nothing."""


def image_type(data: bytes) -> str | None:
    """The MIME type that the bytes tell, or None if they are none of the four.

    Args:
        data: A whole encoded picture, or at least its first 12 bytes.
    """
    if data.startswith(_JPEG_START):
        return "image/jpeg"
    if data.startswith(_PNG_SIGNATURE):
        return "image/png"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, as stored (an EXIF rotation is not applied), or None if the header does not say.

    Args:
        data: A whole encoded picture, or as much of it as holds its header.
    """
    kind = image_type(data)
    size: tuple[int, int] | None = None
    if kind == "image/jpeg":
        size = _jpeg_size(data)
    elif kind == "image/png" and data[12:16] == b"IHDR" and len(data) >= 24:
        size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    elif kind == "image/gif" and len(data) >= 10:
        size = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    elif kind == "image/webp":
        size = _webp_size(data)
    return size if size is not None and size[0] > 0 and size[1] > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(_MOST_SEGMENTS):
        found = _SEGMENT.search(data, at, at + _MOST_FILLING)
        if found is None:
            return None
        marker, at = found[1][0], found.end()
        if marker == _START_OF_SCAN or at + 2 > len(data):
            return None
        if 0xC0 <= marker <= 0xCF and marker not in _NOT_FRAME_HEADERS:
            if at + 7 > len(data):
                return None
            return int.from_bytes(data[at + 5 : at + 7], "big"), int.from_bytes(data[at + 3 : at + 5], "big")
        at += max(2, int.from_bytes(data[at : at + 2], "big"))
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if chunk == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 " and len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None
