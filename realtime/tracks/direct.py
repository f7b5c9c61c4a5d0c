"""Reads a track that we receive ourselves: sound as PCM, pictures only when they are looked at.

Owns: `DirectReader`, which stands where a `TrackReader` would. Driven by the track's intake; nothing waits in `recv()` and
there is no task. Like a `TrackReader` it never stops the track, and tells of its end once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from realtime.tracks.audio_intake import AudioIntakeStatistics
from realtime.tracks.rtp_receiver import TrackIntake

__all__ = ["DirectReader"]

logger = logging.getLogger("realtime.tracks.direct")


class DirectReader:
    """Takes what an intake receives until the track ends or the reader is closed.

    Attributes:
        track: The track.
        skipped: Always 0: what is passed over is not decoded (`undecoded`).
        faults: How many times handling failed.
    """

    def __init__(
        self,
        track: Any,
        intake: TrackIntake,
        begin: Callable[[TrackIntake], None] | None,
        on_end: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """Prepare; nothing is taken before `start`.

        Args:
            track: The track.
            intake: Who receives it.
            begin: Says what is wanted of it (`listen` or `look`); None: nothing is, it is received and let go.
            on_end: Called once at the end of the track, with None.
        """
        self.track = track
        self.skipped = 0
        self._intake = intake
        self._begin = begin
        self._on_end = on_end
        self._is_running = False

    @property
    def running(self) -> bool:
        """Whether the track is being read."""
        return self._is_running

    @property
    def frames(self) -> int:
        """Frames of video, packets of audio, that came."""
        video = self._intake.video
        return self._intake.packets if video is None else video.frames

    @property
    def undecoded(self) -> int:
        """Of the frames, those that nobody looked at, so that they were not decoded."""
        video = self._intake.video
        return 0 if video is None else video.undecoded

    @property
    def faults(self) -> int:
        """Packets or frames that could not be decoded."""
        video = self._intake.video
        return self.voice.faults if video is None else video.faults

    @property
    def voice(self) -> AudioIntakeStatistics:
        """What became of the sound."""
        return self._intake.voice_statistics()

    def start(self) -> None:
        """Begin; in a running loop.

        Raises:
            UserError: Another reader takes what its intake receives.
        """
        is_live = self.track.readyState == "live"
        if is_live and self._begin is not None:
            self._begin(self._intake)
        self._is_running = True
        self.track.on("ended", self._on_track_ended)
        if not is_live:
            self._on_track_ended()

    async def aclose(self) -> None:
        """Take no more. The track goes on. Idempotent."""
        self._leave()

    def _leave(self) -> bool:
        was_running, self._is_running = self._is_running, False
        if was_running:
            with contextlib.suppress(KeyError):
                self.track.remove_listener("ended", self._on_track_ended)
            self._intake.let_go()
        return was_running

    def _on_track_ended(self) -> None:
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        if self._leave() and self._on_end is not None:
            try:
                self._on_end(None)
            except Exception:
                logger.exception("handling the end of a %s track failed", self.track.kind)
