"""From video tracks to pictures in the conversation.

Owns: the frames that wait — held for the end of a turn, or kept and not yet encoded — and the encoding of what was kept,
on worker threads. Driven by track readers, frame by frame, and by the commands `EncodeHeldFrame` and `DropHeldFrame`. A
frame is converted only after the sampler kept it, or, where it had to be decoded on a worker thread anyway, in the same
job if the sampler will surely keep it (`develop`); each source has one frame in the worker and at most one waiting, the
newest (architecture section 6). It never decides which frame matters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple, Protocol

from realtime.chat.messages import ImageContent
from realtime.core.commands import DropHeldFrame, EncodeHeldFrame
from realtime.core.events import FrameKept, SessionEvent
from realtime.core.sampling import FrameFacts, FrameVerdict, thumb_difference
from realtime.errors import ImageError
from realtime.media.frame import check_frame, frame_size, pts_ms, thumbprint
from realtime.media.image import EncodeOptions, encode
from realtime.media.options import ResizeOptions
from realtime.pipelines.worker import WorkerPool
from realtime.tracks.picture_decoder import ChainDecoding, UndecodedFrame

__all__ = ["DevelopedFrame", "ImageReport", "LooksAt", "PictureEncoder", "VideoInput"]

_SMALLER_QUALITIES = (60, 45, 30)
"""Tried in turn when a picture is larger than the provider takes; then half the size."""
_SMALLEST_SIDE = 64
_REMEMBERED_PICTURES = 8
"""Pictures on their way to the model, while somebody waits to look at one."""


class ImageReport(Protocol):
    """How the outcome of a kept frame is told: its picture, or why there is none."""

    def __call__(
        self,
        *,
        source: str,
        frame_id: int,
        image: ImageContent | None,
        error: BaseException | None = None,
        thumbprint: bytes = b"",
        is_unchanged: bool = False,
    ) -> None:
        """Report, as `SessionMachine.receive_image`. Nothing but no picture: a newer one took its place, or it is stale."""
        ...


class LooksAt(Protocol):
    """How the sampler is asked whether a frame's thumbprint will matter (`SessionMachine.looks_at_frame`)."""

    def __call__(self, source: str, /, *, pts_ms: int, captured_at: float) -> bool:
        """Answer; nothing changes."""
        ...


class PictureEncoder:
    """Encodes anything that is a picture, within the provider's size. Runs on a worker thread."""

    def __init__(self, options: EncodeOptions, *, detail: str, max_image_bytes: int | None) -> None:
        """Say how.

        Args:
            options: The picture wanted.
            detail: `ImageContent.detail` of what is made.
            max_image_bytes: Larger ones are encoded again, smaller; None: no bound.
        """
        self._options = options
        self._detail = detail
        self.max_image_bytes = max_image_bytes

    def __call__(self, frame: Any) -> ImageContent:
        """Encode a frame.

        Raises:
            ImageError: It cannot be read, or not be made small enough.
        """
        data = encode(frame, self._options)
        limit = self.max_image_bytes
        if limit is not None and len(data) > limit:
            data = self._encode_smaller(frame, limit)
        mime_type = "image/png" if self._options.format == "PNG" else "image/jpeg"
        return ImageContent.from_bytes(data, mime_type, self._detail)

    def shrink(self, image: ImageContent, max_bytes: int) -> ImageContent:
        """The same picture, within so many bytes.

        Raises:
            ImageError: It cannot be read, or not be made small enough.
        """
        if image.byte_length <= max_bytes:
            return image
        mime_type = "image/png" if self._options.format == "PNG" else "image/jpeg"
        return ImageContent.from_bytes(self._encode_smaller(image.data, max_bytes), mime_type, image.detail)

    def _encode_smaller(self, frame: Any, max_bytes: int) -> bytes:
        options = self._options
        if options.format == "JPEG":
            for quality in _SMALLER_QUALITIES:
                if quality < options.quality:
                    options = replace(options, quality=quality)
                    data = encode(frame, options)
                    if len(data) <= max_bytes:
                        return data
        size = options.resize_options
        width, height = (size.width, size.height) if size is not None else (2048, 2048)
        while min(width, height) >= _SMALLEST_SIDE * 2:
            width, height = width // 2, height // 2
            resize = replace(size, width=width, height=height) if size else ResizeOptions(width, height, "fit")
            data = encode(frame, replace(options, resize_options=resize))
            if len(data) <= max_bytes:
                return data
        raise ImageError("frame", type(frame).__name__, f"a picture that fits {max_bytes} bytes")


class DevelopedFrame(NamedTuple):
    """A frame that was wanted and decoded, and what was made of it in the same job."""

    frame: Any
    """It."""
    thumb: bytes
    """Its thumbprint; empty if nobody compares."""
    image: ImageContent | None
    """Its picture; None: it seems to show nothing new, or cannot be encoded."""


class _Kept(NamedTuple):
    """A frame that waits: for the end of a turn, or for the worker."""

    frame_id: int
    frame: Any
    captured_at: float
    thumb: bytes
    """Its thumbprint; empty if it was not looked at."""
    must_differ: bool
    """Whether it is shown only if it shows something new, should it be looked at now."""
    image: ImageContent | None = None
    """Its picture, if it was made already."""


class _Source:
    """One camera or screen."""

    __slots__ = ("busy", "held", "thumb", "waiting")

    def __init__(self) -> None:
        self.thumb = b""
        """The thumbprint of the last frame that became a picture."""
        self.held: dict[int, _Kept] = {}
        """Frames held for the end of the turn, by id."""
        self.waiting: _Kept | None = None
        """The frame that goes to the worker next."""
        self.busy = False


class VideoInput:
    """All video sources of a session.

    Attributes:
        now: The session's clock.
    """

    def __init__(
        self,
        *,
        judge: Callable[[FrameFacts], FrameVerdict],
        looks_at: LooksAt,
        report: ImageReport,
        encoder: PictureEncoder,
        pool: WorkerPool,
        now: Callable[[], float],
        max_age_seconds: float,
        min_change: float = 0.0,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Start without sources.

        Args:
            judge: Keep, hold or drop.
            looks_at: Whether a frame's thumbprint will matter; most frames are spared it.
            report: Told what became of each kept frame.
            encoder: Makes a picture of a frame, on a thread.
            pool: Where it runs.
            now: The session's clock.
            max_age_seconds: A frame that waited longer for the worker is not encoded any more.
            min_change: As `FrameSampling.min_change`: 0: nothing is compared, so no thumbprint is made.
            spawn: Starts a task that belongs to the session.
        """
        self._min_change = min_change
        self._judge = judge
        self._looks_at = looks_at
        self._report = report
        self._encoder = encoder
        self._pool = pool
        self.now = now
        self._max_age = max_age_seconds
        self._spawn = spawn
        self._sources: dict[str, _Source] = {}
        self._frame_ids = count(1)
        self._lookers: list[tuple[str | None, float, asyncio.Future[ImageContent]]] = []
        self._encoded: deque[tuple[str, float, ImageContent]] = deque(maxlen=_REMEMBERED_PICTURES)
        self.replaced = 0
        """Kept frames that a newer one overtook on the way to the worker."""

    def add(self, source: str) -> None:
        """Take a source in."""
        self._sources[source] = _Source()

    def remove(self, source: str) -> None:
        """Let a source and what it holds go. A frame that is being encoded still becomes a picture."""
        self._sources.pop(source, None)

    def receive(  # hot path: every frame of every source
        self, source: str, frame: Any, captured_at: float | None = None
    ) -> None:
        """Take a frame of a source that was added.

        Args:
            source: Which.
            frame: A picture, as itself or as `develop` gave it; or an `UndecodedFrame` that was not due: it may be held, and is
                decoded if it is shown.
            captured_at: When it came, on the session's clock; None: now.

        Raises:
            ImageError: It is none of these.
        """
        entry = self._sources[source]
        thumb, image = b"", None
        is_known = isinstance(frame, DevelopedFrame)
        if is_known:
            frame, thumb, image = frame
        now = self.now() if captured_at is None else captured_at
        width, height = frame_size(frame)
        media_ms = pts_ms(frame)
        at_ms = round(now * 1000) if media_ms is None else media_ms
        is_picture = not is_known and not isinstance(frame, UndecodedFrame)
        if is_picture and self._looks_at(source, pts_ms=at_ms, captured_at=now):
            check_frame(frame)
            thumb = _thumbprint(frame) if self._min_change else b""
        facts = FrameFacts(
            frame_id=next(self._frame_ids),
            source=source,
            captured_at=now,
            pts_ms=at_ms,
            width=width,
            height=height,
            thumbprint=thumb,
        )
        verdict = self._judge(facts)
        for frame_id in verdict.released:
            entry.held.pop(frame_id, None)
        if verdict.action == "drop":
            return
        is_held = verdict.action == "hold"
        must_differ = is_held or verdict.keep_reason == "schedule"
        kept = _Kept(facts.frame_id, frame, now, thumb, must_differ, image)
        if is_held:
            entry.held[facts.frame_id] = kept
        else:
            self._encode(source, entry, kept)

    def develop(self, source: str, frame: Any) -> DevelopedFrame:  # on a worker thread
        """Make of a frame that was wanted what `receive` will probably need, where it was decoded.

        Never raises: what cannot be encoded is tried again, and told, once the frame is kept.

        Args:
            source: Which.
            frame: It.
        """
        entry = self._sources.get(source)
        thumb = _thumbprint(frame) if self._min_change else b""
        image: ImageContent | None = None
        if entry is not None and (not thumb or thumb_difference(thumb, entry.thumb) >= self._min_change):
            with contextlib.suppress(Exception):
                image = self._encoder(frame)
        return DevelopedFrame(frame, thumb, image)

    def execute(self, command: EncodeHeldFrame | DropHeldFrame) -> None:
        """Carry a command about a held frame out."""
        entry = self._sources.get(command.source)
        held = entry.held.pop(command.frame_id, None) if entry is not None else None
        if isinstance(command, DropHeldFrame):
            return
        if entry is None or held is None:
            self._report(source=command.source, frame_id=command.frame_id, image=None)
            return
        self._encode(command.source, entry, held)

    def look(self, source: str | None) -> asyncio.Future[ImageContent]:
        """The next picture of a source, or of any, that is captured from now on and that the model was really shown."""
        answer: asyncio.Future[ImageContent] = asyncio.get_running_loop().create_future()
        self._lookers = [looker for looker in self._lookers if not looker[2].done()]
        self._lookers.append((source, self.now(), answer))
        return answer

    @property
    def held_bytes(self) -> int:
        """Bytes, about, of the frames that wait here (12 bits a pixel)."""
        frames = [held.frame for entry in self._sources.values() for held in entry.held.values()]
        frames += [entry.waiting.frame for entry in self._sources.values() if entry.waiting is not None]
        return sum(frame.width * frame.height * 3 // 2 for frame in frames)

    def close(self, error: BaseException) -> None:
        """Let every frame go; whoever waits for one gets the error."""
        self._sources.clear()
        for _, _, answer in self._lookers:
            if not answer.done():
                answer.set_exception(error)
        self._lookers.clear()
        self._encoded.clear()

    def _encode(self, source: str, entry: _Source, job: _Kept) -> None:
        if entry.waiting is not None:
            self.replaced += 1
            self._report(source=source, frame_id=entry.waiting.frame_id, image=None)
        if job.image is not None and not entry.busy:
            self._show(source, entry, job, job.image, b"")
            return
        entry.waiting = job
        if not entry.busy:
            entry.busy = True
            self._spawn(self._work(source, entry))

    def _show(self, source: str, entry: _Source, job: _Kept, image: ImageContent, thumb: bytes) -> None:
        """A kept frame is a picture now; its thumbprint, if it was made with it."""
        entry.thumb = thumb or job.thumb
        if self._lookers:
            self._encoded.append((source, job.captured_at, image))
        self._report(source=source, frame_id=job.frame_id, image=image, thumbprint=thumb)

    async def _work(self, source: str, entry: _Source) -> None:
        try:
            while entry.waiting is not None:
                job, entry.waiting = entry.waiting, None
                frame_id, captured_at = job.frame_id, job.captured_at
                if self.now() - captured_at > self._max_age:
                    self._report(source=source, frame_id=frame_id, image=None)
                    continue
                if job.image is not None:
                    self._show(source, entry, job, job.image, b"")
                    continue
                begun = job.frame.begin() if isinstance(job.frame, UndecodedFrame) else None
                try:
                    while begun is not None and begun.is_long:
                        await self._pool.run(job.frame.advance, begun)  # others have their turn between
                    image, thumb = await self._pool.run(self._make_picture, job, begun, entry.thumb)
                except Exception as error:
                    self._report(source=source, frame_id=frame_id, image=None, error=error)
                else:
                    if image is None:
                        self._report(source=source, frame_id=frame_id, image=None, is_unchanged=True)
                        continue
                    self._show(source, entry, job, image, thumb)
                finally:
                    del job, begun
        finally:
            entry.busy = False

    def _make_picture(
        self, job: _Kept, begun: ChainDecoding | None, last_thumb: bytes
    ) -> tuple[ImageContent | None, bytes]:  # on a worker thread
        """Decode, if need be, and encode a frame.

        Returns:
            The picture, None if now that it is decoded it shows nothing new; and its thumbprint, if it was not known.
        """
        frame, thumb = job.frame, b""
        if isinstance(frame, UndecodedFrame):
            frame = frame.decode(begun)
            if self._min_change:
                thumb = _thumbprint(frame)
                if job.must_differ and thumb_difference(thumb, last_thumb) < self._min_change:
                    return None, thumb
        return self._encoder(frame), thumb

    def observe(self, event: SessionEvent) -> None:
        """A picture was sent: whoever looks for such a one has it."""
        if not isinstance(event, FrameKept) or not self._lookers:
            return
        sent = [image for source, at, image in self._encoded if (source, at) == (event.source, event.captured_at)]
        waiting: list[tuple[str | None, float, asyncio.Future[ImageContent]]] = []
        for wanted, since, answer in self._lookers:
            if not sent or wanted not in (None, event.source) or event.captured_at < since:
                waiting.append((wanted, since, answer))
            elif not answer.done():
                answer.set_result(sent[-1])
        self._lookers = waiting
        if not waiting:
            self._encoded.clear()


def _thumbprint(frame: Any) -> bytes:
    try:
        return thumbprint(frame)
    except ImageError:
        return b""  # it counts as changed; whether it can be encoded shows when it is
