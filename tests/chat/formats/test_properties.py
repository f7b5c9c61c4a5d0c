"""Whatever a context holds, what comes out is valid: by the providers' own types, and by the rules F2–F9."""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from realtime.chat.formats.anthropic import AnthropicFormat, to_anthropic_messages
from realtime.chat.formats.conversion import Conversion, Format
from realtime.chat.formats.google import GoogleFormat, to_google_contents
from realtime.chat.formats.openai import OpenAIChatFormat, to_openai_messages
from realtime.chat.formats.openai_responses import OpenAIResponsesFormat, to_openai_responses_input
from realtime.chat.formats.text import PENDING_OUTPUT, words_of
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent

# -- any context -------------------------------------------------------------------------------------------------------


def png(width: int = 2, height: int = 1) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURES = (
    ImageContent.from_bytes(png(), "image/png"),
    ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low"),
    ImageContent.from_url("https://example.com/a.jpg", "high"),
    ImageContent.from_url("http://example.com/picture", "original"),
    ImageContent(),
)
RECORDINGS = (
    AudioContent.from_pcm(bytes(480), 24_000),
    AudioContent.from_pcm(bytes(320), 16_000, transcript="what was said"),
)
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\n\t ",
        "hello",
        "a\ud83d",
        "\udc00 b",
        "\ud83d\ude00",
        "日本語 👨‍👩‍👧",
        "nul \0",
        '{"a": 1}',
        "<system>",
        "x" * 300,
    ]
) | st.text(max_size=8)
CALL_IDS = st.sampled_from(
    ["", " ", "c1", "c1", "c2", "a.b", "a_b", "a b", "call_1", "\ud800", "i" * 45, "i" * 80, "日本"]
)
ARGUMENTS = st.sampled_from(
    [
        "",
        " ",
        "{}",
        '{"city": "San Fra',
        "null",
        "[1]",
        '"x"',
        "{}extra",
        '{"a": "\ud800"}',
        '{"a": "\\ud800"}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"é": [1, {"b": null}]}',
        '{"a":' * 300,
        "[" * 5000,
        '{"n": ' + "9" * 5000 + "}",
    ]
)
NAMES = st.sampled_from(["f", "look", "", " ", "my tool", "1st", "日本", "n" * 90, "a.b:c", "\ud800"])
DATA = st.sampled_from(
    [
        {},
        {"thought_signature": "aGVsbG8="},
        {"thought_signature": "no base64*"},
        {"thoughtSignature": b"\xff\x00"},
        {"thought_signature": 7},
        {"phase": "commentary"},
        {"phase": "else"},
        {"phase": ["commentary"]},
        {"name": "a b<c>"},
        {"name": 3},
        {"extra": {"x": [1, 2.5, None]}},
        {"cache_control": {"type": "ephemeral"}},
    ]
)
CALLS = st.builds(FunctionCall, NAMES, ARGUMENTS, CALL_IDS, provider_data=DATA)
MESSAGES = st.builds(
    ChatMessage,
    st.sampled_from(ChatRole),
    TEXTS,
    st.sampled_from(["", "m1", "m2"]),
    st.lists(CALLS, max_size=3) | st.just([]),
    CALL_IDS | st.just("") | st.just(""),
    st.lists(st.sampled_from(PICTURES), max_size=2) | st.just([]),
    audio=st.sampled_from([None, None, *RECORDINGS]),
    is_error=st.booleans(),
    tool_name=NAMES,
    thinking=TEXTS,
    interrupted=st.booleans(),
    unheard=TEXTS,
    summary=st.booleans(),
    provider_data=DATA,
)
SIMPLE = st.one_of(
    st.builds(
        ChatMessage, st.sampled_from([ChatRole.USER, ChatRole.ASSISTANT, ChatRole.SYSTEM, ChatRole.DEVELOPER]), TEXTS
    ),
    st.builds(ChatMessage, st.just(ChatRole.ASSISTANT), TEXTS, st.just(""), st.lists(CALLS, min_size=1, max_size=3)),
    st.builds(ChatMessage, st.just(ChatRole.TOOL), TEXTS, st.just(""), st.just(()), CALL_IDS),
)
CONTEXTS = st.lists(MESSAGES | SIMPLE | SIMPLE, max_size=12)

# -- the providers' types ----------------------------------------------------------------------------------------------


def consumed(value: Any) -> Any:
    """The validated value with its lazy iterables read, which is when pydantic looks at them."""
    if isinstance(value, Mapping):
        return {key: consumed(item) for key, item in value.items()}
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return value
    return [consumed(item) for item in value]


# The providers' packages take seconds to load: only the processes that use them do.


@functools.cache
def openai_types() -> TypeAdapter[Any]:
    from openai.types.chat import ChatCompletionMessageParam

    return TypeAdapter(list[ChatCompletionMessageParam])


@functools.cache
def responses_types() -> TypeAdapter[Any]:
    from openai.types.responses import ResponseInputItemParam

    return TypeAdapter(list[ResponseInputItemParam])


@functools.cache
def anthropic_types() -> TypeAdapter[Any]:
    from anthropic.types import MessageParam

    return TypeAdapter(list[MessageParam])


@functools.cache
def google_types() -> TypeAdapter[Any]:
    from google.genai.types import Content

    return TypeAdapter(Content)


def check_json(value: Any) -> None:
    """It goes over the wire: UTF-8, no NaN; and no text part is blank (F6, F9)."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    if isinstance(value, dict):
        assert not isinstance(value.get("text"), str) or value["text"].strip()
        for item in value.values():
            check_json(item)
    elif isinstance(value, list):
        for item in value:
            check_json(item)


def open_ids(messages: list[ChatMessage]) -> int:
    return sum(len(message.tool_calls) for message in messages)


@given(CONTEXTS, st.booleans(), st.booleans(), st.booleans())
def test_any_context_is_valid_for_openai_chat(messages, reasoning_model, audio, unheard):
    out = to_openai_messages(messages, reasoning_model=reasoning_model, audio=audio, unheard=unheard)
    assert consumed(openai_types().validate_python(out)) == out  # F1: nothing in it that the provider does not know
    check_json(out)
    waiting: list[str] = []
    seen: set[str] = set()
    for message in out:
        if message["role"] == "tool":  # F2: in call order, right behind the calls, each once
            assert waiting
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"].strip()
            continue
        assert not waiting
        assert message.get("content") or message.get("tool_calls")  # F6
        if isinstance(message.get("content"), str):
            assert message["content"].strip()
        if reasoning_model:
            assert message["role"] != "system"  # F7
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert all(0 < len(call_id) <= 40 for call_id in waiting)
        assert len({*waiting} | seen) == len(waiting) + len(seen)  # F4
        seen.update(waiting)
    assert not waiting  # F3: an open call has its stand-in
    assert len(seen) == open_ids(messages)  # no call is lost


@given(CONTEXTS, st.booleans(), st.booleans())
def test_any_context_is_valid_for_openai_responses(messages, reasoning_model, unheard):
    out = to_openai_responses_input(messages, reasoning_model=reasoning_model, unheard=unheard)
    assert consumed(responses_types().validate_python(out)) == out
    check_json(out)
    called, answered = [], []
    for item in out:
        if item["type"] == "function_call":
            assert len(called) == len(answered) or answered == called[: len(answered)]
            called.append(item["call_id"])
        elif item["type"] == "function_call_output":
            answered.append(item["call_id"])
            assert item["output"]
            assert answered == called[: len(answered)]
        else:
            assert called == answered  # a round is not broken into
            assert item["content"]
    assert called == answered
    assert len(set(called)) == len(called) == open_ids(messages)


@given(CONTEXTS, st.booleans())
def test_any_context_is_valid_for_anthropic(messages, unheard):
    out, system = to_anthropic_messages(messages, unheard=unheard)
    assert consumed(anthropic_types().validate_python(out)) == out
    check_json([out, system])
    check_turns(out, system, messages, "assistant", "content")
    waiting: list[str] = []
    seen: list[str] = []
    for message in out:
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        assert [block["tool_use_id"] for block in results] == waiting  # F2
        assert message["content"][: len(results)] == results  # … results first
        assert all(block["content"] for block in results)
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert all(call_id.replace("_", "a").replace("-", "a").isalnum() and call_id.isascii() for call_id in waiting)
        seen += waiting
    assert not waiting
    assert len(set(seen)) == len(seen) == open_ids(messages)


@given(CONTEXTS, st.booleans(), st.booleans())
def test_any_context_is_valid_for_gemini(messages, audio, unheard):
    out, system = to_google_contents(messages, audio=audio, unheard=unheard)
    for content in out:
        google_types().validate_python(content)
        google_types().validate_json(json.dumps(content))
        assert "image/gif" not in json.dumps(content)  # which Gemini refuses
    check_json([out, system])
    check_turns(out, system, messages, "model", "parts")
    waiting: list[tuple[str, str]] = []
    seen = 0
    for content in out:
        answers = [part["function_response"] for part in content["parts"] if "function_response" in part]
        assert [(answer["id"], answer["name"]) for answer in answers] == waiting  # F2: as many, in order
        calls = [part["function_call"] for part in content["parts"] if "function_call" in part]
        waiting = [(call["id"], call["name"]) for call in calls]
        seen += len(waiting)
    assert not waiting
    assert seen == open_ids(messages)


def check_turns(
    out: list[dict[str, Any]], system: str | None, messages: list[ChatMessage], model: str, parts: str
) -> None:
    """F8: begins and ends with the user, turns alternate. F7: the slot holds the leading instructions."""
    assert [message["role"] for message in out] == [("user", model)[at % 2] for at in range(len(out))]
    assert len(out) % 2 or not out
    assert all(message[parts] for message in out)
    assert system is None or system.strip()
    leading = []
    for message in messages:
        if not message.is_instruction or message.is_result:
            break
        if words_of(message, unheard=True):
            leading.append(message)
        if message.tool_calls:
            break
    assert (system is not None) <= bool(leading)
    assert system is not None or not any(message.content.strip() for message in leading)
    if any(message.content.strip() and not message.is_result for message in messages):
        assert out


# -- converting again --------------------------------------------------------------------------------------------------

FORMATS: list[Any] = [OpenAIChatFormat, OpenAIResponsesFormat, AnthropicFormat, GoogleFormat]


@given(st.sampled_from(FORMATS), CONTEXTS, CONTEXTS, st.data())
def test_converting_a_changed_context_again_is_converting_it_anew(kind, messages, more, data):
    conversion: Conversion[Any, Any] = Conversion(kind())
    conversion.convert(messages)
    appended = [*messages, *more]
    assert conversion.convert(appended, unchanged=len(messages)) == Conversion(kind()).convert(appended)
    place = data.draw(st.integers(0, len(appended)))
    changed = appended[:place] + appended[place + 1 :]
    assert conversion.convert(changed) == Conversion(kind()).convert(changed)
    assert conversion.convert(appended) == Conversion(kind()).convert(appended)


@given(st.sampled_from(FORMATS), CONTEXTS)
def test_what_comes_out_belongs_to_the_caller(kind, messages):
    conversion: Conversion[Any, Any] = Conversion(kind())
    first = conversion.convert(messages)
    expected = json.dumps(first)
    spoil(first)
    assert json.dumps(conversion.convert(messages, unchanged=len(messages))) == expected


def spoil(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoiled"] = True
    elif isinstance(value, (list, tuple)):
        for item in value:
            spoil(item)
        if isinstance(value, list):
            value.append("spoiled")


@given(st.sampled_from(FORMATS), CONTEXTS)
def test_a_late_result_takes_the_place_of_its_stand_in(kind, messages):
    """F3, B02: one bad turn does not poison the session."""
    call = ChatMessage(ChatRole.ASSISTANT, "", "", [FunctionCall("f", "{}", "late-call")])
    result = ChatMessage(ChatRole.TOOL, "the late value", "", (), "late-call")
    form: Format[Any, Any] = kind()
    before = json.dumps(Conversion(form).convert([call, *messages]))
    after = json.dumps(Conversion(form).convert([call, *messages, result]))
    directly = json.dumps(Conversion(form).convert([call, result, *messages]))
    assert "the late value" not in before
    assert after.count("the late value") == 1
    assert after.count(PENDING_OUTPUT) == before.count(PENDING_OUTPUT) - 1
    if not (messages and messages[0].tool_calls):  # a call right behind a call would be one round with it
        assert after == directly
