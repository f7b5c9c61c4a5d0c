"""OpenAI's chat messages (F2–F11; field cases B02, B05, B08, B09, B10, B13, B16, B20, B21, B24)."""

from __future__ import annotations

import base64

import pytest

from realtime.chat.formats.openai import to_openai_messages
from realtime.chat.formats.text import NO_OUTPUT, PENDING_OUTPUT
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent

S, D, U, A, T = ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")
WEB = ImageContent.from_url("https://example.com/a.jpg")


def call(*call_ids: str, text: str = "", arguments: str = "{}") -> ChatMessage:
    return ChatMessage(A, text, "", [FunctionCall("f", arguments, call_id) for call_id in call_ids])


def result(call_id: str, text: str = "ok", **more: object) -> ChatMessage:
    return ChatMessage(T, text, "", (), call_id, **more)  # type: ignore[arg-type]


def shape(messages: list[ChatMessage]) -> list[tuple[str, object]]:
    return [(m["role"], m.get("tool_call_id") or m["content"]) for m in to_openai_messages(messages)]


def test_plain_text_is_role_and_content():
    """The seed's shape."""
    messages = [ChatMessage(S, "be kind"), ChatMessage(U, "hi"), ChatMessage(A, "hello")]
    assert to_openai_messages(messages) == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    assert to_openai_messages([]) == []


def test_an_open_call_has_a_stand_in_until_its_result_comes():
    """F3, B02."""
    messages = [ChatMessage(U, "go"), call("c1"), ChatMessage(U, "stop")]
    assert shape(messages)[2:] == [("tool", "c1"), ("user", "stop")]
    assert to_openai_messages(messages)[2]["content"] == PENDING_OUTPUT
    messages.append(result("c1", "done"))
    out = to_openai_messages(messages)
    assert [m["content"] for m in out] == ["go", None, "done", "stop"]


def test_parallel_results_stand_in_call_order_behind_their_calls():
    """F2, B05."""
    messages = [call("c1", "c2", text="wait"), result("c2", "two"), ChatMessage(U, "hm"), result("c1", "one")]
    out = to_openai_messages(messages)
    assert [m["content"] for m in out] == ["wait", "one", "two", "hm"]
    assert [c["id"] for c in out[0]["tool_calls"]] == ["c1", "c2"]


def test_what_was_said_before_a_call_is_one_message_with_it():
    """B13."""
    out = to_openai_messages([ChatMessage(U, "hi"), ChatMessage(A, "one moment"), call("c1"), result("c1")])
    assert [m["role"] for m in out] == ["user", "assistant", "tool"]
    assert out[1]["content"] == "one moment"
    assert out[1]["tool_calls"][0]["id"] == "c1"


def test_a_result_without_its_call_is_left_out():
    """F3."""
    assert shape([result("c9"), ChatMessage(U, "hi"), result(""), result("c9")]) == [("user", "hi")]


@pytest.mark.parametrize(
    ("arguments", "sent"), [("", "{}"), ('{"city": "San Fra', '{"city": "San Fra'), ("null", "null"), ("[1]", "[1]")]
)
def test_arguments_go_as_text(arguments, sent):
    """F5, B08."""
    (asked, _) = to_openai_messages([call("c1", arguments=arguments)])
    assert asked["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": sent}}]


def test_empty_messages_are_dropped_and_an_empty_result_has_a_placeholder():
    """F6, B10."""
    messages = [
        ChatMessage(A, ""),
        ChatMessage(U, "  \n"),
        call("c1"),
        result("c1", ""),
        ChatMessage(A, "x", interrupted=False),
    ]
    out = to_openai_messages(messages)
    assert [m["content"] for m in out] == [None, NO_OUTPUT, "x"]


def test_instructions_stay_where_they_are_under_their_role():
    """F7, B20."""
    messages = [ChatMessage(S, "be kind"), ChatMessage(U, "hi"), ChatMessage(A, "yes"), ChatMessage(D, "ask for pizza"), ChatMessage(U, "ok")]  # fmt: skip
    assert [m["role"] for m in to_openai_messages(messages)] == ["system", "user", "assistant", "developer", "user"]
    reasoning = to_openai_messages(messages, reasoning_model=True)
    assert [m["role"] for m in reasoning] == ["developer", "user", "assistant", "developer", "user"]
    assert [m["content"] for m in reasoning] == [m.content for m in messages]


def test_text_then_pictures_in_order_with_their_detail():
    """F9."""
    (out,) = to_openai_messages([ChatMessage(U, "look 👀", images=[GIF, WEB])])
    assert out["content"] == [
        {"type": "text", "text": "look 👀"},
        {"type": "image_url", "image_url": {"url": GIF.url, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg", "detail": "auto"}},
    ]


def test_a_bad_picture_does_not_take_its_message_with_it():
    """V7."""
    assert shape([ChatMessage(U, "look", images=[ImageContent()])]) == [("user", "look")]


def test_a_results_pictures_follow_the_whole_round():
    """F11."""
    messages = [call("c1", "c2"), result("c1", "", images=[GIF]), result("c2", images=[WEB])]
    out = to_openai_messages(messages)
    assert [m["role"] for m in out] == ["assistant", "tool", "tool", "user"]
    assert [part["image_url"]["url"] for part in out[3]["content"]] == [GIF.url, WEB.url]
    assert out[1]["content"]


@pytest.mark.parametrize("role", [S, D, A])
def test_pictures_under_a_role_that_cannot_show_them_are_shown_by_the_user(role):
    """Shapes: pictures on any role."""
    out = to_openai_messages([ChatMessage(role, "here", images=[GIF])])
    assert [m["role"] for m in out] == [role.value, "user"]
    assert out[1]["content"][0]["type"] == "image_url"


def test_audio_goes_as_its_transcript_unless_asked_for():
    """F11."""
    spoken = AudioContent.from_pcm(bytes(480), 24_000, transcript="hello there")
    messages = [
        ChatMessage(U, "", audio=spoken),
        ChatMessage(U, "hello there", audio=spoken),
        ChatMessage(U, "a note", audio=spoken),
        ChatMessage(U, "", audio=AudioContent.from_pcm(bytes(480), 24_000)),
        ChatMessage(A, "", audio=spoken),
    ]
    assert shape(messages) == [
        ("user", "hello there"),
        ("user", "hello there"),
        ("user", "a note"),
        ("assistant", "hello there"),
    ]
    heard = to_openai_messages(messages, audio=True)
    assert [part["type"] for part in heard[0]["content"]] == ["input_audio"]
    assert [part["type"] for part in heard[1]["content"]] == ["input_audio"]
    assert [part["type"] for part in heard[2]["content"]] == ["text", "input_audio"]
    assert [part["type"] for part in heard[3]["content"]] == ["input_audio"]
    assert heard[4]["content"] == "hello there"  # the model's never goes as audio
    sent = heard[0]["content"][0]["input_audio"]
    assert sent["format"] == "wav"
    assert base64.b64decode(sent["data"]) == spoken.data


def test_what_was_heard_of_a_cut_reply_and_what_was_not_only_if_asked():
    """F10."""
    cut = ChatMessage(A, "It is about", interrupted=True, unheard="nine")
    assert "nine" not in to_openai_messages([cut])[0]["content"]
    assert "nine" in to_openai_messages([cut], unheard=True)[0]["content"]


def test_an_id_too_long_is_shortened_the_same_way_on_both_sides():
    """F1: at most 40 characters."""
    out = to_openai_messages([call("i" * 60), result("i" * 60)])
    assert len(out[0]["tool_calls"][0]["id"]) == 40
    assert out[1]["tool_call_id"] == out[0]["tool_calls"][0]["id"]


def test_a_speakers_name_is_sent_as_openai_takes_it():
    (out,) = to_openai_messages([ChatMessage(U, "hi", provider_data={"name": "Ada L <x>"})])
    assert out["name"] == "Ada_L_x_"


def test_calls_of_a_cut_reply_stay_though_nothing_of_it_was_heard():
    """P1, F6."""
    cut = ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1")], interrupted=True, unheard="all")
    out = to_openai_messages([cut, result("c1")])
    assert (out[0]["content"], out[0]["tool_calls"][0]["id"]) == (None, "c1")
