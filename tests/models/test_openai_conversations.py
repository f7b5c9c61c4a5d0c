"""Whole conversations in OpenAI's protocol by script, through a session over a real socket: what the recordings lack.

Each is had with OpenAI, with Azure and with Voice Live, whose event names and session are the older ones.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from realtime import AzureRealtime, OpenAIRealtime, RealtimeSession, ReconnectPolicy, Tool, TurnDetection
from realtime.events import (
    ConnectionDropped,
    ErrorReported,
    InputRejected,
    MessageCommitted,
    Reconnected,
    ReplyInterrupted,
)
from realtime.models import AzureVoiceLive
from realtime.testing import ManualClock
from realtime.testing import openai_script as script
from realtime.wire.openai_server_events import OLDER_NAMES

PICTURE = np.full((8, 8, 3), 200, np.uint8)
RESPOND = {"type": "response.create"}
_OLDER = {new: old for old, new in OLDER_NAMES.items()}


class Dialect:
    """One provider of the protocol."""

    def __init__(self, make: Any, *, older: bool = False) -> None:
        self.make, self.older = make, older

    def says(self, *parts: Any) -> list[Any]:
        """Server messages, in this provider's names."""
        messages = [message for part in parts for message in part]
        if not self.older:
            return messages
        return [{**message, "type": _OLDER.get(message["type"], message["type"])} for message in messages]

    def hello(self, **more: Any) -> list[Any]:
        """Each step of a handshake."""
        return [script.session_created(**more), {"type": "session.update"}, script.session_updated()]

    def audio_of(self, session: dict[str, Any]) -> Any:
        """Turn detection, wherever it stands."""
        return session["turn_detection"] if self.older else session["audio"]["input"]["turn_detection"]


DIALECTS = {
    "openai": Dialect(lambda url: OpenAIRealtime(url=url, api_key="k")),
    "azure": Dialect(lambda url: AzureRealtime("voice", url=url, api_key="k")),
    "voice live": Dialect(lambda url: AzureVoiceLive(url=url, api_key="k"), older=True),
}


@pytest.fixture(params=DIALECTS, ids=str)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


def asks(text: str) -> dict[str, Any]:
    return {"type": "conversation.item.create", "item": {"content": lambda parts: parts[0]["text"] == text}}


def echo(heard: list[Any]) -> list[Any]:
    """The item that was created last joined the conversation."""
    items = [message["item"] for message in heard if message["type"] == "conversation.item.create"]
    return script.item_created(items[-1], items[-2]["id"] if len(items) > 1 else None)


async def until(events: Any, kind: type[Any]) -> Any:
    async with asyncio.timeout(20):
        while not isinstance(event := await anext(events), kind):
            pass
    return event


async def listen(audio: Any) -> None:
    async for _ in audio:
        pass


def texts(session: RealtimeSession) -> list[str]:
    return [message.content for message in session.all_messages()]


# -- pictures -----------------------------------------------------------------------------------------------------------


async def test_a_picture_goes_as_data_beside_its_question(provider, dialect):
    def shows(parts: Any) -> bool:
        return parts[0]["text"] == "What is this?" and parts[1]["image_url"].startswith("data:image/jpeg;base64,")

    asked = {"type": "conversation.item.create", "item": {"role": "user", "content": shows}}
    reply = dialect.says(script.spoken_reply("r1", "a1", "A wall.", bytes(960)))
    one = await provider(*dialect.hello(), asked, echo, RESPOND, reply)
    async with RealtimeSession(dialect.make(one.url)) as session:
        await session.send(["What is this?", PICTURE])
        await session.wait_for_reply()
    assert texts(session) == ["What is this?", "A wall."]
    assert len(session.all_messages()[0].images) == 1


# -- interruption, truncation -------------------------------------------------------------------------------------------


async def test_an_interrupted_reply_is_cut_at_the_provider_to_what_was_heard(provider, dialect):
    """P1, P2, B28: by proportion at a word border, and marked."""
    speak = asyncio.Event()
    begun = dialect.says(
        script.spoken_reply("r1", "a1", "One two three four", bytes(48_000), chunk_bytes=24_000, done=False)
    )
    speech = dialect.says(script.user_speech("u1", previous_item_id="a1"), script.user_transcript("u1", "Stop."))
    cut = {"type": "conversation.item.truncate", "item_id": "a1", "content_index": 0, "audio_end_ms": 500}
    rest = dialect.says(
        script.response_done("r1", status="cancelled", reason="turn_detected"),
        script.spoken_reply("r2", "a2", "Yes.", bytes(960), previous_item_id="u1"),
    )
    one = await provider(*dialect.hello(), asks("Go."), echo, RESPOND, begun, speak, speech, cut, rest)
    async with RealtimeSession(dialect.make(one.url)) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("Go.")
        await anext(audio)
        await anext(audio)  # the first chunk was heard, the second is playing
        speak.set()
        interrupted = await until(events, ReplyInterrupted)
        listening = asyncio.create_task(listen(audio))
        while len(session.all_messages()) < 4:
            await until(events, MessageCommitted)
        listening.cancel()
    assert (interrupted.heard_ms, interrupted.heard, interrupted.unheard) == (500, "One two", "three four")
    assert texts(session) == ["Go.", "One two", "Stop.", "Yes."]
    assert session.all_messages()[1].interrupted


@pytest.mark.parametrize("played_ms", [0, 1000, 2650, 9100])
async def test_a_cut_is_never_beyond_what_was_received(provider, dialect, played_ms):
    """B29: 2,650 ms came at once and 9.1 s passed; the last chunk was odd; all heard means that nothing is sent."""
    pcm = bytes(2650 * 48 + 1)
    begun = dialect.says(script.spoken_reply("r1", "a1", "One two three four", pcm, chunk_bytes=9601, done=False))
    cancelled = dialect.says(script.response_done("r1", status="cancelled", reason="client_cancelled"))
    cut: list[Any] = []
    if played_ms == 0:
        cut = [{"type": "conversation.item.delete", "item_id": "a1"}]
    elif played_ms < 2650:
        cut = [{"type": "conversation.item.truncate", "item_id": "a1", "audio_end_ms": played_ms}]
    else:
        cut = [{"type": "conversation.item.truncate", "item_id": "a1", "audio_end_ms": 2650}]
    one = await provider(
        *dialect.hello(), asks("Go."), echo, RESPOND, begun, *cut, {"type": "response.cancel"}, cancelled
    )
    async with RealtimeSession(dialect.make(one.url)) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("Go.")
        received = 0
        while received < 2650 * 48 - 4800:
            received += len(await anext(audio))
        await session.interrupt(played_ms=played_ms)
        interrupted = await until(events, ReplyInterrupted)
        turn = await session.wait_for_reply()
        await one.done()
    assert interrupted.heard_ms == min(played_ms, 2650)
    assert turn.interrupted
    assert (texts(session) == ["Go."]) == (played_ms == 0)


async def test_a_cut_that_the_provider_refuses_is_no_end(provider, dialect):
    """B29: such an error is told and not fatal."""
    begun = dialect.says(script.spoken_reply("r1", "a1", "One two", bytes(48_000), chunk_bytes=24_000, done=False))
    cut = {"type": "conversation.item.truncate", "item_id": "a1"}
    one = await provider(*dialect.hello(), asks("Go."), echo, RESPOND, begun, cut, {"type": "response.cancel"})
    one.steps += [
        lambda heard: script.error("invalid_value", "Audio content is shorter", cause=heard[-2]["event_id"]),
        dialect.says(script.response_done("r1", status="cancelled", reason="client_cancelled")),
        asks("Still there?"),
        echo,
        RESPOND,
        dialect.says(script.spoken_reply("r2", "a2", "Yes.", bytes(960))),
    ]
    async with RealtimeSession(dialect.make(one.url)) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("Go.")
        await anext(audio)
        await anext(audio)
        await session.interrupt()
        reported = await until(events, ErrorReported)
        await session.wait_for_reply()
        listening = asyncio.create_task(listen(audio))
        await session.send("Still there?")
        await session.wait_for_reply()
        listening.cancel()
    assert reported.error.code == "invalid_value"
    assert texts(session) == ["Go.", "One", "Still there?", "Yes."]


# -- errors -----------------------------------------------------------------------------------------------------------------


async def test_an_error_is_the_failure_of_the_message_that_caused_it(provider, dialect):
    """L6, B32: by its event id, at once; one without an id is told."""
    one = await provider(
        *dialect.hello(),
        asks("Bad"),
        lambda heard: script.error("invalid_value", "not so", cause=heard[-1]["event_id"]),
        asks("Good"),
        echo,
        RESPOND,
        dialect.says(script.error("server_error", "hiccup"), script.spoken_reply("r1", "a1", "Hello.", bytes(960))),
    )
    async with RealtimeSession(dialect.make(one.url)) as session:
        events = aiter(session)
        await session.send("Bad", respond=False)
        rejected = await until(events, InputRejected)
        await session.send("Good")
        await session.wait_for_reply()
        reported = [event.error.code async for event in _so_far(events) if isinstance(event, ErrorReported)]
    assert "not so" in rejected.reason
    assert texts(session) == ["Good", "Hello."]
    assert reported == ["invalid_value", "server_error"]


async def _so_far(events: Any) -> Any:
    while True:
        try:
            async with asyncio.timeout(0.2):
                yield await anext(events)
        except TimeoutError:
            return


async def test_a_response_refused_because_one_runs_is_asked_for_again_when_it_ends(provider, dialect):
    """B31: the wish is not lost."""
    one = await provider(
        *dialect.hello(),
        asks("One"),
        echo,
        RESPOND,
        lambda heard: [
            *script.error("conversation_already_has_active_response", "busy", cause=heard[-1]["event_id"]),
            *dialect.says(script.spoken_reply("r0", "a0", "Server's own.", bytes(960))),
        ],
        RESPOND,
        dialect.says(script.spoken_reply("r1", "a1", "Yes.", bytes(960))),
    )
    async with RealtimeSession(dialect.make(one.url)) as session:
        events = aiter(session)
        await session.send("One")
        while "Yes." not in texts(session):
            await until(events, MessageCommitted)
    assert texts(session) == ["One", "Server's own.", "Yes."]


# -- push-to-talk ---------------------------------------------------------------------------------------------------------------


async def test_push_to_talk_commits_and_asks_in_this_order(provider, dialect):
    spoken = dialect.says(script.user_speech("u1")[2:], script.user_transcript("u1", "Hello."))
    one = await provider(
        *dialect.hello(),
        {"type": "input_audio_buffer.commit"},
        spoken,
        RESPOND,
        dialect.says(script.spoken_reply("r1", "a1", "Hi.", bytes(960), previous_item_id="u1")),
    )
    async with RealtimeSession(dialect.make(one.url), turn_detection=TurnDetection(mode="manual")) as session:
        await session.send_audio(bytes(9600))
        await session.commit_audio()
        await session.create_response()
        await session.wait_for_reply()
    assert dialect.audio_of(one.heard[0]["session"]) is None
    assert texts(session) == ["Hello.", "Hi."]
    assert one.audio_bytes == 9600


# -- expiry, drops ----------------------------------------------------------------------------------------------------------------


async def test_before_its_end_a_connection_is_renewed_and_the_conversation_goes_on(provider, dialect):
    """L3, B34: at a quiet moment, the new socket before the old, the conversation told, nobody greeted."""
    answered = dialect.says(script.spoken_reply("r1", "a1", "Yes.", bytes(960)))
    wall = 1_700_000_000
    one = await provider(*dialect.hello(expires_at=wall + 1000), asks("One"), echo, RESPOND, answered, None)
    one.steps += [
        *dialect.hello(expires_at=wall + 3000),
        asks("One"),
        echo,
        asks("Yes."),
        echo,
        asks("Two"),
        echo,
        RESPOND,
        dialect.says(script.spoken_reply("r2", "a2", "Still.", bytes(960))),
    ]
    clock = ManualClock(wall=float(wall))
    async with RealtimeSession(dialect.make(one.url), clock=clock) as session:
        events = aiter(session)
        await session.send("One")
        await session.wait_for_reply()
        await clock.run(930.0)
        assert len(one.paths) == 1
        await clock.run(15.0)
        dropped, back = await until(events, ConnectionDropped), await until(events, Reconnected)
        await session.send("Two")
        await session.wait_for_reply()
    assert "deadline" in dropped.reason
    assert (back.state_restored, back.gap_ms) == (True, 0)
    assert texts(session) == ["One", "Yes.", "Two", "Still."]


@pytest.mark.parametrize("end", [1001, 1011, "the line breaks"])
async def test_a_session_that_ends_in_mid_reply_comes_back_with_all_that_was_said(provider, dialect, end):
    """L1, B34–B36: the reply is settled as interrupted, the tool round told natively, and the talk goes on."""
    calls = dialect.says(script.tool_call("r1", "f1", "c1", "look_up", "{}"))
    reply = dialect.says(script.spoken_reply("r2", "a1", "It is foggy.", bytes(9600), done=False))
    expired = script.error("session_expired", "60 minutes") if end == 1001 else []
    one = await provider(*dialect.hello(), asks("Weather?"), echo, RESPOND, calls)
    one.steps += [
        {"type": "conversation.item.create", "item": {"type": "function_call_output", "output": "fog"}},
        echo,
        RESPOND,
        [*reply, *expired],
        end,
        *dialect.hello(),
        asks("Weather?"),
        echo,
        {"type": "conversation.item.create", "item": {"type": "function_call", "call_id": "c1"}},
        echo,
        {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c1"}},
        echo,
        {
            "type": "conversation.item.create",
            "item": {
                "role": "assistant",
                "content": lambda parts: parts[0]["type"] == ("text" if dialect.older else "output_text"),
            },
        },
        echo,
        asks("And now?"),
        echo,
        RESPOND,
        dialect.says(script.spoken_reply("r3", "a3", "Sun.", bytes(960))),
    ]

    def look_up() -> str:
        """Look up the weather."""
        return "fog"

    policy = ReconnectPolicy(first_delay_seconds=0.01)
    async with RealtimeSession(dialect.make(one.url), tools=[Tool(look_up)], reconnect=policy) as session:
        events = aiter(session)
        await session.send("Weather?")
        cut = await until(events, ReplyInterrupted)
        back = await until(events, Reconnected)
        await session.send("And now?")
        while "Sun." not in texts(session):
            await until(events, MessageCommitted)
    assert cut.cause == "connection"
    assert back.state_restored
    assert texts(session)[:3] == ["Weather?", "", "fog"]
    assert session.all_messages()[3].interrupted
    assert texts(session)[-2:] == ["And now?", "Sun."]
