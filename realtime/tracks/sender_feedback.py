"""What the sender of a track that we receive is told: RR, REMB, NACK, PLI.

Owns: `SenderFeedback`, with the estimate of what the path carries. Driven by `rtp_receiver`, which says when; it has no timer, and
keeps no count of what came.
"""

from __future__ import annotations

from typing import Any

from realtime.tracks.aiortc_internals import ReceiverPort
from realtime.tracks.aiortc_names import (
    RTCP_PSFB_APP,
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    RtcpPsfbPacket,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    pack_remb_fci,
)
from realtime.tracks.path_estimate import PathEstimate
from realtime.tracks.rtp_streams import MAX_STREAMS

__all__ = ["SenderFeedback"]

_ESTIMATE_SECONDS = 0.080
"""What the path carries is estimated so often at most: every third frame of thirty a second. On a narrow path that ends at the same
rate, with no longer a queue, as with every frame; from 0.2 s on it does not."""


class SenderFeedback:
    """The way back to one track's sender."""

    __slots__ = ("_path", "_port")

    def __init__(self, port: ReceiverPort) -> None:
        """Prepare.

        Args:
            port: Our end of the transceiver.
        """
        self._port = port
        self._path = PathEstimate()

    def request_key_frame(self, source: int) -> None:
        """PLI (RFC 4585), for a stream."""
        self._port.send_rtcp(RtcpPsfbPacket(fmt=RTCP_PSFB_PLI, ssrc=self._port.ssrc, media_ssrc=source))

    def report_missing(self, source: int, numbers: list[int]) -> None:
        """NACK (RFC 4585), for packets of a stream."""
        packet = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=self._port.ssrc, media_ssrc=source)
        packet.lost = numbers
        self._port.send_rtcp(packet)

    def estimate(self, source: int, sent_at: int, arrived_at: float, size: int) -> float:
        """Keep the estimate of what the path carries, and tell the sender what is new (REMB).

        Args:
            source: The stream that a packet is of.
            sent_at: When the packet was sent, as it says itself.
            arrived_at: When it came.
            size: Bytes that came since the last estimate.

        Returns:
            When the next one is due: by frames rather than by packets, and not by every one.
        """
        next_at = arrived_at + _ESTIMATE_SECONDS
        self._port.sent_time_from = next_at
        path = self._path
        if len(path.sources) > MAX_STREAMS:
            path.sources.clear()  # it forgets none by itself; those that go on are back with their next frame
        told = path.add(source, sent_at, int(arrived_at * 1000), size)
        if told is not None:
            fci = pack_remb_fci(told, list(path.sources))
            self._port.send_rtcp(RtcpPsfbPacket(fmt=RTCP_PSFB_APP, ssrc=self._port.ssrc, media_ssrc=0, fci=fci))
        return next_at

    def report(self, reports: list[Any]) -> None:
        """Receiver reports (RFC 3550), if there are any."""
        if reports:
            self._port.send_rtcp(RtcpRrPacket(ssrc=self._port.ssrc, reports=reports))
