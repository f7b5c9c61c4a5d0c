"""What every format says alike (F3, F6, F9, F10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.formats.text import (
    INTERRUPTED_NOTE,
    NO_OUTPUT,
    PENDING_OUTPUT,
    clean,
    legal_name,
    pictures_of,
    result_text,
    words_of,
)
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, ImageContent

SPOKEN = AudioContent.from_pcm(bytes(48), 24_000, transcript="what was said")


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_encodes_and_good_text_stays(text):
    """F9."""
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        assert cleaned != text
    else:
        assert cleaned == text


def test_a_lone_surrogate_is_replaced_and_a_pair_is_its_character():
    """F9."""
    assert clean("a\ud83d") == "a\ufffd"
    assert clean("\ude00b") == "\ufffdb"
    assert clean("\ud83d\ude00") == "😀"
    assert clean("👨‍👩‍👧 日本") == "👨‍👩‍👧 日本"


def test_an_interrupted_message_says_what_was_heard_and_that_it_was_cut():
    """F10."""
    cut = ChatMessage(ChatRole.ASSISTANT, "It is about", interrupted=True, unheard="nine o'clock")
    assert words_of(cut) == f"It is about {INTERRUPTED_NOTE}"
    assert words_of(cut, unheard=True) == f"It is about {INTERRUPTED_NOTE} [not heard: nine o'clock]"


def test_nothing_heard_is_nothing_said_and_no_note():
    """F6, F10: a note alone is no message."""
    assert words_of(ChatMessage(ChatRole.ASSISTANT, " \n", interrupted=True, unheard="all of it")) == ""


def test_a_recording_speaks_by_its_transcript_where_there_is_no_text():
    """F11."""
    assert words_of(ChatMessage(ChatRole.USER, "", audio=SPOKEN)) == "what was said"
    assert words_of(ChatMessage(ChatRole.USER, "better heard", audio=SPOKEN)) == "better heard"
    assert words_of(ChatMessage(ChatRole.USER, "", audio=SPOKEN), transcript=False) == ""


@pytest.mark.parametrize("value", ["null", "{}", '""', "0", "false", "[]"])
def test_falsy_values_are_results(value):
    """F6, B09."""
    assert result_text(ChatMessage(ChatRole.TOOL, value)) == value


def test_an_empty_result_and_a_missing_one_have_their_words():
    """F3, F6."""
    assert result_text(ChatMessage(ChatRole.TOOL, "  ")) == NO_OUTPUT
    assert result_text(None) == PENDING_OUTPUT
    shown = ChatMessage(ChatRole.TOOL, "", images=[ImageContent.from_url("https://a.b/c.png")])
    assert result_text(shown) not in {"", NO_OUTPUT}


def test_a_picture_that_holds_nothing_is_left_out():
    """V7."""
    good = ImageContent.from_url("https://a.b/c.png")
    assert pictures_of(ChatMessage(images=[ImageContent(), good, ImageContent()])) == [good]


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("look", "look"),
        ("my tool", "my_tool"),
        ("a.b:c", "a_b_c"),
        ("", "unnamed_tool"),
        ("天気", "__"),
        ("n" * 90, "n" * 64),
    ],
)
def test_a_tools_name_is_made_legal_only_where_it_must(name, legal):
    assert legal_name(name) == legal
