"""Where each message stands: behaviour.md H0–H8, field cases B24, B25, B27."""

from __future__ import annotations

import itertools

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatRole
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.history import TRANSCRIPT_PATIENCE_SECONDS
from realtime.core.settings import Retention
from realtime.errors import UserError


def test_answer_waits_for_the_question_whose_transcript_is_late(make_rig):
    """H1, B25."""
    rig = make_rig()
    rig.say("u1", None)
    rig.reply("r1", "a1", "It is noon.")
    assert rig.names() == []
    assert [message.content for message in rig.machine.pending] == ["It is noon."]
    rig.transcribe("u1", "What time is it?")
    assert rig.names() == ["u:What time is it?", "a:It is noon."]
    assert rig.texts(rig.context.messages()) == ["What time is it?", "It is noon."]


def test_swapped_transcripts_land_on_their_own_turns(make_rig):
    """H1, B25."""
    rig = make_rig()
    rig.say("u1", None)
    rig.say("u2", None)
    rig.transcribe("u2", "second")
    assert rig.names() == []
    rig.transcribe("u1", "first")
    assert rig.names() == ["u:first", "u:second"]


def test_snapshots_are_prefixes_of_later_ones(make_rig):
    """H1: nothing is inserted ahead of messages already returned."""
    rig = make_rig()
    snapshots = []
    rig.at_every_step.append(lambda: snapshots.append(rig.names()))
    rig.say("u1", "one")
    rig.reply("r1", "a1", "two")
    rig.say("u2", None)
    rig.reply("r2", "a2", "four")
    rig.frame(1)
    rig.pull()
    rig.transcribe("u2", "three")
    assert rig.names() == ["u:one", "a:two", "u:three", "a:four", "frame"]
    for earlier, later in itertools.pairwise(snapshots):
        assert later[: len(earlier)] == earlier


def test_turn_without_transcript_holds_back_for_thirty_seconds_only(make_rig):
    """H2: the clock runs from when something later is final."""
    rig = make_rig()
    rig.say("u1", None)
    rig.wait(100)
    rig.reply("r1", "a1", "Yes.")
    rig.wait(TRANSCRIPT_PATIENCE_SECONDS - 1)
    assert rig.names() == []
    rig.wait(2)
    assert rig.names() == ["u:", "a:Yes."]
    rig.transcribe("u1", "too late")
    assert rig.names() == ["u:", "a:Yes."]


def test_turn_that_gives_up_keeps_the_transcript_it_has(make_rig):
    """H2."""
    rig = make_rig()
    rig.say("u1", None)
    rig.feed(said.InputTranscriptUpdated(item_id="u1", delta="Is it"))
    rig.reply("r1", "a1", "Yes.")
    rig.wait(TRANSCRIPT_PATIENCE_SECONDS + 1)
    assert rig.names() == ["u:Is it", "a:Yes."]


def test_failed_transcription_settles_at_once(make_rig):
    """H2, B27."""
    rig = make_rig()
    rig.say("u1", None)
    rig.reply("r1", "a1", "Yes.")
    rig.feed(said.InputTranscriptFailed(item_id="u1", code="audio_unintelligible", message="?"))
    assert rig.names() == ["u:", "a:Yes."]
    assert rig.of(seen.TranscriptionFailed)[0].code == "audio_unintelligible"


def test_without_transcription_a_turn_is_a_message_without_content(make_rig):
    """H4."""
    rig = make_rig(transcription="off")
    rig.say("u1", None)
    assert rig.names() == ["u:"]
    assert rig.machine.messages()[0].audio is None


def test_without_transcription_retained_audio_is_the_message(make_rig):
    """H4: cut at the speech ends that the provider reports."""
    rig = make_rig(transcription="off", retention=Retention(audio="input_audio"))
    rig.say("u1", None, ms=400)
    rig.hear(600)
    rig.say("u2", None, ms=200)
    first, second = rig.machine.messages()
    assert first.audio is not None
    assert first.audio.duration_ms == 400
    assert second.audio is not None
    assert second.audio.duration_ms == 800


def test_deltas_then_done_then_a_replay_make_one_message(make_rig):
    """H5, B24."""
    rig = make_rig()
    rig.say("u1", None)
    for delta in ("How ", "are ", "you?"):
        rig.feed(said.InputTranscriptUpdated(item_id="u1", delta=delta))
    rig.transcribe("u1", "How are you?")
    rig.transcribe("u1", "How are you?")
    rig.feed(said.ItemAdded(item_id="u1", kind="message", role="user"))
    rig.reply("r1", "a1", "Well.")
    rig.feed(said.ItemAdded(item_id="a1", kind="message", role="assistant"))
    assert rig.names() == ["u:How are you?", "a:Well."]


def test_two_people_saying_yes_are_two_messages(make_rig):
    """H5."""
    rig = make_rig()
    rig.say("u1", "yes")
    rig.say("u2", "yes")
    assert rig.names() == ["u:yes", "u:yes"]


def test_cumulative_transcripts_replace(make_rig):
    """H5: xAI sends the whole transcript each time."""
    rig = make_rig()
    rig.say("u1", None)
    rig.feed(said.InputTranscriptUpdated(item_id="u1", text="I want two"))
    rig.feed(said.InputTranscriptUpdated(item_id="u1", text="I want to go"))
    assert [event.delta for event in rig.of(seen.TranscriptUpdated)] == ["I want two", ""]
    rig.transcribe("u1", "I want to go home")
    assert rig.names() == ["u:I want to go home"]


def test_refused_input_leaves_the_history(make_rig):
    """H6."""
    rig = make_rig()
    (message_id,) = rig.machine.send(["hello"], respond=False, now=rig.now)
    rig.pull()
    assert rig.names() == ["u:hello"]
    command = rig.sent_of(type(rig.sent[-1]))[-1]
    rig.feed(said.ModelFault(message="not allowed", code="invalid_value", command_id=command.command_id))
    assert rig.names() == []
    assert rig.of(seen.InputRejected)[0].message_id == message_id
    assert rig.of(seen.MessagesRemoved)[0].reason == "rejected"


def test_input_that_cannot_be_sent_never_joins_the_history(make_rig):
    """H6."""
    rig = make_rig()
    rig.machine.send(["hello"], respond=False, now=rig.now)
    command = rig.machine.next_link_command(now=rig.now)
    rig.machine.receive_command_failed(command.command_id, UserError("too large"), now=rig.now)
    rig.drain()
    assert rig.names() == []
    assert len(rig.of(seen.InputRejected)) == 1


def test_sent_text_stands_where_its_item_joined(make_rig):
    """H1: a text sent while a spoken turn is being committed stands where the provider put it."""
    rig = make_rig()
    rig.begin_speech("u1")
    rig.hear(200)
    rig.machine.send(["typed"], respond=False, now=rig.now)
    rig.pull()
    rig.end_speech("u1")
    rig.transcribe("u1", "spoken")
    assert rig.names() == ["u:typed", "u:spoken"]


def test_close_records_what_there_is(make_rig):
    """H7: open turns with what they have, replies as interrupted, tools as cancelled; no call is left dangling."""
    rig = make_rig()
    rig.say("u1", None)
    rig.start_reply("r1", "a1")
    rig.call_tool("r1", "f1", "c1", "nothing_known")
    rig.start_reply("r2", "a2")
    rig.speak("r2", "a2", "one two three four", ms=1000)
    rig.play("r2", 500)
    rig.machine.close(now=rig.now)
    rig.drain()
    assert rig.names() == ["u:", "call:c1", "result:c1", "a:one two"]
    assert rig.machine.messages()[-1].interrupted
    assert isinstance(rig.events[-1], seen.SessionEnded)
    calls = {call.call_id for message in rig.machine.messages() for call in message.tool_calls}
    assert calls == {message.tool_call_id for message in rig.machine.messages() if message.tool_call_id}


def test_frames_are_messages_of_their_own_in_order_with_the_speech(make_rig):
    """H8."""
    rig = make_rig()
    rig.frame(1)
    rig.pull()
    rig.say("u1", "what is this?")
    rig.wait(4)
    rig.frame(2)
    rig.pull()
    assert rig.names() == ["frame", "u:what is this?", "frame"]
    frame = rig.machine.messages()[0]
    assert (frame.role, frame.source, len(frame.images)) == (ChatRole.USER, "camera", 1)
    assert frame.created_at == pytest.approx(1_000_100.0)


def test_seeded_messages_are_not_new(make_rig):
    context = ChatContext.empty()
    context.add_message(ChatRole.USER, "before")
    rig = make_rig(context=context)
    rig.say("u1", "after")
    assert rig.names() == ["u:before", "u:after"]
    assert rig.texts(rig.machine.new_messages()) == ["after"]


def test_history_is_bounded_by_whole_units(make_rig):
    """H0: `max_history_messages`; an event says what left."""
    rig = make_rig(retention=Retention(max_history_messages=4))
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "unknown")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.pull()
    rig.reply("r2", "a2", "Fine.")
    assert rig.names() == ["u:weather?", "call:c1", "result:c1", "a:Fine."]
    rig.say("u2", "thanks")
    assert rig.names() == ["call:c1", "result:c1", "a:Fine.", "u:thanks"]
    rig.say("u3", "bye")
    assert rig.names() == ["a:Fine.", "u:thanks", "u:bye"]
    assert [event.reason for event in rig.of(seen.MessagesRemoved)] == ["history_limit", "history_limit"]


def test_one_context_in_two_sessions_is_an_error(make_rig):
    context = ChatContext.empty()
    rig = make_rig(context=context)
    with pytest.raises(UserError):
        make_rig(context=context)
    with pytest.raises(UserError, match=r"session\.send"):
        context.add_message(ChatRole.USER, "from outside")
    rig.machine.close(now=rig.now)
    context.add_message(ChatRole.USER, "after the session")
    assert context.messages()[-1].content == "after the session"
