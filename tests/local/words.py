"""Words compared as a listener would: without case, punctuation, or the difference between 7 and seven."""

from __future__ import annotations

import re

_NUMBERS = dict(
    zip(
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12"],
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"],
        strict=True,
    )
)
_SAME = {"mr": "mister", "dr": "doctor", "okay": "ok"}


def words_of(text: str) -> list[str]:
    words = re.sub(r"[^a-z0-9' ]", " ", text.lower()).split()
    return [_SAME.get(word, _NUMBERS.get(word, word)) for word in words]


def wrong_words(said: str, heard: str) -> int:
    """Words changed, missing or added."""
    wanted, found = words_of(said), words_of(heard)
    row = list(range(len(found) + 1))
    for number, word in enumerate(wanted, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(found, 1):
            before, row[place] = row[place], min(before + (word != other), row[place] + 1, row[place - 1] + 1)
    return row[-1]
