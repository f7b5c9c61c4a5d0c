"""The context: adding, changing, reading, copying (V1, V4, V6, shapes; B13, B24)."""

import copy
import json
import pickle
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.chat.context import ChatContext
from realtime.chat.messages import (
    AgentHandoff,
    AudioContent,
    ChatContent,
    ChatMessage,
    ChatRole,
    FunctionCall,
    ImageContent,
)
from realtime.errors import ArgumentError, ImageError

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg")


def contents(context):
    return [message.content for message in context.messages()]


# -- adding -------------------------------------------------------------------------------------------------------------


def test_a_context_starts_with_copies_of_what_it_is_given():
    messages, handoffs = [ChatMessage("user", "hi", "m1")], [AgentHandoff("b", "a", "why", "h1")]
    context = ChatContext(messages, handoffs)
    messages.clear()
    handoffs.clear()
    assert contents(context) == ["hi"]
    assert context.last_handoff() == AgentHandoff("b", "a", "why", "h1")
    assert contents(ChatContext.empty()) == contents(ChatContext()) == contents(ChatContext(None, None)) == []


def test_add_message_returns_what_it_appended():
    context = ChatContext.empty()
    message = context.add_message("user", "hi", images=[PICTURE], created_at=12.5)
    assert context.messages() == [message]
    assert (message.role, message.content, message.images, message.created_at) == (
        ChatRole.USER,
        "hi",
        (PICTURE,),
        12.5,
    )
    assert uuid.UUID(message.message_id)
    assert context.add_message(ChatRole.ASSISTANT, "ho", "m2").message_id == "m2"
    assert context.messages()[1].created_at is None


@pytest.mark.parametrize("content", [12, None, 1.5, ["a"], ChatContent(text="a part")])
def test_content_that_is_no_string_becomes_one(content):
    """V4."""
    assert ChatContext.empty().add_message("user", content).content == str(content)


def test_add_attributed_message_names_its_agent():
    message = ChatContext.empty().add_attributed_message("assistant", "hi", "agent-1", "m1", [PICTURE])
    assert (message.agent_id, message.message_id, message.images) == ("agent-1", "m1", (PICTURE,))


def test_function_calls_and_outputs_are_messages():
    """V4, B13: text, call and result in that order."""
    context = ChatContext.empty()
    context.add_message("assistant", "one moment")
    call = context.add_function_call("lookup", {"city": "Köln"}, "c1", "m1", "agent-1")
    output = context.add_function_output("lookup", "sunny", "c1", message_id="m2")
    assert (call.role, call.content, call.agent_id, call.message_id) == (ChatRole.ASSISTANT, "", "agent-1", "m1")
    assert call.tool_calls == (FunctionCall("lookup", '{"city": "Köln"}', "c1"),)
    assert (output.role, output.content, output.tool_call_id, output.tool_name) == ("tool", "sunny", "c1", "lookup")
    assert not output.is_error
    assert context.add_function_output("lookup", "no net", "c1", True).is_error
    assert context.messages()[:3] == [context.messages()[0], call, output]
    asked, answered = context.to_openai_messages()[:2]
    assert (asked["content"], asked["tool_calls"][0]["id"], answered["content"]) == ("one moment", "c1", "sunny")


@pytest.mark.parametrize(
    ("act", "argument"),
    [
        (lambda context: context.add_message("user", "x", images=PICTURE), "images"),
        (lambda context: context.merge(None), "other"),
        (lambda context: context.merge([{"role": "user"}]), "other"),
        (lambda context: context.add_message("user", "x", uuid.uuid4()), "message_id"),
        (lambda context: context.add_attributed_message("user", "x", None), "agent_id"),
        (lambda context: context.add_handoff(None), "to_agent"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_nothing_changes(act, argument):
    context = ChatContext.empty()
    with pytest.raises(ArgumentError) as caught:
        act(context)
    assert caught.value.argument == argument
    assert context == ChatContext.empty()


def test_a_call_without_an_id_gets_one():
    context = ChatContext.empty()
    first, second = context.add_function_call("f", ""), context.add_function_call("f", "{}")
    assert first.tool_calls[0].call_id != second.tool_calls[0].call_id


@pytest.mark.parametrize(
    ("output", "text"), [(None, "null"), ({}, "{}"), ("", ""), (0, "0"), (False, "false"), ([], "[]")]
)
def test_outputs_that_are_false_are_outputs(output, text):
    """F6, B09."""
    context = ChatContext.empty()
    context.add_function_call("f", "{}", "c1")
    assert context.add_function_output("f", output, "c1").content == text


@pytest.mark.parametrize(
    "add",
    [
        lambda context: context.add_message("user", "yes", "m1"),
        lambda context: context.add_attributed_message("user", "yes", "a", "m1"),
        lambda context: context.add_function_call("f", "{}", message_id="m1"),
        lambda context: context.add_function_output("f", "x", "c", message_id="m1"),
        lambda context: context.append(ChatMessage("user", "yes", "m1")),
    ],
)
def test_an_id_that_is_there_is_refused_and_nothing_changes(add):
    """V3, B24."""
    context = ChatContext([ChatMessage("user", "yes", "m1")])
    with pytest.raises(ArgumentError, match="message_id"):
        add(context)
    assert contents(context) == ["yes"]


def test_two_people_saying_yes_are_two_messages_and_no_id_is_never_a_duplicate():
    """V3, B24."""
    context = ChatContext.empty()
    context.add_message("user", "yes", "m1")
    context.add_message("user", "yes", "m2")
    context.append(ChatMessage("user", "yes"))
    context.append(ChatMessage("user", "yes"))
    assert contents(context) == ["yes"] * 4
    with pytest.raises(ArgumentError):
        context.update("", content="no")


@pytest.mark.parametrize("images", [["not a picture"], [b"\xff\xd8"], [None], [ImageContent()], PICTURE, 3])
def test_pictures_that_are_none_are_refused(images):
    """V7."""
    context = ChatContext.empty()
    with pytest.raises(ImageError, match="images"):
        context.add_message("user", "look", images=images)
    with pytest.raises(ImageError):
        context.add_attributed_message("user", "look", "a", images=images)
    assert len(context) == 0


def test_bad_roles_and_parts_are_refused_by_name():
    context = ChatContext.empty()
    with pytest.raises(ArgumentError, match="role"):
        context.add_message("narrator", "x")
    with pytest.raises(ArgumentError, match="initial_messages"):
        ChatContext([{"role": "user"}])
    with pytest.raises(ArgumentError, match="initial_handoffs"):
        ChatContext([], ["agent"])
    with pytest.raises(ArgumentError, match="other"):
        context.merge(["text"])
    with pytest.raises(ArgumentError, match="message"):
        context.append("text")


def test_system_message_is_replaced_in_place_only_when_asked():
    """V4."""
    context = ChatContext.empty()
    context.add_message("system", "be kind", "s1")
    context.add_message("user", "hi")
    replaced = context.add_message("system", "be brief", replace=True, created_at=3.0)
    assert contents(context) == ["be brief", "hi"]
    assert (replaced.message_id, replaced.created_at) == ("s1", 3.0)
    assert context.get("s1") is replaced
    assert context.add_message(ChatRole.SYSTEM, "be calm", "s2", replace=True).message_id == "s2"
    assert context.get("s1") is None
    context.add_message("system", "and more")
    assert contents(context) == ["be calm", "hi", "and more"]
    context.add_message("user", "ho", replace=True)
    assert contents(context)[-1] == "ho"
    fresh = ChatContext([ChatMessage("user", "hi")])
    fresh.add_message("system", "be kind", replace=True)
    assert contents(fresh) == ["hi", "be kind"]


def test_handoffs_are_recorded_in_order():
    context = ChatContext.empty()
    assert context.last_handoff() is None
    first = context.add_handoff("b", "a", "asked for")
    second = context.add_handoff("c")
    assert context.handoffs() == [first, second]
    assert context.last_handoff() is second
    assert (first.to_agent, first.from_agent, first.reason) == ("b", "a", "asked for")
    assert first.handoff_id != second.handoff_id
    context.handoffs().clear()
    assert len(context.handoffs()) == 2


def test_merge_skips_ids_that_are_there_and_returns_the_context():
    """V4."""
    context = ChatContext([ChatMessage("user", "one", "m1")])
    other = ChatContext(
        [ChatMessage("user", "other one", "m1"), ChatMessage("user", "two", "m2"), ChatMessage("user", "x")]
    )
    assert context.merge(other) is context
    assert contents(context) == ["one", "two", "x"]
    context.merge([ChatMessage("user", "three", "m3"), ChatMessage("user", "again", "m3")])
    assert contents(context) == ["one", "two", "x", "three"]
    context.merge(ChatContext())
    assert len(other) == 3


# -- changing -----------------------------------------------------------------------------------------------------------


def test_update_puts_a_new_value_in_the_same_place():
    """V1."""
    context = ChatContext([ChatMessage("user", "one", "m1"), ChatMessage("user", "two", "m2")])
    snapshot = context.messages()
    changed = context.update("m1", content="ONE", created_at=1.0)
    assert context.messages() == [changed, snapshot[1]]
    assert (snapshot[0].content, changed.content, changed.message_id) == ("one", "ONE", "m1")
    assert context.get("m1") is changed
    for wrong in ({"nonsense": 1}, {"role": "narrator"}, {"images": [ImageContent()]}):
        with pytest.raises(ArgumentError):
            context.update("m1", **wrong)
    with pytest.raises(ArgumentError, match="message_id"):
        context.update("m3", content="x")
    assert contents(context) == ["ONE", "two"]


def test_remove_takes_a_message_out():
    context = ChatContext([ChatMessage("user", "one", "m1"), ChatMessage("user", "two", "m2")])
    assert context.remove("m1").content == "one"
    assert contents(context) == ["two"]
    with pytest.raises(ArgumentError):
        context.remove("m1")
    context.add_message("user", "again", "m1")
    assert contents(context) == ["two", "again"]


# -- reading ------------------------------------------------------------------------------------------------------------


def test_snapshots_are_new_lists():
    """V1, V4."""
    context = ChatContext([ChatMessage("user", "one", "m1")])
    snapshot = context.messages()
    snapshot.append(ChatMessage())
    assert len(context) == 1
    context.add_message("user", "two")
    assert len(snapshot) == 2
    assert list(context) == context.messages()
    assert bool(ChatContext())


def test_tokens_and_turns_are_counted_as_the_seeds_say():
    """V4."""
    context = ChatContext.empty()
    context.add_message("system", "you are\tkind \n indeed")
    context.add_message("user", "one  two")
    context.add_function_call("f", '{"not": "counted here"}', "c1")
    context.append(ChatMessage("user", "", images=[PICTURE], source="camera"))
    assert context.estimated_tokens() == 2 * 6
    assert context.turn_count() == 2
    assert context.spoken_turn_count() == 1


def test_contexts_compare_by_what_they_hold():
    one, other = ChatContext([ChatMessage("user", "x", "m1")]), ChatContext([ChatMessage("user", "x", "m1")])
    assert one == other
    other.add_handoff("b")
    assert one != other
    assert one != [ChatMessage("user", "x", "m1")]
    with pytest.raises(TypeError):
        hash(one)
    assert "1 messages" in repr(one)


# -- copies -------------------------------------------------------------------------------------------------------------


def test_a_copy_is_independent_and_shares_messages():
    """V1."""
    context = ChatContext([ChatMessage("user", "x", "m1")], [AgentHandoff("b")])
    for same in (context.copy(), copy.copy(context), copy.deepcopy(context)):
        assert same == context
        assert same.messages()[0] is context.messages()[0]
        same.add_message("user", "y")
        same.add_handoff("c")
        assert len(context) == len(context.handoffs()) == 1


def test_a_copy_can_leave_out_system_and_empty_messages():
    """V4."""
    context = ChatContext([ChatMessage("system", "s"), ChatMessage("developer", "d"), ChatMessage("user", " ")])
    context.append(ChatMessage("user", "", images=[PICTURE]))
    context.append(ChatMessage("user", "", audio=AudioContent.from_pcm(bytes(16), 8000)))
    context.add_function_call("f", "{}", "c1")
    context.add_function_output("f", "", "c1")
    assert [m.role for m in context.copy(exclude_system_messages=True).messages()] == [
        "developer", "user", "user", "user", "assistant", "tool",
    ]  # fmt: skip
    assert [m.role for m in context.copy(exclude_empty_messages=True).messages()] == [
        "system", "developer", "user", "user", "assistant", "tool",
    ]  # fmt: skip


TEXT = st.text(max_size=8)
CALLS = st.builds(
    FunctionCall, TEXT, TEXT, TEXT, provider_data=st.dictionaries(TEXT, st.integers() | st.binary(max_size=4))
)
MESSAGES = st.builds(
    ChatMessage,
    st.sampled_from(list(ChatRole)),
    TEXT,
    TEXT,
    st.lists(CALLS, max_size=2),
    TEXT,
    st.lists(st.sampled_from([PICTURE, ImageContent.from_url("https://host/a.png", "low")]), max_size=2),
    TEXT,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    audio=st.none() | st.just(AudioContent.from_pcm(bytes(160), 8000, transcript="hm")),
    is_error=st.booleans(),
    tool_name=TEXT,
    thinking=TEXT,
    interrupted=st.booleans(),
    heard_ms=st.none() | st.integers(0, 10**6),
    unheard=TEXT,
    source=TEXT,
    summary=st.booleans(),
    provider_data=st.dictionaries(TEXT, st.none() | TEXT | st.binary(max_size=4) | st.lists(st.integers(), max_size=2)),
)
HANDOFFS = st.builds(AgentHandoff, TEXT, TEXT, TEXT, TEXT)


@given(st.lists(MESSAGES, max_size=6), st.lists(HANDOFFS, max_size=3))
@settings(max_examples=80, deadline=None)
def test_dicts_round_trip_through_json_and_lose_nothing(messages, handoffs):
    """V4."""
    context = ChatContext(messages, handoffs)
    text = json.dumps(context.to_dict(), allow_nan=False)
    assert ChatContext.from_dict(json.loads(text)) == context
    assert set(context.to_dict()) == {"items", "handoffs"}
    transport = json.loads(json.dumps(context.to_context_messages(), allow_nan=False))
    assert ChatContext.from_context_messages(transport).messages() == messages


@pytest.mark.parametrize("wrong", [None, [], "text", {"items": 3}, {"items": [3]}])
def test_what_is_no_dict_of_a_context_is_refused(wrong):
    with pytest.raises(ArgumentError):
        ChatContext.from_dict(wrong)


def test_an_id_that_stands_twice_is_known_as_long_as_one_of_them_stands():
    """V3: what a constructor is given may hold an id twice; it is refused for a third, and none of the two is lost."""
    context = ChatContext([ChatMessage("user", text, "m") for text in ("one", "two", "three")])
    assert context.remove("m").content == "one"
    assert context.update("m", content="TWO").message_id == "m"
    with pytest.raises(ArgumentError, match="message_id"):
        context.add_message("user", "four", "m")
    assert context.remove("m").content == "TWO"
    assert context.remove("m").content == "three"
    assert context.get("m") is None
    assert context.add_message("user", "four", "m").content == "four"


def test_a_context_can_be_pickled_at_any_length():
    context = ChatContext([ChatMessage("user", str(number), str(number)) for number in range(5000)])
    context.add_handoff("b", "a")
    assert pickle.loads(pickle.dumps(context)) == context
