"""What aiortc's public interface does not tell of a transport, asked in one place.

Owns: `offer_loopback` (a candidate at 127.0.0.1, which aioice leaves out and has no setting for), `Heartbeat` (when something was last heard of the other
side), `watch_sent` (which RTP timestamps go out) and `quality_of` (loss, jitter, round trip). Driven by `realtime.web.peer`. The only module of the room that knows private
names of aiortc and aioice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aiortc import RTCPeerConnection

from realtime.pipelines.clock import Clock
from realtime.pipelines.media import watch_packets

__all__ = ["Heartbeat", "offer_loopback", "quality_of", "watch_sent"]

_LOOPBACK = "127.0.0.1"
_SOUND_TICKS_PER_MS = 48


def _transports(pc: RTCPeerConnection) -> list[Any]:
    """The DTLS transports of a peer connection, each once."""
    found: list[Any] = [each.receiver.transport for each in pc.getTransceivers()]
    if pc.sctp is not None:
        found.append(pc.sctp.transport)
    return list(dict.fromkeys(found))


def offer_loopback(pc: RTCPeerConnection) -> None:
    """Let a peer connection that has not gathered yet be reached at 127.0.0.1 too. No other one is touched."""
    for dtls in _transports(pc):
        connection: Any = dtls.transport.iceGatherer._connection  # noqa: SLF001
        gather = connection.get_component_candidates

        def with_loopback(component: int, addresses: list[str], *rest: Any, gather: Any = gather, **more: Any) -> Any:
            return gather(component, [*addresses, _LOOPBACK], *rest, **more)

        connection.get_component_candidates = with_loopback


def watch_sent(sender: Any, on_packet: Callable[[int], None]) -> None:
    """Call `on_packet` with the RTP timestamp of each packet that a sender sends, as it is sent.

    Args:
        sender: An aiortc RTCRtpSender whose peer connection has its descriptions.
        on_packet: Called synchronously, before the packet goes out.
    """
    watch_packets(sender, on_packet)  # those that the session sends itself; what follows is for those that aiortc sends
    transport: Any = sender.transport
    ssrc: bytes = sender._ssrc.to_bytes(4, "big")  # noqa: SLF001
    send = transport._send_rtp  # noqa: SLF001

    async def send_watched(data: bytes) -> None:  # hot path: 50 a second
        if data[8:12] == ssrc and not 192 <= data[1] <= 223:  # RTP, not RTCP (RFC 5761)
            on_packet(int.from_bytes(data[4:8], "big"))
        await send(data)

    transport._send_rtp = send_watched  # noqa: SLF001


class Heartbeat:
    """When something was last heard of the other side.

    Media, RTCP and data count by themselves. When none has come for a while the other side is asked with a STUN request,
    which every ICE agent answers: one that only listens is not taken for gone.
    """

    def __init__(self, pc: RTCPeerConnection, clock: Clock, *, ask_after_seconds: float) -> None:
        """Take a peer connection that has its transports.

        Args:
            pc: The peer connection.
            clock: What quiet is measured by.
            ask_after_seconds: A peer that has been quiet for so long is asked whether it is there.
        """
        self._pc = pc
        self._ask_after_seconds = ask_after_seconds
        self._clock = clock
        self._heard_at = clock.now()
        self.missed = 0
        """Looks in a row that found nothing new."""
        self._bytes = -1
        self._asking: asyncio.Task[None] | None = None

    @property
    def quiet_seconds(self) -> float:
        """How long nothing has been heard."""
        return self._clock.now() - self._heard_at

    @property
    def figures(self) -> dict[str, int]:
        """Packets and bytes both ways, since the beginning."""
        summed = {"received": 0, "received_bytes": 0, "sent": 0, "sent_bytes": 0}
        for dtls in _transports(self._pc):
            report: dict[str, Any] = dtls._get_stats()  # noqa: SLF001
            for each in report.values():
                summed["received"] += getattr(each, "packetsReceived", 0)
                summed["received_bytes"] += getattr(each, "bytesReceived", 0)
                summed["sent"] += getattr(each, "packetsSent", 0)
                summed["sent_bytes"] += getattr(each, "bytesSent", 0)
        return summed

    def begin(self) -> None:
        """It is connected: heard just now."""
        self._hear()

    def _hear(self) -> None:
        self._heard_at = self._clock.now()
        self.missed = 0

    async def look(self) -> None:
        """Compare what has come with what had; ask, if nothing has for a while. Cheap; twice a second."""
        received = 0
        for dtls in _transports(self._pc):
            report: dict[str, Any] = dtls._get_stats()  # noqa: SLF001
            received += sum(getattr(each, "bytesReceived", 0) for each in report.values())
        if received != self._bytes:
            self._bytes = received
            self._hear()
            return
        self.missed += 1
        if self.quiet_seconds >= self._ask_after_seconds and (self._asking is None or self._asking.done()):
            self._asking = asyncio.get_running_loop().create_task(self._ask(), name="realtime.web asking a peer")

    async def _ask(self) -> None:
        """Send one STUN request on each pair in use. No answer is an answer too."""
        for dtls in _transports(self._pc):
            connection: Any = dtls.transport.iceGatherer._connection  # noqa: SLF001
            password = connection.remote_password
            for pair in list(connection._nominated.values()):  # noqa: SLF001
                try:
                    await pair.protocol.request(
                        connection.build_request(pair, nominate=False),
                        pair.remote_addr,
                        integrity_key=password.encode(),
                        retransmissions=0,
                    )
                except Exception:  # noqa: S112  (no answer, or the socket has gone: both mean that nothing was heard)
                    continue
                self._hear()

    async def aclose(self) -> None:
        """Ask no more."""
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking])


def quality_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Loss, jitter and round trip of the sound, of an aiortc statistics report; what is not known is left out."""
    quality: dict[str, Any] = {}
    for each in report.values():
        if getattr(each, "kind", None) != "audio":
            continue
        if each.type == "inbound-rtp":
            quality["lost"] = max(0, each.packetsLost)
            quality["jitter_ms"] = round(each.jitter / _SOUND_TICKS_PER_MS, 1)
        elif each.type == "remote-inbound-rtp":
            quality["sent_lost"] = max(0, each.packetsLost)
            if each.roundTripTime is not None:
                quality["rtt_ms"] = round(each.roundTripTime * 1000, 1)
    return quality
