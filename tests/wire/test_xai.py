"""xAI: OpenAI's names, and what differs."""

import json

import pytest

from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.core.commands import ConfigureSession, CreateItem, DeleteItem, TruncateItem
from realtime.core.model_events import (
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ItemDeleted,
    ModelFault,
    OutputAudio,
    OutputTextDone,
    ResponseEnded,
    ResponseStarted,
    SessionUpdated,
    SpeechBegan,
    ToolCallDone,
    UnknownReport,
)
from realtime.core.settings import ToolSpec, TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.testing import check_wire_format, openai_script
from realtime.wire.base import ResumableWire
from realtime.wire.xai import XaiOptions, XaiWire

NAMES = ["xai/text_in_audio_out_turn", "xai/tool_call_round"]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="


def decode(*messages, wire=None):
    wire = wire or XaiWire()
    return [event for message in messages for event in wire.decode(json.dumps(message))]


def of_type(events, kind):
    return [event for event in events if isinstance(event, kind)]


def create(wire, item_id, text="Hi", **more):
    message = ChatMessage(ChatRole.USER, text, item_id)
    return wire.encode(CreateItem(command_id="k", message=message, item_ids=(item_id,), **more))


def added(item_id, previous=None, **item):
    body = {"id": item_id, "type": "message", "status": "completed", "role": "user", **item}
    return {"type": "conversation.item.added", "item": body, "previous_item_id": previous}


@pytest.mark.parametrize("name", NAMES)
def test_a_real_conversation_is_understood_whole(recorded, name):
    events = check_wire_format(XaiWire, recorded(name).texts(), damaged=1500)
    assert not of_type(events, (ModelFault, UnknownReport))
    audio = of_type(events, OutputAudio)
    assert audio
    assert isinstance(events[-1], ResponseEnded)


def test_a_tool_round_gives_the_call_and_both_things_said(recorded):
    events = decode(*recorded("xai/tool_call_round").received)
    (call,) = of_type(events, ToolCallDone)
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "London"})
    said = [event.text for event in of_type(events, OutputTextDone)]
    assert said[0] == "I'll check the weather for London right away."
    assert said[1].startswith("It is foggy and 12 degrees in London.")


def test_usage_beside_the_response_is_read(recorded):
    (ended,) = of_type(decode(*recorded("xai/text_in_audio_out_turn").received), ResponseEnded)
    assert (ended.usage.input_tokens, ended.usage.output_tokens, ended.usage.total_tokens) == (5, 42, 47)
    assert ended.usage.output_audio_tokens == 39


def test_a_null_previous_item_is_a_place_only_for_the_first(recorded):
    items = of_type(decode(*recorded("xai/tool_call_round").received), ItemAdded)
    kinds = [(item.kind, item.has_place) for item in items]
    assert kinds == [
        ("message", True),
        ("message", True),
        ("function_call", False),
        ("function_call_output", False),
        ("message", True),
    ]
    assert items[1].previous_item_id == items[0].item_id


@pytest.mark.parametrize("name", NAMES)
def test_the_session_is_configured_as_recorded(recorded, name):
    session = recorded(name).sent[0]["session"]
    tools = tuple(
        ToolSpec(name=tool["name"], description=tool["description"], parameters=tool["parameters"])
        for tool in session.get("tools", [])
    )
    command = ConfigureSession(command_id="k1", instructions=session["instructions"], tools=tools)
    (text,) = XaiWire().encode(command)
    sent = json.loads(text)
    wanted = session | {"tools": session.get("tools", []), "resumption": {"enabled": True}}
    assert sent["session"] | {"tools": session.get("tools", [])} == wanted
    assert len(sent["session"]["tools"]) == len(tools)


def test_a_voice_stands_at_the_top_and_push_to_talk_is_a_type_of_none():
    command = ConfigureSession(command_id="k1", voice="ara", turn_detection=TurnDetection(mode="manual"))
    session = json.loads(XaiWire().encode(command)[0])["session"]
    assert session["voice"] == "ara"
    assert session["turn_detection"] == {"type": None}
    assert "type" not in session
    assert "output_modalities" not in session


def test_what_it_cannot_do_is_refused():
    wire = XaiWire()
    picture = ChatMessage(ChatRole.USER, "", "m", images=(ImageContent(url=PIXEL),))
    refused = [
        TruncateItem(command_id="k", item_id="i", content_index=0, audio_end_ms=1),
        CreateItem(command_id="k", message=picture, item_ids=("m",)),
        ConfigureSession(command_id="k", output="text"),
        ConfigureSession(command_id="k", turn_detection=TurnDetection(mode="semantic")),
    ]
    for command in refused:
        with pytest.raises(UserError, match="xAI"):
            wire.encode(command)


class TestIds:
    """Our ids are not kept: ours and the provider's are told apart by the order in which we asked."""

    def test_our_items_are_reported_and_deleted_under_our_ids(self):
        wire = XaiWire()
        create(wire, "ours_1")
        create(wire, "ours_2")
        first, second = decode(added("x1"), added("x2", "x1"), wire=wire)
        assert [first.item_id, second.item_id, second.previous_item_id] == ["ours_1", "ours_2", "ours_1"]
        (text,) = wire.encode(DeleteItem(command_id="k", item_id="ours_2"))
        assert json.loads(text)["item_id"] == "x2"
        deleted = {"type": "conversation.item.deleted", "item_id": "x2"}
        assert decode(deleted, wire=wire) == [ItemDeleted(item_id="ours_2")]
        (text,) = create(wire, "ours_3", previous_item_id="ours_1")
        assert json.loads(text)["previous_item_id"] == "x1"

    def test_an_id_that_is_kept_is_ours(self):
        wire = XaiWire()
        create(wire, "ours_1")
        create(wire, "ours_2")
        events = decode(added("ours_1"), added("x2", "ours_1"), wire=wire)
        assert [event.item_id for event in events] == ["ours_1", "ours_2"]

    def test_what_the_user_says_and_the_model_does_is_not_taken_for_ours(self):
        wire = XaiWire()
        create(wire, "ours_1")
        started = {"type": "input_audio_buffer.speech_started", "item_id": "s1", "audio_start_ms": 0}
        messages = [
            started,
            added("s1", status="in_progress"),
            added("s1"),
            added("a1", role="assistant"),
            added("x1", "a1"),
        ]
        items = of_type(decode(*messages, wire=wire), ItemAdded)
        assert [item.item_id for item in items] == ["s1", "s1", "a1", "ours_1"]


def test_transcripts_come_whole_and_only_a_completed_one_is_final():
    kind = "conversation.item.input_audio_transcription"
    events = decode(
        {"type": f"{kind}.updated", "item_id": "s1", "transcript": "What"},
        {"type": f"{kind}.updated", "item_id": "s1", "transcript": "What is"},
        {"type": f"{kind}.completed", "item_id": "s1", "transcript": "What is it", "status": "in_progress"},
        {"type": f"{kind}.completed", "item_id": "s1", "transcript": "What is it?", "status": "completed"},
    )
    assert events == [
        InputTranscriptUpdated(item_id="s1", text="What"),
        InputTranscriptUpdated(item_id="s1", text="What is"),
        InputTranscriptUpdated(item_id="s1", text="What is it"),
        InputTranscriptDone(item_id="s1", text="What is it?"),
    ]


def test_a_reply_that_was_dropped_without_a_word_ends_when_the_next_begins():
    # T1
    wire = XaiWire()
    events = decode(*openai_script.response_created("r1"), *openai_script.response_created("r2"), wire=wire)
    assert events == [
        ResponseStarted(response_id="r1"),
        ResponseEnded(response_id="r1", status="cancelled", reason="turn_detected"),
        ResponseStarted(response_id="r2"),
    ]
    (again,) = decode(*openai_script.response_created("r2"), wire=wire)
    assert again == ResponseStarted(response_id="r2")


def test_every_option_has_its_field():
    options = XaiOptions(
        voice="ara",
        transcription_model="grok-2",
        transcription_language="de",
        key_terms=["Colossus"],
        speed=0.8,
        idle_timeout_ms=5000,
        tool_choice="required",
        reasoning_effort="none",
        resumption=False,
    )
    session = json.loads(XaiWire(options).encode(ConfigureSession(command_id="k1"))[0])["session"]
    assert session["audio"]["input"]["transcription"] == {
        "model": "grok-2",
        "language_hint": "de",
        "keyterms": ["Colossus"],
    }
    assert session["audio"]["output"]["speed"] == 0.8
    assert session["turn_detection"]["idle_timeout_ms"] == 5000
    assert (session["voice"], session["tool_choice"], session["reasoning"]) == ("ara", "required", {"effort": "none"})
    assert "resumption" not in session


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 2},
        {"idle_timeout_ms": 0},
        {"key_terms": ["x" * 51]},
        {"tool_choice": "some"},
        {"reasoning_effort": "low"},
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        XaiOptions(**wrong)


CONVERSATION = {"type": "conversation.created", "conversation": {"id": "conv_1"}}


class TestResumption:
    """L1: the same conversation id back means that xAI still has it."""

    def begun(self, options=None):
        wire = XaiWire(options)
        wire.encode(ConfigureSession(command_id="k1"))
        decode(CONVERSATION, {"type": "session.updated"}, wire=wire)
        return wire

    def resumed(self, *messages):
        first = self.begun()
        create(first, "m1")
        decode(added("item_1"), wire=first)
        wire = XaiWire(resumption=first.resumption())
        wire.encode(ConfigureSession(command_id="k1"))
        return wire, decode(CONVERSATION, *messages, {"type": "session.updated"}, wire=wire)

    def test_the_conversation_s_id_takes_it_up_again(self):
        wire = self.begun()
        assert isinstance(wire, ResumableWire)
        assert wire.resumption().handle == "conv_1"
        assert XaiWire().resumption() is None
        assert self.begun(XaiOptions(resumption=False)).resumption() is None

    def test_while_something_is_under_way_it_is_not_to_be_relied_on(self):
        wire = self.begun()
        create(wire, "m1")
        assert wire.resumption() is None
        decode(added("item_1"), wire=wire)
        assert wire.resumption() is not None

    def test_the_same_id_back_says_that_it_goes_on(self):
        _, events = self.resumed()
        assert events == [SessionUpdated(resumed=True)]

    def test_another_id_is_another_conversation(self):
        wire = XaiWire(resumption=self.begun().resumption())
        other = {"type": "conversation.created", "conversation": {"id": "conv_2"}}
        assert decode(other, {"type": "session.updated"}, wire=wire) == [SessionUpdated(resumed=False)]
        assert of_type(decode(added("item_1"), wire=wire), ItemAdded)

    def test_what_the_conversation_held_is_no_news(self):
        wire, events = self.resumed(
            added("item_1"),
            added("item_2", role="assistant"),
            added("item_3", type="function_call", role=None, call_id="c1"),
            added("item_4", type="function_call_output", role=None, call_id="c1"),
            {
                "type": "conversation.item.input_audio_transcription.completed",
                "item_id": "item_1",
                "transcript": "Hi",
            },
            {"type": "conversation.item.input_audio_transcription.updated", "item_id": "item_1", "transcript": "H"},
        )
        assert events == [SessionUpdated(resumed=True)]
        assert decode({"type": "conversation.item.deleted", "item_id": "item_1"}, wire=wire) == [
            ItemDeleted(item_id="m1")
        ]

    def test_what_happens_afterwards_is(self):
        wire, _ = self.resumed(added("item_1"))
        create(wire, "m2")
        (typed,) = of_type(decode(added("item_5"), wire=wire), ItemAdded)
        assert (typed.item_id, typed.has_place) == ("m2", False)
        speech = {"type": "input_audio_buffer.speech_started", "item_id": "item_6", "audio_start_ms": 10}
        began, spoken = decode(speech, added("item_6", status="in_progress"), wire=wire)
        assert (type(began), spoken.item_id) == (SpeechBegan, "item_6")
        said = decode(
            {"type": "response.created", "response": {"id": "r1"}}, added("item_7", role="assistant"), wire=wire
        )
        assert [type(event) for event in said] == [ResponseStarted, ItemAdded]

    def test_a_configuration_is_told_once(self):
        wire, _ = self.resumed()
        assert wire.encode(ConfigureSession(command_id="k2")) == []
        assert len(wire.encode(ConfigureSession(command_id="k3", instructions="Other."))) == 1
