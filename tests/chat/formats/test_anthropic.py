"""Anthropic's messages (F2–F11; field cases B02, B05, B08, B10, B20, B21, B23)."""

from __future__ import annotations

import base64
import logging

import pytest

from realtime.chat.formats.anthropic import to_anthropic_messages
from realtime.chat.formats.text import CLOSING_FILLER, NO_OUTPUT, OPENING_FILLER, PENDING_OUTPUT
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent

S, D, U, A, T = ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
BYTES = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
GIF = ImageContent.from_bytes(BYTES, "image/jpg", "low")
WEB = ImageContent.from_url("https://example.com/a.jpg")


def call(*call_ids: str, text: str = "", arguments: str = "{}") -> ChatMessage:
    return ChatMessage(A, text, "", [FunctionCall("f", arguments, call_id) for call_id in call_ids])


def result(call_id: str, text: str = "ok") -> ChatMessage:
    return ChatMessage(T, text, "", (), call_id)


def test_the_system_text_comes_beside_the_messages():
    """Shapes."""
    out = to_anthropic_messages([ChatMessage(S, "be kind"), ChatMessage(D, "be brief"), ChatMessage(U, "hi")])
    assert out == ([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "be kind\n\nbe brief")
    assert (out.messages, out.system) == out
    assert to_anthropic_messages([ChatMessage(U, "hi")]).system is None
    assert to_anthropic_messages([]) == ([], None)


def test_parallel_calls_are_answered_in_the_very_next_message():
    """F2, B05."""
    messages = [
        ChatMessage(U, "go"),
        call("c1", "c2", text="wait"),
        result("c2", "two"),
        ChatMessage(U, "hm"),
        result("c1", "one"),
    ]
    asked, answered = to_anthropic_messages(messages).messages[1:]
    assert [block["type"] for block in asked["content"]] == ["text", "tool_use", "tool_use"]
    assert [block.get("tool_use_id") for block in answered["content"]] == ["c1", "c2", None]
    assert answered["content"][0]["content"] == [{"type": "text", "text": "one"}]
    assert answered["content"][2] == {"type": "text", "text": "hm"}


def test_an_open_call_does_not_poison_the_session():
    """F3, B02."""
    messages = [ChatMessage(U, "go"), call("c1"), ChatMessage(U, "stop")]
    before = to_anthropic_messages(messages).messages
    assert before[2]["content"][0]["content"][0]["text"] == PENDING_OUTPUT
    after = to_anthropic_messages([*messages, result("c1", "done")]).messages
    assert after[2]["content"][0]["content"][0]["text"] == "done"
    assert len(after) == len(before)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", {}),
        ('{"a": [1]}', {"a": [1]}),
        ("null", {"_raw": "null"}),
        ('{"city": "San Fra', {"_raw": '{"city": "San Fra'}),
    ],
)
def test_arguments_are_always_an_object(arguments, sent):
    """F5, B08."""
    assert to_anthropic_messages([call("c1", arguments=arguments)]).messages[1]["content"][0]["input"] == sent


def test_ids_are_in_anthropics_alphabet_and_stay_apart():
    """F4, Shapes."""
    asked, answered = to_anthropic_messages(
        [call("a.b", "a_b", "a b"), result("a_b", "2"), result("a.b", "1")]
    ).messages[1:]
    assert [block["id"] for block in asked["content"]] == ["a_b", "a_b_2", "a_b_3"]
    assert [block["content"][0]["text"] for block in answered["content"]] == ["1", "2", PENDING_OUTPUT]


def test_blank_text_is_dropped_and_an_empty_result_has_a_placeholder():
    """F6, B10."""
    messages = [ChatMessage(U, "hi"), ChatMessage(A, ""), ChatMessage(U, "  \n"), call("c1"), result("c1", "")]
    out = to_anthropic_messages(messages).messages
    assert [m["role"] for m in out] == ["user", "assistant", "user"]
    assert out[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": NO_OUTPUT}]}
    ]


def test_a_failed_result_says_so():
    messages = [call("c1"), ChatMessage(T, "no such order", "", (), "c1", is_error=True)]
    assert to_anthropic_messages(messages).messages[2]["content"][0]["is_error"] is True


def test_a_later_instruction_stays_in_place_as_tagged_text_and_that_is_told(caplog):
    """F7, B20."""
    messages = [
        ChatMessage(S, "be kind"),
        ChatMessage(U, "1"),
        ChatMessage(A, "2"),
        ChatMessage(D, "ask for pizza"),
        ChatMessage(U, "3"),
    ]
    with caplog.at_level(logging.INFO, "realtime.chat.formats"):
        out, system = to_anthropic_messages(messages)
    assert system == "be kind"
    assert [block["text"] for block in out[2]["content"]] == ["<system>ask for pizza</system>", "3"]
    assert "instruction" in caplog.text
    assert "pizza" not in caplog.text


def test_begins_and_ends_with_the_user():
    """F8, B21."""
    opened = to_anthropic_messages([ChatMessage(S, "s"), ChatMessage(A, "hello")]).messages
    assert [m["content"][0]["text"] for m in opened] == [OPENING_FILLER, "hello", CLOSING_FILLER]
    prompt_only = to_anthropic_messages([ChatMessage(S, "s")])
    assert [m["role"] for m in prompt_only.messages] == ["user"]
    neighbors = to_anthropic_messages([ChatMessage(U, "a"), ChatMessage(U, "b")]).messages
    assert [block["text"] for block in neighbors[0]["content"]] == ["a", "b"]
    ends_with_results = to_anthropic_messages([ChatMessage(U, "a"), call("c1"), result("c1")]).messages
    assert [block["type"] for block in ends_with_results[-1]["content"]] == ["tool_result"]


def test_pictures_by_bytes_and_by_address():
    """V7, B23: the type is what the bytes are."""
    (out,) = to_anthropic_messages([ChatMessage(U, "look", images=[GIF, WEB, ImageContent()])]).messages
    encoded = base64.b64encode(BYTES).decode()
    assert out["content"][1:] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": encoded}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
    ]


def test_a_results_pictures_stand_inside_it():
    """F11."""
    shown = ChatMessage(T, "", "", (), "c1", [GIF])
    block = to_anthropic_messages([call("c1"), shown]).messages[2]["content"][0]
    assert [part["type"] for part in block["content"]] == ["image"]


def test_the_models_pictures_follow_its_results():
    """F2: results first."""
    asked = ChatMessage(A, "here", "", [FunctionCall("f", "{}", "c1")], images=[GIF])
    out = to_anthropic_messages([asked, result("c1")]).messages
    assert [block["type"] for block in out[2]["content"]] == ["tool_result", "image"]


def test_audio_goes_as_its_transcript():
    """F11."""
    spoken = AudioContent.from_pcm(bytes(48), 24_000, transcript="hello")
    assert to_anthropic_messages([ChatMessage(U, "", audio=spoken)]).messages[0]["content"] == [
        {"type": "text", "text": "hello"}
    ]
