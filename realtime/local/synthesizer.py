"""Text to speech: the voice inside `hibari-tts`, sentence by sentence, with the time of every word.

Owns: `HibariSynthesizer`. Driven by a running response, on the server's worker pool. The network predicts how long each
phoneme lasts but keeps it to itself; here the graph is asked for that too, so that what a listener heard is known to the
word. The silence that the voice begins with is cut off: a reply is heard a third of a second sooner.

It never downloads a voice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from realtime.local.alignment import TimedWord, align_words, split_words
from realtime.local.engines import load_engine, open_network
from realtime.local.parts import Samples, Speech
from realtime.local.speakable import MAX_SENTENCE_CHARS
from realtime.local.weights import check_sha256, package_dir
from realtime.local.workers import FairPool

__all__ = ["HibariSynthesizer"]

HIBARI_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
"""SHA-256 of `hibari.onnx` in `hibari-tts==0.2.1`."""

FRAME_SAMPLES = 600
"""One step of the network's durations."""
MAX_PHONEMES = 400
"""The longest run that the voice speaks in one breath."""
LEAD_MS = 30
"""Silence kept before the first sound."""
TAIL_MS = 160
"""Silence kept behind the last."""
QUIET = 0.004
"""Samples below this are silence."""
SPEEDS = (0.5, 2.0)
"""How slow and how fast the voice can speak."""

_PAUSES = frozenset(' ;:,.!?—…()"“”')
_DURATIONS = "/CumSum_output_0"
_INT64 = 7


class _Token(Protocol):
    text: str
    phonemes: str | None
    whitespace: str


@dataclass(frozen=True, slots=True)
class _Phonemes:
    """A run of phonemes spoken at once."""

    ids: list[int]
    ends: list[tuple[str, int]]
    """Each written word of the run, and the index in `ids` of its last phoneme."""


class HibariSynthesizer:
    """The embedded `Synthesizer`."""

    rate_hz = 24_000

    def __init__(self, pool: FairPool) -> None:
        """Load the voice. Takes a second.

        Args:
            pool: Where the work is done.

        Raises:
            MissingExtraError: A package of the extra `local` is missing.
            UserError: The voice is not the one that was meant.
        """
        assets = package_dir("hibari", what="speech synthesis", package="hibari-tts") / "assets"
        voice = assets / "hibari.onnx"
        check_sha256(voice, HIBARI_SHA256)
        self._dsp = _load("hibari.dsp")
        self._g2p = _load("hibari.g2p").G2P()
        self._normalize = _load("hibari.g2p.normalize").normalize
        self._vocabulary: dict[str, int] = json.loads((assets / "vocab.json").read_text("utf-8"))
        self._model = _open_model(voice)
        self._pool = pool
        self.speak("Ready.")

    async def synthesize(self, text: str, *, owner: str, speed: float = 1.0, later: bool = False) -> Speech:
        """Speak one sentence of plain text. What cannot be spoken gives no samples."""
        return await self._pool.run(owner, "soon" if later else "first", self.speak, text, speed)

    async def aclose(self) -> None:
        """Nothing is held that does not go with it."""

    def speak(self, text: str, speed: float = 1.0) -> Speech:
        """Speak one sentence, here and now. Safe to call from any thread.

        Args:
            text: Plain text; what is beyond `MAX_SENTENCE_CHARS` characters is not spoken.
            speed: 1.0 is the voice's own pace.
        """
        text = text[:MAX_SENTENCE_CHARS]
        plain: str = self._normalize(text)
        parts: list[Samples] = []
        timed: list[TimedWord] = []
        for run in self._phonemes(plain):
            samples, words = self._voice(run, min(max(speed, SPEEDS[0]), SPEEDS[1]))
            before = 1000 * sum(map(len, parts)) // self.rate_hz
            parts.append(samples)
            timed += [(word, before + end) for word, end in words]
        if not parts:
            return Speech()
        pcm = (np.clip(np.concatenate(parts), -1.0, 1.0) * 32767.0).astype("<i2").tobytes()
        return Speech(pcm=pcm, words=align_words(split_words(text), timed))

    def _phonemes(self, plain: str) -> Iterator[_Phonemes]:
        """The runs of a text. A run ends where it would grow too long, at punctuation if it can."""
        ids: list[int] = []
        ends: list[tuple[str, int]] = []
        written = ""
        said = 0  # the index, in the padded ids, of the last phoneme that sounds
        for token in self._tokens(plain):
            sounds = [char for char in token.phonemes or "" if char in self._vocabulary]
            if ids and len(ids) + len(sounds) > MAX_PHONEMES:
                yield _Phonemes([0, *ids, 0], ends)
                ids, ends, said = [], [], 0
            for char in sounds:
                ids.append(self._vocabulary[char])
                said = said if char in _PAUSES else len(ids)
            written += token.text
            if token.whitespace:
                ends.append((written, said))
                written = ""
                ids.append(self._vocabulary[" "])
        if written:
            ends.append((written, said))
        if said:
            yield _Phonemes([0, *ids, 0], ends)

    def _tokens(self, plain: str) -> list[_Token]:
        tokens: list[_Token] = self._g2p.phonemize_tokens(self._g2p.tokenize(plain))
        return tokens

    def _voice(self, run: _Phonemes, speed: float) -> tuple[Samples, list[TimedWord]]:
        """Speak one run. Returns its samples and when its words have been said."""
        feeds = {"ids": np.asarray([run.ids], np.int64), "speed": np.asarray([speed], np.float32)}
        *spectrum, ends = self._model.run(None, feeds)
        samples: Samples = self._dsp.synth(*(part[0] for part in spectrum), np.random.default_rng(0))
        loud = np.flatnonzero(np.abs(samples) > QUIET)
        if not len(loud):
            return np.zeros(0, np.float32), []
        first = max(0, int(loud[0]) - LEAD_MS * self.rate_hz // 1000)
        last = min(len(samples), int(loud[-1]) + TAIL_MS * self.rate_hz // 1000)
        steps: npt.NDArray[np.int64] = ends.reshape(-1)
        length = (last - first) * 1000 // self.rate_hz
        timed: list[TimedWord] = []
        for word, index in run.ends:
            at = (int(steps[index]) * FRAME_SAMPLES - first) * 1000 // self.rate_hz
            timed.append((word, min(max(at, 0), length)))
        return samples[first:last], timed


def _load(module: str) -> Any:
    return load_engine(module, what="speech synthesis", package="hibari-tts")


def _open_model(path: Path) -> Any:
    """Load the voice's network, with the durations among its outputs.

    An ONNX file is one protobuf message, and a message appended to another is merged into it: so an output is added
    without a library that can write ONNX.
    """
    tensor_type = _field(1, _varint(1 << 3) + _varint(_INT64))
    output = _field(1, _DURATIONS.encode()) + _field(2, tensor_type)
    return open_network(path.read_bytes() + _field(7, _field(12, output)), what="speech synthesis")


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
