"""The rules of history, retention and turns through a whole session, with tracks (behaviour.md H1–H7, R2–R5, T1; seeds)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from realtime import Agent, ChatRole, FrameSampling, RealtimeSession, ToolContext
from realtime.errors import ModelError
from realtime.events import (
    ErrorReported,
    FrameSkipped,
    InputRejected,
    MessagesRemoved,
    Reconnected,
    TranscriptionFailed,
    TranscriptUpdated,
    TurnCompleted,
)
from realtime.testing import FakeTrack, openai_script

from .conftest import Obliging


def texts(messages: Any) -> list[tuple[str, str]]:
    return [(message.role.value, message.content) for message in messages]


def microphone(ms: int) -> FakeTrack:
    """A sound whose every 20 ms has a value of its own."""
    steps = np.repeat(np.arange(1, ms // 20 + 1, dtype="<i2") * 50, 480)
    return FakeTrack.audio(steps.tobytes(), rate_hz=24_000, ends=False)


def reply(number: int, text: str, before: str, ms: int = 200) -> list[Any]:
    sound = bytes(48 * ms)
    return openai_script.spoken_reply(f"r{number}", f"a{number}", text, sound, previous_item_id=before)


async def until(events: Any, kind: type[Any], times: int = 1) -> Any:
    while True:
        event = await anext(events)
        if isinstance(event, kind):
            times -= 1
            if not times:
                return event


async def test_words_stand_where_they_were_said_however_late_they_are_written(obliging):
    """H1, H2, B25: late, swapped, and one that came after the next turn began."""
    model = obliging()
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.add_track(microphone(3_000))
        await model.hears_audio(48 * 3_000)
        await model.say(openai_script.user_speech("u1", end_ms=900))
        await model.say(reply(1, "First answer.", "u1"))
        await model.say(openai_script.user_speech("u2", start_ms=1_200, end_ms=1_900, previous_item_id="a1"))
        await model.say(reply(2, "Second answer.", "u2"))
        await model.say(openai_script.user_transcript("u2", "Second question."))
        while (await until(events, TranscriptUpdated)).message_id != "u2":
            pass
        assert texts(session.all_messages()) == []  # nothing shows before what stands in front of it
        await model.say(openai_script.user_speech("u3", start_ms=2_200, end_ms=2_900, previous_item_id="a2")[:1])
        await model.say(openai_script.user_transcript("u1", "First question."))
        await until(events, TurnCompleted, 2)
        shown = session.all_messages()
    assert texts(shown) == [
        ("user", "First question."),
        ("assistant", "First answer."),
        ("user", "Second question."),
        ("assistant", "Second answer."),
    ]
    assert session.all_messages()[:4] == shown


async def test_words_that_cannot_be_had_hold_nothing_up(obliging):
    """H2, B27: an event says so, the turn keeps its place, what goes out is legal."""
    model = obliging()
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.add_track(microphone(1_000))
        await model.hears_audio(48 * 1_000)
        await model.say(openai_script.user_speech("u1", end_ms=900))
        await model.say(reply(1, "Pardon?", "u1"))
        failed = {
            "type": "conversation.item.input_audio_transcription.failed",
            "event_id": "e",
            "item_id": "u1",
            "content_index": 0,
            "error": {"type": "transcription_error", "code": "audio_unintelligible", "message": "noise"},
        }
        await model.say([failed])
        event = await until(events, TranscriptionFailed)
        await until(events, TurnCompleted)
    assert (event.message_id, event.code) == ("u1", "audio_unintelligible")
    assert texts(session.all_messages()) == [("user", ""), ("assistant", "Pardon?")]
    assert [item["role"] for item in session.context.to_openai_messages()] == ["assistant"]


async def test_what_is_told_again_after_a_drop_is_in_the_history_once(obliging):
    """H5, B24: the provider reports the items that it was told again; two people saying yes stay two."""
    model = obliging("Yes.", "Yes.")
    async with RealtimeSession(model) as session:
        events = aiter(session)
        for _ in range(2):
            await session.send("Yes.")
            await session.wait_for_reply()
        model.drop()
        await until(events, Reconnected)
        await model.hears("conversation.item.create", 6)
        await session.send("Still?")
        await session.wait_for_reply()
    assert texts(session.all_messages())[:4] == [("user", "Yes."), ("assistant", "Yes.")] * 2
    assert len(session.all_messages()) == 6


async def test_without_transcription_turns_keep_their_boundaries_and_their_sound(obliging):
    """H4: cut at the speech ends that the provider reports; without retention a turn without content."""
    for retention in ("input_audio", "transcript_only"):
        model = obliging()
        async with RealtimeSession(model, transcription="off", audio_retention=retention) as session:
            events = aiter(session)
            session.add_track(microphone(2_000))
            await model.hears_audio(48 * 2_000)
            await model.say(openai_script.user_speech("u1", start_ms=200, end_ms=600))
            await model.say(reply(1, "One.", "u1"))
            await model.say(openai_script.user_speech("u2", start_ms=1_000, end_ms=1_400, previous_item_id="a1"))
            await model.say(reply(2, "Two.", "u2"))
            await until(events, TurnCompleted, 2)
        assert texts(session.all_messages()) == [
            ("user", ""),
            ("assistant", "One."),
            ("user", ""),
            ("assistant", "Two."),
        ]
        recordings = [message.audio for message in session.all_messages() if message.role is ChatRole.USER]
        if retention == "transcript_only":
            assert recordings == [None, None]
        else:
            assert [audio.duration_ms for audio in recordings] == [600, 800]
            first = np.frombuffer(recordings[1].data[44:], "<i2")
            assert first[0] == 31 * 50  # where the first turn ended
        assert len(session.context.to_openai_messages()) == 2


async def test_audio_is_kept_within_its_seconds_at_every_event_and_what_is_evicted_is_free(obliging):
    """R2, R3: both speakers and the turn in progress; transcripts stay."""
    model = obliging()
    async with RealtimeSession(model, audio_retention="all", retain_audio_max_seconds=1.0) as session:
        events = aiter(session)
        session.add_track(microphone(5_000))
        await model.hears_audio(48 * 5_000)
        before, kept = None, []
        for number in range(5):
            end = 1_000 * (number + 1)
            await model.say(
                openai_script.user_speech(f"u{number}", start_ms=end - 500, end_ms=end, previous_item_id=before)
            )
            await model.say(openai_script.user_transcript(f"u{number}", f"question {number}"))
            await model.say(reply(number, f"answer {number}", f"u{number}", ms=300))
            before = f"a{number}"
            while not isinstance(await anext(events), TurnCompleted):
                assert session.statistics().memory.audio <= 48_000
            kept += [weakref.ref(message.audio) for message in session.all_messages() if message.audio is not None]
        messages = session.all_messages()
        gc.collect()
        alive = {id(audio) for ref in kept if (audio := ref()) is not None}
        assert alive == {id(message.audio) for message in messages if message.audio is not None}
    assert len(messages) == 10
    assert all(message.content for message in messages)
    assert messages[0].audio is None
    assert messages[-1].audio is not None
    del messages


async def test_evicted_pictures_leave_the_providers_conversation_too_where_that_is_wanted(obliging):
    """R1, R4."""
    model = obliging()
    sampling = FrameSampling(fps_idle=10, min_change=0)
    session = RealtimeSession(model, retain_images_max=1, mirror_evictions=True, sampling=sampling)
    async with session:
        events = aiter(session)
        camera, frames = FakeTrack("video"), FakeTrack.video(fps=10, seconds=3)
        session.add_track(camera)
        for number in range(3):
            camera.push(await frames.recv())
            await model.hears("conversation.item.create", number + 1)
        removed = await until(events, MessagesRemoved, 2)
        deleted = await model.hears("conversation.item.delete", 2)
        assert deleted["item_id"] == removed.message_ids[0]
    assert len([message for message in session.all_messages() if message.images]) == 1


async def test_under_a_hard_cap_pictures_are_refused_with_an_event_and_words_never(obliging):
    """R5."""
    model = obliging("Yes.")
    sampling = FrameSampling(fps_idle=10, min_change=0)
    async with RealtimeSession(model, memory_limit_bytes=1_000, sampling=sampling) as session:
        events = aiter(session)
        camera, frames = FakeTrack("video"), FakeTrack.video(size=(640, 480), fps=10, seconds=3)
        session.add_track(camera)
        camera.push(await frames.recv())
        skipped = await until(events, FrameSkipped)
        assert skipped.reason == "image_limit"
        assert session.statistics().memory.total <= 1_000
        await session.send("Do you hear me? " + "word " * 500)
        await session.wait_for_reply()
    assert len(session.all_messages()) == 2


async def test_wishes_for_a_reply_while_one_is_made_fold_into_one_after_it(obliging):
    """T1, B31."""
    model = obliging([], "Two.")
    async with RealtimeSession(model) as session:
        await session.send("a")
        await model.hears("response.create")
        item = model.all("conversation.item.create")[0]["item"]["id"]
        begun = openai_script.spoken_reply("r", "i", "One.", bytes(4_800), previous_item_id=item)
        await model.say(begun[:3])
        for _ in range(3):
            await session.create_response()
        await session.send("b", respond=True)
        await model.hears("conversation.item.create", 2)
        assert len(model.all("response.create")) == 1
        await model.say(begun[3:])
        assert (await session.wait_for_reply()).messages[-1].content == "One."
        assert (await session.wait_for_reply()).messages[-1].content == "Two."
    assert len(model.all("response.create")) == 2


class Refusing(Obliging):
    """Refuses one kind of item."""

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "conversation.item.create" and "bad" in str(message["item"]):
            await self.say(openai_script.error("invalid_value", "no such item", cause=message["event_id"]))
            return
        await super()._take(message)


async def test_an_input_that_the_provider_refuses_leaves_the_history_and_is_told(obliging):
    """H6, B32: at once, with its code; the talk goes on."""
    model = Refusing("Yes.")
    async with RealtimeSession(model) as session:
        events = aiter(session)
        [message_id] = await session.send("bad", respond=False)
        rejected = await until(events, InputRejected)
        await session.send("good")
        await session.wait_for_reply()
    assert rejected.message_id == message_id
    assert texts(session.all_messages()) == [("user", "good"), ("assistant", "Yes.")]
    faults = [event.error async for event in events if isinstance(event, ErrorReported)]
    assert all(isinstance(error, ModelError) for error in faults)
    await model.aclose()


async def test_a_tool_sees_the_conversation_without_its_recordings(obliging, tool_call):
    """Seeds: the history keeps the audio, what a tool sees carries transcripts."""
    seen: list[Any] = []

    def note(context: ToolContext) -> str:
        """Note something."""
        seen.extend(context.messages)
        return "noted"

    model = obliging(tool_call("note"), "Noted.")
    async with RealtimeSession(model, tools=[note], audio_retention="input_audio") as session:
        session.add_track(microphone(1_000))
        await model.hears_audio(48 * 1_000)
        await model.say(openai_script.user_speech("u1", end_ms=900))
        await model.say(openai_script.user_transcript("u1", "Note this."))
        await session.create_response()
        await session.wait_for_reply()
    assert [(message.content, message.audio) for message in seen if message.role is ChatRole.USER] == [
        ("Note this.", None)
    ]
    assert session.all_messages()[0].audio is not None


async def test_the_phase_of_a_message_is_kept_with_it(obliging):
    """Seeds: 'commentary' on the way to a call, or 'final_answer'."""

    def phased(response_id: str, item_id: str, previous: str | None) -> Any:
        events = openai_script.written_reply(response_id, item_id, "Done.", previous_item_id=previous)
        for event in events:
            if event["type"] in ("response.output_item.done", "conversation.item.done"):
                event["item"]["phase"] = "final_answer"
        return events

    async with RealtimeSession(obliging(phased)) as session:
        await session.send("a")
        await session.wait_for_reply()
    assert session.all_messages()[-1].provider_data["phase"] == "final_answer"


async def test_forty_sessions_with_tracks_leave_nothing(obliging):
    """L7, B71: beside the twenty whole calls of test_life."""
    model = obliging()
    tasks = asyncio.all_tasks()
    left: list[weakref.ref[Any]] = []
    for _ in range(40):
        async with RealtimeSession(model, agents=[Agent(id="b")]) as session:
            session.add_track(FakeTrack.audio(seconds=0.02, ends=False))
            session.add_track(FakeTrack.video(seconds=0.04, ends=False))
            left += [weakref.ref(session), weakref.ref(session.context)]
        del session
    await model.aclose()
    await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() <= tasks
    assert [ref for ref in left if ref() is not None] == []


@pytest.mark.parametrize("mode", ["transcript_only", "output_audio", "input_audio", "all"])
async def test_whose_audio_is_kept_is_as_chosen(obliging, mode):
    """Seeds: retaining audio."""
    model = obliging()
    async with RealtimeSession(model, audio_retention=mode) as session:
        events = aiter(session)
        session.add_track(microphone(1_000))
        await model.hears_audio(48 * 1_000)
        await model.say(openai_script.user_speech("u1", end_ms=900))
        await model.say(openai_script.user_transcript("u1", "Question."))
        await model.say(reply(1, "Answer.", "u1"))
        await until(events, TurnCompleted)
    spoken, answered = session.all_messages()
    assert (spoken.audio is not None) == (mode in ("input_audio", "all"))
    assert (answered.audio is not None) == (mode in ("output_audio", "all"))
