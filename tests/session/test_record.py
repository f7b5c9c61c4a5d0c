"""`session.record` and `realtime.testing.replay`: the same events and context, byte for byte."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from aiortc.codecs.vpx import Vp8Encoder
from av import VideoFrame

from realtime import Agent, ChatContext, ContextWindow, FrameSampling, RealtimeSession
from realtime.chat.messages import ChatRole, ImageContent
from realtime.core.commands import AppendAudio
from realtime.errors import ArgumentError, SessionClosed, UserError
from realtime.events import ErrorReported, FrameKept, FrameSkipped, SessionEnded, TrackEnded
from realtime.pipelines.record import MAGIC
from realtime.testing import FakeTrack, Replay, ReplayError, openai_script, replay
from realtime.testing.replay import describe
from realtime.tracks.encoded_video import EncodedFrame
from realtime.tracks.picture_decoder import ChainedFrame, FrameChain, UndecodedFrame

JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffc4001400010000000000000000000000000000000000ffda"
    "0008010100003f00d2cf20ffd9"
)


class Everything:
    """What an iterator of the session got, from its beginning."""

    def __init__(self, session: RealtimeSession) -> None:
        self.events: list[Any] = []
        self._reading = asyncio.create_task(self._read(aiter(session)))

    async def _read(self, stream: Any) -> None:
        async for event in stream:
            self.events.append(event)

    async def finished(self) -> list[Any]:
        await asyncio.wait({self._reading})
        return self.events


async def play(path: Any, **options: Any) -> Replay:
    """A replay reads a file: not on the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: replay(path, **options))


async def read(path: Any) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(None, path.read_bytes)


async def write(path: Any, data: bytes) -> None:
    await asyncio.get_running_loop().run_in_executor(None, path.write_bytes, data)


def dumped(context: ChatContext) -> bytes:
    return json.dumps(context.to_dict(), sort_keys=True, ensure_ascii=False).encode()


async def assert_same(path: Any, events: list[Any], session: RealtimeSession, **options: Any) -> Any:
    """Byte for byte; the iterator began after the opening, so the replay may know more before it."""
    again = await play(path, **options)
    lines = [describe(event) for event in again.events]
    assert lines[len(lines) - len(events) :] == [describe(event) for event in events]
    assert isinstance(again.events[-1], SessionEnded)
    assert dumped(again.context) == dumped(session.context)
    assert [describe(message) for message in again.messages] == [describe(one) for one in session.all_messages()]
    assert again.is_whole
    assert again.statistics == session.statistics().machine
    return again


async def a_full_call(obliging: Any, tool_call: Any, path: Any, *, begin: str) -> tuple[RealtimeSession, list[Any]]:
    """Text, sound, pictures of both ways in, a tool that fails, a barge-in, a hand-off, a drop, and a fault of a shell."""

    def add(a: int, b: int) -> int:
        return a + b

    def fails() -> str:
        raise ValueError("broken")

    model = obliging("Hello there.", tool_call("add", '{"a": 1, "b": 2}'), "Three.", tool_call("fails", "{}", "call_2"))
    context = ChatContext.empty()
    context.add_message(ChatRole.USER, "before", images=[ImageContent.from_bytes(JPEG, "image/jpeg")])
    session = RealtimeSession(
        model,
        context=context,
        tools=[add, fails],
        agents=[Agent(id="desk", instructions="Book.")],
        audio_retention="all",
        retain_images_max=2,
        sampling=FrameSampling(fps_idle=10, min_change=0),
        window=ContextWindow(max_tokens=3_000),
    )
    if begin == "before":
        session.record(path)
    async with session:
        if begin == "after":
            session.record(path)
        heard = Everything(session)
        await session.send("Hi")
        await session.wait_for_reply()
        camera = FakeTrack.video(seconds=0.5)
        ended = aiter(session)
        session.add_track(camera)
        await session.send_audio(b"\x01\x00" * 12_000)
        await model.hears_audio(24_000)
        await session.send_audio(b"\x01\x00" * 12_000)  # which goes to the socket as it comes
        while not isinstance(await anext(ended), TrackEnded):
            pass
        await session.send("One and two?")
        await session.wait_for_reply()
        await session.send("And the other one?")
        await session.wait_for_reply()
        await session.hand_off("desk", reason="a table")
        await model.say(["this is no JSON"])
        await model.say(openai_script.user_speech("spoken_1", previous_item_id=model._last_item))
        await model.say(openai_script.user_transcript("spoken_1", "Grüße, 你好"))
        await session.send([ImageContent.from_bytes(JPEG, "image/jpeg"), "and this?"])
        await session.wait_for_reply()
        model.pair.drop()
        await model.hears("session.update", times=3)
        await session.send("Still there?")
        await session.wait_for_reply()
    return session, await heard.finished()


@pytest.mark.parametrize("begin", ["before", "after"])
async def test_a_call_is_played_again_byte_for_byte(obliging, tool_call, tmp_path, begin):
    path = tmp_path / "call.rec"
    session, events = await a_full_call(obliging, tool_call, path, begin=begin)
    again = await assert_same(path, events, session)
    assert len(again.events) >= again.checked_events > 40
    errors = [event for event in again.events if isinstance(event, ErrorReported)]
    assert any(str(event.error) == "broken" for event in errors)
    assert (await read(path)).startswith(MAGIC)
    assert [message.content for message in again.messages][:2] == ["before", "Hi"]
    assert b'"at_once":true' in await read(path)  # sound that went to the socket as it came is among it
    sound = b"".join(command.pcm for command in again.commands if isinstance(command, AppendAudio))
    assert sound[:48_000] == b"\x01\x00" * 24_000


def undecoded(number: int, shade: int) -> UndecodedFrame:
    """A frame as it came over the wire: a key frame and no more."""
    encoder: Any = Vp8Encoder()
    made = VideoFrame.from_ndarray(np.full((48, 64, 3), shade, np.uint8), format="rgb24").reformat(format="yuv420p")
    made.pts, made.time_base = number * 3_000, Fraction(1, 90_000)
    payloads, _ = encoder.encode(made, force_keyframe=True)
    encoded = EncodedFrame(timestamp=0, payloads=tuple(payloads), is_key=True)
    return UndecodedFrame(FrameChain("vp8", [ChainedFrame(encoded, number * 3_000, 0.0)]), (64, 48))


async def test_what_a_frame_showed_when_it_was_decoded_is_in_the_recording(obliging, tmp_path):
    """I4: of two held frames the one that shows nothing new is not sent, in the call and in its replay."""
    sampling = FrameSampling(fps_idle=0.01, fps_speaking=0.01, max_age_seconds=60)
    session = RealtimeSession(obliging(), sampling=sampling)
    session.record(tmp_path / "call.rec")
    async with session:
        heard, events = Everything(session), aiter(session)
        runtime: Any = session._runtime

        async def outcome() -> str:
            while not isinstance(event := await anext(events), (FrameKept, FrameSkipped)):
                pass
            return event.reason

        def hear(*, speaking: bool) -> None:
            runtime.driver.step(
                lambda machine, now: machine.receive_voice_activity(speaking=speaking, ago_ms=0, now=now)
            )

        runtime.video.add("camera")
        runtime.video.receive("camera", undecoded(0, 100))
        outcomes = [await outcome()]
        for number, shade in ((1, 100), (2, 200), (3, 200)):
            hear(speaking=True)
            runtime.video.receive("camera", undecoded(number, shade))
            hear(speaking=False)
            outcomes.append(await outcome())
        assert outcomes == ["first", "unchanged", "end_of_turn", "unchanged"]
    again = await assert_same(tmp_path / "call.rec", await heard.finished(), session)
    assert again.statistics.frames_kept == {"first": 1, "end_of_turn": 1}


async def test_a_replay_is_the_same_each_time(obliging, tool_call, tmp_path):
    path = tmp_path / "call.rec"
    await a_full_call(obliging, tool_call, path, begin="before")
    one, other = await play(path), await play(path)
    assert [describe(event) for event in one.events] == [describe(event) for event in other.events]
    assert one.commands == other.commands
    assert one.statistics == other.statistics


async def test_a_recording_of_a_process_that_died_is_played_as_far_as_it_goes(obliging, tool_call, tmp_path):
    """Whatever byte it ends with."""
    path = tmp_path / "call.rec"
    await a_full_call(obliging, tool_call, path, begin="before")
    whole, full = await read(path), await play(path)
    lines = [describe(event) for event in full.events]
    cut = tmp_path / "cut.rec"
    first = whole.index(b'{"call"')
    for length in range(first, len(whole), max(1, len(whole) // 150)):
        await write(cut, whole[:length])
        again = await play(cut)
        assert not again.is_whole
        assert [describe(event) for event in again.events] == lines[: len(again.events)]


async def test_what_the_core_does_otherwise_is_found(obliging, tmp_path, monkeypatch):
    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging("one two three"))
    session.record(path)
    async with session:
        await session.send("Hi")
        await session.wait_for_reply()
    await play(path)
    other = ErrorReported(error=KeyError(), where="x")
    monkeypatch.setattr("realtime.core.replies.ReplyStarted", lambda **_: other)
    with pytest.raises(ReplayError, match="not all what they were"):
        await play(path)
    assert (await play(path, check=False)).events


@pytest.mark.parametrize("content", [b"", b"RIFF....WAVE", b"realtime recording 2\n", MAGIC])
def test_what_is_no_recording_is_refused(tmp_path, content):
    path = tmp_path / "other.rec"
    path.write_bytes(content)
    with pytest.raises(UserError, match="recording"):
        replay(path)


def test_damage_in_the_middle_is_said(tmp_path):
    path = tmp_path / "other.rec"
    path.write_bytes(MAGIC + b"{not json\n")
    with pytest.raises(UserError, match="damaged"):
        replay(path)


@pytest.mark.parametrize(
    "entry",
    [{"call": "__init__", "args": [], "kwargs": {}}, {"call": "_close", "args": [None], "kwargs": {}}, {"eval": "1"}],
)
async def test_a_recording_runs_nothing_but_the_entrances(obliging, tmp_path, entry):
    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging())
    session.record(path)
    async with session:
        pass
    opening = (await read(path)).split(b'{"call"')[0]
    await write(path, opening + json.dumps(entry).encode() + b"\n")
    with pytest.raises(UserError, match="knows no"):
        await play(path)


async def test_values_of_unknown_classes_are_refused(obliging, tmp_path):
    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging())
    session.record(path)
    async with session:
        pass
    opening = (await read(path)).split(b'{"call"')[0]
    for value in ({"$": "Popen", "args": "x"}, {"$eval": "1"}):
        entry = {"call": "receive_model_event", "args": [value], "kwargs": {"now": 0.0}}
        await write(path, opening + json.dumps(entry).encode() + b"\n")
        with pytest.raises(UserError, match="knows no"):
            await play(path)


# -- when and where -----------------------------------------------------------------------------------------------------


async def test_a_recording_begins_with_the_session(obliging, tmp_path):
    async with RealtimeSession(obliging("Yes.")) as session:
        await session.send("Hi")
        with pytest.raises(UserError, match="before anything is said"):
            session.record(tmp_path / "late.rec")
        assert not (tmp_path / "late.rec").exists()
    with pytest.raises(SessionClosed):
        session.record(tmp_path / "late.rec")


@pytest.mark.parametrize("begin", ["before", "after"])
async def test_it_is_recorded_once(obliging, tmp_path, begin):
    session = RealtimeSession(obliging())
    if begin == "before":
        session.record(tmp_path / "one.rec")
    async with session:
        if begin == "after":
            session.record(tmp_path / "one.rec")
        with pytest.raises(UserError, match="already"):
            session.record(tmp_path / "two.rec")
    assert (await play(tmp_path / "one.rec")).is_whole


async def test_a_path_that_cannot_be_is_refused_and_nothing_is_left(obliging, tmp_path):
    with pytest.raises(ArgumentError, match="path"):
        RealtimeSession(obliging()).record(7)
    async with RealtimeSession(obliging("Yes.")) as session:
        with pytest.raises(UserError, match="cannot be written"):
            session.record(tmp_path / "no" / "such" / "folder.rec")
        session.record(tmp_path / "good.rec")
    session = RealtimeSession(obliging(), context=(context := ChatContext.empty()))
    session.record(tmp_path / "no" / "such" / "folder.rec")
    with pytest.raises(UserError, match="cannot be written"):
        async with session:
            pytest.fail("it began")
    context.add_message(ChatRole.USER, "the context is free")


async def test_a_counter_of_the_applications_own_is_asked_for(obliging, tmp_path):
    def count(text: str) -> int:
        return len(text)

    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging("Yes."), window=ContextWindow(max_tokens=500, counter=count))
    session.record(path)
    async with session:
        heard = Everything(session)
        await session.send("Hi")
        await session.wait_for_reply()
    with pytest.raises(UserError, match="counter="):
        await play(path)
    await assert_same(path, await heard.finished(), session, counter=count)


async def test_a_summary_is_in_the_recording_and_not_made_again(obliging, tmp_path):
    class Digest:
        calls = 0

        async def summarize(self, messages: Any) -> str:
            Digest.calls += 1
            return "They greeted."

    path = tmp_path / "call.rec"
    window = ContextWindow(max_tokens=30, keep_recent_turns=1, summary_llm=Digest())
    session = RealtimeSession(obliging(*["word " * 8] * 6), window=window)
    session.record(path)
    async with session:
        heard = Everything(session)
        for _ in range(6):
            await session.send("word " * 8)
            await session.wait_for_reply()
    made = Digest.calls
    assert made
    again = await assert_same(path, await heard.finished(), session)
    assert Digest.calls == made
    assert any(message.summary for message in again.context.messages()) or again.statistics.messages_summarized


async def test_a_disk_that_fails_ends_the_recording_and_not_the_session(obliging, tmp_path, monkeypatch):
    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging("One.", "Two.", "Three."))
    session.record(path)
    async with session:
        heard = Everything(session)
        recorder = session._runtime._tap.recorder
        recorder._failure = OSError(28, "No space left on device")
        await session.send("Hi")
        await session.wait_for_reply()
        await session.send("Hi again")
        await session.wait_for_reply()
    faults = [event for event in await heard.finished() if isinstance(event, ErrorReported)]
    assert [(event.where, "No space left" in str(event.error)) for event in faults] == [("record", True)]
    assert not (await play(path)).is_whole
    assert session.all_messages()[-1].content == "Two."


async def test_a_disk_that_is_too_slow_ends_the_recording_and_holds_nothing_up(obliging, tmp_path, monkeypatch):
    monkeypatch.setattr("realtime.pipelines.record._MOST_WAITING_BYTES", 20_000)
    path = tmp_path / "call.rec"
    session = RealtimeSession(obliging("One."))
    session.record(path)
    async with session:
        heard = Everything(session)
        await session.send_audio(bytes(200_000))
        await session.send("Hi")
        await session.wait_for_reply()
    faults = [event for event in await heard.finished() if isinstance(event, ErrorReported)]
    assert [event.where for event in faults] == ["record"]
    assert not (await play(path)).is_whole
