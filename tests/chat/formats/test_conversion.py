"""Only what changed is converted again, and nothing is held that was let go (F1, R3)."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from realtime.chat.formats.anthropic import AnthropicFormat
from realtime.chat.formats.conversion import Conversion
from realtime.chat.formats.google import GoogleFormat
from realtime.chat.formats.openai import OpenAIChatFormat
from realtime.chat.formats.openai_responses import OpenAIResponsesFormat
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent

FORMATS = [OpenAIChatFormat, OpenAIResponsesFormat, AnthropicFormat, GoogleFormat]
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


def talk(count: int) -> list[ChatMessage]:
    return [ChatMessage((ChatRole.USER, ChatRole.ASSISTANT)[at % 2], f"sentence {at}") for at in range(count)]


@pytest.mark.parametrize("kind", FORMATS)
def test_one_more_message_converts_one_more_unit(kind: Callable[[], Any]):
    conversion: Conversion[Any, Any] = Conversion(kind())
    messages = talk(100)
    conversion.convert(messages)
    assert conversion.converted_units == 100
    messages.append(ChatMessage(ChatRole.USER, "one more"))
    conversion.convert(messages)
    assert conversion.converted_units == 101
    messages.append(ChatMessage(ChatRole.ASSISTANT, "and one more"))
    conversion.convert(messages, unchanged=101)
    assert conversion.converted_units == 102


@pytest.mark.parametrize("kind", FORMATS)
def test_a_trimmed_beginning_and_a_late_result_convert_nothing_else(kind: Callable[[], Any]):
    conversion: Conversion[Any, Any] = Conversion(kind())
    call = ChatMessage(ChatRole.ASSISTANT, "", "", [FunctionCall("f", "{}", "c1")])
    messages = [ChatMessage(ChatRole.SYSTEM, "be kind"), *talk(50), call, *talk(50)]
    conversion.convert(messages)
    before = conversion.converted_units
    del messages[1:21]
    conversion.convert(messages)
    assert conversion.converted_units == before
    messages.insert(32, ChatMessage(ChatRole.TOOL, "ok", "", (), "c1"))
    conversion.convert(messages)
    assert conversion.converted_units == before + 1


@pytest.mark.parametrize("kind", FORMATS)
def test_what_was_converted_stays_the_beginning_of_what_follows(kind: Callable[[], Any]):
    """A provider's prompt cache stays warm."""
    conversion: Conversion[Any, Any] = Conversion(kind())
    messages = talk(9)  # ends with the user: no filler
    first = conversion.convert(messages)
    messages += [ChatMessage(ChatRole.ASSISTANT, "reply"), ChatMessage(ChatRole.USER, "thanks")]
    second = conversion.convert(messages)
    listed = [out[0] if isinstance(out, tuple) else out for out in (first, second)]
    assert listed[1][: len(listed[0])] == listed[0]


@pytest.mark.parametrize("kind", FORMATS)
def test_pictures_and_recordings_are_not_held(kind: Callable[[], Any]):
    """R3: what is evicted is really freed."""
    conversion: Conversion[Any, Any] = Conversion(kind())
    image = ImageContent.from_bytes(GIF, "image/gif")
    audio = AudioContent.from_pcm(bytes(48), 24_000, transcript="said")
    messages = [ChatMessage(ChatRole.USER, "look", images=[image]), ChatMessage(ChatRole.USER, "", audio=audio)]
    conversion.convert(messages)
    conversion.convert(messages, unchanged=2)
    gone = [weakref.ref(image), weakref.ref(audio)]
    del image, audio, messages
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@pytest.mark.parametrize("form", [OpenAIChatFormat(audio=True), GoogleFormat(audio=True)])
def test_a_recording_that_is_sent_is_not_held_as_text_either(form: Any):
    """R3, B18."""
    conversion: Conversion[Any, Any] = Conversion(form)
    messages = [ChatMessage(ChatRole.USER, "", audio=AudioContent.from_pcm(bytes(1_000_000), 24_000))]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            assert conversion.convert(messages, unchanged=len(messages))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


def test_ids_that_collide_are_rewritten_and_only_those():
    """F4."""
    messages: list[ChatMessage] = []
    for call_id in ("x", "x", "", "y", "", "call_2"):
        messages += [
            ChatMessage(ChatRole.ASSISTANT, "", "", [FunctionCall("f", "{}", call_id)]),
            ChatMessage(ChatRole.TOOL, "ok", "", (), call_id),
        ]
    out = Conversion(OpenAIChatFormat()).convert(messages)
    ids = [message["tool_calls"][0]["id"] for message in out[::2]]
    assert ids == ["x", "x_2", "call_1", "y", "call_2", "call_2_2"]
    assert [message["tool_call_id"] for message in out[1::2]] == ids


def test_a_hint_that_cannot_be_true_is_not_believed():
    conversion = Conversion(OpenAIChatFormat())
    conversion.convert(talk(5))
    assert len(conversion.convert(talk(3), unchanged=5)) == 3
    assert len(conversion.convert(talk(7), unchanged=6)) == 7
