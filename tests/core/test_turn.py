"""One response at a time: behaviour.md T1, field case B31."""

from __future__ import annotations

import itertools

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.turn import (
    TRANSITIONS,
    TURN_TRANSITIONS,
    ResponseInput,
    ResponseSlot,
    ResponseState,
    TurnInput,
    TurnProgress,
    TurnState,
    Wish,
)
from realtime.errors import IllegalTransition


def test_every_state_has_a_row_and_every_target_is_a_state():
    assert set(TRANSITIONS) == set(ResponseState)
    for row in TRANSITIONS.values():
        assert set(row) <= set(ResponseInput)
        assert set(row.values()) <= set(ResponseState)


def test_illegal_transition_raises_and_changes_nothing():
    slot = ResponseSlot()
    with pytest.raises(IllegalTransition):
        slot.cancelled()
    assert slot.state is ResponseState.IDLE
    assert slot.response_id is None


def test_every_state_can_be_reached_and_left():
    reached = {ResponseState.IDLE}
    for _ in ResponseState:
        reached |= {target for state in reached for target in TRANSITIONS[state].values()}
    assert reached == set(ResponseState)
    assert all(ResponseState.IDLE in TRANSITIONS[state].values() for state in ResponseState)


def test_wish_during_a_response_waits_for_its_end_and_several_fold(make_rig):
    """T1."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    for _ in range(3):
        rig.machine.create_response(now=rig.now)
    assert [command for command in rig.pull() if isinstance(command, do.CreateResponse)] == []
    rig.end_reply("r1", "a1", "done")
    assert len([command for command in rig.pull() if isinstance(command, do.CreateResponse)]) == 1


def test_cancel_then_create_waits_for_the_cancelled_one(make_rig):
    """B31."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.machine.interrupt(now=rig.now)
    rig.machine.create_response(now=rig.now)
    assert [type(command) for command in rig.pull()] == [do.DeleteItem, do.CancelResponse]
    rig.end_reply("r1", None, status="cancelled")
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]


def test_stale_end_does_not_end_the_new_response(make_rig):
    """T1, B31."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.start_reply("r2", "a2")
    rig.machine.create_response(now=rig.now)
    rig.feed(said.ResponseEnded(response_id="r1", status="cancelled"))
    assert rig.sent_of(do.CreateResponse) == []
    assert rig.pull() == []
    rig.end_reply("r2", "a2", "yes")
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]


def test_refused_response_is_asked_for_once_more_when_the_other_ends(make_rig):
    """T1, B31: `conversation_already_has_active_response`."""
    rig = make_rig()
    rig.machine.create_response(now=rig.now)
    (wish,) = rig.pull()
    refusal = said.ModelFault(
        message="active", code="conversation_already_has_active_response", command_id=wish.command_id
    )
    rig.feed(refusal)
    assert rig.pull() == []
    assert rig.of(seen.ErrorReported) == []
    rig.feed(said.ResponseEnded(response_id="somebody else's"))
    (again,) = rig.pull()
    assert isinstance(again, do.CreateResponse)
    rig.feed(said.ModelFault(message="active", code=refusal.code, command_id=again.command_id))
    assert len(rig.of(seen.ErrorReported)) == 1
    rig.wait(10)
    assert rig.pull() == []


def test_refused_response_is_asked_for_again_after_a_while_if_nothing_ends(make_rig):
    rig = make_rig()
    rig.machine.create_response(now=rig.now)
    (wish,) = rig.pull()
    rig.feed(said.ModelFault(message="x", code="conversation_already_has_active_response", command_id=wish.command_id))
    rig.wait(4)
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]


def test_refusal_for_another_reason_is_reported_and_not_repeated(make_rig):
    rig = make_rig()
    rig.machine.create_response(now=rig.now)
    (wish,) = rig.pull()
    rig.feed(said.ModelFault(message="no", code="rate_limit_exceeded", command_id=wish.command_id))
    rig.wait(10)
    assert rig.pull() == []
    assert rig.of(seen.ErrorReported)[0].error.code == "rate_limit_exceeded"
    rig.machine.create_response(now=rig.now)
    assert [type(command) for command in rig.pull()] == [do.CreateResponse]


def test_interrupting_a_response_that_has_not_begun_cancels_it_when_it_begins(make_rig):
    rig = make_rig()
    rig.machine.send(["hello"], respond=True, now=rig.now)
    rig.pull()
    rig.machine.interrupt(now=rig.now)
    rig.feed(said.ResponseStarted(response_id="r1"))
    assert [command.response_id for command in rig.pull()] == ["r1"]


def test_text_asks_for_a_reply_and_pictures_do_not(make_rig, picture):
    rig = make_rig()
    rig.machine.send([picture()], respond=None, now=rig.now)
    assert [type(command) for command in rig.pull()] == [do.CreateItem]
    rig.machine.send(["look"], respond=None, now=rig.now)
    assert [type(command) for command in rig.pull()] == [do.CreateItem, do.CreateResponse]


def test_wishes_fold_into_their_stricter_form():
    for one, other in itertools.permutations([Wish(tool_choice="none"), Wish(instructions="be brief"), Wish()], 2):
        folded = one.fold(other)
        assert folded.tool_choice == ("none" if "none" in {one.tool_choice, other.tool_choice} else None)
        assert folded.instructions == (one.instructions or other.instructions)


def test_every_state_of_a_turn_has_a_row_and_can_be_reached():
    assert set(TURN_TRANSITIONS) == set(TurnState)
    assert {target for row in TURN_TRANSITIONS.values() for target in row.values()} == set(TurnState) - {
        TurnState.BEGUN
    }


@pytest.mark.parametrize("state", [TurnState.RECORDED, TurnState.DROPPED, TurnState.COMMITTED])
def test_what_cannot_happen_to_a_turn_raises_and_changes_nothing(state):
    turn = TurnProgress()
    turn.state = state
    with pytest.raises(IllegalTransition, match=state.value):
        turn.go(TurnInput.SOUND)
    assert turn.state is state


def test_illegal_event_raises_and_changes_nothing(make_rig):
    """Architecture section 4: a provider that says a committed turn begins."""
    rig = make_rig()
    rig.say("u1", "one")
    rig.say("u2", None)
    before = (rig.machine.messages(), rig.machine.pending, rig.machine.statistics(), rig.machine.get_deadline())
    happened = len(rig.events)
    with pytest.raises(IllegalTransition):
        rig.machine.receive_model_event(said.SpeechBegan(item_id="u2", at_ms=0), now=rig.now)
    rig.drain()
    after = (rig.machine.messages(), rig.machine.pending, rig.machine.statistics(), rig.machine.get_deadline())
    assert (after, len(rig.events)) == (before, happened)


def test_reports_of_a_turn_that_is_recorded_change_nothing(make_rig):
    """H5: they are only repeated."""
    rig = make_rig()
    rig.say("u1", "one")
    happened = len(rig.events)
    rig.feed(
        said.SpeechBegan(item_id="u1", at_ms=0),
        said.SpeechEnded(item_id="u1", at_ms=100),
        said.InputCommitted(item_id="u1"),
        said.InputTranscriptDone(item_id="u1", text="two"),
    )
    assert (len(rig.events), rig.names(), rig.machine.pending) == (happened, ["u:one"], ())
