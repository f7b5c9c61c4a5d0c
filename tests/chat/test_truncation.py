"""The newest messages within limits (V5, B01, B14)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, FunctionCall
from realtime.chat.pairing import unit_of
from realtime.errors import ArgumentError


def call(*ids):
    return ChatMessage("assistant", "", tool_calls=[FunctionCall("f", "{}", one) for one in ids])


def result(one, text="result"):
    return ChatMessage("tool", text, tool_call_id=one)


def said(role, *texts):
    return [ChatMessage(role, text) for text in texts]


def names(context):
    return [
        message.content or "+".join(call.call_id for call in message.tool_calls) or "?"
        for message in context.messages()
    ]


def test_newest_messages_stay_and_the_context_is_left_alone():
    context = ChatContext(said("user", "one", "two", "three"))
    context.add_handoff("b")
    assert names(context.truncate(max_items=2)) == ["two", "three"]
    assert names(context.truncate(max_items=9)) == names(context.truncate()) == ["one", "two", "three"]
    assert names(context.truncate(max_items=0)) == []
    assert context.truncate(max_items=0).handoffs() == context.handoffs()
    assert len(context) == 3


def test_tokens_are_counted_as_estimated_and_one_message_stays():
    context = ChatContext(said("user", "one two", "three", "four five six"))
    assert names(context.truncate(max_tokens=8)) == ["three", "four five six"]
    assert names(context.truncate(max_tokens=7)) == ["four five six"]
    assert names(context.truncate(max_tokens=0)) == ["four five six"]
    assert names(context.truncate(max_items=2, max_tokens=100)) == ["three", "four five six"]
    assert names(ChatContext().truncate(max_tokens=0)) == []


def test_a_round_stays_whole_or_goes_whole():
    """B01: two parallel calls and a cut between their results."""
    context = ChatContext(
        [*said("system", "S"), *said("user", "u1"), call("c1", "c2"), result("c1", "r1"), result("c2", "r2"),
         *said("assistant", "a1"), *said("user", "u2")]
    )  # fmt: skip
    assert names(context.truncate(max_items=5)) == ["c1+c2", "r1", "r2", "a1", "u2"]
    assert names(context.truncate(max_items=4)) == ["a1", "u2"]
    assert names(context.truncate(max_items=3)) == ["a1", "u2"]
    assert names(context.truncate(max_items=4, keep_instructions=True)) == ["S", "a1", "u2"]
    assert names(context.truncate(max_items=6, keep_instructions=True)) == ["S", "c1+c2", "r1", "r2", "a1", "u2"]


def test_the_newest_round_stays_whole_under_a_token_limit():
    context = ChatContext([*said("user", "u1"), call("c1"), result("c1", "a long result")])
    assert names(context.truncate(max_tokens=1)) == ["c1", "a long result"]
    assert names(context.truncate(max_items=1, max_tokens=1)) == []


def test_an_open_call_is_a_unit_and_a_lone_result_never_leads():
    assert names(ChatContext([*said("user", "u1"), call("c1")]).truncate(max_items=1)) == ["c1"]
    lone = ChatContext([result("x", "lone"), *said("user", "u1", "u2")])
    assert names(lone.truncate(max_items=9)) == ["u1", "u2"]
    assert names(ChatContext([result("x", "lone")]).truncate(max_items=1)) == []
    assert names(ChatContext([result("x", "lone")]).truncate(max_tokens=1)) == ["lone"]


def test_a_lone_result_behind_instructions_that_come_to_lead_does_not_stay():
    """V5: a second cut, for which they lead, takes nothing more."""
    context = ChatContext([*said("user", "a"), *said("system", "h"), result("x"), *said("user", "b")])
    for keep_instructions in (False, True):
        cut = context.truncate(max_items=3, keep_instructions=keep_instructions)
        assert [message.content for message in cut.messages()] == ["h", "b"]
        assert cut.truncate(max_items=3, keep_instructions=keep_instructions) == cut


def test_rather_than_a_lone_result_the_newest_round_stays():
    """V5: what fits of it would be a result without its call."""
    context = ChatContext([call("z"), *said("user", "a"), result("x", "lone"), result("z")])
    assert names(context.truncate(max_tokens=4)) == ["z", "result"]


def test_leading_instructions_stay_once_each_even_over_a_limit():
    """B14."""
    developer = ChatContext([*said("developer", "D"), *said("user", *(f"u{n}" for n in range(1, 11)))])
    assert names(developer.truncate(max_items=3, keep_instructions=True)) == ["D", "u9", "u10"]
    assert names(developer.truncate(max_items=3)) == ["u8", "u9", "u10"]
    short = ChatContext([*said("system", "S"), *said("user", "u1")])
    assert names(short.truncate(max_items=10, keep_instructions=True)) == ["S", "u1"]
    two = ChatContext([*said("system", "S", "S2"), *said("user", "u1")])
    assert names(two.truncate(max_items=1, keep_instructions=True)) == ["S", "S2"]
    assert names(two.truncate(max_tokens=1, keep_instructions=True)) == ["S", "S2", "u1"]
    alone = ChatContext(said("system", "S", "S2"))
    assert names(alone.truncate(max_tokens=1, keep_instructions=True)) == ["S", "S2"]
    once = developer.truncate(max_items=3, keep_instructions=True)
    assert names(once.truncate(max_items=3, keep_instructions=True)) == names(once)


@pytest.mark.parametrize("limits", [{"max_items": -1}, {"max_tokens": -1}, {"max_items": True}, {"max_tokens": 1.5}])
def test_limits_that_cannot_be_are_refused_by_name(limits):
    with pytest.raises(ArgumentError, match=next(iter(limits))) as caught:
        ChatContext(said("user", "x")).truncate(**limits)
    assert isinstance(caught.value, ValueError)


MESSAGES = st.lists(
    st.one_of(
        st.sampled_from(said("user", "a", "b c", "d e f") + said("assistant", "g") + said("system", "h")),
        st.builds(lambda ids: call(*ids), st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True)),
        st.builds(result, st.sampled_from("xyz")),
    ),
    max_size=14,
)


@given(MESSAGES, st.none() | st.integers(0, 15), st.none() | st.integers(0, 20), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_cut_keeps_order_limits_and_whole_rounds(messages, max_items, max_tokens, keep_instructions):
    """V5, B01: whatever the cut."""
    messages = [replace(message, message_id=str(number)) for number, message in enumerate(messages)]
    context = ChatContext(messages)
    kept = context.truncate(max_items, max_tokens, keep_instructions=keep_instructions)
    found = kept.messages()
    assert kept.truncate(max_items, max_tokens, keep_instructions=keep_instructions) == kept
    numbers = [int(message.message_id) for message in found]
    assert numbers == sorted(numbers)
    if max_items is None and max_tokens is None:
        assert found == messages
        return
    if max_items == 0:
        assert found == []
        return
    entries = list(context.store.entries)
    leading = [entry.message for entry in entries if entry.is_leading] if keep_instructions else []
    assert found[: len(leading)] == leading
    rest = found[len(leading) :]
    for entry in entries:  # whole units only
        assert len({part.message in rest for part in unit_of(entry) if part.message not in leading}) <= 1
    if max_items is not None:
        assert len(found) <= max(max_items, len(leading))
    newest_alone = bool(entries) and {part.message for part in unit_of(entries[-1])} == set(rest)
    if max_tokens is not None:
        assert kept.estimated_tokens() <= max_tokens or newest_alone or not rest
    if rest and not newest_alone:
        assert not rest[0].is_result or entries[int(rest[0].message_id)].answers is not None


@given(MESSAGES, st.integers(0, 15))
@settings(max_examples=200, deadline=None)
def test_open_calls_are_as_open_after_a_cut_as_before(messages, max_items):
    """B01: a cut never leaves a call without a result that it had."""
    context = ChatContext(messages)
    had = [entry.results and [slot is not None for slot in entry.results] for entry in context.store.entries]
    kept = context.truncate(max_items=max_items).store.entries
    have = [entry.results and [slot is not None for slot in entry.results] for entry in kept]
    for found in have:
        assert found in had
