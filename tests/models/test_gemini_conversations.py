"""Whole conversations with Gemini Live by script, through a session over a real socket: what the recordings lack."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
import pytest

from realtime import Agent, GeminiLive, RealtimeSession, ReconnectPolicy, Tool, TurnDetection
from realtime.chat.context import ChatContext
from realtime.errors import UserError
from realtime.events import ConnectionDropped, ErrorReported, HandedOff, MessageCommitted, Reconnected, ReplyInterrupted
from realtime.testing import ManualClock

OLDER, NEWER = "gemini-2.5-flash-native-audio-latest", "gemini-3.8-live"
PICTURE = np.full((8, 8, 3), 200, np.uint8)
READY: list[Any] = [{"setupComplete": {}}]
DONE = {"serverContent": {"turnComplete": True}}


def said(text: str, ms: int = 0) -> list[Any]:
    messages: list[Any] = [{"serverContent": {"outputTranscription": {"text": text}}}]
    if ms:
        data = base64.b64encode(b"\1\2" * 24 * ms).decode()
        parts = [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": data}}]
        messages.append({"serverContent": {"modelTurn": {"parts": parts}}})
    return messages


def heard(text: str) -> dict[str, Any]:
    return {"serverContent": {"inputTranscription": {"text": text}}}


def saved(handle: str) -> dict[str, Any]:
    return {"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}}


def typed(text: str) -> dict[str, Any]:
    """A typed turn of the older generation."""

    def is_it(turns: Any) -> bool:
        return any(part.get("text") == text for turn in turns for part in turn["parts"])

    return {"clientContent": {"turns": is_it}}


def setup(handle: str | None = None, **more: Any) -> dict[str, Any]:
    return {"setup": {"sessionResumption": lambda given: given == ({"handle": handle} if handle else {}), **more}}


ASKED = {"clientContent": {"turnComplete": True}}


async def until(events: Any, kind: type[Any]) -> Any:
    async with asyncio.timeout(20):
        while not isinstance(event := await anext(events), kind):
            pass
    return event


async def listen(audio: Any) -> None:
    async for _ in audio:
        pass


def texts(session: RealtimeSession) -> list[tuple[str, str]]:
    return [(str(message.role), message.content) for message in session.all_messages()]


# -- pictures -----------------------------------------------------------------------------------------------------------


def has_picture(turns: Any) -> bool:
    return any(part.get("inlineData", {}).get("mimeType") == "image/jpeg" for turn in turns for part in turn["parts"])


async def test_a_picture_is_shown_with_its_question(provider):
    gemini = await provider(
        setup(), READY, {"clientContent": {"turns": has_picture}}, ASKED, [*said("A wall.", 20), DONE], binary=True
    )
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url)) as session:
        await session.send(["What is this?", PICTURE])
        await session.wait_for_reply()
    assert texts(session) == [("user", "What is this?"), ("assistant", "A wall.")]
    assert len(session.all_messages()[0].images) == 1


async def test_from_the_third_generation_on_a_picture_goes_before_the_text_that_is_answered_at_once(provider):
    gemini = await provider(
        setup(),
        READY,
        {"realtimeInput": {"video": {"mimeType": "image/jpeg"}}},
        {"realtimeInput": {"text": "What is this?"}},
        [*said("A wall.", 20), DONE],
        binary=True,
    )
    async with RealtimeSession(GeminiLive(NEWER, url=gemini.url)) as session:
        await session.send(["What is this?", PICTURE])
        await session.wait_for_reply()
    assert texts(session) == [("user", "What is this?"), ("assistant", "A wall.")]


# -- interruption, truncation, errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [OLDER, NEWER])
async def test_an_interrupted_reply_keeps_what_was_heard_and_nothing_is_cut_at_gemini(provider, model):
    """P1, B28, B29: Gemini can cut nothing, so nothing is asked of it."""
    speak = asyncio.Event()
    question = [{"realtimeInput": {"text": "Go."}}] if model == NEWER else [typed("Go."), ASKED]
    gemini = await provider(
        setup(),
        READY,
        *question,
        [*said("One two", 500), *said(" three four", 500)],
        speak,
        [{"serverContent": {"interrupted": True}}, heard("Stop."), DONE, *said("Yes.", 20), DONE],
        binary=True,
    )
    async with RealtimeSession(GeminiLive(model, url=gemini.url)) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("Go.")
        await anext(audio)
        await anext(audio)  # the first chunk was heard, the second is playing
        speak.set()
        cut = await until(events, ReplyInterrupted)
        listening = asyncio.create_task(listen(audio))
        while len(session.all_messages()) < 4:
            await until(events, MessageCommitted)
        listening.cancel()
    assert (cut.cause, cut.heard_ms, cut.heard, cut.unheard) == ("barge_in", 500, "One two", "three four")
    assert texts(session) == [("user", "Go."), ("assistant", "One two"), ("user", "Stop."), ("assistant", "Yes.")]
    assert session.all_messages()[1].interrupted
    assert not [event async for event in events if isinstance(event, ErrorReported)]


async def test_an_error_that_it_reports_is_an_event_and_the_talk_goes_on(provider):
    gemini = await provider(
        setup(),
        READY,
        typed("One"),
        ASKED,
        [{"error": {"code": 8, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}, *said("Yes.", 20), DONE],
        binary=True,
    )
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url)) as session:
        events = aiter(session)
        await session.send("One")
        reported = await until(events, ErrorReported)
        await session.wait_for_reply()
    assert (reported.error.code, reported.error.message) == ("RESOURCE_EXHAUSTED", "slow down")
    assert texts(session)[-1] == ("assistant", "Yes.")


# -- push-to-talk ---------------------------------------------------------------------------------------------------------


async def test_push_to_talk_marks_where_the_user_speaks(provider):
    gemini = await provider(
        setup(realtimeInputConfig={"automaticActivityDetection": {"disabled": True}}),
        READY,
        {"realtimeInput": {"activityStart": {}}},
        {"realtimeInput": {"activityEnd": {}}},
        [heard("Hello."), *said("Hi.", 20), DONE],
        binary=True,
    )
    manual = TurnDetection(mode="manual")
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url), turn_detection=manual) as session:
        await session.send_audio(bytes(6400))
        await session.commit_audio()
        await session.create_response()
        await session.wait_for_reply()
        with pytest.raises(UserError, match="supports_audio_clearing"):
            await session.clear_audio()
    assert texts(session) == [("user", "Hello."), ("assistant", "Hi.")]
    assert gemini.audio_bytes == 6400


# -- going away, resumption, expiry -----------------------------------------------------------------------------------------


async def test_before_it_goes_away_another_connection_takes_up_the_conversation(provider):
    """L3, B34: with the newest handle, the new socket before the old is broken."""
    first: list[Any] = [*said("Yes.", 20), DONE, saved("h1"), saved("h2"), {"goAway": {"timeLeft": "50s"}}]
    gemini = await provider(setup(), READY, typed("One"), ASKED, first, binary=True)
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url)) as session:
        events = aiter(session)
        gemini.steps += [None, setup("h2"), READY, typed("Two"), ASKED, [*said("Yes again.", 20), DONE]]
        await session.send("One")
        await session.wait_for_reply()
        dropped = await until(events, ConnectionDropped)
        back = await until(events, Reconnected)
        await session.send("Two")
        await session.wait_for_reply()
    assert dropped.will_retry
    assert "deadline" in dropped.reason
    assert back.state_restored
    assert back.gap_ms < 1000
    assert len(gemini.paths) == 2
    assert [text for _, text in texts(session)] == ["One", "Yes.", "Two", "Yes again."]


async def test_what_came_after_the_handle_is_told_again_where_that_can_be_done_quietly(provider):
    """L1: a handle stands for the conversation as it was."""
    first: list[Any] = [*said("Yes.", 20), DONE, saved("h1")]
    second: list[Any] = [*said("Two it is.", 20), DONE]
    gemini = await provider(
        setup(), READY, typed("One"), ASKED, first, typed("Two"), ASKED, second, "the line breaks", binary=True
    )
    gemini.steps += [setup("h1"), READY, typed("Two"), typed("Two it is.")]
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url)) as session:
        events = aiter(session)
        for text in ("One", "Two"):
            await session.send(text)
            await session.wait_for_reply()
        back = await until(events, Reconnected)
        await gemini.done()
    assert back.state_restored
    assert [text for _, text in texts(session)] == ["One", "Yes.", "Two", "Two it is."]


async def test_where_it_cannot_be_told_quietly_an_old_handle_is_left_and_the_history_told(provider):
    first: list[Any] = [*said("Yes.", 20), DONE, saved("h1")]
    gemini = await provider(
        setup(),
        READY,
        {"realtimeInput": {"text": "One"}},
        first,
        {"realtimeInput": {"text": "Two"}},
        [*said("Two it is.", 20), DONE],
        "the line breaks",
        binary=True,
    )
    gemini.steps += [
        setup(historyConfig={"initialHistoryInClientContent": True}),
        READY,
        *[typed(text) for text in ("One", "Yes.", "Two", "Two it is.")],
        ASKED,
    ]
    async with RealtimeSession(GeminiLive(NEWER, url=gemini.url)) as session:
        events = aiter(session)
        for text in ("One", "Two"):
            await session.send(text)
            await session.wait_for_reply()
        back = await until(events, Reconnected)
        await gemini.done()
    assert back.state_restored


@pytest.mark.parametrize("refusal", [1008, [{"error": {"status": "NOT_FOUND", "message": "no such session"}}]])
async def test_a_handle_that_is_refused_is_followed_by_the_whole_history(provider, refusal):
    gemini = await provider(
        setup(), READY, typed("One"), ASKED, [*said("Yes.", 20), DONE, saved("h1")], 1011, binary=True
    )
    refused = [refusal] if isinstance(refusal, int) else [refusal, asyncio.Event()]
    del refused[1:]
    gemini.steps += [setup("h1"), *refused]
    if not isinstance(refusal, int):
        gemini.steps.append("it hangs up")
    gemini.steps += [setup(), READY, typed("One"), typed("Yes.")]
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url)) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        back = await until(events, Reconnected)
        await gemini.done()
    assert back.state_restored
    assert len(gemini.paths) == 3


async def test_a_connection_is_renewed_before_its_ten_minutes_are_over(provider):
    gemini = await provider(setup(), READY, typed("One"), ASKED, [*said("Yes.", 20), DONE, saved("h1")], binary=True)
    gemini.steps += [None, setup("h1"), READY]
    clock = ManualClock()
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url), clock=clock) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        await clock.run(539.0)
        assert len(gemini.paths) == 1
        await clock.run(2.0)
        back = await until(events, Reconnected)
    assert back.state_restored
    assert len(gemini.paths) == 2


# -- hand-off, tools ----------------------------------------------------------------------------------------------------------


async def test_another_agent_needs_another_connection_and_gets_it(provider):
    """A connection of Gemini's cannot be configured anew: the conversation goes on in another one."""
    gemini = await provider(setup(), READY, typed("One"), ASKED, [*said("Yes.", 20), DONE], binary=True)
    new = setup(systemInstruction={"parts": lambda parts: parts[0]["text"] == "You are B."})
    gemini.steps += [None, new, READY, typed("One"), typed("Yes."), typed("Who?"), ASKED, [*said("B.", 20), DONE]]
    model = GeminiLive(OLDER, url=gemini.url)
    async with RealtimeSession(
        model, instructions="You are A.", agents=[Agent(id="b", instructions="You are B.")]
    ) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        await session.hand_off("b")
        await until(events, HandedOff)
        back = await until(events, Reconnected)
        await session.send("Who?")
        await session.wait_for_reply()
    assert back.state_restored
    assert [text for _, text in texts(session)] == ["One", "Yes.", "Who?", "B."]
    assert not [event async for event in events if isinstance(event, ErrorReported)]


async def test_a_call_whose_connection_went_away_is_told_as_text_and_answered(provider):
    """B04, B35: the tool runs once, and its result reaches the next connection."""
    gate = asyncio.Event()
    runs: list[int] = []

    async def look_up() -> str:
        """Look something up."""
        runs.append(1)
        await gate.wait()
        return "fog"

    call = {"toolCall": {"functionCalls": [{"id": "c1", "name": "look_up", "args": {}}]}}
    gemini = await provider(setup(), READY, typed("Weather?"), ASKED, [call], "the line breaks", binary=True)
    gemini.steps += [
        setup(),
        READY,
        typed("Weather?"),
        typed("[called look_up({})]"),
        typed("[look_up gave: fog]"),
        ASKED,
        [*said("Fog.", 20), DONE],
    ]
    tools = [Tool(look_up)]
    policy = ReconnectPolicy(first_delay_seconds=0.01)
    async with RealtimeSession(GeminiLive(OLDER, url=gemini.url), tools=tools, reconnect=policy) as session:
        events = aiter(session)
        await session.send("Weather?")
        await until(events, ConnectionDropped)
        gate.set()
        await session.wait_for_reply()
    assert runs == [1]
    assert [text for _, text in texts(session)] == ["Weather?", "", "fog", "Fog."]


async def test_an_earlier_conversation_is_told_before_anything_is_asked(provider):
    context = ChatContext()
    context.add_message("system", "Be brief.")
    context.add_message("user", "My name is Ann.")
    context.add_message("assistant", "Hello Ann.")
    gemini = await provider(
        setup(
            historyConfig={"initialHistoryInClientContent": True},
            systemInstruction={"parts": lambda parts: "Be brief." in parts[0]["text"]},
        ),
        READY,
        typed("My name is Ann."),
        typed("Hello Ann."),
        ASKED,
        {"realtimeInput": {"text": "My name?"}},
        [*said("Ann.", 20), DONE],
        binary=True,
    )
    async with RealtimeSession(GeminiLive(NEWER, url=gemini.url), context=context) as session:
        await session.send("My name?")
        await session.wait_for_reply()
    assert [message.content for message in session.new_messages()] == ["My name?", "Ann."]
