"""The input of OpenAI's Responses API (F2–F11)."""

from __future__ import annotations

from realtime.chat.formats.openai_responses import to_openai_responses_input
from realtime.chat.formats.text import PENDING_OUTPUT
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent

S, D, U, A, T = ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")


def test_messages_and_a_round_are_items_in_order():
    """F2, B13."""
    out = to_openai_responses_input(
        [
            ChatMessage(S, "be kind"),
            ChatMessage(U, "weather?"),
            ChatMessage(A, "one moment", "", [FunctionCall("f", "", "c1"), FunctionCall("g", "[1]", "c2")]),
            ChatMessage(T, "two", "", (), "c2"),
            ChatMessage(U, "hm"),
            ChatMessage(T, "one", "", (), "c1"),
        ]
    )
    assert out == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be kind"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
        {"type": "message", "role": "assistant", "content": "one moment"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "[1]"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hm"}]},
    ]


def test_an_open_call_has_a_stand_in_and_an_orphan_is_left_out():
    """F3, B02."""
    out = to_openai_responses_input(
        [ChatMessage(T, "?", "", (), "c9"), ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1")])]
    )
    assert [item.get("output") for item in out] == [None, PENDING_OUTPUT]


def test_a_results_pictures_stand_inside_it():
    """F11."""
    calls = ChatMessage(A, "", "", [FunctionCall("look", "{}", "c1"), FunctionCall("look", "{}", "c2")])
    shown = ChatMessage(T, "", "", (), "c1", [GIF])
    told = ChatMessage(T, "a cat", "", (), "c2", [GIF])
    out = to_openai_responses_input([calls, shown, told])
    picture = {"type": "input_image", "image_url": GIF.url, "detail": "low"}
    assert [item["output"] for item in out[2:]] == [[picture], [{"type": "input_text", "text": "a cat"}, picture]]


def test_pictures_of_others_follow_in_a_users_message():
    out = to_openai_responses_input([ChatMessage(A, "here", "", [FunctionCall("f", "{}", "c1")], images=[GIF])])
    assert [item.get("role", item["type"]) for item in out] == [
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]


def test_a_phase_goes_back_and_nothing_else_of_the_provider():
    """V3."""
    (out,) = to_openai_responses_input([ChatMessage(A, "hm", provider_data={"phase": "commentary", "x": 1})])
    assert out == {"type": "message", "role": "assistant", "content": "hm", "phase": "commentary"}
    (out,) = to_openai_responses_input([ChatMessage(A, "hm", provider_data={"phase": "unknown"})])
    assert "phase" not in out


def test_instructions_are_the_developers_for_a_reasoning_model():
    """F7, B20."""
    messages = [ChatMessage(S, "a"), ChatMessage(U, "b"), ChatMessage(D, "c")]
    assert [item["role"] for item in to_openai_responses_input(messages)] == ["system", "user", "developer"]
    assert [item["role"] for item in to_openai_responses_input(messages, reasoning_model=True)] == [
        "developer",
        "user",
        "developer",
    ]
