"""Encoded frames to pictures.

Owns: `PictureDecoder`, `UndecodedFrame` and `FrameChain`, the encoded frames from a key frame on. `decode` runs on a worker
thread, on one processor and without the GIL; payloads are unpacked there too, so that a frame that nobody looks at costs
nothing but its memory. A decoder holds several pictures, megabytes; that of a chain which is not continued ends with it
(`decode_alone`). It never decides which frame is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import av
from av.codec.context import Flags
from av.error import FFmpegError

from realtime.errors import ImageError, RealtimeError
from realtime.tracks.aiortc_names import h264_depayload
from realtime.tracks.encoded_video import EncodedFrame, carries_parameter_sets
from realtime.tracks.vp8_header import frame_of, is_faintly_filtered

__all__ = [
    "CLOCK_HZ",
    "ChainDecoding",
    "ChainedFrame",
    "DecodeError",
    "FrameChain",
    "PictureDecoder",
    "UndecodedFrame",
    "decode_alone",
]

CLOCK_HZ = 90_000
"""Ticks a second of every picture codec's time stamps."""
_TIME_BASE = Fraction(1, CLOCK_HZ)
_LIBRARY_NAMES = {"vp8": "vp8", "h264": "h264"}
"""FFmpeg's own VP8 decoder costs a fifth less than libvpx where every frame is decoded, and gives the same picture, bit by bit."""

MAX_PIXELS = 8_192 * 4_320
"""A larger picture is not decoded: a few bytes of header can ask for any size, and whoever waits for the thread would wait for it."""


PIECE_FRAMES = 30
"""So many frames are decoded at one go on the way to a picture, which takes 30–60 ms at 720p; then other jobs have their turn."""
MOST_PIXELS = 16_777_216
"""Where every picture is wanted, no more are decoded at one go once they have so many pixels together: 25 MB."""


class DecodeError(RealtimeError):
    """Frames that cannot be decoded."""


class ChainedFrame(NamedTuple):
    """An encoded frame in its place."""

    frame: EncodedFrame
    pts: int
    """Media time in 1/90,000 s from the stream's first frame."""
    arrived_at: float
    """On the session's clock, in seconds."""


class FrameChain:
    """A key frame and the frames that build on it, in order, as they come. Frames are only ever added."""

    __slots__ = ("codec", "frames", "size")

    def __init__(self, codec: str, frames: list[ChainedFrame]) -> None:
        """Begin with a key frame, or with what follows the frames that a decoder has seen."""
        self.codec = codec
        self.frames = frames
        self.size = sum(chained.frame.size for chained in frames)

    @property
    def is_self_contained(self) -> bool:
        """Whether any decoder can begin here, whatever it has seen or not seen before."""
        first = self.frames[0].frame
        return first.is_key and (self.codec != "h264" or carries_parameter_sets(first.payloads))

    def add(self, frame: ChainedFrame) -> tuple[int, int]:
        """Put the next one behind them; gives how many they are now, and of how many bytes."""
        # hot path: every frame
        frames = self.frames
        frames.append(frame)
        self.size = size = self.size + sum(map(len, frame.frame.payloads))
        return len(frames), size


class PictureDecoder:
    """Decodes one chain at a time, from its beginning on; more of the same chain, or another, as it comes."""

    __slots__ = ("_context", "codec")

    def __init__(self, codec: str, *, filters_keys: bool = True) -> None:
        """Make a decoder that works on the calling thread only.

        Args:
            codec: One of `realtime.tracks.encoded_video.VIDEO_CODECS`.
            filters_keys: Whether VP8's key frames pass the loop filter. Only one that no other is decoded from can do without.
        """
        self.codec = codec
        context: Any = av.CodecContext.create(_LIBRARY_NAMES[codec], "r")
        context.thread_count = 1
        context.flags |= Flags.low_delay
        context.options = {"max_pixels": str(MAX_PIXELS), **({} if filters_keys else {"skip_loop_filter": "all"})}
        self._context = context

    def decode(self, frames: Sequence[ChainedFrame], *, only_newest: bool = False) -> list[av.VideoFrame]:
        """The pictures of frames that follow the last ones.

        Args:
            frames: They.
            only_newest: Give the last picture only. The others are let go one by one: a decoder never gives the memory back of
                as many pictures as there ever were at once, 1.4 MB each at 1280×720.

        Raises:
            DecodeError: One of them is damaged.
        """
        unpack = frame_of if self.codec == "vp8" else _h264_frame_of
        pictures: list[av.VideoFrame] = []
        try:
            for chained in frames:
                packet: Any = av.Packet(unpack(chained.frame.payloads))
                packet.pts = chained.pts
                packet.time_base = _TIME_BASE
                made = self._context.decode(packet)
                if only_newest and made:
                    pictures = made[-1:]
                else:
                    pictures += made
        except (FFmpegError, ValueError) as error:
            raise DecodeError(f"a {self.codec} frame cannot be decoded: {error}") from error
        return pictures

    def drain(self) -> list[av.VideoFrame]:
        """The pictures that it holds back, where a stream's order is not the one they are shown in (H.264's B-frames); nothing follows.

        Raises:
            DecodeError: One of them is damaged.
        """
        try:
            return list(self._context.decode(None))
        except FFmpegError as error:
            raise DecodeError(f"a {self.codec} frame cannot be decoded: {error}") from error

    def decode_some(self, frames: Sequence[ChainedFrame]) -> tuple[list[av.VideoFrame], int]:
        """The pictures of frames that follow the last ones, up to `MOST_PIXELS` and the one that goes beyond, and how many frames are left.

        Raises:
            DecodeError: One of them is damaged.
        """
        pictures: list[av.VideoFrame] = []
        pixels = 0
        for at, chained in enumerate(frames, 1):
            for picture in self.decode((chained,)):
                pictures.append(picture)
                pixels += picture.width * picture.height
            if pixels >= MOST_PIXELS:
                return pictures, len(frames) - at
        return pictures, 0


def decode_alone(codec: str, frames: Sequence[ChainedFrame], *, only_newest: bool = False) -> list[av.VideoFrame]:
    """The pictures of a chain, from its key frame on, or the last of them, by a decoder that saw nothing before and sees nothing after.

    One that had seen another call's frames would show them: what a damaged frame leaves out stays as the memory was, and what a
    stream does not say of itself (colors) as the one before said it. Making a decoder takes a hundredth of the time of a picture.

    A VP8 key frame without others is spared a loop filter that hardly changes it.

    Raises:
        DecodeError: One of them is damaged.
    """
    is_plain = codec == "vp8" and len(frames) == 1 and is_faintly_filtered(frames[0].frame.payloads)
    decoder = PictureDecoder(codec, filters_keys=not is_plain)
    pictures = decoder.decode(frames, only_newest=only_newest) + decoder.drain()
    return pictures[-1:] if only_newest else pictures


def _h264_frame_of(payloads: Sequence[bytes]) -> bytes:
    return b"".join([h264_depayload(payload) for payload in payloads])


class ChainDecoding:
    """A chain of frames on its way to its newest picture, on worker threads, piece by piece, so that others are served between."""

    __slots__ = ("_codec", "_decoder", "_goes_on", "_left", "_newest")

    def __init__(self, codec: str, frames: Sequence[ChainedFrame], decoder: PictureDecoder | None = None) -> None:
        """Prepare.

        Args:
            codec: The frames'.
            frames: They.
            decoder: What has seen the frames before them; None: they begin with a key frame.
        """
        self._codec = codec
        self._left = frames
        self._decoder = decoder
        self._goes_on = decoder is not None
        self._newest: list[av.VideoFrame] = []

    @property
    def is_long(self) -> bool:
        """Whether a piece is to be decoded before the last one."""
        return len(self._left) > PIECE_FRAMES

    def advance(self) -> None:
        """Decode a piece that is not the last.

        Raises:
            DecodeError: It is damaged.
        """
        piece, self._left = self._left[:PIECE_FRAMES], self._left[PIECE_FRAMES:]
        if self._decoder is None:
            self._decoder = PictureDecoder(self._codec)
        self._newest = self._decoder.decode(piece, only_newest=True) or self._newest

    def finish(self) -> list[av.VideoFrame]:
        """Decode the last piece; gives the newest picture, none if there is none.

        Raises:
            DecodeError: It is damaged.
        """
        if self._decoder is None:
            return decode_alone(self._codec, self._left, only_newest=True)
        newest = self._decoder.decode(self._left, only_newest=True) or self._newest
        return newest if self._goes_on else self._decoder.drain()[-1:] or newest


class UndecodedFrame:
    """A picture that is decoded when it is looked at. It holds its chain, not a picture.

    Attributes:
        width: In pixels, as far as is known.
        height: In pixels, as far as is known.
        pts: Media time in `time_base`.
        time_base: 1/90,000 s.
    """

    __slots__ = ("_chain", "_count", "height", "pts", "width")

    time_base = _TIME_BASE

    def __init__(self, chain: FrameChain, size: tuple[int, int]) -> None:
        """The newest frame of a chain.

        Args:
            chain: The frames that it takes.
            size: Width and height of the last picture that was decoded.
        """
        self._chain = chain
        self._count = len(chain.frames)
        self.width, self.height = size
        self.pts = chain.frames[-1].pts

    def begin(self) -> ChainDecoding:
        """Begin to decode it, from its key frame on: 1–2 ms for each frame of the chain."""
        return ChainDecoding(self._chain.codec, self._chain.frames[: self._count])

    def advance(self, begun: ChainDecoding) -> None:
        """Decode a piece that is not the last (`ChainDecoding.is_long`). Runs on a worker thread.

        Raises:
            ImageError: It is damaged.
        """
        try:
            begun.advance()
        except DecodeError as error:
            raise self._damaged from error

    def decode(self, begun: ChainDecoding | None = None) -> av.VideoFrame:
        """Decode it, or what is left to do of it. Runs on a worker thread.

        Raises:
            ImageError: It is damaged.
        """
        decoding = self.begin() if begun is None else begun
        while decoding.is_long:
            self.advance(decoding)
        try:
            pictures = decoding.finish()
        except DecodeError as error:
            raise self._damaged from error
        if not pictures:
            raise ImageError("frame", self._chain.codec, "a frame that gives a picture")
        return pictures[-1]

    @property
    def _damaged(self) -> ImageError:
        return ImageError("frame", self._chain.codec, "a frame that can be decoded")
