"""Who has the floor: what each report of the model means for speech, replies, tools and the next response.

Owns: the order of those consequences, the wish for the next response, and what of a response has no message yet. Driven
by `SessionMachine`. The legal transitions of the response itself stand in `realtime.core.turn`. Never records.
"""

from __future__ import annotations

from typing import assert_never

from realtime.core import model_events as reported
from realtime.core.barge_in import is_backchannel
from realtime.core.commands import (
    CancelResponse,
    CreateItem,
    CreateResponse,
    DropHeldFrame,
    EncodeHeldFrame,
    LinkCommand,
)
from realtime.core.events import ErrorReported, KeepReason
from realtime.core.history import Place, PlaceState
from realtime.core.parts import Parts
from realtime.core.replies import InterruptionCause, Reply
from realtime.core.sampling import FrameFacts
from realtime.core.turn import ResponseState, Wish
from realtime.errors import ModelError

__all__ = ["Floor"]

_REFUSAL_PATIENCE_SECONDS = 3.0
"""A response refused because another runs is asked for again when that one ends, or after this."""
_ACTIVE_RESPONSE = "conversation_already_has_active_response"


class Floor:
    """The flow of one session."""

    def __init__(self, parts: Parts) -> None:
        """Nobody speaks."""
        self._parts = parts
        self._unclaimed: dict[str, Place] = {}
        self._unfinished_calls: dict[str, dict[str, Place]] = {}
        self.frame_reasons: dict[tuple[str, int], tuple[KeepReason, FrameFacts]] = {}
        """Why each frame that is being encoded was kept."""
        self.basis: float | None = None
        """When the turn that the next response answers ended."""
        self.hold_wish_until: float | None = None
        """A refused response is not asked for again before this, or before the running one ends."""
        self.cancel_on_start = False
        """The response that was asked for is not wanted any more."""
        self.fatal: ModelError | None = None
        """A fault after which the session cannot go on."""

    def receive(self, event: reported.ModelEvent) -> None:
        """The model reported something."""
        match event:
            case reported.OutputAudio():
                self._parts.replies.receive_audio(event)
            case reported.OutputTextUpdated() | reported.OutputTextDone():
                self._parts.replies.receive_text(event)
            case reported.OutputWords():
                self._parts.replies.receive_words(event)
            case reported.ThinkingUpdated():
                self._parts.replies.receive_thinking(event)
            case reported.OutputItemStarted():
                self._output_item_started(event)
            case reported.OutputItemDone():
                self._parts.replies.finish_item(event)
            case reported.ToolCallDone():
                self._tool_called(event)
            case reported.ResponseStarted():
                self._response_started(event)
            case reported.ResponseEnded():
                self._response_ended(event)
            case reported.SpeechBegan():
                self._speech_began(event)
            case reported.SpeechEnded():
                self._speech_ended(event)
            case reported.InputCommitted():
                turn = self._parts.speech.committed(event)
                self.basis = turn.ended_at
                if turn.place is not None:
                    self._parts.speech.placed(turn, turn.place)
            case reported.InputBufferCleared():
                self._parts.speech.cleared()
            case reported.ItemAdded():
                self._item_added(event)
            case reported.ItemDeleted():
                self._parts.ledger.remove(event.item_id)
            case reported.InputTranscriptUpdated():
                self._parts.speech.transcript_updated(event)
                self._words_came(event.item_id, is_final=False)
            case reported.InputTranscriptDone():
                self._words_came(event.item_id, is_final=True, text=event.text)
                self._parts.speech.transcript_done(event)
            case reported.InputTranscriptFailed():
                self._parts.speech.transcript_failed(event)
            case reported.ModelFault():
                self._fault(event)
            case reported.UnknownReport():
                self._parts.unknown[event.type] += 1
            case reported.ConversationSaved():
                self._parts.saved_at = self._parts.history.mark()
            case reported.SessionReady() | reported.SessionUpdated() | reported.ItemTruncated():
                pass
            case reported.ExpiryAnnounced():
                pass  # the link's business
            case _:
                assert_never(event)

    def _speech_began(self, event: reported.SpeechBegan) -> None:
        self._parts.speech.began(event)
        self._parts.sampler.speech_began()
        self._parts.tools.new_turn()
        detection = self._parts.settings.turn_detection
        if not detection.interrupt_response:
            return
        if self._parts.barge_in.is_ours:
            for reply in self._parts.replies.open_replies():
                self._parts.barge_in.hold(reply)
            return
        for reply in self._parts.replies.open_replies():
            self.cut(reply, cause="barge_in")
        if self._parts.slot.state is ResponseState.RUNNING and not self._parts.capabilities.cancels_on_barge_in:
            self.cancel_response()

    def _speech_ended(self, event: reported.SpeechEnded) -> None:
        ended_at = self._parts.speech.ended(event)
        self._parts.barge_in.sound_ended()
        self.release_held(ended_at)

    def _words_came(self, item_id: str, *, is_final: bool, text: str | None = None) -> None:
        """With `resume_after_ms`: words decide whether the sound was an interruption, and whether it is to be answered."""
        barge_in = self._parts.barge_in
        if not barge_in.is_ours or self._parts.speech.is_settled(item_id):
            return
        said = self._parts.speech.turn_of(item_id).text if text is None else text
        was_holding = barge_in.is_holding
        if not is_backchannel(said):
            self.confirm_barge_in()
        elif is_final:
            barge_in.resume()
        if is_final and said.strip() and self._parts.settings.turn_detection.create_response:
            if was_holding and is_backchannel(said):
                return
            self._parts.slot.wish(Wish())

    def confirm_barge_in(self) -> None:
        """The user has the floor: what is being said was begun before these words, and is cut where it was held."""
        self._parts.barge_in.release()
        open_replies = self._parts.replies.open_replies()
        for reply in open_replies:
            self.cut(reply, cause="barge_in")
        if self._parts.slot.state is ResponseState.RUNNING and open_replies:
            self.cancel_response()

    def release_held(self, ended_at: float) -> None:
        """The user's turn ended: the frames held for it are encoded or let go (I4)."""
        for facts, is_kept in self._parts.sampler.speech_ended(at=ended_at):
            command_id = self._parts.effects.new_id()
            if is_kept:
                self.frame_reasons[facts.source, facts.frame_id] = ("end_of_turn", facts)
                self._parts.effects.do(
                    EncodeHeldFrame(command_id=command_id, source=facts.source, frame_id=facts.frame_id)
                )
            else:
                self._parts.effects.do(
                    DropHeldFrame(command_id=command_id, source=facts.source, frame_id=facts.frame_id)
                )

    def _item_added(self, event: reported.ItemAdded) -> None:
        place = self._parts.history.find(event.item_id)
        if place is None and event.item_id in self._parts.ledger:
            return  # ours, and no message of its own: a digest, the pictures of a result
        if place is None and not self._parts.history.was_here(event.item_id) and event.kind != "function_call_output":
            place = self._parts.history.reserve(
                event.item_id, behind=event.previous_item_id, at_end=not event.has_place
            )
            if event.role == "assistant" or event.kind == "function_call":
                self._unclaimed[event.item_id] = place
        self._parts.ledger.add(event.item_id)
        if place is None or place.state is PlaceState.FINAL or event.kind != "message" or event.role == "assistant":
            return
        if event.item_id in self._parts.outgoing:
            self._parts.ledger.add(
                event.item_id, self._parts.outgoing.tokens_of(event.item_id, self._parts.settings.window)
            )
            self._parts.outgoing.placed(event.item_id, place)
        elif event.role == "user":
            turn = self._parts.speech.turn_of(event.item_id)
            self._parts.speech.placed(turn, place)
        else:
            self._parts.history.settle(place, None)

    def _response_started(self, event: reported.ResponseStarted) -> None:
        for reply in self._parts.replies.open_replies():
            if not reply.response_over:  # dropped without an end: this provider runs one at a time
                self.end_response(reply.reply_id, status="incomplete", usage=None)
        self._parts.slot.started(event.response_id)
        self._parts.limits.responses += 1
        self.hold_wish_until = None
        reply = self._parts.replies.start(event.response_id, agent_id=self._parts.agent.id, basis=self.basis)
        self.basis = None
        if self._parts.barge_in.is_ours and self._parts.speech.is_speaking:
            self._parts.barge_in.hold(reply)
        if self.cancel_on_start:
            self.cancel_on_start = False
            self.cut(reply, cause="interrupt")
            self.cancel_response()

    def _output_item_started(self, event: reported.OutputItemStarted) -> None:
        self._unclaimed.pop(event.item_id, None)
        if event.kind == "function_call":
            place = self._parts.history.reserve(event.item_id)
            self._unfinished_calls.setdefault(event.response_id, {})[event.item_id] = place
            return
        reply = self._parts.replies.find(event.response_id)
        if reply is not None and not reply.is_cut:
            self._parts.replies.start_item(reply, event.item_id)
        else:
            self._parts.history.settle(self._parts.history.reserve(event.item_id), None)

    def _tool_called(self, event: reported.ToolCallDone) -> None:
        self._unclaimed.pop(event.item_id, None)
        place = self._unfinished_calls.get(event.response_id, {}).pop(event.item_id, None)
        if place is None:
            place = self._parts.history.find(event.item_id)
            if place is None and self._parts.history.was_here(event.item_id):
                return
            place = place or self._parts.history.reserve(event.item_id)
        reply = self._parts.replies.find(event.response_id)
        if reply is not None:
            reply.calls.append(place)
        self._parts.tools.call(event, place=place, agent_id=self._parts.agent.id)

    def _response_ended(self, event: reported.ResponseEnded) -> None:
        self.end_response(event.response_id, status=event.status, usage=event.usage)
        self._parts.slot.ended(event.response_id)
        self.hold_wish_until = None
        if event.usage is not None:
            self._parts.limits.add_usage(event.usage)
            self._parts.trimming.note_usage(event.usage.input_tokens)
        if event.status == "failed":
            error = ModelError(event.error_message or "the response failed", code=event.error_code)
            self._parts.effects.emit(ErrorReported(error=error, where="model"))

    def end_response(
        self, response_id: str, *, status: reported.ResponseStatus, usage: reported.TokenUsage | None
    ) -> None:
        """A response is over: what it left unfinished became nothing, what it said plays on."""
        for place in self._unfinished_calls.pop(response_id, {}).values():
            self._parts.history.settle(place, None)
        for item_id in list(self._unclaimed):
            self._parts.history.settle(self._unclaimed.pop(item_id), None)
        reply = self._parts.replies.find(response_id)
        if reply is not None:
            self._parts.replies.finish_response(reply, status=status, usage=usage)
            self.end_reply_if_over(reply)
        self.follow_up(response_id, reply)

    def abandon_responses(self) -> None:
        """The connection or the session is over: nothing more comes of what had begun."""
        for response_id in [*self._unfinished_calls, *(reply.reply_id for reply in self._parts.replies.open_replies())]:
            reply = self._parts.replies.find(response_id)
            if reply is None or not reply.response_over:
                self.end_response(response_id, status="incomplete", usage=None)
        for item_id in list(self._unclaimed):
            self._parts.history.settle(self._unclaimed.pop(item_id), None)

    def end_reply_if_over(self, reply: Reply) -> None:
        """A reply that is done and played out, or cut, becomes its messages (P0)."""
        if not reply.is_over or reply.is_settled:
            return
        self._parts.replies.settle(reply)
        places = [item.place for item in reply.items.values()] + reply.calls
        self._parts.completion.reply_over(reply, places, continues=bool(reply.calls) and not reply.is_cut)

    def follow_up(self, response_id: str, reply: Reply | None) -> None:
        """When a response is over and its calls are answered, the model is asked to go on (once)."""
        if not self._parts.tools.take_follow_up(response_id, is_over=reply is None or reply.response_over):
            return
        if self._parts.speech.is_speaking and self._parts.settings.turn_detection.create_response:
            return  # the user's own turn will be answered, with the outputs in sight
        self._parts.slot.wish(Wish(tool_choice="none" if self._parts.tools.is_spent else None))

    def _fault(self, event: reported.ModelFault) -> None:
        error = ModelError(event.message, code=event.code, param=event.param, fatal=event.fatal)
        command = self._parts.outbox.failed(event.command_id) if event.command_id else None
        if event.fatal:
            self.fatal = error
            return
        if self.refused(command, event.code):
            return
        if isinstance(command, CreateItem):
            self._parts.outgoing.reject(command, str(error))
        self._parts.effects.emit(ErrorReported(error=error, where="model"))

    def refused(self, command: LinkCommand | None, code: str) -> bool:
        """A response was refused; True if it is asked for again, so that nobody need hear of it (T1)."""
        is_ours = isinstance(command, CreateResponse) and command.command_id == self._parts.slot.command_id
        if not is_ours and not (code == _ACTIVE_RESPONSE and self._parts.slot.state is ResponseState.REQUESTED):
            return False
        again = self._parts.slot.refused(may_retry=code == _ACTIVE_RESPONSE)
        if again:
            self.hold_wish_until = self._parts.effects.now + _REFUSAL_PATIENCE_SECONDS
        return again

    def cut(self, reply: Reply, *, cause: InterruptionCause, played_ms: int | None = None) -> None:
        """Stop a reply where the listener is, or at `played_ms`."""
        self._parts.replies.cut(reply, cause=cause, played_ms=played_ms)
        self.end_reply_if_over(reply)

    def cancel_response(self) -> None:
        """Stop the running response at the provider."""
        assert self._parts.slot.response_id is not None
        command = CancelResponse(command_id=self._parts.effects.new_id(), response_id=self._parts.slot.response_id)
        self._parts.effects.send(command)
        self._parts.slot.cancelled()

    def pursue_wish(self) -> None:
        """Ask for the response that is wanted, if none is running (T1), with the window applied (W5)."""
        if not self._parts.outbox.is_open or self.hold_wish_until is not None or self.fatal is not None:
            return
        if self._parts.slot.waiting is None or self._parts.slot.is_busy:
            return
        self._parts.trimming.apply()
        wish = self._parts.slot.take()
        if wish is None:
            return
        command = CreateResponse(
            command_id=self._parts.effects.new_id(), tool_choice=wish.tool_choice, instructions=wish.instructions
        )
        self._parts.slot.sent(command.command_id)
        self._parts.effects.send(command)
