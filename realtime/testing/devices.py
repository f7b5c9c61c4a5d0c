"""A user's microphone and camera that play what they are given, at the pace of real time.

Owns: `Microphone` (20 ms of sound every 20 ms: what it is told to say, silence otherwise) and `Camera` (pictures when
they are due, in a loop for as long as the call lasts). Driven by aiortc, which calls `recv()`; decoding runs on a worker
thread. Both keep a schedule on the clock and make no burst after a stall. Never knows a session. (A track whose frames a
test gives one by one, or by a manual clock, is `realtime.testing.FakeTrack`.)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import av
from aiortc import MediaStreamError, MediaStreamTrack

from realtime.media.audio import PcmConverter
from realtime.pipelines.clock import Clock
from realtime.pipelines.worker import WorkerPool
from realtime.testing.recording import RECORDED_RATE_HZ, Recording

__all__ = ["FRAME_SAMPLES", "SOUND_RATE_HZ", "Camera", "Microphone", "Picture", "PictureSource", "SoundSource"]

SOUND_RATE_HZ = 48_000
"""Sample rate of the microphone: what Opus works with."""
FRAME_SAMPLES = SOUND_RATE_HZ // 50
"""Samples of one 20 ms frame."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame of a camera, and when it is due."""

    seconds: float
    """Since the first frame of its source."""
    frame: av.VideoFrame
    """Fresh: nobody else holds it."""


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
        frames: How many frames it gave.
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
        self.frames = 0

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

    @staticmethod
    def seconds_of(frames: int) -> float:
        """How long so many of its frames last."""
        return frames * _FRAME_SECONDS

    def hush(self) -> None:
        """Throw away what has not been said."""
        self._ready.clear()
        self._low.set()
        self._empty.set()

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
        due = self._begun_at + self.frames * _FRAME_SECONDS
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
        frame.pts = self.frames * FRAME_SAMPLES
        self.recording.append(self._converter.convert(piece))
        self.frames += 1
        return frame


class _Program:
    """Moving pictures one after another, in a loop, from a moment on."""

    def __init__(self, sources: Sequence[PictureSource], begins_at: float) -> None:
        self.sources = sources
        self.number = 0
        """Of the source under way, counted over all loops."""
        self.pictures: Iterator[Picture] | None = None
        self.offset_seconds = begins_at
        self.given_seconds = begins_at - _LOOP_GAP_SECONDS


class Camera(MediaStreamTrack):
    """A video track that shows moving pictures one after another, in a loop.

    Attributes:
        shown: Set once every picture source has been shown to its end.
        frames: How many pictures it gave.
    """

    kind = "video"

    def __init__(self, clock: Clock, pool: WorkerPool, sources: Sequence[PictureSource]) -> None:
        """Make a camera that looks at `sources`, at least one; files are decoded on `pool`."""
        super().__init__()
        self.shown = asyncio.Event()
        self.frames = 0
        self._clock = clock
        self._pool = pool
        self._begun_at: float | None = None
        self._given_seconds = -_LOOP_GAP_SECONDS
        self._program = _Program(sources, 0.0)

    def show(self, sources: Sequence[PictureSource]) -> None:
        """Look at other pictures from the next one on."""
        began = self._begun_at
        now = 0.0 if began is None else self._clock.now() - began
        self.shown.clear()
        self._program = _Program(sources, max(now, self._given_seconds + _LOOP_GAP_SECONDS))

    async def recv(self) -> av.VideoFrame:
        """Give the next picture when it is due; pictures whose time has passed are left out.

        Raises:
            MediaStreamError: It was stopped, or no source holds a picture.
        """
        if self.readyState != "live":
            raise MediaStreamError
        if self._begun_at is None:
            self._begun_at = self._clock.now()
        while True:
            program = self._program
            behind = self._clock.now() - self._begun_at - _MAX_LATE_SECONDS
            picture = await self._pool.run(_next_picture, program, behind)
            if picture is None:
                self.stop()
                raise MediaStreamError
            seconds, frame = picture
            await self._clock.sleep_until(self._begun_at + seconds)
            if program is self._program:  # else the camera was turned meanwhile
                break
        frame.pts = round(seconds * _VIDEO_CLOCK_HZ)
        frame.time_base = Fraction(1, _VIDEO_CLOCK_HZ)
        self._given_seconds = seconds
        self.frames += 1
        if program.number >= len(program.sources):
            self.shown.set()
        return frame


def _next_picture(program: _Program, behind: float) -> tuple[float, av.VideoFrame] | None:
    """The next picture not older than `behind` and the time it is due, counted over all loops. On the worker."""
    empty = 0
    while empty <= len(program.sources):
        if program.pictures is None:
            program.pictures = program.sources[program.number % len(program.sources)]()
        for picture in program.pictures:
            seconds = program.offset_seconds + picture.seconds
            program.given_seconds = seconds
            empty = 0
            if seconds >= behind:
                return seconds, picture.frame
        empty += 1
        program.pictures = None
        program.number += 1
        program.offset_seconds = max(program.offset_seconds, program.given_seconds + _LOOP_GAP_SECONDS)
    return None
