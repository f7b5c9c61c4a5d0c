"""Chains become pictures and never touch each other (behaviour.md I5)."""

from __future__ import annotations

import contextlib
import weakref
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
from realtime.tracks.vp8_header import is_faintly_filtered

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


def camera_key(*, noise: float, quantizer: int, size: tuple[int, int] = (320, 240)) -> tuple[ChainedFrame, Any]:
    """A key frame of waves with sensor noise, of a quantizer on libvpx's scale; and the luma that it is of."""
    width, height = size
    encoder: Any = av.CodecContext.create("libvpx", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = width, height, "yuv420p", Fraction(1, 30)
    encoder.qmin = encoder.qmax = quantizer
    encoder.bit_rate, encoder.options = 5_000_000, {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0"}
    down, across = np.mgrid[0:height, 0:width]
    waves = 128 + 60 * np.sin(across / 37) * np.cos(down / 51)
    luma = np.clip(waves + np.random.default_rng(3).normal(0, noise, waves.shape), 16, 235).astype(np.uint8)
    chroma = np.full((height // 2, width), 128, np.uint8)
    made = av.VideoFrame.from_ndarray(np.vstack([luma, chroma]), format="yuv420p")
    [packet] = encoder.encode(made)
    content = bytes(packet)
    payloads = [
        b"\x10" + content[:1_000],
        *(b"\0" + content[at : at + 1_000] for at in range(1_000, len(content), 1_000)),
    ]
    return ChainedFrame(EncodedFrame(timestamp=0, payloads=tuple(payloads), is_key=True), 0, 0.0), luma


def psnr(frame: av.VideoFrame, luma: Any) -> float:
    rows = frame.to_ndarray()[: frame.height].astype(float)
    return float(10 * np.log10(255**2 / np.mean((rows - luma) ** 2)))


def planes(frame: av.VideoFrame) -> bytes:
    return frame.to_ndarray().tobytes()


def alone(chained: FrameChain) -> bytes:
    """The newest picture, by a decoder that never saw anything else."""
    return planes(PictureDecoder(chained.codec).decode(chained.frames)[-1])


@pytest.mark.parametrize("codec", CODECS)
def test_chains_one_after_the_other_give_what_decoders_of_their_own_would(codec):
    sizes = [(128, 96), (96, 128), (128, 96), (256, 192)]
    chains = [chain(codec, seed, frames=2 + seed, size=size) for seed, size in enumerate(sizes)]
    for _ in range(2):
        for chained in chains:
            assert planes(decode_alone(codec, chained.frames)[-1]) == alone(chained)


@pytest.mark.parametrize("codec", CODECS)
def test_pictures_that_are_still_looked_at_stay_as_they_are(codec):
    first, second = chain(codec, 1), chain(codec, 2)
    kept = decode_alone(codec, first.frames)[-1]
    before = planes(kept)
    for _ in range(5):
        decode_alone(codec, second.frames)
    assert planes(kept) == before == alone(first)


class Library:
    """Gives a picture for each packet, and knows how many are there at once."""

    class Picture:
        """One of them."""

    def __init__(self) -> None:
        self.there: weakref.WeakSet[Library.Picture] = weakref.WeakSet()
        self.most = 0

    def decode(self, _: Any) -> list[Library.Picture]:
        made = Library.Picture()
        self.there.add(made)
        self.most = max(self.most, len(self.there))
        return [made]


def test_on_the_way_to_the_newest_picture_the_others_are_let_go():
    """A decoder never gives back the memory of as many pictures as there ever were at once (issue 5: memory is flat)."""
    decoder, library = PictureDecoder("vp8"), Library()
    decoder._context = library
    [newest] = decoder.decode(chain("vp8", 7, frames=30).frames, only_newest=True)
    assert set(library.there) == {newest}
    assert library.most <= 2


@pytest.mark.parametrize("codec", CODECS)
def test_the_newest_picture_is_the_one_that_all_of_them_end_with(codec):
    long = chain(codec, 7, frames=12)
    for end in range(1, 13):
        [newest] = decode_alone(codec, long.frames[:end], only_newest=True)
        assert planes(newest) == alone(FrameChain(codec, long.frames[:end]))


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_chain_harms_no_other(codec):
    good = chain(codec, 3)
    for at in range(4):
        bad = chain(codec, 4)
        whole = bad.frames[at].frame
        payloads = tuple(payload[:3] + bytes(reversed(payload[3:])) for payload in whole.payloads)
        damaged = EncodedFrame(timestamp=whole.timestamp, payloads=payloads, is_key=whole.is_key)
        bad.frames[at] = bad.frames[at]._replace(frame=damaged)
        with contextlib.suppress(DecodeError):
            decode_alone(codec, bad.frames)
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


def _by_x264(options: dict[str, str], *, frames: int) -> list[ChainedFrame]:
    encoder: Any = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 128, 96, "yuv420p", Fraction(1, 30)
    encoder.options = {"threads": "1", **options}
    packets: list[Any] = []
    for index in range(frames):
        packets += encoder.encode(picture(8, index, (128, 96)).reformat(format="yuv420p"))
    packets += encoder.encode(None)
    chained = []
    for index, packet in enumerate(packets):
        units = [unit for unit in bytes(packet).replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if unit]
        encoded = EncodedFrame(timestamp=index * STEP, payloads=tuple(units), is_key=index == 0)
        chained.append(ChainedFrame(encoded, index * STEP, 0.0))
    return chained


def test_a_sender_of_frames_out_of_order_holds_no_other_back():
    """A decoder that met such a stream would give every later picture a frame late."""
    frames = _by_x264({"preset": "medium", "bf": "3"}, frames=12)
    assert FrameChain("h264", frames).is_self_contained
    assert len(PictureDecoder("h264").decode(frames)) < len(frames)
    decode_alone("h264", frames)
    good = chain("h264", 9, frames=2)
    pictures = decode_alone("h264", good.frames)
    assert len(pictures) == 2
    assert planes(pictures[-1]) == alone(good)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_what_is_decoded_alone_is_there_at_once_though_its_sender_sends_out_of_order(count):
    """Nothing follows that could bring it; a decoder that goes on holds it back until two more came."""
    frames = _by_x264({"preset": "medium", "bf": "3"}, frames=12)[:count]
    assert len(decode_alone("h264", frames)) == count
    [newest] = decode_alone("h264", frames, only_newest=True)
    assert planes(newest) == planes(decode_alone("h264", frames)[-1])
    assert planes(UndecodedFrame(FrameChain("h264", frames), (128, 96)).decode()) == planes(newest)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("left_out", [1, 3])
def test_what_a_frame_leaves_out_shows_nothing_of_another_call(codec, left_out):
    """A peer may send frames that end too soon: whatever is made of them, it is never another's picture."""
    size = (640, 480)
    other = chain(codec, 11, frames=1, size=size)
    [whole] = chain(codec, 12, frames=1, size=size).frames
    payloads = whole.frame.payloads[:-left_out]
    assert len(payloads) > 3
    cut = whole._replace(frame=EncodedFrame(timestamp=0, payloads=payloads, is_key=True))

    def try_to_decode() -> list[bytes] | None:
        try:
            return [planes(picture) for picture in decode_alone(codec, [cut])]
        except DecodeError:
            return None

    before = try_to_decode()
    decode_alone(codec, other.frames)
    assert try_to_decode() == before


@pytest.mark.parametrize("left_out", [1, 3, 9])
def test_what_a_plain_key_frame_leaves_out_shows_nothing_of_another_call(left_out):
    """As above, of one that is spared its loop filter."""
    other, _ = camera_key(noise=6, quantizer=5)
    key, _ = camera_key(noise=4, quantizer=5)
    cut = key._replace(frame=EncodedFrame(timestamp=0, payloads=key.frame.payloads[:-left_out], is_key=True))
    assert is_faintly_filtered(cut.frame.payloads)

    def try_to_decode() -> list[bytes] | None:
        try:
            return [planes(picture) for picture in decode_alone("vp8", [cut])]
        except DecodeError:
            return None

    before = try_to_decode()
    decode_alone("vp8", [other])
    assert try_to_decode() == before


def test_a_stream_that_says_nothing_of_its_colors_has_none_of_another():
    """H.264 as browsers send it says nothing; some hardware says BT.709."""
    marked = _by_x264({"tune": "zerolatency", "x264-params": "colormatrix=bt709:fullrange=on"}, frames=1)
    [silent] = decode_alone("h264", chain("h264", 13, frames=1).frames)
    colors = (silent.colorspace, silent.color_range, silent.format.name)
    assert decode_alone("h264", marked)[0].colorspace != silent.colorspace
    [again] = decode_alone("h264", chain("h264", 13, frames=1).frames)
    assert (again.colorspace, again.color_range, again.format.name) == colors


@pytest.mark.parametrize("quantizer", [4, 8])
@pytest.mark.parametrize("noise", [2, 4])
def test_a_key_frame_that_is_shown_alone_is_as_good_without_a_faint_loop_filter(noise, quantizer):
    key, luma = camera_key(noise=noise, quantizer=quantizer)
    assert is_faintly_filtered(key.frame.payloads)
    [plain] = decode_alone("vp8", [key])
    [filtered] = PictureDecoder("vp8").decode([key])
    assert psnr(plain, luma) > psnr(filtered, luma) - 0.1


def test_a_key_frame_is_filtered_where_that_is_seen_and_where_another_is_decoded_from_it():
    smooth, _ = camera_key(noise=0, quantizer=7)
    assert planes(decode_alone("vp8", [smooth])[-1]) == alone(FrameChain("vp8", [smooth]))
    noisy, _ = camera_key(noise=4, quantizer=8)
    assert planes(decode_alone("vp8", [noisy])[-1]) != alone(FrameChain("vp8", [noisy]))
    both = [noisy, noisy._replace(pts=STEP)]
    assert planes(decode_alone("vp8", both)[0]) == alone(FrameChain("vp8", [noisy]))


@pytest.mark.parametrize("codec", CODECS)
def test_a_picture_of_monstrous_size_is_not_decoded(codec, monkeypatch):
    """A header of a few bytes can ask for any size; one thread decodes for all calls."""
    chained = chain(codec, 14, frames=1, size=(320, 240))
    assert decode_alone(codec, chained.frames)
    monkeypatch.setattr(picture_decoder, "MAX_PIXELS", 320 * 240 - 1)
    with pytest.raises(DecodeError):
        decode_alone(codec, chained.frames)
