"""A session behind real aiortc peer connections on loopback (architecture section 7: `attach`; P1–P4; B43, B47)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from realtime import FrameSampling, RealtimeSession
from realtime.demo.peers import connect, make_peer
from realtime.errors import ArgumentError, UserError
from realtime.events import FrameKept, ReplyInterrupted, SpeechStarted, TrackEnded, TurnCompleted
from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack, openai_script

LONG_REPLY = " ".join(["word"] * 100)
"""Ten seconds of sound."""


class Browser:
    """The user's side: sends a microphone and a camera, hears the reply."""

    def __init__(self) -> None:
        self.peer = make_peer()
        self.microphone = FakeTrack.audio(_tone(60), clock=SystemClock())
        self.camera = FakeTrack.video(seconds=60, fps=15, clock=SystemClock())
        self.loud: list[bool] = []
        self.changed = asyncio.Event()
        self._listening: set[asyncio.Task[None]] = set()
        self.peer.on("track", self._hear)

    def _hear(self, track: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._listen(track))
        self._listening.add(task)
        task.add_done_callback(self._listening.discard)

    async def _listen(self, track: Any) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                samples = np.frombuffer(bytes(frame.planes[0]), "<i2").astype(int)
                self.loud.append(bool(np.abs(samples).max() > 500))
                self.changed.set()

    async def hears_sound(self, frames: int) -> None:
        while sum(self.loud) < frames:
            self.changed.clear()
            await self.changed.wait()

    async def aclose(self) -> None:
        self.microphone.stop()
        self.camera.stop()
        await self.peer.close()
        for task in list(self._listening):
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)


def _tone(seconds: int) -> bytes:
    t = np.arange(48_000 * seconds) / 48_000
    return (8_000 * np.sin(2 * np.pi * 440 * t)).astype("<i2").tobytes()


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    made = Browser()
    yield made
    await made.aclose()


@pytest.fixture
async def bot() -> AsyncIterator[Any]:
    peer = make_peer()
    yield peer
    await peer.close()


async def test_a_call_through_a_peer_connection_as_answerer(obliging, browser, bot):
    """Tracks in, a reply out."""
    model = obliging("one two three four five")
    browser.peer.addTrack(browser.microphone)
    browser.peer.addTrack(browser.camera)
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=5, min_change=0)) as session:
        events = aiter(session)
        session.attach(bot)
        await connect(browser.peer, bot)
        await model.hears_audio(48_000)
        while not isinstance(event := await anext(events), FrameKept):
            pass
        assert event.source == "camera"
        assert set(session.statistics().tracks) == {"microphone", "camera"}
        await session.send("Count.")
        await browser.hears_sound(20)
        turn = await session.wait_for_reply()
        assert turn.messages[0].content == "one two three four five"
        assert not turn.interrupted
        await browser.aclose()


async def test_a_call_through_a_peer_connection_as_offerer(obliging, browser, bot):
    model = obliging("one two three four five")
    browser.peer.addTrack(browser.microphone)
    async with RealtimeSession(model) as session:
        session.attach(bot)
        await connect(bot, browser.peer)
        await model.hears_audio(24_000)
        await session.send("Count.")
        await browser.hears_sound(20)
        await browser.aclose()


async def test_attaching_after_the_remote_description_takes_the_tracks_that_are_there(obliging, browser, bot):
    model = obliging()
    browser.peer.addTrack(browser.microphone)
    async with RealtimeSession(model) as session:
        await browser.peer.setLocalDescription(await browser.peer.createOffer())
        await bot.setRemoteDescription(browser.peer.localDescription)
        session.attach(bot)
        assert set(session.statistics().tracks) == {"microphone"}
        await bot.setLocalDescription(await bot.createAnswer())
        with pytest.raises(UserError, match="local description"):
            session.attach(bot)


@pytest.mark.parametrize("pc", [None, object(), "peer"])
async def test_what_is_no_peer_connection_is_refused(obliging, pc):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="pc"):
            session.attach(pc)


async def test_barge_in_at_the_track_lets_three_more_frames_sound_at_most(obliging, bot):
    """P3, issue: counted at the reply track, in frames."""
    model = obliging(LONG_REPLY)
    async with RealtimeSession(model) as session:
        events, cut = aiter(session), asyncio.Event()
        after: list[bool] = []
        sounding = asyncio.Event()
        track = session.reply_track

        async def play() -> None:
            heard = 0
            while len(after) < 40:
                frame = await track.recv()
                loud = bool(np.abs(np.frombuffer(bytes(frame.planes[0])[:1920], "<i2").astype(int)).max() > 500)
                heard += loud
                if heard == 25:
                    sounding.set()
                if cut.is_set():
                    after.append(loud)

        playing = asyncio.create_task(play())
        await session.send("Count.")
        await sounding.wait()
        await model.say(openai_script.user_speech("barge", start_ms=500)[:1])
        while not isinstance(await anext(events), SpeechStarted):
            pass
        cut.set()
        await playing
        assert sum(after) <= 3, after
        while not isinstance(event := await anext(events), ReplyInterrupted):
            pass
        assert event.cause == "barge_in"
        while not isinstance(turn := await anext(events), TurnCompleted):
            pass
    [message] = turn.messages
    assert message.interrupted
    assert 500 <= message.heard_ms <= 1_000
    assert message.heard_ms == event.heard_ms
    assert len(message.content.split()) == pytest.approx(message.heard_ms / 100, abs=1.1)


async def test_a_peer_that_hangs_up_ends_its_tracks_and_not_the_session(obliging, browser, bot):
    """B45, B48."""
    model = obliging("Still here.")
    browser.peer.addTrack(browser.microphone)
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.attach(bot)
        await connect(browser.peer, bot)
        await model.hears_audio(9_600)
        await browser.aclose()
        await bot.close()
        while not isinstance(event := await anext(events), TrackEnded):
            pass
        assert (event.source, event.kind) == ("microphone", "audio")
        await session.send("Still there?")
        await session.wait_for_reply()


async def test_closing_the_session_first_leaves_the_peer_closable(obliging, browser, bot):
    """B47: our outgoing track ends with MediaStreamError only."""
    model = obliging(LONG_REPLY)
    browser.peer.addTrack(browser.microphone)
    async with RealtimeSession(model) as session:
        session.attach(bot)
        await connect(browser.peer, bot)
        await session.send("Count.")
        await browser.hears_sound(10)
    async with asyncio.timeout(20):
        await bot.close()
        await browser.aclose()
    assert session.all_messages()[-1].interrupted


async def test_after_a_reload_another_peer_is_attached_to_the_same_session(obliging, browser, bot):
    """The reply goes to the new peer; the track that ended with the old one is not offered again."""
    model = obliging("one two three", "four five six")
    again, bot_again = Browser(), make_peer()
    async with RealtimeSession(model) as session:
        session.attach(bot)
        first = session.reply_track
        browser.peer.addTrack(browser.microphone)
        await connect(browser.peer, bot)
        await session.send("Count.")
        await browser.hears_sound(10)
        await browser.aclose()
        await bot.close()
        again.peer.addTrack(again.microphone)
        session.attach(bot_again)
        assert session.reply_track is not first
        await connect(again.peer, bot_again)
        await session.send("Go on.")
        await again.hears_sound(10)
        await again.aclose()
        await bot_again.close()
