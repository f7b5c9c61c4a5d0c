"""When the words of a text sound, from when the words of another form of it do.

Owns: `split_words` and `align_words`. A sentence is written ("3:45"), made plain, spelled out ("three forty five") and
spoken; the time of a written word is that of the spoken ones it became. Pure functions; never act.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

__all__ = ["TimedWord", "align_words", "split_words"]

TimedWord = tuple[str, int]
"""A word with the white space before it, and the millisecond at which it has been said."""

_WORD = re.compile(r"\s*\S+")
_NOT_LETTERS = re.compile(r"[\W_]+")


def split_words(text: str) -> list[str]:
    """The words of a text, each with the white space before it: joined, they are the text less what trails it."""
    return _WORD.findall(text)


def align_words(words: Sequence[str], timed: Sequence[TimedWord]) -> tuple[TimedWord, ...]:
    """Give every word the time at which it has been said.

    Words that both forms share are anchors; between two anchors the time is shared out by length.

    Args:
        words: The words wanted.
        timed: The words of the other form, with their times, in order.

    Returns:
        As many as `words`, with times that never fall and end with the last of `timed`; none if `timed` is empty.
    """
    if not timed:
        return ()
    if len(words) == len(timed):
        return tuple((word, end) for word, (_spoken, end) in zip(words, timed, strict=True))
    plain = [_plain(word) for word in words]
    matcher = SequenceMatcher(None, plain, [_plain(word) for word, _end in timed], autojunk=False)
    aligned: list[TimedWord] = []
    for _kind, first, last, timed_first, timed_last in matcher.get_opcodes():
        begin = timed[timed_first - 1][1] if timed_first else 0
        end = timed[timed_last - 1][1] if timed_last else begin
        if last - first == timed_last - timed_first:
            aligned += [(words[first + n], timed[timed_first + n][1]) for n in range(last - first)]
        else:
            aligned += _share(words[first:last], begin, end)
    return tuple(aligned)


def _share(words: Sequence[str], begin: int, end: int) -> list[TimedWord]:
    total = sum(map(len, words))
    said = 0
    shared: list[TimedWord] = []
    for word in words:
        said += len(word)
        shared.append((word, begin + round((end - begin) * said / total)))
    return shared


def _plain(word: str) -> str:
    return _NOT_LETTERS.sub("", word).lower()
