"""Whole conversations with xAI by script, through a session over a real socket: what the recordings lack."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from realtime import RealtimeSession, TurnDetection, XaiRealtime
from realtime.errors import UserError
from realtime.events import ErrorReported, InputRejected, MessageCommitted, Reconnected, ReplyInterrupted
from realtime.testing import openai_script as script

DONE = [{"type": "session.updated", "session": {}}]


def opened(conversation: str = "conv_1") -> list[Any]:
    """xAI says the conversation's id after it was configured."""
    return [{"type": "conversation.created", "conversation": {"id": conversation}}, {"type": "ping"}, *DONE]


def setup(**more: Any) -> dict[str, Any]:
    return {"type": "session.update", "session": {"resumption": {"enabled": True}, **more}}


def asks(text: str) -> dict[str, Any]:
    return {"type": "conversation.item.create", "item": {"content": lambda parts: parts[0]["text"] == text}}


def added(item_id: str, role: str = "user") -> dict[str, Any]:
    """An item under an id of xAI's own."""
    item = {"id": item_id, "type": "message", "role": role, "status": "completed", "content": []}
    return {"type": "conversation.item.added", "item": item, "previous_item_id": None}


RESPOND = {"type": "response.create"}
HELLO = script.session_created()


def said(response_id: str, item_id: str, text: str) -> list[Any]:
    return script.spoken_reply(response_id, item_id, text, bytes(960))


async def until(events: Any, kind: type[Any]) -> Any:
    async with asyncio.timeout(20):
        while not isinstance(event := await anext(events), kind):
            pass
    return event


def texts(session: RealtimeSession) -> list[str]:
    return [message.content for message in session.all_messages()]


async def test_pictures_are_refused_where_they_are_sent_and_the_talk_goes_on(provider):
    xai = await provider(HELLO, setup(), opened(), asks("Hi"), [added("i1")], RESPOND, said("r1", "a1", "Hello."))
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        with pytest.raises(UserError, match=r"grok-voice-latest takes no pictures \(supports_image_input\)"):
            await session.send_image(np.full((8, 8, 3), 200, np.uint8))
        await session.send("Hi")
        await session.wait_for_reply()
    assert texts(session) == ["Hi", "Hello."]


async def test_a_reply_that_is_dropped_without_an_end_ends_with_the_next_and_nothing_is_cut_at_xai(provider):
    """P1: it can cut nothing, so nothing is asked of it; the user's item is there when speech begins."""
    speak = asyncio.Event()
    begun = script.spoken_reply("r1", "a1", "One two three four", bytes(48_000), chunk_bytes=24_000, done=False)
    speech = [
        {"type": "input_audio_buffer.speech_started", "item_id": "u1", "audio_start_ms": 100},
        {**added("u1"), "item": {**added("u1")["item"], "status": "in_progress"}},
        {"type": "conversation.item.input_audio_transcription.updated", "item_id": "u1", "transcript": "St"},
        {"type": "input_audio_buffer.speech_stopped", "item_id": "u1", "audio_end_ms": 600},
        {"type": "input_audio_buffer.committed", "item_id": "u1"},
        {
            "type": "conversation.item.input_audio_transcription.completed",
            "item_id": "u1",
            "transcript": "Stop.",
            "status": "completed",
        },
    ]
    xai = await provider(
        HELLO,
        setup(),
        opened(),
        asks("Go."),
        [added("i1")],
        RESPOND,
        begun,
        speak,
        [*speech, *said("r2", "a2", "Yes.")],
    )
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("Go.")
        await anext(audio)
        await anext(audio)
        speak.set()
        cut = await until(events, ReplyInterrupted)
        listening = asyncio.create_task(_listen(audio))
        while len(session.all_messages()) < 4:
            await until(events, MessageCommitted)
        listening.cancel()
    assert (cut.cause, cut.heard_ms, cut.heard) == ("barge_in", 500, "One two")
    assert texts(session) == ["Go.", "One two", "Stop.", "Yes."]
    assert not [event async for event in events if isinstance(event, ErrorReported)]


async def _listen(audio: Any) -> None:
    async for _ in audio:
        pass


async def test_an_error_is_the_failure_of_what_caused_it(provider):
    """L6, B32."""
    xai = await provider(
        HELLO,
        setup(),
        opened(),
        asks("Bad"),
        lambda heard: script.error("invalid_item", "no", cause=heard[-1]["event_id"]),
        asks("Good"),
        [added("i2")],
        RESPOND,
        said("r1", "a1", "Hello."),
    )
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        events = aiter(session)
        await session.send("Bad", respond=False)
        rejected = await until(events, InputRejected)
        await session.send("Good")
        await session.wait_for_reply()
    assert "invalid_item" in rejected.reason
    assert texts(session) == ["Good", "Hello."]


async def test_push_to_talk(provider):
    committed = [
        {"type": "input_audio_buffer.committed", "item_id": "u1"},
        added("u1"),
        {"type": "conversation.item.input_audio_transcription.completed", "item_id": "u1", "transcript": "Hello."},
    ]
    xai = await provider(
        HELLO,
        setup(turn_detection={"type": None}),
        opened(),
        {"type": "input_audio_buffer.commit"},
        committed,
        RESPOND,
        said("r1", "a1", "Hi."),
    )
    async with RealtimeSession(XaiRealtime(url=xai.url), turn_detection=TurnDetection(mode="manual")) as session:
        await session.send_audio(bytes(9600))
        await session.commit_audio()
        await session.create_response()
        await session.wait_for_reply()
    assert texts(session) == ["Hello.", "Hi."]
    assert xai.audio_bytes == 9600


async def test_a_conversation_that_xai_still_has_is_taken_up_again(provider):
    """L1: its items come back as a replay that is no news, and nothing is told again."""
    xai = await provider(
        HELLO, setup(), opened(), asks("One"), [added("i1")], RESPOND, said("r1", "a1", "Yes."), "the line breaks"
    )
    xai.steps += [
        HELLO,
        setup(),
        [opened()[0], added("i1"), added("a1", "assistant"), *DONE],
        asks("Two"),
        [added("i2")],
        RESPOND,
        said("r2", "a2", "Again."),
    ]
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        back = await until(events, Reconnected)
        await session.send("Two")
        await session.wait_for_reply()
    assert back.state_restored
    assert xai.paths == [
        "/v1/realtime?model=grok-voice-latest",
        "/v1/realtime?conversation_id=conv_1&model=grok-voice-latest",
    ]
    assert texts(session) == ["One", "Yes.", "Two", "Again."]


async def test_a_conversation_that_xai_has_forgotten_is_told_again(provider):
    xai = await provider(HELLO, setup(), opened(), asks("One"), [added("i1")], RESPOND, said("r1", "a1", "Yes."), 1011)
    xai.steps += [
        HELLO,
        setup(),
        opened("conv_2"),
        asks("One"),
        [added("i2")],
        asks("Yes."),
        [added("i3", "assistant")],
    ]
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        back = await until(events, Reconnected)
        await xai.done()
    assert back.state_restored
    assert texts(session) == ["One", "Yes."]


async def test_a_session_that_expired_is_taken_up_again(provider):
    """B34: the server says why, closes, and has the conversation for another half hour."""
    expired = script.error("session_expired", "Your session hit the maximum duration of 60 minutes.")
    xai = await provider(
        HELLO, setup(), opened(), asks("One"), [added("i1")], RESPOND, [*said("r1", "a1", "Yes."), *expired], 1001
    )
    xai.steps += [HELLO, setup(), opened()]
    async with RealtimeSession(XaiRealtime(url=xai.url)) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        reported = await until(events, ErrorReported)
        back = await until(events, Reconnected)
    assert reported.error.code == "session_expired"
    assert back.state_restored
