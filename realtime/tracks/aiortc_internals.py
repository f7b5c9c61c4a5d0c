"""Everything of aiortc that is not its public interface, in one place.

Owns: `take_over`, which puts a receiver of ours in the place of aiortc's for one transceiver, and `unsupported`, which says
why that cannot be done. Used at run time only where everything that is needed is there as expected: with any other aiortc the
stock receiver stays, and a test of this file fails. Touches, of aiortc 1.15 and 1.16:

- `RTCDtlsTransport._register_rtp_receiver`, `_unregister_rtp_receiver`, `_send_rtp`, `_stats_id`;
- what that transport calls of a receiver: `_handle_rtp_packet`, `_handle_rtcp_packet`, `_handle_disconnect`;
- `RTCRtpSender._ssrc`, `RTCRtpReceiver._enabled` (negotiation can close a direction) and `__started`, and
  `RemoteStreamTrack._queue`;
- for the short way of packets (`_ShortWay`), which is left out where it cannot be: `RTCIceTransport._connection` and its
  `data_received`, `RTCDtlsTransport._rx_srtp`, `_rtp_header_extensions_map`, `__rx_bytes` and `__rx_packets`.

aiortc's own receiver object stays in its transceiver, never started: it has no thread and no buffer. Only its public methods
`receive`, `stop`, `getStats` and `getSynchronizationSources` are answered by ours.
"""

# ruff: noqa: SLF001  (that is what this file is for)

from __future__ import annotations

import asyncio
import inspect
import logging
import struct
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast
from weakref import WeakKeyDictionary, ref

import pylibsrtp
from aiortc import RTCRtpReceiver, clock
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpreceiver import RemoteStreamTrack
from aiortc.rtcrtpsender import RTCRtpSender
from aiortc.rtp import HeaderExtensions

__all__ = ["PacketHandler", "ReceiverPort", "take_over", "unsupported"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_STARTED = "_RTCRtpReceiver__started"
_QUEUED_FRAMES = {"audio": 50, "video": 2}
"""What waits for somebody who reads the track itself: the newest second of sound, two pictures."""
_UNREAD_SECONDS = 5.0
"""Nobody has taken one for so long, and they wait: nobody reads the track any more, and it is not decoded for them."""


class PacketHandler(Protocol):
    """What is done with what comes for one track."""

    def start(self, parameters: Any) -> None:
        """Reception begins, with aiortc's RTCRtpReceiveParameters; again after each negotiation."""
        ...

    def receive_rtp(self, packet: Any, arrival_ms: int) -> None:
        """A parsed RtpPacket, in the order in which it came."""
        ...

    def receive_rtcp(self, packet: Any) -> None:
        """A parsed RTCP packet that is about the track."""
        ...

    def end(self) -> None:
        """Nothing more will come. May be called more than once."""
        ...

    def read_by_others(self) -> None:
        """Somebody calls the track's `recv()`."""
        ...

    def read_no_more(self) -> None:
        """Nobody has called it for a while. Told again by `read_by_others` when somebody does."""
        ...

    def reports(self) -> list[Any]:
        """Statistics of the streams that came, as objects of aiortc's."""
        ...

    def sources(self) -> list[Any]:
        """The RTCRtpSynchronizationSources of the last ten seconds."""
        ...


def unsupported() -> str:
    """Why this aiortc's receivers cannot be replaced; empty if they can."""
    needed: list[tuple[type, str, list[str]]] = [
        (RTCDtlsTransport, "_register_rtp_receiver", ["self", "receiver", "parameters"]),
        (RTCDtlsTransport, "_unregister_rtp_receiver", ["self", "receiver"]),
        (RTCDtlsTransport, "_send_rtp", ["self", "data"]),
        (RTCRtpReceiver, "receive", ["self", "parameters"]),
        (RTCRtpReceiver, "stop", ["self"]),
        (RTCRtpReceiver, "getStats", ["self"]),
        (RTCRtpReceiver, "getSynchronizationSources", ["self"]),
        (RTCRtpReceiver, "_handle_rtp_packet", ["self", "packet", "arrival_time_ms"]),
        (RTCRtpReceiver, "_handle_rtcp_packet", ["self", "packet"]),
        (RTCRtpReceiver, "_handle_disconnect", ["self"]),
        (RemoteStreamTrack, "recv", ["self"]),
        (RTCRtpSender, "send", ["self", "parameters"]),
    ]
    for owner, name, wanted in needed:
        function = getattr(owner, name, None)
        if function is None:
            return f"{owner.__name__}.{name} is gone"
        found = list(inspect.signature(function).parameters)
        if found != wanted:
            return f"{owner.__name__}.{name} takes {found}, not {wanted}"
    return ""


class ReceiverPort:
    """Our end of a transceiver: what comes goes to a handler, what is told to the sender goes out here.

    Attributes:
        track: The remote track.
    """

    def __init__(self, transceiver: Any, handler: PacketHandler) -> None:
        """Take the receiver's place. Its reception must not have begun."""
        receiver = transceiver.receiver
        self.track: Any = receiver.track
        self._receiver = receiver
        self._handler = handler
        self._sender = transceiver.sender
        self._transport: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stock_stats: Callable[[], Any] = receiver.getStats
        self._stock_recv: Callable[[], Any] = self.track.recv
        self._way: _ShortWay | None = None
        self._is_read = False
        self._waiting = 0
        """Calls of the track's `recv()` that wait."""
        self._read_at = 0.0
        self._has_ended = False
        self._failing: set[str] = set()
        receiver.receive = self._receive
        receiver.stop = self._stop
        receiver.getStats = self._get_stats
        receiver.getSynchronizationSources = handler.sources
        self.track.recv = self._recv

    @property
    def ssrc(self) -> int:
        """What our reports are sent as."""
        return cast("int", self._sender._ssrc)

    @property
    def transport_id(self) -> str:
        """The transport's name in statistics."""
        return cast("str", self._receiver.transport._stats_id)

    def send_rtcp(self, packet: Any) -> None:
        """Send an RTCP packet, if the transport is up."""
        if self._transport is None or self._has_ended:
            return
        task = asyncio.get_running_loop().create_task(self._send(bytes(packet)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def queue_frame(self, frame: Any) -> None:
        """Keep a decoded frame for whoever reads the track itself; the oldest makes way."""
        queue, loop = self.track._queue, asyncio.get_running_loop()
        if queue.qsize() >= _QUEUED_FRAMES[self.track.kind]:
            queue.get_nowait()
            if loop.time() - self._read_at >= _UNREAD_SECONDS:
                loop.call_soon(self._miss_readers)  # whoever waits takes one first
        queue.put_nowait(frame)

    def _miss_readers(self) -> None:
        is_missed = asyncio.get_running_loop().time() - self._read_at >= _UNREAD_SECONDS
        if is_missed and self._is_read and not self._waiting and not self._has_ended:
            self._is_read = False
            while self.track._queue.qsize():
                self.track._queue.get_nowait()
            self._handler.read_no_more()

    def end_track(self) -> None:
        """The track has ended, for everybody. Idempotent."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._way is not None:
            self._way.forget(self)
        if self.track.readyState == "live":
            self.track._queue.put_nowait(None)  # whoever waits in recv()
            self.track.stop()

    async def _send(self, data: bytes) -> None:
        try:
            await self._transport._send_rtp(data)
        except ConnectionError:
            return

    async def _recv(self) -> Any:
        if not self._is_read:
            self._is_read = True
            self._handler.read_by_others()
        self._waiting += 1
        try:
            return await self._stock_recv()
        finally:
            self._waiting -= 1
            self._read_at = asyncio.get_running_loop().time()

    # -- what aiortc calls -----------------------------------------------------------------------------------------------

    async def _receive(self, parameters: Any) -> None:
        if self._has_ended:
            return
        self._handler.start(parameters)
        if self._transport is None:
            self._transport = self._receiver.transport
            self._transport._register_rtp_receiver(self, parameters)
            self._way = _short_way(self._transport)

    async def _stop(self) -> None:
        if self._transport is not None:
            self._transport._unregister_rtp_receiver(self)
        self._handler.end()

    async def _get_stats(self) -> Any:
        report = await self._stock_stats()
        for entry in self._handler.reports():
            report.add(entry)
        return report

    def _handle_disconnect(self) -> None:
        self._handler.end()

    async def _handle_rtp_packet(self, packet: Any, arrival_time_ms: int) -> None:
        if self._way is not None and not self._has_ended:
            self._way.learn(packet.ssrc, packet.payload_type, self)
        self.take(packet, arrival_time_ms)

    def take(self, packet: Any, arrival_ms: int) -> None:
        """Hand a packet on."""
        # hot path: every packet
        if not self._receiver._enabled:
            return
        try:
            self._handler.receive_rtp(packet, arrival_ms)
        except Exception as error:  # whatever it is, it would end the whole connection
            self._tell_of_failure("packet", error)
        else:
            if self._failing:
                self._failing.discard("packet")

    async def _handle_rtcp_packet(self, packet: Any) -> None:
        try:
            self._handler.receive_rtcp(packet)
        except Exception as error:
            self._tell_of_failure("report", error)
        else:
            self._failing.discard("report")

    def _tell_of_failure(self, what: str, error: Exception) -> None:
        """Log the first of a run: a peer could fill the log."""
        if what not in self._failing:
            self._failing.add(what)
            logger.error("a %s of a %s track could not be handled", what, self.track.kind, exc_info=error)


_HEADER = struct.Struct("!BBHLL")
_EXTENSION = struct.Struct("!HH")
_MAX_LEARNED = 64


class _Packet:
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


class _ShortWay:
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
        self._ports: dict[int, ReceiverPort] = {}
        connection.data_received = self._receive

    def learn(self, source: int, payload_type: int, port: ReceiverPort) -> None:
        """Packets of this stream and type are this port's."""
        if len(self._ports) < _MAX_LEARNED:
            self._ports[source << 7 | payload_type] = port

    def forget(self, port: ReceiverPort) -> None:
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

    def _take(self, port: ReceiverPort, data: bytes) -> None:
        transport = self._transport
        transport._RTCDtlsTransport__rx_bytes += len(data)
        transport._RTCDtlsTransport__rx_packets += 1
        try:
            packet = _Packet(self._unprotect(data), self._names)
        except (pylibsrtp.Error, ValueError, IndexError, struct.error) as error:
            logger.debug("a packet is damaged or forged: %s", error)
            return
        port.take(packet, clock.current_ms())


_ways: WeakKeyDictionary[Any, ref[_ShortWay] | None] = WeakKeyDictionary()
"""What a transport has, held by the transport's own ICE connection: a strong reference from here would keep both for ever."""


def _short_way(transport: Any) -> _ShortWay | None:
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
        way = _ShortWay(transport) if usable else None
        _ways[transport] = None if way is None else ref(way)
    return way


def take_over(peer: Any, track: Any, make_handler: Callable[[], PacketHandler]) -> ReceiverPort | None:
    """Receive a remote track ourselves.

    Args:
        peer: The RTCPeerConnection.
        track: One of its receivers' tracks.
        make_handler: Makes what is done with its packets.

    Returns:
        Our end; None if aiortc receives it already, or this aiortc is not known (`unsupported`).
    """
    reason = unsupported()
    if reason:
        logger.info("tracks are received by aiortc: %s", reason)
        return None
    for transceiver in peer.getTransceivers():
        receiver = transceiver.receiver
        if receiver.track is track:
            usable = (
                getattr(receiver, _STARTED, True) is False
                and getattr(receiver, "_enabled", None) is not None
                and callable(getattr(getattr(track, "_queue", None), "put_nowait", None))
                and isinstance(getattr(transceiver.sender, "_ssrc", None), int)
                and isinstance(getattr(receiver.transport, "_stats_id", None), str)
            )
            return ReceiverPort(transceiver, make_handler()) if usable else None
    return None
