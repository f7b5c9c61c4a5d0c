"""Chains share a thread's decoder and never touch each other (behaviour.md I5)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from aiortc.codecs.h264 import H264Encoder
from aiortc.codecs.vpx import Vp8Encoder

from realtime.errors import ImageError
from realtime.tracks import picture_decoder
from realtime.tracks.encoded_video import EncodedFrame
from realtime.tracks.picture_decoder import (
    ChainedFrame,
    DecodeError,
    FrameChain,
    PictureDecoder,
    UndecodedFrame,
    decode_alone,
)

CODECS = ["vp8", "h264"]
STEP = 3_000


def picture(seed: int, index: int, size: tuple[int, int]) -> av.VideoFrame:
    """Noise that moves: each of a seed is another."""
    width, height = size
    rough = np.random.default_rng(seed).integers(16, 235, (height // 8, width // 8), dtype=np.uint8)
    luma = np.roll(np.kron(rough, np.ones((8, 8), np.uint8)), index * 3, axis=1)
    made = av.VideoFrame.from_ndarray(np.vstack([luma, np.full((height // 2, width), 128, np.uint8)]), format="yuv420p")
    made.pts, made.time_base = index * STEP, Fraction(1, 90_000)
    return made


def chain(codec: str, seed: int, *, frames: int = 4, size: tuple[int, int] = (128, 96)) -> FrameChain:
    encoder: Any = Vp8Encoder() if codec == "vp8" else H264Encoder()
    chained = []
    for index in range(frames):
        payloads, _ = encoder.encode(picture(seed, index, size), index == 0)
        encoded = EncodedFrame(timestamp=index * STEP, payloads=tuple(payloads), is_key=index == 0)
        chained.append(ChainedFrame(encoded, index * STEP, 0.0))
    return FrameChain(codec, chained)


def planes(frame: av.VideoFrame) -> bytes:
    return frame.to_ndarray().tobytes()


def alone(chained: FrameChain) -> bytes:
    """The newest picture, by a decoder that never saw anything else."""
    return planes(PictureDecoder(chained.codec).decode(chained.frames)[-1])


@pytest.fixture(autouse=True)
def _no_decoders():
    picture_decoder._decoders.by_codec.clear()


@pytest.mark.parametrize("codec", CODECS)
def test_chains_one_after_the_other_give_what_decoders_of_their_own_would(codec):
    sizes = [(128, 96), (96, 128), (128, 96), (256, 192)]
    chains = [chain(codec, seed, frames=2 + seed, size=size) for seed, size in enumerate(sizes)]
    for _ in range(2):
        for chained in chains:
            assert planes(decode_alone(codec, chained.frames)[-1]) == alone(chained)
    assert len(picture_decoder._decoders.by_codec) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_pictures_that_are_still_looked_at_stay_as_they_are(codec):
    first, second = chain(codec, 1), chain(codec, 2)
    kept = decode_alone(codec, first.frames)[-1]
    before = planes(kept)
    for _ in range(5):
        decode_alone(codec, second.frames)
    assert planes(kept) == before == alone(first)


@pytest.mark.parametrize("codec", CODECS)
def test_on_the_way_to_the_newest_picture_the_others_are_let_go(codec):
    """A decoder never gives back the memory of as many pictures as there ever were at once (issue 5: memory is flat)."""
    long = chain(codec, 7, frames=30)
    used: set[int] = set()
    for end in range(1, 31):
        [newest] = decode_alone(codec, long.frames[:end], only_newest=True)
        assert planes(newest) == alone(FrameChain(codec, long.frames[:end]))
        used.add(newest.planes[0].buffer_ptr)
        del newest
    assert len(used) <= 8  # buffers are used again; all pictures of the longest chain would have needed 30


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_chain_harms_no_other(codec):
    good = chain(codec, 3)
    for at in range(4):
        bad = chain(codec, 4)
        whole = bad.frames[at].frame
        payloads = tuple(payload[:3] + bytes(reversed(payload[3:])) for payload in whole.payloads)
        damaged = EncodedFrame(timestamp=whole.timestamp, payloads=payloads, is_key=whole.is_key)
        bad.frames[at] = bad.frames[at]._replace(frame=damaged)
        try:
            decode_alone(codec, bad.frames)
        except DecodeError:
            assert codec not in picture_decoder._decoders.by_codec
        assert planes(decode_alone(codec, good.frames)[-1]) == alone(good)


def test_a_stream_without_parameters_is_not_read_with_those_of_another():
    """Senders that tell H.264's parameters only once: each of their key frames needs the decoder that heard them."""
    other = chain("h264", 5, size=(256, 192))
    decode_alone("h264", other.frames)
    bare = chain("h264", 6)
    first = bare.frames[0].frame
    slices = tuple(payload for payload in first.payloads if payload[0] & 0x1F not in (7, 8, 24))
    assert slices
    assert slices != first.payloads
    bare.frames[0] = bare.frames[0]._replace(frame=EncodedFrame(timestamp=0, payloads=slices, is_key=True))
    assert other.is_self_contained
    assert not bare.is_self_contained
    with pytest.raises(ImageError):
        UndecodedFrame(bare, (128, 96)).decode()


def test_a_chain_that_begins_in_the_middle_is_not_self_contained():
    whole = chain("vp8", 7)
    assert whole.is_self_contained
    assert not FrameChain("vp8", whole.frames[1:]).is_self_contained


def _with_reordering() -> list[ChainedFrame]:
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 128, 96, "yuv420p", Fraction(1, 30)
    encoder.options = {"preset": "medium", "bf": "3", "threads": "1"}
    packets: list[Any] = []
    for index in range(12):
        packets += encoder.encode(picture(8, index, (128, 96)).reformat(format="yuv420p"))
    packets += encoder.encode(None)
    frames = []
    for index, packet in enumerate(packets):
        units = [unit for unit in bytes(packet).replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if unit]
        encoded = EncodedFrame(timestamp=index * STEP, payloads=tuple(units), is_key=index == 0)
        frames.append(ChainedFrame(encoded, index * STEP, 0.0))
    return frames


def test_a_sender_of_frames_out_of_order_holds_no_other_back():
    """A decoder that met such a stream would give every later picture a frame late."""
    frames = _with_reordering()
    assert FrameChain("h264", frames).is_self_contained
    assert len(decode_alone("h264", frames)) < len(frames)
    good = chain("h264", 9, frames=2)
    pictures = decode_alone("h264", good.frames)
    assert len(pictures) == 2
    assert planes(pictures[-1]) == alone(good)


def test_each_thread_has_decoders_of_its_own_and_they_end_with_it():
    chained = chain("vp8", 10)
    wanted = alone(chained)
    together = threading.Barrier(2)

    def work(_: int) -> tuple[bool, int]:
        together.wait(60)
        right = all(planes(decode_alone("vp8", chained.frames)[-1]) == wanted for _ in range(20))
        return right, id(picture_decoder._decoders.by_codec["vp8"])

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(2)))
    assert all(right for right, _ in results)
    assert len({decoder for _, decoder in results}) == 2
    assert not picture_decoder._decoders.by_codec
