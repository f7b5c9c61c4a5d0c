"""`realtime.pipelines.sound_line`: sound goes from the machine to a socket that takes it, and in its turn to one that does not (L2, L5, B41)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import AppendAudio
from realtime.core.events import ConnectionDropped, ErrorReported, Reconnected
from realtime.core.machine import SessionMachine
from realtime.core.settings import ReconnectPolicy, SessionSettings
from realtime.errors import LinkLost, UserError
from realtime.models.base import RealtimeModel
from realtime.pipelines.driver import Driver
from realtime.pipelines.link import Link
from realtime.testing import ManualClock, MemoryPair
from realtime.testing.openai_script import session_created, session_updated
from realtime.transports.websocket import PromptTransport
from realtime.wire.openai import OpenAIWire

CHUNK = bytes(range(240)) * 4


class Wire(OpenAIWire):
    """Refuses sound while it is told to, or fails."""

    fault: Exception | None = None

    def encode(self, command: Any) -> list[str | bytes]:
        if self.fault is not None and isinstance(command, AppendAudio):
            raise self.fault
        return super().encode(command)


class Plain:
    """A transport that cannot send without waiting."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, data: str | bytes) -> None:
        await self._inner.send(data)

    async def receive(self) -> str | bytes:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Model(RealtimeModel):
    """Accepts whatever it is configured with; the test reads the other end."""

    def __init__(self, *, capacity: int, is_plain: bool, capabilities: ModelCapabilities) -> None:
        self.capabilities = capabilities
        self.pairs: list[MemoryPair] = []
        self.wires: list[Wire] = []
        self._capacity = capacity
        self._is_plain = is_plain

    def make_wire(self, *, wall: float | None = None) -> Wire:
        self.wires.append(Wire(wall=wall))
        return self.wires[-1]

    async def open(self) -> Any:
        pair = MemoryPair(capacity=self._capacity)
        self.pairs.append(pair)
        for message in (*session_created(), *session_updated()):
            await pair.server.send(json.dumps(message))
        return Plain(pair.client) if self._is_plain else pair.client

    async def aclose(self) -> None:
        return


class Call:
    """A link, a machine, and a microphone that speaks when it is told to."""

    def __init__(self, *, capacity: int = 64, is_plain: bool = False, **model: Any) -> None:
        self.clock = ManualClock(now=10.0)
        session, offered = ModelCapabilities(), ModelCapabilities(**model)
        self.model = Model(capacity=capacity, is_plain=is_plain, capabilities=offered)
        ids = count()
        self.machine = SessionMachine(
            SessionSettings(), session, ChatContext(), make_id=lambda: f"id{next(ids)}", now=self.clock.now()
        )
        self.driver = Driver(self.machine, self.clock)
        self.events: list[Any] = []
        self.driver.observe(self.events.append)
        self.link = Link(self.model, self.driver, self.clock, ReconnectPolicy(jitter=0.0), shrink=self.shrink)
        self.driver.connect(execute=lambda _command: None, wake_link=self.link.wake)
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(self.link.run(self.opened))

    async def shrink(self, image: ImageContent, _max_bytes: int) -> ImageContent:
        return image

    @property
    def server(self) -> Any:
        return self.model.pairs[-1].server

    async def begin(self) -> None:
        """Until the connection is configured, the first sound has come, and nothing waits."""
        await self.opened
        self.speak()
        await self.clock.settle()
        while self.server.waiting:
            await self.server.receive()

    def speak(self, pcm: bytes = CHUNK) -> bool:
        """One piece of sound. Returns: whether it was sent before anything else ran."""
        before = self.server.waiting
        self.driver.receive_audio(pcm)
        return self.server.waiting > before

    async def heard(self) -> bytes:
        """All sound that has arrived."""
        sound = b""
        while self.server.waiting:
            message = json.loads(await self.server.receive())
            if message["type"] == "input_audio_buffer.append":
                sound += base64.b64decode(message["audio"])
        return sound

    def all(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def aclose(self) -> None:
        await self.link.aclose()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.driver.close(None)


@pytest.fixture
async def calls() -> AsyncIterator[Any]:
    made: list[Call] = []

    async def make(**options: Any) -> Call:
        made.append(Call(**options))
        await made[-1].begin()
        return made[-1]

    yield make
    for call in made:
        await call.aclose()


async def test_sound_is_on_the_line_before_the_microphone_has_gone_on(calls):
    call = await calls()
    assert all(call.speak() for _ in range(3))
    assert await call.heard() == CHUNK * 3
    assert call.machine.statistics().audio_sent_ms == 80


async def test_what_is_said_by_hand_goes_before_sound_that_comes_later(calls):
    """Control before audio, also where the writer has not run yet."""
    call = await calls()
    call.driver.step(lambda machine, now: machine.send(["Hello."], respond=False, now=now))
    assert not call.speak()
    await call.clock.settle()
    kinds = [json.loads(await call.server.receive())["type"] for _ in range(2)]
    assert kinds == ["conversation.item.create", "input_audio_buffer.append"]
    assert call.speak()


async def test_a_socket_that_takes_nothing_is_waited_for_and_all_arrives_in_order(calls):
    """B41."""
    call = await calls(capacity=4)
    pieces = [bytes([number]) * 960 for number in range(1, 12)]
    sent = [call.speak(piece) for piece in pieces]
    assert sent == [True] * 4 + [False] * 7
    arrived = b""
    while len(arrived) < 11 * 960:
        arrived += base64.b64decode(json.loads(await call.server.receive())["audio"])
        await call.clock.settle()
    assert arrived == b"".join(pieces)
    assert call.speak()


async def test_a_transport_that_cannot_say_whether_it_takes_something_is_given_everything_by_the_writer(calls):
    call = await calls(is_plain=True)
    assert not call.speak()
    await call.clock.settle()
    assert await call.heard() == CHUNK


async def test_sound_for_another_rate_is_converted_on_its_way(calls):
    call = await calls(input_rate_hz=16_000)
    for _ in range(50):
        call.speak()
    assert 0 <= 50 * len(CHUNK) * 2 // 3 - len(await call.heard()) <= 2_000
    assert not call.all(ErrorReported)


async def test_sound_that_the_protocol_refuses_is_reported_and_the_line_goes_on(calls):
    """L5."""
    call = await calls()
    call.model.wires[-1].fault = UserError("no sound here")
    assert not call.speak()
    [reported] = call.all(ErrorReported)
    assert str(reported.error) == "no sound here"
    call.model.wires[-1].fault = None
    await call.clock.settle()
    assert call.speak()
    assert len(call.model.pairs) == 1


async def test_a_line_that_breaks_while_sound_is_sent_is_made_anew_and_no_words_are_lost(calls):
    """L1, L2: what went to the old one a moment before goes to the new one."""
    call = await calls()
    call.model.wires[-1].fault = LinkLost("it broke")
    call.speak()
    assert call.driver.sound_line is None
    call.speak()
    await call.clock.settle()
    assert [event.reason for event in call.all(ConnectionDropped)] == ["it broke"]
    assert len(call.all(Reconnected)) == 1
    assert await call.heard() == CHUNK * 3  # with the piece that opened the call
    assert call.speak()


async def test_after_the_line_has_gone_nothing_is_sent_over_it(calls):
    call = await calls()
    old = call.server
    call.model.pairs[-1].drop()
    sent = old.other.sent
    call.speak()
    assert old.other.sent == sent
    await call.clock.settle()
    assert len(call.model.pairs) == 2
    assert await call.heard() == CHUNK * 2


async def test_nothing_is_sent_at_once_after_the_end(calls):
    call = await calls()
    await call.link.aclose()
    await call.task
    assert call.driver.sound_line is None


async def test_an_end_in_memory_is_prompt_as_a_socket_is():
    pair = MemoryPair(capacity=1)
    assert isinstance(pair.client, PromptTransport)
    assert pair.client.is_clear
    pair.client.send_at_once("one")
    assert not pair.client.is_clear
    assert await pair.server.receive() == "one"
    pair.drop()
    assert not pair.client.is_clear
    with pytest.raises(LinkLost):
        pair.client.send_at_once("two")
