"""What of a reply waits to be heard, and the account of it, in samples at the model's rate.

Owns: `ReplyQueue`. Driven by the reply track: filled by the session, emptied 20 ms at a time by whoever listens. Knows no
time, no aiortc, no codec (behaviour.md P1, P3, A2).
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from realtime.errors import ArgumentError
from realtime.pcm import OddByteCarry, samples_to_ms

__all__ = ["PIECES_A_SECOND", "Piece", "ReplyQueue"]

logger = logging.getLogger("realtime.tracks.reply")

PIECES_A_SECOND = 50
_REMEMBERED_REPLIES = 64
_JOINED_BYTES = 32_768
"""Chunks are put together up to so much, so that a piece as a rule lies within one: a model sends 100 to 200 ms at a time."""

_Value = TypeVar("_Value")


class Piece:
    """Twenty milliseconds of a reply, or less at its end."""

    __slots__ = ("ahead", "is_last", "pcm", "reply_id", "run", "start")

    def __init__(self, reply_id: str, run: object, start: int, pcm: bytes, ahead: bytes, *, is_last: bool) -> None:
        self.reply_id = reply_id
        self.run = run
        """The same object for pieces that follow one another without a break."""
        self.start = start
        """Number of its first sample within the run."""
        self.pcm = pcm
        self.ahead = ahead
        """What follows it, not taken yet; shorter, or empty, before the end."""
        self.is_last = is_last
        """Nothing of this reply follows."""


class _Reply:
    """One reply's audio that has not been taken yet, and its counts."""

    __slots__ = (
        "chunks",
        "ended",
        "heard",
        "offset",
        "pieces",
        "reply_id",
        "report_at",
        "reported",
        "taken",
        "waiting",
    )

    def __init__(self, reply_id: str) -> None:
        self.reply_id = reply_id
        self.chunks: deque[bytes] = deque()
        self.offset = 0
        """Bytes of the first chunk that were taken already."""
        self.waiting = 0
        """Samples in `chunks`."""
        self.taken = 0
        """Samples taken since the reply began or was resumed."""
        self.pieces = 0
        """Pieces taken since then."""
        self.heard = 0
        """Samples heard before the last resumption."""
        self.reported = 0
        """Of `taken`, what was reported."""
        self.report_at = 0
        """From which `taken` on a piece is reported without being asked for."""
        self.ended = False

    def push(self, pcm: bytes) -> None:
        """Put whole samples behind the others."""
        self.waiting += len(pcm) // 2
        if self.chunks and len(self.chunks[-1]) + len(pcm) <= _JOINED_BYTES:
            self.chunks[-1] += pcm
        else:
            self.chunks.append(pcm)

    def peek(self, samples: int) -> bytes:
        """Up to `samples` samples, left where they are."""
        wanted = samples * 2
        parts: list[bytes] = []
        offset = self.offset
        for chunk in self.chunks:
            if wanted <= 0:
                break
            part = chunk[offset : offset + wanted]
            parts.append(part)
            wanted -= len(part)
            offset = 0
        return b"".join(parts)

    def drop(self, samples: int) -> None:
        """Take `samples` samples, which are there, off the front."""
        self.waiting -= samples
        self.taken += samples
        self.offset += samples * 2
        while self.chunks and self.offset >= len(self.chunks[0]):
            self.offset -= len(self.chunks.popleft())


class ReplyQueue:
    """Replies one behind another.

    Attributes:
        waiting: Samples that wait, all replies together.
        dropped_ms: How much was left out because the queue was full.
        late_bytes: How many bytes came for replies that had been stopped or ended, or after `close`.
        stops: How often something was thrown away.
    """

    def __init__(
        self,
        rate_hz: int,
        on_played: Callable[[str, int, bool], int | None] | None,
        max_queued_seconds: float,
        *,
        look_ahead: int = 0,
    ) -> None:
        """Start empty; see `ReplyTrack` for the arguments.

        `look_ahead` is how many samples of what follows are shown with each piece, for resampling: a reply that goes on
        waits until they are there.
        """
        self.rate_hz = rate_hz
        self.waiting = 0
        self.dropped_ms = 0
        self.late_bytes = 0
        self.stops = 0
        self._on_played = on_played
        self._limit = int(_check_seconds("max_queued_seconds", max_queued_seconds) * rate_hz)
        self._ahead = look_ahead
        self._even_step = 0 if rate_hz % PIECES_A_SECOND else rate_hz // PIECES_A_SECOND
        self._playing: _Reply | None = None
        """The first of the replies, from its first piece on."""
        self._replies: OrderedDict[str, _Reply] = OrderedDict()
        self._heard: OrderedDict[str, int] = OrderedDict()
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._carry = OddByteCarry()
        self._closed = False

    # -- filled ----------------------------------------------------------------------------------------------------------

    def push(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Queue audio of a reply; gives how many samples were queued."""
        reply = self._replies.get(reply_id)
        is_over = reply.ended if reply is not None else reply_id in self._heard
        if is_over or reply_id in self._stopped or self._closed:
            self.late_bytes += len(pcm)
            return 0
        if reply is None:
            for earlier in self._replies.values():
                earlier.ended = True
            reply = self._replies[reply_id] = _Reply(reply_id)
        return self._append(reply, self._carry.push(pcm, reply_id))

    def end(self, reply_id: str) -> None:
        """No more of this reply will come."""
        reply = self._replies.get(reply_id)
        if reply is None:
            if reply_id in self._stopped or reply_id in self._heard:
                return
            reply = self._replies[reply_id] = _Reply(reply_id)
        reply.ended = True

    def stop_reply(self, reply_id: str | None) -> tuple[int, list[str]]:
        """Throw away what waits of a reply (None: of all).

        Returns:
            How much of it, or of the first, had been played in milliseconds; and whose audio was thrown away.
        """
        self.tell()
        ids = list(self._replies) if reply_id is None else [reply_id]
        played = samples_to_ms(self.played_samples(ids[0]), self.rate_hz) if ids else 0
        self.stops += 1
        for each in ids:
            reply = self._replies.get(each)
            if reply is not None:
                self._retire(reply)
            _remember(self._stopped, each, None)
        return played, ids

    def resume(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Go on with a reply that was stopped, before those that wait; gives how many samples were queued."""
        self._stopped.pop(reply_id, None)
        reply = self._replies.get(reply_id)
        if reply is None:
            reply = self._replies[reply_id] = _Reply(reply_id)
            reply.heard = self._heard.pop(reply_id, 0)
            self._playing = None
            self._replies.move_to_end(reply_id, last=False)
        return self._append(reply, self._carry.push(pcm, reply_id))

    def close(self) -> None:
        """Let go of what waits, and take nothing more."""
        self.tell()
        self._closed = True
        for reply in list(self._replies.values()):
            self._retire(reply)

    # -- read ------------------------------------------------------------------------------------------------------------

    def played_samples(self, reply_id: str) -> int:
        """Samples of a reply that were taken: pushed less what waits."""
        reply = self._replies.get(reply_id)
        return self._heard.get(reply_id, 0) if reply is None else reply.heard + reply.taken

    @property
    def is_ready(self) -> bool:
        """Whether `take` would give audio, or report an end."""
        if not self._replies:
            return False
        reply = next(iter(self._replies.values()))
        return reply.ended or reply.waiting >= self._step(reply) + self._ahead

    def tell(self) -> None:
        """Report what was taken and has not been; what comes next is reported, or waits, as that report is answered."""
        for reply in tuple(self._replies.values()):
            self._tell_of(reply)

    def take(self) -> Piece | None:
        """The next 20 ms, which have been played with that; None: there is nothing to hear now."""
        # hot path: every 20 ms
        reply, step = self._playing, self._even_step
        if reply is None or not step or not reply.chunks:
            return self._take_any()
        chunk, start, at = reply.chunks[0], reply.taken, reply.offset
        end = at + step * 2
        shown = end + self._ahead * 2
        if shown >= len(chunk):  # it may be the last, or what is shown of the next lies elsewhere
            return self._take_any()
        reply.offset = end
        reply.taken = taken = start + step
        reply.waiting -= step
        self.waiting -= step
        piece = Piece(reply.reply_id, reply, start, chunk[at:end], chunk[end:shown], is_last=False)
        if taken >= reply.report_at:
            self._report(reply, finished=False)
        return piece

    def _take_any(self) -> Piece | None:
        """`take`, wherever the piece lies and whatever ends with it."""
        while self._replies:
            reply = self._playing = self._playing or next(iter(self._replies.values()))
            step = self._step(reply)
            if not reply.ended and reply.waiting < step + self._ahead:
                return None
            pcm = reply.peek(step)
            finished = reply.ended and reply.waiting * 2 == len(pcm)
            if finished:  # what came before the last piece is told by itself
                self._tell_of(reply)
                if self._playing is not reply:  # whoever was told has stopped it
                    continue
            start = reply.taken
            self.waiting -= len(pcm) // 2
            reply.drop(len(pcm) // 2)
            reply.pieces += 1
            piece = Piece(reply.reply_id, reply, start, pcm, reply.peek(self._ahead), is_last=finished)
            if finished:
                self._retire(reply)
            if finished or reply.taken >= reply.report_at:
                self._report(reply, finished=finished)
            if pcm:
                return piece
        return None

    def _step(self, reply: _Reply) -> int:
        """Samples of the next piece: where 20 ms are no whole number of them, one more now and then."""
        at = reply.pieces
        return (at + 1) * self.rate_hz // PIECES_A_SECOND - at * self.rate_hz // PIECES_A_SECOND

    def _append(self, reply: _Reply, pcm: bytes) -> int:
        samples = len(pcm) // 2
        room = min(samples, max(0, self._limit - self.waiting))
        if room < samples:
            self.dropped_ms += samples_to_ms(samples - room, self.rate_hz)
            logger.debug("the reply queue is full; %d samples are left out", samples - room)
            pcm = pcm[: room * 2]
        if pcm:
            reply.push(pcm)
            self.waiting += room
        return room

    def _retire(self, reply: _Reply) -> None:
        self.waiting -= reply.waiting
        del self._replies[reply.reply_id]
        self._playing = None
        _remember(self._heard, reply.reply_id, reply.heard + reply.taken)

    def _tell_of(self, reply: _Reply) -> None:
        reply.report_at = 0
        if reply.taken != reply.reported:
            self._report(reply, finished=False)

    def _report(self, reply: _Reply, *, finished: bool) -> None:
        reply.reported = reply.taken
        if self._on_played is None:
            return
        next_ms = None
        try:
            next_ms = self._on_played(reply.reply_id, samples_to_ms(reply.heard + reply.taken, self.rate_hz), finished)
        except Exception:
            # Whatever it is, the sender that called recv() would end the track for it.
            logger.exception("reporting what was played of a reply failed")
        reply.report_at = 0 if next_ms is None else _samples_from(next_ms, self.rate_hz) - reply.heard


def _check_seconds(argument: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise ArgumentError(argument, seconds, "a number above 0")
    return float(seconds)


def _samples_from(ms: int, rate_hz: int) -> int:
    """The fewest samples that `samples_to_ms` gives so many milliseconds for, or more."""
    return -((rate_hz // 2 - ms * rate_hz) // 1000)


def _remember(memory: OrderedDict[str, _Value], key: str, value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED_REPLIES:
        memory.popitem(last=False)
