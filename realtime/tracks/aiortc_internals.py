"""Everything of aiortc that is not its public interface, in one place.

Owns: `take_over`, which puts a receiver of ours in the place of aiortc's for one transceiver, and `unsupported`, which says
why that cannot be done. Used at run time only where everything that is needed is there as expected: with any other aiortc the
stock receiver stays, and a test of this file fails. Touches, of aiortc 1.15 and 1.16:

- `RTCDtlsTransport._register_rtp_receiver`, `_unregister_rtp_receiver`, `_send_rtp`, `_stats_id`;
- what that transport calls of a receiver: `_handle_rtp_packet`, `_handle_rtcp_packet`, `_handle_disconnect`;
- `RTCRtpSender._ssrc`, `RTCRtpReceiver._enabled` (negotiation can close a direction) and `__started`, and `RemoteStreamTrack._queue`.

aiortc's own receiver object stays in its transceiver, never started: it has no thread and no buffer. Only its public methods
`receive`, `stop`, `getStats` and `getSynchronizationSources` are answered by ours.
"""

# ruff: noqa: SLF001  (that is what this file is for)

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from aiortc import RTCRtpReceiver
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpreceiver import RemoteStreamTrack
from aiortc.rtcrtpsender import RTCRtpSender

__all__ = ["PacketHandler", "ReceiverPort", "take_over", "unsupported"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_STARTED = "_RTCRtpReceiver__started"
_QUEUED_FRAMES = {"audio": 50, "video": 2}
"""What waits for somebody who reads the track itself: the newest second of sound, two pictures."""


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
        self._is_read = False
        self._has_ended = False
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
        queue = self.track._queue
        while queue.qsize() >= _QUEUED_FRAMES[self.track.kind]:
            queue.get_nowait()
        queue.put_nowait(frame)

    def end_track(self) -> None:
        """The track has ended, for everybody. Idempotent."""
        if self._has_ended:
            return
        self._has_ended = True
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
        return await self._stock_recv()

    # -- what aiortc calls -----------------------------------------------------------------------------------------------

    async def _receive(self, parameters: Any) -> None:
        if self._has_ended:
            return
        self._handler.start(parameters)
        if self._transport is None:
            self._transport = self._receiver.transport
            self._transport._register_rtp_receiver(self, parameters)

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
        if not self._receiver._enabled:
            return
        try:
            self._handler.receive_rtp(packet, arrival_time_ms)
        except Exception:  # whatever it is, it would end the whole connection
            logger.exception("a packet of a %s track could not be handled", self.track.kind)

    async def _handle_rtcp_packet(self, packet: Any) -> None:
        try:
            self._handler.receive_rtcp(packet)
        except Exception:
            logger.exception("a report on a %s track could not be handled", self.track.kind)


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
