"""Which result belongs to which call (F2–F4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.context import ChatContext
from realtime.chat.formats.rounds import Rounds
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.chat.pairing import unit_of


def call(*call_ids: str, role: ChatRole = ChatRole.ASSISTANT, text: str = "") -> ChatMessage:
    return ChatMessage(role, text, "", [FunctionCall("f", "{}", call_id) for call_id in call_ids])


def result(call_id: str) -> ChatMessage:
    return ChatMessage(ChatRole.TOOL, "ok", "", (), call_id)


def said(text: str = "hi", role: ChatRole = ChatRole.USER) -> ChatMessage:
    return ChatMessage(role, text)


def grouped(*messages: ChatMessage) -> list[list[int]]:
    rounds = Rounds()
    for message in messages:
        rounds.add(message)
    return [unit.positions() for unit in rounds.units]


def results_of(*messages: ChatMessage) -> list[int | None]:
    rounds = Rounds()
    for message in messages:
        rounds.add(message)
    return [slot.result for unit in rounds.units for slot in unit.calls]


def test_a_call_and_its_results_are_one_unit_whatever_was_said_between():
    """F2, B05."""
    assert grouped(said(), call("c1", "c2"), result("c2"), said("hm"), result("c1")) == [[0], [1, 2, 4], [3]]


def test_calls_in_a_row_are_one_round():
    """Shapes."""
    assert grouped(call("c1"), call("c2"), result("c2"), result("c1")) == [[0, 1, 2, 3]]
    assert grouped(call("c1"), result("c1"), call("c2"), result("c2")) == [[0, 1], [2, 3]]
    assert grouped(call("c1"), said(), call("c2")) == [[0], [1], [2]]


def test_a_repeated_id_belongs_to_the_nearest_open_call():
    """F4."""
    assert results_of(call("x"), result("x"), call("x"), result("x")) == [1, 3]
    assert results_of(call("x"), said(), call("x"), result("x"), result("x")) == [4, 3]


def test_in_one_round_a_repeated_id_is_answered_in_call_order():
    """F2, F4."""
    assert results_of(call("x", "x"), result("x"), result("x")) == [1, 2]
    assert results_of(call("x"), call("x"), result("x"), result("x")) == [2, 3]


def test_results_without_a_call_belong_to_nothing():
    """F3."""
    rounds = Rounds()
    for message in (result("c1"), call("c1"), result("c1"), result("c1"), result("")):
        rounds.add(message)
    assert rounds.orphans == [0, 3, 4]
    assert [unit.positions() for unit in rounds.units] == [[1, 2]]


def test_a_call_under_another_role_says_its_words_first():
    rounds = Rounds()
    for message in (call("c1", role=ChatRole.USER, text="words"), result("c1")):
        rounds.add(message)
    words, round_ = rounds.units
    assert (words.speakers, words.calls) == ((0,), ())
    assert (round_.speakers, [slot.result for slot in round_.calls]) == ((), [1])


def test_only_instructions_at_the_head_lead():
    """F7, B15."""
    rounds = Rounds()
    roles = [ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.SYSTEM]
    for role in roles:
        rounds.add(said(role=role))
    assert [unit.is_leading for unit in rounds.units] == [True, True, False, False]


def test_a_long_row_of_one_id_costs_no_more_than_others():
    """V6: linear, so that this ends at once."""
    rounds = Rounds()
    for _ in range(20_000):
        rounds.add(call("same"))
        rounds.add(said())
    for _ in range(20_000):
        rounds.add(result("same"))
    assert not rounds.orphans


IDS = st.sampled_from(["", "a", "b", "c"])
ANY = st.lists(
    st.builds(said, st.just("x"), st.sampled_from([ChatRole.USER, ChatRole.ASSISTANT, ChatRole.SYSTEM]))
    | st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids))
    | st.builds(lambda role, call_id: call(call_id, role=role), st.sampled_from([ChatRole.USER, ChatRole.TOOL]), IDS)
    | st.builds(result, IDS),
    max_size=12,
)


@given(ANY)
def test_a_context_keeps_together_what_a_conversion_sends_together(messages):
    """F2: the window and the converters mean the same by a unit."""
    rounds = Rounds()
    for message in messages:
        rounds.add(message)
    together: dict[int, set[int]] = {position: {position} for position in range(len(messages))}
    for unit in rounds.units:
        joined = set().union(*(together[position] for position in unit.positions()))
        for position in joined:
            together[position] = joined
    entries = list(ChatContext(messages).store.entries)
    for position, entry in enumerate(entries):
        assert {entries.index(one) for one in unit_of(entry)} == together[position]
