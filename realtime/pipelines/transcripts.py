"""What is said, as a stream of its own.

Owns: `TranscriptStream`, a view of a session's events. Driven by its one reader. It never changes what it passes on.
"""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar, cast

from realtime.core.events import MessageCommitted, TranscriptUpdated
from realtime.pipelines.event_stream import EventStream

__all__ = ["TranscriptStream"]

T_co = TypeVar("T_co", covariant=True)


class TranscriptStream(Generic[T_co]):
    """An async iterator of transcripts: growing (`TranscriptUpdated`), or finished (`ChatMessage`)."""

    def __init__(self, events: EventStream, *, growing: bool) -> None:
        """Look at these events from now on."""
        self._events = events
        self._growing = growing
        self._spoken: set[str] = set()

    def __aiter__(self) -> Self:
        """It is its own iterator."""
        return self

    async def __anext__(self) -> T_co:
        """The next transcript. Ends with the session, as the session's own iterators do."""
        while True:
            event = await self._events.__anext__()
            found: Any = None
            if isinstance(event, TranscriptUpdated):
                self._spoken.add(event.message_id)
                found = event if self._growing else None
            elif isinstance(event, MessageCommitted) and event.message.message_id in self._spoken:
                self._spoken.discard(event.message.message_id)
                found = None if self._growing else event.message
            if found is not None:
                return cast("T_co", found)
