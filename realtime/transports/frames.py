"""A websocket frame of text, as a client sends it (RFC 6455, section 5.2).

Owns: `TextFrames`. Driven by `transports/websocket.py`, for the messages that are sent fifty times a second; all others, and
everything that is read, are the `websockets` library's. It never sends.
"""

from __future__ import annotations

import os
from importlib import import_module
from struct import Struct
from typing import Final, Protocol, cast

__all__ = ["TextFrames"]


class _Mask(Protocol):
    def __call__(self, data: bytes, mask: bytes, /) -> bytes: ...


def _fast_mask() -> _Mask | None:
    """The library's own masking in C, where it was built."""
    try:
        return cast("_Mask", import_module("websockets.speedups").apply_mask)
    except (ImportError, AttributeError):
        return None


_mask: Final = _fast_mask()
_TEXT: Final = 0x81  # whole, and text
_MASKED: Final = 0x80
_SHORT: Final = Struct("!BB")
_LONG: Final = Struct("!BBH")
_KEYS: Final = 256
"""Masking keys that are drawn at once: each must be unpredictable, and asking the system for each costs more than all else."""


class TextFrames:
    """Makes the frames of one connection."""

    def __init__(self) -> None:
        """Draw nothing yet."""
        self._keys: list[bytes] = []
        self._size = -1
        """Of the last message …"""
        self._head = b""
        """… and how its frame begins."""

    def make(self, data: bytes) -> bytes | None:  # hot path: 50 times a second
        """A whole text message as one frame.

        Args:
            data: UTF-8.

        Returns:
            The frame; None for one that is the library's to make: long, or without its masking in C.
        """
        size = len(data)
        if _mask is None or size > 0xFFFF:
            return None
        keys = self._keys
        if not keys:
            drawn = os.urandom(4 * _KEYS)
            keys += [drawn[at : at + 4] for at in range(0, len(drawn), 4)]
        key = keys.pop()
        if size != self._size:  # sound comes in pieces of one length
            self._size = size
            self._head = _LONG.pack(_TEXT, _MASKED | 126, size) if size > 125 else _SHORT.pack(_TEXT, _MASKED | size)
        return self._head + key + _mask(data, key)
