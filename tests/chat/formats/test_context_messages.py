"""Transport messages lose nothing, and reading takes what people have (V4, V7, Shapes)."""

from __future__ import annotations

import json
import logging
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.formats.context_messages import (
    from_context_dict,
    from_context_messages,
    to_context_dict,
    to_context_messages,
)
from realtime.chat.formats.openai import to_openai_messages
from realtime.chat.messages import AgentHandoff, AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.errors import ArgumentError

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=6)
MESSAGES = st.builds(
    ChatMessage,
    st.sampled_from(ChatRole),
    ANY_TEXT,
    ANY_TEXT,
    st.lists(
        st.builds(
            FunctionCall,
            ANY_TEXT,
            ANY_TEXT,
            ANY_TEXT,
            provider_data=st.dictionaries(st.text(max_size=4), DATA, max_size=2),
        ),
        max_size=2,
    ),
    ANY_TEXT,
    st.lists(
        st.sampled_from([ImageContent.from_bytes(GIF, "image/gif", "low"), ImageContent.from_url("https://a.b/c")]),
        max_size=2,
    ),
    ANY_TEXT,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    audio=st.sampled_from([None, AudioContent.from_pcm(bytes(48), 24_000, transcript="yes")]),
    is_error=st.booleans(),
    tool_name=ANY_TEXT,
    thinking=ANY_TEXT,
    interrupted=st.booleans(),
    heard_ms=st.none() | st.integers(0, 10**6),
    unheard=ANY_TEXT,
    source=ANY_TEXT,
    summary=st.booleans(),
    provider_data=st.dictionaries(st.text(max_size=4), DATA, max_size=2),
)
HANDOFFS = st.builds(AgentHandoff, ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT)


@given(st.lists(MESSAGES, max_size=4), st.lists(HANDOFFS, max_size=2))
def test_writing_and_reading_through_json_loses_nothing(messages, handoffs):
    """V4."""
    written = json.loads(json.dumps(to_context_dict(messages, handoffs), allow_nan=False))
    assert from_context_dict(written) == (messages, handoffs)
    assert from_context_messages(to_context_messages(messages)) == messages


def test_a_plain_message_has_nothing_but_what_it_says():
    """Shapes: everything else only when present."""
    assert to_context_messages([ChatMessage(ChatRole.USER, "hi")]) == [{"role": "user", "content": "hi"}]
    assert to_context_messages(
        [
            ChatMessage(ChatRole.ASSISTANT, "", "m1", [FunctionCall("f", '{"a":1}', "c1")]),
            ChatMessage(ChatRole.TOOL, "ok", "m2", (), "c1", [ImageContent.from_url("https://a.b/c.png", "low")]),
        ]
    ) == [
        {
            "role": "assistant",
            "content": "",
            "message_id": "m1",
            "tool_calls": [{"call_id": "c1", "name": "f", "arguments_json": '{"a":1}'}],
        },
        {
            "role": "tool",
            "content": "ok",
            "message_id": "m2",
            "images": [{"url": "https://a.b/c.png", "detail": "low"}],
            "tool_call_id": "c1",
        },
    ]


def test_unknown_roles_are_the_users():
    class Speaker(Enum):
        MODEL = "assistant"

    given_roles: list[Any] = ["assistant", "ASSISTANT", Speaker.MODEL, ChatRole.TOOL, "moderator", "", None, 7]
    read = from_context_messages([{"role": role, "content": "x"} for role in given_roles])
    assert [message.role.value for message in read] == ["assistant"] * 3 + ["tool"] + ["user"] * 4


def test_reads_objects_and_camel_case_and_the_shape_of_openai():
    gif = ImageContent.from_bytes(GIF, "image/gif")
    read = from_context_messages(
        [
            SimpleNamespace(role="user", content="from an object", message_id="o1"),
            {"role": "assistant", "content": None, "messageId": "j1", "toolCalls": [{"callId": "c1", "name": "f", "argumentsJson": "{}"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "g", "arguments": "[]"}}]},
            {"role": "tool", "content": "ok", "toolCallId": "c2", "createdAt": 12.5},
            {"role": "user", "content": [{"type": "text", "text": "see"}, "here", {"type": "image_url", "image_url": {"url": gif.url, "detail": "low"}}]},
            {"role": "user", "content": [{"type": "input_text", "text": "and"}, {"type": "input_image", "image_url": gif.url}], "images": [gif.url]},
            {"role": "user", "content": 7},
        ]
    )  # fmt: skip
    assert read[0] == ChatMessage(ChatRole.USER, "from an object", "o1")
    assert read[1] == ChatMessage(ChatRole.ASSISTANT, "", "j1", [FunctionCall("f", "{}", "c1")])
    assert read[2].tool_calls == (FunctionCall("g", "[]", "c2"),)
    assert (read[3].tool_call_id, read[3].created_at) == ("c2", 12.5)
    assert (read[4].content, read[4].images[0].detail) == ("see\nhere", "low")
    assert (read[5].content, len(read[5].images)) == ("and", 2)
    assert read[6].content == "7"


def test_parts_of_a_content_may_be_objects_and_recordings():
    """What `to_openai_messages(audio=True)` writes, and what OpenAI's own objects hold, is read again."""
    picture = ImageContent.from_bytes(GIF, "image/gif", "low")
    recording = AudioContent.from_pcm(bytes(480), 24_000)
    shown = SimpleNamespace(type="input_image", image_url=picture.url, detail="low")
    said = SimpleNamespace(type="input_text", text="see")
    refused = {"type": "refusal", "refusal": "no"}
    messages = from_context_messages(
        [
            {"role": "user", "content": [said, shown, picture]},
            {"role": "assistant", "content": [refused]},
            *to_openai_messages([ChatMessage("user", "hear", audio=recording)], audio=True),
        ]
    )
    assert messages == [
        ChatMessage("user", "see", images=[picture, picture]),
        ChatMessage("assistant", "no"),
        ChatMessage("user", "hear", audio=recording),
    ]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_a_field_that_cannot_say_what_it_is_gives_its_type():
    (message,) = from_context_messages([{"role": "user", "content": Unspeakable(), "agent_id": Unspeakable()}])
    assert (message.content, message.agent_id) == ("<Unspeakable>", "<Unspeakable>")


def test_a_picture_that_cannot_be_read_is_dropped_and_reported_and_its_message_kept(caplog):
    """V7, B23."""
    secret = "QUJDREVG" * 40
    bad: list[Any] = [
        {"url": f"data:image/svg+xml;base64,{secret}"},
        {"url": f"data:image/png;base64,{secret}"},
        {"url": "ftp://a.b/c.png"},
        {"url": 7},
        {},
        7,
        "no address",
        {"url": ImageContent.from_bytes(GIF, "image/gif").url, "detail": "closest"},
    ]
    with caplog.at_level(logging.WARNING, "realtime.chat.formats"):
        (message,) = from_context_messages([{"role": "user", "content": "look", "images": bad}])
    assert message.content == "look"
    assert [image.detail for image in message.images] == ["auto"]  # the last one is a picture
    assert len(caplog.records) == len(bad) - 1
    assert secret not in caplog.text


def test_a_recording_that_cannot_be_read_is_dropped_and_reported(caplog):
    messages = [
        {"role": "user", "content": "said", "audio": audio} for audio in ({"data": "UklGRg=="}, {"data": None}, 3, {})
    ]
    with caplog.at_level(logging.WARNING, "realtime.chat.formats"):
        read = from_context_messages(messages)
    assert [(message.content, message.audio) for message in read] == [("said", None)] * 4
    assert len(caplog.records) == 4


@pytest.mark.parametrize(
    "given_messages", ["text", b"bytes", {"role": "user"}, 7, ["text"], [None], [["role", "user"]]]
)
def test_what_is_no_list_of_messages_is_refused(given_messages):
    with pytest.raises(ArgumentError, match="messages"):
        from_context_messages(given_messages)


def test_none_and_what_is_a_message_already():
    message = ChatMessage(ChatRole.USER, "hi")
    assert from_context_messages(None) == []
    assert from_context_messages(iter([message]))[0] is message


@pytest.mark.parametrize("data", [None, [], "x"])
def test_a_context_is_read_from_a_mapping_only(data):
    with pytest.raises(ArgumentError, match="items"):
        from_context_dict(data)
    assert from_context_dict({}) == ([], [])
