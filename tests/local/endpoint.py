"""An HTTP endpoint that says what a test tells it to, on a plain socket: streams, breaks, refuses, never ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def event(**delta: Any) -> bytes:
    """A chunk of a streamed chat completion."""
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def streams(*pieces: bytes | asyncio.Event) -> Answer:
    """Answers with a stream of pieces; an event is waited for."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for piece in pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                writer.write(piece)
                await writer.drain()

    return answer


def says(*texts: str) -> Answer:
    """Answers with a streamed text."""
    return streams(*(event(content=text) for text in texts), END)


def sends(body: bytes, *, status: str = "200 OK", kind: str = "application/json") -> Answer:
    """Answers at once."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


class Endpoint:
    """The endpoint; answers are used up in order."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.gone = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    def asked(self, number: int = -1) -> dict[str, Any]:
        """What a request asked for."""
        body: dict[str, Any] = json.loads(self.requests[number][2])
        return body

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        await self.answers.pop(0)(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append((head[0].split()[1], headers, body))
            answering = asyncio.create_task(self._answer(writer))
            leaving = asyncio.create_task(reader.read())
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                self.gone.set()
            for child in (answering, leaving):
                child.cancel()
            await asyncio.wait({answering, leaving})
        finally:
            writer.close()
            self._serving.discard(task)
