"""A line that never loses a word: every fault at every message boundary of a call (L1, L2, L4; B36, B38–B41).

In memory, on a clock by hand, a call of 20 turns is had once for each message boundary of a turn: in every turn something
goes wrong at that boundary, another thing in each. `REALTIME_ALL_FAULTS=1` has every fault at every boundary. On real sockets
a call meets one fault, at 20 points of it.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from realtime import RealtimeSession, ReconnectPolicy, Tool, WebSocketModel
from realtime.core.capabilities import ModelCapabilities
from realtime.errors import LinkLost
from realtime.events import InputRejected
from realtime.models.base import RealtimeModel
from realtime.testing import ManualClock, MemoryPair
from realtime.transports.websocket import KeepAlive
from realtime.wire.openai import OpenAIWire

from .listening_provider import ListeningProvider, sound_of

TURNS = 20
BOUNDARIES = 30
"""More than any turn has."""
FAULTS = ("drop", "half-open", "delay", "1001", "1009", "1011", "garbage", "slow reader")
PATIENCE_SECONDS = 120
"""Of simulated time: by then every turn is through, whatever happened, or it hangs."""
MAX_BYTES = 4_000_000
"""A session never holds more than this: half a minute of sound in the lane, and half a minute to be sent again."""
GARBAGE = (
    '{"type": "response.output_audio.delta", "delta": "AA',
    '{"type": "tomorrow"}',
    "null",
    '{"type": 7}',
    b"\xff",
)


class MemoryLine:
    """The provider's end of an in-memory connection, where faults are made."""

    def __init__(self, pair: MemoryPair, clock: ManualClock) -> None:
        self.pair, self.clock = pair, clock

    async def send(self, text: str) -> None:
        await self.pair.server.send(text)

    async def receive(self) -> str:
        return str(await self.pair.server.receive())

    async def fail(self, fault: str) -> None:
        match fault:
            case "drop":
                self.pair.drop()
            case "half-open":
                self.pair.stall(notice_after=KeepAlive().silence_seconds)
            case "delay":
                self.pair.delay(1.5)
            case "garbage":
                for message in GARBAGE:
                    await self.pair.server.send(message)
            case "slow reader":
                await self.clock.sleep_until(self.clock.now() + 5.0)
            case code:
                self.pair.server.close(int(code), "by the test")


class MemoryModel(RealtimeModel):
    """The listening provider over in-memory connections."""

    def __init__(self, provider: ListeningProvider, clock: ManualClock) -> None:
        self.name, self.capabilities = "listening", ModelCapabilities(model="listening")
        self.provider, self.clock = provider, clock
        self.tasks: set[asyncio.Task[None]] = set()

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire(wall=wall)

    async def open(self) -> Any:
        pair = MemoryPair(capacity=16, clock=self.clock)
        task = asyncio.create_task(self.provider.serve(MemoryLine(pair, self.clock)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return pair.client

    async def aclose(self) -> None:
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Plan:
    """When something goes wrong, and what."""

    def __init__(self, boundary: int, faults: list[str]) -> None:
        self.boundary, self.faults = boundary, faults
        self.left = -1
        self.fault = ""
        self.done: Counter[str] = Counter()

    def begin_turn(self, turn: int) -> None:
        self.left, self.fault = self.boundary, self.faults[turn % len(self.faults)]

    async def at_boundary(self, line: Any) -> None:
        if self.left < 0 or not self.fault:
            return
        self.left -= 1
        if self.left < 0:
            self.done[self.fault] += 1
            await line.fail(self.fault)


class Call:
    """One call of 20 turns: spoken, typed, and typed ones that need a tool."""

    def __init__(self, session: RealtimeSession, plan: Plan) -> None:
        self.session, self.plan = session, plan
        self.expected: list[str] = []
        self.noted: list[str] = []
        self.rejected: list[str] = []
        self.seen: Counter[str] = Counter()
        self.most_bytes = 0
        self.turn_seconds: list[float] = []
        self.changed = asyncio.Event()
        self._word = 0

    async def have(self, wait: Any, turns: int = TURNS) -> None:
        events = aiter(self.session)
        watching = asyncio.create_task(self._watch(events))
        try:
            for turn in range(turns):
                self.plan.begin_turn(turn)
                if turn % 2 == 0:
                    await self._speak(wait)
                else:
                    text = f"tool{turn}" if turn % 6 == 1 else f"t{turn}"
                    self.expected.append(text)
                    await self.session.send(text)
                await wait(self)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _speak(self, wait: Any) -> None:
        for _ in range(3):
            self._word += 1
            self.expected.append(f"w{self._word}")
            await self.session.send_audio(sound_of(self._word))
            await wait.pace(0.1)
        for _ in range(4):
            await self.session.send_audio(bytes(4800))
            await wait.pace(0.1)

    def note(self, word: str) -> str:
        """Write a word down."""
        self.noted.append(word)
        return "noted"

    async def _watch(self, events: AsyncIterator[Any]) -> None:
        async for event in events:
            self.seen[type(event).__name__] += 1
            self.changed.set()
            if isinstance(event, InputRejected):
                self.rejected.append(event.reason)

    def look(self) -> None:
        memory = self.session.statistics().memory
        self.most_bytes = max(self.most_bytes, sum(getattr(memory, name) for name in memory.__slots__))

    @property
    def user_words(self) -> list[str]:
        messages = self.session.all_messages()
        return [word for message in messages if message.role == "user" for word in message.content.split()]

    @property
    def is_quiet(self) -> bool:
        """Whether the turn is through: every word is there, and nobody waits for anything."""
        machine = self.session._runtime.driver.machine
        return (
            machine.is_connected
            and not machine.is_busy
            and not machine.pending
            and len(self.user_words) >= len(self.expected)
        )

    def check(self, provider: ListeningProvider) -> None:
        """No word is lost, none is doubled, here or there; each tool ran once; every turn was answered."""
        assert self.user_words == self.expected
        assert provider.conversations[-1].user_words() == self.expected
        assert not provider.violations
        assert self.noted == [word for word in self.expected if word.startswith("tool")]
        assert not self.rejected
        assert self.most_bytes < MAX_BYTES
        ids = [message.message_id for message in self.session.all_messages()]
        assert len(set(ids)) == len(ids)
        roles = [str(message.role) for message in self.session.all_messages() if message.content]
        assert "user user" not in " ".join(role for role in roles if role != "tool"), "a turn was not answered"
        calls = [call.call_id for message in self.session.all_messages() for call in message.tool_calls]
        outputs = [message.tool_call_id for message in self.session.all_messages() if message.tool_call_id]
        assert calls == outputs


class ByHand:
    """Waiting on a clock by hand: the microphone goes on giving silence."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    async def pace(self, seconds: float) -> None:
        await self.clock.run(seconds)

    async def __call__(self, call: Call) -> None:
        began = self.clock.now()
        await self.clock.run(0.2)
        while not call.is_quiet:
            await call.session.send_audio(bytes(48_000))
            await self.clock.run(1.0)
            call.look()
            assert self.clock.now() - began < PATIENCE_SECONDS, f"it hangs after {call.plan.fault}"
        call.turn_seconds.append(self.clock.now() - began)
        call.look()


async def call_in_memory(boundary: int, faults: list[str]) -> tuple[Call, Plan, ListeningProvider]:
    asyncio.get_running_loop().set_debug(False)  # it would take most of the time
    clock = ManualClock(settle_rounds=25)
    plan = Plan(boundary, faults)
    provider = ListeningProvider(plan.at_boundary)
    model = MemoryModel(provider, clock)
    made: list[Call] = []

    async def note(word: str) -> str:
        """Write a word down."""
        return made[0].note(word)

    policy = ReconnectPolicy(jitter=0.0)
    async with RealtimeSession(model, tools=[Tool(note)], clock=clock, reconnect=policy) as session:
        call = Call(session, plan)
        made.append(call)
        await call.have(ByHand(clock))
    call.check(provider)
    await model.aclose()
    return call, plan, provider


def rotations() -> list[int]:
    return list(range(len(FAULTS))) if os.environ.get("REALTIME_ALL_FAULTS") else [0]


@pytest.mark.parametrize("rotation", rotations())
async def test_no_fault_at_any_message_boundary_loses_or_doubles_a_word(rotation, capsys):
    faults: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    most, slowest, boundaries = 0, 0.0, 0
    for boundary in range(BOUNDARIES):
        shift = boundary + rotation
        order = [FAULTS[(turn // 2 + shift) % len(FAULTS)] for turn in range(TURNS)]
        call, plan, provider = await call_in_memory(boundary, order)
        faults += plan.done
        seen += call.seen
        most, slowest = max(most, call.most_bytes), max(slowest, *call.turn_seconds)
        boundaries += provider.boundaries
        if not plan.done:
            break  # no turn has so many messages
    else:
        raise AssertionError("some turn has more messages than boundaries were tried")
    assert set(faults) == set(FAULTS)
    with capsys.disabled():
        made = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))
        print(  # noqa: T201  (the figures are part of what is shown)
            f"\n{sum(faults.values())} faults in {boundary + 1} calls of {TURNS} turns, {boundaries} messages: {made}; "
            f"{seen['Reconnected']} reconnects, no word lost or doubled; slowest turn {slowest:.1f} s of the call's time, "
            f"at most {most / 1000:.0f} kB held"
        )


# -- real sockets -----------------------------------------------------------------------------------------------------------


class Proxy:
    """Stands between a client and a server on loopback, byte by byte, and misbehaves when told to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writers: set[asyncio.StreamWriter] = set()
        self.stalled: set[asyncio.StreamWriter] = set()
        self.pause_seconds = {"to server": 0.0, "to client": 0.0}

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        ends = {writer, there_writer}
        self.writers |= ends
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.pump(reader, there_writer, "to server"))
                group.create_task(self.pump(there_reader, writer, "to client"))
        except* (ConnectionError, OSError):
            pass
        finally:
            for end in ends:
                end.transport.abort()
            self.writers -= ends

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        while data := await reader.read(65_536):
            pause, self.pause_seconds[way] = self.pause_seconds[way], 0.0
            if pause:
                await asyncio.sleep(pause)  # the line is slow, and nothing but time passes
            if writer not in self.stalled:
                writer.write(data)
                await writer.drain()
        raise ConnectionResetError

    def drop(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    def stall(self) -> None:
        self.stalled |= self.writers


class SocketLine:
    """The provider's end of a websocket, and the proxy before it."""

    def __init__(self, connection: Any, proxy: Proxy) -> None:
        self.connection, self.proxy = connection, proxy

    async def send(self, text: str) -> None:
        try:
            await self.connection.send(text)
        except ConnectionClosed:
            raise LinkLost("closed") from None

    async def receive(self) -> str:
        try:
            return str(await self.connection.recv())
        except ConnectionClosed:
            raise LinkLost("closed") from None

    async def fail(self, fault: str) -> None:
        match fault:
            case "drop":
                self.proxy.drop()
            case "half-open":
                self.proxy.stall()
            case "delay":
                self.proxy.pause_seconds["to client"] = 0.1
            case "slow reader":
                self.proxy.pause_seconds["to server"] = 0.1
            case "garbage":
                for message in GARBAGE:
                    await self.connection.send(message)
            case code:
                await self.connection.close(int(code), "by the test")


class RealTime:
    """Waiting for what happens on real sockets."""

    async def pace(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def __call__(self, call: Call) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(30):
            while not call.is_quiet:
                call.changed.clear()
                await call.changed.wait()
        call.turn_seconds.append(loop.time() - began)
        call.look()


async def test_no_fault_on_a_real_socket_loses_or_doubles_a_word(capsys):
    made: list[Call] = []

    async def note(word: str) -> str:
        """Write a word down."""
        return made[0].note(word)

    points = [(turn * 7 + 3) % 13 for turn in range(TURNS)]
    plan = Plan(0, list(FAULTS))
    begin = plan.begin_turn

    def begin_turn(turn: int) -> None:
        plan.boundary = points[turn]
        begin(turn)

    plan.begin_turn = begin_turn  # type: ignore[method-assign]
    provider = ListeningProvider(plan.at_boundary)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    proxies: list[Proxy] = []
    async with serve(lambda c: provider.serve(SocketLine(c, proxies[0])), "127.0.0.1", 0) as server:
        proxies.append(Proxy(server.sockets[0].getsockname()[1]))
        front = await asyncio.start_server(proxies[0].handle, "127.0.0.1", 0)
        url = f"ws://127.0.0.1:{front.sockets[0].getsockname()[1]}/v1/realtime"
        model = WebSocketModel(url, keep_alive=KeepAlive(ping_seconds=0.1, silence_seconds=0.4))
        policy = ReconnectPolicy(first_delay_seconds=0.02, max_delay_seconds=0.02)
        async with RealtimeSession(model, tools=[Tool(note)], reconnect=policy) as session:
            call = Call(session, plan)
            made.append(call)
            await call.have(RealTime())
        proxies[0].drop()
        front.close()
        await front.wait_closed()
    call.check(provider)
    assert set(plan.done) == set(FAULTS)
    assert sum(plan.done.values()) == TURNS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    with capsys.disabled():
        print(  # noqa: T201  (the figures are part of what is shown)
            f"\n{sum(plan.done.values())} faults on real sockets in one call of {TURNS} turns, {provider.boundaries} messages; "
            f"{call.seen['Reconnected']} reconnects, no word lost or doubled; slowest turn {max(call.turn_seconds):.2f} s, "
            f"at most {call.most_bytes / 1000:.0f} kB held, the process grew by {grown / 1000:.0f} MB"
        )
