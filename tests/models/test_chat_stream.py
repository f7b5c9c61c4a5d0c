"""Reading replies: streamed and whole, of good servers and of broken ones (field case B08)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.core.settings import ToolSpec
from realtime.errors import ModelError
from realtime.models.chat import ChatModel, ChatOptions

from .chat_server import DONE, HI, SSE, Request, answer, asking, event, failing, reply_to, sending, serving

S, U, A, T = ChatRole.SYSTEM, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")

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
