"""A connection without a socket, and its faults."""

import asyncio
import contextlib

import pytest

from realtime.errors import ArgumentError, LinkLost
from realtime.testing import ManualClock, MemoryPair, check_transport
from realtime.transports.websocket import Transport


async def test_it_conforms():
    @contextlib.asynccontextmanager
    async def pair():
        made = MemoryPair(max_message_bytes=1000)
        yield made.client, made.server

    await check_transport(pair, max_message_bytes=1000)
    made = MemoryPair()
    assert isinstance(made.client, Transport)


async def test_a_drop_ends_both_ends_at_once_without_a_code():
    pair = MemoryPair()
    await pair.server.send("lost on the way")
    waiting = asyncio.create_task(pair.server.receive())
    await asyncio.sleep(0)
    pair.drop()
    for call in (pair.client.receive(), pair.client.send("x"), pair.server.send("x"), waiting):
        with pytest.raises(LinkLost) as caught:
            await call
        assert caught.value.code is None
    assert pair.client.is_lost


async def test_a_drop_may_let_what_was_said_arrive():
    pair = MemoryPair()
    await pair.server.send("last words")
    pair.drop(keep=True)
    assert await pair.client.receive() == "last words"
    for end in (pair.client, pair.server):
        with pytest.raises(LinkLost, match="broke off"):
            await end.receive()


async def test_a_close_comes_after_what_was_said_with_code_and_reason():
    pair = MemoryPair()
    await pair.server.send("last words")
    pair.server.close(1011, "internal error")
    assert await pair.client.receive() == "last words"
    with pytest.raises(LinkLost) as caught:
        await pair.client.receive()
    assert (caught.value.code, caught.value.reason) == (1011, "internal error")
    with pytest.raises(LinkLost):
        await pair.server.send("x")
    pair.server.close(1000)  # twice does nothing


async def test_a_stalled_line_swallows_everything_and_tells_nobody():
    pair = MemoryPair(capacity=1)
    pair.stall()
    for number in range(5):
        await pair.client.send(str(number))
        await pair.server.send(str(number))
    assert (pair.client.waiting, pair.server.waiting, pair.client.sent) == (0, 0, 5)
    waiting = asyncio.create_task(pair.client.receive())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    await pair.client.aclose()
    with pytest.raises(LinkLost, match="closed by us"):
        await waiting
    assert not pair.server.is_lost


async def test_a_stalled_line_is_noticed_when_the_test_says():
    clock = ManualClock()
    pair = MemoryPair(clock=clock)
    waiting = asyncio.create_task(pair.client.receive())
    pair.stall(notice_after=30.0)
    await clock.run(29.0)
    assert not waiting.done()
    await clock.run(1.0)
    with pytest.raises(LinkLost, match="nothing arrived for 30 s") as lost:
        await waiting
    assert lost.value.silent_seconds == 30.0
    with pytest.raises(ArgumentError, match="clock"):
        MemoryPair().stall(notice_after=1.0)


async def test_a_reader_that_is_slow_holds_the_sender():
    # B41
    pair = MemoryPair(capacity=2)
    await pair.client.send("1")
    await pair.client.send("2")
    sending = asyncio.create_task(pair.client.send("3"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not sending.done()
    assert pair.server.waiting == 2
    assert await pair.server.receive() == "1"
    await sending
    assert [await pair.server.receive(), await pair.server.receive()] == ["2", "3"]


@pytest.mark.parametrize("fault", ["drop", "close", "aclose"])
async def test_a_sender_that_waits_for_room_is_told_of_the_end(fault):
    pair = MemoryPair(capacity=1)
    await pair.client.send("1")
    sending = asyncio.create_task(pair.client.send("2"))
    for _ in range(10):
        await asyncio.sleep(0)
    if fault == "drop":
        pair.drop()
    elif fault == "close":
        pair.server.close(1001)
        with pytest.raises(LinkLost):
            await pair.client.receive()
    else:
        await pair.client.aclose()
    with pytest.raises(LinkLost):
        await sending


async def test_delayed_messages_arrive_in_order_at_their_time():
    clock = ManualClock()
    pair = MemoryPair(clock=clock)
    pair.delay(0.5)
    await pair.server.send("one")
    clock.advance(0.1)
    await pair.server.send("two")

    async def listen():
        return [(await pair.client.receive(), round(clock.now(), 3)) for _ in range(2)]

    listening = asyncio.create_task(listen())
    await clock.run(2.0)
    assert await listening == [("one", 0.5), ("two", 0.6)]


async def test_a_delay_needs_a_clock_and_a_line_needs_room():
    with pytest.raises(ArgumentError, match="clock"):
        MemoryPair().delay(1.0)
    with pytest.raises(ArgumentError, match="capacity"):
        MemoryPair(capacity=0)
