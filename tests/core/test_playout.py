"""The cut of a text to its heard share: behaviour.md P1, F9."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realtime.core.playout import heard_text

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200)


@given(TEXTS, st.integers(0, 20_000), st.integers(1, 20_000))
def test_nothing_is_invented_and_nothing_is_lost(text, heard_ms, total_ms):
    heard, unheard = heard_text(text, heard_ms=heard_ms, total_ms=total_ms)
    assert text.startswith(heard)
    assert text.endswith(unheard)
    assert text.split() == (heard.split() + unheard.split()) or "".join(text.split()) == "".join(
        (heard + unheard).split()
    )


@given(TEXTS, st.integers(1, 20_000))
def test_more_heard_is_never_less_text(text, total_ms):
    lengths = [len(heard_text(text, heard_ms=part * total_ms // 7, total_ms=total_ms)[0]) for part in range(8)]
    assert lengths == sorted(lengths)


def test_cut_falls_between_words():
    assert heard_text("alpha beta gamma delta", heard_ms=550, total_ms=1_000) == ("alpha beta", "gamma delta")


def test_scripts_without_spaces_are_cut_between_characters():
    heard, unheard = heard_text("今天天气很好。", heard_ms=500, total_ms=1_000)
    assert (heard, unheard) == ("今天天", "气很好。")


def test_words_that_do_not_match_the_text_fall_back_to_proportion():
    words = (("other", 100), (" words", 900))
    assert heard_text("alpha beta", heard_ms=600, total_ms=1_000, words=words) == ("alpha", "beta")


def test_words_are_found_one_behind_the_other():
    words = (("no", 100), (" no", 200), (" no", 300))
    assert heard_text("no no no", heard_ms=200, total_ms=300, words=words) == ("no no", "no")
