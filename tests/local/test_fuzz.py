"""Whatever a client sends, it is answered or refused, and the session goes on."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import hypothesis
from hypothesis import strategies as st

from .kit import Client, ScriptedResponder, loud, make_parts, picture

AUDIO = base64.b64encode(loud(100)).decode()
EVENTS: list[dict[str, Any]] = [
    {
        "type": "session.update",
        "session": {"type": "realtime", "instructions": "x", "tools": [], "tool_choice": "auto"},
    },
    {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "audio": {
                "input": {
                    "format": {"type": "audio/pcmu"},
                    "turn_detection": {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 200},
                    "transcription": {"model": "x", "language": "en"},
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy", "speed": 1.0},
            },
        },
    },
    {"type": "input_audio_buffer.append", "audio": AUDIO},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    {
        "type": "conversation.item.create",
        "previous_item_id": None,
        "item": {
            "type": "message",
            "id": "item_1",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hello"},
                {"type": "input_image", "image_url": picture().url, "detail": "auto"},
                {"type": "input_audio", "audio": AUDIO},
            ],
        },
    },
    {
        "type": "conversation.item.create",
        "item": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "call_1"},
    },
    {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "call_1", "output": "7"}},
    {"type": "conversation.item.retrieve", "item_id": "item_1"},
    {"type": "conversation.item.truncate", "item_id": "item_1", "content_index": 0, "audio_end_ms": 100},
    {"type": "conversation.item.delete", "item_id": "item_1"},
    {
        "type": "response.create",
        "response": {"conversation": "none", "metadata": {"a": "b"}, "input": [], "output_modalities": ["text"]},
    },
    {"type": "response.create"},
    {"type": "response.cancel", "response_id": "resp_1"},
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=20),
    st.just("\ud800"),
    st.just([]),
    st.just({}),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside an event."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += places(inner, (*path, number))
    return found


@st.composite
def wire_messages(draw: st.DrawFn) -> str:
    """An event, perhaps with something odd in one place of it."""
    event = json.loads(json.dumps(draw(st.sampled_from(EVENTS))))
    if draw(st.booleans()):
        *way, last = draw(st.sampled_from(places(event)))
        holder: Any = event
        for step in way:
            holder = holder[step]
        match draw(st.integers(0, 2)):
            case 0:
                holder[last] = draw(ODD)
            case 1:
                del holder[last]
            case _ if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = draw(ODD)
            case _:
                holder.append(draw(ODD))
    return json.dumps(event)


@hypothesis.given(st.lists(wire_messages(), min_size=1, max_size=12))
@hypothesis.settings(max_examples=150, deadline=None)
def test_odd_events_are_refused_by_name_and_nothing_breaks(messages: list[str]) -> None:
    async def hold() -> Client:
        async with Client(make_parts(ScriptedResponder(*["Yes."] * 12))) as client:
            for message in messages:
                await client.session.receive(message)
                await client.settle(10)
            await client.settle(200)
            assert (await client.update())[-1]["type"] == "session.updated"
            return client

    client = asyncio.run(hold())
    for error in client.errors:
        assert error["type"] == "invalid_request_error", error
        assert error["code"]
    started = {event["response"]["id"] for event in client.of("response.created")}
    ended = {event["response"]["id"] for event in client.of("response.done")}
    assert started == ended


@hypothesis.given(st.binary(max_size=200) | st.text(max_size=200))
@hypothesis.settings(max_examples=150, deadline=None)
def test_what_is_no_event_is_refused(message: str | bytes) -> None:
    async def send() -> Client:
        async with Client(make_parts()) as client:
            await client.session.receive(message)
            return client

    client = asyncio.run(send())
    assert [error["type"] for error in client.errors] == ["invalid_request_error"]
