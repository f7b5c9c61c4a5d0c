"""What the user says: spoken turns, from the first sound to their transcript (behaviour.md H1, H2, H4, H5).

Owns: the spoken turns that are not settled yet and how each becomes a message. Driven by `SessionMachine`. Never hears.
"""

from __future__ import annotations

from realtime import pcm
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole
from realtime.core.effects import Effects
from realtime.core.events import SpeechStarted, SpeechStopped, TranscriptionFailed, TranscriptUpdated
from realtime.core.history import History
from realtime.core.input_audio import AudioTape, InputAudio
from realtime.core.keeping import Keeping
from realtime.core.model_events import (
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptFailed,
    InputTranscriptUpdated,
    SpeechBegan,
    SpeechEnded,
)
from realtime.core.overlap import Overlap
from realtime.core.places import Place, PlaceState
from realtime.core.turn import TurnInput, TurnProgress, TurnState

__all__ = ["Speech", "SpokenTurn"]


class SpokenTurn(TurnProgress):
    """One utterance of the user's."""

    __slots__ = (
        "began_wall",
        "deltas",
        "done",
        "ended_at",
        "ended_ms",
        "finals",
        "has_item",
        "item_id",
        "place",
        "tape",
    )

    def __init__(self, item_id: str, *, began_wall: float) -> None:
        super().__init__()
        self.item_id = item_id
        self.began_wall = began_wall
        self.ended_ms: int | None = None
        self.ended_at: float | None = None
        """When it ended, on the session's clock."""
        self.has_item = False
        """Whether the provider said that it is an item of its conversation."""
        self.place: Place | None = None
        self.deltas: dict[int, str] = {}
        self.finals: dict[int, str] = {}
        self.done = False
        self.tape: AudioTape | None = None
        """Its recording, if the user's audio is kept."""

    @property
    def is_committed(self) -> bool:
        """Whether it became an item."""
        return self.state is TurnState.COMMITTED

    @property
    def text(self) -> str:
        """Everything transcribed so far."""
        parts = self.deltas | self.finals
        return " ".join(filter(None, (parts[index].strip() for index in sorted(parts))))


class Speech:
    """The user's turns that are not settled yet, oldest first."""

    def __init__(
        self,
        *,
        input_audio: InputAudio,
        history: History,
        keeping: Keeping,
        effects: Effects,
        overlap: Overlap,
        transcribes: bool,
        is_cut_by_replies: bool,
    ) -> None:
        """Start in silence.

        Args:
            input_audio: What was sent.
            history: Where the turns go.
            keeping: Where their audio is counted.
            effects: Where events go.
            overlap: Whether turns have to be placed by us.
            transcribes: Whether transcripts will come.
            is_cut_by_replies: The provider reports no speech: a turn runs from one response's end to the next's (H4).
        """
        self._input = input_audio
        self._history = history
        self._keeping = keeping
        self._effects = effects
        self._overlap = overlap
        self.transcribes = transcribes
        self.is_cut_by_replies = is_cut_by_replies
        self._turn_from = 0
        self._turns: dict[str, SpokenTurn] = {}
        self._by_place: dict[Place, SpokenTurn] = {}
        self._current: SpokenTurn | None = None
        self.is_speaking = False
        """Whether the user speaks now."""
        self.last_ended_at: float | None = None
        """When the user last stopped, on the session's clock."""
        self.last_transcribed_at: float | None = None
        """When a transcript last became final, on the session's clock."""

    def turn_of(self, item_id: str) -> SpokenTurn:
        """The turn of an item; a new one if nothing was heard of it before."""
        turn = self._turns.get(item_id)
        if turn is None:
            turn = self._turns[item_id] = SpokenTurn(item_id, began_wall=self._effects.wall)
            self._input.hold_turn(open_=True)
        return turn

    @property
    def awaits_words(self) -> bool:
        """Whether a turn that was committed has no transcript yet."""
        return any(turn.is_committed for turn in self._turns.values())

    # -- boundaries -------------------------------------------------------------------------------------------------

    def began(self, event: SpeechBegan) -> bool:
        """The user began to speak.

        Returns:
            False if the turn was recorded already: the report is only repeated.
        """
        if self.is_settled(event.item_id):
            return False
        self._input.speech_began(event.at_ms)
        turn = self.turn_of(event.item_id)
        turn.go(TurnInput.SOUND)
        if self._current is not turn:
            self._fall_silent()
        self._current = turn
        self.is_speaking = True
        if turn.place is not None:
            turn.place.waits_for_transcript = False
        self._effects.emit(SpeechStarted(message_id=event.item_id, at_ms=event.at_ms))
        return True

    def ended(self, event: SpeechEnded) -> float | None:
        """The user stopped.

        Returns:
            When, on the session's clock: the provider notices it later. None if the turn was recorded already.
        """
        self.is_speaking = False
        if self.is_settled(event.item_id):
            return None
        turn = self.turn_of(event.item_id)
        turn.go(TurnInput.SILENCE)
        turn.ended_ms = event.at_ms
        behind_ms = max(0, self._input.sent_ms - event.at_ms)
        turn.ended_at = self.last_ended_at = self._effects.now - behind_ms / 1000
        self._record(turn, self._input.samples_at(event.at_ms))
        self._all_is_said(turn)
        self._effects.emit(SpeechStopped(message_id=event.item_id, at_ms=event.at_ms))
        return turn.ended_at

    def committed(self, event: InputCommitted) -> float | None:
        """The speech became an item: its place is reserved.

        Returns:
            When it ended, on the session's clock.
        """
        if self.is_settled(event.item_id):
            return self.last_ended_at
        turn = self.turn_of(event.item_id)
        turn.go(TurnInput.COMMIT)
        self._turn_from = self._input.sent
        self._all_is_said(turn)
        if turn.ended_ms is None:  # push-to-talk: it runs to the commit
            turn.ended_ms = self._input.sent_ms
            turn.ended_at = self.last_ended_at = self._effects.now
            self._record(turn, self._input.sent)
        if turn.place is None and self._overlap.is_needed:
            self._place(turn)
        elif turn.place is not None:
            self.placed(turn, turn.place)
        return turn.ended_at

    def placed(self, turn: SpokenTurn, place: Place) -> None:
        """The turn has its place; without transcription it is complete."""
        turn.place = place
        self._by_place[place] = turn
        if turn.state is not TurnState.SPEAKING:
            self._wait_for_words(turn)
        if turn.done or (not self.transcribes and turn.is_committed):
            self._settle(turn)

    def _fall_silent(self) -> None:
        """Whoever spoke until now has finished, though nobody said so."""
        if self._current is not None:
            self._current.go(TurnInput.SILENCE)
            self._all_is_said(self._current)

    def _all_is_said(self, turn: SpokenTurn) -> None:
        """A turn has been spoken: from now on its transcript is waited for (H2)."""
        if self._current is turn:
            self._current = None
        self._wait_for_words(turn)

    def _wait_for_words(self, turn: SpokenTurn) -> None:
        if turn.place is None or turn.place.state is PlaceState.FINAL or turn.place.waits_for_transcript:
            return
        turn.place.waits_for_transcript = True
        turn.place.said_at = self._effects.now

    def place_what_was_begun(self) -> None:
        """A response begins: where the provider does not say where turns stand, those begun before stand before it (H3)."""
        if self._overlap.is_needed:
            for turn in [turn for turn in self._turns.values() if turn.place is None]:
                self._place(turn)

    def _place(self, turn: SpokenTurn) -> None:
        place = self._history.reserve(turn.item_id)
        self._overlap.turn_placed(place)
        self.placed(turn, place)

    def _record(self, turn: SpokenTurn, until: int) -> None:
        if not self._keeping.keeps_input_audio:
            return
        if turn.tape is None:
            turn.tape = AudioTape()
            self._keeping.audio.watch(turn.tape, is_input=True)
        turn.tape.append(self._input.record_until(until))

    def cleared(self) -> None:
        """The provider threw the uncommitted audio away."""
        for turn in [turn for turn in self._turns.values() if not turn.is_committed and not turn.has_item]:
            if turn.place is not None:
                self._history.settle(turn.place, None)
            self._drop(turn)
        self._current = None
        self.is_speaking = False

    # -- words ------------------------------------------------------------------------------------------------------

    def transcript_updated(self, event: InputTranscriptUpdated) -> None:
        """The transcript of a turn grew."""
        if self.is_settled(event.item_id):
            return
        turn = self.turn_of(event.item_id)
        before = turn.deltas.get(event.content_index, "")
        after = event.text if event.text is not None else before + event.delta
        turn.deltas[event.content_index] = after
        delta = after[len(before) :] if after.startswith(before) else ""
        self._effects.emit(
            TranscriptUpdated(message_id=turn.item_id, role=ChatRole.USER, delta=delta, text=turn.text, final=False)
        )

    def transcript_done(self, event: InputTranscriptDone) -> None:
        """The transcript of a turn is final."""
        if self.is_settled(event.item_id):
            return
        turn = self.turn_of(event.item_id)
        turn.finals[event.content_index] = event.text
        turn.done = True
        self.last_transcribed_at = self._effects.now
        self._effects.emit(
            TranscriptUpdated(message_id=turn.item_id, role=ChatRole.USER, delta="", text=turn.text, final=True)
        )
        if turn.place is not None:
            self._settle(turn)

    def transcript_failed(self, event: InputTranscriptFailed) -> None:
        """A turn could not be transcribed: it is complete without words."""
        if self.is_settled(event.item_id):
            return
        turn = self.turn_of(event.item_id)
        turn.done = True
        self._effects.emit(TranscriptionFailed(message_id=turn.item_id, code=event.code, detail=event.message))
        if turn.place is not None:
            self._settle(turn)

    def is_settled(self, item_id: str) -> bool:
        """Whether the turn was recorded already; what comes for it now is too late (H2)."""
        if item_id in self._turns:
            return False
        return self._history.was_here(item_id) or self._history.find(item_id) is not None

    # -- becoming a message -----------------------------------------------------------------------------------------

    def give_up(self, place: Place) -> None:
        """A turn is recorded with what it has; a later transcript for it is ignored (H2)."""
        turn = self._by_place.get(place)
        if turn is not None:
            self._settle(turn)
        else:
            self._history.settle(place, None)

    def close(self) -> None:
        """The session ends: every turn that has a place is recorded with what it has (H7)."""
        if self.is_cut_by_replies and not self.transcribes and not self._turns and self._input.sent > self._turn_from:
            self.turn_of(self._effects.new_id()).go(TurnInput.COMMIT)  # nobody will say that this was a turn
        for turn in list(self._turns.values()):
            if turn.ended_ms is None:
                self._record(turn, self._input.sent)
            if turn.place is None and (turn.is_committed or turn.text):
                turn.place = self._history.reserve(turn.item_id)
            if turn.place is not None:
                self._settle(turn)
            else:
                self._drop(turn)

    def link_lost(self) -> bool:
        """The connection is gone: what was not understood will be sent again and become a turn anew.

        Returns:
            True if a committed turn must be committed again.
        """
        again = False
        self._turn_from = 0
        self.is_speaking = False
        self._current = None
        for turn in list(self._turns.values()):
            if self._can_be_sent_again(turn):
                again = again or turn.is_committed
                if turn.place is not None:
                    self._history.settle(turn.place, None)
                self._drop(turn)
            elif turn.place is not None:
                self._settle(turn)
            else:
                self._drop(turn)
        return again

    def _can_be_sent_again(self, turn: SpokenTurn) -> bool:
        if not len(self._input.replay):  # nothing is kept, or the sound never came this way
            return False
        return turn.ended_ms is None or self._input.samples_at(turn.ended_ms) > self._input.replay.start

    def _drop(self, turn: SpokenTurn) -> None:
        turn.go(TurnInput.DROP)
        self._recording(turn)
        self._forget(turn)

    def _forget(self, turn: SpokenTurn) -> None:
        self._turns.pop(turn.item_id, None)
        if turn.place is not None:
            self._by_place.pop(turn.place, None)
        if self._current is turn:
            self._current = None
        self._input.hold_turn(open_=bool(self._turns))

    def _settle(self, turn: SpokenTurn) -> None:
        place = turn.place
        assert place is not None
        turn.go(TurnInput.RECORD)
        recording = self._recording(turn)
        audio = AudioContent.from_wav(pcm.wav_bytes(recording, self._input.rate_hz)) if recording else None
        message = self._message(turn, audio)
        self._history.settle(place, message)
        if audio is not None and place.message is message:
            self._keeping.add_audio(place, len(recording) // 2, is_input=True)
        if turn.ended_ms is not None:
            self._input.forget_before(turn.ended_ms)
        self._forget(turn)

    def _recording(self, turn: SpokenTurn) -> bytes:
        """Take a turn's recording; it is no longer counted as live."""
        tape, turn.tape = turn.tape, None
        if tape is None:
            return b""
        self._keeping.audio.leave(tape)
        return tape.take_until(tape.end)

    def _message(self, turn: SpokenTurn, audio: AudioContent | None) -> ChatMessage:
        return ChatMessage(ChatRole.USER, turn.text, turn.item_id, created_at=turn.began_wall, audio=audio)

    def preview(self, place: Place) -> ChatMessage | None:
        """What a place of a turn says so far (for `pending`)."""
        turn = self._by_place.get(place)
        return self._message(turn, None) if turn is not None and turn.text else None

    def unplaced(self) -> list[ChatMessage]:
        """What is being said and has no place yet (for `pending`)."""
        return [self._message(turn, None) for turn in self._turns.values() if turn.place is None]
