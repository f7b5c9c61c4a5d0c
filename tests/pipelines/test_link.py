"""`realtime.pipelines.link`: a line over successive connections (L1–L6; B32, B34, B36, B38, B39, B41)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import count
from typing import Any

import numpy as np
import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatRole, ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.events import (
    ConnectionDropped,
    ErrorReported,
    InputRejected,
    MessageCommitted,
    Reconnected,
    SessionEnded,
    SessionEvent,
)
from realtime.core.machine import SessionMachine
from realtime.core.model_events import ModelEvent, UnknownReport
from realtime.core.settings import Agent, ReconnectPolicy, SessionSettings
from realtime.errors import IllegalTransition, LinkLost, ModelError, UserError
from realtime.media.options import EncodeOptions
from realtime.models.base import RealtimeModel
from realtime.pipelines.driver import Driver
from realtime.pipelines.link import MAX_WAITING_CONTROL, Link
from realtime.pipelines.video import PictureEncoder
from realtime.testing import Close, Drop, Expect, ManualClock, MemoryPair, Reply, ScriptedModel
from realtime.testing.openai_script import (
    error,
    item_created,
    session_created,
    session_updated,
    written_reply,
)
from realtime.wire.openai import OpenAIWire

HELLO = [Reply(session_created()), Expect("session.update"), Reply(session_updated())]


def says(text: str) -> dict[str, Any]:
    return {"item": {"content": [{"type": "input_text", "text": text}]}}


class Line:
    """A link with a real machine behind it, on a clock by hand."""

    def __init__(self, model: RealtimeModel, *, context: ChatContext | None = None, **policy: Any) -> None:
        self.clock = ManualClock(now=10.0)
        self.model = model
        reconnect = ReconnectPolicy(**{"jitter": 0.0, **policy})
        ids = count()
        self.machine = SessionMachine(
            SessionSettings(agent=Agent(instructions="Be brief."), reconnect=reconnect),
            model.capabilities,
            context or ChatContext(),
            make_id=lambda: f"id{next(ids)}",
            now=self.clock.now(),
        )
        self.driver = Driver(self.machine, self.clock)
        self.events: list[SessionEvent] = []
        self.driver.observe(self.events.append)
        self.encoder = PictureEncoder(EncodeOptions(), detail="auto", max_image_bytes=None)
        self.link = Link(model, self.driver, self.clock, reconnect, shrink=self.shrink)
        self.driver.connect(execute=lambda _command: None, wake_link=self.link.wake)
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(self.link.run(self.opened))

    async def shrink(self, image: ImageContent, max_bytes: int) -> ImageContent:
        return self.encoder.shrink(image, max_bytes)

    def send(self, content: Any, *, respond: bool | None = False) -> list[str]:
        return self.driver.step(lambda machine, now: machine.send([content], respond=respond, now=now))

    def all(self, kind: type[SessionEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def aclose(self) -> None:
        await self.link.aclose()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.model.aclose()
        self.driver.close(None)
        if self.opened.done() and not self.opened.cancelled():
            self.opened.exception()
        assert self.clock.waiting == 0


@pytest.fixture
async def lines() -> AsyncIterator[Any]:
    made: list[Line] = []

    def make(script: Iterable[Any] | RealtimeModel, *, capabilities: Any = None, **options: Any) -> Line:
        model = script if isinstance(script, RealtimeModel) else ScriptedModel(script, capabilities=capabilities)
        made.append(Line(model, **options))
        return made[-1]

    yield make
    for line in made:
        await line.aclose()


# -- the first connection ----------------------------------------------------------------------------------------------


async def test_the_first_connection_is_configured_and_seeded_before_anything_else(lines):
    context = ChatContext()
    context.add_message(ChatRole.SYSTEM, "You are kind.")
    context.add_message(ChatRole.USER, "Earlier.", message_id="m1")
    line = lines(
        [
            Reply(session_created()),
            Expect("session.update", {"session": {"instructions": "Be brief.\n\nYou are kind."}}),
            Reply(session_updated()),
            Expect("conversation.item.create", {"item": {"role": "user"}}),
        ],
        context=context,
    )
    await line.opened
    await line.model.finished()
    line.model.assert_complete()


@pytest.mark.parametrize(
    "script",
    [
        [Reply(error("invalid_api_key", "no such key"))],
        [Reply(session_created()), Expect("session.update"), Reply(error("invalid_value", "no such voice"))],
    ],
)
async def test_an_error_in_the_handshake_is_raised_with_the_provider_s_words(lines, script):
    line = lines(script)
    with pytest.raises(ModelError, match="no such") as caught:
        await line.opened
    assert caught.value.code
    await line.task


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (LinkLost("away"), LinkLost),
        (ModelError("no", code="401"), ModelError),
        (UserError("no key"), UserError),
        (OSError("down"), LinkLost),
    ],
    ids=repr,
)
async def test_a_model_that_cannot_be_opened_raises_what_it_said_and_is_not_tried_again(lines, fault, told):
    model = ScriptedModel([])
    model.refuse.append(fault)
    line = lines(model)
    with pytest.raises(told, match=str(fault)):
        await line.opened
    await line.task
    assert model.connections == 0


@pytest.mark.parametrize("script", [[], [Reply(session_created()), Expect("session.update")]])
async def test_a_server_that_says_nothing_is_given_up_in_time(lines, script):
    line = lines(script, connect_timeout_seconds=5)
    await line.clock.run(4.9)
    assert not line.opened.done()
    await line.clock.run(0.2)
    with pytest.raises(LinkLost):
        await line.opened
    await line.task


async def test_a_server_that_hangs_up_in_the_handshake_is_reported(lines):
    line = lines([Reply(session_created()), Close(1011, "overloaded")])
    with pytest.raises(LinkLost, match="overloaded"):
        await line.opened


async def test_closing_while_connecting_ends_at_once(lines):
    line = lines([])
    await line.clock.settle()
    await line.link.aclose()
    line.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await line.task
    assert not line.opened.done()


# -- what comes in -----------------------------------------------------------------------------------------------------


class Wire(OpenAIWire):
    """OpenAI's protocol, and the test's own reading of messages that are plain text."""

    def __init__(self, readings: dict[str, Any]) -> None:
        super().__init__()
        self._readings = readings

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        reading = self._readings.get(data if isinstance(data, str) else "")
        if isinstance(reading, BaseException):
            raise reading
        return super().decode(data) if reading is None else list(reading)


def with_wire(script: Iterable[Any], **readings: Any) -> ScriptedModel:
    return ScriptedModel(script, make_wire=lambda: Wire(readings))


async def test_all_events_of_one_message_are_applied_before_the_application_sees_any(lines):
    both = [UnknownReport(type="first"), UnknownReport(type="second")]
    gate = asyncio.Event()
    line = lines(with_wire([*HELLO, Expect("conversation.item.create"), Reply(["both"])], both=both))
    await line.opened
    seen: list[dict[str, int]] = []
    original = line.machine.next_event

    def next_event() -> Any:
        if line.machine.statistics().unknown_reports:
            seen.append(dict(line.machine.statistics().unknown_reports))
            gate.set()
        return original()

    line.machine.next_event = next_event
    line.send("go")
    await gate.wait()
    assert seen[0] == {"first": 1, "second": 1}


async def test_one_illegal_report_loses_none_of_those_behind_it(lines):
    line = lines(
        with_wire(
            [*HELLO, Expect("conversation.item.create"), Reply(["three"])],
            three=[UnknownReport(type="a"), UnknownReport(type="bad"), UnknownReport(type="c")],
        )
    )
    await line.opened
    original = line.machine.receive_model_event

    def receive(event: Any, *, now: float) -> None:
        if isinstance(event, UnknownReport) and event.type == "bad":
            raise IllegalTransition("that cannot be now")
        original(event, now=now)

    line.machine.receive_model_event = receive
    line.send("go")
    await line.clock.settle()
    assert line.machine.statistics().unknown_reports == {"a": 1, "c": 1}
    assert [event.where for event in line.all(ErrorReported)] == ["model"]


async def test_a_message_that_cannot_be_decoded_is_an_event_and_the_next_one_is_read(lines):
    line = lines(
        with_wire(
            [*HELLO, Expect("conversation.item.create"), Reply(["bad", "good"])],
            bad=ModelError("garbage", code="malformed"),
            good=[UnknownReport(type="good")],
        )
    )
    await line.opened
    line.send("go")
    await line.clock.settle()
    assert line.machine.statistics().unknown_reports == {"good": 1}
    assert [event.error.code for event in line.all(ErrorReported)] == ["malformed"]


# -- what goes out -----------------------------------------------------------------------------------------------------


async def test_an_item_that_the_protocol_cannot_hold_fails_and_the_connection_stays(lines):
    class Picky(OpenAIWire):
        def encode(self, command: Any) -> Any:
            if getattr(command, "message", None) is not None and command.message.content == "cursed":
                raise UserError("it cannot be said in this protocol")
            return super().encode(command)

    line = lines(
        ScriptedModel([*HELLO, Expect("conversation.item.create", {"item": {"role": "user"}})], make_wire=Picky)
    )
    await line.opened
    line.send("cursed")
    line.send("fine")
    await line.model.finished()
    assert [event.reason for event in line.all(InputRejected)] == ["it cannot be said in this protocol"]
    assert line.model.connections == 1


def noisy(side: int) -> ImageContent:
    pixels = np.random.default_rng(2).integers(0, 255, (side, side, 3), dtype=np.uint8)
    options = EncodeOptions(quality=95, resize_options=None)
    return PictureEncoder(options, detail="auto", max_image_bytes=None)(pixels)


async def test_a_picture_too_large_for_the_provider_is_sent_smaller_and_the_socket_stays(lines):
    """L5, B39."""
    limit = 60_000
    line = lines(
        [*HELLO, Expect("conversation.item.create"), Reply(lambda said: item_created(said[-1]["item"], None))],
        capabilities=ModelCapabilities(max_message_bytes=limit),
    )
    await line.opened
    picture = noisy(400)
    assert picture.byte_length > limit
    line.send(picture)
    await line.model.finished()
    sent = line.model.received[-1]["item"]["content"][0]["image_url"]
    assert len(sent) < limit
    await line.clock.settle()
    assert len(line.all(MessageCommitted)) == 1
    assert not line.all(InputRejected)


async def test_a_text_too_large_for_the_provider_is_refused_with_an_event_and_the_socket_stays(lines):
    line = lines(
        [*HELLO, Expect("conversation.item.create", says("short"))],
        capabilities=ModelCapabilities(max_message_bytes=10_000),
    )
    await line.opened
    line.send("x" * 20_000)
    line.send("short")
    await line.model.finished()
    assert len(line.all(InputRejected)) == 1
    assert line.model.connections == 1


class Deaf(RealtimeModel):
    """Opens its session and then reads nothing."""

    def __init__(self) -> None:
        self.capabilities = ModelCapabilities()
        self.pairs: list[MemoryPair] = []

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire()

    async def open(self) -> Any:
        pair = MemoryPair(capacity=8)
        self.pairs.append(pair)
        for message in (*session_created(), *session_updated()):
            await pair.server.send(__import__("json").dumps(message))
        return pair.client


async def test_a_thousand_waiting_control_messages_end_the_connection(lines):
    """B41: control is never dropped, so a socket that takes none is given up."""
    line = lines(Deaf())
    await line.opened
    for number in range(MAX_WAITING_CONTROL):
        line.send(f"{number}")
    await line.clock.settle()
    assert len(line.model.pairs) == 1
    for number in range(50):
        line.send(f"more {number}")
    await line.clock.settle()
    assert len(line.model.pairs) == 2
    [dropped, *_] = line.all(ConnectionDropped)
    assert "control" in dropped.reason


# -- drops -------------------------------------------------------------------------------------------------------------


async def test_after_a_drop_it_comes_back_at_once_and_says_so(lines):
    """L1."""
    line = lines([*HELLO, Drop(), *HELLO])
    await line.opened
    await line.model.finished()
    await line.clock.settle()
    assert [event.will_retry for event in line.all(ConnectionDropped)] == [True]
    assert len(line.all(Reconnected)) == 1
    assert line.model.connections == 2


async def test_what_had_not_reached_the_old_connection_is_sent_on_the_new_one(lines):
    """L1, B35: nothing that was sent is lost, and nothing is doubled."""
    line = lines(
        [
            *HELLO,
            Expect("conversation.item.create", says("one")),
            Reply(lambda said: item_created(said[-1]["item"], None)),
            Expect("conversation.item.create", says("two")),
            Drop(),
            *HELLO,
            Expect("conversation.item.create", says("one")),
            Expect("conversation.item.create", says("two")),
            Reply(lambda said: item_created(said[-1]["item"], None)),
        ]
    )
    await line.opened
    line.send("one")
    await line.clock.settle()
    line.send("two")
    await line.model.finished()
    await line.clock.settle()
    assert [event.message.content for event in line.all(MessageCommitted)] == ["one", "two"]


async def test_attempts_wait_longer_each_time_and_end_where_the_policy_says(lines):
    model = ScriptedModel([*HELLO, Drop()])
    line = lines(model, max_attempts=4, first_delay_seconds=1.0)
    await line.opened
    model.refuse += [LinkLost("still away")] * 10
    await line.clock.settle()
    assert len(model.refuse) == 9
    await line.clock.run(1.1)
    assert len(model.refuse) == 8
    await line.clock.run(1.8)
    assert len(model.refuse) == 8
    await line.clock.run(0.3)
    assert len(model.refuse) == 7
    await line.clock.run(4.1)
    assert len(model.refuse) == 6
    await line.task
    [ended] = line.all(SessionEnded)
    assert ended.reason == "link_lost"
    assert isinstance(ended.error, LinkLost)


async def test_without_a_policy_to_come_back_a_drop_ends_the_session(lines):
    line = lines([*HELLO, Close(1000, "bye")], enabled=False)
    await line.opened
    await line.task
    [ended] = line.all(SessionEnded)
    assert ended.reason == "link_lost"
    assert line.model.connections == 1


@pytest.mark.parametrize("fault", [ModelError("revoked", code="invalid_api_key", fatal=True), UserError("no key")])
async def test_a_refusal_for_good_ends_the_session_with_it(lines, fault):
    model = ScriptedModel([*HELLO, Drop()])
    line = lines(model)
    await line.opened
    model.refuse.append(fault)
    await line.task
    [ended] = line.all(SessionEnded)
    assert ended.error is fault
    assert model.connections == 1


async def test_a_server_that_drops_every_connection_is_not_asked_in_a_tight_loop(lines):
    """B36: the count of attempts goes on over connections that did not last."""
    line = lines([*HELLO, Drop()] + [*HELLO, Drop()] * 3, max_attempts=3, first_delay_seconds=1)
    await line.opened
    await line.clock.settle()
    assert line.model.connections == 2
    await line.clock.run(1.1)
    assert line.model.connections == 3
    await line.clock.run(2.1)
    assert line.model.connections == 4
    await line.task
    assert len(line.all(SessionEnded)) == 1


async def test_an_item_that_closed_the_connection_with_1009_is_not_sent_again(lines):
    """B39."""
    line = lines([*HELLO, Expect("conversation.item.create"), Close(1009, "too big"), *HELLO])
    await line.opened
    line.send("a huge thing " * 5000)
    await line.model.finished()
    await line.clock.settle()
    assert len(line.all(InputRejected)) == 1
    assert line.model.connections == 2
    line.model.assert_complete()


async def test_a_small_item_is_not_blamed_for_a_close_with_1009(lines):
    """B39: it was over nobody's limit, and is sent again."""
    line = lines([*HELLO, Expect("conversation.item.create"), Close(1009), *HELLO, Expect("conversation.item.create")])
    await line.opened
    line.send("a small thing")
    await line.model.finished()
    assert not line.all(InputRejected)


async def test_a_large_item_that_arrived_is_not_blamed_for_what_comes_later(lines):
    large = "a huge thing " * 5000
    line = lines(
        [
            *HELLO,
            Expect("conversation.item.create"),
            Reply(lambda said: item_created(said[-1]["item"], None)),
            Expect("conversation.item.create"),
            Close(1009),
            *HELLO,
            Expect("conversation.item.create", says(large)),
            Expect("conversation.item.create", says("small")),
        ]
    )
    await line.opened
    line.send(large)
    await line.clock.settle()
    line.send("small")
    await line.model.finished()
    assert not line.all(InputRejected)


async def test_the_end_does_not_come_back(lines):
    line = lines([*HELLO])
    await line.opened
    await line.link.aclose()
    await line.task
    assert line.model.connections == 1
    assert line.all(ConnectionDropped) == []


class Overlapping(RealtimeModel):
    """A script for each connection: the old one goes on while the new one is opened."""

    def __init__(self, *scripts: Iterable[Any]) -> None:
        self.capabilities = ModelCapabilities()
        self.parts = [ScriptedModel(script) for script in scripts]
        self.refuse: list[BaseException] = []
        self.alive: list[bool] = []
        self.connections = 0

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire(wall=wall)

    def is_lost(self, number: int) -> bool:
        pair = self.parts[number].pair
        return pair is None or pair.client.is_lost

    async def open(self) -> Any:
        if self.connections:
            self.alive.append(not self.is_lost(self.connections - 1))
        if self.refuse:
            raise self.refuse.pop(0)
        self.connections += 1
        return await self.parts[self.connections - 1].open()

    async def aclose(self) -> None:
        for part in self.parts:
            await part.aclose()


# -- renewal -----------------------------------------------------------------------------------------------------------


def expiring(seconds: float) -> list[Any]:
    expires_at = round(1_700_000_000 + seconds)
    return [Reply(session_created(expires_at=expires_at)), Expect("session.update"), Reply(session_updated())]


async def test_before_the_deadline_a_new_connection_is_opened_before_the_old_one_ends(lines):
    """L3, B34."""
    model = Overlapping(expiring(600), HELLO)
    line = lines(model)
    await line.opened
    await line.clock.run(500)
    assert model.connections == 1
    await line.clock.run(45)
    assert model.connections == 2
    assert model.alive == [True]
    assert model.is_lost(0)
    assert not model.is_lost(1)
    assert len(line.all(Reconnected)) == 1
    assert line.machine.is_connected
    assert not line.all(ErrorReported)


async def test_a_renewal_waits_for_a_quiet_moment(lines):
    reply = written_reply("resp_1", "item_1", "Done.")
    script = [
        *expiring(600),
        Expect("conversation.item.create"),
        Reply(lambda said: item_created(said[-1]["item"], None)),
        Expect("response.create"),
        Reply(reply[:1]),
        Expect("conversation.item.create"),
        Reply(lambda said: [*item_created(said[-1]["item"], "item_1"), *reply[1:]]),
    ]
    line = lines(Overlapping(script, [*HELLO, *[Expect("conversation.item.create")] * 3]))
    await line.opened
    line.send("hi", respond=True)
    await line.clock.run(570)
    assert line.model.connections == 1
    assert line.machine.is_busy
    line.send("go on")
    await line.clock.run(1)
    assert not line.machine.is_busy
    assert line.model.connections == 2


async def test_a_renewal_that_fails_is_tried_again_until_the_deadline(lines):
    model = Overlapping(expiring(600), HELLO)
    line = lines(model)
    await line.opened
    model.refuse += [LinkLost("busy"), LinkLost("busy")]
    await line.clock.run(545)
    assert model.refuse == []
    assert model.connections == 2
    assert len(line.all(ConnectionDropped)) == 1


async def test_an_expired_session_comes_back_like_after_any_drop(lines):
    """B34: the provider's error and close are no end."""
    line = lines([*HELLO, Reply(error("session_expired", "too old")), Close(1001, "expired"), *HELLO])
    await line.opened
    await line.model.finished()
    await line.clock.settle()
    assert len(line.all(Reconnected)) == 1
    assert not line.all(SessionEnded)
