"""A session behind real aiortc peer connections on loopback (architecture section 7: `attach`; P1–P4; B43, B47)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import av
import numpy as np
import pytest

from realtime import FrameSampling, RealtimeSession
from realtime.errors import ArgumentError, UserError
from realtime.events import FrameKept, ReplyInterrupted, SpeechStarted, TrackEnded, TurnCompleted
from realtime.testing import SyntheticPeer, make_peer, openai_script
from realtime.testing.devices import Picture

LONG_REPLY = " ".join(["word"] * 100)
"""Ten seconds of sound."""


class Browser(SyntheticPeer):
    """The user's side: speaks all the time, shows pictures that change, hears the reply."""

    def __init__(self, *, camera: bool = False) -> None:
        super().__init__(camera=camera, picture=lambda: (Picture(n / 15, _gray(n)) for n in count()))
        self._speaking = asyncio.create_task(self.say(_tone(60)))

    async def aclose(self) -> None:
        self._speaking.cancel()
        await asyncio.wait({self._speaking})
        await super().aclose()


def _gray(number: int) -> av.VideoFrame:
    return av.VideoFrame.from_ndarray(np.full((48, 64, 3), number * 37 % 256, np.uint8), format="rgb24").reformat(
        format="yuv420p"
    )


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


async def test_a_call_through_a_peer_connection_as_answerer(obliging, bot):
    """Tracks in, a reply out."""
    model, browser = obliging("one two three four five"), Browser(camera=True)
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=5, min_change=0)) as session:
        events = aiter(session)
        session.attach(bot)
        await browser.call(bot)
        await model.hears_audio(48_000)
        while not isinstance(event := await anext(events), FrameKept):
            pass
        assert event.source == "camera"
        assert set(session.statistics().tracks) == {"microphone", "camera"}
        await session.send("Count.")
        await browser.hears(0.4)
        turn = await session.wait_for_reply()
        assert turn.messages[0].content == "one two three four five"
        assert not turn.interrupted
        await browser.aclose()


async def test_a_call_through_a_peer_connection_as_offerer(obliging, browser, bot):
    model = obliging("one two three four five")
    async with RealtimeSession(model) as session:
        session.attach(bot)
        await browser.answer(bot)
        await model.hears_audio(24_000)
        await session.send("Count.")
        await browser.hears(0.4)
        await browser.aclose()


async def test_attaching_after_the_remote_description_takes_the_tracks_that_are_there(obliging, browser, bot):
    model = obliging()
    async with RealtimeSession(model) as session:
        await browser.pc.setLocalDescription(await browser.pc.createOffer())
        await bot.setRemoteDescription(browser.pc.localDescription)
        session.attach(bot)
        assert set(session.statistics().tracks) == {"microphone"}
        await bot.setLocalDescription(await bot.createAnswer())
        await session.detach(bot)
        with pytest.raises(UserError, match="local description"):
            session.attach(bot)


async def test_a_peer_connection_is_attached_once(obliging, bot):
    async with RealtimeSession(obliging()) as session:
        session.attach(bot)
        with pytest.raises(UserError, match="attached already"):
            session.attach(bot)
        await session.detach(bot)
        session.attach(bot)


@pytest.mark.parametrize("sources", [["camera"], {0: "camera"}, {"0": ""}, {"0": None}, "camera", 5])
async def test_what_are_no_names_of_media_sections_is_refused(obliging, bot, sources):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="sources must be names by media section"):
            session.attach(bot, sources=sources)
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
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.attach(bot)
        await browser.call(bot)
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
    async with RealtimeSession(model) as session:
        session.attach(bot)
        await browser.call(bot)
        await session.send("Count.")
        await browser.hears(0.2)
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
        await browser.call(bot)
        await session.send("Count.")
        await browser.hears(0.2)
        await browser.aclose()
        await bot.close()
        session.attach(bot_again)
        assert session.reply_track is not first
        await again.call(bot_again)
        await session.send("Go on.")
        await again.hears(0.2)
        await again.aclose()
        await bot_again.close()


@pytest.mark.parametrize("direct", [True, False])
async def test_a_peer_connection_that_was_closed_is_kept_no_longer(obliging, direct):
    """A phone that comes back again and again leaves nothing behind, detached or not."""
    model = obliging()

    async def visit(session: RealtimeSession) -> list[weakref.ref[Any]]:
        bot, browser = make_peer(), Browser(camera=True)
        session.attach(bot, direct=direct)
        await browser.call(bot)
        await model.hears_audio(9_600)
        await browser.aclose()
        await bot.close()
        return [weakref.ref(each) for each in (bot, *(t.receiver.track for t in bot.getTransceivers()))]

    async with RealtimeSession(model) as session:
        events = aiter(session)
        visits = [await visit(session) for _ in range(2)]
        gone = 0
        while gone < 4:
            gone += isinstance(await anext(events), TrackEnded)
        assert session.statistics().tracks == {}
        async with asyncio.timeout(60):  # what aiortc cancelled is let go by the loop
            while any(kept() is not None for visit in visits for kept in visit):
                await asyncio.sleep(0)
                gc.collect()


@pytest.mark.parametrize("direct", [True, False])
async def test_a_peer_connection_that_is_closed_before_it_was_connected_is_read_no_more(obliging, browser, bot, direct):
    """aiortc ends no track whose receiver has not begun."""
    async with RealtimeSession(obliging()) as session:
        events = aiter(session)
        await browser.pc.setLocalDescription(await browser.pc.createOffer())
        await bot.setRemoteDescription(browser.pc.localDescription)
        session.attach(bot, direct=direct)
        assert set(session.statistics().tracks) == {"microphone"}
        await bot.close()
        while not isinstance(await anext(events), TrackEnded):
            pass
        assert session.statistics().tracks == {}


async def test_a_peer_connection_may_be_detached_as_it_is_closed(obliging, browser, bot):
    """By a listener of the application's, which comes before ours."""
    async with RealtimeSession(obliging()) as session:
        faults: list[Exception] = []
        bot.on("error", faults.append)

        @bot.on("connectionstatechange")
        def detach() -> None:
            if bot.connectionState == "closed":
                with pytest.raises(StopIteration):
                    session.detach(bot).send(None)  # as an eager task does

        session.attach(bot)
        await bot.close()
        assert faults == []


async def test_a_peer_connection_may_be_detached_after_it_was_closed(obliging, browser, bot):
    """Once, as any other."""
    async with RealtimeSession(obliging()) as session:
        session.attach(bot)
        await browser.call(bot)
        await browser.aclose()
        await bot.close()
        await session.detach(bot)
        with pytest.raises(ArgumentError, match="attached"):
            await session.detach(bot)
