"""The ear of a synthetic peer: hears a reply track, records it, and tells sound from silence.

Owns: `Listener`. Driven by a track that came over the wire. Positions come from sample counts (behaviour.md A3). It never
knows what the sound means.
"""

from __future__ import annotations

import asyncio

import av
import numpy as np
from aiortc import MediaStreamError, MediaStreamTrack

from realtime.media.audio import AudioConverter
from realtime.pipelines.clock import Clock
from realtime.testing.recording import RECORDED_RATE_HZ, Recording

__all__ = ["Listener"]

_SOUND_LEVEL = 500
"""A frame with a sample at or above this is sound; what Opus makes of silence is below it."""
_BREAK_SECONDS = 0.2
"""Silence after which what was sounding before is over."""


class Listener:
    """Hears a reply track and keeps what it heard.

    Attributes:
        recording: What came, with silence where packets were lost.
        frames: How many frames came.
        sound_seconds: How much of it was sound and not silence.
        changed: Set with every frame.
    """

    def __init__(self, clock: Clock) -> None:
        """Make a listener that has heard nothing."""
        self.recording = Recording()
        self.frames = 0
        self.sound_seconds = 0.0
        self.changed = asyncio.Event()
        self._clock = clock
        self._converter = AudioConverter(RECORDED_RATE_HZ)
        self._begin: int | None = None
        self._end = 0
        self._fresh = 0.0
        self._quiet = 0.0
        self._skips_rest = False
        self._sounded_at: float | None = None

    def mark(self) -> None:
        """From now on the next reply is listened for; the rest of one that is sounding does not count for it."""
        self._skips_rest = self._sounded_at is not None and self._quiet < _BREAK_SECONDS
        self._fresh = 0.0
        self._begin = None

    @property
    def fresh_seconds(self) -> float:
        """How much sound came since the mark."""
        return self._fresh

    def quiet_for(self, seconds: float) -> bool:
        """Whether so much silence came after the last sound, or nothing at all for twice as long."""
        if self._sounded_at is None:
            return False
        return self._quiet >= seconds or self._clock.now() - self._sounded_at >= 2 * seconds + self._quiet

    def fresh_sound(self) -> bytes:
        """From the first sound after the mark to the last: PCM16 mono at `RECORDED_RATE_HZ`; empty if none came."""
        return b"" if self._begin is None else bytes(self.recording.pcm[self._begin : self._end])

    async def listen(self, track: MediaStreamTrack) -> None:
        """Read the track until it ends."""
        while True:
            try:
                frame: object = await track.recv()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (Packet has an open parameter)
            except MediaStreamError:
                return
            if isinstance(frame, av.AudioFrame):
                self._take(frame)

    def _take(self, frame: av.AudioFrame) -> None:
        now = self._clock.now()
        self.recording.begin(now)
        before = len(self.recording.pcm)
        self.recording.append(self._converter.convert(frame))
        self.frames += 1
        seconds = frame.samples / frame.sample_rate
        if _is_sound(frame):
            self.sound_seconds += seconds
            self._quiet = 0.0
            self._sounded_at = now
            if not self._skips_rest:
                self._fresh += seconds
                self._begin = before if self._begin is None else self._begin
                self._end = len(self.recording.pcm)
        else:
            self._quiet += seconds
            self._skips_rest = self._skips_rest and self._quiet < _BREAK_SECONDS
        self.changed.set()


def _is_sound(frame: av.AudioFrame) -> bool:
    samples = np.frombuffer(bytes(frame.planes[0]), "<i2")[: frame.samples * len(frame.layout.channels)]
    return bool(np.abs(samples.astype(np.int32)).max(initial=0) >= _SOUND_LEVEL)
