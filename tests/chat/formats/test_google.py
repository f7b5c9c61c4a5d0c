"""Gemini's contents (F2–F11; field cases B06, B08, B20, B21)."""

from __future__ import annotations

import base64

import pytest

from realtime.chat.formats.google import to_google_contents
from realtime.chat.formats.text import CLOSING_FILLER, OPENING_FILLER, PENDING_OUTPUT, PICTURE_FOLLOWS, UNSEEN_PICTURE
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent

S, D, U, A, T = ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
BYTES = b"\x89PNG\r\n\x1a\n a picture"
PNG = ImageContent.from_bytes(BYTES, "image/png")
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif")
ENCODED = base64.b64encode(BYTES).decode()


def result(call_id: str, text: str = "ok", **more: object) -> ChatMessage:
    return ChatMessage(T, text, "", (), call_id, **more)  # type: ignore[arg-type]


def test_the_system_instruction_comes_beside_the_contents():
    """Shapes."""
    out = to_google_contents([ChatMessage(S, "be kind"), ChatMessage(U, "hi")])
    assert out == ([{"role": "user", "parts": [{"text": "hi"}]}], "be kind")
    assert (out.contents, out.system_instruction) == out
    assert to_google_contents([]) == ([], None)


def test_as_many_responses_as_calls_in_one_content_and_a_signature_on_its_own_part():
    """F2, B06."""
    calls = ChatMessage(A, "wait", "", [FunctionCall("f", "{}", "c1", provider_data={"thought_signature": "c2ln"}), FunctionCall("g", '{"a": 1}', "c2")])  # fmt: skip
    messages = [ChatMessage(U, "go"), calls, result("c2", "two"), ChatMessage(U, "hm"), result("c1", "one")]
    _, asked, answered = to_google_contents(messages).contents
    assert asked == {
        "role": "model",
        "parts": [
            {"text": "wait"},
            {"function_call": {"id": "c1", "name": "f", "args": {}}, "thought_signature": "c2ln"},
            {"function_call": {"id": "c2", "name": "g", "args": {"a": 1}}},
        ],
    }
    assert answered == {
        "role": "user",
        "parts": [
            {"function_response": {"id": "c1", "name": "f", "response": {"output": "one"}}},
            {"function_response": {"id": "c2", "name": "g", "response": {"output": "two"}}},
            {"text": "hm"},
        ],
    }


def test_a_signature_of_bytes_goes_as_base64_and_a_broken_one_not_at_all():
    """F1."""

    def sent(data: dict[str, object]) -> dict[str, object]:
        message = ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1", provider_data=data)])
        part: dict[str, object] = to_google_contents([message]).contents[1]["parts"][0]
        del part["function_call"]
        return part

    assert sent({"thought_signature": b"\xff\x00"}) == {"thought_signature": "/wA="}
    assert sent({"thoughtSignature": "c2ln"}) == {"thoughtSignature": "c2ln"}
    assert sent({"thought_signature": "no base64*", "phase": "x"}) == {}


def test_an_open_call_and_a_failed_one_say_what_they_are():
    """F3."""
    calls = ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1"), FunctionCall("f", "", "c2")])
    answers = to_google_contents([calls, result("c2", "broken", is_error=True)]).contents[2]["parts"]
    assert [answer["function_response"]["response"] for answer in answers] == [
        {"output": PENDING_OUTPUT},
        {"error": "broken"},
    ]


def test_a_call_after_the_models_words_is_in_one_content_with_them():
    """F8, B13: a call stands right behind the user or a response."""
    messages = [
        ChatMessage(U, "go"),
        ChatMessage(A, "one moment"),
        ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1")]),
    ]
    assert [content["role"] for content in to_google_contents(messages).contents] == ["user", "model", "user"]


@pytest.mark.parametrize(("name", "sent"), [("1st", "_1st"), ("-x", "_-x"), ("", "unnamed_tool"), ("n" * 90, "n" * 64)])
def test_a_tools_name_begins_as_gemini_demands(name, sent):
    parts = to_google_contents([ChatMessage(A, "", "", [FunctionCall(name, "[1]", "c1")])]).contents
    assert parts[1]["parts"][0]["function_call"] == {"id": "c1", "name": sent, "args": {"_raw": "[1]"}}
    assert parts[2]["parts"][0]["function_response"]["name"] == sent


def test_begins_and_ends_with_the_user():
    """F8, B21."""
    out = to_google_contents([ChatMessage(A, "hello")]).contents
    assert [content["parts"] for content in out] == [
        [{"text": OPENING_FILLER}],
        [{"text": "hello"}],
        [{"text": CLOSING_FILLER}],
    ]


def test_a_later_instruction_stays_in_place():
    """F7, B20."""
    out, system = to_google_contents([ChatMessage(S, "be kind"), ChatMessage(U, "1"), ChatMessage(D, "ask for pizza")])
    assert system == "be kind"
    assert out == [{"role": "user", "parts": [{"text": "1"}, {"text": "<system>ask for pizza</system>"}]}]


def test_pictures_by_bytes_and_by_address_with_their_detail():
    """F9, Shapes."""
    close = ImageContent.from_url("https://example.com/a.png", "high")
    (out,) = to_google_contents([ChatMessage(U, "look", images=[PNG, close, ImageContent()])]).contents
    assert out["parts"][1:] == [
        {"inline_data": {"mime_type": "image/png", "data": ENCODED}},
        {
            "file_data": {"file_uri": "https://example.com/a.png", "mime_type": "image/png"},
            "media_resolution": {"level": "MEDIA_RESOLUTION_HIGH"},
        },
    ]


def test_a_results_pictures_stand_inside_it():
    """F11."""
    calls = ChatMessage(A, "", "", [FunctionCall("look", "{}", "c1"), FunctionCall("look", "{}", "c2")])
    answers = to_google_contents([calls, result("c1", "", images=[PNG]), result("c2", "a cat", images=[PNG])]).contents[
        2
    ]["parts"]
    picture = {"inline_data": {"mime_type": "image/png", "data": ENCODED}}
    assert [answer["function_response"] for answer in answers] == [
        {"id": "c1", "name": "look", "response": {"output": PICTURE_FOLLOWS}, "parts": [picture]},
        {"id": "c2", "name": "look", "response": {"output": "a cat"}, "parts": [picture]},
    ]


def test_a_picture_that_gemini_refuses_is_told_in_words():
    """F1: a GIF, by its bytes or its address, wherever it sits; its message stays."""
    far = ImageContent.from_url("https://example.com/a.gif")
    calls = ChatMessage(A, "", "", [FunctionCall("look", "{}", "c1"), FunctionCall("look", "{}", "c2")])
    messages = [ChatMessage(U, "look", images=[GIF, PNG, far]), calls, result("c1", "", images=[GIF]), result("c2", "a cat", images=[far, PNG])]  # fmt: skip
    shown, _, answered = to_google_contents(messages).contents
    assert [next(iter(part)) for part in shown["parts"]] == ["text", "text", "inline_data", "text"]
    assert shown["parts"][1] == shown["parts"][3] == {"text": UNSEEN_PICTURE}
    first, second = (part["function_response"] for part in answered["parts"])
    assert first == {"id": "c1", "name": "look", "response": {"output": UNSEEN_PICTURE}}
    assert second["response"] == {"output": f"a cat {UNSEEN_PICTURE}"}
    assert [part["inline_data"]["mime_type"] for part in second["parts"]] == ["image/png"]


def test_audio_goes_as_its_transcript_unless_asked_for():
    """F11."""
    spoken = AudioContent.from_pcm(bytes(48), 24_000, transcript="hello")
    messages = [ChatMessage(U, "hello", audio=spoken), ChatMessage(A, "", audio=spoken)]
    assert to_google_contents(messages).contents[0]["parts"] == [{"text": "hello"}]
    out = to_google_contents(messages, audio=True).contents
    assert out[0]["parts"] == [
        {"inline_data": {"mime_type": "audio/wav", "data": base64.b64encode(spoken.data).decode()}}
    ]
    assert out[1]["parts"] == [{"text": "hello"}]
