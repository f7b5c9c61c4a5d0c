"""Media files, opened and decoded: sound as 20 ms frames for a microphone, pictures for a camera.

Owns: `MediaFile` (what a file holds), `read_sound` and `read_pictures` (its decoded frames). Driven by the peer's
microphone and camera, on a worker thread: everything here is synchronous. It never waits for a time of day:
they keep the pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.container
import av.error
import numpy as np
from av.stream import Disposition

from realtime.errors import UserError
from realtime.testing.devices import FRAME_SAMPLES, SOUND_RATE_HZ, Picture

__all__ = ["MAX_PICTURE_SIZE", "MediaFile", "open_media", "read_pictures", "read_sound"]

MAX_PICTURE_SIZE = (1280, 720)
"""Pictures are fitted into this box, so that the sender's encoder keeps up on two cores."""
STILL_FPS = 5
"""A still picture is shown with this many frames a second."""
STILL_SECONDS = 5.0
"""A still picture is shown for this long."""
_MAX_FPS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFile:
    """What a media file holds."""

    path: Path
    """Where it is."""
    sound_seconds: float | None
    """How long its sound lasts; None: it has none."""
    picture_seconds: float | None
    """How long its pictures last; None: it has none. A still picture lasts `STILL_SECONDS`."""


def _open(path: Path) -> av.container.InputContainer:
    try:
        return av.open(str(path))
    except FileNotFoundError as error:
        raise UserError(f"no such file: {path}") from error
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder, not a media file") from error
    except (OSError, ValueError) as error:  # av's errors are both or either
        raise UserError(f"{path} cannot be read as audio, video or a picture ({_reason(error)})") from error


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return str(text).splitlines()[0] if text else type(error).__name__


def _is_still(container: av.container.InputContainer) -> bool:
    return container.format.name == "image2" or container.format.name.endswith("_pipe")


def open_media(path: Path) -> MediaFile:
    """Look into a file: what it holds and for how long. Its first frames are decoded, so that a broken one is found now.

    Raises:
        UserError: There is no such file, or nothing in it can be decoded.
    """
    with _open(path) as container:
        whole = container.duration / av.time_base if container.duration else 0.0
        sound = container.streams.audio[0] if container.streams.audio else None
        picture = container.streams.video[0] if container.streams.video else None
        if picture is not None and picture.disposition & Disposition.attached_pic:
            picture = None  # a record's sleeve is no camera
        if sound is None and picture is None:
            raise UserError(f"{path} holds neither sound nor pictures")
        still = _is_still(container)

        def seconds(duration: int | None, base: Fraction | None) -> float:
            return float(duration * base) if duration is not None and base is not None else whole

        sound_seconds = None if sound is None else seconds(sound.duration, sound.time_base)
        picture_seconds = None if picture is None else seconds(picture.duration, picture.time_base)
        if still and picture is not None:
            picture_seconds = STILL_SECONDS
    try:
        if picture_seconds is not None:
            next(read_pictures(path))
        if sound_seconds is not None:
            next(read_sound(path))
    except StopIteration:
        raise UserError(f"{path} holds no frame that can be decoded") from None
    return MediaFile(path=path, sound_seconds=sound_seconds, picture_seconds=picture_seconds)


def read_sound(path: Path) -> Iterator[bytes]:
    """Give a file's sound as mono PCM16 at 48 kHz, in pieces of exactly 20 ms; the last one is filled with silence.

    A packet that cannot be decoded is left out.

    Raises:
        UserError: The file cannot be opened.
    """
    frame_bytes = FRAME_SAMPLES * 2
    rest = bytearray()
    with _open(path) as container:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=SOUND_RATE_HZ)
        for packet in container.demux(container.streams.audio[0]):
            try:
                decoded = packet.decode()
            except av.error.FFmpegError:
                continue
            for frame in decoded:
                frame.pts = None  # a gap in a file's time stamps is no silence
                for piece in resampler.resample(frame):
                    rest += bytes(piece.planes[0])[: piece.samples * 2]
            while len(rest) >= frame_bytes:
                yield bytes(rest[:frame_bytes])
                del rest[:frame_bytes]
        for piece in resampler.resample(None):
            rest += bytes(piece.planes[0])[: piece.samples * 2]
    while rest:
        yield bytes(rest[:frame_bytes]).ljust(frame_bytes, b"\0")
        del rest[:frame_bytes]


def read_pictures(path: Path) -> Iterator[Picture]:
    """Give a file's pictures, fitted into `MAX_PICTURE_SIZE`, at most 30 a second.

    A packet that cannot be decoded is left out.

    Raises:
        UserError: The file cannot be opened.
    """
    with _open(path) as container:
        stream = container.streams.video[0]
        still = _is_still(container)
        first: float | None = None
        due = 0.0
        count = 0
        for packet in container.demux(stream):
            try:
                decoded = packet.decode()
            except av.error.FFmpegError:
                continue
            for frame in decoded:
                if still:
                    yield from _hold(frame)
                    return
                at = frame.time if frame.pts is not None else count / float(stream.average_rate or _MAX_FPS)
                count += 1
                first = at if first is None else first
                if at - first >= due - 0.001:
                    due = at - first + 1 / _MAX_FPS
                    yield Picture(at - first, _fitted(frame))


def _hold(frame: av.VideoFrame) -> Iterator[Picture]:
    """Show one picture for a while. Each frame is a new one: an encoder may keep what it was given."""
    shown = np.ascontiguousarray(_fitted(frame).to_ndarray(format="yuv420p"), dtype=np.uint8)
    for count in range(round(STILL_SECONDS * STILL_FPS)):
        yield Picture(count / STILL_FPS, av.VideoFrame.from_ndarray(shown, format="yuv420p"))


def _fitted(frame: av.VideoFrame) -> av.VideoFrame:
    """The frame as yuv420p with even sides, fitted into `MAX_PICTURE_SIZE` if it is larger."""
    wide, high = MAX_PICTURE_SIZE
    scale = min(1.0, wide / frame.width, high / frame.height)
    width, height = (max(2, round(side * scale / 2) * 2) for side in (frame.width, frame.height))
    return frame.reformat(width=width, height=height, format="yuv420p")
