"""What a synthetic peer can say and show, made into what its microphone and camera play.

Owns: `sound_of` (PCM, a WAV file, a sentence) and `pictures_of` (a number, a colour, a picture, moving pictures). Driven by
`SyntheticPeer`; what they give runs on a worker thread. They never touch a track.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from realtime.chat.messages import ImageContent
from realtime.errors import ArgumentError, UserError
from realtime.media.audio import PcmConverter
from realtime.media.image import encode
from realtime.media.options import EncodeOptions, ResizeOptions
from realtime.pcm import read_wav
from realtime.testing.devices import FRAME_SAMPLES, SOUND_RATE_HZ, Picture, PictureSource, SoundSource

__all__ = ["Synthesizer", "pictures_of", "sound_of"]

Synthesizer = Callable[[str], bytes]
"""Speaks a sentence: a WAV file's bytes, or PCM16 mono at 48 kHz. Called on a worker thread."""

_SOUNDS = "PCM16 mono bytes, a WAV file (its bytes or its path), a sentence (with a synthesizer), or a SoundSource"
_PICTURES = "a number, a color, a picture, an iterable of av.VideoFrames, or a PictureSource"


def sound_of(what: Any, *, rate_hz: int = SOUND_RATE_HZ, synthesizer: Synthesizer | None = None) -> SoundSource:
    """Make a sound source.

    Args:
        what: PCM16 mono bytes at `rate_hz`; a WAV file, as bytes or as a path; a sentence, for `synthesizer`; or a
            callable that opens the sound as 20 ms pieces.
        rate_hz: Rate of bare PCM.
        synthesizer: Speaks sentences.

    Raises:
        ArgumentError: It is something else, or a sentence and there is no synthesizer.
    """
    if isinstance(what, str):
        if synthesizer is None:
            raise ArgumentError("what", what, "with a sentence, a SyntheticPeer that was given a synthesizer=")
        return lambda: _pieces(synthesizer(what), SOUND_RATE_HZ)
    if isinstance(what, Path):
        return lambda: _pieces(_read(what), SOUND_RATE_HZ)
    if isinstance(what, (bytes, bytearray, memoryview)):
        data = bytes(cast("bytes", what))
        return lambda: _pieces(data, rate_hz)
    if callable(what):
        return cast("SoundSource", what)
    raise ArgumentError("what", type(what).__name__, _SOUNDS)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    read_wav(data)  # a file is never bare PCM
    return data


def _pieces(sound: bytes, rate_hz: int) -> Iterator[bytes]:
    """Cut a sound into 20 ms at 48 kHz; the last piece is filled with silence."""
    pcm = sound
    if sound[:4] == b"RIFF":
        pcm, rate_hz, channels = read_wav(sound)
        if channels > 1:
            sums: NDArray[np.int32] = np.frombuffer(pcm, "<i2").reshape(-1, channels).sum(axis=1, dtype=np.int32)
            pcm = np.floor_divide(sums, channels).astype(np.int16).tobytes()
    elif len(sound) % 2:
        raise ArgumentError("what", f"{len(sound)} bytes", "whole 16-bit samples")
    converter = PcmConverter(rate_hz, SOUND_RATE_HZ)
    pcm = converter.convert(pcm) + converter.flush()
    size = FRAME_SAMPLES * 2
    for at in range(0, len(pcm), size):
        yield pcm[at : at + size].ljust(size, b"\0")


def pictures_of(what: Any, *, size: tuple[int, int], fps: float) -> list[PictureSource]:
    """Make the picture sources of a camera.

    Args:
        what: A whole number, which is drawn large on white; a color, as a name or `(r, g, b)`; a picture of any kind that
            `realtime.encode` takes, an `ImageContent`, or the path of one; an iterable of `av.VideoFrame`s, each shown for
            one frame's time and the last one from then on; a callable that opens moving pictures, or a list of such.
        size: Width and height of what is drawn, and the box that pictures are fitted into; even.
        fps: Frames a second.

    Raises:
        ArgumentError: It is something else, or a color of no such name.
        ImageError: It is a picture that cannot be read.
    """
    if callable(what):
        return [cast("PictureSource", what)]
    if isinstance(what, list) and what and all(callable(each) for each in cast("Sequence[object]", what)):
        return cast("list[PictureSource]", what)
    if isinstance(what, bool) or what is None:
        raise ArgumentError("picture", what, _PICTURES)
    if isinstance(what, int):
        return [partial(_still, _planes(_number(what, size)), fps)]
    if isinstance(what, str) or _is_color(what):
        return [partial(_still, _planes(Image.new("RGB", size, _color(what))), fps)]
    frames = _frames_of(what)
    if frames is not None:
        return [partial(_film, frames, size, fps)]
    return [partial(_still, _planes(_picture(what, size)), fps)]


def _is_color(what: Any) -> bool:
    if not isinstance(what, tuple):
        return False
    values = cast("Sequence[object]", what)
    return len(values) == 3 and all(isinstance(value, int) and 0 <= value <= 255 for value in values)


def _color(what: Any) -> tuple[int, int, int]:
    if isinstance(what, tuple):
        return cast("tuple[int, int, int]", what)
    try:
        red, green, blue, *_ = ImageColor.getrgb(what)
    except ValueError as error:
        raise ArgumentError("picture", what, "a color's name, such as 'red' or '#ff8800'") from error
    return red, green, blue


def _number(number: int, size: tuple[int, int]) -> Image.Image:
    picture = Image.new("RGB", size, (255, 255, 255))
    text = str(number)
    font = ImageFont.load_default(size=min(size[1] * 0.7, 1.4 * size[0] / len(text)))
    ImageDraw.Draw(picture).text((size[0] // 2, size[1] // 2), text, font=font, fill=(0, 0, 0), anchor="mm")
    return picture


def _frames_of(what: Any) -> list[av.VideoFrame] | None:
    """The frames of an iterable of them; None if it is no such thing."""
    if isinstance(what, (bytes, bytearray, memoryview, np.ndarray, Image.Image, tuple, av.VideoFrame)):
        return None
    if not hasattr(what, "__iter__"):
        return None
    frames = list(cast("Iterator[Any]", what))
    if not frames or not all(isinstance(frame, av.VideoFrame) for frame in frames):
        raise ArgumentError("picture", type(what).__name__, _PICTURES)
    return cast("list[av.VideoFrame]", frames)


def _picture(what: Any, size: tuple[int, int]) -> Image.Image:
    """Any picture, fitted into the box."""
    if isinstance(what, ImageContent):
        what = what.data
    elif isinstance(what, Path):
        try:
            what = what.read_bytes()
        except OSError as error:
            raise UserError(f"{what} cannot be read: {error.strerror}") from error
    fitted = EncodeOptions(format="PNG", resize_options=ResizeOptions(*size, mode="fit"))
    with Image.open(io.BytesIO(encode(what, fitted))) as picture:
        return picture.convert("RGB")


def _planes(picture: Image.Image) -> NDArray[np.uint8]:
    """The picture as the planes of a yuv420p frame with even sides."""
    width, height = (max(2, side // 2 * 2) for side in picture.size)
    frame = av.VideoFrame.from_ndarray(np.asarray(cast("Any", picture.resize((width, height)))), format="rgb24")
    return np.ascontiguousarray(frame.reformat(format="yuv420p").to_ndarray(), dtype=np.uint8)


def _still(planes: NDArray[np.uint8], fps: float) -> Iterator[Picture]:
    """Show one picture for ever. Each frame is a new one: an encoder may keep what it was given."""
    for number in count():
        yield Picture(number / fps, av.VideoFrame.from_ndarray(planes, format="yuv420p"))


def _film(frames: list[av.VideoFrame], size: tuple[int, int], fps: float) -> Iterator[Picture]:
    """Show frames one after another, and the last one for ever."""
    planes: NDArray[np.uint8] | None = None
    for number, frame in enumerate(frames):
        planes = _planes(_picture(frame, size))
        yield Picture(number / fps, av.VideoFrame.from_ndarray(planes, format="yuv420p"))
    assert planes is not None
    for number in count(len(frames)):
        yield Picture(number / fps, av.VideoFrame.from_ndarray(planes, format="yuv420p"))
