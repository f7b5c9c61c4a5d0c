"""Reads a UDP socket of asyncio's own loop: what waits there is taken at one wake-up, into a place that is there already.

Owns: `read_ourselves`. Driven by the loop. asyncio's transport reads one datagram for each turn of the loop, and makes room for
256 KiB each time, which costs ten times as much as reading. It goes on to own the socket, and to close it. Left out where the
loop is another: uvloop and Windows' proactor read by themselves.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
from asyncio import selector_events
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

__all__ = ["FOREIGN", "GOES_ON", "MAX_AT_ONCE", "TAKEN", "Take", "read_ourselves"]

FOREIGN: Final = 0
"""What lies there is not for us: it goes the long way."""
TAKEN: Final = 1
GOES_ON: Final = 2
"""Taken, and it is not the last of its frame: the next one comes right behind it."""

MAX_AT_ONCE = 64
"""So many datagrams of one socket, and the loop's other work has its turn."""

Take = Callable[[int, float], int]
"""Takes the datagram that lies in the place, given its bytes and when it came, in monotonic seconds; says what it was."""


def read_ourselves(protocol: Any, place: memoryview, take: Take) -> bool:
    """Read the socket of a protocol from now on.

    Args:
        protocol: Its `datagram_received` gets what is not taken.
        place: Where each datagram is put.
        take: Takes what lies there, and says what it was.

    Returns:
        Whether that can be done; if not, all is as before.
    """
    transport: Any = getattr(protocol, "transport", None)
    loop: Any = getattr(transport, "_loop", None)
    sock: Any = getattr(transport, "_sock", None)
    add_reader: Any = getattr(loop, "_add_reader", None)
    usable = (
        type(transport) is getattr(selector_events, "_SelectorDatagramTransport", None)
        and isinstance(loop, selector_events.BaseSelectorEventLoop)
        and isinstance(sock, socket.socket)
        and getattr(transport, "_sock_fd", None) == sock.fileno() >= 0
        and callable(add_reader)
        and list(inspect.signature(add_reader).parameters)[:2] == ["fd", "callback"]
    )
    if not usable or transport.is_closing():
        return False
    add_reader(
        sock.fileno(), _Reader(protocol, transport, sock.recvfrom_into, place, take).read
    )  # in the place of the transport's own
    return True


class _Reader:
    """Reads one socket."""

    __slots__ = ("_place", "_protocol", "_receive", "_take", "_transport")

    def __init__(
        self,
        protocol: Any,
        transport: asyncio.DatagramTransport,
        receive: Callable[[memoryview], tuple[int, Any]],
        place: memoryview,
        take: Take,
    ) -> None:
        self._protocol = protocol
        self._transport = transport
        self._receive = receive
        self._place = place
        self._take = take

    def read(self) -> None:
        """There is something to read.

        After a packet that is not the last of its frame the next one is looked for at once: they come together. A lone
        packet of sound pays for no vain attempt.
        """
        # hot path: every wake-up
        receive, place, take, now = self._receive, self._place, self._take, monotonic()
        for _ in range(MAX_AT_ONCE):
            if self._transport.is_closing():
                return
            try:
                size, address = receive(place)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._protocol.error_received(error)
                return
            outcome = take(size, now)
            if outcome == FOREIGN:
                self._protocol.datagram_received(bytes(place[:size]), address)
            if outcome != GOES_ON:
                return
