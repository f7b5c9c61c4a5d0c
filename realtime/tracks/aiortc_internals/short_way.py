"""Media packets of known streams straight from the socket, without STUN's parser and aiortc's queue, task and parser.

Owns: `short_way`, one for each transport, held by its ICE connection. Driven by its sockets, packet by packet; each goes to the
`PacketTaker` that its first packet showed. Whatever is not authentic is dropped before anything has learnt of it: no track's count,
time or statistics are moved by a packet that was not checked; the transport counts all that comes, as aiortc has it. Left out
where this aiortc differs.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import inspect
import logging
import struct
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import pylibsrtp

from realtime.tracks.aiortc_internals.socket_reader import FOREIGN, GOES_ON, TAKEN, read_ourselves
from realtime.tracks.aiortc_internals.srtp import LONGEST_PACKET, PacketPlace
from realtime.tracks.aiortc_names import StunProtocol

__all__ = ["PacketTaker", "ShortWay", "short_way"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_HEADER = struct.Struct("!BBHLL")
_ONE_BYTE, _TWO_BYTES = 0xBEDE, 0x1000
"""The forms of header extensions."""
_RESERVED = 15
"""Whatever follows this one of the first form is not to be read."""
_MAX_LEARNED = 64
_MAX_SRTP_BYTES = 1_500
"""pylibsrtp takes no longer packet. aiortc does not expect that, and would end the call."""


TakePacket = Callable[[int, int, int, int, bool, bytes, int, int | None, float], None]


class PacketTaker(Protocol):
    """Whose packets they are."""

    sent_time_id: int
    """Which header extension tells when a packet was sent; 0: none does."""

    sent_time_from: float
    """From then on, in monotonic seconds, that is asked of the last packet of a frame."""

    is_burst: bool
    """Several packets come at once: those of a picture."""

    receiver: Any
    """aiortc's; it knows whether anything is to be received."""

    @property
    def receive_rtp(self) -> TakePacket:
        """Takes a packet (`PacketHandler.receive_rtp`)."""
        ...

    def tell_of_failure(self, what: str, error: Exception) -> None:
        """A packet could not be taken."""
        ...


class ShortWay:
    """Takes the media packets of known streams where they come out of the socket.

    The first packet of each stream goes the long way and shows whose it is: routing stays aiortc's. So do STUN, RTCP, DTLS and
    everything that is not for us. Most of what a packet costs is saved.
    """

    def __init__(self, transport: Any) -> None:
        connection = transport.transport._connection
        self._transport = transport
        place = PacketPlace(transport._rx_srtp)
        self._view = place.view
        self._open = place.open
        self._long_way: Callable[[bytes, int], None] = connection.data_received
        self._takers: dict[int, PacketTaker] = {}
        connection.data_received = self._receive
        for protocol in getattr(connection, "_protocols", ()):
            self._tap(protocol)

    def learn(self, source: int, payload_type: int, taker: PacketTaker) -> None:
        """Packets of this stream and type are this one's."""
        if len(self._takers) < _MAX_LEARNED:
            self._takers[source << 7 | payload_type] = taker

    def forget(self, taker: PacketTaker) -> None:
        """Somebody takes no more."""
        self._takers = {key: known for key, known in self._takers.items() if known is not taker}

    def take(self, size: int, arrived_at: float) -> int:
        """Take the datagram that lies in the place that is there for it.

        Args:
            size: Its bytes.
            arrived_at: When it came, in monotonic seconds.

        Returns:
            `FOREIGN`, `TAKEN` (or dropped, since it is damaged or forged), or `GOES_ON`.
        """
        # hot path: every packet
        view = self._view
        if not 12 < size <= LONGEST_PACKET or not 127 < view[0] < 192:
            return FOREIGN
        flags, kind, number, timestamp, source = _HEADER.unpack_from(view)
        taker = self._takers.get(source << 7 | kind & 0x7F)
        if taker is None or 192 <= kind <= 223:  # RTCP (RFC 5761)
            return FOREIGN
        transport = self._transport
        transport._RTCDtlsTransport__rx_bytes += size
        transport._RTCDtlsTransport__rx_packets += 1
        try:
            end = self._open(size)
        except (pylibsrtp.Error, ValueError, IndexError) as error:
            logger.debug("a packet is damaged or forged: %s", error)
            return TAKEN
        begin: int = 12 + 4 * (flags & 0x0F)
        sent_at = None
        if flags & 0x10:
            extended = begin
            begin += 4 + 4 * (view[begin + 2] << 8 | view[begin + 3])
            if kind > 127 and arrived_at >= taker.sent_time_from and taker.sent_time_id and begin <= end:
                sent_at = _sent_at(taker.sent_time_id, view[extended:begin])
        size = end - begin
        if flags & 0x20 and size > 0:
            end -= view[end - 1]
        if end < begin:
            logger.debug("a packet is shorter than it says")
            return TAKEN
        if taker.receiver._enabled:
            payload = bytes(view[begin:end])
            try:
                taker.receive_rtp(
                    kind & 0x7F, source, number, timestamp, kind > 127, payload, size, sent_at, arrived_at
                )
            except Exception as error:  # whatever it is, it would end the whole connection
                taker.tell_of_failure("packet", error)
        return GOES_ON if kind < 128 and taker.is_burst else TAKEN

    def _receive(self, data: bytes, component: int) -> None:
        """What comes of a connection that we do not read ourselves, and what is on the long way already."""
        size = len(data)
        if size <= LONGEST_PACKET:
            self._view[:size] = data
            if self.take(size, monotonic()) != FOREIGN:
                return
        if not size or (size > _MAX_SRTP_BYTES and 127 < data[0] < 192):
            logger.debug("a datagram of %d bytes is left out", size)  # by either aiortc would end the call
            return
        self._long_way(data, component)

    def _tap(self, protocol: Any) -> None:
        """Take what is ours before aioice looks for STUN in it.

        A socket of asyncio's own loop is read by ourselves; of others (another loop, TURN) what it hands on is taken.
        """
        is_known: bool = type(protocol) is StunProtocol and "datagram_received" not in vars(protocol)
        if not is_known or read_ourselves(protocol, self._view, self.take):
            return
        long_way = protocol.datagram_received

        def receive(data: Any, address: Any) -> None:
            # hot path: every packet
            size = len(data)
            if 12 < size <= LONGEST_PACKET and data[0] > 127:
                self._view[:size] = data
                if self.take(size, monotonic()) != FOREIGN:
                    return
            long_way(data, address)

        vars(protocol)["datagram_received"] = receive


def _sent_at(wanted: int, extensions: memoryview) -> int | None:
    """When a packet was sent (abs-send-time, 24 bits of 1/2^18 s), from its header extensions (RFC 8285); None: unknown."""
    profile = extensions[0] << 8 | extensions[1]
    if profile != _ONE_BYTE and profile & 0xFFF0 != _TWO_BYTES:
        return None
    at, end = 4, len(extensions)
    while at < end - 1:
        head = extensions[at]
        if not head:  # padding
            at += 1
            continue
        if profile == _ONE_BYTE:
            number, size, at = head >> 4, (head & 0x0F) + 1, at + 1
            if number == _RESERVED:
                return None
        else:
            number, size, at = head, extensions[at + 1], at + 2
        if number == wanted and size == 3 and at + 3 <= end:
            return extensions[at] << 16 | extensions[at + 1] << 8 | extensions[at + 2]
        at += size
    return None


_ways: WeakKeyDictionary[Any, ref[ShortWay] | None] = WeakKeyDictionary()
"""What a transport has, held by the transport's own ICE connection: a strong reference from here would keep both for ever."""


def short_way(transport: Any) -> ShortWay | None:
    """The short way of a connected transport, the same for all that it carries; None: this aiortc has none."""
    known = _ways.get(transport)
    way = None if known is None else known()
    if way is not None:
        return way
    if known is not None or transport not in _ways:
        connection: Any = getattr(getattr(transport, "transport", None), "_connection", None)
        usable = (
            callable(getattr(connection, "data_received", None))
            and list(inspect.signature(connection.data_received).parameters) == ["data", "component"]
            and callable(getattr(getattr(transport, "_rx_srtp", None), "unprotect", None))
            and isinstance(getattr(transport, "_RTCDtlsTransport__rx_bytes", None), int)
            and isinstance(getattr(transport, "_RTCDtlsTransport__rx_packets", None), int)
        )
        way = ShortWay(transport) if usable else None
        _ways[transport] = None if way is None else ref(way)
    return way
