"""The reply's packets to one peer at the time at which each is due: one timer, no task.

Owns: `ReplyFeed`. Driven by its timer, and by audio that comes while there is nothing to say. It never sends ahead of the
pace and never in a burst (behaviour.md P3, P4), and a few milliseconds behind it where several calls can share a wake-up; while
there is nothing to say it sleeps, but for a reminder now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from realtime.tracks.reply_pace import SLOT_SECONDS, PlayoutClock, PlayoutTimer, ReplyPace
from realtime.tracks.reply_packets import REMINDER_SECONDS, ReplyPackets, SlotReader

__all__ = ["PacketSink", "ReplyFeed"]


_GRID_SECONDS = 0.010
"""Packets of all calls go out at multiples of it: the first of them finds cold caches, the others do not."""
_STEP_SECONDS = 0.0005
"""A reply's first packet leaves at once; each that follows comes so much nearer to the grid. No receiver's buffer notices."""
_EXACT_SECONDS = 1e-6


class PacketSink(Protocol):
    """Where packets go."""

    def send(self, payload: bytes, pts: int, late: float, *, marker: bool) -> None:
        """Send a packet now, or nothing while negotiation has closed the direction: the reply is played all the same.

        Args:
            payload: What it says.
            pts: Its time stamp, in samples at 48 kHz since the first one.
            late: How many seconds ago it was due.
            marker: It is the first after a pause.

        Raises:
            ConnectionError: The connection is gone.
        """
        ...


class ReplyFeed:
    """Sends one peer the reply until it is stopped or something ends it."""

    __slots__ = (
        *("_call_at", "_due", "_is_over", "_now", "_on_end", "_pace", "_packets", "_reader", "_send", "_shifted"),
        "_timer",
    )

    def __init__(
        self,
        reader: SlotReader,
        pace: ReplyPace,
        packets: ReplyPackets,
        clock: PlayoutClock,
        *,
        sink: PacketSink,
        on_end: Callable[[BaseException], object],
    ) -> None:
        """Prepare; see `SendingTrack.open_feed`."""
        self._reader = reader
        self._pace = pace
        self._packets = packets
        self._now = clock.now
        self._call_at = clock.call_at
        self._send = sink.send
        self._on_end = on_end
        self._timer: PlayoutTimer | None = None
        self._due = 0.0
        self._shifted = 0.0
        """How much later than it is due the next packet is sent, so that all calls wake together."""
        self._is_over = False

    def start(self) -> None:
        """Go on with what is played now."""
        if not self._is_over:
            self._reader.begin()
            self._due = self._pace.due(self._reader.next, self._now())
            self._timer = self._call_at(self._due, self._tick)

    def stop(self) -> None:
        """Send nothing more. Idempotent."""
        self._is_over = True
        self._pace.call_no_more(self._come_back)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self, reason: BaseException) -> None:
        """Send nothing more, and say why, if it still goes on."""
        if not self._is_over:
            self.stop()
            self._on_end(reason)

    def _rest(self, now: float) -> None:
        """There is nothing to say: wait for that, or for the next reminder."""
        self._pace.call_when_ready(self._come_back)
        self._timer = self._call_at(now if self._pace.is_ready else now + REMINDER_SECONDS, self._resume)

    def _come_back(self) -> None:
        """There is something to say. Whoever brought it is not kept waiting, and who brings more does not put it off."""
        self._pace.call_no_more(self._come_back)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_at(self._now(), self._resume)

    def _resume(self) -> None:
        self._pace.call_no_more(self._come_back)
        self._reader.resume()
        self._shifted = 0.0
        now = self._now()
        self._due = due = self._pace.due(self._reader.next, now)
        if due <= now:
            self._tick()
        else:
            self._timer = self._call_at(due, self._tick)

    def _tick(self) -> None:
        # hot path: every 20 ms
        reader = self._reader
        try:
            now = self._now()
            slot = self._pace.play(reader.next, self._due)
            pts = reader.stamp(slot)
            self._send(self._packets.packet(slot), pts, now - slot.due, marker=reader.begins_speech)
            if self._is_over:
                return
            if reader.quiet and reader.is_idle:
                self._rest(now)
                return
            shifted = self._shifted
            due = slot.due + SLOT_SECONDS
            if now - shifted - due >= SLOT_SECONDS:  # so late that the time begins anew, or has done so
                due = self._pace.due(reader.next, now - shifted)
            to_grid = -due % _GRID_SECONDS
            if to_grid > _GRID_SECONDS - _EXACT_SECONDS:
                to_grid = 0.0
            self._due = due
            self._shifted = shifted = min(to_grid, shifted + _STEP_SECONDS)
            self._timer = self._call_at(due + shifted, self._tick)
        except Exception as error:  # whatever it is, the one who sends must know that nothing more comes
            self.end(error)
