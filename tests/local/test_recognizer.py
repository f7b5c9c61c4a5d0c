"""Whisper on CTranslate2: right words, short windows, and nothing where nothing was said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from realtime.errors import UserError
from realtime.local import recognizer as module
from realtime.local.recognizer import WhisperRecognizer, find_pauses
from realtime.local.weights import whisper_of_ones_own
from realtime.local.workers import FairPool

from .words import words_of, wrong_words

pytestmark = pytest.mark.local

Say = Callable[[str], np.ndarray]


def test_people_are_understood(recognizer: WhisperRecognizer, utterances: dict[str, np.ndarray]) -> None:
    wrong = {text: wrong_words(text, recognizer.transcribe(samples).text) for text, samples in utterances.items()}
    assert wrong["he was not an ill disposed young man"] <= 2
    assert sum(wrong.values()) <= 0.12 * sum(len(words_of(text)) for text in wrong)


def test_the_voice_is_understood(recognizer: WhisperRecognizer, say: Say) -> None:
    sentences = [
        "What time is it?",
        "Read the sign.",
        "My name is Robin.",
        "What is the weather in London?",
        "How many pictures do you see?",
        "Please look up order number forty two.",
    ]
    wrong = sum(
        wrong_words(text, recognizer.transcribe(say(text)).text.replace("42", "forty two")) for text in sentences
    )
    assert wrong <= 0.12 * sum(len(words_of(text)) for text in sentences)


@pytest.mark.parametrize("kind", ["silence", "noise", "nothing", "click"])
def test_nothing_said_gives_nothing(recognizer: WhisperRecognizer, kind: str) -> None:
    random = np.random.default_rng(7)
    samples = {
        "silence": np.zeros(16_000, np.float32),
        "noise": (0.02 * random.standard_normal(16_000)).astype(np.float32),
        "nothing": np.zeros(0, np.float32),
        "click": np.eye(1, 8_000, 4_000, dtype=np.float32)[0],
    }[kind]
    assert recognizer.transcribe(samples).text == ""


def test_the_window_is_as_short_as_the_utterance_lets(
    recognizer: WhisperRecognizer, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows: list[int] = []
    decode = recognizer._decode

    def spy(samples: np.ndarray, window: int, language: str | None) -> object:
        windows.append(window)
        return decode(samples, window, language)

    monkeypatch.setattr(recognizer, "_decode", spy)
    short = say("What time is it?")
    recognizer.transcribe(short)
    recognizer.transcribe(np.concatenate([short, np.zeros(11 * 16_000, np.float32)]))
    recognizer.transcribe(short, full=True)
    assert (windows[0], windows[-1]) == (1000, 3000)
    assert windows[1] == 1500


def test_a_result_that_loops_is_decoded_again_with_the_full_window(
    recognizer: WhisperRecognizer, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows: list[int] = []
    decode = recognizer._decode

    def loop_at_first(samples: np.ndarray, window: int, language: str | None) -> object:
        windows.append(window)
        found, suspect = decode(samples, window, language)
        return found, suspect or len(windows) == 1

    monkeypatch.setattr(recognizer, "_decode", loop_at_first)
    before = recognizer.retries
    assert recognizer.transcribe(say("Read the sign.")).text == "Read the sign."
    assert windows == [1000, 3000]
    assert recognizer.retries == before + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Read the sign. Read the sign. Read the sign. Read the sign. Read the sign.", "Read the sign."),
        ("he was an old-s-y-y-y", "he was an old-s-y-y-y"),
        ("be be be be be", "be"),
    ],
)
def test_what_still_loops_is_said_once(text: str, said: str) -> None:
    assert module._first_round(text) == said


def test_repetitions_that_people_make_are_no_loops() -> None:
    assert not module._loops("no no no")
    assert not module._loops(
        "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power."
    )
    assert module._loops("Read the sign. " * 8)


async def test_a_long_utterance_is_cut_where_it_is_quiet(recognizer: WhisperRecognizer, say: Say) -> None:
    pause = np.zeros(8_000, np.float32)
    sentences = [
        "The train to the coast leaves from platform nine at noon.",
        "My sister has painted her kitchen in a very bright yellow.",
        "We should buy some bread and milk on the way back home.",
        "Nobody knows why the old clock on the tower has stopped.",
        "The museum is closed on Mondays, but open every weekend.",
        "He told me that the river was frozen for the whole winter.",
        "Please put the large box on the table next to the window.",
        "The teacher asked the children to be quiet for a moment.",
        "A small bird has built its nest under the roof of our house.",
    ]
    speech = np.concatenate([np.concatenate([say(text), pause]) for text in sentences])
    assert len(speech) > 28 * 16_000
    found = await recognizer.recognize(speech, owner="a")
    assert wrong_words(" ".join(sentences), found.text) <= 0.12 * len(words_of(" ".join(sentences)))


def test_cuts_fall_into_the_quietest_place() -> None:
    samples = np.full(100_000, 0.5, np.float32)
    samples[60_000:64_000] = 0.0
    pieces = find_pauses(samples, longest=70_000)
    assert pieces[0][0] == 0
    assert 60_000 <= pieces[0][1] <= 64_000
    assert pieces[-1][1] == 100_000
    assert [end for _start, end in pieces[:-1]] == [start for start, _end in pieces[1:]]
    assert find_pauses(samples[:1000], longest=70_000) == [(0, 1000)]


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    for name in ("model.bin", "config.json", "vocabulary.txt"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="CTranslate2 Whisper model"):
        WhisperRecognizer(FairPool(1), whisper_of_ones_own(tmp_path))
