"""Transcripts of the user's speech: waited for, kept in their items, and sent to a client that wants them.

Owns: `Transcripts`. Driven by the session. A transcript that grew while the user spoke is continued where it can be, and
its final form always comes whole.
"""

from __future__ import annotations

import asyncio

from realtime.errors import BusyError
from realtime.local.ids import make_id
from realtime.local.items import StoredItem
from realtime.local.listening import Spawn
from realtime.local.metrics import Metrics
from realtime.local.output import Send
from realtime.local.parts import Transcript
from realtime.wire.openai_messages import (
    RATE_LIMIT,
    ErrorDetails,
    InputTranscriptCompletedEvent,
    InputTranscriptDeltaEvent,
    InputTranscriptFailedEvent,
    TranscriptionUsage,
)

__all__ = ["Transcripts"]


class Transcripts:
    """The transcripts of one session."""

    def __init__(self, *, send: Send, metrics: Metrics, spawn: Spawn) -> None:
        """Begin with none.

        Args:
            send: Sends events.
            metrics: Where failures are counted.
            spawn: Starts a task that ends with the session.
        """
        self._send = send
        self._metrics = metrics
        self._spawn = spawn
        self._waiting: set[asyncio.Task[None]] = set()
        self._grown: dict[str, str] = {}
        self.wanted = False
        """Whether the client wants to know."""

    async def known(self) -> None:
        """Return when the words of everything that was said are known."""
        while self._waiting:
            await asyncio.wait(set(self._waiting))

    def take(self, item: StoredItem, words: asyncio.Task[Transcript], index: int = 0) -> None:
        """Take the words of a part when they are known.

        Args:
            item: The item.
            words: The words, being sought.
            index: The part's place in the item.
        """
        task = self._spawn(self._take(item, words, index))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def grow(self, item_id: str, delta: str) -> None:
        """More of what the user is saying is certain."""
        if self.wanted:
            self._grown = {item_id: self._grown.get(item_id, "") + delta}
            await self._send_delta(item_id, 0, delta)

    async def _take(self, item: StoredItem, words: asyncio.Task[Transcript], index: int) -> None:
        item_id, part = item.id, item.parts[index]
        try:
            found = await words
        except Exception as error:
            part.transcribed = True
            item.changed()
            self._metrics.count("failed_transcriptions")
            if self.wanted:
                await self._send_failed(item_id, index, error)
            return
        part.text, part.transcribed = found.text, True
        item.changed()
        if not self.wanted:
            return
        grown = self._grown.pop(item_id, "")
        rest = found.text.removeprefix(grown) if found.text.startswith(grown) else ""
        if rest:
            await self._send_delta(item_id, index, rest)
        await self._send(
            InputTranscriptCompletedEvent(
                type="conversation.item.input_audio_transcription.completed",
                event_id=make_id("event_"),
                item_id=item_id,
                content_index=index,
                transcript=found.text,
                usage=TranscriptionUsage(type="duration", seconds=round(part.audio_ms / 1000, 3)),
            )
        )

    async def _send_delta(self, item_id: str, index: int, delta: str) -> None:
        await self._send(
            InputTranscriptDeltaEvent(
                type="conversation.item.input_audio_transcription.delta",
                event_id=make_id("event_"),
                item_id=item_id,
                content_index=index,
                delta=delta,
            )
        )

    async def _send_failed(self, item_id: str, index: int, error: Exception) -> None:
        code = RATE_LIMIT if isinstance(error, BusyError) else "transcription_failed"
        await self._send(
            InputTranscriptFailedEvent(
                type="conversation.item.input_audio_transcription.failed",
                event_id=make_id("event_"),
                item_id=item_id,
                content_index=index,
                error=ErrorDetails(type="transcription_error", code=code, message=str(error)),
            )
        )
