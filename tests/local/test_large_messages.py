"""Wire messages of megabytes: what they say, that they are read off the loop, and that none of them hurts."""

from __future__ import annotations

import base64
import io
import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime.errors import ModelError
from realtime.local import items, large_messages
from realtime.local.large_messages import LARGE_CHARS, PIECE_CHARS, LargeMessage, decode_base64_in_pieces
from realtime.wire.openai_messages import parse_client_event

from .kit import Client, ScriptedResponder, make_parts, quiet

LONG = large_messages.LONG_STRING_CHARS


def read(data: str | bytes) -> Any:
    large = LargeMessage(data)
    return large.restore(parse_client_event(large.rest))


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        'quoted "words" and \\ backslashes \\\\" ' * 5_000,
        "Grüße, 世界 😀 " * 10_000,
        "\n\t\x00" * 30_000,
        "ends in a backslash" * 5_000 + "\\",
    ],
)
@pytest.mark.parametrize("ascii", [True, False])
def test_a_large_message_says_what_a_small_one_would(text: str, ascii: bool) -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": text}
    event = {"type": "conversation.item.create", "event_id": "e1", "item": item, text: [text, {"again": text}]}
    assert read(json.dumps(event, ensure_ascii=ascii)) == event
    assert read(json.dumps(event, ensure_ascii=ascii).encode()) == event


@given(st.data())
def test_wherever_long_strings_stand_they_are_put_back(data: st.DataObject) -> None:
    draw = random.Random(data.draw(st.integers(0, 10_000)))
    alphabet = ['"', "\\", "/", "a", "é", "😀", "\n", "{", "}", ":", ","]

    def value(depth: int) -> Any:
        kind = draw.randrange(5 if depth < 3 else 2)
        if kind <= 1:
            return "".join(draw.choices(alphabet, k=draw.choice([0, 3, 40, LONG + 7])))
        if kind == 2:
            return [value(depth + 1) for _ in range(draw.randrange(3))]
        if kind == 3:
            return {f"{number}\\": value(depth + 1) for number in range(draw.randrange(3))}
        return draw.choice([None, True, 1.5, -3])

    event = {"type": "response.cancel", "more": value(0)}
    assert read(json.dumps(event, ensure_ascii=draw.random() < 0.5)) == event


@pytest.mark.parametrize(
    "data",
    [
        '{"type": "response.cancel", "more": "' + "x" * LONG,
        '{"type": "response.cancel", "more": "' + "x" * LONG + "\\",
        '{"type": "response.cancel", "more": "' + "\\u12" * LONG + '"}',
        b'{"type": "\xff' + b"x" * LONG + b'"}',
        '{"type": "response.cancel", "more": [' + '"x",' * LARGE_CHARS + '"x"]}',
        "[" * LARGE_CHARS,
        "x" * (LARGE_CHARS + 1),
    ],
    ids=["no end", "backslash", "escapes", "no UTF-8", "many strings", "deep", "no JSON"],
)
async def test_what_is_no_event_is_refused_and_the_session_goes_on(data: str | bytes) -> None:
    with pytest.raises(ModelError) as refused:
        read(data)
    assert refused.value.code == "invalid_event"
    async with Client(make_parts()) as client:
        await client.session.receive(data if len(data) > LARGE_CHARS else data + data[-1:] * LARGE_CHARS)
        assert client.errors[-1]["code"] == "invalid_event"
        assert (await client.type("Hi."))[-1]["type"] == "conversation.item.done"


def test_base64_is_read_in_pieces_like_at_once() -> None:
    data = random.Random(1).randbytes(PIECE_CHARS * 2)
    text = base64.b64encode(data).decode()
    assert decode_base64_in_pieces(text) == data
    assert decode_base64_in_pieces("") == b""
    assert decode_base64_in_pieces("\n".join(text[at : at + 76] for at in range(0, len(text), 76))) == data
    assert decode_base64_in_pieces(base64.urlsafe_b64encode(data).decode().rstrip("=")) == data
    assert decode_base64_in_pieces(text[:PIECE_CHARS] + "!" + text[PIECE_CHARS:]) is None


def large_picture() -> str:
    image = Image.frombytes("RGB", (1200, 800), random.Random(1).randbytes(1200 * 800 * 3))
    file = io.BytesIO()
    image.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


async def test_a_large_picture_and_audio_are_read_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    def decode(text: str) -> bytes | None:
        threads.add(threading.current_thread().name)
        return decode_base64_in_pieces(text)

    monkeypatch.setattr(items, "decode_base64_in_pieces", decode)
    responder, url = ScriptedResponder(), large_picture()
    assert len(url) > 3_000_000
    sound = base64.b64encode(quiet(20_000)).decode()
    content = [{"type": "input_image", "image_url": url}, {"type": "input_audio", "audio": sound, "transcript": "hush"}]
    async with Client(make_parts(responder)) as client:
        item = {"type": "message", "role": "user", "content": content}
        await client.session.receive(json.dumps({"type": "conversation.item.create", "item": item}))
        await client.session.receive(json.dumps({"type": "input_audio_buffer.append", "audio": sound}))
        await client.session.receive(json.dumps({"type": "response.create"}))
        await client.settle()
        assert client.errors == []
        assert client.session._listener.input.position_ms >= 19_990
        (message,) = responder.requests[0].messages
        assert message.images[0].url == url
        assert message.images[0].size == (1200, 800)
        assert "hush" in message.content
    assert threads
    assert "MainThread" not in threads


async def test_a_refused_large_event_is_named_by_its_id() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 2 * LARGE_CHARS}
    item = {"type": "message", "role": "user", "content": [picture]}
    async with Client(make_parts()) as client:
        await client.say("conversation.item.create", item=item, event_id="mine")
        for _ in range(1000):
            if client.errors:
                break
            await client.changed.wait()
        (error,) = client.errors
        assert (error["event_id"], error["code"]) == ("mine", "invalid_value")
        assert error["param"] == "item.content[0].image_url"
