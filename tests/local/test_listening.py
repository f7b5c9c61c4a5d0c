"""Listening: words sought before they are needed, and turns that end by what is said."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest

from realtime.errors import ModelError

from .kit import Client, ScriptedRecognizer, ScriptedResponder, loud, make_parts, quiet

SEMANTIC = {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}}


async def test_words_are_sought_in_the_pause_and_not_again_at_the_end() -> None:
    recognizer = ScriptedRecognizer("hello there")
    async with Client(make_parts(recognizer=recognizer)) as client:
        await client.append(quiet(300) + loud(500) + quiet(400))
        ((length, speculative),) = recognizer.calls
        assert speculative
        assert 800 <= length <= 1000


async def test_nothing_is_sought_on_a_guess_while_others_need_the_threads() -> None:
    recognizer, busy = ScriptedRecognizer("hello there"), threading.Event()
    async with Client(make_parts(recognizer=recognizer)) as client:
        working = asyncio.create_task(client.pool.run("another", "now", busy.wait, 20))
        await asyncio.sleep(0)
        await client.append(quiet(300) + loud(500) + quiet(400))
        assert [speculative for _length, speculative in recognizer.calls] == [False]
        busy.set()
        assert await working


async def test_a_pause_that_was_no_end_is_thought_of_again_with_what_followed() -> None:
    recognizer = ScriptedRecognizer("hello", "hello there")
    responder = ScriptedResponder()
    async with Client(make_parts(responder, recognizer=recognizer)) as client:
        await client.append(quiet(300) + loud(500) + quiet(120) + loud(500) + quiet(400))
        (first, _), (second, _) = recognizer.calls
        assert second > first + 500
        assert responder.requests[0].messages[0].content == "hello there"


async def test_words_that_come_late_are_waited_for() -> None:
    recognizer, responder = ScriptedRecognizer("hello there"), ScriptedResponder()
    recognizer.hold = asyncio.Event()
    async with Client(make_parts(responder, recognizer=recognizer)) as client:
        await client.append(quiet(300) + loud(500) + quiet(400))
        assert client.types()[-2:] == ["response.created", "rate_limits.updated"]
        assert responder.requests == []
        recognizer.hold.set()
        await client.settle()
        assert responder.requests[0].messages[0].content == "hello there"


async def test_a_turn_that_sounds_complete_ends_after_the_silence() -> None:
    async with Client(make_parts(recognizer=ScriptedRecognizer("What time is it?"))) as client:
        await client.update(audio=SEMANTIC)
        await client.append(loud(500) + quiet(300))
        assert "input_audio_buffer.speech_stopped" in client.types()


async def test_a_turn_that_does_not_sound_complete_is_waited_for_up_to_the_cap() -> None:
    async with Client(make_parts(recognizer=ScriptedRecognizer("I would like to"))) as client:
        await client.update(audio=SEMANTIC)
        await client.append(loud(500) + quiet(1800))
        assert "input_audio_buffer.speech_stopped" not in client.types()
        await client.append(quiet(300))
        assert "input_audio_buffer.speech_stopped" in client.types()


async def test_a_turn_is_one_though_the_user_thought_in_between() -> None:
    recognizer = ScriptedRecognizer("I would like to", "I would like to know the time.")
    async with Client(make_parts(recognizer=recognizer)) as client:
        await client.update(audio=SEMANTIC)
        await client.append(loud(500) + quiet(1000) + loud(500) + quiet(400))
        assert len(client.of("input_audio_buffer.committed")) == 1
        assert client.last("response.done")["response"]["status"] == "completed"


async def test_a_minute_appended_at_once_is_heard_in_small_steps() -> None:
    steps = 0

    async def tick() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    async with Client(make_parts()) as client:
        ticking = asyncio.create_task(tick())
        await client.append(quiet(60_000), chunk_ms=60_000)
        ticking.cancel()
        assert steps >= 60_000 / 32 / 4
        assert client.session._listener.input.position_ms >= 59_990


class FixedJudge:
    """Is as sure as it is told to be that a turn is over."""

    rate_hz = 16_000

    def __init__(self, certainty: float | Exception) -> None:
        self.certainty = certainty
        self.calls = 0

    async def finished(self, samples: np.ndarray, *, owner: str) -> float:
        self.calls += 1
        if isinstance(self.certainty, Exception):
            raise self.certainty
        return self.certainty

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    ("text", "certainty", "waits_ms"),
    [
        ("What time is it?", 0.9, 200),
        ("What time is it?", 0.1, 500),
        ("I would like to", 0.9, 500),
        ("I would like to", 0.1, 2_000),
        ("What time is it?", ModelError("broken"), 200),
        ("I would like to", ModelError("broken"), 2_000),
    ],
)
async def test_words_and_sound_together_say_how_long_a_turn_is_waited_for(
    text: str, certainty: float | Exception, waits_ms: int
) -> None:
    """Finished by both: the silence that is set. By one: a quarter of the cap. By none: the cap, here 2 s."""
    parts = replace(make_parts(recognizer=ScriptedRecognizer(text)), judge=FixedJudge(certainty))
    async with Client(parts) as client:
        await client.update(audio=SEMANTIC)
        await client.append(loud(500) + quiet(waits_ms - 150))
        assert "input_audio_buffer.speech_stopped" not in client.types()
        await client.append(quiet(300))
        assert "input_audio_buffer.speech_stopped" in client.types()


async def test_the_sound_is_listened_to_only_where_meaning_decides() -> None:
    judge = FixedJudge(0.1)
    async with Client(replace(make_parts(), judge=judge)) as client:
        await client.append(loud(500) + quiet(400))
        assert "input_audio_buffer.speech_stopped" in client.types()
        assert judge.calls == 0
