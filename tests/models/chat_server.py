"""A server of Chat Completions on loopback that writes what a test likes, and ways to ask it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.errors import ModelError
from realtime.models.chat import ChatModel

KEY = "sk-very-secret-123"
HI = [ChatMessage(ChatRole.USER, "hi")]
SSE = "text/event-stream"


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


async def failing(handler: Handler, **settings: Any) -> ModelError:
    async with asking(handler, **settings) as (model, _):
        with pytest.raises(ModelError) as caught:
            await model.reply(HI)
    return caught.value
