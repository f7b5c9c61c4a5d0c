"""Listening: what a client's audio means, and its words as early as they can be known.

Owns: `Listener`. Driven by the session with every append, commit and clear; it reports through `Ear`. Words are sought
before they are needed: with every pause of the user's, in case it is the end of the turn, if a thread is free; and now
and then in mid-speech while nothing else is to be done, for transcripts that grow. Work that turns out not to be needed
costs only time that nobody else wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from realtime.local.completeness import sounds_complete
from realtime.local.config import SessionConfiguration
from realtime.local.endpointing import EndpointingSettings, Heard, SpeechEnd, SpeechPause, SpeechResume, SpeechStart
from realtime.local.ids import make_id
from realtime.local.input_audio import InputAudio, Utterance
from realtime.local.parts import Parts, Transcript
from realtime.local.workers import FairPool

__all__ = ["Ear", "Listener", "Spoken"]

WINDOWS_AT_ONCE = 4
"""So many windows are heard between two breaths of the loop: about a millisecond."""
BYTES_AT_ONCE = 48_000
"""So much is decoded between two breaths of the loop: a second of PCM16."""
GROWTH_MS = 1_000
"""A growing transcript is sought again after so much more speech …"""
GROWTH_MAX_MS = 20_000
"""… while the turn is not longer than this."""

FINISHED = 0.5
"""A turn sounds finished from this certainty on (the threshold of Smart Turn's authors)."""

Spawn = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One turn of the user's, cut out, its words being sought."""

    item_id: str
    """The item that it becomes."""
    utterance: Utterance
    """Its audio."""
    words: asyncio.Task[Transcript]
    """Its words."""
    silence_ms: int = 0
    """How much silence ended it."""


class Ear(Protocol):
    """What a listener reports to."""

    async def speech_started(self, item_id: str, at_ms: int) -> None:
        """The user began to speak."""
        ...

    async def speech_stopped(self, spoken: Spoken, at_ms: int) -> None:
        """The user has finished."""
        ...

    async def words_grew(self, item_id: str, delta: str) -> None:
        """More of what the user is saying is certain."""
        ...


@dataclass(slots=True)
class _Guess:
    """Words sought in a pause, before it was known whether the turn was over."""

    at_ms: int
    words: asyncio.Task[Transcript]
    sound: asyncio.Task[float] | None = None
    """How sure it is by its sound that the turn is over; None: nobody can tell."""

    def cancel(self) -> None:
        self.words.cancel()
        if self.sound is not None:
            self.sound.cancel()


class _Turn:
    """The turn that the user is in."""

    def __init__(self, start_ms: int) -> None:
        self.item_id = make_id("item_")
        self.start_ms = start_ms
        self.guess: _Guess | None = None
        self.growing: asyncio.Task[None] | None = None
        self.sought_ms = start_ms
        self.last_words: list[str] = []
        self.certain = 0


class Listener:
    """Listens for one session."""

    def __init__(self, parts: Parts, pool: FairPool, *, owner: str, ear: Ear, spawn: Spawn) -> None:
        """Begin in silence.

        Args:
            parts: The detector and the recognizer.
            pool: To know when nothing else is to be done.
            owner: The session.
            ear: Who is told.
            spawn: Starts a task that ends with the session.
        """
        self._parts = parts
        self._pool = pool
        self._owner = owner
        self._ear = ear
        self._spawn = spawn
        self._turn: _Turn | None = None
        self._language: str | None = None
        self._grows = False
        self.input = InputAudio(parts.detector)
        """The input audio buffer."""
        self._format = "audio/pcm"

    @property
    def speaking(self) -> bool:
        """Whether the user is in a turn."""
        return self._turn is not None

    def configure(self, configuration: SessionConfiguration) -> None:
        """Listen as a session's configuration says."""
        if configuration.input_format != self._format:
            self._format = configuration.input_format
            self.input.set_format(self._format)
        taking = configuration.turn_taking
        self.input.set_endpointing(None if taking is None else taking.endpointing)
        if taking is None:
            self._turn = None
        self._language = configuration.language
        self._grows = configuration.transcription is not None

    async def append(self, data: bytes) -> None:
        """Take more audio, and act on what it means."""
        for start in range(0, len(data), BYTES_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            self.input.append(data[start : start + BYTES_AT_ONCE])
            while self.input.waiting:
                for heard in self.input.hear(WINDOWS_AT_ONCE):
                    await self._act(heard)
                if self.input.waiting:
                    await asyncio.sleep(0)
        await self._end_by_meaning()
        self._seek_growth()

    def commit(self) -> Spoken:
        """Cut out everything that was not committed, whether the user has finished or not."""
        turn, self._turn = self._turn, None
        silence = self.input.silence_ms
        utterance = self.input.commit(turn.start_ms if turn is not None else None)
        item_id = turn.item_id if turn is not None else make_id("item_")
        words = self._seek(utterance, speculative=False)
        return Spoken(item_id=item_id, utterance=utterance, words=words, silence_ms=silence)

    def clear(self) -> None:
        """Forget what was not committed."""
        self._turn = None
        self.input.clear()

    def seek(self, utterance: Utterance) -> asyncio.Task[Transcript]:
        """Seek the words of audio that came by another way."""
        return self._seek(utterance, speculative=False)

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _act(self, heard: Heard) -> None:
        if isinstance(heard, SpeechStart):
            self._turn = _Turn(heard.at_ms)
            await self._ear.speech_started(self._turn.item_id, heard.at_ms)
            return
        turn = self._turn
        if turn is None:
            return
        if isinstance(heard, SpeechPause):
            if self._pool.has_room or self._is_semantic:
                self._guess(turn, heard)
        elif isinstance(heard, SpeechResume):
            if turn.guess is not None:
                turn.guess.cancel()
            turn.guess = None
        else:
            await self._end(turn, heard)

    def _guess(self, turn: _Turn, pause: SpeechPause) -> None:
        """Seek the words before it is known whether the turn is over."""
        utterance = self.input.cut(turn.start_ms, pause.at_ms + pause.silence_ms)
        turn.guess = guess = _Guess(pause.at_ms, self._seek(utterance, speculative=True))
        if self._is_semantic:
            if self._parts.judge is not None:
                guess.sound = self._spawn(self._parts.judge.finished(utterance.samples, owner=self._owner))
            self._spawn(self._end_when_known(guess))

    async def _end(self, turn: _Turn, end: SpeechEnd) -> None:
        self._turn = None
        utterance = self.input.commit(turn.start_ms, end.at_ms)
        guess = turn.guess
        if guess is not None and not (guess.words.done() and guess.words.exception() is not None):
            words = guess.words
            self._pool.promote(self._owner)
        else:
            words = self._seek(utterance, speculative=False)
        silence = end.at_ms - end.speech_end_ms
        spoken = Spoken(item_id=turn.item_id, utterance=utterance, words=words, silence_ms=silence)
        await self._ear.speech_stopped(spoken, end.at_ms)

    @property
    def _is_semantic(self) -> bool:
        settings = self.input.endpointing
        return settings is not None and settings.semantic is not None

    async def _end_when_known(self, guess: _Guess) -> None:
        await asyncio.wait({guess.words} if guess.sound is None else {guess.words, guess.sound})
        if self._turn is not None and self._turn.guess is guess:
            await self._end_by_meaning()

    async def _end_by_meaning(self) -> None:
        """Semantic turn detection: end the turn when the pause is long enough for what was said, and how."""
        turn, settings = self._turn, self.input.endpointing
        if turn is None or turn.guess is None or settings is None or not self._is_semantic:
            return
        enough = _enough_silence_ms(turn.guess, settings)
        if enough is not None and self.input.silence_ms >= enough:
            end = self.input.finish()
            if end is not None:
                await self._end(turn, end)

    # -- words ---------------------------------------------------------------------------------------------------------

    def _seek(self, utterance: Utterance, *, speculative: bool) -> asyncio.Task[Transcript]:
        recognizing = self._parts.recognizer.recognize(
            utterance.samples, owner=self._owner, language=self._language, speculative=speculative
        )
        return self._spawn(recognizing)

    def _seek_growth(self) -> None:
        """Seek the words said so far, if it is time and nothing else is to be done."""
        turn, now = self._turn, self.input.position_ms
        if turn is None or not self._grows or turn.growing is not None or not self._pool.idle:
            return
        if now - turn.sought_ms < GROWTH_MS or now - turn.start_ms > GROWTH_MAX_MS or turn.guess is not None:
            return
        turn.sought_ms = now
        utterance = self.input.cut(turn.start_ms, now)
        turn.growing = self._spawn(self._grow(turn, self._seek(utterance, speculative=True)))

    async def _grow(self, turn: _Turn, words: Awaitable[Transcript]) -> None:
        """Report the words that two seekings in a row agree on."""
        try:
            found = (await words).text.split()
        except Exception:  # the turn's own words tell what is wrong
            return
        finally:
            turn.growing = None
        agreed = 0
        while agreed < min(len(found), len(turn.last_words)) and found[agreed] == turn.last_words[agreed]:
            agreed += 1
        turn.last_words = found
        if agreed > turn.certain and self._turn is turn:
            delta = " ".join(found[turn.certain : agreed])
            lead = " " if turn.certain else ""
            turn.certain = agreed
            await self._ear.words_grew(turn.item_id, lead + delta)


def _enough_silence_ms(guess: _Guess, settings: EndpointingSettings) -> int | None:
    """The silence that ends a turn in semantic turn detection; None: the cap's, as far as is known.

    Finished by words and sound, the shortest; by one of them, one in between. Where the sound is not known, words decide.
    """
    if not guess.words.done() or (guess.sound is not None and not guess.sound.done()):
        return None
    if guess.words.cancelled() or guess.words.exception() is not None:
        return None
    by_words = by_sound = sounds_complete(guess.words.result().text)
    if guess.sound is not None and not guess.sound.cancelled() and guess.sound.exception() is None:
        by_sound = guess.sound.result() >= FINISHED
    if by_words and by_sound:
        return settings.silence_ms
    return settings.doubt_ms if by_words or by_sound else None
