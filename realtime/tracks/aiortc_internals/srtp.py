"""Checks and decrypts a packet where it lies: what comes in is copied once, when its content is taken out.

Owns: `SCRATCH`, the one place in which a packet lies while it is looked at, and `opener`. Driven by the short way, packet by
packet, on the loop's thread only. pylibsrtp itself copies each packet in and out again.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pylibsrtp

__all__ = ["SCRATCH", "SCRATCH_BYTES", "opener"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

SCRATCH_BYTES = 2048
"""More than a packet of media has (pylibsrtp takes 1,500). What is longer comes cut off, and then it is not authentic."""


def _binding() -> Any:
    """The way by which pylibsrtp calls libsrtp; None: it has another."""
    binding = getattr(pylibsrtp, "_binding", None)
    known = hasattr(pylibsrtp, "ERRORS") and hasattr(getattr(binding, "lib", None), "srtp_unprotect")
    return binding if known and hasattr(getattr(binding, "ffi", None), "from_buffer") else None


_BINDING = _binding()
_BYTES = bytearray(SCRATCH_BYTES)
SCRATCH = memoryview(_BYTES)
"""Where a packet lies: one for all calls, so that it stays in the processor's cache. Nothing of it is kept."""


def opener(session: Any) -> Callable[[int], int]:
    """What opens the packets of an SRTP session.

    Args:
        session: A pylibsrtp.Session.

    Returns:
        Given how many bytes of `SCRATCH` are a packet, checks and decrypts it there and gives how many are left of it. It
        raises pylibsrtp.Error for one that is damaged, forged or came again, and ValueError for one that is too long.
    """
    in_place = _open_in_place(session)
    if in_place is not None and _opens(in_place):
        return in_place

    def open_copy(size: int) -> int:
        clear: bytes = session.unprotect(bytes(SCRATCH[:size]))
        SCRATCH[: len(clear)] = clear
        return len(clear)

    return open_copy


def _open_in_place(session: Any) -> Callable[[int], int] | None:
    if _BINDING is None or not hasattr(session, "_srtp"):
        return None
    ffi, unprotect = _BINDING.ffi, _BINDING.lib.srtp_unprotect
    place, length, owner = ffi.from_buffer("char[]", _BYTES), ffi.new("int *"), session._srtp
    state = owner[0]
    errors: Any = pylibsrtp.ERRORS

    def open_packet(size: int, _: Any = owner) -> int:  # whoever opens keeps the state
        # hot path: every packet
        length[0] = size
        code = unprotect(state, place, length)
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
