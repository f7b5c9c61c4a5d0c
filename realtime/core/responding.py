"""The model's side of the floor: its responses from the wish to the end, and what must not be waited for for ever.

Owns: the wish for the next response, what of a response has no message yet, and the watch over the running one. Driven by
`realtime.core.floor` with what the model reports, and by `SessionMachine` with what the application wants and when time has
passed. The legal transitions of the response itself stand in `realtime.core.turn`. Never records.
"""

from __future__ import annotations

from collections import OrderedDict

from realtime.core import model_events as reported
from realtime.core.commands import CancelResponse, CommitAudio, CreateResponse, LinkCommand, SwitchAgent
from realtime.core.events import ErrorReported
from realtime.core.parts import Parts
from realtime.core.places import Place
from realtime.core.replies import InterruptionCause
from realtime.core.reply import Reply
from realtime.core.turn import ResponseState, Wish
from realtime.core.watch import SILENCE_SECONDS, ResponseWatch
from realtime.errors import ModelError

__all__ = ["Responding"]

_REFUSAL_PATIENCE_SECONDS = 3.0
"""A response refused because another runs is asked for again when that one ends, or after this."""
_WORDS_PATIENCE_SECONDS = 3.0
"""So long another model waits for the transcript of what was said to the one before."""
_ACTIVE_RESPONSE = "conversation_already_has_active_response"
_STALLED = "response_stalled"
_REMEMBERED_ENDS = 64
"""Responses whose end was reported, so that a report that is repeated counts once."""


class Responding:
    """The responses of one session."""

    def __init__(self, parts: Parts) -> None:
        """None is wanted, none is running."""
        self._parts = parts
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._holds_commit = False
        self._unclaimed: dict[str, Place] = {}
        self._unfinished_calls: dict[str, dict[str, Place]] = {}
        self._hold_wish_until: float | None = None
        self._cancel_on_start = False
        self.wants_switch = False
        """Another model is to take over once the running response is over."""
        self._switches_by: float | None = None
        self.is_switching = False
        """The link is being made anew for another model: nothing is asked of the old one."""
        self.watch = ResponseWatch()
        """Whether the running response still lives."""
        self.basis: float | None = None
        """When the turn that the next response answers ended."""

    # -- what the model reports -------------------------------------------------------------------------------------

    def started(self, event: reported.ResponseStarted) -> None:
        """The model began a response."""
        parts = self._parts
        if event.response_id in self._ended or event.response_id == parts.slot.response_id:
            return  # it is only repeated
        if parts.slot.response_id is not None:  # dropped without an end: this provider runs one at a time
            self.end(parts.slot.response_id, status="incomplete", usage=None)
        parts.slot.started(event.response_id)
        self.watch.begin(event.response_id, now=parts.effects.now)
        parts.limits.responses += 1
        self._hold_wish_until = None
        parts.speech.place_what_was_begun()
        parts.overlap.response_started(event.response_id)
        reply = parts.replies.start(event.response_id, agent_id=parts.agent.id, basis=self.basis)
        self.basis = None
        if parts.barge_in.is_ours and parts.speech.is_speaking:
            parts.barge_in.hold(reply)
        if self._cancel_on_start:
            self._cancel_on_start = False
            self.cut(reply, cause="interrupt")
            self.cancel()

    def claim_later(self, item_id: str, place: Place) -> None:
        """An item of the model's was added; which response it is of is not known yet."""
        self._unclaimed[item_id] = place

    def item_started(self, event: reported.OutputItemStarted) -> None:
        """A response began a message or a call."""
        history = self._parts.history
        self._unclaimed.pop(event.item_id, None)
        if event.kind == "function_call":
            place = history.reserve(event.item_id, is_output=True)
            self._unfinished_calls.setdefault(event.response_id, {})[event.item_id] = place
            return
        reply = self._parts.replies.find(event.response_id)
        if reply is not None and not reply.is_cut:
            self._parts.replies.start_item(reply, event.item_id)
        else:
            history.settle(history.reserve(event.item_id, is_output=True), None)

    def tool_called(self, event: reported.ToolCallDone) -> None:
        """A response called a tool."""
        history = self._parts.history
        self._unclaimed.pop(event.item_id, None)
        place = self._unfinished_calls.get(event.response_id, {}).pop(event.item_id, None)
        if place is None:
            place = history.find(event.item_id)
            if place is None and history.was_here(event.item_id):
                return
            place = place or history.reserve(event.item_id, is_output=True)
        reply = self._parts.replies.find(event.response_id)
        if reply is not None:
            reply.calls.append(place)
        caller = self._parts.agent.id if reply is None else reply.agent_id
        self._parts.tools.call(event, place=place, agent_id=caller)

    def ended(self, event: reported.ResponseEnded) -> None:
        """The model says that a response is over."""
        if event.response_id in self._ended:
            return  # it is only repeated
        self._ended[event.response_id] = None
        while len(self._ended) > _REMEMBERED_ENDS:
            self._ended.popitem(last=False)
        self.end(event.response_id, status=event.status, usage=event.usage)
        self._hold_wish_until = None
        if event.usage is not None:
            self._parts.limits.add_usage(event.usage)
            if self._parts.capabilities.reports_total_usage:
                self._parts.trimming.note_usage(event.usage.input_tokens)
        if event.status == "failed":
            error = ModelError(event.error_message or "the response failed", code=event.error_code)
            self._parts.effects.emit(ErrorReported(error=error, where="model"))

    # -- the end of a response --------------------------------------------------------------------------------------

    def end(self, response_id: str, *, status: reported.ResponseStatus, usage: reported.TokenUsage | None) -> None:
        """A response is over: what it left unfinished became nothing, what it said plays on."""
        parts = self._parts
        for place in self._unfinished_calls.pop(response_id, {}).values():
            parts.history.settle(place, None)
        if response_id == parts.slot.response_id:
            self._settle_unclaimed()
            self.watch.end()
        reply = parts.replies.find(response_id)
        if reply is not None:
            parts.replies.finish_response(reply, status=status, usage=usage)
            self.end_reply_if_over(reply)
        parts.overlap.response_ended(response_id)
        parts.slot.ended(response_id)
        self.follow_up(response_id, reply)
        if self._holds_commit and not parts.slot.is_busy:
            self._holds_commit = False
            parts.outbox.put(CommitAudio(command_id=parts.effects.new_id()))

    def _settle_unclaimed(self) -> None:
        for item_id in list(self._unclaimed):
            self._parts.history.settle(self._unclaimed.pop(item_id), None)

    def abandon(self) -> None:
        """The connection or the session is over: nothing more comes of what had begun."""
        running = [] if self._parts.slot.response_id is None else [self._parts.slot.response_id]
        open_replies = [reply.reply_id for reply in self._parts.replies.open_replies() if not reply.response_over]
        for response_id in dict.fromkeys([*running, *self._unfinished_calls, *open_replies]):
            self.end(response_id, status="incomplete", usage=None)
        self._settle_unclaimed()
        self.watch.end()
        if self._cancel_on_start:  # what was asked for before the interruption is not asked for again
            self._cancel_on_start, self._parts.slot.requested = False, None

    def end_reply_if_over(self, reply: Reply) -> None:
        """A reply that is done and played out, or cut, becomes its messages (P0)."""
        if not reply.is_over or reply.is_settled:
            return
        self._parts.replies.settle(reply)
        places = [item.place for item in reply.items.values()] + reply.calls
        self._parts.completion.reply_over(reply, places, continues=bool(reply.calls) and not reply.is_cut)

    def follow_up(self, response_id: str, reply: Reply | None) -> None:
        """When a response is over and its calls are answered, the model is asked to go on (once)."""
        is_running = response_id == self._parts.slot.response_id
        if not self._parts.tools.take_follow_up(
            response_id, is_over=not is_running and (reply is None or reply.response_over)
        ):
            return
        if self._parts.speech.is_speaking and self._parts.settings.turn_detection.create_response:
            return  # the user's own turn will be answered, with the outputs in sight
        self._parts.slot.wish(Wish(tool_choice="none" if self._parts.tools.is_spent else None))

    # -- stopping ---------------------------------------------------------------------------------------------------

    def cut(self, reply: Reply, *, cause: InterruptionCause, played_ms: int | None = None) -> None:
        """Stop a reply where the listener is, or at `played_ms`."""
        self._parts.replies.cut(reply, cause=cause, played_ms=played_ms)
        if not reply.response_over and reply.reply_id == self.watch.response_id:
            self.watch.cut(now=self._parts.effects.now)
        self.end_reply_if_over(reply)

    def cancel(self) -> None:
        """Stop the running response at the provider."""
        assert self._parts.slot.response_id is not None
        command = CancelResponse(command_id=self._parts.effects.new_id(), response_id=self._parts.slot.response_id)
        self._parts.effects.send(command)
        self._parts.slot.cancelled()
        self.watch.cut(now=self._parts.effects.now)

    def interrupt(self, played_ms: int | None) -> bool:
        """The application stops what is being said, and what was asked for.

        Args:
            played_ms: How much was heard of the reply that is being played; None: as reported.

        Returns:
            False if there was nothing.
        """
        open_replies = self._parts.replies.open_replies()
        for reply in open_replies:
            self.cut(reply, cause="interrupt", played_ms=played_ms)
            if reply.samples:
                played_ms = None  # what comes behind the reply that is being played was not heard
        if self._parts.slot.state is ResponseState.RUNNING:
            self.cancel()
        elif self._parts.slot.state is ResponseState.REQUESTED:
            self._cancel_on_start = True
        self._parts.slot.forget_wish()
        self.basis = None
        self._parts.completion.close_chain()
        return bool(open_replies)

    # -- asking -----------------------------------------------------------------------------------------------------

    def commit_audio(self) -> None:
        """Make the audio so far a turn; a provider that takes no commits during a response has it after that (H4)."""
        if self._parts.slot.is_busy and not self._parts.capabilities.takes_commits_during_response:
            self._holds_commit = True
            self._parts.input_audio.since_commit = 0
        else:
            self._parts.outbox.put(CommitAudio(command_id=self._parts.effects.new_id()))
        self._parts.tools.new_turn()

    def switch(self) -> None:
        """Another model takes over once the running response is over, so that nothing that is being said is lost.

        Before that, what the user said is written down: the other model would be told it without its words, or twice.
        """
        self.wants_switch = True

    def pursue_wish(self) -> None:
        """Ask for the response that is wanted, if none is running (T1), with the window applied (W5)."""
        parts = self._parts
        if self.wants_switch and not parts.slot.is_busy and not self._waits_for_words():
            self.wants_switch, self.is_switching = False, parts.outbox.is_open
            self._switches_by = None
            parts.effects.do(SwitchAgent(command_id=parts.effects.new_id(), agent=parts.agent))
        if self.wants_switch or self.is_switching:
            return
        if parts.slot.waiting is None or not parts.outbox.is_open or self._hold_wish_until is not None:
            return
        if parts.input_audio.holds_commit():
            return  # control overtakes audio, and a response to a turn must not overtake the turn
        if self.watch.is_silent:
            self._give_up("incomplete")
        if parts.slot.is_busy:
            return
        parts.trimming.apply(coming=parts.outgoing.tokens)
        wish = parts.slot.take()
        if wish is None:
            return
        command = CreateResponse(
            command_id=parts.effects.new_id(), tool_choice=wish.tool_choice, instructions=wish.instructions
        )
        parts.slot.sent(command.command_id)
        parts.effects.send(command)

    def _waits_for_words(self) -> bool:
        """Whether the other model waits for a transcript, for a moment at most."""
        now = self._parts.effects.now
        if not self._parts.speech.awaits_words or not self._parts.outbox.is_open:
            return False
        if self._switches_by is None:
            self._switches_by = now + _WORDS_PATIENCE_SECONDS
        return now < self._switches_by

    def refused(self, command: LinkCommand | None, code: str) -> bool:
        """A response was refused; True if it is asked for again, so that nobody need hear of it (T1)."""
        slot = self._parts.slot
        is_ours = isinstance(command, CreateResponse) and command.command_id == slot.command_id
        if not is_ours and not (code == _ACTIVE_RESPONSE and slot.state is ResponseState.REQUESTED):
            return False
        again = slot.refused(may_retry=code == _ACTIVE_RESPONSE)
        self._cancel_on_start = False
        if again:
            self._hold_wish_until = self._parts.effects.now + _REFUSAL_PATIENCE_SECONDS
        return again

    # -- what does not come -----------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When `time_passed` should be called, at the latest."""
        moments = (
            self._hold_wish_until,
            None if self._switches_by is None or self._switches_by <= self._parts.effects.now else self._switches_by,
            self.watch.overdue_at,
            self.watch.silent_at,
            self._parts.overlap.gives_way_at,
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def time_passed(self) -> None:
        """Whatever was waited for and has not come is given up (H3, T1, B36)."""
        now = self._parts.effects.now
        if self._hold_wish_until is not None and self._hold_wish_until <= now:
            self._hold_wish_until = None
        gives_way_at = self._parts.overlap.gives_way_at
        if gives_way_at is not None and gives_way_at <= now:
            self._parts.overlap.give_way()
        if self.watch.overdue_at is not None and self.watch.overdue_at <= now:
            self._give_up("cancelled")
        if self.watch.silent_at is not None and self.watch.silent_at <= now:
            self.watch.is_silent = True
            error = ModelError(f"the response has said nothing for {SILENCE_SECONDS:g} s", code=_STALLED)
            self._parts.effects.emit(ErrorReported(error=error, where="model"))

    def _give_up(self, status: reported.ResponseStatus) -> None:
        """The provider never said that the response is over."""
        response_id = self.watch.response_id
        assert response_id is not None
        self._parts.overlap.give_way(all_of_them=True)
        self.end(response_id, status=status, usage=None)
