"""The reply on its way to one peer: the track that a peer connection is given instead of the reply track.

Owns: `SendingTrack`. Driven by its feed, if the peer connection's sender is one of ours, else by aiortc's RTCRtpSender,
which sends a packet as it is. Internal to this room: whoever calls `recv()` of the reply track itself always gets frames. It
never plays faster than the pace says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from aiortc import MediaStreamError, MediaStreamTrack
from av import AudioFrame
from av.packet import Packet

from realtime.tracks.reply_feed import PacketSink, ReplyFeed
from realtime.tracks.reply_frames import FRAME_TIME_BASE, FrameMaker, make_frame
from realtime.tracks.reply_pace import PlayoutClock, ReplyPace, Slot
from realtime.tracks.reply_packets import REMINDER_SECONDS, ReplyPackets, SlotReader

__all__ = ["SendingTrack"]

_Packet: TypeAlias = "Packet[Any]"


class SendingTrack(MediaStreamTrack):
    """What one peer is sent: `recv()` gives an `av.Packet` if Opus was negotiated, else a frame; with a feed, nobody calls it.

    When aiortc stops it, which is when its peer connection closes, the reply track is told; `release` parts from it first.

    Attributes:
        reply: The reply track that it stands for.
    """

    kind = "audio"

    def __init__(
        self,
        pace: ReplyPace,
        packets: ReplyPackets,
        clock: PlayoutClock,
        *,
        rate_hz: int,
        takes_opus: Callable[[], bool],
        reply: MediaStreamTrack,
        on_begin: Callable[[SendingTrack], None],
        on_stop: Callable[[SendingTrack], None],
    ) -> None:
        """Prepare for one peer.

        Args:
            pace: When each slot is due.
            packets: The encoder, shared by all peers.
            clock: What the pace goes by.
            rate_hz: Of the pieces, for frames.
            takes_opus: Whether the codec that was negotiated is Opus; asked once, at the first `recv()`.
            reply: The track that it stands for.
            on_begin: Told when its peer connection begins to send it.
            on_stop: Told once when it was stopped and had not been released.
        """
        super().__init__()
        self.reply = reply
        self._pace = pace
        self._packets = packets
        self._clock = clock
        self._takes_opus = takes_opus
        self._on_begin = on_begin
        self._on_stop = on_stop
        self._maker = FrameMaker(rate_hz)
        self._reader = SlotReader(pace, packets)
        self._is_opus: bool | None = None
        self._released = False
        self._feed: ReplyFeed | None = None

    @property
    def has_begun(self) -> bool:
        """Whether its peer connection has begun to send it."""
        return self._is_opus is not None

    def open_feed(self, sink: PacketSink, on_end: Callable[[BaseException], object]) -> ReplyFeed:
        """Send its packets, in place of `recv()`; from `ReplyFeed.start` on.

        Args:
            sink: Where they go.
            on_end: Told once when there are no more: MediaStreamError once the track was stopped, or why sending failed.
        """
        self._is_opus = True
        self._begin()
        self._feed = ReplyFeed(self._reader, self._pace, self._packets, self._clock, sink=sink, on_end=on_end)
        if self.readyState != "live":
            self._feed.end(MediaStreamError())
        return self._feed

    def release(self) -> None:
        """Send no more of the reply; it goes on elsewhere."""
        self._released = True
        self._pace.wake()
        if self._feed is not None:
            self._feed.stop()

    def stop(self) -> None:
        """End the track."""
        was_live = self.readyState == "live"
        super().stop()
        self._pace.wake()
        if self._feed is not None:
            self._feed.end(MediaStreamError())
        if was_live and not self._released:
            self._on_stop(self)

    async def recv(self) -> AudioFrame | _Packet:
        """What is to be sent next, when it is due.

        Raises:
            MediaStreamError: The track was stopped.
        """
        if self._is_opus is None:
            self._is_opus = self._takes_opus()
            self._begin()
            self._reader.begin()
        self._check_live()
        if self._is_opus and self._reader.is_idle:
            await self._pace.wait_for_audio(self._clock.now() + REMINDER_SECONDS)
            self._reader.resume()
        slot = await self._next_slot()
        self._check_live()
        pts = self._reader.stamp(slot)
        if not self._is_opus:
            return make_frame(self._maker.make(slot), pts)
        packet = Packet(self._packets.packet(slot))
        packet.pts, packet.time_base = pts, FRAME_TIME_BASE
        return packet

    async def _next_slot(self) -> Slot:
        reader = self._reader
        if self._released:  # nothing is played for it any more
            await self._clock.sleep_until(self._clock.now() + REMINDER_SECONDS)
            return Slot(reader.next, self._clock.now(), None, 0)
        index = self._pace.catch_up(reader.next)
        reader.next = index + 1  # before the wait: a second caller meanwhile gets the next one
        return await self._pace.slot(index)

    def _begin(self) -> None:
        if not self._released and self.readyState == "live":
            self._on_begin(self)

    def _check_live(self) -> None:
        if self.readyState != "live":
            raise MediaStreamError
