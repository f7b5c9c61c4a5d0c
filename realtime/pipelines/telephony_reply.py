"""The reply's way into a telephone call, and what was heard of it there.

Owns: `CallReply`, the queue between the session's reply and the call, and the marks that are out. Driven by `ReplyPlayer`
(as its track) and by `TelephonyStream` (what the far end says). The far end buffers and plays; a mark behind each piece
comes back when that piece has been played, and only what is marked so counts as heard (behaviour.md P0, P1). Where the far
end knows no marks, a piece counts as heard once it has had the time to be played. It never touches the socket but through
`send`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from realtime import pcm
from realtime.media import g711
from realtime.media.audio import PcmConverter
from realtime.pipelines.clock import Clock, Timer
from realtime.wire.media_stream import clear_message, mark_message, media_message

__all__ = ["CALL_RATE_HZ", "CallReply"]

CALL_RATE_HZ = 8_000
"""Samples, and bytes, a second of a telephone call."""
PIECE_BYTES = 320
"""Sound leaves in pieces of 40 ms, each with its mark: that is how exactly it is known what was heard."""
_TAIL_BYTES = 160
LEAD_BYTES = 16_000
"""Sound that may be on its way or in the far end's buffer: 2 s, more than a mark takes to come back."""
_MAX_WAITING_BYTES = CALL_RATE_HZ * 900
_REMEMBERED_REPLIES = 64

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Piece:
    """Some of a reply, as it is sent."""

    reply_id: str
    payload: bytes
    end_ms: int
    """Where in the reply it ends."""
    is_last: bool = False


class _Reply:
    """One reply under way."""

    __slots__ = ("begun_ms", "converter", "cut", "ended", "played_ms", "rest")

    def __init__(self, rate_hz: int, begun_ms: int = 0) -> None:
        self.converter = PcmConverter(rate_hz, CALL_RATE_HZ)
        self.rest = bytearray()
        """Coded, and too short for a piece."""
        self.begun_ms = begun_ms
        """Where in the reply this begins: above 0 for one that was resumed."""
        self.cut = 0
        """Bytes that became pieces since then."""
        self.played_ms = begun_ms
        self.ended = False


class CallReply:
    """What the session's reply player takes for a track (`realtime.pipelines.reply.ReplySink`).

    Attributes:
        sent_bytes: Sound that was sent.
        dropped_bytes: Sound that was left out because 15 minutes of it waited (`drop_newest`), or that came for a reply
            that had been stopped or had ended.
        unknown_marks: Marks that came back for sound that had been cleared, or that nobody had sent.
        plays_until: Without marks: when all that was sent will have been played.
    """

    def __init__(
        self,
        rate_hz: int,
        *,
        stream_id: str,
        send: Callable[[str], Awaitable[object]],
        on_played: Callable[[str, int, bool], object],
        mark_names: Iterator[int],
        clock: Clock | None = None,
        plays_until: float = 0.0,
    ) -> None:
        """Wait for replies; nothing is sent before `run`.

        Args:
            rate_hz: The model's output rate.
            stream_id: The call's stream.
            send: Sends one message.
            on_played: Told of a reply, how far it was heard, and whether that is all of it.
            mark_names: Numbers that no mark of this call has had.
            clock: The far end knows no marks: what it was sent counts as heard as time passes. None: it sends them back.
            plays_until: As of the call's earlier one: what the far end still plays comes first.
        """
        self._rate_hz = rate_hz
        self._stream_id = stream_id
        self._send = send
        self._on_played = on_played
        self._mark_names = mark_names
        self._replies: OrderedDict[str, _Reply] = OrderedDict()
        self._stopped: OrderedDict[str, int] = OrderedDict()
        self._finished: OrderedDict[str, int] = OrderedDict()
        self._queue: deque[_Piece] = deque()
        self._queued_bytes = 0
        self._out: OrderedDict[str, _Piece] = OrderedDict()
        self._out_bytes = 0
        self._must_clear = False
        self._clock = clock
        self.plays_until = plays_until
        self._playing: deque[tuple[float, str]] = deque()
        """Without marks: when each piece that is out will have been played."""
        self._timer: Timer | None = None
        self._has_marks = False
        self._wake = asyncio.Event()
        self._is_live = True
        self.sent_bytes = 0
        self.dropped_bytes = 0
        self.unknown_marks = 0

    # -- as a track -----------------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether somebody listens: as long as the call lasts."""
        return self._is_live

    @property
    def readyState(self) -> str:  # noqa: N802  (the W3C's name)
        """`live`, or `ended` with the call or the session."""
        return "live" if self._is_live else "ended"

    def push(self, reply_id: str, samples: bytes) -> None:  # hot path: every chunk of a reply
        """Queue audio of a reply: PCM16 mono at the model's rate."""
        reply = self._replies.get(reply_id)
        is_over = reply.ended if reply is not None else reply_id in self._finished
        if is_over or reply_id in self._stopped or not self._is_live:
            self.dropped_bytes += len(samples) * CALL_RATE_HZ // (2 * self._rate_hz)
            return
        if reply is None:
            reply = self._replies[reply_id] = _Reply(self._rate_hz)
        reply.rest += g711.encode(reply.converter.convert(samples))
        self._cut(reply_id, reply)

    def resume(self, reply_id: str, samples: bytes) -> None:
        """Go on with a reply that was stopped, from where it was heard."""
        heard_ms = self._finished.pop(reply_id, 0)
        begun_ms = self._stopped.pop(reply_id, heard_ms)
        if reply_id not in self._replies:
            self._replies[reply_id] = _Reply(self._rate_hz, begun_ms)
        self.push(reply_id, samples)

    def end(self, reply_id: str) -> None:
        """No more of this reply comes."""
        reply = self._replies.get(reply_id)
        is_over = reply.ended if reply is not None else reply_id in self._finished
        if is_over or reply_id in self._stopped or not self._is_live:
            return
        if reply is None:
            reply = self._replies[reply_id] = _Reply(self._rate_hz)
        reply.ended = True
        reply.rest += g711.encode(reply.converter.flush())
        self._cut(reply_id, reply)
        if reply.rest:
            tail = bytes(reply.rest)
            reply.rest.clear()
            self._put(reply_id, reply, tail)
        last = self._newest_piece(reply_id)
        if last is None:
            self._finish(reply_id, reply.played_ms)
        else:
            last.is_last = True

    def stop_reply(self, reply_id: str) -> int:
        """Throw away what has not been heard of a reply, here and at the far end (P3).

        Returns:
            How far it was heard, by the marks.
        """
        if self._clock is None and not self._has_marks and self._out_bytes >= LEAD_BYTES:
            logger.warning(
                "the call has sent no mark back for %g s of sound, so none of it counts as heard; a far end without marks"
                " needs TelephonyStream.open(..., marks=False)",
                LEAD_BYTES / CALL_RATE_HZ,
            )
        reply = self._replies.pop(reply_id, None)
        if reply is None:
            played_ms = self._stopped.get(reply_id, self._finished.get(reply_id, 0))
            _remember(self._stopped, reply_id, played_ms)
            return played_ms
        _remember(self._stopped, reply_id, reply.played_ms)
        others = [piece for piece in self._out.values() if piece.reply_id != reply_id]
        waiting = [piece for piece in self._queue if piece.reply_id != reply_id]
        if len(others) < len(
            self._out
        ):  # clearing takes all that is at the far end: what is still wanted is sent again
            self._out.clear()
            self._out_bytes = 0
            waiting = others + waiting
            self._must_clear = True
            self._playing.clear()
            self.plays_until = 0.0
        self._queue = deque(waiting)
        self._queued_bytes = sum(len(piece.payload) for piece in waiting)
        self._wake.set()
        return reply.played_ms

    def tell_played(self) -> None:
        """Nothing has been kept back: what a mark says is told when it comes."""

    def queued_ms(self) -> int:
        """How much waits to be heard, here and at the far end."""
        rest = sum(len(reply.rest) for reply in self._replies.values())
        return pcm.samples_to_ms(self._queued_bytes + self._out_bytes + rest, CALL_RATE_HZ)

    def stop(self) -> None:
        """End: nothing more is sent. What the far end has, it plays."""
        self._is_live = False
        self._queue.clear()
        self._out.clear()
        self._replies.clear()
        self._playing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queued_bytes = self._out_bytes = 0
        self._wake.set()

    # -- pieces ---------------------------------------------------------------------------------------------------------

    def _cut(self, reply_id: str, reply: _Reply) -> None:
        while len(reply.rest) >= PIECE_BYTES:
            payload = bytes(reply.rest[:PIECE_BYTES])
            del reply.rest[:PIECE_BYTES]
            self._put(reply_id, reply, payload)

    def _put(self, reply_id: str, reply: _Reply, payload: bytes) -> None:
        reply.cut += len(payload)
        if self._queued_bytes + len(payload) > _MAX_WAITING_BYTES:
            self.dropped_bytes += len(payload)
            return
        end_ms = reply.begun_ms + pcm.samples_to_ms(reply.cut, CALL_RATE_HZ)
        padded = payload + g711.MU_LAW_SILENCE * (-len(payload) % _TAIL_BYTES)
        self._queue.append(_Piece(reply_id, padded, end_ms))
        self._queued_bytes += len(padded)
        self._wake.set()

    def _newest_piece(self, reply_id: str) -> _Piece | None:
        for pieces in (reversed(self._queue), reversed(self._out.values())):
            for piece in pieces:
                if piece.reply_id == reply_id:
                    return piece
        return None

    # -- the call -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send what there is to send until the end, never more than the lead ahead of what was heard.

        Raises:
            Exception: What `send` raises.
        """
        while self._is_live:
            if self._must_clear:
                self._must_clear = False
                await self._send(clear_message(self._stream_id))
            elif self._queue and self._out_bytes < LEAD_BYTES:
                await self._send_piece()
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _send_piece(self) -> None:
        # hot path: 25 times a second per call
        piece = self._queue.popleft()
        size = len(piece.payload)
        self._queued_bytes -= size
        name = f"heard-{next(self._mark_names)}"
        self._out[name] = piece
        self._out_bytes += size
        self.sent_bytes += size
        await self._send(media_message(self._stream_id, piece.payload))
        if name not in self._out:  # stopped meanwhile
            return
        if self._clock is None:
            await self._send(mark_message(self._stream_id, name))
            return
        self.plays_until = max(self.plays_until, self._clock.now()) + size / CALL_RATE_HZ
        self._playing.append((self.plays_until, name))
        self._watch()

    def _watch(self) -> None:
        """Without marks: come back when the next piece will have been played."""
        if self._clock is not None and self._timer is None and self._playing:
            self._timer = self._clock.call_at(self._playing[0][0], self._time_passed)

    def _time_passed(self) -> None:
        self._timer = None
        assert self._clock is not None
        newest = ""
        while self._playing and self._playing[0][0] <= self._clock.now():
            newest = self._playing.popleft()[1]
        if newest in self._out:
            self._pass(newest)
        self._watch()

    def pass_mark(self, name: str) -> None:
        """The far end has played all that was sent before a mark."""
        self._has_marks = True
        if name not in self._out or self._clock is not None:
            self.unknown_marks += 1
            return
        self._pass(name)

    def _pass(self, name: str) -> None:
        heard: OrderedDict[str, _Piece] = OrderedDict()  # of each reply the last piece: a mark may cover several
        while True:
            earlier, piece = self._out.popitem(last=False)
            self._out_bytes -= len(piece.payload)
            heard[piece.reply_id] = piece
            if earlier == name:
                break
        self._wake.set()
        for reply_id, piece in heard.items():
            reply = self._replies.get(reply_id)
            if reply is None:
                continue
            reply.played_ms = piece.end_ms
            if piece.is_last:
                self._finish(reply_id, piece.end_ms)
            else:
                self._on_played(reply_id, piece.end_ms, False)

    def _finish(self, reply_id: str, played_ms: int) -> None:
        self._replies.pop(reply_id, None)
        _remember(self._finished, reply_id, played_ms)
        self._on_played(reply_id, played_ms, True)


def _remember(memory: OrderedDict[str, int], reply_id: str, played_ms: int) -> None:
    memory[reply_id] = played_ms
    memory.move_to_end(reply_id)
    if len(memory) > _REMEMBERED_REPLIES:
        memory.popitem(last=False)
