"""The text model against servers of our own: slow, silent, never ending; what it asks and never tells (B15; W4)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import aclosing

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow, Summarizer
from realtime.core.settings import ToolSpec
from realtime.errors import ArgumentError, MissingExtraError, ModelError, UserError
from realtime.models import chat
from realtime.models.chat import ChatModel, ChatOptions, transcript_of
from realtime.testing import ManualClock

from .chat_server import HI, KEY, Request, answer, asking, event, failing, sending, serving

S, U, A, T = ChatRole.SYSTEM, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")

# -- waiting -----------------------------------------------------------------------------------------------------------


class Dripping:
    """A server that sends one chunk each time it is told to."""

    def __init__(self) -> None:
        self.next = asyncio.Event()
        self.asked = asyncio.Event()

    async def handle(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        await self._turn()
        await answer(writer, ends=False)
        while True:
            await self._turn()
            chunk = event({"content": "x"})
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()

    async def _turn(self) -> None:
        await self.next.wait()
        self.next.clear()


OPTIONS = ChatOptions(answer_timeout_seconds=5.0, idle_timeout_seconds=2.0, timeout_seconds=6.5)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):  # a hang guard
        while not condition():  # noqa: ASYNC110  # nothing tells when a clock has a sleeper
            await asyncio.sleep(0)


async def test_a_server_that_never_answers():
    clock, server = ManualClock(), Dripping()
    async with asking(server.handle, options=OPTIONS, clock=clock) as (model, _):
        asked = asyncio.create_task(model.reply(HI))
        await server.asked.wait()
        await clock.run(4.9)
        assert not asked.done()
        await clock.run(0.2)
        with pytest.raises(ModelError, match="longer than 5 s") as caught:
            await asked
    assert caught.value.code == "timeout"


async def test_a_server_that_falls_silent():
    clock, server = ManualClock(), Dripping()
    async with asking(server.handle, options=OPTIONS, clock=clock) as (model, _), aclosing(model.stream(HI)) as pieces:
        server.next.set()
        first = asyncio.create_task(anext(pieces))
        await until(lambda: not server.next.is_set())
        server.next.set()
        assert await first == "x"
        second = asyncio.create_task(anext(pieces))
        await until(lambda: clock.waiting > 0)
        await clock.run(2.1)
        with pytest.raises(ModelError, match="longer than 2 s"):
            await second


async def test_a_server_that_never_ends():
    """Its chunks come in time; all of it takes too long. The reader's own time does not count."""
    clock, server = ManualClock(), Dripping()
    async with asking(server.handle, options=OPTIONS, clock=clock) as (model, _), aclosing(model.stream(HI)) as pieces:
        server.next.set()
        for _ in range(4):
            coming = asyncio.create_task(anext(pieces))
            await until(lambda: clock.waiting > 0 and not server.next.is_set())
            await clock.run(1.5)
            server.next.set()
            assert await coming == "x"
            await clock.run(1000.0)  # the reader thinks
        last = asyncio.create_task(anext(pieces))
        await until(lambda: clock.waiting > 0)
        await clock.run(0.6)
        with pytest.raises(ModelError, match=r"longer than 6.5 s"):
            await last


async def test_a_reply_that_is_not_wanted_any_more_ends_the_connection():
    gone = asyncio.Event()

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(writer, *([event({"content": "x"})] * 100_000))
        except ConnectionError:
            gone.set()

    async with asking(handle) as (model, _):
        async with aclosing(model.stream(HI)) as pieces:
            assert await anext(pieces) == "x"
        async with asyncio.timeout(20):  # a hang guard
            await gone.wait()


async def test_a_cancelled_request_ends_at_once():
    server = Dripping()
    async with asking(server.handle) as (model, _):
        asked = asyncio.create_task(model.reply(HI))
        await server.asked.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked


# -- secrets -----------------------------------------------------------------------------------------------------------


async def test_the_key_is_sent_and_never_told(caplog):
    """Not in an error, a repr or a log, even where the server repeats it."""
    body = json.dumps({"error": {"message": f"Incorrect API key: {KEY}", "code": KEY}}).encode()
    with caplog.at_level(logging.DEBUG):
        async with asking(sending(body, status="401 No", kind="application/json"), api_key=KEY) as (model, asked):
            with pytest.raises(ModelError) as caught:
                await model.reply(HI)
            assert KEY not in repr(model)
    assert f"Bearer {KEY}" in asked[0].head
    assert KEY not in str(caught.value)
    assert KEY not in caught.value.code
    assert KEY not in caplog.text


async def test_a_key_within_an_error_in_the_stream_is_not_told():
    chunk = f'data: {{"error": {{"message": "bad {KEY}", "code": "{KEY}"}}}}\n\n'.encode()
    error = await failing(sending(chunk), api_key=KEY)
    assert KEY not in str(error)
    assert KEY not in error.code


@pytest.mark.parametrize(
    "said",
    [
        f"data: {KEY}\n\n",
        f'data: ["{KEY}"]\n\n',
        f"data: {'x' * 70}{KEY}\n\n",
        f'data: {{"error": "{"x" * 490}{KEY}"}}\n\n',
    ],
)
@pytest.mark.parametrize("settings", [{"api_key": KEY}, {"headers": {"api-key": KEY}}])
async def test_a_key_is_not_told_from_what_makes_no_sense_nor_half_of_it(said, settings):
    error = await failing(sending(said.encode()), **settings)
    assert KEY[:6] not in str(error)


async def test_a_password_in_the_address_is_not_told():
    body = json.dumps({"error": {"message": f"no such user: {KEY}"}}).encode()
    async with (
        serving(sending(body, status="401 No", kind="application/json")) as (url, asked),
        ChatModel("m", url=url.replace("://", f"://me:{KEY}@")) as model,
    ):
        with pytest.raises(ModelError) as caught:
            await model.reply(HI)
    assert "authorization: basic" in asked[0].head.lower()
    for told in (str(caught.value), repr(model), model.name):
        assert KEY not in told


async def test_the_environments_key_goes_to_nobody_but_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with asking(sending(event({"content": "x"}, "stop"))) as (model, asked):
        await model.reply(HI)
    assert "authorization" not in asked[0].head.lower()
    openai = ChatModel("gpt-5-mini")
    assert openai.url == "https://api.openai.com/v1/chat/completions"
    await openai.aclose()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        ChatModel("gpt-5-mini")


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"model": ""}, "model"),
        ({"url": "ws://127.0.0.1/v1"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": 7}, "url"),
        ({"url": "http://[broken"}, "url"),
        ({"api_key": "secret\nkey"}, "api_key"),
        ({"api_key": "secret-ü"}, "api_key"),
        ({"headers": {"X-Team": "secret\nblue"}}, "headers"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings, named):
    with pytest.raises(ArgumentError, match=named) as caught:
        ChatModel(**{"model": "m", "url": "http://127.0.0.1/v1", **settings})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"timeout_seconds": 0}, {"idle_timeout_seconds": -1}, {"answer_timeout_seconds": 0}, {"connect_timeout_seconds": 0}, {"max_response_bytes": 0}, {"max_output_tokens": 0}, {"temperature": 3}],
)  # fmt: skip
def test_options_out_of_range_are_refused_by_name(options):
    (name,) = options
    with pytest.raises(ArgumentError, match=name):
        ChatOptions(**options)


async def test_what_cannot_be_asked_is_refused():
    async with asking(sending(event({"content": "x"}, "stop"))) as (model, asked):
        with pytest.raises(ArgumentError, match="tool_choice"):
            await model.reply(HI, tool_choice="maybe")  # type: ignore[arg-type]
        with pytest.raises(UserError, match="JSON"):
            await model.reply(HI, tools=[ToolSpec(name="f", parameters={"default": float("nan")})])
        await model.aclose()
        await model.aclose()
        with pytest.raises(UserError, match="closed"):
            await model.reply(HI)
    assert asked == []


def test_an_address_with_its_path_is_taken_as_it_is(monkeypatch):
    model = ChatModel("m", url="http://127.0.0.1:8000/api/chat/completions/")
    assert model.url == "http://127.0.0.1:8000/api/chat/completions"
    assert model.name == "127.0.0.1:m"
    monkeypatch.setattr(chat, "_IS_INSTALLED", False)
    with pytest.raises(MissingExtraError, match=r"realtime-session\[chat\]"):
        ChatModel("m", url="http://127.0.0.1:8000")


# -- summaries ---------------------------------------------------------------------------------------------------------


async def test_a_summary_is_of_a_transcript_and_answers_nothing():
    """B15: the last question is material, not a question to the summarizer."""
    async with asking(sending(event({"content": " They met. \n"}, "stop"))) as (model, asked):
        assert isinstance(model, Summarizer)
        assert await model.summarize([ChatMessage(U, "What time is it?")]) == "They met."
    system, user = asked[0].body["messages"]
    assert system["role"] == "system"
    assert user == {"role": "user", "content": "User: What time is it?"}


def test_a_transcript_tells_who_said_showed_and_called_what():
    assert transcript_of(
        [
            ChatMessage(U, "They met before.", summary=True),
            ChatMessage(S, "be kind"),
            ChatMessage(U, "look", images=[GIF, GIF, ImageContent()]),
            ChatMessage(A, "one moment", "", [FunctionCall("f", '{"a": 1}', "c1")]),
            ChatMessage(T, "", "", (), "c1"),
            ChatMessage(A, "It is", interrupted=True, unheard="nine"),
            ChatMessage(U, ""),
        ]
    ).splitlines() == [
        "[summary of what was said before] They met before.",
        "Instruction: be kind",
        "User: look",
        "User showed 2 picture(s).",
        "Assistant: one moment",
        'Assistant called f({"a": 1})',
        "Tool result: (no output)",
        "Assistant: It is [interrupted by the user]",
    ]


async def test_a_window_digests_by_it_and_survives_its_failure():
    """W4."""

    def long_context() -> ChatContext:
        context = ChatContext.empty()
        for at in range(10):
            context.add_message(U if at % 2 == 0 else A, f"sentence number {at} " + "word " * 20)
        return context

    async with asking(sending(event({"content": "They spoke."}, "stop"))) as (model, _):
        context = await ContextWindow(max_tokens=250, keep_recent_turns=2, summary_llm=model).compact(long_context())
    assert context.messages()[0].content == "They spoke."
    assert context.messages()[0].summary
    async with asking(sending(b"", status="500 Oh")) as (model, _):
        context = await ContextWindow(max_tokens=250, keep_recent_turns=2, summary_llm=model).compact(long_context())
    assert not any(message.summary for message in context.messages())
    assert context.messages()[-1].content.startswith("sentence number 9")
