"""Speech to text: Whisper on CTranslate2, at the price of the utterance and not of half a minute.

Owns: `WhisperRecognizer`. Driven by a session, on its worker pool. Whisper was made for windows of 30 seconds; given a
shorter window it is as much faster, if two things are kept: the number of tokens is capped by the duration (a short
window makes it loop now and then), and a result that loops or is a guess is decoded again with the full window.

It never downloads anything and never keeps audio.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, Protocol, cast

import numpy as np

from realtime.errors import ArgumentError
from realtime.local.engines import load_engine
from realtime.local.mel import FRAMES_PER_SECOND, RATE_HZ, MelFeatures
from realtime.local.parts import Samples, Transcript
from realtime.local.vocabulary import Vocabulary
from realtime.local.weights import WhisperWeights
from realtime.local.workers import FairPool, Urgency

__all__ = ["WhisperRecognizer", "find_pauses"]

FULL_WINDOW = 30 * FRAMES_PER_SECOND
"""The window that Whisper was trained with, in frames."""
SHORT_WINDOWS = (10 * FRAMES_PER_SECOND, 15 * FRAMES_PER_SECOND, 20 * FRAMES_PER_SECOND)
"""The shorter windows that are tried first: the smallest that holds the utterance."""
MAX_PIECE_SECONDS = 28.0
"""Longer utterances are cut, at their quietest places."""
NO_SPEECH_LIMIT = 0.6
"""A result is dropped if the model is surer than this that nothing was said (the threshold of Whisper's authors)."""
GUESS_SCORE = -1.0
"""A mean log probability below this is a guess (the threshold of Whisper's authors)."""
LOOP_RATIO = 2.4
"""Text that deflates by more than this repeats itself (the threshold of Whisper's authors)."""
TOKENS_PER_SECOND = 9
"""More tokens than anybody speaks in a second, punctuation included."""
SPARE_TOKENS = 8
"""… and what the shortest utterance may have besides."""


class _Result(Protocol):
    sequences_ids: list[list[int]]
    scores: list[float]
    no_speech_prob: float


class _Whisper(Protocol):
    is_multilingual: bool
    n_mels: int

    def generate(self, features: object, prompts: list[list[int]], **options: object) -> list[_Result]: ...


class WhisperRecognizer:
    """The embedded `Recognizer`."""

    rate_hz = RATE_HZ

    def __init__(self, pool: FairPool, weights: WhisperWeights, *, threads: int = 1, parallel: int = 2) -> None:
        """Load the model. Takes half a second.

        Args:
            pool: Where the work is done.
            weights: The model, from `weights.py`.
            threads: Threads of one recognition. One is best: two share an utterance badly and take them from others.
            parallel: Recognitions at once.

        Raises:
            MissingExtraError: A package of the extra `local` is missing.
            ArgumentError: It is no Whisper model of CTranslate2's.
        """
        ctranslate2 = load_engine("ctranslate2", what="speech recognition", package="ctranslate2")
        self._storage: Any = ctranslate2.StorageView
        try:
            model = ctranslate2.models.Whisper(
                weights.name,
                device="cpu",
                compute_type="int8",
                intra_threads=threads,
                inter_threads=parallel,
                files=None if weights.files is None else dict(weights.files),
            )
        except (RuntimeError, ValueError) as error:
            raise ArgumentError("model_dir", weights.name, f"a CTranslate2 Whisper model ({error})") from None
        self._model = cast("_Whisper", model)
        self._vocabulary = Vocabulary.parse(weights.vocabulary)
        self._features = MelFeatures(self._model.n_mels)
        self._pool = pool
        self.retries = 0
        """How many utterances were decoded again with the full window."""

    async def recognize(
        self, samples: Samples, *, owner: str, language: str | None = None, speculative: bool = False
    ) -> Transcript:
        """Transcribe one utterance of any length; a long one in pieces, each of them one turn of its owner's."""
        pieces: list[Transcript] = []
        for start, end in find_pauses(samples, longest=int(MAX_PIECE_SECONDS * RATE_HZ)):
            urgency: Urgency = "maybe" if speculative else "now"
            pieces.append(await self._pool.run(owner, urgency, self.transcribe, samples[start:end], language))
        text = " ".join(piece.text for piece in pieces if piece.text)
        return Transcript(
            text=text,
            score=min((piece.score for piece in pieces if piece.text), default=0.0),
            no_speech=min((piece.no_speech for piece in pieces), default=1.0),
        )

    async def aclose(self) -> None:
        """Nothing is held that does not go with it."""

    def transcribe(self, samples: Samples, language: str | None = None, *, full: bool = False) -> Transcript:
        """Transcribe at most 30 seconds, here and now. Safe to call from any thread.

        Args:
            samples: 16 kHz, mono.
            language: ISO 639-1, for a model that knows more than English; None: English.
            full: Use the full window at once, as a measure of what the short one saves.
        """
        if len(samples) < RATE_HZ // FRAMES_PER_SECOND:
            return Transcript(text="", no_speech=1.0)
        needed = math.ceil(len(samples) * FRAMES_PER_SECOND / RATE_HZ)
        window = FULL_WINDOW if full else next((size for size in SHORT_WINDOWS if size >= needed), FULL_WINDOW)
        found, suspect = self._decode(samples, window, language)
        if suspect and window != FULL_WINDOW and found.no_speech <= NO_SPEECH_LIMIT:
            self.retries += 1
            found, suspect = self._decode(samples, FULL_WINDOW, language)
        if found.no_speech > NO_SPEECH_LIMIT:
            return Transcript(text="", score=found.score, no_speech=found.no_speech)
        if suspect and _loops(found.text):
            return Transcript(text=_first_round(found.text), score=found.score, no_speech=found.no_speech)
        return found

    def _decode(self, samples: Samples, window: int, language: str | None) -> tuple[Transcript, bool]:
        """Decode once. Returns the result, and whether it is not to be trusted."""
        features = self._features.extract(samples, window)[np.newaxis]
        most = SPARE_TOKENS + math.ceil(TOKENS_PER_SECOND * len(samples) / RATE_HZ)
        prompt = self._vocabulary.prompt(multilingual=self._model.is_multilingual, language=language or "en")
        result = self._model.generate(
            self._storage.from_array(features),
            [prompt],
            beam_size=1,
            max_length=2 * most,  # CTranslate2 gives half of it to the prompt
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        ids = result.sequences_ids[0]
        text = self._vocabulary.decode(ids).strip()
        if not any(char.isalnum() for char in text):
            text = ""
        found = Transcript(text=text, score=result.scores[0], no_speech=result.no_speech_prob)
        return found, len(ids) >= most or found.score < GUESS_SCORE or _loops(text)


def find_pauses(samples: Samples, *, longest: int) -> list[tuple[int, int]]:
    """Where to cut a long utterance: pieces of at most `longest` samples, each ended in its quietest tenth of a second.

    Returns:
        The first sample of each piece and the one behind its last. One piece if the utterance is short enough.
    """
    pieces: list[tuple[int, int]] = []
    start = 0
    step = RATE_HZ // 10
    while len(samples) - start > longest:
        earliest = start + longest * 3 // 4
        blocks = samples[earliest : earliest + (start + longest - earliest) // step * step].reshape(-1, step)
        loudness = np.square(blocks).mean(axis=1)
        cut = earliest + int(loudness.argmin()) * step + step // 2
        pieces.append((start, cut))
        start = cut
    pieces.append((start, len(samples)))
    return pieces


def _loops(text: str) -> bool:
    """Whether a text repeats itself as nobody does who speaks."""
    data = text.encode()
    return len(data) > 40 and len(data) / len(zlib.compress(data)) > LOOP_RATIO


def _first_round(text: str) -> str:
    """What a looping text said before it began again."""
    words = text.split()
    for length in range(1, len(words) // 2 + 1):
        for start in range(len(words) - 2 * length + 1):
            if words[start : start + length] == words[start + length : start + 2 * length]:
                return " ".join(words[: start + length])
    return text
