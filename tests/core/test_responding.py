"""The model's side of the floor: responses that are repeated, dropped, or never end (T1, B31, B32, B36), and hand-off."""

from __future__ import annotations

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.capabilities import ModelCapabilities
from realtime.core.overlap import REPLY_PATIENCE_SECONDS
from realtime.core.settings import Agent, ToolSpec
from realtime.core.watch import SILENCE_SECONDS
from realtime.errors import ModelError

WEATHER = ToolSpec(name="weather")


def created(rig) -> int:
    rig.pull()
    return len(rig.sent_of(do.CreateResponse))


# -- repeated and stale reports -----------------------------------------------------------------------------------------


def test_repeated_end_is_paid_for_once(make_rig):
    """H5: a replayed report changes nothing."""
    rig = make_rig()
    rig.start_reply("r1", "a1")
    for _ in range(2):
        rig.feed(said.ResponseEnded(response_id="r1", usage=said.TokenUsage(input_tokens=5, total_tokens=5)))
    assert rig.machine.usage.total_tokens == 5


def test_repeated_beginning_does_not_end_the_response(make_rig):
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.reply("r1", "a1", "whole")
    rig.feed(said.ResponseStarted(response_id="r1"))
    assert rig.names() == ["a:whole"]
    assert rig.machine.statistics().responses == 1
    assert not rig.machine.is_busy


def test_stale_end_leaves_the_items_of_the_next_response_alone(make_rig):
    """B31: an item that was added and not yet claimed is not the old response's."""
    rig = make_rig()
    rig.feed(said.ResponseStarted(response_id="r1"), said.ResponseStarted(response_id="r2"))
    rig.feed(said.ItemAdded(item_id="a2", kind="message", role="assistant"))
    rig.feed(said.ResponseEnded(response_id="r1", status="cancelled"))
    rig.last_item = "a2"
    rig.feed(said.OutputItemStarted(response_id="r2", item_id="a2", kind="message"))
    rig.speak("r2", "a2", "here", ms=100)
    rig.end_reply("r2", "a2", "here")
    rig.play("r2", 100, finished=True)
    assert rig.names() == ["a:here"]


def test_dropped_response_leaves_no_unfinished_call_behind(make_rig):
    """B31: a cut response that never ends must not hold back what follows."""
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one moment", ms=500)
    rig.feed(
        said.OutputItemStarted(response_id="r1", item_id="f1", kind="function_call"),
        said.ItemAdded(item_id="f1", kind="function_call", previous_item_id="a1"),
    )
    rig.last_item = "f1"
    rig.play("r1", 500)
    rig.machine.interrupt(now=rig.now)
    rig.drain()
    rig.reply("r2", "a2", "next")
    assert rig.names() == ["a:one moment", "a:next"]


def test_position_of_an_interruption_is_of_the_reply_that_is_played(make_rig):
    """B28: what waits behind it was not heard."""
    rig = make_rig()
    rig.reply("r1", "a1", "one two three four", ms=1000, play=False)
    rig.reply("r2", "a2", "five six seven eight", ms=1000, play=False)
    rig.machine.interrupt(played_ms=500, now=rig.now)
    rig.drain()
    assert rig.names() == ["a:one two"]


def test_error_fails_its_command_at_once_and_nothing_waits_for_it_any_more(make_rig):
    """B32, L6: by event id; one without an id is only reported; a drop forgets them all."""
    rig = make_rig()
    rig.acknowledges = False
    ids = rig.machine.send(["one"], respond=False, now=rig.now)
    (command,) = rig.pull()
    rig.feed(said.ModelFault(message="no", code="invalid_value", command_id=command.command_id))
    assert [event.message_id for event in rig.of(seen.InputRejected)] == ids
    rig.feed(said.ModelFault(message="no", code="invalid_value", command_id=command.command_id))
    rig.feed(said.ModelFault(message="who knows", code="server_error"))
    assert [event.error.code for event in rig.of(seen.ErrorReported)] == ["invalid_value"] * 2 + ["server_error"]
    assert len(rig.of(seen.InputRejected)) == 1
    rig.machine.send(["two"], respond=False, now=rig.now)
    (command,) = rig.pull()
    rig.drop()
    rig.feed(said.ModelFault(message="late", code="invalid_value", command_id=command.command_id))
    assert len(rig.of(seen.InputRejected)) == 1


# -- what never ends ----------------------------------------------------------------------------------------------------


def test_cut_response_that_never_ends_is_given_up(make_rig):
    """B36, xAI: a reply may be dropped without a word; what is wanted next is asked for all the same."""
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two three four", ms=1000)
    rig.play("r1", 500)
    rig.begin_speech("u1")
    rig.hear(100)
    rig.end_speech("u1")
    rig.transcribe("u1", "stop")
    rig.machine.send(["and now?"], respond=True, now=rig.now)
    assert created(rig) == 0
    rig.wait(REPLY_PATIENCE_SECONDS)
    assert created(rig) == 1
    rig.speak("r1", "a1", "late", ms=100)
    rig.feed(said.ResponseEnded(response_id="r1", usage=said.TokenUsage(total_tokens=7)))
    assert rig.machine.usage.total_tokens == 7
    rig.reply("r2", "a2", "Now this.")
    assert rig.names() == ["a:one two", "u:stop", "u:and now?", "a:Now this."]


def test_cancelled_response_that_never_ends_is_given_up(make_rig):
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.machine.interrupt(now=rig.now)
    rig.drain()
    rig.machine.create_response(now=rig.now)
    assert created(rig) == 0
    rig.wait(REPLY_PATIENCE_SECONDS + 0.1)
    assert created(rig) == 1


def test_response_that_says_nothing_is_reported_and_given_up_only_for_another(make_rig):
    """B36: a watchdog reports speaking without audio."""
    rig = make_rig()
    rig.start_reply("r1", "a1")
    rig.wait(SILENCE_SECONDS - 1)
    rig.speak("r1", "a1", "well", ms=200)
    rig.wait(SILENCE_SECONDS - 1)
    assert rig.of(seen.ErrorReported) == []
    rig.wait(2)
    (report,) = rig.of(seen.ErrorReported)
    assert isinstance(report.error, ModelError)
    assert report.error.code == "response_stalled"
    rig.wait(200)
    assert len(rig.of(seen.ErrorReported)) == 1
    assert rig.machine.is_busy
    rig.machine.create_response(now=rig.now)
    assert created(rig) == 1
    rig.reply("r2", "a2", "Here I am.")
    rig.play("r1", 200, finished=True)
    assert rig.names() == ["a:well", "a:Here I am."]


def test_thinking_model_may_take_its_time(make_rig):
    rig = make_rig()
    rig.feed(said.ResponseStarted(response_id="r1"))
    for _ in range(20):
        rig.wait(SILENCE_SECONDS - 1)
        rig.feed(said.ThinkingUpdated(response_id="r1", item_id="a1", delta="hm "))
    assert rig.of(seen.ErrorReported) == []


@pytest.mark.parametrize("during", ["reply", "tool", "nothing", "twice"])
def test_after_a_drop_input_and_replies_work_again(make_rig, during):
    """B36: whatever was half finished is reset by a new connection."""
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "go")
    if during == "reply":
        rig.start_reply("r1", "a1")
        rig.speak("r1", "a1", "one two", ms=500)
    elif during == "tool":
        rig.feed(said.ResponseStarted(response_id="r1"))
        rig.call_tool("r1", "f1", "c1", "weather")
    for _ in range(2 if during == "twice" else 1):
        rig.drop()
        rig.wait(1)
        rig.connect()
    if during == "tool":
        rig.answer_tool("c1", "fog")
    rig.say("u2", "again")
    rig.reply("r9", "a9", "Here.")
    assert rig.names()[-2:] == ["u:again", "a:Here."]
    assert not rig.machine.is_busy
    assert rig.of(seen.TurnCompleted)[-1].messages[-1].content == "Here."


# -- another agent --------------------------------------------------------------------------------------------------------

OTHER = object()
DESK = Agent(id="desk", instructions="Book.", model=OTHER)


def test_another_model_takes_over_when_the_running_response_is_over(make_rig):
    """Issue: without a gap in the audio; nothing is asked of the old model any more."""
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "a table, please")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "One moment.", ms=1000)
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.machine.hand_off(DESK, (), reason="books tables", now=rig.now)
    rig.drain()
    assert rig.local_of(do.SwitchAgent) == []
    rig.end_reply("r1", "a1", "One moment.")
    (switch,) = rig.local_of(do.SwitchAgent)
    assert switch.agent.model is OTHER
    rig.answer_tool("c1", "handed over")
    assert rig.pull()
    assert rig.sent_of(do.CreateResponse) == []
    rig.drop()
    rig.play("r1", 1000, finished=True)
    assert rig.of(seen.ReplyInterrupted) == []
    rig.machine.receive_link_restored(capabilities=ModelCapabilities(model="other"), now=rig.now)
    rig.drain()
    sent = rig.pull()
    assert isinstance(sent[0], do.ConfigureSession)
    assert sent[0].instructions == "Book."
    assert [command.message.content for command in sent if isinstance(command, do.CreateItem)] == [
        "a table, please",
        "One moment.",
        "",
        "handed over",
    ]
    assert isinstance(sent[-1], do.CreateResponse)
    assert rig.names() == ["u:a table, please", "a:One moment.", "call:c1", "result:c1"]
    assert rig.machine.capabilities.model == "other"


def test_a_response_that_runs_on_after_a_hand_off_calls_the_tools_of_who_speaks(make_rig):
    """T2: the transfer and a look-up in one round; the look-up is the first agent's."""
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "a table, please")
    rig.start_reply("r1", "a1")
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.drain()
    (run,) = rig.local_of(do.RunTool)
    assert (run.name, run.agent_id) == ("weather", "agent")


def test_a_second_hand_off_before_the_switch_tells_the_old_model_nothing(make_rig):
    rig = make_rig()
    rig.say("u1", "a table, please")
    rig.start_reply("r1", "a1")
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.pull()
    rig.machine.hand_off(Agent(id="bar", instructions="Mix.", model=OTHER), (), now=rig.now)
    rig.drain()
    assert [command for command in rig.pull() if isinstance(command, do.ConfigureSession)] == []
    rig.end_reply("r1", "a1", "One moment.")
    rig.play("r1", 1000, finished=True)
    (switch,) = rig.local_of(do.SwitchAgent)
    assert switch.agent.id == "bar"


def test_another_model_waits_a_moment_for_the_words_of_what_was_said(make_rig):
    """H2: it is told the words rather than the sound; but not for ever."""
    rig = make_rig()
    rig.say("u1", None)
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.drain()
    assert rig.local_of(do.SwitchAgent) == []
    rig.transcribe("u1", "the expert, please")
    assert len(rig.local_of(do.SwitchAgent)) == 1
    late = make_rig()
    late.say("u1", None)
    late.machine.hand_off(DESK, (), now=late.now)
    late.wait(2.9)
    assert late.local_of(do.SwitchAgent) == []
    late.wait(0.2)
    assert len(late.local_of(do.SwitchAgent)) == 1


def test_model_with_other_rates_keeps_the_sessions(make_rig):
    """What is played, recorded and waits keeps its rate; the link converts."""
    rig = make_rig()
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.drop()
    other = ModelCapabilities(model="other", input_rate_hz=16_000, output_rate_hz=48_000, reports_item_order=False)
    rig.machine.receive_link_restored(capabilities=other, now=rig.now)
    rig.drain()
    rates = rig.machine.capabilities
    assert (rates.input_rate_hz, rates.output_rate_hz, rates.model) == (24_000, 24_000, "other")
    assert rates.reports_item_order is False


def test_hand_off_back_to_the_sessions_own_model(make_rig):
    """`Agent.model` None is the session's, whoever spoke before."""
    rig = make_rig()
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.drop()
    rig.connect()
    rig.machine.hand_off(Agent(id="front"), (), now=rig.now)
    rig.drain()
    assert [command.agent.model for command in rig.local_of(do.SwitchAgent)] == [OTHER, None]


def test_hand_off_to_the_same_model_keeps_the_connection(make_rig):
    rig = make_rig()
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.drop()
    rig.connect()
    rig.machine.hand_off(Agent(id="bar", instructions="Mix.", model=OTHER), (), now=rig.now)
    rig.drain()
    assert len(rig.local_of(do.SwitchAgent)) == 1
    assert rig.pull()[-1].instructions == "Mix."


def talk(rig, turns: int) -> None:
    for index in range(turns):
        rig.say(f"u{index}", f"question {index} " + "word " * 8, ms=40)
        rig.reply(f"r{index}", f"a{index}", f"answer {index} " + "word " * 8)
        rig.pull()


def test_another_model_is_told_from_the_history_what_fits_its_window(make_rig):
    """H0: handing off uses the history, not what the old model's count had trimmed."""
    rig = make_rig(window=ContextWindow(max_tokens=150, keep_recent_turns=1))
    talk(rig, 4)
    usage = said.TokenUsage(input_tokens=1_500, total_tokens=1_500)
    rig.start_reply("r9", "a9")
    rig.end_reply("r9", "a9", "ok")
    rig.feed(said.ResponseStarted(response_id="r10"), said.ResponseEnded(response_id="r10", usage=usage))
    rig.machine.create_response(now=rig.now)
    rig.pull()
    trimmed = len(rig.context)
    assert rig.machine.statistics().tokens.scale > 5
    rig.machine.hand_off(DESK, (), now=rig.now)
    rig.drop()
    rig.machine.receive_link_restored(capabilities=ModelCapabilities(model="other"), now=rig.now)
    rig.drain()
    told = [command.message.message_id for command in rig.pull() if isinstance(command, do.CreateItem)]
    everything = [message.message_id for message in rig.machine.messages()]
    assert len(told) > trimmed
    assert told == everything[-len(told) :]
    assert told == [message.message_id for message in rig.context.messages()]
    figures = rig.machine.statistics().tokens
    assert (figures.scale, figures.own <= 150) == (1.0, True)


def test_messages_without_ids_can_be_trimmed_at_the_provider_after_seeding(make_rig):
    """W5: seeded messages get ids of items, whether they have ids or not."""
    context = ChatContext([ChatMessage(ChatRole.USER, "word " * 20), ChatMessage(ChatRole.ASSISTANT, "word " * 20)])
    rig = make_rig(context=context, window=ContextWindow(max_tokens=60, keep_recent_turns=1))
    seeded = [item_id for command in rig.sent_of(do.CreateItem) for item_id in command.item_ids]
    assert len(seeded) == len(set(seeded)) == rig.machine.statistics().provider_items
    talk(rig, 2)
    assert {command.item_id for command in rig.sent_of(do.DeleteItem)} >= set(seeded)
    assert rig.machine.statistics().provider_items == len(rig.context)


def test_response_that_was_interrupted_before_it_began_is_not_asked_for_after_a_drop(make_rig):
    rig = make_rig()
    rig.machine.create_response(now=rig.now)
    assert created(rig) == 1
    rig.machine.interrupt(now=rig.now)
    rig.drain()
    rig.drop()
    assert [type(command) for command in rig.connect()] == [do.ConfigureSession]
    rig.reply("r1", "a1", "hello")
    assert rig.names() == ["a:hello"]
