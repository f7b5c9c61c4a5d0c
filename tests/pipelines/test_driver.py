"""`realtime.pipelines.driver`: one synchronous step — feed, drain, re-arm — and nobody else mutates the machine."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import AppendAudio, CreateResponse, EndReply, PlayAudio, StopReply
from realtime.core.events import ErrorReported, ReplyStarted, SessionEnded
from realtime.errors import IllegalTransition, LinkLost, SessionClosed, UserError
from realtime.pipelines.driver import Driver
from realtime.testing import ManualClock


class Machine:
    """As much of a machine as the driver touches, by hand."""

    def __init__(self) -> None:
        self.events: deque[Any] = deque()
        self.commands: deque[Any] = deque()
        self.link: deque[Any] = deque()
        self.deadline: float | None = None
        self.handled: list[float] = []
        self.log: list[tuple[str, float]] = []

    def next_event(self) -> Any:
        return self.events.popleft() if self.events else None

    def next_command(self) -> Any:
        return self.commands.popleft() if self.commands else None

    def next_link_command(self, *, now: float) -> Any:
        return self.link.popleft() if self.link else None

    @property
    def has_link_command(self) -> bool:
        return bool(self.link)

    def get_deadline(self) -> float | None:
        return self.deadline

    def handle_deadline(self, *, now: float) -> None:
        self.handled.append(now)
        self.deadline = None

    def feed(self, name: str, now: float, *, events: Any = (), commands: Any = ()) -> str:
        self.log.append((name, now))
        self.events += events
        self.commands += commands
        return name


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=100.0)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def driver(machine: Machine, clock: ManualClock) -> Driver:
    return Driver(machine, clock)  # type: ignore[arg-type]


def nothing(*_given: object) -> None:
    """An action or a handler that does nothing."""


def play(number: int) -> PlayAudio:
    return PlayAudio(command_id=str(number), reply_id="r", pcm=b"")


async def test_a_step_gives_the_moment_and_returns_what_the_action_returns(driver, machine):
    assert driver.step(lambda m, now: m.feed("a", now)) == "a"
    assert machine.log == [("a", 100.0)]


async def test_commands_are_carried_out_and_events_told_within_the_step(driver):
    done: list[Any] = []
    driver.connect(execute=done.append, wake_link=lambda: None)
    stream = driver.subscribe()
    driver.step(lambda m, now: m.feed("a", now, events=[ReplyStarted(reply_id="r")], commands=[play(1)]))
    assert done == [play(1)]
    assert stream.waiting == 1


async def test_a_handler_that_feeds_again_is_applied_at_once_and_drained_in_order(driver, machine):
    """Its commands come behind those that wait already."""
    done: list[Any] = []

    def execute(command: Any) -> None:
        done.append(command.command_id)
        if command.command_id == "1":
            driver.feed(lambda m, now: m.feed("inner", now, commands=[play(3)]), where="test")
            assert machine.log[-1][0] == "inner"
            assert done == ["1"]

    driver.connect(execute=execute, wake_link=lambda: None)
    driver.step(lambda m, now: m.feed("outer", now, commands=[play(1), play(2)]))
    assert done == ["1", "2", "3"]


async def test_what_a_refused_action_had_changed_is_carried_out_and_its_error_rises(driver, machine):
    done: list[Any] = []
    driver.connect(execute=done.append, wake_link=lambda: None)

    def act(m: Machine, now: float) -> None:
        m.commands.append(play(1))
        raise UserError("no")

    with pytest.raises(UserError):
        driver.step(act)
    assert done == [play(1)]


async def test_a_shell_s_feed_that_is_refused_becomes_an_event(driver):
    stream = driver.subscribe()

    def act(m: Machine, now: float) -> None:
        raise IllegalTransition("cannot happen")

    driver.feed(act, where="model")
    event = await anext(stream)
    assert isinstance(event, ErrorReported)
    assert event.where == "model"


async def test_a_handler_that_fails_is_reported_and_the_others_run(driver, caplog):
    done: list[Any] = []

    def execute(command: Any) -> None:
        if isinstance(command, StopReply):
            raise LinkLost("broken")
        done.append(command)

    driver.connect(execute=execute, wake_link=lambda: None)
    stream = driver.subscribe()
    last = EndReply(command_id="2", reply_id="r")
    driver.step(lambda m, now: m.feed("a", now, commands=[StopReply(command_id="1", reply_id="r"), last]))
    assert done == [last]
    event = await anext(stream)
    assert isinstance(event, ErrorReported)
    assert event.where == "StopReply"


async def test_the_link_is_woken_only_when_something_waits_for_it(driver, machine):
    woken: list[int] = []
    driver.connect(execute=nothing, wake_link=lambda: woken.append(1))
    driver.step(lambda m, now: m.feed("a", now))
    assert woken == []
    machine.link.append(CreateResponse(command_id="1"))
    driver.step(lambda m, now: m.feed("b", now))
    assert woken == [1]
    assert driver.next_link_command() == CreateResponse(command_id="1")
    assert driver.next_link_command() is None
    assert woken == [1]


async def test_the_timer_fires_at_the_deadline_and_once(driver, machine, clock):
    machine.deadline = 105.0
    driver.step(nothing)
    await clock.run(4.9)
    assert machine.handled == []
    await clock.run(1.0)
    assert machine.handled == [105.0]
    assert clock.waiting == 0


async def test_what_brings_no_deadline_nearer_does_not_look_at_the_timer(driver, machine, monkeypatch):
    """Most of what passes: sound on its way out, an empty line, a frame that is dropped."""
    looked = 0

    def look() -> float | None:
        nonlocal looked
        looked += 1
        return None

    monkeypatch.setattr(machine, "get_deadline", look)
    machine.link.append(AppendAudio(command_id="1", pcm=b""))
    assert driver.next_link_command() is not None
    assert driver.next_link_command() is None
    driver.step(lambda m, now: m.feed("frame", now), timeless=True)
    driver.feed(lambda m, now: m.feed("done", now), where="link", timeless=True)
    assert looked == 0
    machine.link.append(CreateResponse(command_id="2"))
    assert driver.next_link_command() is not None
    driver.step(lambda m, now: m.feed("other", now))
    assert looked == 2


@pytest.mark.parametrize("follows", [{"events": [ReplyStarted(reply_id="r")]}, {"commands": [play(1)]}])
async def test_the_timer_is_looked_at_when_something_follows_after_all(driver, machine, clock, follows):
    driver.connect(execute=nothing, wake_link=nothing)
    machine.deadline = 105.0
    driver.step(lambda m, now: m.feed("frame", now, **follows), timeless=True)
    await clock.run(6.0)
    assert machine.handled == [105.0]


async def test_a_later_deadline_costs_no_new_timer_and_an_earlier_one_is_met(driver, machine, clock):
    machine.deadline = 105.0
    driver.step(nothing)
    machine.deadline = 110.0
    for _ in range(50):
        driver.step(nothing)
    assert clock.waiting == 1
    await clock.run(6.0)
    assert machine.handled == []
    machine.deadline = 107.0
    driver.step(nothing)
    await clock.run(2.0)
    assert machine.handled == [107.0]


async def test_any_number_of_iterators_each_from_its_own_beginning(driver):
    first = driver.subscribe()
    driver.publish(ReplyStarted(reply_id="1"))
    second = driver.subscribe()
    driver.publish(ReplyStarted(reply_id="2"))
    driver.close(None)
    assert [event.reply_id async for event in first] == ["1", "2"]
    assert [event.reply_id async for event in second] == ["2"]


async def test_events_are_queued_only_for_iterators_that_exist(driver):
    stream = driver.subscribe()
    driver.publish(ReplyStarted(reply_id="1"))
    assert driver.backlog() == (1, 0)
    del stream
    gc.collect()
    driver.publish(ReplyStarted(reply_id="2"))
    assert driver.backlog() == (0, 0)


async def test_after_the_end_iterators_give_the_rest_and_the_error_and_nothing_runs(driver, machine, clock):
    machine.deadline = 105.0
    driver.step(nothing)
    stream = driver.subscribe()
    driver.publish(SessionEnded(reason="link_lost", error=LinkLost("gone")))
    driver.close(LinkLost("gone"))
    driver.close(None)
    assert clock.waiting == 0
    assert isinstance(await anext(stream), SessionEnded)
    with pytest.raises(LinkLost):
        await anext(stream)
    with pytest.raises(SessionClosed):
        driver.step(lambda m, now: m.feed("late", now))
    driver.feed(lambda m, now: m.feed("late", now), where="test")
    assert machine.log == []
    assert driver.next_link_command() is None
    assert [event async for event in driver.subscribe()] == []


async def test_observers_see_every_event_within_the_step(driver):
    seen: list[Any] = []
    driver.observe(seen.append)
    driver.step(lambda m, now: m.feed("a", now, events=[ReplyStarted(reply_id="1")]))
    assert seen == [ReplyStarted(reply_id="1")]


async def test_a_slow_iterator_does_not_hold_up_a_fast_one(driver):
    slow, fast = driver.subscribe(), driver.subscribe()
    got: list[str] = []

    async def read() -> None:
        got.extend([event.reply_id async for event in fast])

    reading = asyncio.create_task(read())
    for number in range(1500):
        driver.publish(ReplyStarted(reply_id=str(number)))
        await asyncio.sleep(0)
    driver.close(None)
    await reading
    assert len(got) == 1500
    assert slow.dropped == 1001


# -- the user's sound ----------------------------------------------------------------------------------------------------


class Hearing(Machine):
    """Takes sound; what the socket would take at once is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[bytes, bool, float]] = []
        self.waits = False
        self.played: list[tuple[str, int, bool, float]] = []
        self.looked = 0

    def has_output(self) -> bool:
        return bool(self.events or self.commands)

    def get_deadline(self) -> float | None:
        self.looked += 1
        return super().get_deadline()

    def receive_audio(self, pcm: bytes, *, at_once: bool, now: float) -> AppendAudio | None:
        self.heard.append((pcm, at_once, now))
        command = AppendAudio(command_id="a", pcm=pcm)
        if at_once and not self.waits:
            return command
        self.link.append(command)
        return None

    def receive_played(self, reply_id: str, played_ms: int, *, finished: bool = False, now: float) -> None:
        self.played.append((reply_id, played_ms, finished, now))


class Line:
    """A line that takes sound at once."""

    is_clear = True

    def __init__(self, send: Callable[[AppendAudio], object]) -> None:
        self.put = send
        self.transport = self

    def encode(self, command: AppendAudio) -> list[AppendAudio]:
        return [command]


def say(listener: Driver, pcm: bytes, send: Callable[[AppendAudio], object] | None = None) -> None:
    listener.sound_line = None if send is None else Line(send)  # type: ignore[assignment]
    listener.receive_audio(pcm)


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.fixture
def listener(hearing: Hearing, clock: ManualClock) -> Driver:
    return Driver(hearing, clock)  # type: ignore[arg-type]


def test_sound_that_the_socket_takes_is_sent_within_the_step_and_nobody_is_woken(listener, hearing):
    sent: list[AppendAudio] = []
    woken: list[str] = []
    listener.connect(execute=nothing, wake_link=lambda: woken.append("woken"))
    say(listener, b"12", sent.append)
    assert hearing.heard == [(b"12", True, 100.0)]
    assert sent == [AppendAudio(command_id="a", pcm=b"12")]
    assert woken == []
    assert hearing.looked == 0


@pytest.mark.parametrize("waits", [True, False])
def test_sound_that_has_to_wait_wakes_the_link(listener, hearing, waits):
    hearing.waits = waits
    sent: list[AppendAudio] = []
    woken: list[str] = []
    listener.connect(execute=nothing, wake_link=lambda: woken.append("woken"))
    say(listener, b"12", sent.append if waits else None)
    assert sent == []
    assert woken == ["woken"]
    assert hearing.looked == 1
    assert listener.next_link_command() == AppendAudio(command_id="a", pcm=b"12")


def test_what_follows_from_sound_is_drained_after_it_was_sent(listener, hearing):
    order: list[str] = []
    listener.connect(execute=lambda command: order.append(command.command_id), wake_link=nothing)
    hearing.commands.append(play(1))
    say(listener, b"12", lambda _: order.append("sent"))
    assert order == ["sent", "1"]


async def test_sound_that_the_machine_refuses_becomes_an_event(listener, hearing, monkeypatch):
    stream = listener.subscribe()

    def refuse(*_given: object, **_named: object) -> None:
        raise UserError("no")

    monkeypatch.setattr(hearing, "receive_audio", refuse)
    say(listener, b"12", nothing)
    event = await anext(stream)
    assert isinstance(event, ErrorReported)
    assert event.where == "audio"


def test_after_the_end_sound_goes_nowhere(listener, hearing):
    listener.close(None)
    say(listener, b"12", nothing)
    assert hearing.heard == []


@pytest.mark.parametrize(("is_listening", "reports"), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("is_clear", [True, False])
def test_a_lent_ear_hears_what_the_machine_has_taken(listener, hearing, is_listening, reports, is_clear):
    order: list[object] = []
    listener.connect(execute=nothing, wake_link=lambda: order.append("woken"))
    hearing.capabilities = ModelCapabilities(model="m", reports_speech_boundaries=reports)
    listener.lend_ear(SimpleNamespace(is_listening=is_listening, receive=order.append))
    say(listener, b"12", (lambda _: order.append("sent")) if is_clear else None)
    assert order == ["sent" if is_clear else "woken", *[b"12"] * (is_listening or not reports)]


# -- what was heard of a reply ---------------------------------------------------------------------------------------------


def test_of_a_reply_that_is_being_heard_the_machine_is_told_before_it_is_asked_anything(listener, hearing, clock):
    """P1: a position that is asked for is exact. The first is told at once, since its moment counts."""
    listener.report_played("r", 20, finished=False)
    assert hearing.played == [("r", 20, False, 100.0)]
    for ms in (40, 60, 80):
        clock.advance(0.02)
        listener.report_played("r", ms, finished=False)
    assert len(hearing.played) == 1
    seen: list[Any] = []
    listener.step(lambda _machine, _now: seen.extend(hearing.played))
    assert seen[1:] == [("r", 80, False, clock.now())]
    listener.feed(nothing, where="test")
    assert len(hearing.played) == 2


def test_steps_that_ask_for_no_position_are_told_none(listener, hearing):
    listener.connect(execute=nothing, wake_link=nothing)
    listener.report_played("r", 20, finished=False)
    listener.report_played("r", 40, finished=False)
    listener.step(nothing, timeless=True)
    say(listener, b"12", nothing)
    listener.next_link_command()
    assert len(hearing.played) == 1
    listener.catch_up()
    listener.catch_up()
    assert hearing.played[1:] == [("r", 40, False, 100.0)]


def test_the_end_of_a_reply_and_the_next_one_are_told_at_once_and_in_order(listener, hearing):
    for ms, finished in ((20, False), (40, False), (60, True)):
        listener.report_played("r", ms, finished=finished)
    listener.report_played("s", 20, finished=False)
    assert [told[:3] for told in hearing.played] == [
        ("r", 20, False),
        ("r", 40, False),
        ("r", 60, True),
        ("s", 20, False),
    ]


def test_a_reply_of_which_nothing_was_heard_yet_is_not_begun(listener, hearing):
    """The moment of its first sound is the one that counts."""
    listener.report_played("r", 0, finished=False)
    listener.report_played("r", 20, finished=False)
    assert [told[1] for told in hearing.played] == [0, 20]


async def test_time_that_passes_is_told_what_was_heard_first(listener, hearing, clock):
    hearing.deadline = 101.0
    listener.report_played("r", 20, finished=False)
    listener.report_played("r", 40, finished=False)
    await clock.run(1.5)
    assert hearing.handled == [101.0]
    assert hearing.played[-1][1] == 40


def test_after_the_end_nothing_more_is_told(listener, hearing):
    listener.report_played("r", 20, finished=False)
    listener.report_played("r", 40, finished=False)
    listener.close(None)
    listener.catch_up()
    listener.report_played("r", 60, finished=True)
    assert len(hearing.played) == 1


def test_of_a_reply_that_plays_on_undisturbed_the_machine_is_told_once_a_second(listener, hearing):
    for ms in range(20, 3_000, 20):
        listener.report_played("r", ms, finished=False)
    assert [told[1] for told in hearing.played] == [20, 1_020, 2_020]
    listener.catch_up()
    assert hearing.played[-1][1] == 2_980
