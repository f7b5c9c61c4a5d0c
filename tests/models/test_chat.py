"""The text model against servers of our own: good, slow, broken, huge, never ending (field cases B08, B15; W4)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow, Summarizer
from realtime.core.settings import ToolSpec
from realtime.errors import ArgumentError, MissingExtraError, ModelError, UserError
from realtime.models import chat
from realtime.models.chat import ChatModel, ChatOptions, transcript_of
from realtime.testing import ManualClock

S, U, A, T = ChatRole.SYSTEM, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")
KEY = "sk-very-secret-123"
HI = [ChatMessage(U, "hi")]
SSE = "text/event-stream"

# -- a server ----------------------------------------------------------------------------------------------------------


class Request:
    """What one client asked."""

    def __init__(self, head: str, body: bytes) -> None:
        self.head = head
        self.body: dict[str, Any] = json.loads(body)


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[str, list[Request]]]:
    """Serve on loopback: each request goes to the handler, which writes what it likes."""
    asked: list[Request] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line.split(":")[1]) for line in head.lower().splitlines() if line.startswith("content-length")
            )
            asked.append(Request(head, await reader.readexactly(length)))
            await handler(asked[-1], writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def answer(
    writer: asyncio.StreamWriter, *chunks: bytes, status: str = "200 OK", kind: str = SSE, ends: bool = True
) -> None:
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    )
    for chunk in chunks:
        writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        await writer.drain()
    if ends:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': choices, **more})}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def sending(*chunks: bytes, **options: Any) -> Handler:
    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, *chunks, **options)

    return handle


@asynccontextmanager
async def asking(handler: Handler, **settings: Any) -> AsyncIterator[tuple[ChatModel, list[Request]]]:
    async with serving(handler) as (url, asked), ChatModel("m", url=url, **settings) as model:
        yield model, asked


async def reply_to(*chunks: bytes, **options: Any) -> ChatMessage:
    async with asking(sending(*chunks, **options)) as (model, _):
        return await model.reply(HI)


# -- good servers ------------------------------------------------------------------------------------------------------


async def test_text_comes_as_it_is_made():
    chunks = [
        event({"role": "assistant", "content": ""}),
        event({"content": "Hel"}),
        event({"content": "lo"}),
        event({}, "stop"),
        DONE,
    ]
    async with asking(sending(*chunks)) as (model, asked):
        assert [piece async for piece in model.stream(HI)] == ["Hel", "lo"]
    (request,) = asked
    assert request.body == {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    assert request.head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")


async def test_the_first_piece_is_there_before_the_last_is_sent():
    go_on = asyncio.Event()

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, event({"content": "one"}), ends=False)
        await go_on.wait()
        rest = event({"content": "two"}, "stop") + DONE
        writer.write(f"{len(rest):x}\r\n".encode() + rest + b"\r\n0\r\n\r\n")

    async with asking(handle) as (model, _), aclosing(model.stream(HI)) as pieces:
        assert await anext(pieces) == "one"
        go_on.set()
        assert await anext(pieces) == "two"


async def test_tool_calls_come_whole_and_in_order():
    message = await reply_to(
        event({"content": "wait"}),
        event({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "g", "arguments": ""}}]}),
        event(
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}
                ]
            }
        ),
        event(
            {
                "tool_calls": [
                    {"index": 0, "function": {"arguments": " 1}"}},
                    {"index": 1, "function": {"arguments": "{}"}},
                ]
            }
        ),
        event({}, "tool_calls"),
        DONE,
    )
    assert message == ChatMessage(
        A, "wait", tool_calls=(FunctionCall("f", '{"a": 1}', "c1"), FunctionCall("g", "{}", "c2"))
    )


async def test_tool_calls_of_servers_that_number_nothing():
    message = await reply_to(
        event({"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}, {"id": "c2", "function": {"name": "g", "arguments": "{"}}]}),
        event({"tool_calls": [{"function": {"arguments": "}"}}]}, "tool_calls"),
    )  # fmt: skip
    assert message.tool_calls == (FunctionCall("f", '{"a": 1}', "c1"), FunctionCall("g", "{}", "c2"))


async def test_a_call_that_goes_on_after_another_has_begun_is_told_by_its_id():
    message = await reply_to(
        event({"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{"}}]}),
        event({"tool_calls": [{"id": "c2", "function": {"name": "g", "arguments": "["}}]}),
        event({"tool_calls": [{"id": "c1", "function": {"arguments": "}"}}]}),
        event({"tool_calls": [{"id": "c2", "function": {"arguments": "]"}}]}, "tool_calls"),
    )
    assert message.tool_calls == (FunctionCall("f", "{}", "c1"), FunctionCall("g", "[]", "c2"))


async def test_calls_of_one_id_in_a_whole_reply_are_two():
    calls = [{"id": "call_0", "function": {"name": name, "arguments": "{}"}} for name in "fg"]
    raw = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()
    message = await reply_to(raw, kind="application/json")
    assert message.tool_calls == (FunctionCall("f", "{}", "call_0"), FunctionCall("g", "{}", "call_0"))


async def test_a_server_that_does_not_stream():
    body = {
        "choices": [
            {
                "message": {
                    "content": "whole",
                    "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
                }
            }
        ]
    }
    raw = json.dumps(body).encode()
    message = await reply_to(raw[:20], raw[20:], kind="application/json; charset=utf-8")
    assert message == ChatMessage(A, "whole", tool_calls=(FunctionCall("f", "{}", "c1"),))


async def test_any_cutting_of_the_bytes_gives_the_same_text():
    """F9: an umlaut, an emoji and a pair of surrogates cut in two are whole."""
    text = "Größe 👨‍👩‍👧 日本"
    events = (
        b": a comment\r\n\r\n"
        + event({"content": text})
        + b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\r\n\r\n'
    )
    events += (
        b'event: chunk\ndata: {"choices":[{"delta":\ndata: {"content":"\\ude00"}}]}\n\n' + event({}, "stop") + DONE
    )
    for size in (1, 2, 7, 4096):
        chunks = [events[at : at + size] for at in range(0, len(events), size)]
        assert (await reply_to(*chunks)).content == f"{text}😀"


async def test_a_half_character_at_the_end_is_replaced():
    assert (await reply_to(b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n', DONE)).content == "a\ufffd"


async def test_content_in_parts_refusals_and_what_is_no_choice_of_ours():
    message = await reply_to(
        event({"content": [{"type": "text", "text": "a"}, {"type": "other"}]}),
        b'data: {"choices":[{"index":1,"delta":{"content":"another choice"}},{"index":0,"delta":null}]}\n\n',
        event({"refusal": "b"}),
        event(usage={"total_tokens": 5}),
        event({"reasoning_content": "hm"}, "stop"),
    )
    assert message.content == "ab"


async def test_everything_that_is_asked_goes_along():
    spoken = AudioContent.from_pcm(bytes(48), 24_000)
    history = [
        ChatMessage(U, "look", images=[GIF]),
        ChatMessage(U, "", audio=spoken),
        ChatMessage(A, "", "", [FunctionCall("f", "{}", "c1")]),
    ]
    options = ChatOptions(temperature=0.5, max_output_tokens=50, reasoning_model=True, audio=True)
    tool = ToolSpec(
        name="f", description="does", parameters={"type": "object", "properties": {"a": {"type": "string"}}}
    )
    async with asking(sending(event({"content": "x"}, "stop")), options=options, headers={"X-Team": "blue"}) as (
        model,
        asked,
    ):
        await model.reply(history, instructions="be kind", tools=[tool], tool_choice="required")
        await model.reply(history, max_output_tokens=7)
    first, second = (request.body for request in asked)
    assert [message["role"] for message in first["messages"]] == [
        "developer",
        "user",
        "user",
        "assistant",
        "tool",
    ]  # an open call is closed
    assert first["messages"][1]["content"][1]["image_url"] == {"url": GIF.url, "detail": "low"}
    assert first["messages"][2]["content"][0]["type"] == "input_audio"
    assert first["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "does",
                "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
        }
    ]
    assert (first["tool_choice"], first["temperature"], first["max_completion_tokens"]) == ("required", 0.5, 50)
    assert second["max_completion_tokens"] == 7
    assert not {"tools", "tool_choice", "max_tokens"} & set(second)
    assert "x-team: blue" in asked[0].head.lower()


async def test_several_requests_at_once():
    async with asking(sending(event({"content": "x"}, "stop"))) as (model, asked):
        replies = await asyncio.gather(*(model.reply(HI) for _ in range(8)))
    assert [message.content for message in replies] == ["x"] * 8
    assert len(asked) == 8


# -- bad servers -------------------------------------------------------------------------------------------------------


async def failing(handler: Handler, **settings: Any) -> ModelError:
    async with asking(handler, **settings) as (model, _):
        with pytest.raises(ModelError) as caught:
            await model.reply(HI)
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "code", "message", "fatal"),
    [
        ("401 Unauthorized", '{"error": {"message": "no such key", "code": "invalid_api_key", "param": "x"}}', "invalid_api_key", "no such key", True),
        ("400 Bad Request", '{"error": {"message": "too long", "type": "invalid_request_error", "code": null}}', "invalid_request_error", "too long", False),
        ("404 Not Found", '{"error": "no such model"}', "http_404", "no such model", True),
        ("429 Too Many Requests", "slow down", "http_429", "slow down", False),
        ("500 Oh", "", "http_500", "HTTP status 500", False),
        ("302 Found", "", "http_302", "HTTP status 302", False),
        ("503 Busy", "x" * 200_000, "http_503", "x" * 500, False),
        ("400 Bad", '{"error": [1]}', "http_400", '{"error": [1]}', False),
    ],
)  # fmt: skip
async def test_a_refusal_keeps_the_servers_words(status, body, code, message, fatal):
    error = await failing(sending(body.encode(), status=status, kind="application/json"))
    assert (error.code, error.message, error.fatal) == (code, message, fatal)


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: {broken\n\n"],
        [b"data: [1]\n\n"],
        [b'data: "text"\n\n'],
        [b"data: " + b"[" * 100_000 + b"\n\n"],
        [event({"tool_calls": [{"index": at, "id": f"c{at}"} for at in range(200)]})],
    ],
)
async def test_what_is_no_reply_is_malformed(chunks):
    assert (await failing(sending(*chunks))).code == "malformed"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": 7}'])
async def test_what_is_no_whole_reply_is_malformed(body):
    assert (await failing(sending(body, kind="application/json"))).code == "malformed"


@pytest.mark.parametrize("chunks", [[], [event({"content": "a"})], [event({"content": "a"}), b"data: {"]])
async def test_a_reply_that_stops_before_its_end_is_incomplete(chunks):
    error = await failing(sending(*chunks))
    assert error.code in {"incomplete", "malformed"}
    assert error.code == "incomplete" or chunks[-1] == b"data: {"


async def test_a_connection_that_breaks_in_the_middle():
    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, event({"content": "a"}), ends=False)
        writer.transport.abort()

    assert (await failing(handle)).code == "incomplete"


async def test_an_error_within_the_stream():
    error = await failing(
        sending(event({"content": "a"}), b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n')
    )
    assert (error.code, error.message) == ("server_error", "overloaded")


async def test_no_server_at_all():
    async with serving(sending()) as (url, _):
        pass
    async with ChatModel("m", url=url) as model:
        with pytest.raises(ModelError) as caught:
            await model.reply(HI)
    assert caught.value.code == "connection_failed"


async def test_no_http_at_all():
    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")

    assert (await failing(handle)).code == "connection_failed"


@pytest.mark.parametrize(
    ("kind", "chunk"), [(SSE, event({"content": "x" * 1000})), (SSE, b"x" * 1000), ("application/json", b" " * 1000)]
)
async def test_a_reply_without_end_is_cut_at_its_bytes(kind, chunk):
    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(writer, *([chunk] * 10_000), kind=kind)

    error = await failing(handle, options=ChatOptions(max_response_bytes=100_000))
    assert error.code == "response_too_large"


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
        "Summary of what was before: They met before.",
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
