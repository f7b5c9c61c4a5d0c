"""A turn begun while a reply is being made, where the provider does not say where items join: behaviour.md H3, H4."""

from __future__ import annotations

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.overlap import REPLY_PATIENCE_SECONDS
from realtime.core.settings import Retention, ToolSpec, TurnDetection

GEMINI = {
    "reports_item_order": False,
    "reports_speech_boundaries": False,
    "supports_item_deletion": False,
    "supports_truncation": False,
}
WEATHER = ToolSpec(name="weather")


def begin_turn(rig, item: str) -> None:
    """The first that such a provider says of a turn: it is there, and nobody knows where."""
    rig.feed(said.ItemAdded(item_id=item, kind="message", role="user", has_place=False))


def barge_in(rig, item: str) -> None:
    rig.feed(said.SpeechBegan(item_id=item, at_ms=rig.audio_ms))
    begin_turn(rig, item)


def finish_turn(rig, item: str, text: str) -> None:
    rig.feed(said.InputCommitted(item_id=item), said.InputTranscriptDone(item_id=item, text=text))


def start_reply(rig, response: str, item: str) -> None:
    rig.feed(
        said.ResponseStarted(response_id=response),
        said.OutputItemStarted(response_id=response, item_id=item, kind="message"),
        said.ItemAdded(item_id=item, kind="message", role="assistant", has_place=False),
    )


def speak(rig, response: str, item: str, text: str, *, ms: int = 1000) -> None:
    rig.feed(
        said.OutputTextUpdated(response_id=response, item_id=item, delta=text, spoken=True),
        said.OutputAudio(response_id=response, item_id=item, pcm=b"\x01\x00" * (24 * ms)),
    )


def end_reply(rig, response: str, item: str | None, *, status: str = "completed") -> None:
    if item is not None:
        rig.feed(said.OutputItemDone(response_id=response, item_id=item))
    rig.feed(said.ResponseEnded(response_id=response, status=status))


def test_turn_that_barged_in_stands_behind_the_reply_that_it_cut(make_rig):
    """H3: it joins the history once the provider ends the reply."""
    rig = make_rig(capabilities=GEMINI)
    begin_turn(rig, "u1")
    finish_turn(rig, "u1", "tell me a story")
    start_reply(rig, "r1", "a1")
    speak(rig, "r1", "a1", "once upon a time")
    rig.play("r1", 600)
    barge_in(rig, "u2")
    finish_turn(rig, "u2", "stop")
    assert rig.names() == ["u:tell me a story", "a:once upon"]
    end_reply(rig, "r1", None, status="cancelled")
    assert rig.names() == ["u:tell me a story", "a:once upon", "u:stop"]


def test_what_the_reply_still_adds_stands_before_the_turn(make_rig):
    """H3: a call that the interrupted reply makes after the barge-in is the reply's."""
    rig = make_rig(capabilities=GEMINI, tools=(WEATHER,))
    start_reply(rig, "r1", "a1")
    speak(rig, "r1", "a1", "one moment")
    rig.play("r1", 1000)
    barge_in(rig, "u2")
    finish_turn(rig, "u2", "hurry")
    rig.feed(
        said.OutputItemStarted(response_id="r1", item_id="f1", kind="function_call"),
        said.ItemAdded(item_id="f1", kind="function_call", has_place=False, call_id="c1"),
        said.ToolCallDone(response_id="r1", item_id="f1", call_id="c1", name="weather", arguments="{}"),
    )
    end_reply(rig, "r1", None, status="cancelled")
    rig.answer_tool("c1", "fog")
    assert rig.names() == ["a:one moment", "call:c1", "result:c1", "u:hurry"]


def test_reply_that_never_ends_gives_way_after_five_seconds(make_rig):
    """H3: the turn is recorded where history stands, ahead of what was sent meanwhile and of the reply."""
    rig = make_rig(capabilities=GEMINI)
    begin_turn(rig, "u1")
    finish_turn(rig, "u1", "go")
    start_reply(rig, "r1", "a1")
    speak(rig, "r1", "a1", "one two three four")
    rig.play("r1", 500)
    rig.machine.send(["typed meanwhile"], respond=False, now=rig.now)
    rig.pull()
    barge_in(rig, "u2")
    finish_turn(rig, "u2", "stop")
    rig.wait(REPLY_PATIENCE_SECONDS - 0.5)
    before = rig.names()
    rig.wait(1.0)
    assert rig.names()[: len(before)] == before
    assert rig.names()[len(before) :].index("u:stop") < rig.names()[len(before) :].index("u:typed meanwhile")
    end_reply(rig, "r1", None, status="cancelled")
    assert sorted(rig.names()) == ["a:one two", "u:go", "u:stop", "u:typed meanwhile"]


def test_turn_over_a_reply_that_goes_on_stands_before_it_after_five_seconds(make_rig):
    """H3, push-to-talk over a reply: nothing is interrupted."""
    rig = make_rig(capabilities=GEMINI, turn_detection=TurnDetection(mode="manual"))
    start_reply(rig, "r1", "a1")
    speak(rig, "r1", "a1", "a long story")
    begin_turn(rig, "u1")
    finish_turn(rig, "u1", "and then?")
    rig.machine.send(["typed meanwhile"], respond=False, now=rig.now)
    rig.pull()
    rig.wait(REPLY_PATIENCE_SECONDS - 0.1)
    assert rig.names() == []
    rig.wait(0.2)
    assert rig.names() == ["u:and then?"]
    end_reply(rig, "r1", "a1")
    rig.play("r1", 1000, finished=True)
    assert rig.names() == ["u:and then?", "a:a long story", "u:typed meanwhile"]


def test_a_turn_that_gives_way_does_not_pass_the_turn_that_the_reply_answers(make_rig):
    """H3: it stands before the reply, not before what came before the reply."""
    rig = make_rig(capabilities=GEMINI, turn_detection=TurnDetection(mode="manual"))
    begin_turn(rig, "u1")
    start_reply(rig, "r1", "a1")
    begin_turn(rig, "u2")
    finish_turn(rig, "u2", "second")
    rig.wait(REPLY_PATIENCE_SECONDS + 0.1)
    finish_turn(rig, "u1", "first")
    assert rig.names() == ["u:first", "u:second"]


def test_turn_begun_before_the_reply_stands_before_it_whenever_it_is_committed(make_rig):
    """H3: only a turn begun while the reply was being made stands behind it."""
    rig = make_rig(capabilities={**GEMINI, "reports_speech_boundaries": True})
    rig.begin_speech("u1")
    rig.hear(200)
    rig.feed(said.SpeechEnded(item_id="u1", at_ms=rig.audio_ms))
    start_reply(rig, "r1", "a1")
    finish_turn(rig, "u1", "question")
    speak(rig, "r1", "a1", "answer")
    end_reply(rig, "r1", "a1")
    rig.play("r1", 1000, finished=True)
    assert rig.names() == ["u:question", "a:answer"]


def test_where_items_have_places_these_alone_decide(make_rig):
    """H3: elsewhere H1 alone."""
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two", ms=1000)
    rig.play("r1", 500)
    rig.begin_speech("u1")
    rig.hear(200)
    rig.end_speech("u1")
    rig.transcribe("u1", "stop")
    assert rig.names() == ["a:one", "u:stop"]


@pytest.mark.parametrize("transcription", ["off", "auto"])
def test_audio_after_the_last_response_is_one_more_turn_at_close(make_rig, transcription):
    """H4, Gemini: where nothing is transcribed; silence after a transcribed turn is none."""
    rig = make_rig(capabilities=GEMINI, transcription=transcription, retention=Retention(audio="input_audio"))
    rig.hear(400)
    begin_turn(rig, "u1")
    start_reply(rig, "r1", "a1")
    speak(rig, "r1", "a1", "yes", ms=100)
    finish_turn(rig, "u1", "")
    end_reply(rig, "r1", "a1")
    rig.play("r1", 100, finished=True)
    rig.hear(600)
    rig.machine.close(now=rig.now)
    rig.drain()
    recorded = [message.audio.duration_ms for message in rig.machine.messages() if message.audio]
    assert recorded == ([400, 600] if transcription == "off" else [400])
    assert rig.names() == ["u:", "a:yes", "u:"][: 3 if transcription == "off" else 2]


def test_open_turn_is_recorded_with_its_audio_at_close(make_rig):
    """H7: with what it has."""
    rig = make_rig(retention=Retention(audio="input_audio"))
    rig.begin_speech("u1")
    rig.feed(said.InputTranscriptUpdated(item_id="u1", delta="I was just"))
    rig.hear(300)
    rig.machine.close(now=rig.now)
    rig.drain()
    (message,) = rig.machine.messages()
    assert (message.content, message.audio.duration_ms) == ("I was just", 300)


# -- push-to-talk -----------------------------------------------------------------------------------------------------

HOLDS = {"takes_commits_during_response": False}


def push_to_talk(rig, ms: int = 200) -> bool:
    rig.hear(ms)
    return rig.machine.commit_audio(now=rig.now)


def test_each_commit_with_audio_is_one_turn(make_rig):
    """H4."""
    rig = make_rig(turn_detection=TurnDetection(mode="manual"), transcription="off")
    for item in ("u1", "u2"):
        assert push_to_talk(rig)
        assert isinstance(rig.pull()[-1], do.CommitAudio)
        rig.feed(said.InputCommitted(item_id=item, previous_item_id=rig.last_item))
        rig.feed(said.ItemAdded(item_id=item, kind="message", role="user", previous_item_id=rig.last_item))
        rig.last_item = item
        assert rig.machine.commit_audio(now=rig.now) is False
    assert rig.names() == ["u:", "u:"]


def test_commits_during_a_reply_go_out_together_after_it(make_rig):
    """H4, xAI: as one turn."""
    rig = make_rig(capabilities=HOLDS, turn_detection=TurnDetection(mode="manual"))
    rig.start_reply("r1", "a1")
    assert push_to_talk(rig)
    assert push_to_talk(rig)
    assert rig.sent_of(do.CommitAudio) == []
    rig.speak("r1", "a1", "yes", ms=100)
    rig.end_reply("r1", "a1", "yes")
    assert [type(command) for command in rig.pull()] == [do.CommitAudio]


def test_commit_that_is_still_held_back_at_close_records_nothing(make_rig):
    """H4, xAI."""
    rig = make_rig(capabilities=HOLDS, turn_detection=TurnDetection(mode="manual"), transcription="off")
    rig.start_reply("r1", "a1")
    assert push_to_talk(rig)
    rig.machine.close(now=rig.now)
    rig.drain()
    assert rig.pull() == []
    assert rig.names() == []


def test_push_to_talk_that_is_not_committed_yet_survives_a_drop(make_rig):
    """L2: without turn detection every sound since the last commit is of the turn."""
    rig = make_rig(turn_detection=TurnDetection(mode="manual"))
    rig.hear(5_000)
    rig.drop()
    sent = rig.connect()
    assert sum(len(command.pcm) // 48 for command in sent if isinstance(command, do.AppendAudio)) == 5_000


def test_turn_that_is_still_being_spoken_is_not_given_up(make_rig):
    """H2: the thirty seconds run when it has been spoken (a provider may add a turn's item when speech begins)."""
    rig = make_rig()
    rig.begin_speech("u1")
    rig.feed(said.ItemAdded(item_id="u1", kind="message", role="user"))
    rig.last_item = "u1"
    rig.frame(1)
    rig.pull()
    for _ in range(9):
        rig.hear(5_000)
        rig.wait(0)
    assert rig.names() == []
    rig.end_speech("u1", role_item=False)
    rig.transcribe("u1", "a long thought")
    assert rig.names() == ["u:a long thought", "frame"]
    assert rig.of(seen.SpeechStopped)


def test_a_response_does_not_overtake_the_turn_that_it_answers(make_rig):
    """Push-to-talk: control goes before audio, but for the response to a commit that still waits behind its audio."""
    rig = make_rig(turn_detection=TurnDetection(mode="manual"))
    rig.machine.receive_audio(b"\1\2" * 2400, now=rig.now)
    rig.machine.commit_audio(now=rig.now)
    rig.machine.create_response(now=rig.now)
    kinds = [type(command) for command in rig.pull()]
    assert kinds == [do.AppendAudio, do.CommitAudio, do.CreateResponse]
