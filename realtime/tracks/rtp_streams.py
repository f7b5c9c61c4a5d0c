"""The RTP streams (SSRCs) of one remote track: what came of each, for those who are owed an account of it.

Owns: `RtpStreams` — counts, jitter and the senders' reports, and what becomes of them: receiver reports, statistics, sources.
Driven by the receiver, packet by packet. Bounded: of more streams than a track has the one that was silent for longest is
forgotten. It never looks into a payload and sends nothing.
"""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import Any

from aiortc import RTCInboundRtpStreamStats, RTCRemoteOutboundRtpStreamStats, RTCRtpSynchronizationSource

from realtime.tracks.aiortc_names import RtcpReceiverInfo, clamp_packets_lost, current_datetime, datetime_from_ntp

__all__ = ["MAX_STREAMS", "RtpStream", "RtpStreams"]

MAX_STREAMS = 16
"""Streams of one track that are reported on: a peer cannot make us remember more."""
_RECENT_SECONDS = 10


class RtpStream:
    """What came of one stream: RFC 3550, A.1, A.3 and A.8."""

    __slots__ = ("clock_hz", "first", "highest", "jitter_q4", "received", "reported", "seen_at", "timestamp", "transit")

    def __init__(self, clock_hz: int, number: int, timestamp: int, arrived_at: float) -> None:
        """Begin with the first packet."""
        self.clock_hz = clock_hz
        self.first = self.highest = number
        """The highest sequence number, with the cycles it has gone through."""
        self.received = 1
        self.seen_at = arrived_at
        self.timestamp = timestamp
        self.transit = int(arrived_at * clock_hz) - timestamp
        self.jitter_q4 = 0
        self.reported = (0, 0)
        """Of the last report: packets expected, packets received."""

    def add(self, number: int, timestamp: int, arrived_at: float) -> None:
        """Count a packet (`RtpStreams.add`)."""
        # hot path: most packets
        self.received += 1
        self.seen_at = arrived_at
        ahead = (number - self.highest) & 0xFFFF
        if not 0 < ahead < 0x8000:
            return
        self.highest += ahead
        if timestamp != self.timestamp:
            transit = int(arrived_at * self.clock_hz) - timestamp
            moved = (transit - self.transit) & 0xFFFFFFFF
            self.timestamp, self.transit = timestamp, transit
            if moved > 0x80000000:  # backwards
                moved = 0x100000000 - moved
            self.jitter_q4 += moved - ((self.jitter_q4 + 8) >> 4)

    def add_run(self, count: int, number: int) -> None:
        """Count packets that came one behind the other right after another one of the same time stamp.

        Args:
            count: How many.
            number: The sequence number of the last.
        """
        self.received += count
        ahead = (number - self.highest) & 0xFFFF
        if ahead < 0x8000:
            self.highest += ahead

    @property
    def jitter(self) -> int:
        """In ticks of its clock."""
        return self.jitter_q4 >> 4

    @property
    def lost(self) -> int:
        """So many packets are missing; negative: more came than were sent."""
        return clamp_packets_lost(self.highest - self.first + 1 - self.received)

    def take_fraction_lost(self) -> int:
        """Of 256 packets since the last report so many were lost."""
        now = (self.highest - self.first + 1, self.received)
        expected, received = now[0] - self.reported[0], now[1] - self.reported[1]
        self.reported = now
        return (expected - received << 8) // expected if expected > received else 0


class RtpStreams:
    """What came of each stream."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._streams: dict[int, RtpStream] = {}
        self._sender_reports: dict[int, tuple[Any, float]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._streams)

    def add(self, source: int, number: int, timestamp: int, clock_hz: int, arrived_at: float) -> RtpStream:
        """Count a packet.

        Jitter is that of each time stamp's first packet: the others of a picture come when the path lets them.

        Args:
            source: Its stream (SSRC).
            number: Its sequence number.
            timestamp: Its time stamp.
            clock_hz: Ticks a second of that.
            arrived_at: When it came, in monotonic seconds.

        Returns:
            Its stream, which may be forgotten once a packet of another one is counted; until then it takes its packets itself.
        """
        stream = self._streams.get(source)
        if stream is None:
            if len(self._streams) >= MAX_STREAMS:
                self._forget_oldest()
            stream = self._streams[source] = RtpStream(clock_hz, number, timestamp, arrived_at)
        else:
            stream.add(number, timestamp, arrived_at)
        return stream

    def note_report(self, report: Any) -> None:
        """Take a sender's report (RtcpSrPacket); one on a stream that is not known is left out."""
        if report.ssrc in self._streams:
            self._sender_reports[report.ssrc] = (report.sender_info, monotonic())

    def receiver_reports(self) -> list[RtcpReceiverInfo]:
        """What each sender is to be told (RFC 3550, 6.4.1)."""
        reports: list[RtcpReceiverInfo] = []
        for source, stream in self._streams.items():
            last, delay = 0, 0
            if source in self._sender_reports:
                info, received_at = self._sender_reports[source]
                last = (info.ntp_timestamp >> 16) & 0xFFFFFFFF
                delay = min(0xFFFFFFFF, int((monotonic() - received_at) * 65536))
            reports.append(
                RtcpReceiverInfo(
                    ssrc=source,
                    fraction_lost=stream.take_fraction_lost(),
                    packets_lost=stream.lost,
                    highest_sequence=stream.highest & 0xFFFFFFFF,
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
            "timestamp": current_datetime(),
            "kind": kind,
            "transportId": transport_id,
        }
        found: list[Any] = [
            RTCInboundRtpStreamStats(
                type="inbound-rtp",
                id=f"inbound-rtp_{id(self)}_{source}",
                ssrc=source,
                packetsReceived=stream.received,
                packetsLost=stream.lost,
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
                remoteTimestamp=datetime_from_ntp(info.ntp_timestamp),
                **common,
            )
            for source, (info, _) in self._sender_reports.items()
        ]
        return found

    def sources(self) -> list[Any]:
        """The streams of the last ten seconds, as RTCRtpSynchronizationSources."""
        moment, now = monotonic(), current_datetime()
        return [
            RTCRtpSynchronizationSource(source=source, timestamp=now - timedelta(seconds=moment - stream.seen_at))
            for source, stream in self._streams.items()
            if moment - stream.seen_at <= _RECENT_SECONDS
        ]

    def _forget_oldest(self) -> None:
        oldest = min(self._streams, key=lambda source: self._streams[source].seen_at)
        del self._streams[oldest]
        self._sender_reports.pop(oldest, None)
