"""Pictures to words."""

from __future__ import annotations

import asyncio
import gc
import io
import socket
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from PIL import Image, ImageDraw, ImageFont

from realtime.chat.messages import ImageContent
from realtime.errors import ImageError
from realtime.local.eyes import PictureEyes
from realtime.local.workers import FairPool

from .kit import picture


def sign(*lines: str, size: tuple[int, int] = (640, 360), color: str = "navy") -> ImageContent:
    image = Image.new("RGB", size, color)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((40, 40 + 90 * number), line, font=ImageFont.load_default(64), fill="white")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return ImageContent.from_bytes(file.getvalue(), "image/jpeg")


class CountingReader:
    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, rgb: np.ndarray) -> list[str]:
        self.shapes.append(rgb.shape)
        return self.lines


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[FairPool]:
    async with FairPool(2) as pool:
        yield pool


async def test_size_brightness_and_color_need_no_reading(pool: FairPool) -> None:
    reader = CountingReader("x")
    sight = await PictureEyes(pool, reader=reader).look(picture((250, 240, 30), (320, 200)), owner="a", read=False)
    assert (sight.width, sight.height, sight.color) == (320, 200, "yellow")
    assert sight.brightness > 0.7
    assert reader.shapes == []


async def test_a_picture_is_read_once_however_often_it_is_asked_about(pool: FairPool) -> None:
    reader = CountingReader("EXIT")
    eyes, shown = PictureEyes(pool, reader=reader), picture()
    sights = await asyncio.gather(*(eyes.look(shown, owner=owner) for owner in "abc"))
    assert {sight.lines for sight in sights} == {("EXIT",)}
    assert (await eyes.look(shown, owner="a", read=False)).lines == ("EXIT",)
    assert len(reader.shapes) == 1


async def test_what_was_found_is_forgotten_with_the_picture(pool: FairPool) -> None:
    """R3: what is evicted is really freed."""
    eyes = PictureEyes(pool, reader=CountingReader())
    shown = picture()
    await eyes.look(shown, owner="a")
    assert len(eyes._seen) == 1
    del shown
    gc.collect()
    assert eyes._seen == {}


async def test_large_pictures_are_read_smaller(pool: FairPool) -> None:
    reader = CountingReader()
    sight = await PictureEyes(pool, reader=reader).look(picture(size=(4000, 1000)), owner="a")
    assert (sight.width, sight.height) == (4000, 1000)
    assert reader.shapes == [(320, 1280, 3)]


async def test_a_turned_picture_is_looked_at_upright(pool: FairPool) -> None:
    image = Image.new("RGB", (40, 20), "red")
    exif = image.getexif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif)
    sight = await PictureEyes(pool, reader=CountingReader()).look(
        ImageContent.from_bytes(file.getvalue(), ""), owner="a"
    )
    assert (sight.width, sight.height) == (20, 40)


async def test_a_broken_picture_is_an_error_and_the_eyes_go_on(pool: FairPool) -> None:
    data = sign("HELLO").data
    broken = ImageContent.from_bytes(data[: len(data) // 3], "image/jpeg")
    eyes = PictureEyes(pool, reader=CountingReader("x"))
    with pytest.raises(ImageError):
        await eyes.look(broken, owner="a")
    assert (await eyes.look(picture(), owner="a")).lines == ("x",)


@pytest.mark.local
async def test_signs_are_read_without_a_network(pool: FairPool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("the eyes asked for the network")

    eyes = PictureEyes(pool)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    await eyes.prepare()
    assert (await eyes.look(sign("PLATFORM 9", "DELAYED"), owner="a")).lines == ("PLATFORM 9", "DELAYED")
    assert (await eyes.look(sign("OPEN 24 HOURS", size=(1024, 1024)), owner="a")).lines == ("OPEN 24 HOURS",)
    assert (await eyes.look(sign(), owner="a")).lines == ()
