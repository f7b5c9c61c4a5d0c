"""One iterator's view of a session's events, bounded.

Owns: `EventStream`. Filled by `pipelines/driver.py` (never blocks it), emptied by one application iterator. An iterator
that falls behind loses deltas first — growing transcripts, reply audio, skipped frames — and ends with `BusyError` when
1,000 other events wait; the session goes on (architecture section 5).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Self

from realtime.core.events import AudioReceived, FrameSkipped, SessionEvent, TranscriptUpdated
from realtime.errors import BusyError

__all__ = ["MAX_WAITING_EVENTS", "EventStream"]

MAX_WAITING_EVENTS = 1_000
"""Events that may wait for one iterator."""


def _is_delta(event: SessionEvent) -> bool:
    """Whether a later event makes up for its loss. A final transcript is not one: nothing follows it."""
    return isinstance(event, (AudioReceived, FrameSkipped)) or (
        isinstance(event, TranscriptUpdated) and not event.final
    )


class EventStream:
    """An async iterator of session events, from the moment it was made."""

    def __init__(self) -> None:
        """Empty."""
        self._events: deque[tuple[int, SessionEvent]] = deque()
        self._deltas: deque[tuple[int, SessionEvent]] = deque()
        self._count = 0
        self._dropped = 0
        self._finished = False
        self._error: BaseException | None = None
        self._wake = asyncio.Event()

    def __aiter__(self) -> Self:
        """It is its own iterator."""
        return self

    async def __anext__(self) -> SessionEvent:
        """The next event.

        Raises:
            BusyError: This iterator fell behind; events are lost, and it gives no more.
            RealtimeError: What ended the session, once its last event was taken.
        """
        while not self._events and not self._deltas:
            if self._finished:
                error, self._error = self._error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._take()

    @property
    def waiting(self) -> int:
        """Events that wait."""
        return len(self._events) + len(self._deltas)

    @property
    def dropped(self) -> int:
        """Events that this iterator has lost."""
        return self._dropped

    def put(self, event: SessionEvent) -> None:  # hot path: every event, every iterator
        """Let an event wait for the iterator, or lose what the bound demands. Never blocks."""
        if self._finished:
            return
        self._count += 1
        (self._deltas if _is_delta(event) else self._events).append((self._count, event))
        if len(self._events) + len(self._deltas) > MAX_WAITING_EVENTS:
            if self._deltas:
                self._deltas.popleft()
                self._dropped += 1
            else:
                self._overflow()
        self._wake.set()

    def finish(self, error: BaseException | None = None) -> None:
        """Nothing more comes: what waits is given, then `error` is raised or the iteration ends."""
        if self._finished:
            return
        self._finished = True
        self._error = error
        self._wake.set()

    def _take(self) -> SessionEvent:
        if not self._deltas or (self._events and self._events[0][0] < self._deltas[0][0]):
            return self._events.popleft()[1]
        return self._deltas.popleft()[1]

    def _overflow(self) -> None:
        self._dropped += self.waiting
        self._events.clear()
        dropped = self._dropped
        self.finish(
            BusyError(f"an iterator of the session's events fell behind and lost {dropped} of them", dropped=dropped)
        )
