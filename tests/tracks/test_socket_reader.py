"""A socket read by ourselves, with a real loop and real datagrams on loopback: order, bound, errors, the end of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from realtime.tracks.aiortc_internals import socket_reader
from realtime.tracks.aiortc_internals.socket_reader import FOREIGN, GOES_ON, MAX_AT_ONCE, TAKEN, read_ourselves

GUARD = 60.0


class Protocol(asyncio.DatagramProtocol):
    """What aioice's protocol is to the socket."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.handed_on: list[tuple[bytes, Any]] = []
        self.errors: list[Exception] = []
        self.changed = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.handed_on.append((data, addr))
        self.changed.set()

    def error_received(self, exc: Exception) -> None:
        self.errors.append(exc)
        self.changed.set()


class Line:
    """A socket that is read by ourselves, and one that sends to it. What is taken: `more` says that more of it comes."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.taken: list[bytes] = []
        self.at: list[float] = []
        self.on_packet: Callable[[], object] = lambda: None
        self.changed = asyncio.Event()
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sender.bind(("127.0.0.1", 0))
        self.place = memoryview(bytearray(2048))
        self.is_read = read_ourselves(protocol, self.place, self.take)

    def take(self, size: int, arrived_at: float) -> int:
        data = bytes(self.place[:size])
        if data.startswith(b"foreign"):
            return FOREIGN
        self.taken.append(data)
        self.on_packet()
        self.at.append(arrived_at)
        self.changed.set()
        if data.startswith(b"close"):
            self.protocol.transport.close()
        return TAKEN if data.endswith(b"last") else GOES_ON

    def send(self, *datagrams: bytes) -> None:
        for data in datagrams:
            self.sender.sendto(data, self.protocol.transport.get_extra_info("sockname"))

    async def until_taken(self, count: int) -> None:
        async with asyncio.timeout(GUARD):
            while len(self.taken) < count:
                self.changed.clear()
                await self.changed.wait()


async def _open(**where: Any) -> Line:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_datagram_endpoint(Protocol, **where)
    await asyncio.sleep(0)  # asyncio has begun to read
    return Line(protocol)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = await _open(local_addr=("127.0.0.1", 0))
    yield made
    made.protocol.transport.close()
    made.sender.close()
    await asyncio.sleep(0)


def test_this_pythons_own_loop_can_be_read(line):
    """Another asyncio fails here, and reads by itself."""
    assert line.is_read


async def test_the_packets_of_a_frame_are_taken_at_one_wake_up_and_in_order(line):
    frame = [b"%d" % index for index in range(9)] + [b"9 last"]
    line.send(*frame)
    await line.until_taken(1)
    assert line.taken == frame
    assert len(set(line.at)) == 1
    assert not line.protocol.handed_on


async def test_a_lone_packet_is_not_followed_by_an_attempt(line):
    """What comes behind it has its own wake-up."""
    line.send(b"a last", b"b last")
    await line.until_taken(1)
    assert line.taken == [b"a last"]
    await line.until_taken(2)
    assert line.taken == [b"a last", b"b last"]


async def test_the_rest_of_the_loop_has_its_turn(line):
    """A sender that never ends a frame holds nobody up."""
    line.send(*[b"%d" % index for index in range(MAX_AT_ONCE + 7)])
    await line.until_taken(1)
    assert len(line.taken) == MAX_AT_ONCE
    await line.until_taken(MAX_AT_ONCE + 7)
    assert line.taken == [b"%d" % index for index in range(MAX_AT_ONCE + 7)]


@pytest.fixture
async def calls() -> AsyncIterator[list[Line]]:
    """Many sockets on one loop."""
    lines = [await _open(local_addr=("127.0.0.1", 0)) for _ in range(12)]
    yield lines
    for line in lines:
        line.protocol.transport.close()
        line.sender.close()
    await asyncio.sleep(0)


class Slow:
    """A clock by which each packet takes a millisecond, and nothing else does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lines: list[Line]) -> None:
        self.now = 0.0
        monkeypatch.setattr(socket_reader, "monotonic", lambda: self.now)
        for line in lines:
            line.on_packet = self.tick

    def tick(self) -> None:
        self.now += 0.001


async def test_many_sockets_together_hold_a_timer_no_longer_than_a_turn(monkeypatch, calls):
    """A packet of every call came at once: those that the turn has no time for come in the turns behind it."""
    Slow(monkeypatch, calls)
    for line in calls:
        line.send(b"1 last")
    in_turns: list[int] = []
    async with asyncio.timeout(GUARD):
        while sum(in_turns) < len(calls):
            before = sum(len(line.taken) for line in calls)
            await asyncio.sleep(0)
            in_turns.append(sum(len(line.taken) for line in calls) - before)
    assert max(in_turns) == 4
    assert [len(line.taken) for line in calls] == [1] * len(calls)


async def test_a_pause_begins_another_turn(monkeypatch, calls):
    """What the sockets had before it is not held against them."""
    clock = Slow(monkeypatch, calls)
    for _ in range(3):
        clock.now += 1.0
        for line in calls[:3]:
            line.send(b"1 last")
        before = sum(len(line.taken) for line in calls)
        await asyncio.sleep(0)  # sockets come behind what is ready
        await asyncio.sleep(0)
        assert sum(len(line.taken) for line in calls) - before == 3


async def test_a_socket_is_not_put_off_for_ever(monkeypatch, calls):
    """Sockets before it that always have more to read than a turn has time for."""
    Slow(monkeypatch, calls)
    for line in calls[:-1]:
        line.send(*[b"%d last" % index for index in range(100)])
    calls[-1].send(b"1 last")
    turns = 0
    async with asyncio.timeout(GUARD):
        while not calls[-1].taken:
            await asyncio.sleep(0)
            turns += 1
    assert turns <= 12
    assert all(line.taken for line in calls)


async def test_what_is_not_ours_goes_on_with_its_address(line):
    line.send(b"1", b"foreign", b"2 last")
    await line.until_taken(2)
    assert line.taken == [b"1", b"2 last"]
    assert line.protocol.handed_on == [(b"foreign", line.sender.getsockname())]


async def test_a_socket_that_is_closed_meanwhile_gives_no_more(line):
    line.send(b"close", b"after")
    await line.until_taken(1)
    await asyncio.sleep(0)
    assert line.taken == [b"close"]


async def test_an_error_of_the_socket_is_told_and_reading_goes_on():
    """ICMP: nobody listens there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = nobody.getsockname()
    line = await _open(remote_addr=address)
    line.protocol.transport.sendto(b"hello")
    async with asyncio.timeout(GUARD):
        await line.protocol.changed.wait()
    assert [type(error) for error in line.protocol.errors] == [ConnectionRefusedError]
    line.sender.close()
    line.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.sender.bind(address)
    line.send(b"there last")
    await line.until_taken(1)
    line.protocol.transport.close()
    line.sender.close()
    await asyncio.sleep(0)


@pytest.mark.parametrize("lacking", ["_sock", "_loop", "_sock_fd"])
async def test_a_transport_that_is_another_is_left_alone(line, lacking):
    """uvloop's, a proactor's, TURN's; or an asyncio whose inside differs."""
    there = line.protocol.transport
    other = SimpleNamespace(_sock=there._sock, _loop=there._loop, _sock_fd=there._sock_fd, is_closing=lambda: False)
    delattr(other, lacking)
    assert not read_ourselves(SimpleNamespace(transport=other), line.place, line.take)
    assert not read_ourselves(SimpleNamespace(), line.place, line.take)


async def test_a_loop_that_differs_is_left_alone(line, monkeypatch):
    monkeypatch.setattr(type(asyncio.get_running_loop()), "_add_reader", lambda _, something: something)
    assert not read_ourselves(line.protocol, line.place, line.take)
