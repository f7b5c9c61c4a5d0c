"""`realtime.pipelines.channel`: bounded, with a named policy, every loss counted (architecture section 5)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ArgumentError, LinkLost, SessionClosed, WouldBlock
from realtime.pipelines.channel import Channel, ChannelClosed


def test_block_refuses_when_full_and_changes_nothing():
    channel: Channel[int] = Channel(2, "block")
    channel.send_nowait(1)
    channel.send_nowait(2)
    with pytest.raises(WouldBlock):
        channel.send_nowait(3)
    assert [channel.receive_nowait(), channel.receive_nowait()] == [1, 2]
    assert channel.statistics().dropped == 0


def test_drop_oldest_makes_room_and_counts():
    channel: Channel[int] = Channel(2, "drop_oldest")
    for item in range(5):
        channel.send_nowait(item)
    assert [channel.receive_nowait(), channel.receive_nowait()] == [3, 4]
    assert channel.statistics().dropped == 3


def test_latest_keeps_the_newest_only_and_counts():
    channel: Channel[str] = Channel(1, "latest")
    for item in "abc":
        channel.send_nowait(item)
    assert channel.receive_nowait() == "c"
    assert channel.statistics().dropped == 2


def test_weight_bounds_bytes_and_one_large_item_is_still_held():
    channel: Channel[bytes] = Channel(10, "drop_oldest", weigh=len)
    channel.send_nowait(bytes(6))
    channel.send_nowait(bytes(6))
    assert channel.statistics().weight == 6
    assert channel.statistics().dropped_weight == 6
    channel.send_nowait(bytes(100))
    assert len(channel) == 1
    assert len(channel.receive_nowait()) == 100


def test_empty_channel_would_block_and_closed_one_ends():
    channel: Channel[int] = Channel(1)
    with pytest.raises(WouldBlock):
        channel.receive_nowait()
    channel.send_nowait(7)
    channel.close()
    channel.close()
    with pytest.raises(ChannelClosed):
        channel.send_nowait(8)
    assert channel.receive_nowait() == 7
    with pytest.raises(SessionClosed):
        channel.receive_nowait()


def test_closing_with_an_error_raises_it_after_what_waits():
    channel: Channel[int] = Channel(1)
    channel.send_nowait(7)
    channel.close(LinkLost("gone"))
    assert channel.receive_nowait() == 7
    with pytest.raises(LinkLost):
        channel.receive_nowait()


def test_discard_takes_out_what_is_not_wanted_without_counting_a_loss():
    channel: Channel[int] = Channel(5)
    for item in range(5):
        channel.send_nowait(item)
    assert channel.discard(lambda item: item % 2 == 0) == 3
    assert channel.statistics().dropped == 0
    assert channel.statistics().weight == 2
    assert channel.clear() == 2
    assert channel.statistics().dropped == 2


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5, None])
def test_capacity_that_cannot_be_is_refused(capacity):
    with pytest.raises(ArgumentError, match="capacity"):
        Channel(capacity)


def test_unknown_policy_is_refused():
    with pytest.raises(ArgumentError, match="policy"):
        Channel(1, "newest")  # type: ignore[arg-type]


async def test_sender_waits_for_room_and_receiver_for_an_item():
    channel: Channel[int] = Channel(1)
    got: list[int] = []

    async def produce() -> None:
        for item in range(20):
            await channel.send(item)
        channel.close()

    async def consume() -> None:
        try:
            while True:
                got.append(await channel.receive())
                assert len(channel) <= 1
        except ChannelClosed:
            return

    async with asyncio.TaskGroup() as group:
        group.create_task(consume())
        group.create_task(produce())
    assert got == list(range(20))


async def test_cancelled_receiver_loses_no_item_and_passes_its_wake_on():
    channel: Channel[int] = Channel(4)
    first = asyncio.create_task(channel.receive())
    second = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)
    channel.send_nowait(1)  # wakes the first …
    first.cancel()  # … which is cancelled before it goes on
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_cancelled_waiting_sender_sends_nothing():
    channel: Channel[int] = Channel(1)
    channel.send_nowait(1)
    sender = asyncio.create_task(channel.send(2))
    await asyncio.sleep(0)
    sender.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sender
    assert channel.receive_nowait() == 1
    assert len(channel) == 0


async def test_closing_wakes_everyone_who_waits():
    full: Channel[int] = Channel(1)
    full.send_nowait(1)
    empty: Channel[int] = Channel(1)
    sender, receiver = asyncio.create_task(full.send(2)), asyncio.create_task(empty.receive())
    await asyncio.sleep(0)
    full.close()
    empty.close()
    for waiter in (sender, receiver):
        with pytest.raises(ChannelClosed):
            await waiter


@given(
    capacity=st.integers(1, 8),
    policy=st.sampled_from(["drop_oldest", "latest"]),
    steps=st.lists(st.one_of(st.integers(1, 5), st.none()), max_size=60),
)
def test_any_sequence_keeps_the_bound_and_accounts_for_every_item(capacity, policy, steps):
    """Beside a naive model: what was sent is received, dropped or still there, in order, never above the capacity."""
    channel: Channel[tuple[int, int]] = Channel(capacity, policy, weigh=lambda item: item[1])
    sent = received = 0
    last = -1
    for step in steps:
        if step is not None:
            channel.send_nowait((sent, step))
            sent += 1
        elif len(channel):
            number, _ = channel.receive_nowait()
            assert number > last
            last = number
            received += 1
        figures = channel.statistics()
        assert figures.weight <= capacity or figures.waiting == 1
        assert sent == received + figures.dropped + figures.waiting
