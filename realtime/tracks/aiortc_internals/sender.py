"""The loop that sends RTP, ours in the place of aiortc's, for one sender.

Owns: `SenderPort`, the check that this aiortc is as expected, and `WayOut`, from SRTP to the socket. Driven by aiortc's sender,
which keeps everything else: its place in the transceiver, its reports (SR, SDES, BYE), statistics, what the other side
reports, retransmissions. What is sent, and when, is a `PacketFeed`'s.
"""

# ruff: noqa: SLF001  (that is what this package is for)

from __future__ import annotations

import asyncio
import logging
import socket
from asyncio import selector_events
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from aioice import Connection
from aiortc import MediaStreamError, RTCDtlsTransport, RTCRtpSender

from realtime.tracks.aiortc_internals.expected import difference
from realtime.tracks.aiortc_internals.sealing import Seal, sealer
from realtime.tracks.aiortc_names import (
    RTP_HISTORY_SIZE,
    HeaderExtensionsMap,
    RtpPacket,
    State,
    StunProtocol,
    current_ntp_time,
    random32,
    random_sequence_number,
)
from realtime.tracks.rtp_header import RtpHeader

__all__ = ["PacketFeed", "SenderPort", "port_of", "take_over_sender", "unsupported_sender"]

logger = logging.getLogger("realtime.tracks.aiortc_internals")

_OPUS = "audio/opus"
_RATE_HZ = 48_000
_SLOT_SAMPLES = 960
_COUNTED = 1 << 32
"""An NTP time counts these in a second."""
_KEPT = ("encoder", "mid", "rtp_history", "rtp_header_extensions_map", "rtp_started", "rtp_exited", "track")
_COUNTS = ("ntp_timestamp", "rtp_timestamp", "octet_count", "packet_count")


class PacketFeed(Protocol):
    """Gives the packets of a track when each is due."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """Give no more. May be called more than once."""
        ...


OpenFeed = Callable[[Any, "SenderPort", Callable[[BaseException], object]], PacketFeed | None]
"""Makes the feed of a track, which calls `SenderPort.send`, and back once when there is no more; None: the track is read."""


def unsupported_sender() -> str:
    """Why the sending loop of this aiortc cannot be replaced; empty if it can."""
    return difference(
        [
            (RTCRtpSender, "_run_rtp", ["self", "codec"]),
            (RTCRtpSender, "_next_encoded_frame", ["self", "codec"]),
            (RTCRtpSender, "_retransmit", ["self", "sequence_number"]),
            (RTCRtpSender, "replaceTrack", ["self", "track"]),
            (HeaderExtensionsMap, "set", ["self", "values"]),
            (RTCDtlsTransport, "_send_rtp", ["self", "data"]),
            (Connection, "sendto", ["self", "data", "component"]),
            (StunProtocol, "send_data", ["self", "data", "addr"]),
        ]
    )


class WayOut:
    """From a finished packet, RTP or RTCP, to the socket, without a coroutine for each of aiortc's and aioice's layers.

    Attributes:
        transport: The RTCDtlsTransport.
    """

    __slots__ = ("_address", "_at_once", "_nominated", "_pair", "_protect", "_sendto", "_udp", "transport")

    def __init__(self, transport: Any, *, is_rtcp: bool = False) -> None:
        """Make the way of a connected transport.

        Args:
            transport: The RTCDtlsTransport.
            is_rtcp: It is for RTCP packets, else for RTP.

        Raises:
            AttributeError: This aiortc or aioice has none.
        """
        self.transport = transport
        self._protect: Seal = transport._tx_srtp.protect_rtcp if is_rtcp else sealer(transport._tx_srtp)
        self._nominated: dict[int, Any] = transport.transport._connection._nominated
        self._pair: Any = None
        self._udp: Any = None
        self._sendto: Callable[[bytes, Any], object]
        self._at_once: Callable[[bytes | memoryview, Any], object] | None = None
        """The socket's own way, where asyncio's transport is one whose queue we can see."""
        self._address: Any = None
        self._look()
        transport._RTCDtlsTransport__tx_bytes += 0
        transport._RTCDtlsTransport__tx_packets += 0

    def send(self, data: bytes) -> None:
        """Protect a packet and send it.

        Raises:
            ConnectionError: The connection is gone.
        """
        # hot path: every 20 ms of speech
        transport = self.transport
        if transport._state is not State.CONNECTED:
            raise ConnectionError("the transport is not connected")
        if self._nominated.get(1) is not self._pair:
            self._look()
        sealed = self._protect(data)
        if self._at_once is None or self._udp._buffer:
            self._sendto(bytes(sealed), self._address)
        else:
            try:
                self._at_once(sealed, self._address)
            except OSError:  # full, or closed: the transport keeps it for later, or tells whom it concerns
                self._sendto(bytes(sealed), self._address)
        transport._RTCDtlsTransport__tx_bytes += len(sealed)
        transport._RTCDtlsTransport__tx_packets += 1

    def _look(self) -> None:
        """Where packets go now."""
        pair = self._nominated.get(1)
        if pair is None:
            raise ConnectionError("there is no way to the other side")
        self._pair = pair
        self._udp = udp = pair.protocol.transport
        self._sendto = udp.sendto
        self._address = pair.remote_addr
        sock: Any = getattr(udp, "_sock", None)
        is_plain = type(udp) is getattr(selector_events, "_SelectorDatagramTransport", None) and hasattr(udp, "_buffer")
        self._at_once = sock.sendto if is_plain and isinstance(sock, socket.socket) else None


class SenderPort:
    """Our loop in a sender of aiortc's.

    Attributes:
        on_sent: Called with the RTP time stamp of each packet right before it goes out; None: nobody asks.
    """

    def __init__(self, sender: Any, open_feed: OpenFeed) -> None:
        """Take the place of the sender's loop, which must not have begun."""
        self.on_sent: Callable[[int], object] | None = None
        self._sender = sender
        self._open_feed = open_feed
        self._stock_run: Callable[[Any], Any] = sender._run_rtp
        self._stock_replace: Callable[[Any], None] = sender.replaceTrack
        self._stock_retransmit: Callable[[int], Any] = sender._retransmit
        self._changed = asyncio.Event()
        self._done: asyncio.Future[BaseException | None] | None = None
        self._way: WayOut | None = None
        self._header: RtpHeader | None = None
        self._history: list[bytes] = []
        self._sent_track: Any = None
        self._is_turning = True
        """The next packet is the first of another track."""
        self._sequence_number = random_sequence_number()
        self._timestamp = random32()
        """Of the packet that was sent last."""
        self._origin = 0
        """What is added to the time stamps of the track."""
        self._sent_at: float | None = None
        self._ntp_zero = 0
        """The NTP time at which the monotonic clock was 0, looked up at each first packet: a machine's time may be set."""
        sender._run_rtp = self._run
        sender.replaceTrack = self._replace_track
        sender._retransmit = self._retransmit

    # -- what a feed calls -----------------------------------------------------------------------------------------------

    def send(self, payload: bytes, pts: int, late: float, *, marker: bool, level: int | None = None) -> None:
        """Send a packet of the present track now, unless negotiation has closed the direction; see `PacketSink`.

        Raises:
            ConnectionError: The connection is gone.
        """
        # hot path: every 20 ms of speech
        sender, header, way = self._sender, self._header, self._way
        if header is None or way is None:
            raise ConnectionError("nothing is sent yet")
        if not sender._enabled:
            return
        now = monotonic()
        if self._is_turning:
            self._turn(pts, now)
        if marker:
            self._ntp_zero = _ntp_zero(now)
        ntp = self._ntp_zero + int(now * _COUNTED)
        number = self._sequence_number
        timestamp = (self._origin + pts) & 0xFFFFFFFF
        head = header.write(number, timestamp, marker=marker, sent=ntp >> 14 & 0xFFFFFF, level=level)
        data = head + payload
        if self.on_sent is not None:
            self.on_sent(timestamp)
        try:
            way.send(data)
        except ConnectionError:
            self._send_elsewhere(data, way)
        self._history[number % RTP_HISTORY_SIZE] = data
        self._sequence_number = (number + 1) & 0xFFFF
        self._timestamp, self._sent_at = timestamp, now
        sender._RTCRtpSender__ntp_timestamp = ntp - int(
            late * _COUNTED
        )  # when it was due: that is what its time stamp says
        sender._RTCRtpSender__rtp_timestamp = timestamp
        sender._RTCRtpSender__octet_count += len(payload)
        sender._RTCRtpSender__packet_count += 1

    def _send_elsewhere(self, data: bytes, before: WayOut) -> None:
        """Go on where aiortc's own loop would: negotiation moves a sender to another transport, and stops the one that it had."""
        transport = self._sender.transport
        if transport is before.transport or transport.state != "connected":
            raise ConnectionError("the transport is not connected")
        self._way = WayOut(transport)
        self._way.send(data)

    def _turn(self, pts: int, now: float) -> None:
        """The time stamps of another track go on from those of the one before, by the time that has passed."""
        self._is_turning = False
        if self._sent_at is not None:
            self._timestamp += max(_SLOT_SAMPLES, round((now - self._sent_at) * _RATE_HZ))
        self._origin = self._timestamp - pts

    # -- what aiortc calls -----------------------------------------------------------------------------------------------

    async def _run(self, codec: Any) -> None:
        """The sender's task: send until the track ends, the connection is gone, or the sender is stopped."""
        sender = self._sender
        if codec.mimeType.lower() != _OPUS or not self._open(codec):
            await self._stock_run(codec)
            return
        sender._RTCRtpSender__rtp_started.set()
        try:
            while True:
                await self._send_track(codec)
        except (asyncio.CancelledError, ConnectionError, MediaStreamError):
            pass
        except Exception:
            logger.exception("sending the reply failed")
        track = sender.track
        sender._RTCRtpSender__track = sender._RTCRtpSender__encoder = None
        self._sent_track = self._done = None
        sender._RTCRtpSender__rtp_exited.set()
        if track is not None:
            try:
                track.stop()
            except Exception:
                logger.exception("telling of the end of the reply failed")

    def _open(self, codec: Any) -> bool:
        """Prepare to send; False: aiortc is to do it."""
        sender = self._sender
        try:
            self._way = WayOut(sender.transport)
            self._header = RtpHeader(
                codec.payloadType,
                sender._ssrc,
                sender._RTCRtpSender__mid,
                sender._RTCRtpSender__rtp_header_extensions_map,
            )
            self._ntp_zero = _ntp_zero(monotonic())
        except ConnectionError:  # aiortc finds out for itself
            return False
        except Exception as error:  # an aiortc or aioice that differs, in whatever way
            logger.info("the reply is sent by aiortc: %s", error)
            return False
        self._history = [b""] * RTP_HISTORY_SIZE
        return True

    async def _send_track(self, codec: Any) -> None:
        """Send the present track until there is another, or what it gives next."""
        sender = self._sender
        track = sender.track
        self._changed.clear()
        if track is None:
            await self._changed.wait()
            return
        if track is not self._sent_track:
            self._sent_track, self._is_turning = track, True
        self._done = asyncio.get_running_loop().create_future()
        feed = self._open_feed(track, self, self._finish)
        if feed is None:
            frame: Any = await sender._next_encoded_frame(codec)
            if frame is not None:
                level = None if frame.audio_level is None else -frame.audio_level
                for payload in frame.payloads:
                    self.send(payload, frame.timestamp, 0.0, marker=True, level=level)
            return
        try:
            feed.start()
            error = await self._done
        finally:
            feed.stop()
        if error is not None:
            raise error

    def _finish(self, error: BaseException | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(error)

    def _replace_track(self, track: Any) -> None:
        self._stock_replace(track)
        self._changed.set()
        self._finish(None)

    async def _retransmit(self, sequence_number: int) -> None:
        """Let aiortc do it; it is given the packet as it keeps those that it has sent.

        Once for each packet: one report may ask five thousand times, and all calls would wait.
        """
        if self._history:
            place = sequence_number % RTP_HISTORY_SIZE
            data = self._history[place]
            if int.from_bytes(data[2:4], "big") != sequence_number or not data:
                return
            self._history[place] = b""
            sender = self._sender
            sender._RTCRtpSender__rtp_history[place] = RtpPacket.parse(
                data, sender._RTCRtpSender__rtp_header_extensions_map
            )
        await self._stock_retransmit(sequence_number)


def _ntp_zero(now: float) -> int:
    return current_ntp_time() - int(now * _COUNTED)


def port_of(sender: Any) -> SenderPort | None:
    """Our loop in a sender; None: aiortc's runs there."""
    port = getattr(getattr(sender, "_run_rtp", None), "__self__", None)
    return port if isinstance(port, SenderPort) else None


def take_over_sender(sender: Any, open_feed: OpenFeed) -> SenderPort | None:
    """Send a sender's track ourselves, if Opus is what is negotiated.

    Args:
        sender: An RTCRtpSender.
        open_feed: Makes the feed of a track.

    Returns:
        Our loop; None if aiortc's runs already, or this aiortc is not known (`unsupported_sender`).
    """
    reason = unsupported_sender()
    if reason:
        logger.info("the reply is sent by aiortc: %s", reason)
        return None
    attributes: dict[str, Any] = getattr(sender, "__dict__", {})
    is_known = (
        all(f"_RTCRtpSender__{name}" in attributes for name in (*_KEPT, *_COUNTS))
        and attributes.get("_RTCRtpSender__started") is False
        and isinstance(attributes.get("_ssrc"), int)
        and isinstance(attributes.get("_enabled"), bool)
        and "_run_rtp" not in attributes
    )
    return SenderPort(sender, open_feed) if is_known else None
