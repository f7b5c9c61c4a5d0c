"""The record of a call: four files, the pictures only as thumbnails, clear errors for a folder that cannot be."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from realtime.demo.folder import Record, Shelf, contact_sheet, prepare_folder, write_folder
from realtime.demo.log import KeptFrame
from realtime.errors import UserError
from realtime.pcm import read_wav
from realtime.testing.recording import RECORDED_RATE_HZ, Recording


def _jpeg(color: tuple[int, int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (1024, 1024), color).save(out, "JPEG")
    return out.getvalue()


def _frame(number: int, left: str = "") -> KeptFrame:
    return KeptFrame(
        message_id=f"f{number}", source="camera", reason="schedule", at=float(number), age_ms=30, width=1024,
        height=1024, byte_length=90_000, left=left,
    )  # fmt: skip


def _recording(value: int, seconds: float) -> Recording:
    recording = Recording()
    recording.begin(5.0)
    recording.append(np.full(round(seconds * RECORDED_RATE_HZ), value, "<i2").tobytes())
    return recording


def test_the_folder_holds_context_reply_call_and_sheet(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("f1", _jpeg((200, 0, 0)))
    context = {"items": [{"role": "user", "content": "grüß dich 👋"}], "handoffs": []}
    record = Record(
        context=context, frames=[_frame(1)], shelf=shelf, user=_recording(900, 2.0), reply=_recording(1_000, 1.0)
    )
    out = tmp_path / "a" / "record"
    prepare_folder(out)
    files = write_folder(out, record)
    assert [path.name for path in files] == ["context.json", "reply.wav", "call.wav", "frames.png"]
    text = (out / "context.json").read_text(encoding="utf-8")
    assert json.loads(text) == context
    assert "👋" in text
    pcm, rate_hz, channels = read_wav((out / "reply.wav").read_bytes())
    assert (len(pcm) / 2 / rate_hz, channels) == (1.0, 1)
    pcm, rate_hz, channels = read_wav((out / "call.wav").read_bytes())
    both = np.frombuffer(pcm, "<i2").reshape(-1, 2)
    assert (len(both) / rate_hz, channels) == (2.0, 2)
    assert both[0].tolist() == [900, 1_000]
    assert both[-1].tolist() == [900, 0]
    with Image.open(out / "frames.png") as sheet:
        assert sheet.width > 224


def test_the_sheet_shows_every_frame_that_has_a_thumbnail_in_its_place() -> None:
    shelf = Shelf()
    colors = [(200, 0, 0), (0, 180, 0), (0, 0, 220)]
    for number, color in enumerate(colors):
        shelf.put(f"f{number}", _jpeg(color))
    sheet = contact_sheet([_frame(0), _frame(1, left="image_budget"), _frame(7), _frame(2)], shelf)
    for number, color in enumerate(colors):
        pixel = sheet.getpixel((12 + number * 236 + 112, 12 + 112))
        assert np.abs(np.subtract(pixel, color)).max() < 12
    below = [np.asarray(sheet.crop((12 + n * 236, 238, 12 + n * 236 + 224, 280))).min() for n in range(3)]
    assert max(below) < 150  # each has a label


def test_a_call_without_frames_still_has_a_sheet() -> None:
    assert contact_sheet([], Shelf()).size[0] > 100


def test_the_shelf_keeps_thumbnails_of_the_newest_only() -> None:
    shelf = Shelf()
    picture = _jpeg((1, 2, 3))
    for number in range(130):
        shelf.put(f"f{number}", picture)
    assert shelf.get("f29") is None
    thumb = shelf.get("f129")
    assert thumb is not None
    assert max(thumb.size) <= 224


def test_a_folder_that_cannot_be_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    for out in (file, file / "below"):
        with pytest.raises(UserError, match="not a folder"):
            prepare_folder(out)
