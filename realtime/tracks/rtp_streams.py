"""The RTP streams (SSRCs) of one remote track: what came of each, for those who are owed an account of it.

Owns: `RtpStreams` — counts, jitter and the senders' reports, and what becomes of them: receiver reports, statistics, sources.
Driven by the receiver, packet by packet. Bounded: of more streams than a track has the one that was silent for longest is
forgotten. It never looks into a payload and sends nothing.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from aiortc import clock
from aiortc.rtcrtpreceiver import RTCRtpSynchronizationSource, StreamStatistics
from aiortc.rtp import RtcpReceiverInfo
from aiortc.stats import RTCInboundRtpStreamStats, RTCRemoteOutboundRtpStreamStats

__all__ = ["MAX_STREAMS", "RtpStreams"]

MAX_STREAMS = 16
"""Streams of one track that are reported on: a peer cannot make us remember more."""
_RECENT_SECONDS = 10


class RtpStreams:
    """What came of each stream."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._streams: dict[int, StreamStatistics] = {}
        self._seen: dict[int, int] = {}
        """When its last packet came, by aiortc's clock in milliseconds."""
        self._sender_reports: dict[int, tuple[Any, float]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._streams)

    def add(self, packet: Any, clock_hz: int, arrival_ms: int) -> None:
        """Count a packet.

        Args:
            packet: The RtpPacket.
            clock_hz: Ticks a second of its time stamp.
            arrival_ms: When it came.
        """
        # hot path: every packet
        source = packet.ssrc
        stream = self._streams.get(source)
        if stream is None:
            if len(self._streams) >= MAX_STREAMS:
                self._forget_oldest()
            stream = self._streams[source] = StreamStatistics(clock_hz)
        stream.add(packet)
        self._seen[source] = arrival_ms

    def note_report(self, report: Any) -> None:
        """Take a sender's report (RtcpSrPacket); one on a stream that is not known is left out."""
        if report.ssrc in self._streams:
            self._sender_reports[report.ssrc] = (report.sender_info, time.monotonic())

    def receiver_reports(self) -> list[RtcpReceiverInfo]:
        """What each sender is to be told (RFC 3550, 6.4.1)."""
        reports: list[RtcpReceiverInfo] = []
        for source, stream in self._streams.items():
            last, delay = 0, 0
            if source in self._sender_reports:
                info, received_at = self._sender_reports[source]
                last = (info.ntp_timestamp >> 16) & 0xFFFFFFFF
                delay = min(0xFFFFFFFF, int((time.monotonic() - received_at) * 65536))
            reports.append(
                RtcpReceiverInfo(
                    ssrc=source,
                    fraction_lost=stream.fraction_lost,
                    packets_lost=stream.packets_lost,
                    highest_sequence=stream.cycles + (stream.max_seq or 0),
                    jitter=stream.jitter,
                    lsr=last,
                    dlsr=delay,
                )
            )
        return reports

    def statistics(self, kind: str, transport_id: str) -> list[Any]:
        """Each stream as aiortc's own receiver tells of it.

        Args:
            kind: The track's.
            transport_id: The transport's name in statistics.
        """
        common: dict[str, Any] = {
            "timestamp": clock.current_datetime(),
            "kind": kind,
            "transportId": transport_id,
        }
        found: list[Any] = [
            RTCInboundRtpStreamStats(
                type="inbound-rtp",
                id=f"inbound-rtp_{id(self)}_{source}",
                ssrc=source,
                packetsReceived=stream.packets_received,
                packetsLost=stream.packets_lost,
                jitter=stream.jitter,
                **common,
            )
            for source, stream in self._streams.items()
        ]
        found += [
            RTCRemoteOutboundRtpStreamStats(
                type="remote-outbound-rtp",
                id=f"remote-outbound-rtp_{id(self)}_{source}",
                ssrc=source,
                packetsSent=info.packet_count,
                bytesSent=info.octet_count,
                remoteTimestamp=clock.datetime_from_ntp(info.ntp_timestamp),
                **common,
            )
            for source, (info, _) in self._sender_reports.items()
        ]
        return found

    def sources(self) -> list[Any]:
        """The streams of the last ten seconds, as RTCRtpSynchronizationSources."""
        now_ms, now = clock.current_ms(), clock.current_datetime()
        return [
            RTCRtpSynchronizationSource(source=source, timestamp=now - timedelta(milliseconds=now_ms - seen))
            for source, seen in self._seen.items()
            if now_ms - seen <= _RECENT_SECONDS * 1000
        ]

    def _forget_oldest(self) -> None:
        oldest = min(self._seen, key=self._seen.__getitem__)
        del self._streams[oldest], self._seen[oldest]
        self._sender_reports.pop(oldest, None)
