"""A provider that obliges: it answers as a server of OpenAI's protocol would, with the replies that a test gives it."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import count
from typing import Any

import pytest

from realtime.core.capabilities import ModelCapabilities
from realtime.errors import LinkLost
from realtime.models.base import RealtimeModel
from realtime.testing import MemoryPair, openai_script
from realtime.wire.openai import OpenAIWire

TONE = array("h", (round(8_000 * math.sin(math.tau * 440 * (n + 0.5) / 24_000)) for n in range(2_400))).tobytes()
"""100 ms of a tone at 24 kHz (a constant would be silence to a codec)."""
_numbers = count(1)
"""Ids are never used twice, whichever provider made them."""


class Obliging(RealtimeModel):
    """Takes whatever it is told, and replies with what it was given, in order.

    A reply is text (spoken, 100 ms of sound a word), or a list of wire messages. It is given when a response is asked
    for; `hold` keeps replies back until `release`.
    """

    def __init__(self, *replies: Any, capabilities: ModelCapabilities | None = None) -> None:
        self.name = "obliging"
        self.capabilities = capabilities or ModelCapabilities(model="obliging")
        self.replies: deque[Any] = deque(replies)
        self.received: list[dict[str, Any]] = []
        self.audio = bytearray()
        self.connections = 0
        self.closed = 0
        self.pair: MemoryPair | None = None
        self.refuse: list[BaseException] = []
        self.refuses_configuration = False
        self.reach: asyncio.Event | None = None
        self.is_reached = asyncio.Event()
        self.is_connected = False
        self._free = asyncio.Event()
        self._free.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_item: str | None = None
        self._heard = asyncio.Event()

    @property
    def audio_bytes(self) -> int:
        """How much sound it was given."""
        return len(self.audio)

    # -- as a model -----------------------------------------------------------------------------------------------------

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire(wall=wall)

    async def open(self) -> Any:
        self.is_reached.set()
        if self.reach is not None:
            await self.reach.wait()
        if self.refuse:
            raise self.refuse.pop(0)
        self.connections += 1
        self._last_item = None
        self.pair = MemoryPair(capacity=256)
        self._start(self._serve(self.pair))
        return self.pair.client

    async def aclose(self) -> None:
        self.closed += 1
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- for the test ---------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Lose the connection."""
        assert self.pair is not None
        self.pair.drop()

    def hold(self) -> None:
        """Keep replies back."""
        self._free.clear()

    def release(self) -> None:
        """Give them."""
        self._free.set()

    async def say(self, messages: Iterable[Any]) -> None:
        """Say something unasked."""
        assert self.pair is not None
        for message in messages:
            await self.pair.server.send(message if isinstance(message, str) else json.dumps(message))

    def all(self, kind: str) -> list[dict[str, Any]]:
        """What the client said of one type."""
        return [message for message in self.received if message["type"] == kind]

    async def hears_audio(self, size: int) -> None:
        """Wait until so many bytes of audio have come."""
        while self.audio_bytes < size:
            self._heard.clear()
            await self._heard.wait()

    async def hears(self, kind: str, times: int = 1) -> dict[str, Any]:
        """Wait until the client has said something of a type so many times; the last of them."""
        while len(found := self.all(kind)) < times:
            self._heard.clear()
            await self._heard.wait()
        return found[times - 1]

    # -- as a server ----------------------------------------------------------------------------------------------------

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, pair: MemoryPair) -> None:
        self.is_connected = True
        try:
            for message in openai_script.session_created():
                await pair.server.send(json.dumps(message))
            while True:
                await self._take(json.loads(await pair.server.receive()))
        except LinkLost:
            return
        finally:
            self.is_connected = pair is not self.pair and self.is_connected

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "input_audio_buffer.append":
            self.audio += base64.b64decode(message["audio"])
            self._heard.set()
            return
        self.received.append(message)
        self._heard.set()
        match message["type"]:
            case "session.update" if self.refuses_configuration:
                await self.say(openai_script.error("invalid_value", "no such voice"))
            case "session.update":
                await self.say(openai_script.session_updated())
            case "conversation.item.create":
                await self.say(openai_script.item_created(message["item"], self._last_item))
                self._last_item = message["item"]["id"]
            case "conversation.item.delete":
                await self.say([{"type": "conversation.item.deleted", "item_id": message["item_id"]}])
            case "input_audio_buffer.commit":
                await self._commit()
            case "response.create":
                self._start(self._reply(next(_numbers)))
            case _:
                pass

    async def _commit(self) -> None:
        item_id = f"spoken_{len(self.received)}"
        events = openai_script.user_speech(item_id, previous_item_id=self._last_item)
        self._last_item = item_id
        await self.say(events[2:])
        await self.say(openai_script.user_transcript(item_id, "What was said."))

    async def _reply(self, number: int) -> None:
        await self._free.wait()
        reply = self.replies.popleft() if self.replies else "Yes."
        item_id = f"reply_{number}"
        if isinstance(reply, str):
            sound = TONE * len(reply.split())
            reply = openai_script.spoken_reply(
                f"resp_{number}", item_id, reply, sound, previous_item_id=self._last_item
            )
            self._last_item = item_id
        elif callable(reply):
            reply = reply(f"resp_{number}", item_id, self._last_item)
            self._last_item = item_id
        try:
            await self.say(reply)
        except LinkLost:
            return


def calls(name: str, arguments: str = "{}", call_id: str = "call_1") -> Callable[..., Any]:
    """A reply that calls a tool."""

    def reply(response_id: str, item_id: str, previous: str | None) -> Any:
        return openai_script.tool_call(response_id, item_id, call_id, name, arguments, previous_item_id=previous)

    return reply


@pytest.fixture
async def obliging() -> AsyncIterator[Callable[..., Obliging]]:
    """Makes obliging providers; they are closed after the test."""
    made: list[Obliging] = []

    def make(*replies: Any, **options: Any) -> Obliging:
        made.append(Obliging(*replies, **options))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


@pytest.fixture
def tool_call() -> Callable[..., Any]:
    """Makes replies that call a tool."""
    return calls
