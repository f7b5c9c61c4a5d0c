"""Items as clients send them and see them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from realtime.errors import ModelError
from realtime.local.items import StoredItem, StoredPart, item_to_wire, read_item

from .kit import loud, picture


def read(item: dict[str, Any], audio_format: str = "audio/pcm") -> StoredItem:
    return read_item(item, new_id="item_new", audio_format=audio_format)


def message(role: str = "user", *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(content), **fields}


TEXT = {"type": "input_text", "text": "hello"}


def test_a_message_of_text_pictures_and_audio_is_read_and_shown() -> None:
    image = picture()
    audio = base64.b64encode(loud(250)).decode()
    item = read(
        message(
            "user",
            TEXT,
            {"type": "input_image", "image_url": image.url, "detail": "low"},
            {"type": "input_audio", "audio": audio},
            id="msg_1",
        )
    )
    assert item.id == "msg_1"
    text, shown, heard = item.parts
    assert text.text == "hello"
    assert shown.image is not None
    assert shown.image.data == image.data
    assert (heard.audio_ms, heard.transcribed) == (250, False)
    assert item_to_wire(item) == {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [TEXT, {"type": "input_image", "detail": "low"}, {"type": "input_audio", "transcript": None}],
    }


def test_retrieved_whole_an_item_has_its_pictures_and_its_audio() -> None:
    image = picture()
    audio = loud(300)
    content = [
        {"type": "input_image", "image_url": image.url},
        {"type": "input_audio", "audio": base64.b64encode(audio).decode(), "transcript": "beep"},
    ]
    wire = item_to_wire(read(message("user", *content)), media_format="audio/pcm")
    shown, heard = wire["content"]
    assert shown["image_url"] == image.url
    assert heard["transcript"] == "beep"
    back = np.frombuffer(base64.b64decode(heard["audio"]), "<i2").astype(float)
    sent = np.frombuffer(audio, "<i2").astype(float)
    assert len(back) == len(sent)
    assert np.abs(back - sent)[300:-300].max() < 200


def test_calls_and_results() -> None:
    call = read({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "call_1"})
    assert item_to_wire(call) == {
        "id": "item_new",
        "type": "function_call",
        "status": "completed",
        "name": "f",
        "call_id": "call_1",
        "arguments": "{}",
    }
    result = read({"type": "function_call_output", "call_id": "call_1", "output": ""})
    assert item_to_wire(result) == {"id": "item_new", "type": "function_call_output", "call_id": "call_1", "output": ""}


def test_older_clients_call_text_text() -> None:
    assert read(message("assistant", {"type": "text", "text": "hi"})).parts[0].type == "output_text"
    assert read(message("user", {"type": "text", "text": "hi"})).parts[0].type == "input_text"


@pytest.mark.parametrize(
    ("item", "code", "param"),
    [
        ({}, "missing_required_parameter", "item.type"),
        ({"type": "thought"}, "invalid_value", "item.type"),
        ({"type": "message", "content": [TEXT]}, "missing_required_parameter", "item.role"),
        ({"type": "message", "role": "user"}, "missing_required_parameter", "item.content"),
        (message("tool", TEXT), "invalid_value", "item.role"),
        (message("user"), "invalid_value", "item.content"),
        (message("user", TEXT) | {"content": "hello"}, "invalid_type", "item.content"),
        (message("user", TEXT) | {"content": ["hello"]}, "invalid_type", "item.content[0]"),
        (message("user", TEXT, {"text": "x"}), "missing_required_parameter", "item.content[1].type"),
        (message("user", {"type": "output_text", "text": "x"}), "invalid_value", "item.content[0].type"),
        (message("assistant", TEXT), "invalid_value", "item.content[0].type"),
        (message("system", {"type": "input_image"}), "invalid_value", "item.content[0].type"),
        (message("user", {"type": "input_text"}), "missing_required_parameter", "item.content[0].text"),
        (
            message("user", {"type": "input_image", "image_url": "https://a.b/c.png"}),
            "invalid_value",
            "item.content[0].image_url",
        ),
        (
            message("user", {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}),
            "invalid_value",
            "item.content[0].image_url",
        ),
        (
            message("user", {"type": "input_image", "image_url": picture().url, "detail": "fine"}),
            "invalid_value",
            "item.content[0].detail",
        ),
        (message("user", {"type": "input_audio", "audio": "%%%"}), "invalid_value", "item.content[0].audio"),
        (message("user", TEXT, id="x" * 33), "invalid_value", "item.id"),
        ({"type": "function_call", "arguments": "{}"}, "missing_required_parameter", "item.name"),
        ({"type": "function_call_output", "output": "x"}, "missing_required_parameter", "item.call_id"),
        ({"type": "function_call_output", "call_id": "c", "output": {"a": 1}}, "invalid_type", "item.output"),
    ],
)
def test_what_cannot_be_is_refused_by_its_place(item: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ModelError) as refusal:
        read(item)
    assert (refusal.value.code, refusal.value.param) == (code, param)


def test_items_know_about_how_large_they_are() -> None:
    image = picture(size=(640, 480))
    part = StoredPart(type="input_image", image=image)
    item = StoredItem(id="a", kind="message", role="user", parts=[part])
    assert item.byte_length >= image.byte_length
