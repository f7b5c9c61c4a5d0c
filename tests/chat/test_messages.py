"""Messages and their parts as values (V1–V3, H8)."""

import copy
import json
import pickle
import uuid
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.formats.context_messages import from_context_message, to_context_message
from realtime.chat.frozen import EMPTY, FrozenDict, FrozenList, decode_json, encode_json, freeze, thaw
from realtime.chat.messages import (
    AgentHandoff,
    AudioContent,
    ChatContent,
    ChatMessage,
    ChatRole,
    FunctionCall,
    FunctionCallOutput,
    ImageContent,
    as_arguments,
    as_output,
)
from realtime.errors import ArgumentError

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg")
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from(["$bytes", "$dict", "$tuple", "$float"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def test_roles_equal_their_strings():
    """V2."""
    assert [role.value for role in ChatRole] == ["system", "developer", "user", "assistant", "tool"]
    assert ChatRole.USER == "user"
    assert f"{ChatRole.TOOL}" == "tool"
    assert json.dumps({"role": ChatRole.SYSTEM}) == '{"role": "system"}'
    assert ChatMessage("assistant").role is ChatRole.ASSISTANT
    with pytest.raises(ArgumentError, match="developer"):
        ChatMessage("narrator")


def test_defaults_and_order_are_the_seeds_with_ours_behind_by_keyword():
    """V3."""
    message = ChatMessage()
    assert (message.role, message.content, message.message_id, message.tool_calls, message.tool_call_id) == (
        "user", "", "", (), "",
    )  # fmt: skip
    assert (message.images, message.agent_id, message.created_at) == ((), "", None)
    names = [field.name for field in fields(ChatMessage)]
    assert names[:8] == [
        "role", "content", "message_id", "tool_calls", "tool_call_id", "images", "agent_id", "created_at",
    ]  # fmt: skip
    assert [field.name for field in fields(ChatMessage) if field.kw_only] == names[8:]
    assert (ChatContent().type, ChatContent().text) == ("text", "")
    assert (FunctionCall().name, FunctionCall().arguments, FunctionCall().call_id) == ("", "", "")
    output = FunctionCallOutput()
    assert (output.name, output.output, output.call_id, output.is_error) == ("", "", "", False)
    assert AgentHandoff("b", "a", "why", "h1") == AgentHandoff(
        to_agent="b", from_agent="a", reason="why", handoff_id="h1"
    )


def test_lists_are_copied_in_and_iterables_taken():
    """V1, V3."""
    calls, images = [FunctionCall("f", "{}", "c1")], [PICTURE]
    message = ChatMessage("assistant", "x", tool_calls=calls, images=images)
    calls.append(FunctionCall("g"))
    images.clear()
    assert message.tool_calls == (FunctionCall("f", "{}", "c1"),)
    assert message.images == (PICTURE,)
    assert ChatMessage(images=iter([PICTURE])).images == (PICTURE,)
    assert ChatMessage(images=None, tool_calls=None) == ChatMessage()


@pytest.mark.parametrize(
    "wrong",
    [{"images": "abc"}, {"images": [b"x"]}, {"images": 3}, {"tool_calls": [{"name": "f"}]}, {"audio": b"RIFF"},
     {"provider_data": {1: 2}}, {"provider_data": {"a": object()}}, {"provider_data": [1]}, {"provider_data": "x"},
     {"message_id": uuid.uuid4()}, {"tool_call_id": None}, {"agent_id": 7}, {"thinking": None}, {"source": b"camera"},
     {"created_at": "now"}, {"created_at": True}, {"heard_ms": 1.5}],
)  # fmt: skip
def test_what_is_no_part_is_refused_by_name(wrong):
    with pytest.raises(ArgumentError) as caught:
        ChatMessage("user", "x", **wrong)
    assert caught.value.argument == next(iter(wrong))


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: FunctionCall(None), "name"),
        (lambda: FunctionCall("f", "{}", 7), "call_id"),
        (lambda: FunctionCall("f", provider_data=[1]), "provider_data"),
        (lambda: AgentHandoff(None), "to_agent"),
    ],
)
def test_calls_and_handoffs_hold_only_what_a_converter_can_write(make, argument):
    """F1: what cannot be written cannot be built."""
    with pytest.raises(ArgumentError) as caught:
        make()
    assert caught.value.argument == argument


def test_content_that_is_no_string_becomes_one():
    assert ChatMessage("user", 12).content == "12"
    assert ChatMessage("user", ChatContent(text="hi")).content == "hi"
    assert FunctionCall("f", {"city": "Zürich"}).arguments == '{"city": "Zürich"}'
    assert FunctionCall("f", None).arguments == "" == as_arguments(None)


@pytest.mark.parametrize(
    ("given", "text"),
    [(None, "null"), ({}, "{}"), ("", ""), (0, "0"), (False, "false"), ([], "[]"), ({"ä": 1}, '{"ä": 1}'),
     ({1 }, '"{1}"'), (float("nan"), "nan"), (b"x", '"b\'x\'"')],
)  # fmt: skip
def test_outputs_of_every_kind_become_text(given, text):
    """F6, B09."""
    assert as_output(given) == text


class Unspeakable:
    def __str__(self):
        raise RuntimeError("no words")


def nested(depth):
    outer = []
    for _ in range(depth):
        outer = [outer]
    return outer


def in_a_circle():
    circle = {}
    circle["self"] = circle
    return circle


@pytest.mark.parametrize(
    ("given", "text"),
    [(Unspeakable(), '"<Unspeakable>"'), (nested(100_000), "<list>"), (in_a_circle(), "{'self': {...}}"), ({(1, 2): 3}, "{(1, 2): 3}")],
)  # fmt: skip
def test_what_cannot_be_written_becomes_text_and_never_raises(given, text):
    """B11: the tool has done its work."""
    assert as_output(given) == text
    assert FunctionCall("f", given).arguments == text


def test_a_content_that_cannot_say_what_it_is_gives_its_type():
    assert ChatMessage("user", Unspeakable()).content == "<Unspeakable>"


def test_messages_are_frozen_and_hashable_values():
    """V1."""
    message = ChatMessage(
        "user",
        "hi",
        "m1",
        images=[PICTURE],
        audio=AudioContent.from_pcm(bytes(100), 8000),
        provider_data={"a": [1, {"b": 2}]},
    )
    with pytest.raises(FrozenInstanceError):
        message.content = "no"
    with pytest.raises(AttributeError):
        message.__dict__  # noqa: B018
    assert replace(message, content="ho").content == "ho"
    assert replace(message) == message
    assert hash(replace(message)) == hash(message)
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message
    assert {message: 1}[replace(message)] == 1


def test_provider_data_cannot_be_changed_from_outside_or_inside():
    """V1, V3."""
    given = {"phase": "final_answer", "parts": [1, {"x": b"sig"}]}
    message = ChatMessage("assistant", provider_data=given)
    given["parts"].append(2)
    assert message.provider_data == {"phase": "final_answer", "parts": [1, {"x": b"sig"}]}
    for change in (
        lambda data: data.update(a=1),
        lambda data: data.pop("phase"),
        lambda data: data.__setitem__("a", 1),
        lambda data: data.__delitem__("phase"),
        lambda data: data["parts"].append(3),
        lambda data: data["parts"].sort(),
        lambda data: data["parts"][1].clear(),
        lambda data: data.__ior__({"a": 1}),
        lambda data: data["parts"].__iadd__([1]),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change(message.provider_data)
    assert ChatMessage().provider_data is EMPTY
    assert FunctionCall(provider_data={"a": 1}).provider_data == {"a": 1}


@given(DATA)
def test_frozen_data_equals_what_was_given_and_thaws_to_it(data):
    frozen = freeze(data)
    assert frozen == data
    assert thaw(frozen) == data
    assert type(thaw(frozen)) is type(data)
    assert copy.deepcopy(frozen) == frozen
    assert pickle.loads(pickle.dumps(frozen)) == frozen


@given(DATA)
def test_data_goes_through_strict_json_and_comes_back(data):
    """V4: a round trip loses nothing."""
    text = json.dumps(encode_json(freeze(data)), allow_nan=False)
    assert decode_json(json.loads(text)) == data


def wrapped(depth, wrap):
    data = 1
    for _ in range(depth):
        data = wrap(data)
    return data


@pytest.mark.parametrize("wrap", [lambda data: {"a": data}, lambda data: {"a": (data,)}, lambda data: {"a": [data]}])
def test_data_nested_beyond_sense_is_refused_before_it_exhausts_the_stack(wrap):
    """V4: what can be built can be written, and read again; what comes from outside and cannot is an error with a name."""
    levels = 100 if wrap(1) == {"a": 1} else 50
    message = ChatMessage("user", "x", provider_data=wrapped(levels, wrap))
    written = json.loads(json.dumps(to_context_message(message)))
    assert from_context_message(written) == message
    for depth in (levels + 1, 150):
        with pytest.raises(ArgumentError, match="nested at most 100 deep"):
            ChatMessage("user", "x", provider_data=wrapped(depth, wrap))
        with pytest.raises(ArgumentError, match="nested at most"):
            from_context_message({"role": "user", "provider_data": encode_json(wrapped(depth, wrap))})
    with pytest.raises(ArgumentError, match="nested at most"):
        from_context_message({"role": "user", "provider_data": wrapped(5_000, lambda data: {"a": data})})


@pytest.mark.parametrize(
    "looks_like", [{"$bytes": "no base64"}, {"$bytes": 1}, {"$float": "one"}, {"$tuple": "x"}, {"$dict": []}]
)
def test_what_only_looks_like_a_mark_is_left_as_it_is(looks_like):
    assert decode_json(looks_like) == looks_like


def test_numbers_that_are_none_go_through_json_too():
    assert decode_json(json.loads(json.dumps(encode_json([float("inf"), float("-inf")])))) == [
        float("inf"),
        float("-inf"),
    ]
    assert str(decode_json(encode_json(float("nan")))) == "nan"
    assert isinstance(freeze({"a": [1]})["a"], FrozenList)
    assert isinstance(freeze({}), FrozenDict)


@pytest.mark.parametrize(
    ("message", "is_frame"),
    [
        (ChatMessage("user", "", images=[PICTURE], source="camera"), True),
        (ChatMessage("user", "", images=[PICTURE]), False),
        (ChatMessage("user", "look", images=[PICTURE], source="camera"), False),
        (ChatMessage("user", "", images=[PICTURE, PICTURE], source="camera"), False),
        (ChatMessage("user", "", source="camera"), False),
        (ChatMessage("assistant", "", images=[PICTURE], source="camera"), False),
    ],
)
def test_frames_are_told_from_other_messages(message, is_frame):
    """H8."""
    assert message.is_frame is is_frame


def test_empty_and_instruction_and_result_are_told():
    assert ChatMessage("user", " \n").is_empty
    assert not ChatMessage("tool", "", tool_call_id="c").is_empty
    assert not ChatMessage("assistant", "", tool_calls=[FunctionCall("f")]).is_empty
    assert not ChatMessage("assistant", "", thinking="hm").is_empty
    assert not ChatMessage("user", "", images=[PICTURE]).is_empty
    assert ChatMessage("system", "x").is_instruction
    assert ChatMessage("developer", "x").is_instruction
    assert not ChatMessage("user", "x").is_instruction
    assert ChatMessage("tool", "x").is_result
    assert ChatMessage("user", "x", tool_call_id="c").is_result
