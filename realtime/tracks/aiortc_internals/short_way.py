"""Media packets of known streams straight from ICE, without aiortc's queue, task and parser.

Owns: `short_way`, one for each transport, held by its ICE connection. Driven by the socket, packet by packet; each goes to the
`PacketTaker` that its first packet showed. Left out where this aiortc differs.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import inspect
import logging
import struct
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast
from weakref import WeakKeyDictionary, ref

import pylibsrtp
from aiortc import clock
from aiortc.rtp import HeaderExtensions

__all__ = ["Packet", "ShortWay", "short_way"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_HEADER = struct.Struct("!BBHLL")
_EXTENSION = struct.Struct("!HH")
_MAX_LEARNED = 64


class Packet:
    """An RTP packet as aiortc's RtpPacket tells it, as far as a receiver asks; its header extensions are read when asked for."""

    __slots__ = (
        "_extension",
        "_names",
        "marker",
        "padding_size",
        "payload",
        "payload_type",
        "sequence_number",
        "ssrc",
        "timestamp",
    )

    csrc: ClassVar[tuple[int, ...]] = ()
    """Whose sound is mixed in: nobody asks."""

    def __init__(self, data: bytes, names: Any) -> None:
        """Read a packet.

        Raises:
            ValueError, struct.error, IndexError: It is cut off or none.
        """
        # hot path: every packet
        flags, kind, self.sequence_number, self.timestamp, self.ssrc = _HEADER.unpack_from(data)
        self.marker = kind >> 7
        self.payload_type = kind & 0x7F
        at = 12 + 4 * (flags & 0x0F)
        self._extension: tuple[int, bytes] | None = None
        self._names = names
        if flags & 0x10:
            profile, words = _EXTENSION.unpack_from(data, at)
            self._extension = profile, data[at + 4 : at + 4 + 4 * words]
            at += 4 + 4 * words
        self.padding_size = data[-1] if flags & 0x20 else 0
        end = len(data) - self.padding_size
        if end < at:
            raise ValueError("the packet is shorter than it says")
        self.payload = data[at:end]

    @property
    def extensions(self) -> HeaderExtensions:
        """Its header extensions, as aiortc reads them; none of them if they are damaged."""
        if self._extension is None:
            return HeaderExtensions()
        try:
            return cast("HeaderExtensions", self._names.get(*self._extension))
        except (ValueError, IndexError, struct.error) as error:
            logger.debug("the header extensions of a packet are damaged: %s", error)
            return HeaderExtensions()


class PacketTaker(Protocol):
    """Whose packets they are."""

    def take(self, packet: Any, arrival_ms: int) -> None:
        """A packet, with the moment in which it came."""
        ...


class ShortWay:
    """Takes the media packets of known streams where they come out of ICE, without aiortc's queue, task and parser.

    The first packet of each stream goes the long way and shows whose it is: routing stays aiortc's. So do RTCP, DTLS and
    everything that is not for us. Half of what a packet costs is saved.
    """

    def __init__(self, transport: Any) -> None:
        connection = transport.transport._connection
        self._transport = transport
        self._unprotect = transport._rx_srtp.unprotect
        self._names = transport._rtp_header_extensions_map
        self._long_way: Callable[[bytes, int], None] = connection.data_received
        self._ports: dict[int, PacketTaker] = {}
        connection.data_received = self._receive

    def learn(self, source: int, payload_type: int, port: PacketTaker) -> None:
        """Packets of this stream and type are this port's."""
        if len(self._ports) < _MAX_LEARNED:
            self._ports[source << 7 | payload_type] = port

    def forget(self, port: PacketTaker) -> None:
        """A port takes no more."""
        self._ports = {key: known for key, known in self._ports.items() if known is not port}

    def _receive(self, data: bytes, component: int) -> None:
        # hot path: every packet
        if len(data) > 12 and 127 < data[0] < 192:
            port = self._ports.get(int.from_bytes(data[8:12], "big") << 7 | data[1] & 0x7F)
            if port is not None and not 192 <= data[1] <= 223:
                self._take(port, data)
                return
        self._long_way(data, component)

    def _take(self, port: PacketTaker, data: bytes) -> None:
        transport = self._transport
        transport._RTCDtlsTransport__rx_bytes += len(data)
        transport._RTCDtlsTransport__rx_packets += 1
        try:
            packet = Packet(self._unprotect(data), self._names)
        except (pylibsrtp.Error, ValueError, IndexError, struct.error) as error:
            logger.debug("a packet is damaged or forged: %s", error)
            return
        port.take(packet, clock.current_ms())


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
            and callable(getattr(getattr(transport, "_rtp_header_extensions_map", None), "get", None))
            and isinstance(getattr(transport, "_RTCDtlsTransport__rx_bytes", None), int)
            and isinstance(getattr(transport, "_RTCDtlsTransport__rx_packets", None), int)
        )
        way = ShortWay(transport) if usable else None
        _ways[transport] = None if way is None else ref(way)
    return way
