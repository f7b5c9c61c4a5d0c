"""Our receiver in the place of aiortc's, for one transceiver.

Owns: `ReceiverPort` and the check that this aiortc is as expected. Driven by aiortc's transport, packet by packet; what becomes
of them is a `PacketHandler`'s.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol, cast

from aiortc import RTCDtlsTransport, RTCRtpReceiver, RTCRtpSender

from realtime.tracks.aiortc_internals.expected import difference
from realtime.tracks.aiortc_internals.sender import WayOut
from realtime.tracks.aiortc_internals.short_way import ShortWay, short_way
from realtime.tracks.aiortc_names import RemoteStreamTrack

__all__ = ["PacketHandler", "ReceiverPort", "take_over", "unsupported"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_STARTED = "_RTCRtpReceiver__started"
_ESTIMATOR = "_RTCRtpReceiver__remote_bitrate_estimator"
"""A thousand objects of each video track, that only its own way of receiving needs; Python's cycle collector looks at all of them."""
_SENT_TIME = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
_QUEUED_FRAMES = {"audio": 50, "video": 2}
"""What waits for somebody who reads the track itself: the newest second of sound, two pictures."""
_UNREAD_SECONDS = 5.0
"""Nobody has taken one for so long, and they wait: nobody reads the track any more, and it is not decoded for them."""
_QUIET_SECONDS = 10.0
"""Of failures of a kind the first is logged in so long a time: a peer could fill the log."""


class PacketHandler(Protocol):
    """What is done with what comes for one track."""

    def start(self, parameters: Any) -> None:
        """Reception begins, with aiortc's RTCRtpReceiveParameters; again after each negotiation."""
        ...

    def receive_rtp(  # noqa: PLR0917  (hot path: objects and names cost)
        self,
        payload_type: int,
        source: int,
        number: int,
        timestamp: int,
        is_last: bool,
        payload: bytes,
        size: int,
        sent_at: int | None,
        arrived_at: float,
        /,
    ) -> None:
        """An authentic packet, in the order in which it came.

        Args:
            payload_type: What it carries.
            source: Its stream (SSRC).
            number: Its sequence number.
            timestamp: Its time stamp.
            is_last: Its marker bit: a picture's last packet.
            payload: Its content without padding.
            size: Bytes of content and padding.
            sent_at: When it was sent (abs-send-time, 1/2^18 s, 24 bits), if it is a picture's last, that is asked for
                (`ReceiverPort.sent_time_from`), and it says so.
            arrived_at: When it came, in monotonic seconds.
        """
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
    return difference(
        [
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
    )


class ReceiverPort:
    """Our end of a transceiver: what comes goes to a handler, what is told to the sender goes out here.

    Attributes:
        track: The remote track.
        sent_time_id: The header extension that tells when a packet was sent; 0: none does.
        sent_time_from: From then on, in monotonic seconds, the handler asks for that.
        is_burst: Several packets come at once: those of a picture.
        receiver: aiortc's, whose place this takes.
        receive_rtp: The handler's.
    """

    def __init__(self, transceiver: Any, handler: PacketHandler) -> None:
        """Take the receiver's place. Its reception must not have begun."""
        receiver = transceiver.receiver
        self.track: Any = receiver.track
        self.receiver = receiver
        self.receive_rtp = handler.receive_rtp
        self._handler = handler
        self._sender = transceiver.sender
        self._transport: Any = None
        self._send_report: Callable[[bytes], object] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stock_stats: Callable[[], Any] = receiver.getStats
        self._stock_recv: Callable[[], Any] = self.track.recv
        self._way: ShortWay | None = None
        self._is_read = False
        self._waiting = 0
        """Calls of the track's `recv()` that wait."""
        self._read_at = 0.0
        self._has_ended = False
        self._failed_at: dict[str, float] = {}
        self.sent_time_id = 0
        self.sent_time_from = float("-inf")
        self.is_burst: bool = self.track.kind == "video"
        if getattr(receiver, _ESTIMATOR, None) is not None:
            setattr(receiver, _ESTIMATOR, None)
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
        return cast("str", self.receiver.transport._stats_id)

    def send_rtcp(self, packet: Any) -> None:
        """Send an RTCP packet, if the transport is up."""
        if self._transport is None or self._has_ended:
            return
        try:
            if self._send_report is None:
                self._send_report = self._open_way_out()
            self._send_report(bytes(packet))
        except ConnectionError:
            return

    def _open_way_out(self) -> Callable[[bytes], object]:
        try:
            return WayOut(self._transport, is_rtcp=True).send
        except ConnectionError:
            raise
        except Exception as error:  # an aiortc or aioice that differs, in whatever way
            logger.info("what a sender is told is sent by aiortc: %s", error)
            return self._send_by_aiortc

    def _send_by_aiortc(self, data: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._send(data))
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
        if self.is_burst:
            known = [extension.id for extension in parameters.headerExtensions if extension.uri == _SENT_TIME]
            self.sent_time_id = known[0] if known else 0
        if self._transport is None:
            self._transport = self.receiver.transport
            self._transport._register_rtp_receiver(self, parameters)
            self._way = short_way(self._transport)

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
        """The long way: the first packet of each stream, or every one where there is no short way."""
        del arrival_time_ms  # of another clock than the short way's
        if self._way is not None and not self._has_ended:
            self._way.learn(packet.ssrc, packet.payload_type, self)
        if not self.receiver._enabled:
            return
        try:
            self.receive_rtp(
                packet.payload_type,
                packet.ssrc,
                packet.sequence_number,
                packet.timestamp,
                bool(packet.marker),
                packet.payload,
                len(packet.payload) + packet.padding_size,
                packet.extensions.abs_send_time if packet.marker else None,
                monotonic(),
            )
        except Exception as error:  # whatever it is, it would end the whole connection
            self.tell_of_failure("packet", error)

    async def _handle_rtcp_packet(self, packet: Any) -> None:
        try:
            self._handler.receive_rtcp(packet)
        except Exception as error:
            self.tell_of_failure("report", error)

    def tell_of_failure(self, what: str, error: Exception) -> None:
        """Log that a packet or a report could not be handled."""
        now = monotonic()
        if now - self._failed_at.get(what, float("-inf")) >= _QUIET_SECONDS:
            self._failed_at[what] = now
            logger.error("a %s of a %s track could not be handled", what, self.track.kind, exc_info=error)


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
