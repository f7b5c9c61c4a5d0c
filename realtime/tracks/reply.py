"""The spoken reply as an aiortc track: what the model says, at the pace at which it is heard.

Owns: `ReplyTrack` and the queue of reply audio. Driven by whoever calls `recv()` (an RTCRtpSender, a recorder): one call, one
frame of 20 ms. Never runs ahead of its clock, never sends in a burst, never looks at when audio was pushed
(behaviour.md P1, P3, P4, A3).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame
from numpy.typing import NDArray

from realtime.errors import ArgumentError
from realtime.media.resample import Resampler, check_rate
from realtime.pcm import OddByteCarry, samples_to_ms

__all__ = ["PlayoutClock", "ReplyTrack"]

logger = logging.getLogger("realtime.tracks.reply")

_RATE_HZ = 48_000
_FRAME_SAMPLES = 960
_FRAME_SECONDS = 0.020
_TIME_BASE = Fraction(1, _RATE_HZ)
_SILENCE = bytes(_FRAME_SAMPLES * 2)
_REMEMBERED_REPLIES = 64

_Value = TypeVar("_Value")


class PlayoutClock(Protocol):
    """Monotonic seconds, and waiting for a moment of them."""

    def now(self) -> float:
        """The present, in seconds from any zero."""
        ...

    async def sleep_until(self, when: float, /) -> object:
        """Return when `now()` is at least `when`."""
        ...


class _LoopClock:
    """The running loop's own clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, when: float, /) -> None:
        await asyncio.sleep(max(0.0, when - self.now()))


class _Reply:
    """One reply's audio that has not been taken yet, and its counts in the reply's own samples."""

    __slots__ = ("chunks", "ended", "heard", "offset", "pushed", "ready", "resampler", "taken")

    def __init__(self, rate_hz: int) -> None:
        self.chunks: deque[bytes] = deque()
        self.offset = 0
        """Bytes of the first chunk that went into the resampler already."""
        self.resampler = None if rate_hz == _RATE_HZ else Resampler(rate_hz, _RATE_HZ)
        self.ready: NDArray[np.float32] = np.zeros(0, np.float32)
        """At 48 kHz, less than a frame."""
        self.pushed = 0
        self.taken = 0
        """Samples at 48 kHz that went out in frames, since the reply began or was resumed."""
        self.heard = 0
        """Samples heard before the last resumption."""
        self.ended = False

    def read(self, samples: int) -> NDArray[np.float32]:
        """Take up to `samples` samples, at the reply's rate, off the queue."""
        wanted = samples * 2
        parts: list[bytes] = []
        while wanted and self.chunks:
            part = self.chunks[0][self.offset : self.offset + wanted]
            parts.append(part)
            wanted -= len(part)
            self.offset += len(part)
            if self.offset == len(self.chunks[0]):
                self.chunks.popleft()
                self.offset = 0
        return np.frombuffer(b"".join(parts), "<i2").astype(np.float32)


class ReplyTrack(MediaStreamTrack):
    """An audio track of 20 ms frames at 48 kHz, mono 16 bit, that plays replies one after another.

    The clock starts at the first `recv()`. pts rises by exactly 960 a frame. When there is nothing to play, or the audio
    of a reply that goes on is late, a frame is silence; after a stall of the caller the clock starts anew, so that missed
    frames are not sent in a burst. Audio waits at the model's rate and is brought to 48 kHz frame by frame.

    The queue is bounded: what would make it longer than `max_queued_seconds` is left out (`drop_newest`) and counted. A reply that was stopped
    takes no more audio until it is resumed, so late deltas are dropped (P3).

    Attributes:
        rate_hz: Samples a second of the audio that is pushed.
        dropped_ms: How much was left out because the queue was full.
        late_bytes: How many bytes came for replies that had been stopped or ended, or after the track itself was stopped.
    """

    kind = "audio"

    def __init__(
        self,
        rate_hz: int,
        on_played: Callable[[str, int, bool], None] | None = None,
        clock: PlayoutClock | None = None,
        *,
        max_queued_seconds: float = 900.0,
    ) -> None:
        """Make a silent track.

        Args:
            rate_hz: Samples a second of the PCM16 mono that will be pushed (`ModelCapabilities.output_rate_hz`).
            on_played: Called as ``on_played(reply_id, played_ms, finished)`` within each `recv()` that took audio of a
                reply, and once with ``finished=True`` when an ended reply has been played out.
            clock: What the frames keep time by; None: the running loop's clock.
            max_queued_seconds: The longest that may wait to be heard, all replies together.

        Raises:
            ArgumentError: A number is out of range.
        """
        super().__init__()
        self.rate_hz = check_rate("rate_hz", rate_hz)
        self.dropped_ms = 0
        self.late_bytes = 0
        self._on_played = on_played
        self._clock: PlayoutClock = clock or _LoopClock()
        self._limit = int(_check_seconds("max_queued_seconds", max_queued_seconds) * rate_hz)
        self._queue: OrderedDict[str, _Reply] = OrderedDict()
        self._heard: OrderedDict[str, int] = OrderedDict()
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._carry = OddByteCarry()
        self._queued = 0
        self._pts = 0
        self._due: float | None = None

    # -- what the session does -------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether `recv()` has been called: from then on the track's reading decides what has been heard (P0)."""
        return self._due is not None

    def push(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Queue audio of a reply; a new id begins a reply behind those that wait, and ends them.

        Args:
            reply_id: Whose audio.
            pcm: PCM16 mono at `rate_hz`, any number of bytes (an odd one is carried to the next push of the same reply).

        Returns:
            How many samples were queued: fewer than given if the queue is full, 0 for a reply that was stopped or ended.
        """
        reply = self._queue.get(reply_id)
        is_over = reply.ended if reply is not None else reply_id in self._heard
        if is_over or reply_id in self._stopped or self.readyState != "live":
            self.late_bytes += len(pcm)
            return 0
        if reply is None:
            for earlier in self._queue.values():
                earlier.ended = True
            reply = self._queue[reply_id] = _Reply(self.rate_hz)
        return self._append(reply, self._carry.push(pcm, reply_id))

    def end(self, reply_id: str) -> None:
        """No more audio of this reply will come. Its end is reported when what is queued has been taken."""
        reply = self._queue.get(reply_id)
        if reply is None:
            if reply_id in self._stopped or reply_id in self._heard:
                return
            reply = self._queue[reply_id] = _Reply(self.rate_hz)
        reply.ended = True

    def stop_reply(self, reply_id: str | None = None) -> int:
        """Throw away what is queued of a reply (None: of all); the very next `recv()` has none of it (P3).

        Returns:
            The reply's `played_ms`, taken before the queue is cleared (P1); for all, that of the one being heard.
        """
        ids = list(self._queue) if reply_id is None else [reply_id]
        played = self.played_ms(ids[0]) if ids else 0
        for each in ids:
            reply = self._queue.get(each)
            if reply is not None:
                self._retire(each, reply)
            _remember(self._stopped, each, None)
        return played

    def resume(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Go on with a reply that was stopped, from where it was heard; more may be pushed and it must be ended.

        Args:
            reply_id: Which.
            pcm: What had not been heard, as for `push`.

        Returns:
            How many samples were queued.
        """
        self._stopped.pop(reply_id, None)
        reply = self._queue.get(reply_id)
        if reply is None:
            reply = self._queue[reply_id] = _Reply(self.rate_hz)
            reply.heard = reply.pushed = self._heard.pop(reply_id, 0)
            self._queue.move_to_end(reply_id, last=False)
        return self._append(reply, self._carry.push(pcm, reply_id))

    def played_ms(self, reply_id: str) -> int:
        """How much of a reply has been taken by `recv()`: pushed less what is still queued, in its own time (P1).

        The last 64 replies are remembered; others are 0.
        """
        return samples_to_ms(self.played_samples(reply_id), self.rate_hz)

    def played_samples(self, reply_id: str) -> int:
        """`played_ms`, in samples at `rate_hz`."""
        reply = self._queue.get(reply_id)
        return self._heard.get(reply_id, 0) if reply is None else self._played(reply)

    def queued_ms(self) -> int:
        """How much waits to be heard, all replies together."""
        return samples_to_ms(self._queued, self.rate_hz)

    # -- what the listener does ------------------------------------------------------------------------------------------

    async def recv(self) -> AudioFrame:
        """The next 20 ms, when they are due.

        Raises:
            MediaStreamError: The track was stopped.
        """
        if self.readyState != "live":
            raise MediaStreamError
        await self._wait_for_turn()
        if self.readyState != "live":
            raise MediaStreamError
        frame = AudioFrame(format="s16", layout="mono", samples=_FRAME_SAMPLES)
        frame.sample_rate = _RATE_HZ
        frame.time_base = _TIME_BASE
        frame.pts = self._pts
        self._pts += _FRAME_SAMPLES
        frame.planes[0].update(self._take())
        return frame

    def stop(self) -> None:
        """End the track and let go of what is queued."""
        for reply_id, reply in list(self._queue.items()):
            self._retire(reply_id, reply)
        super().stop()

    async def _wait_for_turn(self) -> None:
        now = self._clock.now()
        due = now if self._due is None else self._due
        if now - due >= _FRAME_SECONDS:
            due = now
        # Taken before the wait: a second caller meanwhile gets the next frame, not the same moment.
        self._due = due + _FRAME_SECONDS
        if due > now:
            await self._clock.sleep_until(due)

    def _take(self) -> bytes:
        """The next frame's samples, and the reports of what that means for the replies."""
        while self._queue:
            reply_id, reply = next(iter(self._queue.items()))
            samples = self._next_samples(reply)
            if samples is None:
                return _SILENCE
            finished = reply.ended and not reply.chunks and not len(reply.ready)
            if finished:
                self._retire(reply_id, reply)
            self._report(reply_id, finished=finished)
            if len(samples):
                return samples.astype("<i2").tobytes().ljust(_FRAME_SAMPLES * 2, b"\0")
        return _SILENCE

    def _next_samples(self, reply: _Reply) -> NDArray[np.float32] | None:
        """Up to a frame of a reply at 48 kHz; None if there is not enough of it yet."""
        step = self.rate_hz // 50 or 1
        while len(reply.ready) < _FRAME_SAMPLES and reply.chunks:
            part = reply.read(step)
            more = part if reply.resampler is None else reply.resampler.push(part)
            reply.ready = np.concatenate((reply.ready, more)) if len(reply.ready) else more
        if reply.ended and not reply.chunks and reply.resampler is not None:
            reply.ready = np.concatenate((reply.ready, reply.resampler.flush()))
        if len(reply.ready) < _FRAME_SAMPLES and not reply.ended:
            return None
        taken, reply.ready = reply.ready[:_FRAME_SAMPLES], reply.ready[_FRAME_SAMPLES:]
        before = self._played(reply)
        reply.taken += len(taken)
        self._queued -= self._played(reply) - before
        return np.clip(np.rint(taken), -32768.0, 32767.0)

    def _played(self, reply: _Reply) -> int:
        taken = (reply.taken * self.rate_hz + _RATE_HZ // 2) // _RATE_HZ
        return min(reply.heard + taken, reply.pushed)

    def _append(self, reply: _Reply, pcm: bytes) -> int:
        samples = len(pcm) // 2
        room = min(samples, max(0, self._limit - self._queued))
        if room < samples:
            self.dropped_ms += samples_to_ms(samples - room, self.rate_hz)
            logger.debug("the reply queue is full; %d samples are left out", samples - room)
            pcm = pcm[: room * 2]
        if pcm:
            reply.chunks.append(pcm)
        reply.pushed += room
        self._queued += room
        return room

    def _retire(self, reply_id: str, reply: _Reply) -> None:
        played = self._played(reply)
        self._queued -= reply.pushed - played
        del self._queue[reply_id]
        _remember(self._heard, reply_id, played)

    def _report(self, reply_id: str, *, finished: bool) -> None:
        if self._on_played is None:
            return
        try:
            self._on_played(reply_id, self.played_ms(reply_id), finished)
        except Exception:
            # Whatever it is, the sender that called recv() would end the track for it.
            logger.exception("reporting what was played of a reply failed")


def _check_seconds(argument: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise ArgumentError(argument, seconds, "a number above 0")
    return float(seconds)


def _remember(memory: OrderedDict[str, _Value], key: str, value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED_REPLIES:
        memory.popitem(last=False)
