"""A session that receives a call itself: what is decoded, what is shown, what is counted (behaviour.md A3, I4; B43, B44)."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from realtime import FrameSampling, RealtimeSession
from realtime.events import FrameKept, SessionEvent
from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack, openai_script
from realtime.testing.loopback import connect, make_peer
from realtime.tracks.aiortc_internals import receiver


@functools.cache
def voice() -> bytes:
    """A minute of a tone."""
    t = np.arange(48_000 * 60) / 48_000
    return (8_000 * np.sin(2 * np.pi * 440 * t)).astype("<i2").tobytes()


class Caller:
    """A user with a microphone and a camera of thirty frames a second, and the agent's end of the call."""

    def __init__(self) -> None:
        self.peer, self.bot = make_peer(), make_peer()
        self.peer.addTrack(FakeTrack.audio(voice(), clock=SystemClock()))
        self.peer.addTrack(FakeTrack.video(size=(128, 96), seconds=60, fps=30, clock=SystemClock()))

    async def call(self, session: RealtimeSession, **how: Any) -> None:
        session.attach(self.bot, **how)
        await connect(self.peer, self.bot)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    made = Caller()
    yield made
    await made.peer.close()
    await made.bot.close()


async def kept(events: AsyncIterator[SessionEvent], reason: str | None = None) -> FrameKept:
    while True:
        event = await anext(events)
        if isinstance(event, FrameKept) and reason in (None, event.reason):
            return event


async def test_only_the_pictures_that_are_shown_are_decoded(obliging, caller):
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=1, min_change=0)) as session:
        events = aiter(session)
        await caller.call(session)
        for _ in range(3):
            await kept(events)
        camera = session.statistics().tracks["camera"]
        assert camera.undecoded > camera.frames / 2
        assert camera.faults == 0
        assert session.statistics().tracks["microphone"].concealed_ms == 0
    assert model.audio_bytes > 0


@pytest.mark.parametrize("how", [{"decode": "all"}, {"direct": False}])
async def test_it_can_be_turned_off(obliging, caller, how):
    """All frames decoded by our receiver, or everything by aiortc's."""
    model = obliging()
    decode = how.pop("decode", "wanted")
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=2, min_change=0, decode=decode)) as session:
        events = aiter(session)
        await caller.call(session, **how)
        for _ in range(3):
            await kept(events)
        await model.hears_audio(9_600)
        camera = session.statistics().tracks["camera"]
        assert camera.frames > 10
        assert camera.undecoded == 0


async def test_with_an_aiortc_that_is_not_known_the_call_is_the_same(obliging, caller, monkeypatch):
    monkeypatch.setattr(receiver, "unsupported", lambda: "everything is another way now")
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=2, min_change=0)) as session:
        events = aiter(session)
        await caller.call(session)
        await kept(events)
        await model.hears_audio(9_600)
        assert session.statistics().tracks["camera"].undecoded == 0


async def test_a_look_is_answered_with_a_fresh_picture(obliging, caller):
    """`session.look()`: captured after it was asked for, whatever was decoded before."""
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=0.1, min_change=0)) as session:
        events = aiter(session)
        await caller.call(session)
        await kept(events)
        for _ in range(2):
            image = await session.look("camera")
            assert image.size == (1024, 1024)
            assert (await kept(events, "look")).age_ms < 5_000


async def test_the_end_of_a_turn_shows_what_was_held_and_decodes_it_only_then(obliging, caller):
    """Nothing is scheduled, so all that is ever decoded is the frame from within the speech."""
    model = obliging()
    sampling = FrameSampling(fps_idle=0, fps_speaking=0, end_of_turn=True, min_change=0)
    async with RealtimeSession(model, sampling=sampling) as session:
        events = aiter(session)
        await caller.call(session)
        await model.hears_audio(24_000)
        await model.say(openai_script.user_speech("item_u1", start_ms=0)[:1])
        await model.hears_audio(model.audio_bytes + 96_000)
        assert session.statistics().memory.frames > 0
        await model.say(openai_script.user_speech("item_u1", end_ms=model.audio_bytes // 48)[1:])
        frame = await kept(events)
        assert frame.reason == "end_of_turn"
        camera = session.statistics().tracks["camera"]
        assert camera.undecoded == camera.frames


async def test_a_session_that_ends_lets_the_tracks_go_on(obliging, caller):
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=2, min_change=0)) as session:
        events = aiter(session)
        await caller.call(session)
        await kept(events)
        tracks = [receiver.track for receiver in caller.bot.getReceivers()]
    assert {track.readyState for track in tracks} == {"live"}
    async with RealtimeSession(obliging()) as again:
        for track in tracks:
            again.add_track(track)
        assert set(again.statistics().tracks) == {"microphone", "camera"}
