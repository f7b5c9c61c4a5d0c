"""The strategies of the context manager (seed: context manager and strategies; B01, B14)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.strategies import (
    ContextManagement,
    NoContextManagement,
    SmartWindowSizeContext,
    WindowSizeContext,
)
from realtime.errors import ArgumentError


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(*call_ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in call_ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "content": f"result of {call_id}", "tool_call_id": call_id}


def system(text: str = "be kind") -> dict[str, Any]:
    return {"role": "system", "content": text}


USERS: list[Any] = [user(str(at)) for at in range(30)]


def kept(strategy: ContextManagement, *messages: Any) -> list[Any]:
    chosen = strategy.apply_context_strategy(list(messages))
    return [messages.index(one) for one in chosen]


def test_no_management_keeps_everything_in_a_list_of_its_own():
    strategy = NoContextManagement()
    assert strategy.apply_context_strategy(USERS) == USERS
    assert strategy.apply_context_strategy(USERS) is not USERS
    assert strategy.get_stats(30) == {
        "strategy": "none",
        "total_messages": 30,
        "messages_in_context": 30,
        "messages_dropped": 0,
    }


def test_a_window_keeps_the_newest_messages():
    strategy = WindowSizeContext(max_messages=20)
    assert strategy.apply_context_strategy(USERS) == USERS[10:]
    assert strategy.apply_context_strategy(USERS, "a prompt") == USERS[10:]
    assert strategy.apply_context_strategy(USERS[:20]) == USERS[:20]
    assert strategy.apply_context_strategy([]) == []


def test_defaults():
    assert WindowSizeContext().max_messages == 20
    smart = SmartWindowSizeContext()
    assert (smart.max_messages, smart.preserve_initial, smart.prioritize_tools) == (20, 0, False)


def test_a_call_and_its_results_stay_or_go_together():
    """B01."""
    messages = [user("a"), call("c1", "c2"), result("c1"), result("c2"), user("b"), user("c")]
    assert kept(WindowSizeContext(5), *messages) == [1, 2, 3, 4, 5]
    assert kept(WindowSizeContext(4), *messages) == [0, 4, 5]
    assert kept(WindowSizeContext(3), *messages) == [0, 4, 5]


def test_a_result_without_its_call_goes_when_something_must_go():
    """F3."""
    messages = [result("c9"), user("a"), result("c8"), user("b")]
    assert kept(WindowSizeContext(3), *messages) == [1, 3]
    assert kept(WindowSizeContext(4), *messages) == [0, 1, 2, 3]


def test_leading_instructions_stay():
    """B14."""
    messages = [system(), {"role": "developer", "content": "x"}, *USERS[:5]]
    assert kept(WindowSizeContext(4), *messages) == [0, 1, 5, 6]
    assert kept(WindowSizeContext(2), *messages) == [5, 6]  # they alone fill it: then they are messages like others


def test_the_first_messages_are_preserved():
    assert kept(SmartWindowSizeContext(5, preserve_initial=2), *USERS[:10]) == [0, 1, 7, 8, 9]


def test_tool_rounds_come_before_other_messages_but_for_the_newest():
    messages = [user("a"), call("c1"), result("c1"), user("b"), user("c"), user("d")]
    assert kept(SmartWindowSizeContext(4, prioritize_tools=True), *messages) == [1, 2, 4, 5]
    assert kept(SmartWindowSizeContext(4), *messages) == [0, 3, 4, 5]
    assert kept(SmartWindowSizeContext(3, prioritize_tools=True), *messages) == [1, 2, 5]


def test_first_messages_and_tool_rounds_together():
    messages = [user("a"), user("b"), call("c1"), result("c1"), *USERS[:6]]
    strategy = SmartWindowSizeContext(max_messages=6, preserve_initial=2, prioritize_tools=True)
    assert kept(strategy, *messages) == [0, 1, 2, 3, 8, 9]


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_must_be_greater_than_0(size):
    with pytest.raises(ValueError, match="max_messages must be greater than 0"):
        WindowSizeContext(max_messages=size)
    with pytest.raises(ValueError, match="max_messages must be greater than 0"):
        SmartWindowSizeContext(max_messages=size)


@pytest.mark.parametrize("size", [None, "3", 2.5, True])
def test_a_size_must_be_an_int(size):
    with pytest.raises(ArgumentError, match="max_messages must be an int"):
        WindowSizeContext(size)


def test_what_is_preserved_must_fit():
    with pytest.raises(ValueError, match="preserve_initial must be >= 0"):
        SmartWindowSizeContext(5, preserve_initial=-1)
    with pytest.raises(ValueError, match="preserve_initial must be less than max_messages"):
        SmartWindowSizeContext(5, preserve_initial=5)


def test_statistics_name_the_strategy_and_its_settings():
    assert WindowSizeContext(20).get_stats(50) == {
        "strategy": "window_size",
        "max_messages": 20,
        "total_messages": 50,
        "messages_in_context": 20,
        "messages_dropped": 30,
    }
    assert SmartWindowSizeContext(25, 3, True).get_stats(total_messages=50) == {
        "strategy": "smart_window_size",
        "max_messages": 25,
        "preserve_initial": 3,
        "prioritize_tools": True,
        "total_messages": 50,
        "messages_in_context": 25,
        "messages_dropped": 25,
    }
    assert WindowSizeContext(20).get_stats(0)["messages_in_context"] == 0
    with pytest.raises(ArgumentError, match="total_messages"):
        WindowSizeContext(20).get_stats(-1)
    with pytest.raises(ArgumentError, match="total_messages"):
        NoContextManagement().get_stats(-1)


MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.just("u")),
        st.builds(system),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda ids: call(*ids)),
        st.builds(result, st.sampled_from("abc")),
    ),
    max_size=14,
)
STRATEGIES = st.one_of(
    st.builds(WindowSizeContext, st.integers(1, 6)),
    st.integers(1, 6).flatmap(
        lambda size: st.builds(SmartWindowSizeContext, st.just(size), st.integers(0, size - 1), st.booleans())
    ),
)


@given(STRATEGIES, MESSAGES)
def test_what_is_kept_is_within_the_limit_whole_in_order_and_told_truly(strategy, messages):
    chosen: list[Any] = strategy.apply_context_strategy(messages)
    assert len(chosen) <= strategy.max_messages or chosen == messages
    places = [next(at for at, one in enumerate(messages) if one is message) for message in chosen]
    assert places == sorted(set(places))
    stats = strategy.get_stats(len(messages))
    assert stats["messages_in_context"] == len(chosen)
    assert stats["messages_dropped"] == len(messages) - len(chosen)
    if len(messages) > strategy.max_messages:
        called: set[str] = set()
        for message in chosen:  # no result without its call
            called |= {each["id"] for each in message.get("tool_calls", ())}
            assert message["role"] != "tool" or message["tool_call_id"] in called
    assert strategy.apply_context_strategy(chosen) == chosen
