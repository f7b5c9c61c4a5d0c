"""What a session promises of a whole call, on real tracks and against the real local LLM."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import pytest_asyncio

from realtime import ContextWindow, FrameSampling, RealtimeSession, ReconnectPolicy
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.core import events as ev
from realtime.demo.media import read_sound
from realtime.demo.scene import street
from realtime.pipelines.clock import SystemClock
from realtime.pipelines.video import PictureEncoder
from realtime.pipelines.worker import WorkerPool
from realtime.testing.devices import Camera, Microphone, Picture
from realtime.testing.listener import Listener
from realtime.testing.loopback import connect, make_peer

pytestmark = pytest.mark.local


def _noise() -> Iterator[Picture]:
    """A picture that is another one every time, 20 a second."""
    random = np.random.default_rng(1)
    count = 0
    while True:
        pixels = np.repeat(np.repeat(random.integers(0, 255, (18, 32, 3), np.uint8), 20, 0), 20, 1)
        yield Picture(count / 20, av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p"))
        count += 1


def _silence(frames: int) -> Iterator[bytes]:
    return iter([bytes(1920)] * frames)


@pytest_asyncio.fixture
async def camera(pool: WorkerPool) -> AsyncIterator[Camera]:
    track = Camera(SystemClock(), pool, [_noise])
    yield track
    track.stop()


# -- budgets -----------------------------------------------------------------------------------------------------------


async def test_never_more_pictures_than_retained_at_any_event(llm_url: str, camera: Camera) -> None:
    """R1, R3: with retain_images_max=2."""
    kept = 0
    async with RealtimeSession(llm_url, retain_images_max=2, sampling=FrameSampling(fps_idle=5.0)) as session:
        session.add_track(camera, source="camera")
        async with asyncio.timeout(60):
            async for event in session:
                pictures = sum(len(message.images) for message in session.context.messages())
                assert pictures <= 2, f"{pictures} pictures at {type(event).__name__}"
                assert sum(len(message.images) for message in session.all_messages()) <= 2
                kept += isinstance(event, ev.FrameKept)
                if kept == 10:
                    break


async def test_a_long_text_talk_stays_below_its_tokens_but_for_the_last_turns(llm_url: str) -> None:
    """W2, W5: with max_tokens=200."""
    trimmed = 0
    window = ContextWindow(max_tokens=200, keep_recent_turns=3)
    async with RealtimeSession(llm_url, instructions="Answer briefly.", window=window) as session:
        events = session.__aiter__()
        for number in range(20):
            await session.send(
                f"Sentence number {number} of a long talk, said so that the window has something to trim."
            )
            async with asyncio.timeout(60):
                while not isinstance(event := await anext(events), ev.TurnCompleted):
                    trimmed += len(event.message_ids) if isinstance(event, ev.MessagesRemoved) else 0
                    last_turns = session.context.messages()[-3:]
                    bound = 200 + sum(2 * len(message.content.split()) for message in last_turns)
                    assert session.context.estimated_tokens() <= bound
            assert session.context.estimated_tokens() <= 200
        assert trimmed > 10
        assert len(session.all_messages()) > len(session.context)


# -- barge-in ----------------------------------------------------------------------------------------------------------


async def test_barge_in_silences_the_reply_track_and_keeps_what_was_heard(
    llm_url: str, pool: WorkerPool, speech: Callable[[str], Path]
) -> None:
    """P1, P3: at most three more 20 ms frames carry sound after the event."""
    question = speech("I would like to hear this rather long sentence about the weather in Norway again")
    objection = speech("No thank you, that is enough for now")
    microphone = Microphone(SystemClock(), pool)
    after: list[bool] = []  # of each reply frame after the event: does it carry sound
    begun, cut = asyncio.Event(), asyncio.Event()
    async with RealtimeSession(llm_url) as session:

        async def speak() -> None:
            """Ask for a long reply, and speak into it as soon as a second of it was heard."""
            await microphone.say(partial(read_sound, question))
            await begun.wait()
            await microphone.say(partial(read_sound, objection))
            while True:
                await microphone.say(lambda: _silence(25))

        async def listen() -> None:
            heard = 0
            while len(after) < 50:
                frame = await session.reply_track.recv()
                samples = np.frombuffer(bytes(frame.planes[0])[: frame.samples * 2], "<i2")
                sounds = bool(np.abs(samples.astype(int)).max() > 0)
                heard += sounds
                if heard >= 50:
                    begun.set()
                if cut.is_set():
                    after.append(sounds)

        async def watch() -> ev.ReplyInterrupted:
            async for event in session:
                if isinstance(event, ev.SpeechStarted) and begun.is_set():
                    cut.set()
                if isinstance(event, ev.ReplyInterrupted) and cut.is_set():  # a stall can split the question in two
                    return event
            raise AssertionError("the session ended first")

        session.add_track(microphone, source="microphone")
        speaking, listening = asyncio.create_task(speak()), asyncio.create_task(listen())
        async with asyncio.timeout(60):
            interrupted = await watch()
            await listening
            speaking.cancel()
        assert sum(after[:50]) <= 3, f"sound after the event: {after}"
        message = [each for each in session.all_messages() if each.interrupted][-1]
        assert message.role == ChatRole.ASSISTANT
        assert interrupted.cause == "barge_in"
        assert message.content == interrupted.heard
        assert message.heard_ms == interrupted.heard_ms
        assert message.unheard
        assert 900 <= interrupted.heard_ms <= 4_000
    microphone.stop()


# -- the link ----------------------------------------------------------------------------------------------------------


async def test_a_killed_model_is_reported_and_the_call_goes_on_when_it_is_back(
    start_llm: Callable[..., Any], pool: WorkerPool
) -> None:
    """L1: the context is whole, and the model has it again."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    first = await pool.run(start_llm, "--port", port)
    policy = ReconnectPolicy(max_attempts=None, first_delay_seconds=0.05, max_delay_seconds=0.2)
    async with asyncio.timeout(120), RealtimeSession(first.url, reconnect=policy) as session:
        events = session.__aiter__()
        await session.send("My name is Ada and I live in Oslo.")
        await session.wait_for_reply()
        before = session.all_messages()
        await pool.run(first.kill)
        dropped = await _next(events, ev.ConnectionDropped)
        assert dropped.will_retry
        assert session.context.messages() == before
        starting = asyncio.create_task(pool.run(start_llm, "--port", port))
        back = await _next(events, ev.Reconnected)
        await starting
        assert back.gap_ms > 0
        assert session.context.messages() == before
        await session.send("What did I say before?")
        reply = await session.wait_for_reply()
        assert "oslo" in _text(reply.messages).lower(), _text(reply.messages)
        assert session.all_messages()[: len(before)] == before


async def _next(events: Any, kind: type) -> Any:
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"no {kind.__name__} came")


def _text(messages: tuple[ChatMessage, ...]) -> str:
    return " ".join(message.content for message in messages)


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [False, True], ids=["unwanted", "slow-consumer"])
async def test_a_video_track_that_nobody_keeps_up_with_is_drained(
    llm_url: str, pool: WorkerPool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B43, B44: aiortc's queue has no bound, so what waits in it is the measure. A longer run is a benchmark."""
    if wanted:
        encode, hold = PictureEncoder.__call__, threading.Event()

        def encode_slowly(self: PictureEncoder, frame: Any) -> ImageContent:
            hold.wait(0.4)
            return encode(self, frame)

        monkeypatch.setattr(PictureEncoder, "__call__", encode_slowly)
    user, bot = make_peer(), make_peer()
    sampling = FrameSampling(fps_idle=10.0 if wanted else 0.0, fps_speaking=0.0, end_of_turn=False)
    received: list[Any] = []
    bot.on("track", received.append)
    async with RealtimeSession(llm_url, sampling=sampling) as session:
        session.attach(bot)
        microphone = Microphone(SystemClock(), pool)
        user.addTrack(microphone)
        user.addTrack(Camera(SystemClock(), pool, [street]))
        await connect(user, bot)
        waiting = 0
        seen = -1
        while seen < 40:
            await microphone.say(lambda: _silence(5))
            waiting = max([waiting, *(track._queue.qsize() for track in received)])
            figures = session.statistics()
            [pictures] = [track for track in figures.tracks.values() if track.kind == "video"]
            seen = pictures.frames
        assert waiting <= 15, f"{waiting} frames waited in a track"
        assert figures.memory.frames <= 2 * 960 * 540 * 3
        assert bool(session.context.messages()) == wanted
        assert pictures.undecoded >= seen // 2, "while one is encoded, nothing is decoded"
        await user.close()
        await bot.close()


async def test_twenty_calls_leave_nothing(llm_url: str, pool: WorkerPool) -> None:
    """L7, B71: tasks, threads and objects of twenty calls are gone."""

    async def call() -> weakref.ref[RealtimeSession]:
        clock = SystemClock()
        user, bot, listener = make_peer(), make_peer(), Listener(clock)
        microphone = Microphone(clock, pool)
        listening: list[asyncio.Task[None]] = []
        user.on("track", lambda track: listening.append(asyncio.create_task(listener.listen(track))))
        async with RealtimeSession(llm_url) as session:
            session.attach(bot)
            user.addTrack(microphone)
            user.addTrack(Camera(clock, pool, [street]))
            await connect(user, bot)
            async with asyncio.timeout(60):
                while not listener.recording.seconds:
                    await microphone.say(lambda: _silence(3))
            await user.close()
            await bot.close()
        await asyncio.gather(*listening)
        return weakref.ref(session)

    def threads() -> set[str]:
        """But for the executor of the loop, which ends with it, and this test's own decoders."""
        names = {thread.name for thread in threading.enumerate()}
        return {name for name in names if not name.startswith(("asyncio_", "realtime-demo-test"))}

    await call()  # what a process makes once
    tasks, before = asyncio.all_tasks(), threads()
    sessions = [await call() for _ in range(20)]
    await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() == tasks
    assert threads() <= before
    assert [session() for session in sessions] == [None] * 20
