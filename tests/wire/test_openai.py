"""Commands as OpenAI's wire messages, checked against the provider's own published Python types."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.realtime import RealtimeClientEvent
from pydantic import TypeAdapter

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.core.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    ConfigureSession,
    CreateItem,
    CreateResponse,
    DeleteItem,
    TruncateItem,
)
from realtime.core.settings import ToolSpec, TurnDetection
from realtime.errors import ArgumentError
from realtime.testing import sample_commands
from realtime.wire import json_fields
from realtime.wire.base import item_count
from realtime.wire.openai import OpenAIOptions, OpenAIWire, turn_detection_config
from realtime.wire.openai_messages import parse_client_event
from realtime.wire.voice_live import VoiceLiveWire
from realtime.wire.xai import XaiWire

PUBLISHED = TypeAdapter(RealtimeClientEvent)


def encode(command, options=None):
    return [json.loads(message) for message in OpenAIWire(options).encode(command)]


def configured(options=None, **settings):
    (event,) = encode(ConfigureSession(command_id="k1", **settings), options)
    return event["session"]


@pytest.mark.parametrize("command", sample_commands(), ids=lambda command: type(command).__name__)
def test_every_command_is_what_the_provider_publishes(command):
    # F1
    for message in OpenAIWire().encode(command):
        PUBLISHED.validate_json(message, strict=False)
        assert parse_client_event(message)["type"] == json.loads(message)["type"]


@pytest.mark.parametrize("command", sample_commands(), ids=lambda command: type(command).__name__)
def test_every_wire_message_names_its_command(command):
    # L6
    ids = [message["event_id"] for message in encode(command)]
    assert ids == [command.command_id, *(f"{command.command_id}#{n}" for n in range(2, len(ids) + 1))]


def test_simple_commands():
    assert encode(CommitAudio(command_id="k")) == [{"type": "input_audio_buffer.commit", "event_id": "k"}]
    assert encode(ClearAudio(command_id="k")) == [{"type": "input_audio_buffer.clear", "event_id": "k"}]
    assert encode(DeleteItem(command_id="k", item_id="i")) == [
        {"type": "conversation.item.delete", "item_id": "i", "event_id": "k"}
    ]
    assert encode(TruncateItem(command_id="k", item_id="i", content_index=1, audio_end_ms=480)) == [
        {
            "type": "conversation.item.truncate",
            "item_id": "i",
            "content_index": 1,
            "audio_end_ms": 480,
            "event_id": "k",
        }
    ]
    assert encode(CancelResponse(command_id="k", response_id="r")) == [
        {"type": "response.cancel", "response_id": "r", "event_id": "k"}
    ]
    assert encode(CancelResponse(command_id="k", response_id="")) == [{"type": "response.cancel", "event_id": "k"}]


def test_audio_is_base64_and_long_audio_several_messages():
    # B39
    pcm = bytes(range(256)) * 2000
    messages = encode(AppendAudio(command_id='k"1', pcm=pcm))
    assert {message["type"] for message in messages} == {"input_audio_buffer.append"}
    assert {message["event_id"] for message in messages} == {'k"1'}
    assert b"".join(base64.b64decode(message["audio"]) for message in messages) == pcm
    assert max(len(message["audio"]) for message in messages) < 300_000
    assert len(encode(AppendAudio(command_id="k", pcm=bytes(960)))) == 1


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("make_wire", [OpenAIWire, XaiWire, VoiceLiveWire])
@given(command_id=st.text(), pcm=st.binary(max_size=2_000))
def test_audio_is_written_as_json_would_write_it(make_wire, is_fast, command_id, pcm):
    wire = make_wire()
    with pytest.MonkeyPatch.context() as patch:
        if not is_fast:
            patch.setattr("realtime.wire.openai.encode_base64", json_fields._plain_encode)
        [message] = wire.encode(AppendAudio(command_id=command_id, pcm=pcm))
    audio = base64.b64encode(pcm).decode()
    event = {"type": "input_audio_buffer.append", "event_id": command_id, "audio": audio}
    assert message == json.dumps(event, separators=(",", ":"))
    assert wire.statistics().encoded == 1


PICTURES = [
    ImageContent.from_bytes(head + bytes(20), f"image/{kind}")
    for kind, head in (("jpeg", b"\xff\xd8\xff\xe0"), ("png", b"\x89PNG\r\n\x1a\n"), ("gif", b"GIF89a"))
]
TRAPS = st.sampled_from(
    ['"image_url":"data:image/jpeg;base64,"', ";base64,", '"', "\\", "é\n", "data:image/png;base64,"]
)


@pytest.mark.parametrize("is_fast", [True, False])
@given(
    role=st.sampled_from([ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL]),
    text=st.lists(TRAPS | st.text(max_size=5), min_size=1, max_size=4).map("".join).filter(str.strip),
    images=st.lists(st.sampled_from(PICTURES), max_size=3),
)
def test_pictures_are_written_as_json_would_write_them(is_fast, role, text, images):
    message = ChatMessage(role, text, "m", images=tuple(images), tool_call_id="c" if role == ChatRole.TOOL else "")
    ids = tuple(f"i{number}" for number in range(item_count(message)))
    with pytest.MonkeyPatch.context() as patch:
        if not is_fast:
            patch.setattr("realtime.wire.openai.encode_base64", json_fields._plain_encode)
        written = OpenAIWire().encode(CreateItem(command_id="k", message=message, item_ids=ids))
    events = [json.loads(each) for each in written]
    assert written == [json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events]
    parts = [part for event in events for part in event["item"].get("content", [])]
    assert [part["image_url"] for part in parts if "image_url" in part] == [image.url for image in images]
    assert [part["text"] for part in parts if "text" in part] + [
        event["item"]["output"] for event in events if "output" in event["item"]
    ] == [text]


def test_a_response_is_asked_for_with_what_was_overridden_and_no_more():
    (plain,) = encode(CreateResponse(command_id="k"))
    assert plain == {"type": "response.create", "event_id": "k"}
    (full,) = encode(
        CreateResponse(command_id="k", metadata={"wish": "w1"}, tool_choice="none", instructions="Say yes.")
    )
    assert full["response"] == {"metadata": {"wish": "w1"}, "tool_choice": "none", "instructions": "Say yes."}


class TestConfiguration:
    def test_what_can_be_cleared_is_always_said(self):
        # the provider keeps what is left out: an agent without tools must take the last one's away
        session = configured(transcription=None, turn_detection=TurnDetection(mode="manual"))
        assert session["tools"] == []
        assert session["instructions"] == ""
        assert session["audio"]["input"]["turn_detection"] is None
        assert session["audio"]["input"]["transcription"] is None

    def test_tools_are_functions_with_their_schema(self):
        parameters = {"type": "object", "properties": {"id": {"type": "integer"}}}
        tool = ToolSpec(name="look_up", description="Find an order.", parameters=parameters)
        assert configured(tools=(tool,))["tools"] == [
            {"type": "function", "name": "look_up", "description": "Find an order.", "parameters": parameters}
        ]

    @pytest.mark.parametrize("output", ["audio", "text"])
    def test_the_output_is_one_modality(self, output):
        assert configured(output=output)["output_modalities"] == [output]

    def test_transcription_by_default_by_name_and_off(self):
        options = OpenAIOptions(transcription_language="de", transcription_prompt="Bestellung")
        auto = configured(options)["audio"]["input"]["transcription"]
        assert auto == {"model": "gpt-realtime-whisper", "language": "de", "prompt": "Bestellung"}
        assert configured(transcription="whisper-1")["audio"]["input"]["transcription"] == {"model": "whisper-1"}

    def test_every_option_has_its_field(self):
        options = OpenAIOptions(
            voice="marin",
            noise_reduction="far_field",
            speed=1.25,
            idle_timeout_ms=6000,
            tool_choice="required",
            parallel_tool_calls=False,
            max_output_tokens=500,
            truncation=0.8,
            reasoning_effort="low",
        )
        session = configured(options)
        assert session["audio"]["input"]["noise_reduction"] == {"type": "far_field"}
        assert session["audio"]["input"]["turn_detection"]["idle_timeout_ms"] == 6000
        assert session["audio"]["output"]["voice"] == "marin"
        assert session["audio"]["output"]["speed"] == 1.25
        assert session["tool_choice"] == "required"
        assert session["parallel_tool_calls"] is False
        assert session["max_output_tokens"] == 500
        assert session["truncation"] == {"type": "retention_ratio", "retention_ratio": 0.8}
        assert session["reasoning"] == {"effort": "low"}
        assert configured(OpenAIOptions(truncation="disabled"))["truncation"] == "disabled"
        PUBLISHED.validate_python({"type": "session.update", "session": session}, strict=False)

    def test_the_agents_voice_comes_before_the_models(self):
        assert configured(OpenAIOptions(voice="marin"), voice="cedar")["audio"]["output"]["voice"] == "cedar"

    def test_a_voice_is_left_alone_once_it_was_heard(self):
        # naming one then refuses the whole update: cannot_update_voice
        wire = OpenAIWire()
        wire.decode('{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"AAAA"}')
        (text,) = wire.encode(ConfigureSession(command_id="k2", instructions="New part.", voice="cedar"))
        session = json.loads(text)["session"]
        assert "voice" not in session["audio"]["output"]
        assert session["instructions"] == "New part."

    @pytest.mark.parametrize(
        ("settings", "config"),
        [
            (TurnDetection(), {"type": "server_vad", "create_response": True, "interrupt_response": True}),
            (
                TurnDetection(threshold=0.7, silence_ms=400, prefix_padding_ms=200, create_response=False),
                {
                    "type": "server_vad",
                    "create_response": False,
                    "interrupt_response": True,
                    "threshold": 0.7,
                    "silence_duration_ms": 400,
                    "prefix_padding_ms": 200,
                },
            ),
            (
                TurnDetection(mode="semantic", eagerness="low", interrupt_response=False),
                {
                    "type": "semantic_vad",
                    "create_response": True,
                    "interrupt_response": False,
                    "eagerness": "low",
                },
            ),
            (TurnDetection(mode="manual"), None),
        ],
    )
    def test_turn_detection(self, settings, config):
        assert turn_detection_config(settings) == config

    @pytest.mark.parametrize(
        "options",
        [
            {"speed": 3.0},
            {"speed": True},
            {"max_output_tokens": 0},
            {"idle_timeout_ms": -1},
            {"truncation": "some"},
            {"truncation": 1.5},
            {"noise_reduction": "loud"},
            {"tool_choice": "maybe"},
            {"reasoning_effort": "extreme"},
        ],
        ids=lambda options: next(iter(options)),
    )
    def test_a_setting_that_cannot_be_is_refused_by_name(self, options):
        with pytest.raises(ArgumentError, match=next(iter(options))):
            OpenAIOptions(**options)


class TestItems:
    CALLS = (FunctionCall("one", "{}", "c1"), FunctionCall("two", "", "c2"))

    def create(self, message, item_ids, previous=None):
        return encode(CreateItem(command_id="k", message=message, item_ids=item_ids, previous_item_id=previous))

    def test_a_message_with_calls_is_an_item_each_in_order_and_chained(self):
        message = ChatMessage(ChatRole.ASSISTANT, "I look.", "m", self.CALLS)
        events = self.create(message, ("i1", "i2", "i3"), "p")
        assert [event["item"]["id"] for event in events] == ["i1", "i2", "i3"]
        assert [event["item"]["type"] for event in events] == ["message", "function_call", "function_call"]
        assert [event["previous_item_id"] for event in events] == ["p", "i1", "i2"]

    def test_without_a_place_each_goes_to_the_end(self):
        events = self.create(ChatMessage(ChatRole.ASSISTANT, "", "m", self.CALLS), ("i1", "i2"))
        assert not any("previous_item_id" in event for event in events)

    def test_a_result_goes_back_under_the_id_that_the_provider_gave(self):
        wire, long = OpenAIWire(), "call-" + "0" * 60
        item = {"id": "f1", "type": "function_call", "call_id": long, "name": "look", "arguments": "{}"}
        wire.decode(json.dumps({"type": "response.output_item.done", "response_id": "r1", "item": item}))
        message = ChatMessage(ChatRole.TOOL, "seen", "m", (), long)
        (text,) = wire.encode(CreateItem(command_id="k", message=message, item_ids=("i1",)))
        assert json.loads(text)["item"]["call_id"] == long

    def test_ids_must_fit_the_items(self):
        with pytest.raises(ArgumentError, match="item_ids"):
            self.create(ChatMessage(ChatRole.USER, "Hi", "m"), ("i1", "i2"))

    def test_a_message_with_nothing_in_it_is_no_item(self):
        # H4, F6
        assert self.create(ChatMessage(ChatRole.USER, "", "m"), ()) == []


def test_statistics_count_both_directions():
    wire = OpenAIWire()
    wire.encode(CommitAudio(command_id="k"))
    wire.decode('{"type":"session.updated"}')
    wire.decode('{"type":"tomorrow"}')
    wire.decode("{")
    counted = wire.statistics()
    assert (counted.encoded, counted.decoded, counted.malformed, counted.unknown) == (1, 3, 1, {"tomorrow": 1})
