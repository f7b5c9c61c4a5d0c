"""`realtime.pipelines.event_stream`: an iterator that falls behind loses deltas first, then ends (architecture section 5)."""

from __future__ import annotations

import asyncio

import pytest

from realtime.chat.messages import ChatRole
from realtime.core.events import AudioReceived, ReplyStarted, TranscriptUpdated
from realtime.errors import BusyError, LinkLost
from realtime.pipelines.event_stream import MAX_WAITING_EVENTS, EventStream


def delta(number: int, *, final: bool = False) -> TranscriptUpdated:
    return TranscriptUpdated(message_id=str(number), role=ChatRole.USER, delta="x", text="x", final=final)


def audio() -> AudioReceived:
    return AudioReceived(reply_id="r", pcm=b"\0\0", rate_hz=24_000)


async def drain(stream: EventStream) -> list[object]:
    stream.finish()
    return [event async for event in stream]


async def test_events_come_in_order_whatever_their_kind():
    stream = EventStream()
    events = [ReplyStarted(reply_id="1"), delta(1), ReplyStarted(reply_id="2"), audio(), delta(2, final=True)]
    for event in events:
        stream.put(event)
    assert await drain(stream) == events


async def test_falling_behind_loses_the_oldest_deltas_and_no_other_event():
    stream = EventStream()
    others = [ReplyStarted(reply_id=str(number)) for number in range(400)]
    for number, other in enumerate(others):
        stream.put(other)
        for _ in range(5):
            stream.put(delta(number))
    assert stream.waiting == MAX_WAITING_EVENTS
    got = await drain(stream)
    assert [event for event in got if isinstance(event, ReplyStarted)] == others
    kept = [int(event.message_id) for event in got if isinstance(event, TranscriptUpdated)]
    assert kept == sorted(kept)
    assert kept[-1] == 399
    assert stream.dropped == 400 * 6 - MAX_WAITING_EVENTS


async def test_final_transcripts_are_not_deltas():
    stream = EventStream()
    stream.put(delta(0, final=True))
    for _ in range(MAX_WAITING_EVENTS):
        stream.put(audio())
    got = await drain(stream)
    assert isinstance(got[0], TranscriptUpdated)


async def test_a_thousand_other_events_end_the_iterator_with_what_was_lost():
    stream = EventStream()
    for number in range(MAX_WAITING_EVENTS + 1):
        stream.put(ReplyStarted(reply_id=str(number)))
    stream.put(ReplyStarted(reply_id="late"))
    with pytest.raises(BusyError) as caught:
        await anext(stream)
    assert caught.value.dropped == MAX_WAITING_EVENTS + 1
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert stream.waiting == 0


async def test_what_waits_is_given_before_the_error_that_ended_the_session():
    stream = EventStream()
    stream.put(ReplyStarted(reply_id="1"))
    stream.finish(LinkLost("gone"))
    stream.put(ReplyStarted(reply_id="after the end"))
    assert await anext(stream) == ReplyStarted(reply_id="1")
    with pytest.raises(LinkLost):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_waiting_reader_is_woken_by_an_event_and_by_the_end():
    stream = EventStream()
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    stream.put(audio())
    assert isinstance(await waiting, AudioReceived)
    waiting = asyncio.create_task(drain(stream))
    assert await waiting == []
