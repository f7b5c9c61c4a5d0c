"""Every decoder against 100,000 damaged messages: nothing but model events comes out, in bounded time and memory.

The damage is the same on every run. Each decoder reads its own provider's conversations, cut, garbled, with fields taken
away or of another type, as one connection after another. A hundred thousand take a decoder about two seconds.
`REALTIME_FUZZ_MESSAGES` asks for more or fewer.
"""

from __future__ import annotations

import json
import os
import tracemalloc
from typing import Any, get_args

import pytest

from realtime.core.model_events import ModelEvent, OutputAudio
from realtime.testing import mutations
from realtime.testing import openai_script as script
from realtime.wire.base import Resumption, WireFormat
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.openai import OpenAIWire
from realtime.wire.openai_server_events import OLDER_NAMES
from realtime.wire.openai_sideband import SidebandWire
from realtime.wire.voice_live import VoiceLiveWire
from realtime.wire.xai import XaiWire

MESSAGES = int(os.environ.get("REALTIME_FUZZ_MESSAGES", "100000"))
PER_CONNECTION = 2_000
MAX_BYTES = 2_000_000
EVENTS = get_args(ModelEvent)
OLDER = {new: old for old, new in OLDER_NAMES.items()}

TURN: list[Any] = [
    *script.session_created(expires_at=1_800_000_000),
    *script.session_updated(),
    *script.user_speech("u1"),
    *script.user_transcript("u1", "Hello żółć 🐈."),
    *script.tool_call("r1", "i1", "c1", "look", '{"id": 7}', previous_item_id="u1"),
    *script.spoken_reply("r2", "i2", "Hi there, friend.", bytes(4801), chunk_bytes=999, previous_item_id="u1"),
    *script.written_reply("r3", "i3", "Text.", usage={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}),
    *script.error("invalid_value", "no", cause="k1"),
    {"type": "conversation.item.truncated", "item_id": "i2", "audio_end_ms": 40},
    {"type": "conversation.item.deleted", "item_id": "i2"},
    {"type": "conversation.item.input_audio_transcription.failed", "item_id": "u1", "error": {"code": "x"}},
]
XAI: list[Any] = [
    {"type": "conversation.created", "conversation": {"id": "conv"}},
    {"type": "conversation.item.input_audio_transcription.updated", "item_id": "u1", "transcript": "Hel"},
    {"type": "response.done", "response": {"id": "r1"}, "usage": {"input_tokens": 3}},
]
LIVE: list[Any] = [
    {"type": "warning", "warning": {"code": "slow"}},
    {
        "type": "response.audio_timestamp.delta",
        "response_id": "r2",
        "item_id": "i2",
        "audio_offset_ms": 10,
        "audio_duration_ms": 20,
        "text": "Hi",
    },
]
GEMINI: list[Any] = [
    {"setupComplete": {}},
    {"serverContent": {"inputTranscription": {"text": "Hello."}}},
    {"serverContent": {"modelTurn": {"parts": [{"text": "Hm", "thought": True}, {"text": "Text"}]}}},
    {
        "serverContent": {
            "modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAAAAA="}}]}
        }
    },
    {"serverContent": {"outputTranscription": {"text": "Hi"}, "interrupted": True}},
    {"serverContent": {"generationComplete": True, "turnComplete": True, "turnCompleteReason": "NEED_MORE_INPUT"}},
    {"toolCall": {"functionCalls": [{"id": "c1", "name": "look", "args": {"id": 7}}]}},
    {"toolCallCancellation": {"ids": ["c1"]}},
    {"voiceActivity": {"type": "ACTIVITY_START", "audioOffset": "1.5s"}},
    {"usageMetadata": {"promptTokenCount": 3, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 2}]}},
    {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}},
    {"goAway": {"timeLeft": "50s"}},
    {"error": {"code": 3, "message": "no", "status": "INVALID_ARGUMENT"}},
]


def older(messages: list[Any]) -> list[Any]:
    return [{**message, "type": OLDER.get(message["type"], message["type"])} for message in messages]


DECODERS: dict[str, tuple[Any, list[Any]]] = {
    "openai": (lambda: OpenAIWire(wall=1_700_000_000.0), TURN),
    "openai, older names": (OpenAIWire, older(TURN)),
    "sideband": (lambda: SidebandWire(call_id="rtc"), TURN),
    "voice live": (VoiceLiveWire, older(TURN) + LIVE),
    "xai": (XaiWire, TURN + XAI),
    "xai, resumed": (lambda: XaiWire(resumption=Resumption(handle="conv")), XAI + TURN),
    "gemini": (lambda: GeminiWire(GeminiOptions(model="m"), prefix="g"), GEMINI),
}


@pytest.mark.parametrize("name", DECODERS)
def test_damaged_messages_raise_nothing(name):
    make, conversation = DECODERS[name]
    messages: list[str | bytes] = [json.dumps(message) for message in conversation]
    wire: WireFormat = make()
    told = 0
    for number, message in enumerate(mutations(messages, MESSAGES, seed=7)):
        if number % PER_CONNECTION == 0:
            wire = make()
        for event in wire.decode(message):
            told += 1
            assert isinstance(event, EVENTS), event
            if isinstance(event, OutputAudio):
                assert event.pcm
                assert len(event.pcm) % 2 == 0
        if number % PER_CONNECTION == PER_CONNECTION - 1:
            counted = wire.statistics()
            assert counted.decoded == PER_CONNECTION
            assert len(counted.unknown) <= 65
    assert told > MESSAGES / 4  # much of it could still be read


@pytest.mark.parametrize("name", DECODERS)
def test_one_connection_piles_nothing_up_however_much_damage_it_reads(name):
    make, conversation = DECODERS[name]
    messages: list[str | bytes] = [json.dumps(message) for message in conversation]
    wire: WireFormat = make()
    for message in mutations(messages, 500, seed=1):
        wire.decode(message)
    tracemalloc.start(1)
    try:
        for message in mutations(messages, 1500, seed=2):
            wire.decode(message)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < MAX_BYTES


@pytest.mark.parametrize("name", DECODERS)
def test_what_is_undamaged_is_read_whole_after_any_damage(name):
    """One bad message never spoils the next: the conversation is told the same before and after."""
    make, conversation = DECODERS[name]
    messages: list[str | bytes] = [json.dumps(message) for message in conversation]
    for seed in range(20):
        wire = make()
        for message in mutations(messages, 50, seed=seed):
            wire.decode(message)
        before = wire.statistics()
        for message in messages:
            wire.decode(message)
        assert wire.statistics().malformed == before.malformed
