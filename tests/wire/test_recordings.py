"""Whole conversations with real servers, decoded: words, order, calls, usage (wire.md; issue of the whole way, part 3)."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.core.commands import ConfigureSession, CreateItem, CreateResponse
from realtime.core.model_events import (
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ModelEvent,
    ModelFault,
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextDone,
    OutputTextUpdated,
    ResponseEnded,
    ResponseStarted,
    SessionReady,
    SessionUpdated,
    SpeechBegan,
    SpeechEnded,
    ToolCallDone,
    UnknownReport,
)
from realtime.core.settings import ToolSpec
from realtime.testing import check_wire_format, mutations
from realtime.wire.openai import OpenAIWire

NAMES = [
    "openai/audio_in_server_vad_turn",
    "openai/tool_call_round",
    "openai/text_in_audio_out_turn",
    "azure/text_in_audio_out_turn",
]


def decode(recording):
    wire = OpenAIWire()
    return [event for text in recording.texts() for event in wire.decode(text)]


def of_type(events, kind):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("name", NAMES)
def test_a_real_conversation_is_understood_whole(recorded, name):
    events = decode(recorded(name))
    assert not of_type(events, (ModelFault, UnknownReport))
    assert [type(event) for event in events[:2]] == [SessionReady, SessionUpdated]
    assert events[0].session_id.startswith("sess_")
    assert isinstance(events[-1], ResponseEnded)


@pytest.mark.parametrize("name", NAMES)
def test_each_item_is_added_once_and_behind_the_one_before(recorded, name):
    # H1: `item.done` names no previous item for spoken replies; only `added` is believed
    added = of_type(decode(recorded(name)), ItemAdded)
    assert len({event.item_id for event in added}) == len(added)
    assert [event.previous_item_id for event in added] == [None, *(event.item_id for event in added[:-1])]
    assert all(event.has_place for event in added)


@pytest.mark.parametrize("name", NAMES)
def test_audio_comes_in_whole_samples_and_loses_no_byte_within_an_item(recorded, name):
    # A2, B55: every recorded delta decodes to 33 bytes
    recording = recorded(name)
    deltas = [message for message in recording.received if message["type"] == "response.output_audio.delta"]
    chunks = of_type(decode(recording), OutputAudio)
    assert all(len(chunk.pcm) % 2 == 0 for chunk in chunks)
    assert sum(len(chunk.pcm) for chunk in chunks) == len(deltas) * 33 // 2 * 2


@pytest.mark.parametrize("name", NAMES)
def test_growing_text_adds_up_to_the_final_text(recorded, name):
    events = decode(recorded(name))
    for done in of_type(events, OutputTextDone):
        grown = "".join(
            event.delta
            for event in of_type(events, OutputTextUpdated)
            if (event.item_id, event.content_index) == (done.item_id, done.content_index)
        )
        assert grown == done.text
    assert of_type(events, OutputTextDone)


@pytest.mark.parametrize("name", NAMES)
def test_the_wire_format_conforms_on_a_real_conversation(recorded, name):
    assert check_wire_format(OpenAIWire, recorded(name).texts(), damaged=1500)


@given(name=st.sampled_from(NAMES), seed=st.integers(0, 2**32))
def test_a_damaged_conversation_decodes_without_an_exception(recorded, name, seed):
    wire = OpenAIWire()
    for message in mutations(recorded(name).texts(), 20, seed):
        assert all(isinstance(event, get_args(ModelEvent)) for event in wire.decode(message))


def test_a_spoken_turn_gives_both_sides_words_and_the_users_place_before_the_reply(recorded):
    events = decode(recorded("openai/audio_in_server_vad_turn"))
    began, ended, committed = (of_type(events, kind)[0] for kind in (SpeechBegan, SpeechEnded, InputCommitted))
    assert (began.at_ms, ended.at_ms) == (1460, 4256)
    assert began.item_id == ended.item_id == committed.item_id
    (heard,) = of_type(events, InputTranscriptDone)
    assert heard.item_id == began.item_id
    assert heard.text == "Hello, my name is Robin."
    (said,) = of_type(events, OutputTextDone)
    assert said.text == "Hello, Robin! Great to meet you. How can I help you today?"
    assert said.spoken
    user, reply = of_type(events, ItemAdded)
    assert (user.role, reply.role) == ("user", "assistant")
    assert reply.previous_item_id == user.item_id
    # B25: the user's transcript is final amid the reply, so place and text are two things
    assert events.index(user) < events.index(of_type(events, ResponseStarted)[0]) < events.index(heard)


def test_growing_user_transcripts_add_up(recorded):
    events = decode(recorded("openai/audio_in_server_vad_turn"))
    grown = "".join(event.delta for event in of_type(events, InputTranscriptUpdated))
    if grown:  # the scripted stand-in has none
        assert grown.strip() == of_type(events, InputTranscriptDone)[0].text


def test_a_tool_round_gives_one_whole_call_and_the_answer_to_it(recorded):
    events = decode(recorded("openai/tool_call_round"))
    (call,) = of_type(events, ToolCallDone)
    assert (call.call_id, call.name) == ("call_uMNE0Myi2tDTPu0w", "get_weather")
    assert json.loads(call.arguments) == {"city": "London"}
    first, second = of_type(events, ResponseEnded)
    assert call.response_id == first.response_id
    assert events.index(call) < events.index(first)
    assert [event.kind for event in of_type(events, OutputItemStarted)] == ["function_call", "message"]
    kinds = [event.kind for event in of_type(events, ItemAdded)]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    (said,) = of_type(events, OutputTextDone)
    assert (said.text, said.spoken) == ("It is foggy and 12 degrees in London.", False)
    usage = second.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cached_tokens) == (103, 13, 116, 64)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("openai/text_in_audio_out_turn", "Hi there!"),
        ("azure/text_in_audio_out_turn", "Hello there! Great to meet you!"),
    ],
)
def test_a_typed_turn_is_answered_in_speech(recorded, name, text):
    events = decode(recorded(name))
    (said,) = of_type(events, OutputTextDone)
    assert (said.text, said.spoken) == (text, True)
    assert len(of_type(events, OutputItemDone)) == 1
    (ended,) = of_type(events, ResponseEnded)
    assert ended.status == "completed"
    assert ended.usage.output_audio_tokens > 0
    assert ended.usage.total_tokens == ended.usage.input_tokens + ended.usage.output_tokens


def lacks(recorded, sent, path=""):
    """Where what we send does not hold what was recorded, apart from what a client chooses freely."""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        for key, value in recorded.items():
            yield from lacks(value, sent.get(key, "<missing>"), f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(sent, list) and len(recorded) == len(sent):
        for index, (one, other) in enumerate(zip(recorded, sent, strict=True)):
            yield from lacks(one, other, f"{path}[{index}]")
    elif recorded != sent:
        yield path, recorded, sent


@pytest.mark.parametrize("name", NAMES)
def test_the_session_is_configured_as_recorded(recorded, name):
    update = next(message for message in recorded(name).sent if message["type"] == "session.update")
    session = update["session"]
    tools = tuple(
        ToolSpec(name=tool["name"], description=tool.get("description") or "", parameters=tool["parameters"])
        for tool in session.get("tools", [])
    )
    command = ConfigureSession(
        command_id="k1",
        instructions=session["instructions"],
        tools=tools,
        output=session["output_modalities"][0],
    )
    (text,) = OpenAIWire().encode(command)
    for tool in session.get("tools", []):  # an absent description says the same as an empty one
        tool.setdefault("description", "")
    session.pop("tool_choice", None)
    assert list(lacks(update, json.loads(text))) == []


def test_a_typed_turn_is_asked_as_recorded(recorded):
    sent = recorded("openai/text_in_audio_out_turn").sent
    items = [message for message in sent if message["type"] == "conversation.item.create"]
    from realtime.chat.messages import ChatMessage, ChatRole

    wire = OpenAIWire()
    message = ChatMessage(role=ChatRole.USER, content="Say a short greeting.", message_id="m1")
    (text,) = wire.encode(CreateItem(command_id="k1", message=message, item_ids=("i1",)))
    for item in items:
        assert list(lacks(item, json.loads(text))) == []
    (text,) = wire.encode(CreateResponse(command_id="k2"))
    assert json.loads(text) == {"type": "response.create", "event_id": "k2"}
