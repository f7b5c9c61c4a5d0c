"""A user comes back with another peer connection: `attach` with names, `detach`, `listener` (P0, P1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from realtime import FrameSampling, RealtimeSession
from realtime.errors import ArgumentError
from realtime.events import TrackEnded
from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack
from realtime.testing.loopback import connect, make_peer

LONG_REPLY = " ".join(["word"] * 30)
"""Three seconds of sound."""


class User:
    """The other side: a microphone, a camera, an ear."""

    def __init__(self) -> None:
        self.pc = make_peer()
        clock = SystemClock()
        self.tracks = [
            FakeTrack.audio(bytes(96_000 * 60), clock=clock),
            FakeTrack.video(seconds=60, fps=10, clock=clock),
        ]
        for track in self.tracks:
            self.pc.addTrack(track)
        self.loud = 0
        self.changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.pc.on("track", lambda track: self._tasks.append(asyncio.get_running_loop().create_task(self._hear(track))))

    async def _hear(self, track: Any) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                self.loud += bool(np.abs(np.frombuffer(bytes(frame.planes[0]), "<i2").astype(int)).max() > 500)
                self.changed.set()

    async def hears(self, frames: int) -> None:
        while self.loud < frames:
            self.changed.clear()
            await self.changed.wait()

    async def aclose(self) -> None:
        for track in self.tracks:
            track.stop()
        await self.pc.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture
async def users() -> AsyncIterator[list[User]]:
    made = [User(), User()]
    yield made
    for user in made:
        await user.aclose()


@pytest.fixture
async def bots() -> AsyncIterator[list[Any]]:
    made = [make_peer(), make_peer()]
    yield made
    for pc in made:
        await pc.close()


async def test_the_same_names_go_on_and_the_reply_is_heard_to_its_end(obliging, users, bots):
    model = obliging(LONG_REPLY)
    names = {"0": "headset", "1": "screen"}
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=5, min_change=0)) as session:
        events = aiter(session)
        session.attach(bots[0], sources=names)
        await connect(users[0].pc, bots[0])
        assert set(session.statistics().tracks) == {"headset", "screen"}
        await session.send("Talk.")
        await users[0].hears(20)
        session.listener.away(60)
        await session.detach(bots[0])
        assert session.statistics().tracks == {}
        ended = {event.source async for event in _until(events, TrackEnded, 2) if isinstance(event, TrackEnded)}
        assert ended == {"headset", "screen"}
        await bots[0].close()
        assert session.is_replying
        session.attach(bots[1], sources=names)
        await connect(users[1].pc, bots[1])
        session.listener.back()
        assert set(session.statistics().tracks) == {"headset", "screen"}
        turn = await session.wait_for_reply()
        assert not turn.interrupted
        assert turn.messages[0].content == LONG_REPLY
        assert users[1].loud > 0


async def _until(events: Any, kind: type, number: int) -> AsyncIterator[Any]:
    while number:
        event = await anext(events)
        number -= isinstance(event, kind)
        yield event


async def test_a_name_that_is_taken_gives_way_to_a_default_one(obliging, users, bots):
    async with RealtimeSession(obliging()) as session:
        session.attach(bots[0], sources={"0": "microphone", "1": "camera"})
        await connect(users[0].pc, bots[0])
        session.attach(bots[1], sources={"0": "microphone", "1": "camera"})
        await connect(users[1].pc, bots[1])
        assert set(session.statistics().tracks) == {"microphone", "camera", "microphone-2", "camera-2"}
        await session.detach(bots[0])
        assert set(session.statistics().tracks) == {"microphone-2", "camera-2"}


async def test_only_what_is_attached_can_be_detached(obliging, bots):
    async with RealtimeSession(obliging()) as session:
        session.attach(bots[0])
        await session.detach(bots[0])
        for pc in (bots[0], bots[1], None):
            with pytest.raises(ArgumentError, match="pc"):
                await session.detach(pc)


async def test_what_was_heard_so_far_grows_with_what_the_listener_has_taken(obliging):
    model = obliging("one two three")
    seen: list[str] = []
    async with RealtimeSession(model) as session:
        assert session.heard_so_far() == {}
        assert not session.is_replying
        reader = session.stream_audio()

        async def listen() -> None:
            async for _ in reader:
                seen.extend(session.heard_so_far().values())

        listening = asyncio.get_running_loop().create_task(listen())
        await session.send("Count.")
        assert session.is_replying
        await session.wait_for_reply()
        assert session.heard_so_far() == {}
        assert not session.is_replying
    await listening
    assert seen[0] == ""
    assert all("one two three".startswith(part) for part in seen)
