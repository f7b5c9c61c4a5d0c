"""`realtime.pipelines.input`: what an application may send by hand (A2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime.chat.messages import AudioContent, ImageContent
from realtime.errors import ArgumentError
from realtime.pcm import wav_bytes
from realtime.pipelines.input import AudioFeed, as_parts

PICTURE = ImageContent.from_frame(Image.new("RGB", (4, 4)))


async def encode(picture: Any) -> ImageContent:
    return ImageContent.from_frame(picture)


async def test_one_thing_or_several_of_any_kind():
    audio = AudioContent.from_wav(wav_bytes(bytes(480), 24_000))
    assert await as_parts("hi", encode) == ["hi"]
    assert await as_parts(PICTURE, encode) == [PICTURE]
    assert await as_parts(("a", PICTURE, audio), encode) == ["a", PICTURE, audio]


async def test_pictures_of_any_kind_are_encoded():
    [text, image] = await as_parts(["look", Image.new("RGB", (8, 8), "red")], encode)
    assert text == "look"
    assert isinstance(image, ImageContent)


@pytest.mark.parametrize("content", ["", [], ["a", ""], None, 5, {"a": 1}, ["a", None], [True]])
async def test_what_cannot_be_sent_is_refused_by_name(content):
    with pytest.raises(ArgumentError) as caught:
        await as_parts(content, encode)
    assert caught.value.argument == "content"


@given(st.lists(st.binary(max_size=6000), max_size=12))
def test_any_chunks_come_out_whole_in_order_and_bounded(chunks):
    """A2: framing loses nothing but half a sample at the end."""
    feed = AudioFeed(24_000)
    out = [piece for chunk in chunks for piece in feed.push(chunk, None)]
    out += feed.flush()
    joined = b"".join(chunks)
    assert b"".join(out) == joined[: len(joined) // 2 * 2]
    assert all(0 < len(piece) <= 4800 and len(piece) % 2 == 0 for piece in out)


def test_another_rate_is_converted_and_what_was_held_comes_first():
    feed = AudioFeed(24_000)
    out = b"".join(feed.push(bytes(16_000 * 2), 16_000))
    out += b"".join(feed.push(bytes(24_000 * 2), 24_000))
    assert len(out) / 2 == pytest.approx(48_000, abs=2)


@pytest.mark.parametrize(("pcm", "rate"), [("text", None), (b"\0\0", 0), (b"\0\0", "16000"), (None, None)])
def test_bad_audio_is_refused(pcm, rate):
    with pytest.raises(ArgumentError):
        list(AudioFeed(24_000).push(pcm, rate))
