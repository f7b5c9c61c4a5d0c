"""The reader: words in pictures, and the process that finds them."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from realtime.errors import ImageError, MissingExtraError, ModelError
from realtime.local import reader as module
from realtime.local import reader_process
from realtime.local.reader import LENGTH, RapidReader, serve
from realtime.local.reader_process import ReaderProcess

from .kit import until


def sign(*lines: str, size: tuple[int, int] = (640, 360), color: str = "navy") -> bytes:
    image = Image.new("RGB", size, color)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((40, 40 + 90 * number), line, font=ImageFont.load_default(64), fill="white")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


@pytest.mark.local
def test_signs_are_read_from_top_to_bottom_whatever_their_size() -> None:
    reader = RapidReader()
    assert reader.read(sign("PLATFORM 9", "DELAYED")) == ["PLATFORM 9", "DELAYED"]
    assert reader.read(sign("OPEN 24 HOURS", size=(3000, 1200))) == ["OPEN 24 HOURS"]
    assert reader.read(sign()) == []
    with pytest.raises(ImageError):
        reader.read(b"\xff\xd8\xff\xe0 no picture")


class Scripted:
    """A reader that knows the length of a picture."""

    def read(self, picture: bytes) -> list[str]:
        if not picture:
            raise ImageError("picture", "nothing", "an image")
        return [f"{len(picture)} bytes"]


def test_the_process_answers_picture_by_picture_and_ends_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RapidReader", Scripted)
    pictures = b"".join(LENGTH.pack(length) + bytes(length) for length in (3, 0, 5)) + b"\x00"
    answers = io.BytesIO()
    serve(io.BytesIO(pictures), answers)
    ready, first, refused, last = (json.loads(line) for line in answers.getvalue().splitlines())
    assert (ready, first, last) == ({"ready": True}, {"lines": ["3 bytes"]}, {"lines": ["5 bytes"]})
    assert "must be an image" in refused["error"]


def test_a_reader_that_cannot_be_loaded_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("reading pictures", extra="local", package="rapidocr")

    monkeypatch.setattr(module, "RapidReader", missing)
    answers = io.BytesIO()
    serve(io.BytesIO(), answers)
    assert "rapidocr" in json.loads(answers.getvalue())["fatal"]


# -- the process ---------------------------------------------------------------------------------------------------------


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> str:
    """A module that stands in for the reader."""
    (tmp_path / "stand_in.py").write_text("import json, struct, sys, time\n" + source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "stand_in"


ECHO = """
def say(**answer): print(json.dumps(answer), flush=True)
say(ready=True)
while head := sys.stdin.buffer.read(4):
    picture = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    if picture == b"die": sys.exit(1)
    if picture == b"hang": sys.stdin.buffer.read()
    if picture == b"slow": time.sleep(0.05)
    say(error="odd") if picture == b"odd" else say(lines=[picture.decode()])
"""


async def test_pictures_are_read_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    await reader.prepare()
    assert await asyncio.gather(*(reader.read(word) for word in (b"a", b"b", b"c"))) == [["a"], ["b"], ["c"]]
    with pytest.raises(ImageError, match="odd"):
        await reader.read(b"odd")
    await reader.aclose()
    await reader.aclose()


async def test_a_process_that_died_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    with pytest.raises(ModelError, match="reader"):
        await reader.read(b"die")
    assert await reader.read(b"again") == ["again"]
    assert reader._process is not None
    reader._process.send_signal(signal.SIGKILL)
    await reader._process.wait()
    assert await reader.read(b"and again") == ["and again"]
    await reader.aclose()


async def test_a_picture_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "READ_SECONDS", 0.2)
    reader = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    with pytest.raises(ModelError, match="TimeoutError"):
        await reader.read(b"hang")
    monkeypatch.setattr(reader_process, "READ_SECONDS", 30.0)
    assert await reader.read(b"next") == ["next"]
    await reader.aclose()


async def test_a_reading_that_is_not_wanted_any_more_does_not_answer_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    await reader.prepare()
    process = reader._process
    for _ in range(2):
        reading = asyncio.create_task(reader.read(b"slow"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert await reader.read(b"next") == ["next"]
    assert reader._process is process
    await reader.aclose()


async def test_at_the_end_a_reader_that_is_at_work_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    await reader.prepare()
    process = reader._process
    reading = asyncio.create_task(reader.read(b"hang"))
    await until(lambda: reader._owed > 0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await reader.aclose()
    assert process is not None
    assert process.returncode == -signal.SIGKILL


async def test_a_reader_without_work_ends_by_itself_and_one_that_does_not_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_process, "END_SECONDS", 60.0)
    ends = ReaderProcess(program(tmp_path, monkeypatch, ECHO))
    await ends.prepare()
    process = ends._process
    await ends.aclose()
    assert process is not None
    assert process.returncode == 0
    monkeypatch.setattr(reader_process, "END_SECONDS", 0.05)
    stays = ReaderProcess(program(tmp_path, monkeypatch, "print('{\"ready\": true}', flush=True)\ntime.sleep(600)"))
    await stays.prepare()
    process = stays._process
    await stays.aclose()
    assert process is not None
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("source", "text"),
    [("print(json.dumps({'fatal': 'no models here'}), flush=True)", "no models here"), ("sys.exit(3)", "reader ended")],
)
async def test_a_reader_that_cannot_start_is_a_model_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    reader = ReaderProcess(program(tmp_path, monkeypatch, source))
    with pytest.raises(ModelError, match=text):
        await reader.prepare()
    await reader.aclose()


@pytest.mark.local
async def test_the_real_process_reads_a_sign() -> None:
    reader = ReaderProcess()
    assert await reader.read(sign("PLATFORM 9", "DELAYED")) == ["PLATFORM 9", "DELAYED"]
    await reader.aclose()
