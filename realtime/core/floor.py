"""Who has the floor: what each report of the model means for speech, replies, tools and the next response.

Owns: the order of those consequences, and the user's side of the floor: sounds, turns, barge-in. Driven by
`SessionMachine`. The model's side is `realtime.core.responding`. Never records.
"""

from __future__ import annotations

from typing import assert_never

from realtime.core import model_events as reported
from realtime.core.barge_in import is_backchannel
from realtime.core.commands import CreateItem
from realtime.core.events import ErrorReported
from realtime.core.parts import Parts
from realtime.core.places import PlaceState
from realtime.core.responding import Responding
from realtime.core.showing import Showing
from realtime.core.turn import ResponseState, Wish
from realtime.errors import ModelError

__all__ = ["Floor"]

_OF_A_RESPONSE = (
    reported.OutputItemStarted,
    reported.OutputAudio,
    reported.OutputTextUpdated,
    reported.OutputTextDone,
    reported.OutputWords,
    reported.ThinkingUpdated,
    reported.ToolCallDone,
    reported.OutputItemDone,
)


class Floor:
    """The flow of one session."""

    def __init__(self, parts: Parts, *, showing: Showing, responding: Responding) -> None:
        """Nobody speaks."""
        self._parts = parts
        self._showing = showing
        self._responding = responding
        self.fatal: ModelError | None = None
        """A fault after which the session cannot go on."""

    def receive(self, event: reported.ModelEvent) -> None:  # hot path: every chunk of a reply
        """The model reported something."""
        if isinstance(event, _OF_A_RESPONSE):
            self._responding.watch.heard(event.response_id, now=self._parts.effects.now)
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
                self._responding.item_started(event)
            case reported.OutputItemDone():
                self._parts.replies.finish_item(event)
            case reported.ToolCallDone():
                self._responding.tool_called(event)
            case reported.ResponseStarted():
                self._responding.started(event)
            case reported.ResponseEnded():
                self._responding.ended(event)
            case reported.SpeechBegan():
                self._speech_began(event)
            case reported.SpeechEnded():
                self._speech_ended(event)
            case reported.InputCommitted():
                ended_at = self._parts.speech.committed(event)
                is_answered = self._parts.slot.state is ResponseState.RUNNING
                if self._parts.capabilities.reports_item_order or not is_answered:
                    self._responding.basis = ended_at  # else a turn is complete when its answer is
            case reported.InputBufferCleared():
                self._parts.speech.cleared()
            case reported.ItemAdded():
                self._item_added(event)
            case reported.ItemDeleted():
                self._parts.ledger.remove(event.item_id)
            case reported.InputTranscriptUpdated() | reported.InputTranscriptDone() | reported.InputTranscriptFailed():
                self._transcribed(event)
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

    # -- what the user says -----------------------------------------------------------------------------------------

    def _speech_began(self, event: reported.SpeechBegan) -> None:
        parts = self._parts
        if not parts.speech.began(event):
            return
        parts.sampler.speech_began()
        parts.tools.new_turn()
        if not parts.settings.turn_detection.interrupt_response:
            return
        if parts.barge_in.is_ours:
            for reply in parts.replies.open_replies():
                parts.barge_in.hold(reply)
            return
        for reply in parts.replies.open_replies():
            self._responding.cut(reply, cause="barge_in")
        if parts.slot.state is ResponseState.RUNNING and not parts.capabilities.cancels_on_barge_in:
            self._responding.cancel()

    def _speech_ended(self, event: reported.SpeechEnded) -> None:
        ended_at = self._parts.speech.ended(event)
        self._parts.barge_in.sound_ended()
        if ended_at is not None:
            self._showing.release_held(ended_at)

    def _transcribed(
        self, event: reported.InputTranscriptUpdated | reported.InputTranscriptDone | reported.InputTranscriptFailed
    ) -> None:
        if event.item_id in self._parts.outgoing:
            return  # ours: what it says is known
        match event:
            case reported.InputTranscriptUpdated():
                self._parts.speech.transcript_updated(event)
                self._words_came(event.item_id, is_final=False)
            case reported.InputTranscriptDone():
                self._words_came(event.item_id, is_final=True, text=event.text)
                self._parts.speech.transcript_done(event)
            case reported.InputTranscriptFailed():
                self._parts.speech.transcript_failed(event)

    def _words_came(self, item_id: str, *, is_final: bool, text: str | None = None) -> None:
        """With `resume_after_ms`: words decide whether the sound was an interruption, and whether it is to be answered."""
        barge_in = self._parts.barge_in
        if not barge_in.is_ours or self._parts.speech.is_settled(item_id):
            return
        said = self._parts.speech.turn_of(item_id).text if text is None else text
        was_holding = barge_in.is_holding
        if not is_backchannel(said):
            self._confirm_barge_in()
        elif is_final:
            barge_in.resume()
        if is_final and said.strip() and self._parts.settings.turn_detection.create_response:
            if was_holding and is_backchannel(said):
                return
            self._parts.slot.wish(Wish())

    def _confirm_barge_in(self) -> None:
        """The user has the floor: what is being said was begun before these words, and is cut where it was held."""
        self._parts.barge_in.release()
        open_replies = self._parts.replies.open_replies()
        for reply in open_replies:
            self._responding.cut(reply, cause="barge_in")
        if self._parts.slot.state is ResponseState.RUNNING and open_replies:
            self._responding.cancel()

    # -- the provider's conversation --------------------------------------------------------------------------------

    def _item_added(self, event: reported.ItemAdded) -> None:
        parts = self._parts
        place = parts.history.find(event.item_id)
        if place is None and (event.item_id in parts.ledger or parts.ledger.is_deleting(event.item_id)):
            return  # ours, and no message of its own, or none any more: a digest, the pictures of a result
        is_output = event.role == "assistant" or event.kind == "function_call"
        is_new = place is None
        if place is None and not parts.history.was_here(event.item_id) and event.kind != "function_call_output":
            place = parts.history.reserve(
                event.item_id, behind=event.previous_item_id, at_end=not event.has_place, is_output=is_output
            )
            if is_output:
                self._responding.claim_later(event.item_id, place)
        parts.ledger.add(event.item_id)
        if place is None or place.state is PlaceState.FINAL or event.kind != "message" or is_output:
            return
        if event.item_id in parts.outgoing:
            parts.outgoing.placed(event.item_id, place)
        elif event.role == "user":
            turn = parts.speech.turn_of(event.item_id)
            turn.has_item = True
            if is_new:
                parts.overlap.turn_placed(place)
            parts.speech.placed(turn, place)
        else:
            parts.history.settle(place, None)

    def _fault(self, event: reported.ModelFault) -> None:
        error = ModelError(event.message, code=event.code, param=event.param, fatal=event.fatal)
        command = self._parts.outbox.failed(event.command_id) if event.command_id else None
        if event.fatal:
            self.fatal = error
            return
        if self._responding.refused(command, event.code):
            return
        if isinstance(command, CreateItem):
            self._parts.outgoing.reject(command, str(error))
        self._parts.effects.emit(ErrorReported(error=error, where="model"))
