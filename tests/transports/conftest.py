"""Servers that a transport can meet: real ones, and some that no library would be."""

import asyncio
import base64
import contextlib
import hashlib

import pytest
from websockets.asyncio.server import serve

from realtime.pipelines.channel import Channel
from realtime.transports import websocket

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Server:
    """A websocket server on loopback whose connections a test takes one by one."""

    def __init__(self):
        self.connections = Channel(16)
        self.url = ""

    async def handle(self, connection):
        await self.connections.send(connection)
        await connection.wait_closed()

    async def taken(self):
        return await self.connections.receive()


@pytest.fixture
async def server():
    """A server that behaves, and takes messages of any size."""
    made = Server()
    async with serve(
        made.handle, "127.0.0.1", 0, max_size=None, compression="deflate", ping_interval=None
    ) as listening:
        made.url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield made


class RawPeer:
    """The far end of one websocket, by bytes: it answers nothing that a test does not write."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    async def greet(self):
        request = await self.reader.readuntil(b"\r\n\r\n")
        key = next(
            line[19:].strip() for line in request.decode().split("\r\n") if line.startswith("Sec-WebSocket-Key: ")
        )
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        self.writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n"
        )
        await self.writer.drain()

    async def say(self, text):
        data = text.encode()
        assert len(data) < 126
        self.writer.write(bytes([0x81, len(data)]) + data)
        await self.writer.drain()


@pytest.fixture
async def raw_server(monkeypatch):
    """A server of raw peers: its URL, and how to take one. They never answer a close, so we wait but briefly for it."""
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.05)
    peers = Channel(16)

    async def handle(reader, writer):
        peer = RawPeer(reader, writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await peer.greet()
            await peers.send(peer)

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    made = []

    async def take():
        made.append(await peers.receive())
        return made[-1]

    try:
        yield f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}", take
    finally:
        for peer in made:
            peer.writer.transport.abort()
        listening.close()
        await listening.wait_closed()
