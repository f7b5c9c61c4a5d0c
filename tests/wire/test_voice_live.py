"""Azure's Voice Live: a flat session, older event names."""

import json

import pytest

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core.commands import AppendAudio, ConfigureSession, CreateItem, CreateResponse
from realtime.core.model_events import (
    InputTranscriptDone,
    ItemAdded,
    ModelFault,
    OutputAudio,
    OutputTextDone,
    OutputWords,
    ResponseEnded,
    SessionReady,
    SessionUpdated,
    ToolCallDone,
    UnknownReport,
)
from realtime.core.settings import ToolSpec, TurnDetection
from realtime.errors import ArgumentError
from realtime.testing import check_wire_format, openai_script
from realtime.wire.openai_server_events import OLDER_NAMES
from realtime.wire.voice_live import VoiceLiveOptions, VoiceLiveWire


def older(messages):
    """A conversation in the names from before the GA protocol, as Voice Live has it."""
    names = {new: old for old, new in OLDER_NAMES.items()}
    return [{**message, "type": names.get(message["type"], message["type"])} for message in messages]


def session(options=None, **settings):
    (text,) = VoiceLiveWire(options).encode(ConfigureSession(command_id="k1", **settings))
    message = json.loads(text)
    assert message["type"] == "session.update"
    return message["session"]


CALL = openai_script.tool_call("r1", "i1", "c1", "look", '{"id": 7}', previous_item_id="u1")
SPEECH = [*openai_script.user_speech("u1"), *openai_script.user_transcript("u1", "Hello.")]
REPLY = openai_script.spoken_reply("r2", "i2", "Hi there.", bytes(4801), chunk_bytes=33, previous_item_id="u1")
WHOLE = older([*openai_script.session_created(), *openai_script.session_updated(), *SPEECH, *CALL, *REPLY])


def test_a_whole_conversation_in_the_older_names_is_understood():
    assert {"response.audio.delta", "conversation.item.created"} <= {message["type"] for message in WHOLE}
    events = check_wire_format(VoiceLiveWire, [json.dumps(message) for message in WHOLE], damaged=1500)
    assert not [event for event in events if isinstance(event, (ModelFault, UnknownReport))]
    kinds = [type(event) for event in events]
    assert kinds[:2] == [SessionReady, SessionUpdated]
    assert kinds[-1] is ResponseEnded
    assert sum(len(event.pcm) for event in events if isinstance(event, OutputAudio)) == 4800
    for kind in (InputTranscriptDone, ToolCallDone, OutputTextDone):
        assert kinds.count(kind) == 1
    assert [event.item_id for event in events if isinstance(event, ItemAdded)] == ["u1", "i1", "i2"]


def test_the_session_is_flat():
    tool = ToolSpec(name="look", parameters={"type": "object", "properties": {}})
    sent = session(instructions="Be brief.", tools=(tool,), turn_detection=TurnDetection(silence_ms=400, threshold=0.6))
    assert sent == {
        "modalities": ["text", "audio"],
        "instructions": "Be brief.",
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_sampling_rate": 24000,
        "input_audio_transcription": {"model": "azure-speech"},
        "turn_detection": {
            "type": "server_vad",
            "create_response": True,
            "interrupt_response": True,
            "threshold": 0.6,
            "silence_duration_ms": 400,
        },
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
    }


def test_every_option_has_its_field():
    options = VoiceLiveOptions(
        voice="en-US-Ava:DragonHDLatestNeural",
        voice_temperature=0.5,
        speed=1.2,
        transcription_model="mai-transcribe",
        transcription_language="en",
        phrases=["Colossus"],
        noise_reduction="azure_deep_noise_suppression",
        echo_cancellation=True,
        remove_filler_words=True,
        multilingual=True,
        tool_choice="none",
        parallel_tool_calls=False,
        max_output_tokens=200,
        temperature=0.7,
        reasoning_effort="low",
        input_rate_hz=16_000,
    )
    sent = session(options, turn_detection=TurnDetection(mode="semantic", prefix_padding_ms=100), output="text")
    assert sent["modalities"] == ["text"]
    assert sent["voice"] == {
        "type": "azure-standard",
        "name": "en-US-Ava:DragonHDLatestNeural",
        "temperature": 0.5,
        "rate": "1.2",
    }
    assert sent["output_audio_timestamp_types"] == ["word"]
    assert sent["input_audio_transcription"] == {
        "model": "mai-transcribe",
        "language": "en",
        "phrase_list": ["Colossus"],
    }
    assert sent["input_audio_noise_reduction"] == {"type": "azure_deep_noise_suppression"}
    assert sent["input_audio_echo_cancellation"] == {"type": "server_echo_cancellation"}
    assert sent["turn_detection"]["type"] == "azure_semantic_vad_multilingual"
    assert sent["turn_detection"]["remove_filler_words"] is True
    assert sent["turn_detection"]["prefix_padding_ms"] == 100
    assert (sent["tool_choice"], sent["parallel_tool_calls"], sent["max_response_output_tokens"]) == (
        "none",
        False,
        200,
    )
    assert (sent["temperature"], sent["reasoning_effort"], sent["input_audio_sampling_rate"]) == (0.7, "low", 16000)


@pytest.mark.parametrize(
    ("name", "kind", "given"),
    [
        ("alloy", "openai", None),
        ("zh-HK-HiuMaanNeural", "azure-standard", None),
        ("ava", "azure-realtime-native", "azure-realtime-native"),
    ],
)
def test_a_voice_says_whose_it_is(name, kind, given):
    sent = session(VoiceLiveOptions(voice_type=given), voice=name)
    assert sent["voice"] == {"type": kind, "name": name}
    assert ("output_audio_timestamp_types" in sent) == (kind != "openai")


def test_push_to_talk_and_no_transcription_are_null():
    sent = session(turn_detection=TurnDetection(mode="manual"), transcription=None)
    assert (sent["turn_detection"], sent["input_audio_transcription"]) == (None, None)
    assert session(transcription="whisper-1")["input_audio_transcription"] == {"model": "whisper-1"}


def test_what_the_model_said_goes_back_as_text():
    wire = VoiceLiveWire()
    parts = []
    for role in (ChatRole.USER, ChatRole.ASSISTANT):
        (text,) = wire.encode(CreateItem(command_id="k", message=ChatMessage(role, "Hi", "m"), item_ids=("m",)))
        parts.append(json.loads(text)["item"]["content"][0]["type"])
    assert parts == ["input_text", "text"]
    assert json.loads(wire.encode(CreateResponse(command_id="k"))[0])["type"] == "response.create"
    assert json.loads(wire.encode(AppendAudio(command_id="k", pcm=b"ab"))[0])["type"] == "input_audio_buffer.append"


def test_a_voice_that_was_heard_is_not_named_again():
    wire = VoiceLiveWire(VoiceLiveOptions(voice="alloy"))
    for message in WHOLE:
        wire.decode(json.dumps(message))
    (text,) = wire.encode(ConfigureSession(command_id="k2", instructions="Other."))
    assert "voice" not in json.loads(text)["session"]


def test_words_say_when_they_sound():
    message = {
        "type": "response.audio_timestamp.delta",
        "response_id": "r1",
        "item_id": "i1",
        "audio_offset_ms": 490,
        "audio_duration_ms": 387,
        "text": "end",
    }
    assert VoiceLiveWire().decode(json.dumps(message)) == [
        OutputWords(response_id="r1", item_id="i1", words=(("end", 877),))
    ]
    (fault,) = VoiceLiveWire().decode(json.dumps({**message, "text": 7}))
    assert fault.code == "malformed_message"


def test_a_warning_is_counted_and_no_fault():
    wire = VoiceLiveWire()
    (report,) = wire.decode('{"type": "warning", "warning": {"message": "slow", "code": "late"}}')
    assert report == UnknownReport(type="warning late")
    assert wire.statistics().unknown == {"warning late": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"voice_temperature": 2},
        {"speed": 3},
        {"temperature": 3},
        {"max_output_tokens": 0},
        {"noise_reduction": "all"},
        {"tool_choice": "some"},
        {"reasoning_effort": "huge"},
        {"voice_type": "mine"},
        {"input_rate_hz": 8000},
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        VoiceLiveOptions(**wrong)
