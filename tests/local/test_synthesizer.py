"""The embedded voice: intelligible, word by word on time, and silent where there is nothing to say."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.local.parts import Speech
from realtime.local.recognizer import WhisperRecognizer
from realtime.local.speakable import MAX_SENTENCE_CHARS
from realtime.local.synthesizer import HibariSynthesizer
from realtime.media.resample import Resampler

from .words import words_of, wrong_words

pytestmark = pytest.mark.local

SENTENCES = [
    "You said: He was not an ill-disposed young man.",
    "It says: Platform nine, delayed.",
    "I have seen three pictures.",
    "The weather in London is foggy and cold.",
    "Nice to meet you, Robin.",
    "I am fine, thank you. I hear you well.",
    "For get weather, what is the city?",
    "You asked: Why is the sky blue? I cannot answer that, but I heard you.",
    "The picture is mostly blue.",
    "Today is Monday, November thirtieth.",
]


def hear(recognizer: WhisperRecognizer, pcm: bytes) -> str:
    resampler = Resampler(24_000, 16_000)
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    return recognizer.transcribe(np.concatenate([resampler.push(samples), resampler.flush()])).text


def test_what_is_said_is_understood(synthesizer: HibariSynthesizer, recognizer: WhisperRecognizer) -> None:
    """At most one word in ten is lost between the voice and the recognizer."""
    wrong = sum(
        wrong_words(text, hear(recognizer, synthesizer.speak(text).pcm).replace("30th", "thirtieth"))
        for text in SENTENCES
    )
    assert wrong <= 0.1 * sum(len(words_of(text)) for text in SENTENCES)


@pytest.mark.parametrize("text", SENTENCES[:4])
def test_cut_at_the_time_of_a_word_the_words_up_to_it_are_heard(
    synthesizer: HibariSynthesizer, recognizer: WhisperRecognizer, text: str
) -> None:
    """P1: a reply's text is cut to the heard share by the synthesizer's timestamps."""
    speech = synthesizer.speak(text)
    assert "".join(word for word, _end in speech.words) == text
    ends = [end for _word, end in speech.words]
    assert ends == sorted(ends)
    assert ends[-1] <= len(speech.pcm) // 48 + 1
    middle = len(speech.words) - 3
    cut = speech.pcm[: speech.words[middle][1] * 48]
    said = "".join(word for word, _end in speech.words[: middle + 1])
    assert wrong_words(said, hear(recognizer, cut + bytes(4800))) <= 1


def test_a_reply_begins_and_ends_close_to_its_sound(synthesizer: HibariSynthesizer) -> None:
    samples = np.frombuffer(synthesizer.speak("Hello there.").pcm, "<i2")
    loud = np.flatnonzero(np.abs(samples) > 300)
    assert loud[0] <= 0.06 * 24_000
    assert len(samples) - loud[-1] <= 0.25 * 24_000


@pytest.mark.parametrize("text", ["", "   ", "***", "日本語", "😀", "…"])
def test_what_cannot_be_spoken_gives_no_samples(synthesizer: HibariSynthesizer, text: str) -> None:
    speech = synthesizer.speak(text)
    assert speech.pcm == b""
    assert speech.words == ()


def test_numbers_take_the_time_of_the_words_they_become(synthesizer: HibariSynthesizer) -> None:
    speech = synthesizer.speak("At 3:45 pm it costs $9.99 today.")
    assert [word.strip() for word, _end in speech.words] == ["At", "3:45", "pm", "it", "costs", "$9.99", "today."]
    ends = dict(speech.words)
    assert ends[" $9.99"] - ends[" costs"] > 3 * (ends[" costs"] - ends[" it"])


def test_speed_changes_the_pace(synthesizer: HibariSynthesizer) -> None:
    slow, normal, fast = (len(synthesizer.speak("One two three four five.", speed).pcm) for speed in (0.5, 1.0, 1.5))
    assert slow > 1.5 * normal
    assert fast < 0.8 * normal


def test_the_same_text_is_spoken_the_same(synthesizer: HibariSynthesizer) -> None:
    assert synthesizer.speak("Hello.") == synthesizer.speak("Hello.")


def test_what_is_spoken_at_once_is_bounded(synthesizer: HibariSynthesizer) -> None:
    long = synthesizer.speak("word " * 1000)
    assert sum(len(word) for word, _end in long.words) <= MAX_SENTENCE_CHARS
    runs = list(synthesizer._phonemes("extraordinarily " * 60))
    assert len(runs) > 1
    assert all(len(run.ids) <= 402 for run in runs)


async def test_it_speaks_on_the_pool(synthesizer: HibariSynthesizer) -> None:
    speech = await synthesizer.synthesize("Hello there.", owner="a")
    assert [word for word, _end in speech.words] == ["Hello", " there."]


async def test_a_sentence_that_is_heard_later_goes_behind_what_somebody_waits_for(
    synthesizer: HibariSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    urgencies: list[str] = []

    async def run(_owner: str, urgency: str, _function: object, *_arguments: object) -> Speech:
        urgencies.append(urgency)
        return Speech()

    monkeypatch.setattr(synthesizer._pool, "run", run)
    await synthesizer.synthesize("Hello.", owner="a")
    await synthesizer.synthesize("Hello.", owner="a", later=True)
    assert urgencies == ["first", "soon"]
