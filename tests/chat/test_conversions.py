"""A context converts itself, again only what changed (V4, V6, F1)."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.chat.context import ChatContext
from realtime.chat.formats.anthropic import to_anthropic_messages
from realtime.chat.formats.conversion import Conversion
from realtime.chat.formats.google import to_google_contents
from realtime.chat.formats.openai import to_openai_messages
from realtime.chat.formats.openai_responses import to_openai_responses_input
from realtime.chat.messages import ChatMessage, FunctionCall, ImageContent

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg")
FORMATS = {
    "openai": (lambda context: context.to_openai_messages(), to_openai_messages),
    "openai reasoning": (
        lambda context: context.to_openai_messages(reasoning_model=True),
        lambda messages: to_openai_messages(messages, reasoning_model=True),
    ),
    "responses": (lambda context: context.to_openai_responses(), to_openai_responses_input),
    "anthropic": (lambda context: context.to_anthropic_messages(), to_anthropic_messages),
    "google": (lambda context: context.to_google_contents(), to_google_contents),
}
MESSAGES = st.one_of(
    st.builds(
        ChatMessage, st.sampled_from(["system", "developer", "user", "assistant"]), st.sampled_from(["", "x", "y z"])
    ),
    st.builds(
        lambda one: ChatMessage("assistant", "", tool_calls=[FunctionCall("f", "{}", one)]), st.sampled_from("ab")
    ),
    st.builds(lambda one: ChatMessage("tool", "ok", tool_call_id=one), st.sampled_from("ab")),
    st.just(ChatMessage("user", "look", images=[PICTURE])),
)


@pytest.fixture
def converted_units(monkeypatch):
    """How many units were converted since this was last asked."""
    counted = []
    real = Conversion._convert
    monkeypatch.setattr(Conversion, "_convert", lambda self, content: counted.append(1) or real(self, content))

    def take():
        count = len(counted)
        counted.clear()
        return count

    return take


def conversation(turns):
    context = ChatContext([ChatMessage("system", "be kind")])
    for turn in range(turns):
        context.add_message("user", f"question {turn}")
        context.add_function_call("look", "{}", f"c{turn}")
        context.add_function_output("look", "found", f"c{turn}")
        context.add_message("assistant", f"answer {turn}")
    return context


@pytest.mark.parametrize("name", FORMATS)
def test_one_more_message_converts_one_unit(name, converted_units):
    convert, _ = FORMATS[name]
    context = conversation(50)
    convert(context)
    assert converted_units() == 151
    convert(context)
    assert converted_units() == 0
    context.add_message("user", "one more")
    convert(context)
    assert converted_units() == 1
    context.add_function_call("look", "{}", "open")
    convert(context)
    context.add_function_output("look", "found", "open")
    assert converted_units() == 1
    convert(context)
    assert converted_units() == 1


@pytest.mark.parametrize("name", FORMATS)
def test_a_trim_converts_nothing_again(name, converted_units):
    convert, afresh = FORMATS[name]
    context = conversation(20)
    convert(context)
    converted_units()
    for message in context.messages()[1:9]:
        context.remove(message.message_id)
    changed = context.update(context.messages()[5].message_id, content="changed")
    after = convert(context)
    assert converted_units() == 1
    assert "changed" in json.dumps(after)
    assert changed in context.messages()
    assert after == afresh(context.messages())


@pytest.mark.parametrize("name", ["openai", "responses", "anthropic", "google"])
def test_what_was_sent_before_comes_out_as_it_was(name):
    """A provider's prompt cache stays warm: every conversion begins with the one before it."""
    convert, _ = FORMATS[name]
    context = ChatContext([ChatMessage("system", "be kind")])
    before = []
    for turn in range(6):
        context.add_message("user", f"question {turn}", images=[PICTURE] if turn % 2 else None)
        context.add_function_call("look", "{}", "same id")
        context.add_function_output("look", "found", "same id")
        context.add_message("assistant", f"answer {turn}")
        context.add_message("user", "thanks")
        result = convert(context)
        messages = copy.deepcopy(result[0] if isinstance(result, tuple) else result)
        whole = before[:-1]  # the last one may grow by what is merged into it
        assert messages[: len(whole)] == whole
        before = messages


@pytest.mark.parametrize("name", FORMATS)
def test_what_comes_out_is_the_callers_own(name):
    convert, _ = FORMATS[name]
    context = conversation(3)
    context.add_message("user", "look", images=[PICTURE])
    expected = copy.deepcopy(convert(context))

    def spoil(value):
        if isinstance(value, dict):
            for item in list(value.values()):
                spoil(item)
            value.clear()
        elif isinstance(value, (list, tuple)):
            for item in value:
                spoil(item)
            if isinstance(value, list):
                value.clear()

    spoil(convert(context))
    assert convert(context) == expected


@given(st.lists(MESSAGES, max_size=10), st.data())
@settings(max_examples=80, deadline=None)
def test_step_by_step_is_the_same_as_afresh(messages, data):
    """F1, V6: whatever happened between conversions, in any mixture of formats."""
    context = ChatContext(messages)
    lease = context.lease("session.send")
    for _ in range(4):
        for name in data.draw(st.lists(st.sampled_from(sorted(FORMATS)), max_size=3)):
            convert, afresh = FORMATS[name]
            assert convert(context) == afresh(context.messages())
        entries = list(lease.entries())
        step = data.draw(st.sampled_from(["append", "insert", "replace", "remove"]))
        if step == "append" or not entries:
            lease.append(data.draw(MESSAGES))
            continue
        entry = data.draw(st.sampled_from(entries))
        if step == "insert":
            lease.insert_after(entry, data.draw(MESSAGES))
        elif step == "replace":
            lease.replace(entry, data.draw(MESSAGES))
        else:
            lease.remove([entry])
    for convert, afresh in FORMATS.values():
        assert convert(context) == afresh(context.messages())


def test_system_texts_are_named_and_none_if_there_is_none():
    """Shapes."""
    context = ChatContext([ChatMessage("user", "hi")])
    assert context.to_anthropic_messages().system is None
    assert context.to_google_contents().system_instruction is None
    messages, system = conversation(1).to_anthropic_messages()
    assert system == "be kind"
    contents, instruction = conversation(1).to_google_contents()
    assert instruction == "be kind"
    assert messages
    assert contents


def test_a_context_goes_to_pydantic_ai_and_back():
    context = conversation(2)
    again = ChatContext.from_pydantic_ai_messages(context.to_pydantic_ai_messages())
    assert [message.content for message in again.messages()] == [message.content for message in context.messages()]
