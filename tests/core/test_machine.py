"""The machine as a whole: acts, attribution, and quiet after its end. Whole calls are in `test_random_calls`."""

from __future__ import annotations

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import Agent, ToolSpec
from realtime.errors import ModelError, SessionClosed, UserError

WEATHER = ToolSpec(name="weather")


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
    rig.machine.receive_voice_activity(speaking=True, ago_ms=0, now=rig.now)
    rig.drain()
    rig.now += 1.1
    assert rig.frame(2).action == "keep"
    assert rig.of(seen.SpeechStarted) == []


def test_sound_goes_at_once_only_where_nothing_waits_before_it(make_rig):
    """T6: what went at once can be committed."""
    rig = make_rig()
    rig.hear(20)  # the first brings a deadline

    def hear(pcm: bytes) -> do.AppendAudio | None:
        return rig.machine.receive_audio(pcm, at_once=True, now=rig.now)

    rig.frame(1)
    first = hear(b"\x01\x00")
    assert first is not None
    assert first.pcm == b"\x01\x00"
    assert rig.machine.receive_audio(b"\x02\x00", now=rig.now) is None
    assert hear(b"\x03\x00") is None  # sound waits
    assert [command.pcm for command in rig.pull() if isinstance(command, do.AppendAudio)] == [b"\x02\x00", b"\x03\x00"]
    rig.machine.send(["Hello."], respond=False, now=rig.now)
    assert hear(b"\x04\x00") is None  # control waits
    rig.pull()
    assert rig.machine.commit_audio(now=rig.now)
    rig.drop()
    assert hear(b"\x05\x00") is None  # no connection
    assert rig.machine._input_audio.since_commit == 1
