"""Reads one track for ever and hands each frame on.

Owns: `TrackReader`, the only place that awaits `track.recv()`, and `is_track`. Driven by the track; the callbacks are
called in the event loop and are synchronous. Never buffers: aiortc's queue behind a track has no bound, so a track is
drained whether anybody wants its frames or not, whatever the callback does (behaviour.md section Frames, architecture.md 5).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from aiortc import MediaStreamError

from realtime.errors import ArgumentError, UserError

__all__ = ["TrackReader", "is_track"]

logger = logging.getLogger("realtime.tracks.reader")

_BREATH_AUDIO = 16
_BREATH_NEWEST = 64
"""After this many frames taken without waiting, other tasks get a turn: a backlog must not hold the loop."""
_CLOSE_SECONDS = 1.0


def is_track(candidate: object) -> bool:
    """Whether `candidate` can be read as a track: it has `recv()` and a `kind` of ``audio`` or ``video``."""
    return callable(getattr(candidate, "recv", None)) and getattr(candidate, "kind", None) in {"audio", "video"}


class TrackReader:
    """Drains one track until it ends or the reader is closed.

    Audio frames are handed on one by one. Of video frames that have piled up (the loop was busy) only the newest is
    handed on: an old picture is worth nothing. Neither policy holds more than one frame here.

    An exception from `on_frame` is logged and counted, and the next frame is read. `on_end` is called once, with None when
    the track ended (also by a local `track.stop()`, which does not wake a pending `recv()`), or with what `recv()` raised;
    it is not called when `aclose()` came first.

    Attributes:
        track: The track that is read.
        frames: How many frames were received.
        skipped: How many of them were passed over for a newer one.
        faults: How many times `on_frame` raised.
    """

    def __init__(
        self,
        track: Any,
        on_frame: Callable[[Any], None] | None,
        on_end: Callable[[BaseException | None], None] | None = None,
        *,
        newest_only: bool | None = None,
    ) -> None:
        """Prepare; nothing is read before `start`.

        Args:
            track: An aiortc MediaStreamTrack, or anything like one (`is_track`).
            on_frame: Called with each frame; None: the track is drained and its frames let go.
            on_end: Called once at the end of the track.
            newest_only: Pass over frames that have piled up; None: for video.

        Raises:
            ArgumentError: `track` is no track.
        """
        if not is_track(track):
            raise ArgumentError("track", track, "a track: an object with recv() and a kind of 'audio' or 'video'")
        self.track = track
        self.frames = 0
        self.skipped = 0
        self.faults = 0
        self._on_frame = on_frame
        self._on_end = on_end
        self._newest_only = track.kind == "video" if newest_only is None else newest_only
        self._newest: Any = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._stopped_locally = False

    @property
    def running(self) -> bool:
        """Whether the track is being read."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin to read, in a task of the running loop.

        Raises:
            UserError: It was started before.
        """
        if self._task is not None:
            raise UserError("a TrackReader is started once; make a new one for the track")
        listen = getattr(self.track, "on", None)
        if callable(listen):
            listen("ended", self._on_track_ended)
        self._task = asyncio.get_running_loop().create_task(self._read(), name=f"realtime track {self.track.kind}")

    async def aclose(self) -> None:
        """Stop reading and wait until the task is gone; after one second it is left to itself. Idempotent.

        The track itself is not stopped: it belongs to the application.
        """
        self._closing = True
        self._forget_track()
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
        if not done:
            logger.warning("a %s track ignores cancellation; its reader is left behind", self.track.kind)

    async def _read(self) -> None:
        error: BaseException | None = None
        try:
            await self._drain()
        except MediaStreamError:
            pass
        except asyncio.CancelledError as raised:
            if self._is_cancelled():
                raise
            if not self._stopped_locally:
                error = self._noted(raised)  # what the track waits for was cancelled, not we
        except Exception as raised:
            error = self._noted(raised)
        self._forget_track()
        if self._closing:
            return
        self._hand_on_newest()
        if self._on_end is not None:
            try:
                self._on_end(error)
            except Exception:
                logger.exception("handling the end of a %s track failed", self.track.kind)

    def _is_cancelled(self) -> bool:
        """Whether somebody ends this reader, rather than the track itself."""
        task = self._task
        return self._closing or (not self._stopped_locally and task is not None and task.cancelling() > 0)

    def _noted(self, error: BaseException) -> BaseException:
        logger.warning("a %s track ended with %s", self.track.kind, type(error).__name__, exc_info=error)
        return error

    async def _drain(self) -> None:
        # hot path: once per received frame
        loop = asyncio.get_running_loop()
        receive = self.track.recv
        breath = _BREATH_NEWEST if self._newest_only else _BREATH_AUDIO
        streak = 0
        while not self._closing:
            frame = await receive()
            self.frames += 1
            if self._on_frame is not None:
                if not self._newest_only:
                    self._hand_on(frame)
                elif self._newest is None:
                    # Runs when recv() really waits, that is when the backlog is used up.
                    self._newest = frame
                    loop.call_soon(self._hand_on_newest)
                else:
                    self.skipped += 1
                    self._newest = frame
            streak += 1
            if streak == breath:
                streak = 0
                await asyncio.sleep(0)

    def _hand_on_newest(self) -> None:
        frame, self._newest = self._newest, None
        if frame is not None and not self._closing:
            self._hand_on(frame)

    def _hand_on(self, frame: Any) -> None:
        assert self._on_frame is not None
        try:
            self._on_frame(frame)
        except Exception:
            self.faults += 1
            logger.exception("handling a %s frame failed; the next one is read", self.track.kind)

    def _on_track_ended(self) -> None:
        """The track says it has ended: either recv() is about to raise, or somebody stopped it here."""
        task = self._task
        if task is not None and not task.done():
            task.get_loop().call_soon(self._end_pending_receive)

    def _end_pending_receive(self) -> None:
        task = self._task
        if task is not None and not task.done() and not self._closing:
            self._stopped_locally = True
            task.cancel()

    def _forget_track(self) -> None:
        remove = getattr(self.track, "remove_listener", None)
        if callable(remove):
            with contextlib.suppress(KeyError):
                remove("ended", self._on_track_ended)
