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
from weakref import WeakKeyDictionary, ref

__all__ = ["FOREIGN", "GOES_ON", "MAX_AT_ONCE", "TAKEN", "Take", "read_ourselves"]

FOREIGN: Final = 0
"""What lies there is not for us: it goes the long way."""
TAKEN: Final = 1
GOES_ON: Final = 2
"""Taken, and it is not the last of its frame: the next one comes right behind it."""

MAX_AT_ONCE = 64
"""So many datagrams of one socket, and the loop's other work has its turn."""
_TURN_SECONDS = 0.003
"""All sockets together are read for so long in one turn of the loop, or a packet more. What many calls send at once would else hold up
its timers."""
_GAP_SECONDS = 0.000_3
"""Where nothing was read for so long, another turn has begun: in one turn sockets are read one behind the other."""
_MOST_PUT_OFF = 8
"""So many turns in a row a socket may have to wait for those before it."""

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
    reader = _Reader(protocol, sock.recvfrom_into, place, take, _turn_of(loop))
    add_reader(sock.fileno(), reader.read)  # in the place of the transport's own
    return True


class _Turn:
    """What the sockets of one loop have had of its present turn."""

    __slots__ = ("_began", "_is_over", "_loop", "ended")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._began = self.ended = 0.0
        """When the first of them began to be read, and when the last one was done."""
        self._is_over = False

    def is_used_up(self, now: float) -> bool:
        """Whether the loop's other work comes first; asked before each socket."""
        # hot path: every wake-up
        if self._is_over:
            return True
        if now - self.ended > _GAP_SECONDS:
            self._began = now
        elif now - self._began > _TURN_SECONDS:
            loop = self._loop()
            assert loop is not None  # it is calling
            loop.call_soon(self._begin_anew)  # before the next turn's sockets
            self._is_over = True
        return self._is_over

    def _begin_anew(self) -> None:
        self._is_over = False
        self._began = self.ended = monotonic()


_turns: WeakKeyDictionary[Any, _Turn] = WeakKeyDictionary()


def _turn_of(loop: asyncio.AbstractEventLoop) -> _Turn:
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = _Turn(loop)
    return turn


class _Reader:
    """Reads one socket."""

    __slots__ = ("_place", "_protocol", "_put_off", "_receive", "_take", "_transport", "_turn")

    def __init__(
        self,
        protocol: Any,
        receive: Callable[[memoryview], tuple[int, Any]],
        place: memoryview,
        take: Take,
        turn: _Turn,
    ) -> None:
        self._turn = turn
        self._put_off = 0
        self._protocol = protocol
        self._transport: asyncio.DatagramTransport = protocol.transport
        self._receive = receive
        self._place = place
        self._take = take

    def read(self) -> None:
        """There is something to read; what is left for the next turn makes the loop call again.

        After a packet that is not the last of its frame the next one is looked for at once: they come together. A lone
        packet of sound pays for no vain attempt.
        """
        # hot path: every wake-up
        now, turn = monotonic(), self._turn
        if turn.is_used_up(now) and self._put_off < _MOST_PUT_OFF:
            self._put_off += 1
            return
        self._put_off = 0
        receive, place, take = self._receive, self._place, self._take
        try:
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
        finally:
            turn.ended = monotonic()
