"""A user's microphone and camera, played from files at the pace of real time.

Owns: `Microphone` (20 ms of sound every 20 ms: what it is told to say, silence otherwise) and `Camera` (pictures when
they are due, in a loop for as long as the call lasts). Driven by aiortc, which calls `recv()`; decoding runs on a worker
thread. Both keep a schedule on the clock and make no burst after a stall. Never knows a session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import islice

import av
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

from realtime.demo.media import FRAME_SAMPLES, SOUND_RATE_HZ, Picture
from realtime.demo.recording import RECORDED_RATE_HZ, Recording
from realtime.media.audio import PcmConverter
from realtime.pipelines.clock import Clock
from realtime.pipelines.worker import WorkerPool

__all__ = ["Camera", "Microphone", "PictureSource", "SoundSource"]

SoundSource = Callable[[], Iterator[bytes]]
"""Opens a sound: PCM16 mono at 48 kHz in pieces of exactly 20 ms. Called and read on a worker thread."""
PictureSource = Callable[[], Iterator[Picture]]
"""Opens a moving picture. Called and read on a worker thread."""

_FRAME_SECONDS = FRAME_SAMPLES / SOUND_RATE_HZ
_SILENCE = bytes(FRAME_SAMPLES * 2)
_BATCH_FRAMES = 50
_LOW_FRAMES = 25
_MAX_LATE_SECONDS = 0.2
_VIDEO_CLOCK_HZ = 90_000
_LOOP_GAP_SECONDS = 0.04


class Microphone(MediaStreamTrack):
    """An audio track that speaks what it is given and is silent otherwise: 48 kHz mono, 20 ms a frame.

    Attributes:
        recording: What it gave, from its first frame on.
    """

    kind = "audio"

    def __init__(self, clock: Clock, pool: WorkerPool) -> None:
        """Make a silent microphone; files are decoded on `pool`."""
        super().__init__()
        self.recording = Recording()
        self._converter = PcmConverter(SOUND_RATE_HZ, RECORDED_RATE_HZ)
        self._clock = clock
        self._pool = pool
        self._ready: deque[bytes] = deque()
        self._low = asyncio.Event()
        self._empty = asyncio.Event()
        self._begun_at: float | None = None
        self._frames = 0

    async def say(self, sound: SoundSource) -> None:
        """Speak a sound; returns when its last sample has been given. One at a time."""
        pieces = await self._pool.run(sound)
        while batch := await self._pool.run(lambda: list(islice(pieces, _BATCH_FRAMES))):
            self._ready.extend(batch)
            self._low.clear()
            self._empty.clear()
            await self._low.wait()
        if self._ready:
            await self._empty.wait()

    async def recv(self) -> av.AudioFrame:
        """Give the next 20 ms when they are due.

        Raises:
            MediaStreamError: It was stopped.
        """
        if self.readyState != "live":
            raise MediaStreamError
        now = self._clock.now()
        if self._begun_at is None:
            self._begun_at = now
            self.recording.begin(now)
        due = self._begun_at + self._frames * _FRAME_SECONDS
        if now - due > _MAX_LATE_SECONDS:  # a stall moves the schedule; what was missed is not sent in a burst
            self._begun_at += now - due
            due = now
        await self._clock.sleep_until(due)
        piece = self._ready.popleft() if self._ready else _SILENCE
        if len(self._ready) <= _LOW_FRAMES:
            self._low.set()
        if not self._ready:
            self._empty.set()
        frame = av.AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
        frame.planes[0].update(piece)
        frame.sample_rate = SOUND_RATE_HZ
        frame.time_base = Fraction(1, SOUND_RATE_HZ)
        frame.pts = self._frames * FRAME_SAMPLES
        self.recording.append(self._converter.convert(piece))
        self._frames += 1
        return frame


class Camera(MediaStreamTrack):
    """A video track that shows moving pictures one after another, in a loop.

    Attributes:
        shown: Set once every picture source has been shown to its end.
    """

    kind = "video"

    def __init__(self, clock: Clock, pool: WorkerPool, sources: Sequence[PictureSource]) -> None:
        """Make a camera that looks at `sources`, at least one; files are decoded on `pool`."""
        super().__init__()
        self.shown = asyncio.Event()
        self._clock = clock
        self._pool = pool
        self._sources = sources
        self._source = 0
        self._pictures: Iterator[Picture] | None = None
        self._begun_at: float | None = None
        self._loop_seconds = 0.0
        self._given_seconds = -1.0

    async def recv(self) -> av.VideoFrame:
        """Give the next picture when it is due; pictures whose time has passed are left out.

        Raises:
            MediaStreamError: It was stopped, or no source holds a picture.
        """
        if self.readyState != "live":
            raise MediaStreamError
        if self._begun_at is None:
            self._begun_at = self._clock.now()
        behind = self._clock.now() - self._begun_at - _MAX_LATE_SECONDS
        seconds, frame = await self._pool.run(self._next_picture, behind)
        await self._clock.sleep_until(self._begun_at + seconds)
        frame.pts = round(seconds * _VIDEO_CLOCK_HZ)
        frame.time_base = Fraction(1, _VIDEO_CLOCK_HZ)
        if self._source >= len(self._sources):
            self.shown.set()
        return frame

    def _next_picture(self, behind: float) -> tuple[float, av.VideoFrame]:
        """The next picture not older than `behind` and the time it is due, counted over all loops. On the worker."""
        empty = 0
        while empty <= len(self._sources):
            if self._pictures is None:
                self._pictures = self._sources[self._source % len(self._sources)]()
            for picture in self._pictures:
                seconds = self._loop_seconds + picture.seconds
                self._given_seconds = seconds
                empty = 0
                if seconds >= behind:
                    return seconds, picture.frame
            empty += 1
            self._pictures = None
            self._source += 1
            self._loop_seconds = max(self._loop_seconds, self._given_seconds + _LOOP_GAP_SECONDS)
        self.stop()
        raise MediaStreamError
