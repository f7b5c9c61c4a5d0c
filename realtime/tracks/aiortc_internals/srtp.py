"""Checks and decrypts a packet where it lies: what comes in is copied once, when its content is taken out.

Owns: `PacketPlace`. Driven by the short way, packet by packet. pylibsrtp itself copies each packet in and out again.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import logging
from collections.abc import Callable
from mmap import mmap
from typing import Any

import pylibsrtp

__all__ = ["LONGEST_PACKET", "PLACE_BYTES", "PacketPlace"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

PLACE_BYTES = 65_536
"""More than any datagram has, so that none comes cut off: records of DTLS have up to 18 KB (RFC 6347), several may come at once, and
a data channel finds out how many the path takes (RFC 8261). What nothing comes into takes no memory."""
LONGEST_PACKET = 2048
"""More than a packet of media has (pylibsrtp takes 1,500). What is longer is none."""


def _binding() -> Any:
    """The way by which pylibsrtp calls libsrtp; None: it has another."""
    binding = getattr(pylibsrtp, "_binding", None)
    known = hasattr(pylibsrtp, "ERRORS") and hasattr(getattr(binding, "lib", None), "srtp_unprotect")
    return binding if known and hasattr(getattr(binding, "ffi", None), "from_buffer") else None


_BINDING = _binding()


class PacketPlace:
    """Where the packets of one SRTP session lie, one at a time, while they are looked at. Nothing of them is kept.

    Attributes:
        view: The place.
        open: Given how many bytes of it are a packet, checks and decrypts that and gives how many are left of it. Raises
            pylibsrtp.Error for one that is damaged, forged or came again, and ValueError for one that is too long.
    """

    __slots__ = ("open", "view")

    def __init__(self, session: Any) -> None:
        """Make one for a pylibsrtp.Session."""
        place = mmap(-1, PLACE_BYTES)
        self.view = view = memoryview(place)
        in_place = _open_in_place(session, place)
        is_known = in_place is not None and _opens(in_place)
        self.open: Callable[[int], int] = in_place if in_place is not None and is_known else _open_copy(session, view)


def _open_copy(session: Any, view: memoryview) -> Callable[[int], int]:
    def open_packet(size: int) -> int:
        clear: bytes = session.unprotect(bytes(view[:size]))
        view[: len(clear)] = clear
        return len(clear)

    return open_packet


def _open_in_place(session: Any, place: mmap) -> Callable[[int], int] | None:
    if _BINDING is None or not hasattr(session, "_srtp"):
        return None
    ffi, unprotect = _BINDING.ffi, _BINDING.lib.srtp_unprotect
    packet, length, owner = ffi.from_buffer("char[]", place), ffi.new("int *"), session._srtp
    state = owner[0]
    errors: Any = pylibsrtp.ERRORS

    def open_packet(size: int, _: Any = owner) -> int:  # whoever opens keeps the state
        # hot path: every packet
        length[0] = size
        code = unprotect(state, packet, length)
        if code:
            raise pylibsrtp.Error(errors[code])
        clear: int = length[0]
        return clear

    return open_packet


def _opens(open_packet: Callable[[int], int]) -> bool:
    """Whether libsrtp answers as expected: what is no packet is refused."""
    try:
        open_packet(0)
    except pylibsrtp.Error:
        return True
    except Exception as error:
        logger.info("packets are decrypted by pylibsrtp's own method: %s", error)
    return False
