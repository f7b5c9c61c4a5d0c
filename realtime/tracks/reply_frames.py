"""The reply at 48 kHz, for those who take frames.

Owns: `FrameMaker`, the resampler of one listener. Driven by a track that gives the reply as frames. Never waits and never
reads the queue.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from av import AudioFrame
from numpy.typing import NDArray

from realtime.media.resample import Resampler
from realtime.tracks.reply_pace import Slot

__all__ = ["FRAME_RATE_HZ", "FRAME_SAMPLES", "FRAME_TIME_BASE", "FrameMaker", "make_frame"]

FRAME_RATE_HZ = 48_000
FRAME_SAMPLES = 960
FRAME_TIME_BASE = Fraction(1, FRAME_RATE_HZ)
_SILENCE = bytes(FRAME_SAMPLES * 2)
_NOTHING: NDArray[np.float32] = np.zeros(0, np.float32)
_MAX_HELD = FRAME_SAMPLES * 4


class FrameMaker:
    """Brings slots, one after another, to frames of 960 samples."""

    __slots__ = ("_fed", "_rate_hz", "_ready", "_resampler", "_run", "_stops")

    def __init__(self, rate_hz: int) -> None:
        """Say at which rate the pieces are."""
        self._rate_hz = rate_hz
        self._resampler = None if rate_hz == FRAME_RATE_HZ else Resampler(rate_hz, FRAME_RATE_HZ)
        self._ready = _NOTHING
        self._run: object = None
        self._fed = 0
        """Samples of the run that went into the resampler, those that were only shown ahead included."""
        self._stops = 0

    @property
    def look_ahead(self) -> int:
        """How many samples of what follows a piece it wants to be shown."""
        return 0 if self._resampler is None else self._resampler.look_ahead

    def make(self, slot: Slot) -> bytes:
        """The PCM16 of a slot, 960 samples."""
        piece = slot.piece
        if self._resampler is None:
            return _SILENCE if piece is None else piece.pcm.ljust(len(_SILENCE), b"\0")
        if slot.stops != self._stops:
            self._stops = slot.stops
            self._forget(self._resampler)
        if piece is not None:
            if piece.run is not self._run or piece.start > self._fed:
                self._add(self._resampler.flush())
                self._run, self._fed = piece.run, piece.start
            known = piece.pcm + piece.ahead
            fresh = np.frombuffer(known, "<i2")[self._fed - piece.start :].astype(np.float32)
            self._fed += len(fresh)
            self._add(self._resampler.push(fresh))
            if piece.is_last:
                self._add(self._resampler.flush())
                self._run = None
        if not len(self._ready):
            return _SILENCE
        taken, self._ready = self._ready[:FRAME_SAMPLES], self._ready[FRAME_SAMPLES:]
        data = np.clip(np.rint(taken), -32768.0, 32767.0).astype("<i2").tobytes()
        return data.ljust(len(_SILENCE), b"\0")

    def _add(self, samples: NDArray[np.float32]) -> None:
        if len(samples):
            self._ready = np.concatenate((self._ready, samples))[-_MAX_HELD:]

    def _forget(self, resampler: Resampler) -> None:
        resampler.flush()
        self._ready = _NOTHING
        self._run = None


def make_frame(pcm: bytes, pts: int) -> AudioFrame:
    """An aiortc frame of 20 ms: 48 kHz, mono, 16 bit."""
    frame = AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
    frame.sample_rate = FRAME_RATE_HZ
    frame.time_base = FRAME_TIME_BASE
    frame.pts = pts
    frame.planes[0].update(pcm)
    return frame
