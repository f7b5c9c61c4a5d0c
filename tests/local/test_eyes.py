"""Pictures to words."""

from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image

from realtime.chat.messages import ImageContent
from realtime.errors import ImageError
from realtime.local.eyes import PictureEyes
from realtime.local.workers import FairPool

from .kit import picture


class CountingReader:
    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.read_pictures: list[bytes] = []
        self.closed = False
        self.prepared = 0

    async def prepare(self) -> None:
        self.prepared += 1

    async def read(self, picture: bytes) -> list[str]:
        self.read_pictures.append(picture)
        return self.lines

    async def aclose(self) -> None:
        self.closed = True


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[FairPool]:
    async with FairPool(2) as pool:
        yield pool


async def test_size_brightness_and_color_need_no_reading(pool: FairPool) -> None:
    reader = CountingReader("x")
    sight = await PictureEyes(pool, reader).look(picture((250, 240, 30), (320, 200)), owner="a", read=False)
    assert (sight.width, sight.height, sight.color) == (320, 200, "yellow")
    assert sight.brightness > 0.7
    assert reader.read_pictures == []


async def test_a_picture_is_read_once_however_often_it_is_asked_about(pool: FairPool) -> None:
    reader = CountingReader("EXIT")
    eyes, shown = PictureEyes(pool, reader), picture()
    assert (await eyes.look(shown, owner="a", read=False)).lines == ()
    sights = await asyncio.gather(*(eyes.look(shown, owner=owner) for owner in "abc"))
    assert {sight.lines for sight in sights} == {("EXIT",)}
    assert (await eyes.look(shown, owner="a", read=False)).lines == ("EXIT",)
    assert reader.read_pictures == [shown.data]


async def test_what_was_found_is_forgotten_with_the_picture(pool: FairPool) -> None:
    """R3: what is evicted is really freed."""
    eyes = PictureEyes(pool, CountingReader())
    shown = picture()
    await eyes.look(shown, owner="a")
    assert len(eyes._seen) == 1
    del shown
    gc.collect()
    assert eyes._seen == {}


async def test_a_turned_picture_is_looked_at_upright(pool: FairPool) -> None:
    image = Image.new("RGB", (40, 20), "red")
    exif = image.getexif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif)
    sight = await PictureEyes(pool, CountingReader()).look(ImageContent.from_bytes(file.getvalue(), ""), owner="a")
    assert (sight.width, sight.height) == (20, 40)


async def test_a_broken_picture_is_an_error_and_the_eyes_go_on(pool: FairPool) -> None:
    data = picture(size=(640, 480)).data
    broken = ImageContent.from_bytes(data[: len(data) // 3], "image/jpeg")
    eyes = PictureEyes(pool, CountingReader("x"))
    with pytest.raises(ImageError):
        await eyes.look(broken, owner="a")
    assert (await eyes.look(picture(), owner="a")).lines == ("x",)


async def test_the_reader_is_made_ready_once_however_many_pictures_come(pool: FairPool) -> None:
    reader = CountingReader()
    eyes = PictureEyes(pool, reader)
    for _ in range(3):
        await eyes.prepare()
    assert reader.prepared == 1


async def test_the_reader_ends_with_the_eyes(pool: FairPool) -> None:
    reader = CountingReader()
    await PictureEyes(pool, reader).aclose()
    assert reader.closed
