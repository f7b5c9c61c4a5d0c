"""The context manager (seed: context manager and strategies; F1–F6, issue "the conversation as values", item 4)."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from realtime.chat.manager import ContextManager
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.strategies import ContextManagement, ContextMessage, SmartWindowSizeContext, WindowSizeContext
from realtime.errors import ArgumentError

GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_123", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Madrid"}'}}
    ],
}


def manager(**settings: Any) -> ContextManager:
    return ContextManager(**{"system_prompt": "You are helpful", **settings})


def received(body: str = "Hello", **more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"body": body, "sender": "ada@x", "to": "bot@x", "thread": "t1", **more})


def words(prompt: Sequence[Any]) -> list[Any]:
    return [message["content"] for message in prompt]


def test_the_seeds_example():
    context = ContextManager(system_prompt="You are a helpful coding assistant", max_tokens=2000)
    context.add_message_dict({"role": "user", "content": "Help me with Python"}, "coding_session")
    context.add_assistant_message("I'd be happy to help with Python!", "coding_session")
    assert context.get_prompt("coding_session") == [
        {"role": "system", "content": "You are a helpful coding assistant"},
        {"role": "user", "content": "Help me with Python"},
        {"role": "assistant", "content": "I'd be happy to help with Python!"},
    ]


def test_defaults():
    context = ContextManager()
    assert (context.max_tokens, context.system_prompt) == (4096, None)
    assert context.get_prompt() == []
    assert context.get_conversation_history() == []
    assert context.get_active_conversations() == []
    assert manager().get_prompt("unknown") == [{"role": "system", "content": "You are helpful"}]


def test_metadata_is_kept_in_the_history_and_never_sent():
    context = manager()
    context.add_message(received(), "c")
    context.add_message_dict({**CALL, "trace": "x1"}, "c")
    context.add_tool_result("get_weather", "22°C, sunny", "call_123", "c")
    assert context.get_conversation_history("c") == [
        {"role": "user", "content": "Hello", "sender": "ada@x", "receiver": "bot@x", "thread": "t1"},
        {**CALL, "trace": "x1"},
        {"role": "tool", "content": "22°C, sunny", "tool_call_id": "call_123", "tool_name": "get_weather"},
    ]
    assert context.get_prompt("c")[1:] == [
        {"role": "user", "content": "Hello"},
        CALL,
        {"role": "tool", "content": "22°C, sunny", "tool_call_id": "call_123"},
    ]


def test_a_given_name_is_sent_as_openai_takes_it():
    context = ContextManager()
    context.add_message_dict({"role": "user", "content": "hi", "name": "user@example.com"}, "c")
    assert context.get_prompt("c") == [{"role": "user", "content": "hi", "name": "user@example.com"}]


def test_takes_received_messages_chat_messages_and_mappings():
    context = ContextManager()
    context.add_message(received("one", to=None), "c")
    context.add_message(
        ChatMessage(ChatRole.ASSISTANT, "two", "m2", [FunctionCall("f", "{}", "c1")], agent_id="guide"), "c"
    )
    context.add_message({"role": "tool", "content": "three", "tool_call_id": "c1"}, "c")
    context.add_message(ChatMessage(ChatRole.USER, "four", images=[GIF]), "c")
    prompt: list[Any] = context.get_prompt("c")
    assert [message["role"] for message in prompt] == ["user", "assistant", "tool", "user"]
    assert prompt[3]["content"][1] == {"type": "image_url", "image_url": {"url": GIF.url, "detail": "low"}}
    history: list[Any] = context.get_conversation_history("c")
    assert "receiver" not in history[0]
    assert (history[1]["message_id"], history[1]["agent_id"]) == ("m2", "guide")
    assert history[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize("wrong", [None, "text", 7, SimpleNamespace(body="x"), ["x"]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ArgumentError, match="message"):
        ContextManager().add_message(wrong, "c")
    with pytest.raises(ArgumentError, match="message_dict"):
        ContextManager().add_message_dict(wrong, "c")


@pytest.mark.parametrize("role", ["moderator", "", None, 3])
def test_an_unknown_role_is_refused(role):
    with pytest.raises(ArgumentError, match="role"):
        ContextManager().add_message_dict({"role": role, "content": "x"}, "c")


@pytest.mark.parametrize("conversation_id", ["", "all", None, 7])
def test_an_id_that_can_be_none_is_refused(conversation_id):
    with pytest.raises(ArgumentError, match="conversation_id"):
        ContextManager().add_message_dict({"role": "user", "content": "x"}, conversation_id)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({}, "{}"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({"é": 1}, '{"é": 1}'),
        ("as it is", "as it is"),
    ],
)
def test_every_value_of_a_tool_is_a_result(value, text):
    """F6, B09."""
    context = ContextManager()
    context.add_message_dict(CALL, "c")
    context.add_tool_result("get_weather", value, "call_123")
    assert words(context.get_prompt())[1] == text


def test_an_empty_result_is_sent_as_a_legal_placeholder():
    """F6."""
    context = ContextManager()
    context.add_message_dict(CALL, "c")
    context.add_tool_result("get_weather", "", "call_123")
    assert words(context.get_prompt())[1]
    assert words(context.get_conversation_history())[1] == ""


def test_what_is_said_goes_to_the_current_conversation():
    context = ContextManager()
    with pytest.raises(ArgumentError, match="conversation_id"):
        context.add_assistant_message("hello")
    with pytest.raises(ArgumentError, match="conversation_id"):
        context.add_tool_result("f", 1, "c1")
    assert context.get_active_conversations() == []
    context.add_message(received("a"), "one")
    context.add_message(received("b"), "two")
    context.add_assistant_message("for two")
    assert context.set_current_conversation("one") is True
    context.add_assistant_message("for one")
    assert context.set_current_conversation("three") is False
    assert words(context.get_prompt()) == ["a", "for one"]
    assert words(context.get_prompt("two")) == ["b", "for two"]
    assert context.get_active_conversations() == ["one", "two"]


def test_clearing():
    context = ContextManager()
    for name in ("one", "two", "three"):
        context.add_message(received(name), name)
    context.clear("two")
    context.clear("unknown")
    assert context.get_active_conversations() == ["one", "three"]
    context.clear()  # the current one is "three"
    assert context.get_active_conversations() == ["one"]
    assert context.get_prompt() == []
    context.clear()  # there is no current one now
    assert words(context.get_prompt("one")) == ["one"]
    context.clear("all")
    assert context.get_active_conversations() == []
    assert context.get_conversation_history("one") == []


def test_the_history_is_the_callers_own():
    context = ContextManager()
    given_message: dict[str, Any] = {"role": "user", "content": "hi", "meta": {"k": [1]}}
    context.add_message_dict(given_message, "c")
    given_message["meta"]["k"].append(2)
    history: list[Any] = context.get_conversation_history("c")
    assert history[0]["meta"] == {"k": [1]}
    history[0]["content"] = "changed"
    history.clear()
    assert words(context.get_prompt("c")) == ["hi"]


def test_a_strategy_chooses_and_can_be_changed():
    context = ContextManager(context_management=WindowSizeContext(max_messages=2))
    for at in range(4):
        context.add_message(received(f"m{at}"), "c")
    assert words(context.get_prompt("c")) == ["m2", "m3"]
    assert context.get_context_stats("c") == {
        "strategy": "window_size",
        "max_messages": 2,
        "total_messages": 4,
        "messages_in_context": 2,
        "messages_dropped": 2,
    }
    context.update_context_management(SmartWindowSizeContext(3, preserve_initial=1))
    assert words(context.get_prompt("c")) == ["m0", "m2", "m3"]
    assert context.get_context_stats()["strategy"] == "smart_window_size"
    context.update_context_management(None)
    assert context.get_context_stats() == {
        "strategy": "none",
        "total_messages": 4,
        "messages_in_context": 4,
        "messages_dropped": 0,
    }
    assert context.get_context_stats("unknown")["total_messages"] == 0
    with pytest.raises(ArgumentError, match="context_management"):
        context.update_context_management("window")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="context_management"):
        ContextManager(context_management=WindowSizeContext)  # type: ignore[arg-type]


def test_statistics_tell_what_is_kept_of_this_conversation():
    context = ContextManager(context_management=WindowSizeContext(max_messages=2))
    for name in ("plain", "tools"):
        context.add_message(received("one"), name)
        context.add_message_dict(CALL if name == "tools" else {"role": "user", "content": "two"}, name)
        context.add_tool_result("get_weather", "ok", "call_123", name)
        context.add_message(received("three"), name)
    assert context.get_context_stats("tools")["messages_in_context"] == 2  # "one" and "three": the round does not fit
    assert context.get_context_stats("plain")["messages_in_context"] == 2
    context.update_context_management(WindowSizeContext(max_messages=3))
    assert context.get_context_stats("tools")["messages_in_context"] == 3
    assert context.get_context_stats("plain")["messages_in_context"] == 3


def test_a_prompt_is_within_max_tokens():
    context = ContextManager(max_tokens=20, system_prompt="be kind")  # 2 tokens a word: 16 are left
    for at in range(10):
        context.add_message(received(f"number {at} is here"), "c")
    assert words(context.get_prompt("c")) == ["be kind", "number 8 is here", "number 9 is here"]
    assert len(context.get_conversation_history("c")) == 10


def test_the_newest_message_stays_even_if_it_is_too_long_and_with_its_round():
    context = ContextManager(max_tokens=10)
    context.add_message(received("hi"), "c")
    context.add_message(received("word " * 100), "c")
    assert len(context.get_prompt("c")) == 1
    context.add_message_dict(CALL, "c")
    context.add_tool_result("get_weather", "word " * 100, "call_123", "c")
    assert [message["role"] for message in context.get_prompt("c")] == ["assistant", "tool"]


def test_what_a_strategy_preserves_is_kept_within_max_tokens_too():
    context = ContextManager(max_tokens=8, context_management=SmartWindowSizeContext(5, preserve_initial=1))
    for at in range(6):
        context.add_message(received(f"m{at}"), "c")
    assert words(context.get_prompt("c")) == ["m0", "m3", "m4", "m5"]


@pytest.mark.parametrize("max_tokens", [0, -5, None, "4", True, 1.5])
def test_max_tokens_must_be_a_number_of_tokens(max_tokens):
    with pytest.raises(ValueError, match="max_tokens"):
        ContextManager(max_tokens=max_tokens)


def test_a_system_prompt_is_text():
    with pytest.raises(ArgumentError, match="system_prompt"):
        ContextManager(system_prompt=7)  # type: ignore[arg-type]


def test_a_strategy_of_ones_own_may_change_and_add_messages():
    class Shouting(ContextManagement):
        def apply_context_strategy(
            self, messages: Sequence[ContextMessage], system_prompt: str | None = None
        ) -> list[ContextMessage]:
            assert system_prompt == "You are helpful"
            loud: list[Any] = [{"role": "user", "content": "AHEM"}, *messages]
            loud[1]["content"] = str(loud[1]["content"]).upper()
            return loud

        def get_stats(self, total_messages: int) -> dict[str, Any]:
            return {"strategy": "shouting", "total_messages": total_messages}

    context = manager(context_management=Shouting())
    context.add_message(received("one"), "c")
    context.add_message(received("two"), "c")
    assert words(context.get_prompt("c")) == ["You are helpful", "AHEM", "ONE", "two"]
    assert words(context.get_conversation_history("c")) == ["one", "two"]
    assert context.get_context_stats("c") == {"strategy": "shouting", "total_messages": 2}


def test_a_conversation_as_a_context():
    context = manager()
    context.add_message(received("one"), "c")
    assert [(message.role, message.content) for message in context.get_context("c").messages()] == [("user", "one")]
    assert context.get_context("unknown").messages() == []


def test_an_open_call_and_a_stray_result_give_a_valid_prompt():
    """F3, B02."""
    context = ContextManager()
    context.add_tool_result("f", "stray", "c9", "c")
    context.add_message_dict(CALL, "c")
    context.add_message(received("stop"), "c")
    assert [message["role"] for message in context.get_prompt("c")] == ["assistant", "tool", "user"]
    assert "stray" not in words(context.get_prompt("c"))


OPENAI = TypeAdapter(list[ChatCompletionMessageParam])
ENTRIES = st.lists(
    st.one_of(
        st.builds(lambda text: {"role": "user", "content": text}, st.text(max_size=5)),
        st.builds(lambda text: {"role": "system", "content": text}, st.text(max_size=5)),
        st.just(CALL),
        st.builds(
            lambda text: {"role": "tool", "content": text, "tool_call_id": "call_123", "x": 1}, st.text(max_size=5)
        ),
    ),
    max_size=10,
)


@given(ENTRIES, st.integers(1, 40), st.none() | st.builds(WindowSizeContext, st.integers(1, 5)))
def test_any_prompt_is_valid_for_the_provider(entries, max_tokens, strategy):
    """F1."""
    context = ContextManager(max_tokens, "be kind", strategy)
    for entry in entries:
        context.add_message_dict(entry, "c")
    prompt: list[Any] = context.get_prompt("c")
    OPENAI.validate_python(prompt)
    asked = [call["id"] for message in prompt for call in message.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in prompt if message["role"] == "tool"] == asked
    assert context.get_conversation_history("c") == entries
