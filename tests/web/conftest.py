"""A server of the room on a port of its own, obliging sessions, and callers: real websockets, real aiortc."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import httpx2
import pytest
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from realtime import FrameSampling, RealtimeSession
from realtime.core.capabilities import ModelCapabilities
from realtime.errors import LinkLost
from realtime.models.base import RealtimeModel
from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack, MemoryPair, openai_script
from realtime.testing.loopback import make_peer, on_loopback
from realtime.web import WebApp, WebLimits, app
from realtime.web.server import WebServer
from realtime.wire.openai import OpenAIWire

HANG_SECONDS = 60.0
TONE = array("h", (round(8_000 * math.sin(math.tau * 440 * n / 24_000)) for n in range(2_400))).tobytes()
"""100 ms at 24 kHz."""
_numbers = count(1)


class Obliging(RealtimeModel):
    """Takes whatever it is told; each text that asks for a reply is answered with the next of `replies`, 100 ms a word."""

    def __init__(self) -> None:
        self.name = "obliging"
        self.capabilities = ModelCapabilities(model="obliging")
        self.replies: deque[str] = deque()
        self.received: list[dict[str, Any]] = []
        self.audio_bytes = 0
        self.refuse: BaseException | None = None
        self._heard = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire(wall=wall)

    async def open(self) -> Any:
        if self.refuse is not None:
            raise self.refuse
        pair = MemoryPair(capacity=256)
        task = asyncio.get_running_loop().create_task(self._serve(pair))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return pair.client

    async def aclose(self) -> None:
        """One object serves all sessions of a test."""

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def hears(self, kind: str) -> dict[str, Any]:
        while not (found := [message for message in self.received if message["type"] == kind]):
            self._heard.clear()
            await self._heard.wait()
        return found[-1]

    async def hears_audio(self, size: int) -> None:
        while self.audio_bytes < size:
            self._heard.clear()
            await self._heard.wait()

    async def _serve(self, pair: MemoryPair) -> None:
        last: str | None = None
        with contextlib.suppress(LinkLost):
            for message in openai_script.session_created():
                await pair.server.send(json.dumps(message))
            while True:
                message = json.loads(await pair.server.receive())
                if message["type"] == "input_audio_buffer.append":
                    self.audio_bytes += len(message["audio"]) * 3 // 4
                else:
                    self.received.append(message)
                self._heard.set()
                answers: Any = ()
                match message["type"]:
                    case "session.update":
                        answers = openai_script.session_updated()
                    case "conversation.item.create":
                        answers = openai_script.item_created(message["item"], last)
                        last = message["item"]["id"]
                    case "response.create":
                        text = self.replies.popleft() if self.replies else "Yes."
                        item = f"reply_{next(_numbers)}"
                        answers = openai_script.spoken_reply(
                            f"resp_{item}", item, text, TONE * len(text.split()), previous_item_id=last
                        )
                        last = item
                    case _:
                        pass
                for answer in answers:
                    await pair.server.send(json.dumps(answer))


class Served:
    """A server that runs."""

    def __init__(self, bot: WebApp, port: int, server: WebServer) -> None:
        self.bot = bot
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.ws_url = f"ws://127.0.0.1:{port}/call"

    async def until_calls(self, number: int) -> None:
        """Wait until so many calls are in progress."""
        async with asyncio.timeout(HANG_SECONDS):
            while len(self.bot.calls) != number:  # noqa: ASYNC110  (nothing tells of it)
                await asyncio.sleep(0.01)


class Caller:
    """A client of the signalling websocket, with an aiortc peer connection at a time."""

    def __init__(self, websocket: ClientConnection) -> None:
        self.websocket = websocket
        self.welcome: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.on_channel: list[dict[str, Any]] = []
        self.frames = 0
        self.pc: RTCPeerConnection | None = None
        self.channel: Any = None
        self.tracks: list[FakeTrack] = []
        self.arrived = asyncio.Event()
        self.closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._read())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def send(self, **message: Any) -> None:
        await self.websocket.send(json.dumps(message))

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in self.websocket:
                message = json.loads(text)
                self.messages.append(message)
                self.arrived.set()
        self.closed = True
        self.arrived.set()

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds of what has arrived."""
        async with asyncio.timeout(HANG_SECONDS):
            while not (found := holds()):
                self.arrived.clear()
                await self.arrived.wait()
        return found

    async def receive(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The first message of a kind."""

        def found() -> dict[str, Any] | None:
            for message in self.messages:
                if message["type"] == kind and all(message.get(name) == value for name, value in fields.items()):
                    return message
            assert not self.closed, f"the websocket is closed; {kind} did not come, but: {self.messages}"
            return None

        return await self.until(found)

    async def greet(self, **hello: Any) -> dict[str, Any]:
        await self.send(type="hello", **hello)
        self.welcome = await self.receive("welcome")
        return self.welcome

    async def offer(self, *, camera: bool = False, names: dict[str, str] | None = None) -> RTCPeerConnection:
        """Offer a new peer connection and return once it is connected."""
        pc = self.pc = make_peer()
        clock = SystemClock()
        kinds = [FakeTrack.audio(bytes(96_000 * 60), clock=clock)]
        if camera:
            kinds.append(FakeTrack.video(seconds=600, fps=10, clock=clock))
        for track in kinds:
            self.tracks.append(track)
            pc.addTrack(track)
        self.channel = pc.createDataChannel("realtime")
        opened = asyncio.Event()
        self.channel.on("open", opened.set)
        self.channel.on("message", self._hear_channel)
        pc.on("track", self._hear)
        with on_loopback():
            await pc.setLocalDescription(await pc.createOffer())
        mids = {each.mid: each.kind for each in pc.getTransceivers()}
        chosen = names or {"audio": "microphone", "video": "camera"}
        answers = len([message for message in self.messages if message["type"] == "answer"])
        await self.send(
            type="offer", sdp=pc.localDescription.sdp, sources={mid: chosen[kind] for mid, kind in mids.items()}
        )
        found = await self.until(
            lambda: [message for message in self.messages if message["type"] in ("answer", "error")][answers:]
        )
        await pc.setRemoteDescription(RTCSessionDescription(found[0]["sdp"], "answer"))
        async with asyncio.timeout(HANG_SECONDS):
            await opened.wait()
        return pc

    def _hear_channel(self, text: str) -> None:
        self.on_channel.append(json.loads(text))
        self.arrived.set()

    def _hear(self, track: Any) -> None:
        self._spawn(self._listen(track))

    async def _listen(self, track: Any) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                samples = memoryview(bytes(frame.planes[0])).cast("h")
                if max(samples) > 500 or min(samples) < -500:
                    self.frames += 1
                    self.arrived.set()

    async def hang_up(self) -> None:
        """Close the peer connection, in good order."""
        for track in self.tracks:
            track.stop()
        self.tracks.clear()
        if self.pc is not None:
            await self.pc.close()
            self.pc = None

    async def aclose(self) -> None:
        await self.hang_up()
        await self.websocket.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture
async def model() -> AsyncIterator[Obliging]:
    made = Obliging()
    yield made
    await made.end()


@pytest.fixture
def make_session(model: Obliging) -> Callable[..., RealtimeSession]:

    def make(request: object = None) -> RealtimeSession:
        return RealtimeSession(model, sampling=FrameSampling(fps_idle=5, min_change=0))

    return make


@pytest.fixture
async def serve(make_session: Callable[..., RealtimeSession]) -> AsyncIterator[Callable[..., Any]]:
    """Serve an application; takes the options of `realtime.web.app`, or an ASGI application."""
    running: list[tuple[WebServer, asyncio.Task[None], WebApp, socket.socket]] = []

    async def start(factory: Any = None, *, wrap: Callable[[WebApp], Any] | None = None, **options: Any) -> Served:
        bot = app(factory or make_session, **options)
        listening = socket.create_server(("127.0.0.1", 0))
        server = WebServer(bot, limits=options.get("limits") or WebLimits())
        if wrap is not None:
            server.config.app = wrap(bot)
        task = asyncio.get_running_loop().create_task(server.serve(sockets=[listening]))
        running.append((server, task, bot, listening))
        async with asyncio.timeout(HANG_SECONDS):
            while not server.started:  # noqa: ASYNC110  (uvicorn has only a flag)
                await asyncio.sleep(0.005)
        return Served(bot, listening.getsockname()[1], server)

    yield start
    for server, task, bot, listening in running:
        await bot.aclose()
        server.should_exit = True
        await task
        listening.close()


@pytest.fixture
async def call() -> AsyncIterator[Callable[..., Any]]:
    """Connect a caller to a server's websocket."""
    made: list[Caller] = []

    async def make(served: Served, *, greet: bool = True, **options: Any) -> Caller:
        caller = Caller(await connect(served.ws_url, proxy=None, **options))
        made.append(caller)
        if greet:
            await caller.greet()
        return caller

    yield make
    for caller in made:
        await caller.aclose()


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=HANG_SECONDS) as client:
        yield client
