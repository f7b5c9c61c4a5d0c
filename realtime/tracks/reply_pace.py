"""When each 20 ms of the reply are due, and that everybody who listens gets the same ones.

Owns: `ReplyPace` and the few `Slot`s that were played last. Driven by the tracks that carry the reply: whoever asks first for a slot makes it be
played, the others get what it got. Never runs ahead of its clock and never in a burst (behaviour.md P3, P4).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from realtime.tracks.reply_queue import Piece, ReplyQueue

__all__ = ["SLOT_SECONDS", "LoopClock", "PlayoutClock", "PlayoutTimer", "ReplyPace", "Slot"]

SLOT_SECONDS = 0.020
_REMEMBERED_SLOTS = 3
"""A listener that is further behind goes on with the oldest of these: it misses what came before, and never bursts."""


class PlayoutTimer(Protocol):
    """What `PlayoutClock.call_at` gives."""

    def cancel(self) -> object:
        """Do not call back."""
        ...


class PlayoutClock(Protocol):
    """Monotonic seconds, and waiting for a moment of them."""

    def now(self) -> float:
        """The present, in seconds from any zero."""
        ...

    async def sleep_until(self, when: float, /) -> object:
        """Return when `now()` is at least `when`."""
        ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> PlayoutTimer:
        """Call back once `now()` has reached `when`."""
        ...


class LoopClock:
    """The running loop's own clock."""

    def now(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, when: float, /) -> None:
        """Return when the loop's time is at least `when`."""
        await asyncio.sleep(max(0.0, when - self.now()))

    def call_at(self, when: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        """Call back once the loop's time has reached `when`."""
        return asyncio.get_running_loop().call_at(when, callback)


class Slot:
    """Twenty milliseconds of playing: a piece of a reply, or silence."""

    __slots__ = ("due", "index", "packet", "piece", "stops")

    def __init__(self, index: int, due: float, piece: Piece | None, stops: int) -> None:
        self.index = index
        self.due = due
        """When, by the clock."""
        self.piece = piece
        """None: silence."""
        self.stops = stops
        """How often the queue had been cut when it was played."""
        self.packet: bytes | None = None
        """It as an Opus packet, once that was made."""


class ReplyPace:
    """Plays the queue, one slot every 20 ms while somebody asks."""

    def __init__(self, queue: ReplyQueue, clock: PlayoutClock) -> None:
        """The time begins with the first slot that is asked for."""
        self._queue = queue
        self._clock = clock
        self._slots: deque[Slot] = deque(maxlen=_REMEMBERED_SLOTS)
        self._base: tuple[int, float] | None = None
        self._idle: set[Callable[[], object]] = set()
        self.next_index = 0
        """The slot that is played next."""

    @property
    def is_read(self) -> bool:
        """Whether anybody has asked for a slot."""
        return self._base is not None

    def catch_up(self, index: int) -> int:
        """`index`, or the oldest slot that is still remembered if that is later."""
        return max(index, self._slots[0].index) if self._slots else index

    def resume(self, index: int) -> int:
        """Where a listener goes on that waited for audio and has had everything before `index`.

        At the first sound that others who waited were played before it, else at the slot that is played next.
        """
        missed = (slot.index for slot in self._slots if slot.index >= index and slot.piece is not None)
        return next(missed, max(index, self.next_index))

    async def slot(self, index: int) -> Slot:
        """The slot of this number, when it is due; the next one if it was left out or is forgotten."""
        now = self._clock.now()
        due = self.due(index, now)
        if due > now:
            await self._clock.sleep_until(due)
        return self.play(index, due)

    def due(self, index: int, now: float) -> float:
        """When the slot of this number is due, seen from the present; after a long pause the time begins anew."""
        if self._base is None:
            self._base = (index, now)
        first, at = self._base
        due = at + (index - first) * SLOT_SECONDS
        if index >= self.next_index and now - due >= SLOT_SECONDS:
            # Nobody asked for a while: the time begins anew, so that nothing is made up for.
            self._base = (index, now)
            return now
        return due

    def play(self, index: int, due: float) -> Slot:
        """The slot of this number, which is due; the next one if it was left out or is forgotten."""
        if index >= self.next_index:
            self.next_index = index + 1
            self._base = (index + 1, due + SLOT_SECONDS)
            slot = Slot(index, due, self._queue.take(), self._queue.stops)
            self._slots.append(slot)
            return slot
        return next(slot for slot in self._slots if slot.index >= index)

    def silence(self, replies: list[str]) -> None:
        """What was played of stopped replies and not heard by everybody yet is heard by nobody more (P3)."""
        for slot in self._slots:
            if slot.piece is not None and slot.piece.reply_id in replies:
                slot.piece = slot.packet = None

    async def wait_for_audio(self, until: float) -> None:
        """Return when there is something to play, when `wake` is called, or at the time `until`."""
        if self._queue.is_ready or self._clock.now() >= until:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            if not waiting.done():
                waiting.set_result(None)

        timer = self._clock.call_at(until, finish)
        self._idle.add(finish)
        try:
            await waiting
        finally:
            timer.cancel()
            self._idle.discard(finish)

    @property
    def is_ready(self) -> bool:
        """Whether there is something to play."""
        return self._queue.is_ready

    def call_when_ready(self, callback: Callable[[], object]) -> None:
        """Call back, at once and as often as that is, when there is something to play or `wake` is called."""
        self._idle.add(callback)

    def call_no_more(self, callback: Callable[[], object]) -> None:
        """Undo `call_when_ready`."""
        self._idle.discard(callback)

    def wake(self) -> None:
        """Let those who wait for audio look again."""
        for callback in tuple(self._idle):
            callback()

    def wake_if_ready(self) -> None:
        """Let them look if there is something to play."""
        if self._idle and self._queue.is_ready:
            self.wake()
