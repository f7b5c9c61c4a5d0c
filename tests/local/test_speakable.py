"""Streaming text cut into sentences, and made plain for a voice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.local.speakable import MAX_SENTENCE_CHARS, Sentence, SentenceSplitter, make_speakable


def split(text: str, step: int = 1) -> list[Sentence]:
    splitter = SentenceSplitter()
    sentences: list[Sentence] = []
    for start in range(0, len(text), step):
        sentences += splitter.feed(text[start : start + step])
    return sentences + splitter.flush()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello. How are you? Fine!", ["Hello.", " How are you?", " Fine!"]),
        ("Dr. Smith met Mr. J. Doe. He left.", ["Dr. Smith met Mr. J. Doe.", " He left."]),
        ("It is 3.5 degrees. and falling.", ["It is 3.5 degrees. and falling."]),
        ('She said "no." Then she left.', ['She said "no."', " Then she left."]),
        ("Wait... what? Yes", ["Wait... what?", " Yes"]),
        ("One line\nAnother line\nLast", ["One line\n", "Another line\n", "Last"]),
        ("No end", ["No end"]),
        ("", []),
    ],
)
def test_sentences_end_where_they_are_heard_to(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in split(text)] == sentences


def test_a_sentence_is_given_as_soon_as_the_next_one_begins() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Hello there.") == []
    assert [sentence.text for sentence in splitter.feed(" H")] == ["Hello there."]


def test_a_long_first_sentence_begins_at_its_first_clause() -> None:
    text = (
        "As far as anybody can tell from here, " + "this goes on and on " * 5 + "and ends. " + "Then, " + "more " * 30
    )
    sentences = split(text, 7)
    assert sentences[0].text == "As far as anybody can tell from here,"
    assert not sentences[-1].text.startswith(" Then,") or len(sentences[-1].text) > 20


@given(st.text(alphabet="ab .!?,\n*`#é日", max_size=400), st.integers(1, 40))
def test_joined_sentences_are_the_text_however_it_streams(text: str, step: int) -> None:
    sentences = split(text, step)
    assert "".join(sentence.text for sentence in sentences) == text
    assert all(len(sentence.text) <= MAX_SENTENCE_CHARS + 3 or sentence.text.isspace() for sentence in sentences)
    assert all(len(sentence.spoken) <= MAX_SENTENCE_CHARS for sentence in sentences)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Bold** and *thin* and `code`.", "Bold and thin and code."),
        ("# Heading", "Heading"),
        ("- a point", "a point"),
        ("1. first", "first"),
        ("[the page](https://a.b/c?d=1) is here", "the page is here"),
        ("![a cat](cat.png)", "a cat"),
        ("see https://www.example.com/x?y=1 now", "see example.com now"),
        ("2 * 3 = 6", "2 * 3 = 6"),
        ("snake_case stays", "snake_case stays"),
        ("Done 😀 ✅", "Done"),
        ("It's 5°C", "It's 5°C"),
        ("***", ""),
        ("😀", ""),
        ("---", ""),
        ("a\x00b\ud800c", "a b c"),
    ],
)
def test_only_what_can_be_spoken_is(written: str, spoken: str) -> None:
    assert make_speakable(written) == spoken


def test_code_is_not_read_aloud() -> None:
    sentences = split("Try this:\n```python\nprint('Hi. Ho.')\n```\nIt prints.")
    assert [sentence.spoken for sentence in sentences if sentence.spoken] == ["Try this:", "It prints."]


def test_what_is_spoken_at_once_is_bounded() -> None:
    assert len(make_speakable("word " * 500)) <= MAX_SENTENCE_CHARS
    assert all(len(sentence.text) <= MAX_SENTENCE_CHARS for sentence in split("word " * 500, 11))
