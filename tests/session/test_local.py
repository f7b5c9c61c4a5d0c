"""A session against the embedded websocket LLM, started and ended with it (architecture section 3: `local`)."""

from __future__ import annotations

import asyncio
import os
import signal
import wave
from typing import Any

import pytest

from realtime import LocalRealtime, RealtimeSession, ReconnectPolicy
from realtime.events import ConnectionDropped, Reconnected, TurnCompleted
from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack
from realtime.testing.loopback import connect, make_peer

pytestmark = pytest.mark.local


def microphone_of(path: Any, silence_seconds: float) -> FakeTrack:
    """A recording, then silence, at its pace."""
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        pcm = file.readframes(file.getnframes())
    return FakeTrack.audio(
        bytes(rate) + pcm + bytes(int(silence_seconds * rate) * 2), rate_hz=rate, clock=SystemClock()
    )


def wrong_words(heard: str, said: str) -> int:
    """How many words of what was said were not heard, in order."""
    left, wrong = heard.lower().replace("-", " ").replace(".", "").replace(",", "").split(), 0
    for word in said.split():
        if word in left:
            left = left[left.index(word) + 1 :]
        else:
            wrong += 1
    return wrong


async def test_a_spoken_turn_through_a_real_peer_connection(human_speech):
    """Through Opus, both ways; the words are right but for two of eight, the reply is heard to its end."""
    user, bot = make_peer(), make_peer()
    microphone = microphone_of(human_speech.path, 60)
    user.addTrack(microphone)
    ears = asyncio.Event()
    listening: list[asyncio.Task[None]] = []

    async def hear(track: Any) -> None:
        while not any(bytes((await track.recv()).planes[0])):
            pass
        ears.set()
        while True:
            await track.recv()

    user.on("track", lambda track: listening.append(asyncio.get_running_loop().create_task(hear(track))))
    async with asyncio.timeout(120), RealtimeSession("local", instructions="Answer in one sentence.") as session:
        events = aiter(session)
        session.attach(bot)
        await connect(user, bot)
        while not isinstance(turn := await anext(events), TurnCompleted):
            pass
        await ears.wait()
        [spoken, reply] = session.all_messages()
        microphone.stop()
        await user.close()
        await bot.close()
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    assert wrong_words(spoken.content, human_speech.text) <= 2, spoken.content
    assert reply.content
    assert not reply.interrupted
    assert turn.latency.first_audio_ms is not None
    assert turn.latency.first_played_ms is not None


async def test_a_killed_server_is_started_again_and_the_talk_goes_on():
    """L1; the process belongs to the session: it is restarted by the reconnect policy and ended at the end."""
    model = LocalRealtime()
    policy = ReconnectPolicy(first_delay_seconds=0.05, max_delay_seconds=0.5)
    async with asyncio.timeout(150), RealtimeSession(model, reconnect=policy) as session:
        events = aiter(session)
        await session.send("My name is Ada.")
        await session.wait_for_reply()
        before = session.all_messages()
        first = pid_of(model)
        os.kill(first, signal.SIGKILL)
        while not isinstance(event := await anext(events), ConnectionDropped):
            pass
        assert event.will_retry
        while not isinstance(await anext(events), Reconnected):
            pass
        assert session.all_messages() == before
        await session.send("What is my name?")
        turn = await session.wait_for_reply()
        assert "Ada" in turn.messages[-1].content
        second = pid_of(model)
        assert second != first
    assert not is_alive(first)
    assert not is_alive(second)


def pid_of(model: LocalRealtime) -> int:
    """The child's process id."""
    process = model._process
    assert process is not None
    transport = process._transport
    assert transport is not None
    return transport.get_pid()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
