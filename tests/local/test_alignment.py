"""When written words sound, from when spoken ones do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.local.alignment import align_words, split_words


def test_words_keep_the_white_space_before_them() -> None:
    assert split_words(" Hello  there,\nyou. ") == [" Hello", "  there,", "\nyou."]
    assert split_words("   ") == []


def test_the_same_words_take_their_times_one_by_one() -> None:
    assert align_words(["One", " two"], [("one", 100), ("two", 300)]) == (("One", 100), (" two", 300))


def test_words_that_became_several_share_the_time_between_their_neighbours() -> None:
    timed = [("at", 100), ("three", 300), ("forty", 500), ("five", 700), ("pm", 900)]
    assert align_words(["At", " 3:45", " pm"], timed) == (("At", 100), (" 3:45", 700), (" pm", 900))


def test_words_that_are_not_spoken_sound_with_the_word_before() -> None:
    timed = [("see", 200), ("here", 400)]
    assert align_words(["see", " (*)", " here"], timed) == (("see", 200), (" (*)", 200), (" here", 400))


def test_nothing_spoken_gives_no_times() -> None:
    assert align_words(["a", "b"], []) == ()


words = st.lists(st.sampled_from(["a", "b", "c", "it's", "3:45", "four"]), max_size=8)


@given(words, words)
def test_every_word_has_a_time_and_times_never_fall(written: list[str], spoken: list[str]) -> None:
    timed = [(word, 100 * (number + 1)) for number, word in enumerate(spoken)]
    aligned = align_words(written, timed)
    if not spoken:
        assert aligned == ()
        return
    assert [word for word, _end in aligned] == written
    ends = [end for _word, end in aligned]
    assert ends == sorted(ends)
    assert all(0 <= end <= timed[-1][1] for end in ends)


@pytest.mark.parametrize("text", ["", "one", " one two ", "a\n\nb"])
def test_joined_words_are_the_text(text: str) -> None:
    assert "".join(split_words(text)) == text.rstrip()
