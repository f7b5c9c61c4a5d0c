"""Digests of older messages (W4, B15)."""

import asyncio

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow, Summarizer
from realtime.errors import UserError

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg", "low")


def user(text):
    return ChatMessage("user", text, text)


def assistant(text):
    return ChatMessage("assistant", text, text)


def call(one):
    return ChatMessage("assistant", "", one, tool_calls=[FunctionCall("f", "{}", one)])


def result(one):
    return ChatMessage("tool", "ok", f"r:{one}", tool_call_id=one)


def contents(context):
    return [message.content or message.message_id for message in context.messages()]


class Scripted:
    """Gives what it was told to, and remembers what it was asked."""

    def __init__(self, *answers, meanwhile=None):
        self.answers = list(answers)
        self.asked = []
        self.meanwhile = meanwhile

    async def summarize(self, messages):
        self.asked.append([message.content or message.message_id for message in messages])
        if self.meanwhile is not None:
            self.meanwhile()
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def window(summarizer, items=4, turns=2, **limits):
    return ContextWindow(max_context_items=items, keep_recent_turns=turns, summary_llm=summarizer, **limits)


CONVERSATION = [
    ChatMessage("system", "S", "S"), user("u1"), call("c1"), result("c1"), assistant("a1"), user("u2"), assistant("a2"),
]  # fmt: skip


async def test_a_digest_takes_the_place_of_exactly_what_it_digests():
    summarizer = Scripted("  they greeted each other \n")
    context = ChatContext(CONVERSATION)
    assert await window(summarizer).compact(context) is context
    assert summarizer.asked == [["u1", "c1", "ok", "a1"]]
    assert contents(context) == ["S", "they greeted each other", "u2", "a2"]
    digest = context.messages()[1]
    assert digest.summary
    assert digest.role == "user"
    assert context.get(digest.message_id) is digest


async def test_an_older_digest_goes_into_the_newer_one():
    summarizer = Scripted("first", "second")
    context = ChatContext(CONVERSATION)
    await window(summarizer).compact(context)
    context.merge([user("u3"), assistant("a3")])
    await window(summarizer).compact(context)
    assert summarizer.asked[1] == ["first", "u2", "a2"]
    assert contents(context) == ["S", "second", "u3", "a3"]
    assert sum(message.summary for message in context.messages()) == 1


@pytest.mark.parametrize("answer", ["", " \n ", RuntimeError("busy"), TimeoutError(), None, 3])
async def test_a_failing_or_empty_digest_falls_back_to_trimming(answer):
    context = ChatContext(CONVERSATION)
    await window(Scripted(answer)).compact(context)
    assert contents(context) == ["S", "a1", "u2", "a2"]


async def test_a_cancelled_digest_leaves_the_context_as_it_was():
    context = ChatContext(CONVERSATION)
    with pytest.raises(asyncio.CancelledError):
        await window(Scripted(asyncio.CancelledError())).compact(context)
    assert context.messages() == CONVERSATION


async def test_messages_that_arrive_meanwhile_survive():
    context = ChatContext(CONVERSATION)
    summarizer = Scripted("digest", meanwhile=lambda: context.merge([user("u3")]))
    await window(summarizer, items=5).compact(context)
    assert contents(context) == ["S", "digest", "u2", "a2", "u3"]


@pytest.mark.parametrize(
    "change", [lambda context: context.remove("a1"), lambda context: context.update("a1", content="A1")]
)
async def test_a_digest_of_what_changed_meanwhile_is_not_used(change):
    context = ChatContext(CONVERSATION)
    await window(Scripted("digest", meanwhile=lambda: change(context))).compact(context)
    assert "digest" not in contents(context)
    assert contents(context)[-2:] == ["u2", "a2"]


async def test_under_budget_nobody_is_asked():
    summarizer = Scripted()
    context = ChatContext(CONVERSATION)
    await window(summarizer, items=7).compact(context)
    assert context.messages() == CONVERSATION
    assert summarizer.asked == []


async def test_without_a_summarizer_it_is_trimmed():
    context = ChatContext(CONVERSATION)
    await window(None).compact(context)
    assert contents(context) == ["S", "a1", "u2", "a2"]


async def test_a_fixed_prompt_over_budget_does_not_ask_again_and_again():
    """B15: 24,000 tokens of instructions, 8,000 of budget."""
    summarizer = Scripted()
    context = ChatContext([ChatMessage("system", "word " * 12_000, "S")])
    for turn in range(10):
        context.merge([user(f"u{turn}"), assistant(f"a{turn}")])
        await ContextWindow(max_tokens=8000, summary_llm=summarizer).compact(context)
    assert summarizer.asked == []
    assert contents(context)[1:] == ["a8", "u9", "a9"]


async def test_recent_turns_over_budget_do_not_ask_either():
    summarizer = Scripted()
    context = ChatContext([user("old"), assistant("older"), user("new " * 50)])
    await ContextWindow(max_tokens=50, keep_recent_turns=1, summary_llm=summarizer).compact(context)
    assert summarizer.asked == []
    assert len(context) == 1


async def test_an_instruction_in_mid_conversation_is_not_taken_for_the_prompt():
    """B15: instructions are held outside, and an idle note stands in the middle."""
    summarizer = Scripted("digest")
    context = ChatContext([user("u1"), assistant("a1"), ChatMessage("system", "idle", "I"), user("u9")])
    await window(summarizer, items=2, turns=1).compact(context)
    assert summarizer.asked == [["u1", "a1", "idle"]]
    assert contents(context) == ["digest", "u9"]


async def test_whole_units_are_digested_and_open_calls_are_not():
    """B15: tool units stay whole."""
    summarizer = Scripted("digest")
    context = ChatContext(
        [user("u1"), call("c1"), user("hm"), result("c1"), user("u2"), call("c2"), user("u3"), assistant("a3")]
    )
    await window(summarizer, items=5, turns=2).compact(context)
    assert summarizer.asked == [["u1", "c1", "hm", "ok", "u2"]]
    assert contents(context) == ["digest", "c2", "u3", "a3"]


async def test_a_round_that_reaches_into_the_recent_turns_is_not_digested():
    summarizer = Scripted("digest")
    context = ChatContext([user("u1"), assistant("a1"), user("u2"), call("c1"), user("hm"), result("c1")])
    await window(summarizer, items=5, turns=2).compact(context)
    assert summarizer.asked == [["u1", "a1", "u2"]]
    assert contents(context) == ["digest", "c1", "hm", "ok"]


async def test_old_frames_are_dropped_rather_than_digested():
    frames = [ChatMessage("user", "", f"f{number}", images=[PICTURE], source="camera") for number in range(6)]
    summarizer = Scripted()
    context = ChatContext([*frames, user("u1")])
    await window(summarizer, items=4, turns=1).compact(context)
    assert summarizer.asked == []
    assert contents(context) == ["f3", "f4", "f5", "u1"]


async def test_a_context_that_a_session_took_meanwhile_is_left_to_it():
    context = ChatContext(CONVERSATION)
    with pytest.raises(UserError, match=r"session\.send"):
        await window(Scripted("digest", meanwhile=lambda: context.lease("session.send"))).compact(context)
    assert context.messages() == CONVERSATION
    with pytest.raises(UserError):
        await window(Scripted("digest")).compact(context)


async def test_two_at_once_digest_once():
    context = ChatContext(CONVERSATION)
    gate = asyncio.Event()

    class Gated:
        async def summarize(self, messages):
            await gate.wait()
            return "digest"

    async def one():
        await window(Gated()).compact(context)

    async with asyncio.TaskGroup() as group:
        group.create_task(one())
        group.create_task(one())
        await asyncio.sleep(0)
        gate.set()
    assert contents(context) == ["S", "digest", "u2", "a2"]


def test_anything_that_summarizes_is_a_summarizer():
    assert isinstance(Scripted(), Summarizer)
    assert not isinstance(object(), Summarizer)
