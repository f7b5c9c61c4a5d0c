"""The machine as a whole: deterministic, right about what happened, quiet after its end."""

from __future__ import annotations

import random
from typing import Any

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import Agent, FrameSampling, ToolSpec
from realtime.errors import ModelError, SessionClosed, UserError

WEATHER = ToolSpec(name="weather")


class Caller:
    """Drives a rig through a random call and knows what the history must say in the end."""

    def __init__(self, rig: Any, seed: int) -> None:
        self.rig = rig
        self.chance = random.Random(seed)
        self.truth: list[str] = []
        self.late: list[tuple[str, str]] = []
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.chance.choice([self.user_turn, self.typed, self.frame])()
            self.model_turn()
            if self.chance.random() < 0.5:
                self.deliver()
        self.deliver()

    def deliver(self) -> None:
        self.chance.shuffle(self.late)
        for item, text in self.late:
            self.rig.transcribe(item, text)
        self.late.clear()

    def user_turn(self) -> None:
        item = self.name("u")
        text = f"spoken {item}"
        fate = self.chance.random()
        self.rig.say(item, text if fate < 0.5 else None, ms=100)
        if 0.5 <= fate < 0.8:
            self.late.append((item, text))
        elif fate >= 0.8:
            self.rig.feed(said.InputTranscriptFailed(item_id=item))
            text = ""
        self.truth.append(f"u:{text}")

    def typed(self) -> None:
        text = self.name("typed")
        self.rig.machine.send([text], respond=False, now=self.rig.now)
        self.rig.pull()
        self.truth.append(f"u:{text}")

    def frame(self) -> None:
        self.count += 1
        self.rig.wait(2.0)
        if self.rig.frame(self.count).action == "keep":
            self.truth.append("frame")
        self.rig.pull()

    def model_turn(self) -> None:
        response, item = self.name("r"), self.name("a")
        words = [f"{item}w{index}" for index in range(self.chance.randint(1, 9))]
        rig, total = self.rig, 100 * len(words)
        rig.start_reply(response, item)
        rig.feed(
            said.OutputWords(
                response_id=response,
                item_id=item,
                words=tuple((f" {word}", 100 * (index + 1)) for index, word in enumerate(words)),
            )
        )
        rig.speak(response, item, " ".join(words), ms=total)
        rig.feed(said.OutputItemDone(response_id=response, item_id=item))
        if self.chance.random() < 0.3:
            heard = self.chance.randint(0, len(words))
            rig.machine.interrupt(played_ms=heard * 100, now=rig.now)
            rig.drain()
            rig.end_reply(response, None, status="cancelled")
            if heard:
                self.truth.append("a:" + " ".join(words[:heard]))
            return
        self.truth.append("a:" + " ".join(words))
        if self.chance.random() < 0.3:
            self.tool_round(response)
        rig.end_reply(response, None)
        rig.play(response, total, finished=True)

    def tool_round(self, response: str) -> None:
        calls = [self.name("c") for _ in range(self.chance.randint(1, 3))]
        for call in calls:
            self.rig.call_tool(response, f"f{call}", call, "weather")
        answered = list(calls)
        self.chance.shuffle(answered)
        for call in answered:
            self.rig.answer_tool(call, f"output {call}")
        self.truth += [f"call:{call}" for call in calls] + [f"result:{call}" for call in calls]


def random_call(make_rig, seed: int, turns: int) -> Caller:
    rig = make_rig(tools=(WEATHER,), sampling=FrameSampling(fps_idle=1.0))
    caller = Caller(rig, seed)
    caller.run(turns)
    return caller


@pytest.mark.parametrize("seed", range(40))
def test_random_calls_end_with_the_truth(make_rig, seed):
    """Heard words, order, pairs, frames: against the script that made the call."""
    caller = random_call(make_rig, seed, turns=25)
    assert caller.rig.names() == caller.truth
    assert caller.rig.context.messages() == caller.rig.machine.messages()
    caller.rig.machine.close(now=caller.rig.now)
    caller.rig.drain()
    assert caller.rig.names() == caller.truth


@pytest.mark.parametrize("seed", range(3))
def test_the_same_calls_give_the_same_events_and_commands(make_rig, seed):
    one, other = random_call(make_rig, seed, turns=20), random_call(make_rig, seed, turns=20)
    assert one.rig.events == other.rig.events
    assert one.rig.sent == other.rig.sent
    assert one.rig.local == other.rig.local
    assert one.rig.machine.statistics() == other.rig.machine.statistics()


@pytest.mark.parametrize("seed", range(10))
def test_a_drop_anywhere_leaves_the_history_as_it_was_heard(make_rig, seed):
    rig = make_rig(tools=(WEATHER,), sampling=FrameSampling(fps_idle=1.0))
    caller = Caller(rig, seed)
    caller.run(5)
    before = rig.names()
    rig.drop()
    rig.wait(caller.chance.random() * 5)
    replayed = [c for c in rig.connect() if isinstance(c, do.CreateItem)]
    assert len({item_id for c in replayed for item_id in c.item_ids}) == sum(len(c.item_ids) for c in replayed)
    caller.run(5)
    assert rig.names()[: len(before)] == before
    assert rig.names() == caller.truth


def test_events_arrive_with_the_history_at_least_that_far_along(make_rig):
    rig = make_rig()
    machine = rig.machine
    original = machine.next_event

    def watched() -> Any:
        event = original()
        if isinstance(event, seen.MessageCommitted):
            assert event.message in machine.messages()
            assert event.message in rig.context.messages()
        return event

    machine.next_event = watched
    caller = Caller(rig, 1)
    caller.run(10)
    assert rig.of(seen.MessageCommitted)


def test_nothing_happens_after_the_end(make_rig):
    rig = make_rig()
    rig.machine.close(now=rig.now)
    rig.drain()
    ended = list(rig.events)
    rig.feed(said.SpeechBegan(item_id="u1", at_ms=0), said.ResponseStarted(response_id="r1"))
    rig.machine.receive_audio(b"\x00\x00", now=rig.now)
    rig.machine.close(now=rig.now)
    rig.drop()
    rig.wait(100)
    assert rig.events == ended
    assert len(rig.of(seen.SessionEnded)) == 1
    with pytest.raises(SessionClosed):
        rig.machine.send(["too late"], respond=None, now=rig.now)


def test_fatal_fault_ends_the_session(make_rig):
    rig = make_rig()
    rig.feed(said.ModelFault(message="bad key", code="invalid_api_key", fatal=True))
    assert rig.machine.is_closed
    assert isinstance(rig.events[-1].error, ModelError)
    assert rig.events[-1].reason == "error"


def test_unknown_reports_are_counted(make_rig):
    rig = make_rig()
    rig.feed(said.UnknownReport(type="shiny.new"), said.UnknownReport(type="shiny.new"))
    assert rig.machine.statistics().unknown_reports == {"shiny.new": 2}


def test_hand_off_is_recorded_and_attributed(make_rig):
    rig = make_rig(agent=Agent(id="front", instructions="Greet."), tools=(WEATHER,))
    rig.say("u1", "hi")
    rig.reply("r1", "a1", "Hello.")
    handoff = rig.machine.hand_off(Agent(id="desk", instructions="Book."), (), reason="wants a table", now=rig.now)
    rig.drain()
    configuration = rig.pull()[-1]
    assert isinstance(configuration, do.ConfigureSession)
    assert (configuration.instructions, configuration.tools) == ("Book.", ())
    rig.say("u2", "a table")
    rig.reply("r2", "a2", "Done.")
    assert [message.agent_id for message in rig.machine.messages()] == ["", "front", "", "desk"]
    assert rig.context.last_handoff() == handoff
    assert (handoff.from_agent, handoff.to_agent, handoff.reason) == ("front", "desk", "wants a table")
    assert rig.of(seen.HandedOff)[0].handoff == handoff


def test_commit_without_audio_does_nothing(make_rig):
    """T6."""
    rig = make_rig()
    assert rig.machine.commit_audio(now=rig.now) is False
    assert rig.pull() == []
    rig.hear(200)
    assert rig.machine.commit_audio(now=rig.now) is True
    assert rig.machine.commit_audio(now=rig.now) is False
    assert [type(command) for command in rig.pull()] == [do.CommitAudio]


def test_text_and_pictures_in_turn_make_one_message_per_run(make_rig, picture):
    """F9."""
    rig = make_rig()
    ids = rig.machine.send(["one", "two", picture(1), picture(2), "three", picture(3)], respond=False, now=rig.now)
    rig.pull()
    messages = rig.machine.messages()
    assert [(m.content, len(m.images)) for m in messages] == [("one\ntwo", 2), ("three", 1)]
    assert [message.message_id for message in messages] == ids


def test_pending_shows_turns_that_are_still_being_spoken_or_played(make_rig):
    rig = make_rig()
    rig.begin_speech("u1")
    assert [message.message_id for message in rig.machine.pending] == ["u1"]
    rig.hear(200)
    rig.end_speech("u1")
    rig.feed(said.InputTranscriptUpdated(item_id="u1", delta="Is it"))
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "It", ms=100)
    assert [message.content for message in rig.machine.pending] == ["Is it", "It"]


def test_failed_command_is_reported_and_forgotten(make_rig):
    rig = make_rig()
    rig.machine.create_response(now=rig.now)
    command = rig.machine.next_link_command(now=rig.now)
    rig.machine.receive_command_failed(command.command_id, UserError("not in this protocol"), now=rig.now)
    rig.drain()
    assert rig.of(seen.ErrorReported)[0].where == "link"
    rig.machine.create_response(now=rig.now)
    assert [type(c) for c in rig.pull()] == [do.CreateResponse]


def test_voice_activity_of_ours_moves_the_sampler_alone(make_rig):
    rig = make_rig()
    rig.frame(1)
    rig.machine.receive_voice_activity(speaking=True, at_ms=0, now=rig.now)
    rig.drain()
    rig.now += 1.1
    assert rig.frame(2).action == "keep"
    assert rig.of(seen.SpeechStarted) == []
