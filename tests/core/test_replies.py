"""What was heard: behaviour.md P0–P3, field cases B28, B29, B58."""

from __future__ import annotations

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import Retention

TWENTY = " ".join(f"word{index:02}" for index in range(20))


def interrupted_at(make_rig, played_ms: int, *, total_ms: int = 10_000, text: str = TWENTY, **settings):
    rig = make_rig(**settings)
    rig.say("u1", "talk")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", text, ms=total_ms)
    rig.end_reply("r1", "a1", text)
    rig.machine.interrupt(played_ms=played_ms, now=rig.now)
    rig.drain()
    rig.pull()
    return rig


def test_barge_in_cuts_transcript_to_heard_ms(make_rig):
    """P1, B28."""
    rig = interrupted_at(make_rig, 5_000)
    message = rig.machine.messages()[-1]
    assert message.content == " ".join(f"word{index:02}" for index in range(10))
    assert message.unheard == " ".join(f"word{index:02}" for index in range(10, 20))
    assert message.interrupted
    assert message.heard_ms == 5_000
    (truncate,) = rig.sent_of(do.TruncateItem)
    assert (truncate.item_id, truncate.audio_end_ms) == ("a1", 5_000)


def test_nothing_heard_is_no_message_and_the_item_is_deleted(make_rig):
    """P1, P2, B28: and never the previous reply's text."""
    rig = make_rig()
    rig.say("u1", "one")
    rig.reply("r1", "a1", "First answer.")
    rig.start_reply("r2", "a2")
    rig.speak("r2", "a2", "Second answer.", ms=2_000)
    rig.machine.interrupt(now=rig.now)
    rig.drain()
    rig.pull()
    assert rig.names() == ["u:one", "a:First answer."]
    assert [command.item_id for command in rig.sent_of(do.DeleteItem)] == ["a2"]
    assert rig.sent_of(do.TruncateItem) == []


@pytest.mark.parametrize("played_ms", [10_000, 12_345])
def test_fully_heard_is_unchanged_and_not_marked(make_rig, played_ms):
    """P1, B28, B29: a position beyond the audio means all of it, and nothing is sent."""
    rig = interrupted_at(make_rig, played_ms)
    message = rig.machine.messages()[-1]
    assert message.content == TWENTY
    assert not message.interrupted
    assert message.unheard == ""
    assert rig.sent_of(do.TruncateItem) == []


def test_second_interruption_changes_nothing(make_rig):
    """B28."""
    rig = interrupted_at(make_rig, 5_000)
    before = rig.machine.messages()
    assert rig.machine.interrupt(played_ms=1_000, now=rig.now) is False
    rig.drain()
    assert rig.machine.messages() == before
    assert len(rig.of(seen.ReplyInterrupted)) == 1


def test_interrupt_before_any_audio_leaves_earlier_replies_alone(make_rig):
    """B28."""
    rig = make_rig()
    rig.say("u1", "one")
    rig.reply("r1", "a1", "First.")
    rig.feed(said.ResponseStarted(response_id="r2"))
    assert rig.machine.interrupt(now=rig.now) is True
    rig.drain()
    assert rig.names() == ["u:one", "a:First."]
    assert isinstance(rig.pull()[0], do.CancelResponse)


def test_barge_in_cuts_what_plays_and_leaves_the_cancel_to_the_server(make_rig):
    """P2: the server cancels by itself; we truncate."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two three four", ms=2_000)
    rig.play("r1", 1_000)
    rig.begin_speech("u2")
    assert [command.reply_id for command in rig.local_of(do.StopReply)] == ["r1"]
    rig.pull()
    assert rig.sent_of(do.CancelResponse) == []
    assert rig.sent_of(do.TruncateItem)[0].audio_end_ms == 1_000
    assert rig.of(seen.ReplyInterrupted)[0].cause == "barge_in"


def test_barge_in_cancels_where_the_server_does_not(make_rig):
    """P2."""
    rig = make_rig(capabilities={"cancels_on_barge_in": False})
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two", ms=2_000)
    rig.begin_speech("u2")
    rig.pull()
    assert [command.response_id for command in rig.sent_of(do.CancelResponse)] == ["r1"]


def test_late_deltas_of_a_cut_reply_are_dropped(make_rig):
    """P3, B58."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two three four", ms=1_000)
    rig.play("r1", 500)
    rig.begin_speech("u2")
    played = len(rig.local_of(do.PlayAudio))
    rig.speak("r1", "a1", "five six", ms=1_000)
    rig.end_reply("r1", "a1", "one two three four five six", status="cancelled")
    assert len(rig.local_of(do.PlayAudio)) == played
    assert rig.machine.messages()[-1].content == "one two"
    assert rig.machine.statistics().late_deltas == 3


def test_reply_is_pending_until_played_out(make_rig):
    """P0."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.reply("r1", "a1", "Here I am.", play=False)
    assert rig.names() == ["u:go"]
    assert [command.reply_id for command in rig.local_of(do.EndReply)] == ["r1"]
    rig.play("r1", 980)
    assert rig.names() == ["u:go"]
    rig.play("r1", 1_000, finished=True)
    assert rig.names() == ["u:go", "a:Here I am."]


def test_text_reply_is_committed_when_it_is_done(make_rig):
    """P0, P2: text items are never truncated."""
    rig = make_rig(output="text")
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.feed(said.OutputTextUpdated(response_id="r1", item_id="a1", delta="Written."))
    rig.feed(said.OutputItemDone(response_id="r1", item_id="a1"), said.ResponseEnded(response_id="r1"))
    assert rig.names() == ["u:go", "a:Written."]
    assert rig.machine.interrupt(now=rig.now) is False
    assert rig.pull() == []


def test_word_times_decide_where_there_are_any(make_rig):
    """P1: by the synthesizer's timestamps rather than by proportion."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.feed(
        said.OutputWords(
            response_id="r1", item_id="a1", words=(("I", 100), (" really", 1500), (" do", 1700), (" mean", 1900))
        )
    )
    rig.speak("r1", "a1", "I really do mean it.", ms=2_000)
    rig.end_reply("r1", "a1", "I really do mean it.")
    rig.machine.interrupt(played_ms=1_550, now=rig.now)
    rig.drain()
    assert rig.machine.messages()[-1].content == "I really"
    assert rig.machine.messages()[-1].unheard == "do mean it."


def test_each_item_is_cut_by_its_own_audio(make_rig):
    """P2, B29: a second item's position counts from its own start."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "First item.", ms=1_000)
    rig.feed(said.OutputItemDone(response_id="r1", item_id="a1"))
    rig.feed(said.OutputItemStarted(response_id="r1", item_id="a2", kind="message"))
    rig.feed(said.ItemAdded(item_id="a2", kind="message", role="assistant", previous_item_id="a1"))
    rig.speak("r1", "a2", "alpha beta gamma delta", ms=2_000)
    rig.feed(said.OutputItemDone(response_id="r1", item_id="a2"))
    rig.machine.interrupt(played_ms=2_000, now=rig.now)
    rig.drain()
    rig.pull()
    assert rig.texts()[-2:] == ["First item.", "alpha beta"]
    assert [(command.item_id, command.audio_end_ms) for command in rig.sent_of(do.TruncateItem)] == [("a2", 1_000)]


def test_tool_calls_of_an_unheard_reply_stay(make_rig):
    """P1: 0 ms: no message, but its tool calls stay."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "One moment.", ms=1_000)
    rig.call_tool("r1", "f1", "c1", "unknown")
    rig.begin_speech("u2")
    assert rig.names() == ["u:go", "call:c1", "result:c1"]


def test_dropped_response_gives_way_to_the_next(make_rig):
    """B31, xAI: a response that never ends does not block the next one."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "half", ms=200)
    rig.play("r1", 200)
    rig.say("u2", "again")
    rig.reply("r2", "a2", "whole")
    assert rig.names() == ["u:go", "a:half", "u:again", "a:whole"]


def test_retained_reply_audio_is_what_was_heard(make_rig):
    """R2: finalised audio is a WAV at the model's rate."""
    rig = interrupted_at(make_rig, 5_000, retention=Retention(audio="output_audio"))
    message = rig.machine.messages()[-1]
    assert message.audio is not None
    assert (message.audio.duration_ms, message.audio.rate_hz) == (5_000, 24_000)


def test_turn_completed_comes_after_its_messages_with_its_latency(make_rig):
    rig = make_rig()
    rig.begin_speech("u1")
    rig.hear(400)
    rig.hear(200)  # the provider notices the end 200 ms later
    rig.feed(said.SpeechEnded(item_id="u1", at_ms=400), said.InputCommitted(item_id="u1"))
    rig.feed(said.ItemAdded(item_id="u1", kind="message", role="user"))
    rig.last_item = "u1"
    rig.wait(0.1)
    rig.start_reply("r1", "a1")
    rig.wait(0.1)
    rig.speak("r1", "a1", "Yes.", ms=300)
    rig.wait(0.05)
    rig.play("r1", 20)
    rig.end_reply("r1", "a1", "Yes.")
    rig.play("r1", 300, finished=True)
    assert rig.of(seen.TurnCompleted) == []
    rig.wait(0.05)
    rig.transcribe("u1", "Well?")
    kinds = [type(event) for event in rig.events]
    (completed,) = rig.of(seen.TurnCompleted)
    assert kinds[-3:] == [seen.MessageCommitted, seen.MessageCommitted, seen.TurnCompleted]
    assert [message.content for message in completed.messages] == ["Yes."]
    assert completed.latency == seen.TurnLatency(
        transcript_ms=500, response_ms=300, first_audio_ms=400, first_played_ms=450
    )
