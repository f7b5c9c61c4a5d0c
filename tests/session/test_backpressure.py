"""A producer that is faster than the socket, and a consumer that is slower than the model (B41; architecture section 5).

Bounded memory, counted drops, control first, and nothing hangs.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from realtime import FrameSampling, ImageContent, RealtimeSession, ReconnectPolicy
from realtime.core.model_events import OutputAudio, OutputItemStarted, OutputTextUpdated, ResponseEnded, ResponseStarted
from realtime.core.sampling import FrameFacts
from realtime.errors import BusyError
from realtime.events import DtmfReceived, FrameSkipped, MessageCommitted, ReplyInterrupted, SessionEnded, TurnCompleted
from realtime.pipelines.event_stream import MAX_WAITING_EVENTS
from realtime.testing import ManualClock, openai_script

from .conftest import Obliging

SECOND = bytes(48_000)
GIF = b"GIF89a\x02\x00\x01\x00\x00\x00\x00;"


class Blocked:
    """A transport whose `send` blocks while the gate is shut."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.gate = asyncio.Event()
        self.gate.set()
        self.left: list[str] = []
        self.waiting = asyncio.Event()

    async def send(self, data: str) -> None:
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
        self.left.append(json.loads(data)["type"])
        await self.inner.send(data)

    async def receive(self) -> str | bytes:
        return await self.inner.receive()

    async def aclose(self) -> None:
        await self.inner.aclose()


class BlockedModel(Obliging):
    """Its newest connection can be shut."""

    line: Blocked

    async def open(self) -> Any:
        self.line = Blocked(await super().open())
        return self.line


@pytest.fixture
async def model() -> Any:
    made = BlockedModel("Yes.", "No.")
    yield made
    made.line.gate.set()
    await made.aclose()


async def until(events: Any, kind: type[Any]) -> Any:
    while not isinstance(event := await anext(events), kind):
        pass
    return event


async def test_a_minute_of_sound_into_a_blocked_socket_is_bounded_counted_and_let_through_newest_first(
    model: BlockedModel,
):
    async with RealtimeSession(model) as session:
        model.line.gate.clear()
        for _ in range(60):
            await session.send_audio(SECOND)
        figures = session.statistics()
        held_ms = 60_000 - figures.machine.audio_dropped_ms
        assert figures.machine.audio_dropped_ms > 20_000
        assert figures.memory.queued_audio <= held_ms * 48 + 9_600
        assert figures.memory.queued_audio + figures.memory.replay_audio < 4_000_000
        model.line.gate.set()
        await model.hears_audio(held_ms * 48 - 48_000)
    assert model.audio_bytes <= held_ms * 48 + 48_000


async def test_control_leaves_before_the_sound_that_waits(model: BlockedModel):
    async with RealtimeSession(model) as session:
        model.line.gate.clear()
        await session.send_audio(SECOND)
        await model.line.waiting.wait()
        before = len(model.line.left)
        for _ in range(9):
            await session.send_audio(SECOND)
        await session.send("Stop that, and listen.")
        model.line.gate.set()
        await model.hears("response.create")
        await session.wait_for_reply()
    left = model.line.left[before:]
    assert left[0] == "input_audio_buffer.append"  # it was on its way
    assert left[1:3] == ["conversation.item.create", "response.create"]
    assert left.count("input_audio_buffer.append") > 50


async def test_of_pictures_that_wait_only_the_newest_is_sent_and_the_others_are_told(model: BlockedModel):
    clock = ManualClock()
    sampling = FrameSampling(fps_idle=10, min_change=0, max_age_seconds=1e6)
    async with RealtimeSession(model, clock=clock, sampling=sampling) as session:
        events = aiter(session)
        model.line.gate.clear()
        await session.send_audio(SECOND)
        await model.line.waiting.wait()
        driver = session._runtime.driver  # type: ignore[union-attr]
        kept = 0
        for number in range(50):
            await clock.run(0.5)
            kept += driver.step(lambda machine, now, number=number: _show(machine, number, now))
            assert session.statistics().machine.pictures_waiting <= 1
        assert kept == 50
        model.line.gate.set()
        (item,) = (await model.hears("conversation.item.create"))["item"]["content"]
    skipped = [event async for event in events if isinstance(event, FrameSkipped)]
    assert [event.reason for event in skipped] == ["replaced"] * 49
    assert item["image_url"].endswith(base64.b64encode(GIF + bytes([49])).decode()[-8:])


def _show(machine: Any, number: int, now: float) -> bool:
    """A frame, encoded at once; whether it was kept."""
    facts = FrameFacts(
        frame_id=number,
        source="camera",
        captured_at=now,
        pts_ms=number * 500,
        width=2,
        height=1,
        thumbprint=bytes([number]) * 1_024,
    )
    if machine.receive_frame(facts, now=now).action != "keep":
        return False
    image = ImageContent.from_bytes(GIF + bytes([number]), "image/gif")
    machine.receive_image(source="camera", frame_id=number, image=image, now=now)
    return True


async def test_an_interruption_and_a_close_jump_the_queue(model: BlockedModel):
    model.hold()
    async with RealtimeSession(model, reconnect=ReconnectPolicy(enabled=False)) as session:
        events = aiter(session)
        audio = session.stream_audio()
        await session.send("Talk.")
        await model.hears("response.create")
        reply = openai_script.spoken_reply("r1", "i1", "One two three.", SECOND)
        await model.say(reply[:-1])
        await anext(audio)
        model.line.gate.clear()
        for _ in range(40):
            await session.send_audio(SECOND)
        await session.interrupt(played_ms=100)
        assert (await until(events, ReplyInterrupted)).heard_ms == 100
        model.line.gate.set()
        await model.hears("response.cancel")
        model.line.gate.clear()
        for _ in range(40):
            await session.send_audio(SECOND)
        async with asyncio.timeout(60):  # a hang guard; closing has its own bound (L4)
            await session.aclose()
        assert (await until(events, SessionEnded)).reason == "closed"


async def test_a_hundred_thousand_deltas_for_a_consumer_that_sleeps(model: BlockedModel):
    """The reply is whole, what waits is bounded, what is lost is counted, and the session goes on."""
    async with RealtimeSession(model) as session:
        slow, driver = aiter(session), session._runtime.driver  # type: ignore[union-attr]
        whole: list[str] = []
        driver.observe(
            lambda event: whole.append(event.message.content) if isinstance(event, MessageCommitted) else None
        )

        def report(*reports: Any) -> None:
            driver.feed(
                lambda machine, now: [machine.receive_model_event(each, now=now) for each in reports], where="model"
            )

        report(ResponseStarted(response_id="r1"), OutputItemStarted(response_id="r1", item_id="i1", kind="message"))
        word = OutputTextUpdated(response_id="r1", item_id="i1", delta="a ")
        sound = OutputAudio(response_id="r1", item_id="i1", pcm=bytes(48))
        most = 0
        for _ in range(1_000):
            report(*[word, sound] * 50)
            most = max(most, session.statistics().events_waiting)
        assert most <= MAX_WAITING_EVENTS
        figures = session.statistics()
        assert figures.events_dropped >= 99_000
        assert figures.memory.queued_audio == 0
        report(ResponseEnded(response_id="r1", status="completed"))
        assert (await until(slow, TurnCompleted)) is not None
        await session.send("Are you there?")
        await session.wait_for_reply()
    assert whole[0] == ("a " * 50_000).strip() or whole[0] == "a " * 50_000
    assert "Yes." in whole


async def test_a_consumer_that_never_comes_back_ends_alone(model: BlockedModel):
    async with RealtimeSession(model) as session:
        asleep, awake = aiter(session), aiter(session)
        driver = session._runtime.driver  # type: ignore[union-attr]
        delta = FrameSkipped(source="camera", reason="schedule", captured_at=0.0)
        lasting = DtmfReceived(source="phone", digit="1")
        for event in (delta, lasting):
            for _ in range(MAX_WAITING_EVENTS + 5):
                driver.publish(event)
                await anext(awake)
            assert session.statistics().events_waiting <= MAX_WAITING_EVENTS
        with pytest.raises(BusyError) as lost:
            await until(asleep, SessionEnded)
        assert lost.value.dropped > MAX_WAITING_EVENTS
        await session.send("Are you there?")
        assert (await session.wait_for_reply()).messages[0].content == "Yes."
