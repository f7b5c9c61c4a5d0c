"""W4: a digest is marked in words, by one phrase, wherever it goes to a model."""

import json
from pathlib import Path

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.formats.text import SUMMARY_NOTE
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core.commands import CreateItem
from realtime.models.chat import transcript_of
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.openai import OpenAIWire
from realtime.wire.openai_sideband import SidebandWire
from realtime.wire.voice_live import VoiceLiveWire
from realtime.wire.xai import XaiWire

DIGEST = ChatMessage(ChatRole.USER, "They counted to three.", "d1", summary=True)
MARKED = f"{SUMMARY_NOTE} They counted to three."
CONVERSIONS = {
    "openai": lambda context: context.to_openai_messages(),
    "responses": lambda context: context.to_openai_responses(),
    "anthropic": lambda context: context.to_anthropic_messages().messages,
    "google": lambda context: context.to_google_contents().contents,
    "pydantic-ai": lambda context: [part.content for part in context.to_pydantic_ai_messages()[0].parts],
    "transcript": lambda context: transcript_of(context.messages()),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_every_conversion_marks_a_digest_and_nothing_else(name):
    written = json.dumps(CONVERSIONS[name](ChatContext([DIGEST, ChatMessage(ChatRole.USER, "And now?", "u1")])))
    assert written.count(MARKED) == written.count(SUMMARY_NOTE) == 1
    assert "And now?" in written


@pytest.mark.parametrize(
    "wire",
    [
        OpenAIWire(),
        XaiWire(),
        VoiceLiveWire(),
        SidebandWire(call_id="call_1"),
        GeminiWire(GeminiOptions(model="gemini-2.5-flash-native-audio-preview-09-2025"), prefix="g"),
    ],
    ids=lambda wire: type(wire).__name__,
)
def test_every_wire_format_marks_a_digest(wire):
    sent = "".join(map(str, wire.encode(CreateItem(command_id="c", message=DIGEST, item_ids=("d1",)))))
    assert MARKED in sent


def test_an_empty_digest_says_nothing():
    assert SUMMARY_NOTE not in json.dumps(
        ChatContext([ChatMessage(ChatRole.USER, " ", summary=True)]).to_openai_messages()
    )


def test_the_phrase_has_one_home():
    root = Path(__file__).parents[3] / "realtime"
    assert [path.name for path in root.rglob("*.py") if SUMMARY_NOTE in path.read_text(encoding="utf-8")] == ["text.py"]
