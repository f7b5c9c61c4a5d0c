"""The worker's part of one camera or screen: a chain's frames on their way through the decoder, one job at a time.

Owns: `ChainWorker` — the decoder of a chain that is decoded bit by bit, how far it is, and the job that is under way. Driven by
`sampled_decode`, which says what is to be decoded. Jobs run where whoever looks has them run (`PictureSink.run`), with what is made
of the picture in the same job. It never decides which frame is wanted, and holds no frame of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from realtime.tracks.picture_decoder import ChainDecoding, ChainedFrame, FrameChain, PictureDecoder
from realtime.tracks.picture_sink import PictureSink

__all__ = ["MOST_PICTURES", "ChainWorker"]

MOST_PICTURES = 8
"""Where every frame is decoded, so many at once at most, and fewer of large pictures (`MOST_PIXELS`). The rest follows at once."""

_Result = tuple[list[Any], list[Any], int]
"""Pictures, what was made of them, and how many frames are still to be decoded."""


class TakesPictures(Protocol):
    """Takes what a job gives."""

    def __call__(
        self, sink: PictureSink, frames: list[ChainedFrame], pictures: list[Any], developed: list[Any], /
    ) -> None:
        """Frames were decoded for a sink to pictures, and something was made of each."""
        ...


class ChainWorker:
    """Decodes chains of one track.

    Attributes:
        decoder: Of the chain that is decoded bit by bit, as it comes.
    """

    __slots__ = ("_done", "_job", "_of", "_on_decoded", "_on_failed", "_under_way", "decoder")

    def __init__(self, on_decoded: TakesPictures, on_failed: Callable[[BaseException | None], None]) -> None:
        """Nothing is to be done yet.

        Args:
            on_decoded: Takes the pictures.
            on_failed: Told why there are none: an error, or, with None, for no reason.
        """
        self._on_decoded = on_decoded
        self._on_failed = on_failed
        self.decoder: PictureDecoder | None = None
        self._of: FrameChain | None = None
        self._done = 0
        """How many frames of `_of` were decoded."""
        self._under_way = 0
        """How many of them the worker has at this moment, where every frame is decoded."""
        self._job: object | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job is under way."""
        return self._job is not None

    def is_at(self, chain: FrameChain | None) -> bool:
        """Whether the last job was of this chain."""
        return self._of is chain

    def frames_to(self, chain: FrameChain) -> int:
        """How many frames are to be decoded to get at a chain's newest one."""
        done = self._done if self._of is chain and self.decoder is not None else 0
        return len(chain.frames) - done

    def stop(self) -> None:
        """Whatever is under way is of no use any more."""
        self.forget()
        self._job = None
        self._under_way = 0

    def forget(self) -> None:
        """Nothing goes on from here."""
        self.decoder = None
        self._of = None

    def decode(self, chain: FrameChain, sink: PictureSink, *, goes_on: bool, each: bool) -> bool:
        """Decode the newest frames of a chain; nothing else may be under way.

        Args:
            chain: It.
            sink: Has the job run.
            goes_on: From where the last job left off, and so that the next one can; else with a decoder of its own.
            each: Every picture is wanted, not only the newest.

        Returns:
            Whether there is anything to decode.
        """
        if self._of is not chain:
            self._of, self._done = chain, 0
        begin, end = self._done, len(chain.frames)
        if begin == end:
            return False
        if not goes_on:
            self.decoder = None
            begin = 0
        elif self.decoder is None or self.decoder.codec != chain.codec:
            self.decoder = PictureDecoder(chain.codec)
            begin = 0
        if each and self.decoder is not None:
            self._decode_each(self.decoder, sink, chain.frames[begin : min(end, begin + MOST_PICTURES)], begin)
        else:
            self._done = end
            self._decode_newest(
                ChainDecoding(chain.codec, chain.frames[begin:end], self.decoder), sink, chain.frames[begin:end]
            )
        return True

    def left_behind(self, chain: FrameChain) -> int:
        """How many frames of the chain that it is at are never decoded if it goes over to another one."""
        return 0 if self._of is None or self._of is chain else len(self._of.frames) - self._done

    def has_more(self, chain: FrameChain) -> bool:
        """Whether frames of a chain that it is at wait."""
        return self._of is chain and self._done < len(chain.frames)

    def shorten(self, chain: FrameChain, most: int) -> FrameChain | None:
        """What is left of a chain without the frames that the decoder has seen; another chain: one may be held.

        Args:
            chain: It.
            most: If more frames than that wait, the worker is hopelessly behind; then None.
        """
        done = self._done if self._of is chain else 0
        if self.decoder is None or len(chain.frames) - done > most:
            return None
        kept = min(self._under_way, done)  # not all of them may be decoded
        self._of = FrameChain(chain.codec, chain.frames[done - kept :])
        self._done = kept
        return self._of

    def _decode_newest(self, decoding: ChainDecoding, sink: PictureSink, frames: list[ChainedFrame]) -> None:
        def job() -> _Result | None:
            if decoding.is_long:
                decoding.advance()
                return None
            pictures = decoding.finish()
            return pictures, [sink.develop(picture) for picture in pictures], 0

        self._run(sink, frames, job)

    def _decode_each(self, decoder: PictureDecoder, sink: PictureSink, frames: list[ChainedFrame], begin: int) -> None:
        self._done, self._under_way = begin + len(frames), len(frames)

        def job() -> _Result:
            pictures, left = decoder.decode_some(frames)
            return pictures, pictures, left

        self._run(sink, frames, job)

    def _run(self, sink: PictureSink, frames: list[ChainedFrame], job: Callable[[], _Result | None]) -> None:
        """Run a job, and again while it gives nothing: then there is more of it to do, and others have their turn between."""
        self._job = me = object()

        def done(result: _Result | None, error: BaseException | None) -> None:
            if self._job is not me:  # a job of whoever looked before
                return
            if error is None and result is None:
                sink.run(job, done)
                return
            self._job = None
            self._under_way = 0
            if error is not None or result is None or not result[0]:
                self._on_failed(error)
            else:
                pictures, developed, left = result
                self._done -= left
                self._on_decoded(sink, frames, pictures, developed)

        sink.run(job, done)
