"""Whisper's vocabulary: bytes behind characters, special tokens, prompts."""

from __future__ import annotations

import json

import pytest

from realtime.errors import UserError
from realtime.local.vocabulary import Vocabulary

SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|transcribe|>", "<|notimestamps|>"]
PLAIN = ["He", "Ġwas", "Ġcaf", "Ã©", "Ċ"]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary([*PLAIN, *SPECIAL])


def test_tokens_are_bytes_written_as_characters(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode([0, 1, 2, 3, 4]) == "He was café\n"


def test_special_tokens_are_no_text(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode([6, 0, 10, 5]) == "He"


def test_half_a_character_becomes_a_replacement() -> None:
    assert Vocabulary(["Ã", *SPECIAL]).decode([0]) == "\ufffd"


def test_an_english_model_is_told_only_to_transcribe(vocabulary: Vocabulary) -> None:
    assert vocabulary.prompt(multilingual=False) == [6, 10]


def test_another_model_is_told_the_language(vocabulary: Vocabulary) -> None:
    assert vocabulary.prompt(multilingual=True, language="de") == [6, 8, 9, 10]
    with pytest.raises(UserError, match="'xx'"):
        vocabulary.prompt(multilingual=True, language="xx")


def test_both_kinds_of_file_are_read() -> None:
    lines = "\n".join([*PLAIN, *SPECIAL]) + "\n"
    for data in (lines.encode(), json.dumps([*PLAIN, *SPECIAL]).encode()):
        assert Vocabulary.parse(data).decode([0, 1]) == "He was"


def test_what_is_no_vocabulary_is_refused() -> None:
    with pytest.raises(UserError, match="endoftext"):
        Vocabulary(["a", "b"])
