"""The reply as an application reads it, chunk by chunk.

Owns: `AudioStream` and what waits for its reader. Driven by `ReplyPlayer`, which puts in what arrives, and by whoever iterates. It
decides nothing: what its reader came back for it tells the player (behaviour.md P0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from realtime.pipelines.channel import Channel, ChannelClosed

__all__ = ["AudioStream", "Chunk"]

_READER_SECONDS = 600
"""Reply audio that may wait for one reader; the oldest is dropped beyond."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a reply on its way to a reader."""

    reply_id: str
    pcm: bytes
    end: int
    """Samples of the reply up to its end."""
    is_last: bool = False
    """The mark behind the last piece; it holds no audio."""


class AudioStream:
    """Reply audio as raw PCM16 mono chunks, from the moment it was made, across replies.

    Async-iterate it. A chunk counts as heard when the next one is asked for.
    """

    def __init__(
        self,
        rate_hz: int,
        *,
        on_read: Callable[[AudioStream, Chunk], None],
        on_closed: Callable[[], None],
    ) -> None:
        """Start to listen.

        Args:
            rate_hz: Samples a second.
            on_read: Told of each chunk that was heard, and of the mark behind the last of a reply.
            on_closed: Told that nobody listens here any more.
        """
        self.rate_hz = rate_hz
        """Samples a second."""
        self._on_read = on_read
        self._on_closed = on_closed
        self._channel: Channel[Chunk] = Channel(
            rate_hz * 2 * _READER_SECONDS, "drop_oldest", weigh=lambda chunk: len(chunk.pcm)
        )
        self._in_hand: Chunk | None = None

    def __aiter__(self) -> Self:
        """It is its own iterator."""
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, once it has arrived. Ends with the session."""
        heard, self._in_hand = self._in_hand, None
        if heard is not None:
            self._on_read(self, heard)
        while True:
            try:
                chunk = await self._channel.receive()
            except ChannelClosed:
                raise StopAsyncIteration from None
            if not chunk.is_last:
                self._in_hand = chunk
                return chunk.pcm
            self._on_read(self, chunk)

    async def aclose(self) -> None:
        """Listen no more."""
        self._channel.close()
        self._channel.clear()
        self._in_hand = None
        self._on_closed()

    @property
    def dropped_bytes(self) -> int:
        """What was lost because this reader was more than ten minutes behind."""
        return self._channel.statistics().dropped_weight

    @property
    def waiting_bytes(self) -> int:
        """What waits for this reader."""
        return self._channel.statistics().weight

    @property
    def closed(self) -> bool:
        """Whether it listens no more."""
        return self._channel.closed

    def put(self, chunk: Chunk) -> None:
        """Let a chunk wait."""
        if not self._channel.closed:
            self._channel.send_nowait(chunk)

    def forget(self, reply_id: str) -> None:
        """What waits of a stopped reply is not wanted any more, and what is in hand was not heard to its end."""
        self._channel.discard(lambda chunk: chunk.reply_id == reply_id)
        if self._in_hand is not None and self._in_hand.reply_id == reply_id:
            self._in_hand = None

    def close(self) -> None:
        """Nothing more comes; what waits is still given."""
        self._channel.close()
