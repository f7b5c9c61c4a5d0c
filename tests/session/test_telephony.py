"""A telephone call in a session: the caller's voice in, the reply out, keys, marks, hang-ups (A1, P0–P3), on real sockets."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import numpy as np
import pytest
import websockets
from websockets.asyncio.server import ServerConnection, serve

from realtime import RealtimeSession, TelephonyStream
from realtime.errors import ArgumentError, LinkLost, SessionClosed, UserError
from realtime.events import DtmfReceived, ReplyInterrupted, SessionEnded, TrackEnded, TranscriptUpdated, TurnCompleted
from realtime.media import g711
from realtime.testing import ManualClock, MemoryPair, ScriptedPhone, openai_script

TONE = array("h", (round(8_000 * math.sin(math.tau * 440 * n / 8_000)) for n in range(8_000))).tobytes()
"""One second at 8 kHz."""


async def until(events: Any, kind: type[Any]) -> Any:
    while not isinstance(event := await anext(events), kind):
        pass
    return event


async def said_by_the_model(events: Any) -> None:
    """Wait until all of a reply has been made."""
    while not ((event := await until(events, TranscriptUpdated)).final and event.role == "assistant"):
        pass


@asynccontextmanager
async def calls(answer: Callable[[TelephonyStream], Awaitable[None]]) -> AsyncIterator[Callable[..., Any]]:
    """A server that answers calls; gives what calls it. A fault in answering fails the test."""
    faults: list[BaseException] = []

    async def handle(websocket: ServerConnection) -> None:
        try:
            await answer(await TelephonyStream.open(websocket))
        except BaseException as error:
            faults.append(error)
            raise

    async with AsyncExitStack() as stack, serve(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def call(**options: Any) -> ScriptedPhone:
            websocket = await stack.enter_async_context(websockets.connect(url, compression=None))
            phone = ScriptedPhone(websocket, **options)
            await phone.start()
            return phone

        yield call
        await stack.aclose()
    if faults:
        raise faults[0]


class Wire:
    """A call over memory: the application's end has `send` and `recv` as a websocket has."""

    def __init__(self, end: Any) -> None:
        self.end = end

    async def send(self, message: str) -> None:
        await self.end.send(message)

    async def recv(self) -> str:
        return await self.end.receive()


@asynccontextmanager
async def line(**options: Any) -> AsyncIterator[tuple[TelephonyStream, ScriptedPhone]]:
    """A call that has begun, over memory."""
    pair = MemoryPair(capacity=4_096)
    phone = ScriptedPhone(Wire(pair.client), **options)
    await phone.start()
    yield await TelephonyStream.open(Wire(pair.server)), phone
    await pair.client.aclose()
    await pair.server.aclose()


async def test_a_call_on_real_sockets_from_the_greeting_to_the_hang_up(obliging):
    """The model hears the caller at its rate, the caller hears the model, and what was heard is the whole reply."""
    model = obliging("Good morning to you.")
    seen: list[Any] = []
    done = asyncio.Event()

    async def answer(call: TelephonyStream) -> None:
        assert (call.stream_id, call.call_id, dict(call.parameters)) == ("MZ7", "CA7", {"name": "Ada"})
        async with RealtimeSession(model) as session:
            events = aiter(session)
            session.attach(call)
            await model.hears_audio(47_000)
            await session.send("The phone rings.")
            await until(events, TurnCompleted)
            await call.wait_ended()
            seen.append(await until(events, TrackEnded))
            seen.append(session.all_messages()[-1])
            seen.append(call.statistics())
        done.set()

    async with calls(answer) as call:
        phone = await call(stream_id="MZ7", call_id="CA7", parameters={"name": "Ada"})
        await phone.say(TONE)
        await phone.play(400)
        await phone.hang_up()
        await done.wait()
    ended, reply, figures = seen
    assert (ended.source, ended.kind, ended.error) == ("phone", "audio", None)
    assert (reply.content, reply.interrupted) == ("Good morning to you.", False)
    heard = np.frombuffer(g711.decode(phone.heard), "<i2").astype(float)
    assert len(heard) == 3_200
    spectrum = np.abs(np.fft.rfft(heard))
    assert abs(np.argmax(spectrum) * 8_000 / len(heard) - 440) < 5
    assert model.audio_bytes == pytest.approx(48_000, abs=200)
    assert figures.sent_ms == 400
    assert (figures.malformed, figures.out_of_order, figures.unknown_marks) == (0, 0, 0)


async def test_two_calls_at_once_are_two_conversations(obliging):
    said: dict[str, str] = {}
    done = asyncio.Event()

    async def answer(call: TelephonyStream) -> None:
        words = {"one": "First reply.", "two": "Second reply."}[call.parameters["line"]]
        async with RealtimeSession(obliging(words)) as session:
            session.attach(call)
            await session.send("Hello?")
            await call.wait_ended()
            said[call.parameters["line"]] = session.all_messages()[-1].content
        if len(said) == 2:
            done.set()

    async with calls(answer) as call:
        phones = [await call(stream_id=f"MZ{name}", parameters={"line": name}) for name in ("one", "two")]
        for phone in phones:
            await phone.play(200)
        for phone in phones:
            await phone.hang_up()
        await done.wait()
    assert said == {"one": "First reply.", "two": "Second reply."}


async def test_a_barge_in_clears_the_call_and_the_transcript_keeps_what_was_marked(obliging):
    """P1, P3: two of ten words were played when the caller spoke."""
    model = obliging("One two three four five six seven eight nine ten.")
    async with line() as (call, phone), RealtimeSession(model) as session:
        events = aiter(session)
        session.attach(call)
        await session.send("Count.")
        await phone.play(240)
        await said_by_the_model(events)
        await phone.say(TONE[:1_600])
        await model.hears_audio(4_000)  # read behind the marks: they are known
        await model.say(openai_script.user_speech("barge", previous_item_id=model._last_item)[:1])
        cut = await until(events, ReplyInterrupted)
        assert cut.heard_ms == 240
        while phone.cleared == 0:
            await phone.receive()
        said = next(m for m in session.all_messages() if m.interrupted)
        assert (said.content, said.heard_ms) == ("One two", 240)
        assert said.unheard.endswith("ten.")
        assert (await model.hears("conversation.item.truncate"))["audio_end_ms"] == 240
        assert phone.buffered_ms == 0


async def test_a_far_end_without_marks_hears_a_whole_reply(obliging):
    """Three seconds of it: more than may be on its way."""
    pair, clock = MemoryPair(capacity=4_096), ManualClock()
    phone = ScriptedPhone(Wire(pair.client))
    await phone.start()
    call = await TelephonyStream.open(Wire(pair.server), marks=False)
    words = " ".join(["word"] * 30)
    async with RealtimeSession(obliging(words), clock=clock) as session:
        session.attach(call)
        await session.send("Speak.")
        while not (said := [m for m in session.all_messages() if m.role == "assistant"]):
            await clock.run(0.1)
        assert (said[0].content, said[0].interrupted) == (words, False)
    await pair.client.aclose()
    await pair.server.aclose()


async def test_without_marks_what_the_far_end_still_plays_comes_first(obliging):
    """P1: a call that is detached and attached again still plays a second of the reply before."""
    pair, clock = MemoryPair(capacity=4_096), ManualClock()
    phone = ScriptedPhone(Wire(pair.client))
    await phone.start()
    call = await TelephonyStream.open(Wire(pair.server), marks=False)
    words = "one two three four five six seven eight nine ten"
    async with RealtimeSession(obliging(words, words), clock=clock) as session:
        events = aiter(session)
        session.attach(call)
        await session.send("Count.")
        await said_by_the_model(events)
        await clock.run(0.01)
        await session.detach(call)
        session.attach(call)
        await session.send("Count.")
        await said_by_the_model(events)
        await clock.run(1.22)
        await session.interrupt()
        assert session.all_messages()[-1].heard_ms == 200
    await pair.client.aclose()
    await pair.server.aclose()


async def test_who_records_the_replies_of_a_call_gets_them_and_does_not_count(obliging):
    """P0: `stream_audio()` beside a call: what was heard is what the call says."""
    async with line() as (call, phone), RealtimeSession(obliging("One two three four five.")) as session:
        events = aiter(session)
        session.attach(call)
        reader, recorded, is_whole = session.stream_audio(), bytearray(), asyncio.Event()

        async def record() -> None:
            async for chunk in reader:
                recorded.extend(chunk)
                if len(recorded) == 5 * 100 * 48:
                    is_whole.set()

        recording = asyncio.create_task(record())
        await session.send("Count.")
        await phone.play(200)
        await said_by_the_model(events)
        await is_whole.wait()
        await phone.hang_up()
        assert (await until(events, ReplyInterrupted)).heard_ms == 200
        assert len(recorded) == 5 * 100 * 48
    await recording


async def test_a_caller_who_hangs_up_in_mid_reply_interrupts_it(obliging):
    model = obliging("One two three four five six seven eight nine ten.")
    async with line() as (call, phone), RealtimeSession(model) as session:
        events = aiter(session)
        session.attach(call)
        await session.send("Count.")
        await phone.play(360)
        await said_by_the_model(events)
        await phone.hang_up()
        assert (await until(events, ReplyInterrupted)).heard_ms == 360
        assert (await until(events, TrackEnded)).error is None
        assert call.ended
        said = session.all_messages()[-1]
        assert (said.interrupted, said.heard_ms) == (True, 360)
        assert session.reply_track.kind == "audio"  # free for the next listener


async def test_a_socket_that_breaks_is_a_hang_up(obliging):
    async with line() as (call, phone), RealtimeSession(obliging()) as session:
        events = aiter(session)
        session.attach(call)
        await phone._websocket.end.aclose()
        assert (await until(events, TrackEnded)).error is None
        await call.wait_ended()
        with pytest.raises(UserError, match="over"):
            session.attach(call)


async def test_keys_are_events_in_order_with_the_name_of_the_call(obliging):
    async with line() as (call, phone), RealtimeSession(obliging()) as session:
        events = aiter(session)
        session.attach(call)
        for digit in "1*#":
            await phone.press(digit)
        assert [await until(events, DtmfReceived) for _ in range(3)] == [
            DtmfReceived(source="phone", digit=digit) for digit in "1*#"
        ]


async def test_what_is_damaged_foreign_or_out_of_order_is_counted_and_the_call_goes_on(obliging):
    model = obliging()
    frame = b"\x20" * 160
    async with line(stream_id="MZ1") as (call, phone), RealtimeSession(model) as session:
        session.attach(call)
        await phone.say_coded(frame)
        for raw in ("no json", "[]", '{"event":"media"}', "x" * 200_000, '{"event":"dtmf","dtmf":{"digit":"99"}}'):
            await phone.send_raw(raw)
        media = {"track": "inbound", "chunk": "1", "timestamp": "0", "payload": "ICAg"}
        await phone.send_raw({"event": "media", "streamSid": "MZ1", "media": media})  # once more
        await phone.send_raw({"event": "media", "streamSid": "MZ2", "media": {**media, "chunk": "2"}})
        await phone.send_raw({"event": "media", "streamSid": "MZ1", "media": {**media, "track": "outbound"}})
        await phone.send_raw({"event": "stop", "streamSid": "MZ2"})
        await phone.send_raw({"event": "novelty", "streamSid": "MZ1"})
        await phone.send_raw({"event": "mark", "streamSid": "MZ1", "mark": {"name": "nobody's"}})
        await phone.start()  # a second call on the same socket
        for _ in range(3):
            await phone.say_coded(frame)
        await model.hears_audio(4 * 960 - 300)
        figures = call.statistics()
    assert model.audio_bytes == pytest.approx(4 * 960, abs=300)
    assert figures.malformed == 7  # the second call is two messages
    assert figures.out_of_order == 1
    assert figures.foreign == 3
    assert figures.unknown == 1
    assert figures.unknown_marks == 1
    assert figures.messages == 17


async def test_a_hole_in_the_time_stamps_is_silence(obliging):
    """A3: time is kept by positions, never by arrival."""
    model = obliging()
    async with line() as (call, phone), RealtimeSession(model) as session:
        session.attach(call)
        await phone.say_coded(b"\x20" * 160)
        phone._said_bytes += 1_600
        await phone.say_coded(b"\x20" * 160)
        await model.hears_audio(11_000)
    assert model.audio_bytes == pytest.approx(240 * 48, abs=300)


async def test_what_the_caller_said_while_the_model_connected_is_heard(obliging):
    model = obliging()
    async with line() as (call, phone):
        await phone.say(TONE)
        async with RealtimeSession(model) as session:
            session.attach(call)
            await model.hears_audio(47_000)


async def test_a_call_goes_from_one_session_to_the_next(obliging):
    first, second = obliging("First."), obliging("Second.")
    async with line() as (call, phone):
        for model in (first, second):
            async with RealtimeSession(model) as session:
                events = aiter(session)
                session.attach(call)
                await session.send("Hello?")
                await phone.play(100)
                await until(events, TurnCompleted)
        assert call.statistics().sent_ms == 200
        async with RealtimeSession(obliging("Third.")) as session:
            session.attach(call)
            await session.detach(call)
            with pytest.raises(ArgumentError):
                await session.detach(call)
            session.attach(call)
            await session.send("Hello?")
            await phone.play(100)


async def test_a_session_speaks_to_one_listener_and_a_call_with_one_session(obliging):
    async with line() as (call, _), line() as (other, _), RealtimeSession(obliging()) as session:
        session.attach(call)
        with pytest.raises(UserError, match="one listener"):
            session.attach(other)
        with pytest.raises(UserError, match="telephone call"):
            session.reply_track  # noqa: B018
        with pytest.raises(ArgumentError, match="sources"):
            session.attach(other, sources={"0": "phone"})
        assert session.add_track(other.track, source="second caller") == "second caller"
        async with RealtimeSession(obliging()) as second:
            assert second.reply_track
            with pytest.raises(UserError, match="one listener"):
                second.attach(other)
        async with RealtimeSession(obliging()) as third:
            with pytest.raises(UserError, match="a session already"):
                third.attach(call)
    with pytest.raises(SessionClosed):
        session.attach(call)


async def test_closing_the_session_ends_the_reading_and_leaves_the_call_to_the_application(obliging):
    async with line() as (call, phone):
        async with RealtimeSession(obliging("One two three.")) as session:
            events = aiter(session)
            session.attach(call)
            await session.send("Hello?")
            await phone.play(200)
            await phone.press("1")
            await until(events, DtmfReceived)  # read behind the marks: they are known
        ended = await until(events, SessionEnded)
        assert ended.reason == "closed"
        assert not call.ended
        assert call.track.readyState == "live"
        said = session.all_messages()[-1]
        assert (said.content, said.interrupted, said.heard_ms) == ("One two", True, 200)


@pytest.mark.parametrize(
    ("said", "error", "match"),
    [
        (['{"event":"connected"}', '{"event":"stop","streamSid":"MZ1"}'], LinkLost, "stopped"),
        (["garbage"], LinkLost, "ended before"),
        (
            [
                json.dumps(
                    {
                        "event": "start",
                        "start": {"streamSid": "MZ1", "mediaFormat": {"encoding": "audio/x-l16", "sampleRate": 16000}},
                    }
                )
            ],
            UserError,
            "audio/x-l16, 16000 Hz",
        ),
    ],
)
async def test_what_is_no_call_is_refused_with_the_reason(said: list[str], error: type[Exception], match: str):
    pair = MemoryPair()
    for message in said:
        await pair.client.send(message)
    if error is LinkLost and "garbage" in said:
        await pair.client.aclose()
    with pytest.raises(error, match=match):
        await TelephonyStream.open(Wire(pair.server))
    await pair.client.aclose()


async def test_a_far_end_that_says_nothing_is_given_up():
    pair = MemoryPair()
    with pytest.raises(LinkLost, match="no media stream"):
        await TelephonyStream.open(Wire(pair.server), timeout_seconds=0.01)
    await pair.client.aclose()


async def test_what_is_no_websocket_is_refused():
    with pytest.raises(ArgumentError, match="receive_text"):
        await TelephonyStream.open(object())  # type: ignore[arg-type]


class TextWire(Wire):
    """As Starlette has it: a text that is none is a KeyError."""

    send = recv = None  # type: ignore[assignment]

    async def send_text(self, data: str) -> None:
        await self.end.send(data)

    async def receive_text(self) -> str:
        data = await self.end.receive()
        return {"text": data}["bytes" if isinstance(data, bytes) else "text"]


async def test_a_websocket_of_starlette_s_shape_does_and_binary_messages_are_passed_over(obliging):
    model = obliging("Yes.")
    pair = MemoryPair(capacity=4_096)
    phone = ScriptedPhone(Wire(pair.client))
    await pair.client.send(b"binary")
    await phone.start()
    call = await TelephonyStream.open(TextWire(pair.server))
    async with RealtimeSession(model) as session:
        session.attach(call)
        await pair.client.send(b"binary")
        await phone.say(TONE[:3_200])
        await model.hears_audio(9_000)
        await session.send("Hello?")
        await phone.play(100)
    assert call.statistics().malformed == 1
    await pair.client.aclose()
