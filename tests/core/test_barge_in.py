"""False interruption: a sound with no words behind it goes on where it stopped (setting `resume_after_ms`)."""

from __future__ import annotations

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.barge_in import is_backchannel
from realtime.core.settings import SessionSettings, TurnDetection
from realtime.errors import ArgumentError


def speaking(make_rig, *, done: bool = True):
    rig = make_rig(resume_after_ms=1_000)
    rig.say("u1", "go")
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two three four", ms=2_000)
    if done:
        rig.end_reply("r1", "a1", "one two three four")
    rig.play("r1", 1_000)
    rig.local.clear()
    return rig


def test_server_is_told_neither_to_interrupt_nor_to_respond(make_rig):
    rig = make_rig(resume_after_ms=1_000)
    detection = rig.sent[0].turn_detection
    assert (detection.create_response, detection.interrupt_response) == (False, False)


def test_cough_silences_the_reply_and_then_it_goes_on_where_it_stopped(make_rig):
    rig = speaking(make_rig)
    rig.begin_speech("u2")
    assert [type(command) for command in rig.local] == [do.StopReply]
    rig.hear(200)
    rig.end_speech("u2")
    rig.wait(1.1)
    _stop, resume, end = rig.local
    assert isinstance(resume, do.ResumeReply)
    assert len(resume.pcm) == 1_000 * 48
    assert isinstance(end, do.EndReply)
    rig.play("r1", 2_000, finished=True)
    rig.transcribe("u2", "")
    assert rig.names() == ["u:go", "a:one two three four", "u:"]
    assert rig.of(seen.ReplyInterrupted) == []
    assert not any(isinstance(command, do.CreateResponse) for command in rig.pull())


def test_words_make_it_an_interruption_where_it_was_held(make_rig):
    rig = speaking(make_rig)
    rig.begin_speech("u2")
    rig.hear(200)
    rig.feed(said.InputTranscriptUpdated(item_id="u2", delta="Wait a"))
    assert rig.of(seen.ReplyInterrupted)[0].heard == "one two"
    rig.end_speech("u2")
    rig.transcribe("u2", "Wait a moment")
    assert rig.names() == ["u:go", "a:one two", "u:Wait a moment"]
    assert do.CreateResponse in [type(command) for command in rig.pull()]
    assert rig.local_of(do.ResumeReply) == []


def test_backchannel_resumes_at_once_and_is_not_answered(make_rig):
    rig = speaking(make_rig)
    rig.begin_speech("u2")
    rig.hear(200)
    rig.end_speech("u2")
    rig.transcribe("u2", "Uh-huh, right.")
    assert len(rig.local_of(do.ResumeReply)) == 1
    rig.play("r1", 2_000, finished=True)
    assert rig.names() == ["u:go", "a:one two three four", "u:Uh-huh, right."]
    assert not any(isinstance(command, do.CreateResponse) for command in rig.pull())


def test_yes_is_an_answer_when_nobody_was_speaking(make_rig):
    rig = make_rig(resume_after_ms=1_000)
    rig.say("u1", "Yes.")
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]


def test_late_words_interrupt_a_reply_that_went_on(make_rig):
    rig = speaking(make_rig)
    rig.begin_speech("u2")
    rig.hear(200)
    rig.end_speech("u2")
    rig.wait(1.1)
    rig.play("r1", 1_500)
    rig.transcribe("u2", "Stop it please")
    assert rig.of(seen.ReplyInterrupted)[0].heard_ms == 1_500
    assert rig.names() == ["u:go", "a:one two three", "u:Stop it please"]


def test_reply_that_is_still_being_made_is_kept_while_it_is_held(make_rig):
    rig = speaking(make_rig, done=False)
    rig.begin_speech("u2")
    rig.speak("r1", "a1", " five six", ms=1_000)
    assert rig.local_of(do.PlayAudio) == []
    rig.end_speech("u2")
    rig.wait(1.1)
    assert len(rig.local_of(do.ResumeReply)[0].pcm) == 2_000 * 48
    rig.end_reply("r1", "a1", "one two three four five six")
    rig.play("r1", 3_000, finished=True)
    assert rig.names() == ["u:go", "a:one two three four five six", "u:"] or rig.names() == [
        "u:go",
        "a:one two three four five six",
    ]


def test_interruption_of_a_running_response_cancels_it(make_rig):
    rig = speaking(make_rig, done=False)
    rig.begin_speech("u2")
    rig.feed(said.InputTranscriptUpdated(item_id="u2", delta="No, wait"))
    assert [command.response_id for command in rig.pull() if isinstance(command, do.CancelResponse)] == ["r1"]


@pytest.mark.parametrize("settings", [{"transcription": "off"}, {"turn_detection": TurnDetection(mode="manual")}])
def test_it_needs_words_and_turns(settings):
    with pytest.raises(ArgumentError, match="resume_after_ms"):
        SessionSettings(resume_after_ms=500, **settings)


@pytest.mark.parametrize("text", ["", " ", "Mm-hmm.", "Yeah, okay.", "uh-huh", "うん"])
def test_assent_is_a_backchannel(text):
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["no", "stop", "okay but wait", "yes yes yes yes", "what?", "你好"])
def test_everything_else_is_not(text):
    assert not is_backchannel(text)
