"""Calls owed and answered: behaviour.md T2–T5, field cases B03, B04, B09, B13."""

from __future__ import annotations

import pytest

from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import Retention, ToolSpec

WEATHER = ToolSpec(name="weather")
BOOK = ToolSpec(name="book", sequential=True)
PAY = ToolSpec(name="pay", needs_approval=True)


def asked(make_rig, *calls: tuple[str, str], **settings):
    rig = make_rig(tools=(WEATHER, BOOK, PAY), **settings)
    rig.say("u1", "go")
    rig.feed(said.ResponseStarted(response_id="r1"))
    for index, (call, name) in enumerate(calls):
        rig.call_tool("r1", f"f{index}", call, name)
    return rig


def end(rig, response: str = "r1"):
    rig.feed(said.ResponseEnded(response_id=response))


def test_reply_is_asked_for_once_when_all_results_are_in_and_the_response_is_over(make_rig):
    """T1, B31: two results in the same tick give one wish."""
    rig = asked(make_rig, ("c1", "weather"), ("c2", "weather"))
    rig.answer_tool("c1", "fog")
    end(rig)
    assert [type(command) for command in rig.pull()] == [do.CreateItem]
    rig.answer_tool("c2", "sun")
    assert [type(command) for command in rig.pull()] == [do.CreateItem, do.CreateResponse]
    assert rig.names() == ["u:go", "call:c1", "call:c2", "result:c1", "result:c2"]


def test_results_stand_in_call_order_whatever_came_first(make_rig):
    """H1, F2."""
    rig = asked(make_rig, ("c1", "weather"), ("c2", "weather"), ("c3", "weather"))
    end(rig)
    for call in ("c3", "c1", "c2"):
        rig.answer_tool(call, call)
    assert rig.names()[1:] == ["call:c1", "call:c2", "call:c3", "result:c1", "result:c2", "result:c3"]
    assert rig.texts(rig.context.messages()) == rig.texts()


def test_result_that_comes_after_later_messages_is_put_beside_its_call(make_rig):
    """H1: the one exception to the order of snapshots."""
    rig = asked(make_rig, ("c1", "weather"))
    end(rig)
    rig.say("u2", "are you there?")
    rig.reply("r2", "a2", "Yes.")
    rig.answer_tool("c1", "fog")
    assert rig.names() == ["u:go", "call:c1", "result:c1", "u:are you there?", "a:Yes."]


def test_events_of_a_call_name_the_messages_of_the_call_and_of_its_result(make_rig):
    """A provider may give a call's id again long after; messages are told apart for ever (V3)."""
    rig = asked(make_rig, ("c1", "weather"), ("c2", "weather"))
    rig.answer_tool("c2", "sun")
    rig.answer_tool("c1", "fog")
    called = {event.message_id: event.call_id for event in rig.events if isinstance(event, seen.ToolCalled)}
    finished = {event.message_id: event.call_id for event in rig.events if isinstance(event, seen.ToolFinished)}
    messages = rig.machine.messages()
    assert called == {each.message_id: each.tool_calls[0].call_id for each in messages if each.tool_calls}
    assert finished == {each.message_id: each.tool_call_id for each in messages if each.tool_call_id}
    assert len(called) == len(finished) == 2


def test_finished_call_survives_a_barge_in_and_its_result_reaches_the_provider(make_rig):
    """B03: committed before any interruption is looked at; the tool is not run again."""
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "One moment please.", ms=2_000)
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.answer_tool("c1", "fog")
    rig.machine.interrupt(played_ms=0, now=rig.now)
    rig.drain()
    rig.feed(said.ResponseEnded(response_id="r1", status="cancelled"))
    rig.pull()
    assert rig.names() == ["u:go", "call:c1", "result:c1"]
    outputs = [c for c in rig.sent_of(do.CreateItem) if c.message.tool_call_id == "c1"]
    assert [command.message.content for command in outputs] == ["fog"]
    rig.feed(said.ToolCallDone(response_id="r1", item_id="f1", call_id="c1", name="weather", arguments="{}"))
    assert len(rig.local_of(do.RunTool)) == 1


def test_exactly_one_output_per_call(make_rig):
    """T2, B04."""
    rig = asked(make_rig, ("c1", "weather"))
    end(rig)
    rig.answer_tool("c1", "fog")
    rig.answer_tool("c1", "sun")
    rig.machine.close(now=rig.now)
    rig.drain()
    assert len(rig.of(seen.ToolFinished)) == 1
    assert rig.names() == ["u:go", "call:c1", "result:c1"]


def test_unknown_tool_is_answered(make_rig):
    """B04: no call is left open."""
    rig = asked(make_rig, ("c1", "nonsense"))
    end(rig)
    assert rig.of(seen.ToolFinished)[0].is_error
    assert "weather" in rig.machine.messages()[-1].content
    assert [type(command) for command in rig.pull()] == [do.CreateItem, do.CreateResponse]


def test_sequential_tool_waits_for_all_before_it_and_holds_those_after_it(make_rig):
    """T2."""
    rig = asked(make_rig, ("c1", "weather"), ("c2", "book"), ("c3", "weather"))
    assert [command.wait_for for command in rig.local_of(do.RunTool)] == [(), ("c1",), ("c2",)]


def test_calls_beyond_the_limit_are_answered_and_the_next_reply_has_no_tools(make_rig):
    """T4."""
    rig = asked(
        make_rig,
        *((f"c{index}", "weather") for index in range(4)),
        window=ContextWindow(max_tool_calls_per_turn=3),
    )
    assert len(rig.local_of(do.RunTool)) == 3
    assert "3 tool calls" in rig.of(seen.ToolFinished)[0].output
    end(rig)
    for index in range(3):
        rig.answer_tool(f"c{index}", "ok")
    (wish,) = [command for command in rig.pull() if isinstance(command, do.CreateResponse)]
    assert wish.tool_choice == "none"
    rig.reply("r2", "a2", "Enough.")
    rig.say("u2", "more")
    rig.feed(said.ResponseStarted(response_id="r3"))
    rig.call_tool("r3", "f9", "c9", "weather")
    assert len(rig.local_of(do.RunTool)) == 4


def test_approval_is_asked_for_while_the_call_goes_on(make_rig):
    rig = asked(make_rig, ("c1", "pay"), ("c2", "weather"))
    assert rig.of(seen.ApprovalRequested)[0].call_id == "c1"
    assert [command.call_id for command in rig.local_of(do.RunTool)] == ["c2"]
    assert rig.machine.receive_approval("c1", True, now=rig.now) is True
    rig.drain()
    assert [command.call_id for command in rig.local_of(do.RunTool)] == ["c2", "c1"]
    assert rig.machine.receive_approval("nobody", True, now=rig.now) is False


def test_refused_approval_is_an_output(make_rig):
    rig = asked(make_rig, ("c1", "pay"))
    end(rig)
    rig.machine.receive_approval("c1", False, now=rig.now)
    rig.drain()
    assert "not approved" in rig.machine.messages()[-1].content
    assert [type(command) for command in rig.pull()] == [do.CreateItem, do.CreateResponse]


def test_error_of_a_tool_reaches_the_application_and_the_session_lives(make_rig):
    """T3."""
    rig = asked(make_rig, ("c1", "weather"))
    end(rig)
    rig.answer_tool("c1", "it failed", is_error=True, error=RuntimeError("broken"))
    assert str(rig.of(seen.ErrorReported)[0].error) == "broken"
    assert rig.machine.messages()[-1].is_error
    assert not rig.machine.is_closed


def test_text_before_a_call_stands_before_it(make_rig):
    """B13."""
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "One moment.", ms=500)
    rig.feed(said.OutputItemDone(response_id="r1", item_id="a1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    end(rig)
    rig.answer_tool("c1", "fog")
    rig.play("r1", 500, finished=True)
    assert rig.names() == ["u:go", "a:One moment.", "call:c1", "result:c1"]


def test_pictures_of_a_result_stay_with_it(make_rig, picture):
    """T5, F11."""
    rig = asked(make_rig, ("c1", "weather"))
    end(rig)
    rig.answer_tool("c1", "here", images=(picture(),))
    (command,) = [c for c in rig.pull() if isinstance(c, do.CreateItem)]
    assert len(command.item_ids) == 2
    assert len(rig.machine.messages()[-1].images) == 1
    assert rig.machine.statistics().images_kept == 1


def test_turn_with_tools_completes_once_with_all_its_messages(make_rig):
    rig = asked(make_rig, ("c1", "weather"))
    end(rig)
    rig.answer_tool("c1", "fog")
    rig.pull()
    rig.reply("r2", "a2", "There is fog.")
    (completed,) = rig.of(seen.TurnCompleted)
    assert [message.content for message in completed.messages] == ["", "fog", "There is fog."]


def test_call_that_was_never_completed_is_no_message(make_rig):
    rig = make_rig(tools=(WEATHER,))
    rig.say("u1", "go")
    rig.feed(
        said.ResponseStarted(response_id="r1"),
        said.OutputItemStarted(response_id="r1", item_id="f1", kind="function_call"),
        said.ItemAdded(item_id="f1", kind="function_call", previous_item_id="u1"),
        said.ResponseEnded(response_id="r1", status="cancelled"),
    )
    rig.reply("r2", "a2", "Hm.")
    assert rig.names() == ["u:go", "a:Hm."]


def test_real_result_takes_the_place_of_the_stand_in(make_rig):
    """F3: a new connection was told that the call is not finished; in the end there is one output per call."""
    rig = make_rig(tools=(ToolSpec(name="weather"),))
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.drop()
    stand_in = next(c for c in rig.connect() if isinstance(c, do.CreateItem) and c.message.tool_call_id == "c1")
    rig.answer_tool("c1", "fog")
    after = rig.pull()
    assert [command.item_id for command in after if isinstance(command, do.DeleteItem)] == list(stand_in.item_ids)
    assert [c.message.content for c in after if isinstance(c, do.CreateItem)] == ["fog"]


def test_both_items_of_a_result_with_a_picture_leave_with_it(make_rig, picture):
    """W5: the pictures of a result are an item of their own at some providers."""
    rig = make_rig(tools=(ToolSpec(name="weather"),), window=ContextWindow(max_tokens=60, keep_recent_turns=1))
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.answer_tool("c1", "see", images=(picture(1),))
    rig.pull()
    (result,) = [c for c in rig.sent_of(do.CreateItem) if c.message.tool_call_id]
    assert len(result.item_ids) == 2
    rig.reply("r2", "a2", "Fog.")
    rig.say("u2", "thanks " * 20)
    rig.reply("r3", "a3", "Welcome.")
    rig.pull()
    assert {command.item_id for command in rig.sent_of(do.DeleteItem)} >= set(result.item_ids)


def test_open_call_is_not_evicted_by_the_length_of_the_history(make_rig):
    """H0: its result will stand beside it."""
    rig = make_rig(tools=(ToolSpec(name="weather"),), retention=Retention(max_history_messages=2))
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    for index in range(4):
        rig.say(f"u{index}", f"word {index}")
    assert rig.names() == ["call:c1", "u:word 3"]
    rig.answer_tool("c1", "fog")
    rig.say("u9", "last")
    assert rig.names() == ["u:word 3", "u:last"]


@pytest.mark.parametrize("images_max", [0, 1])
def test_refused_picture_of_a_tool_is_said_and_its_words_stay(make_rig, picture, images_max):
    """R5, T5: words never."""
    rig = make_rig(tools=(ToolSpec(name="weather"),), memory_limit_bytes=100 if images_max else 50)
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.answer_tool("c1", "see", images=(picture(1), picture(2)))
    rig.pull()
    assert rig.texts()[-1] == "see"
    assert len(rig.machine.messages()[-1].images) <= images_max
    assert "memory_limit_bytes" in rig.of(seen.InputRejected)[0].reason
