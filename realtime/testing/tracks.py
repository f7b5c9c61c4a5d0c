"""A camera or a microphone by script.

Owns: `FakeTrack`, an aiortc track. Driven by whoever calls `recv()`, and by the test: by a clock or by hand. It never
touches a device or the network.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Literal

import numpy as np
from aiortc import MediaStreamError, MediaStreamTrack
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray

from realtime.errors import ArgumentError
from realtime.pcm import ms_to_samples
from realtime.pipelines.clock import Clock

__all__ = ["FakeTrack"]

Frame = AudioFrame | VideoFrame
_VIDEO_RATE = 90_000  # RTP's clock for video, which aiortc's frames carry


class FakeTrack(MediaStreamTrack):
    """A track that gives the frames of a test.

    By hand: ``track.push(frame)`` gives one, ``track.end()`` ends it; `recv` waits for them. By a clock: frames given at
    the start come when their time has come. An exception among the frames is raised by `recv` in its turn, and the track
    goes on after it.

    ::

        microphone = FakeTrack.audio(pcm, clock=clock)
        camera = FakeTrack.video(size=(640, 480), fps=30, seconds=2, clock=clock)
        by_hand = FakeTrack("video")
        by_hand.push(frame)

    Attributes:
        given: How many frames were received.
    """

    def __init__(
        self,
        kind: Literal["audio", "video"],
        frames: Iterable[Frame | BaseException] = (),
        *,
        clock: Clock | None = None,
        ends: bool | None = None,
    ) -> None:
        """Make a track.

        Args:
            kind: ``audio`` or ``video``.
            frames: What it gives first, made as they are needed.
            clock: Paces them by their pts, from the first `recv` on; None: each is ready at once.
            ends: Whether it ends after `frames`; default: if there are any.
        """
        if kind not in ("audio", "video"):
            raise ArgumentError("kind", kind, "'audio' or 'video'")
        self.kind = kind
        super().__init__()
        self.given = 0
        self._frames: Iterator[Frame | BaseException] = iter(frames)
        self._pushed: deque[Frame | BaseException] = deque()
        self._clock = clock
        self._ends = ends if ends is not None else frames != ()
        self._zero: tuple[float, float] | None = None
        self._changed = asyncio.Event()

    @classmethod
    def audio(
        cls,
        pcm: bytes | None = None,
        *,
        rate_hz: int = 48_000,
        seconds: float = 1.0,
        frame_ms: int = 20,
        clock: Clock | None = None,
        ends: bool = True,
    ) -> FakeTrack:
        """A microphone.

        Args:
            pcm: PCM16 mono at `rate_hz`; None: silence.
            rate_hz: Its rate, and the frames'.
            seconds: How much silence, without `pcm`.
            frame_ms: Of each frame; the last is filled up with silence.
            clock: Paces it.
            ends: Whether it ends after its sound.
        """
        sound = bytes(2 * round(seconds * rate_hz)) if pcm is None else pcm
        return cls("audio", _audio_frames(sound, rate_hz, ms_to_samples(frame_ms, rate_hz)), clock=clock, ends=ends)

    @classmethod
    def video(
        cls,
        picture: Callable[[int], NDArray[np.uint8]] | None = None,
        *,
        size: tuple[int, int] = (64, 48),
        fps: float = 30.0,
        seconds: float = 1.0,
        clock: Clock | None = None,
        ends: bool = True,
    ) -> FakeTrack:
        """A camera.

        Args:
            picture: Gives frame n as an (h, w, 3) RGB array; None: plain grays of `size`, each frame another.
            size: Width and height, without `picture`.
            fps: Frames a second, by their pts.
            seconds: How many of them.
            clock: Paces it.
            ends: Whether it ends after its pictures.
        """
        width, height = size

        def gray(number: int) -> NDArray[np.uint8]:
            return np.full((height, width, 3), number * 37 % 256, dtype=np.uint8)

        return cls("video", _video_frames(picture or gray, fps, round(seconds * fps)), clock=clock, ends=ends)

    def push(self, frame: Frame | BaseException) -> None:
        """Give a frame, or an exception for `recv` to raise, after those given before."""
        self._pushed.append(frame)
        self._ends = False
        self._changed.set()

    def end(self) -> None:
        """End the track once its frames are taken."""
        self._ends = True
        self._changed.set()

    async def recv(self) -> Frame:
        """The next frame, in its time.

        Raises:
            MediaStreamError: The track has ended.
        """
        while True:
            if self.readyState != "live":
                raise MediaStreamError
            frame = next(self._frames, None)
            if frame is None and self._pushed:
                frame = self._pushed.popleft()
            if frame is not None:
                break
            if self._ends:
                self.stop()
                raise MediaStreamError
            self._changed.clear()
            await self._changed.wait()
        if isinstance(frame, BaseException):
            raise frame
        await self._pace(frame)
        self.given += 1
        return frame

    async def _pace(self, frame: Frame) -> None:
        if self._clock is None or frame.pts is None or frame.time_base is None:
            await asyncio.sleep(0)
            return
        at = float(frame.pts * frame.time_base)
        if self._zero is None:
            self._zero = (self._clock.now(), at)
        await self._clock.sleep_until(self._zero[0] + at - self._zero[1])

    def stop(self) -> None:
        """End the track now; a waiting `recv` raises."""
        super().stop()
        self._changed.set()


def _audio_frames(pcm: bytes, rate_hz: int, samples: int) -> Iterator[AudioFrame]:
    for number, at in enumerate(range(0, len(pcm), samples * 2)):
        frame = AudioFrame(format="s16", layout="mono", samples=samples)
        frame.planes[0].update(pcm[at : at + samples * 2].ljust(frame.planes[0].buffer_size, b"\0"))
        frame.sample_rate = rate_hz
        frame.pts = number * samples
        frame.time_base = Fraction(1, rate_hz)
        yield frame


def _video_frames(picture: Callable[[int], NDArray[np.uint8]], fps: float, count: int) -> Iterator[VideoFrame]:
    for number in range(count):
        frame = VideoFrame.from_ndarray(picture(number), format="rgb24").reformat(format="yuv420p")
        frame.pts = round(number * _VIDEO_RATE / fps)
        frame.time_base = Fraction(1, _VIDEO_RATE)
        yield frame
