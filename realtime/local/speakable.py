"""Text as it streams in, cut into sentences as they are spoken.

Owns: `Sentence`, `SentenceSplitter` (a growing text to whole sentences) and `make_speakable` (markdown and whatever
cannot be read aloud taken out). Driven by a running response. Pure; never acts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from realtime.local.wordlists import word_set

__all__ = ["MAX_SENTENCE_CHARS", "Sentence", "SentenceSplitter", "make_speakable"]

MAX_SENTENCE_CHARS = 240
"""A longer sentence is cut, so that a barge-in never waits for more than this to be synthesized."""
EAGER_CHARS = 90
"""A first sentence longer than this is cut at a comma, so that the reply begins sooner."""
EAGER_LEAST = 24
"""… if at least so many characters stand before it."""

_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s+\S)|\n+|[。！？]+")
_CLAUSE = re.compile(r"[,;:—–]\s+")
_TITLES: Final = word_set(
    "mr mrs ms dr prof sr jr st mt no vs etc e.g i.e fig approx dept est inc ltd co gen col sgt capt rev hon"
)
_FENCE = "```"

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_URL = re.compile(r"\bhttps?://(?:www\.)?([^\s/)>\]]+)\S*")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+|^\s*[-=*_]{3,}\s*$", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w)|`+")
_MARKS = re.compile(r"[#~|<>\\^{}]+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One piece of a reply, as written and as spoken."""

    text: str
    """As written, white space included: joined, sentences are the whole text."""
    spoken: str
    """As spoken; empty if nothing of it can be."""


class SentenceSplitter:
    """Cuts a growing text into sentences."""

    def __init__(self) -> None:
        """Begin with an empty text."""
        self._rest = ""
        self._fenced = False
        self._first = True

    def feed(self, delta: str) -> list[Sentence]:
        """Take more text. Returns the sentences that are whole now."""
        self._rest += delta
        whole: list[Sentence] = []
        while (cut := self._find_cut()) is not None:
            whole.append(self._take(cut))
        return whole

    def flush(self) -> list[Sentence]:
        """The text is at its end. Returns what is left of it."""
        whole = self.feed("")
        if self._rest:
            whole.append(self._take(len(self._rest)))
        return whole

    def _take(self, cut: int) -> Sentence:
        text, self._rest = self._rest[:cut], self._rest[cut:]
        fences = text.count(_FENCE)
        code = self._fenced or fences > 0
        self._fenced ^= fences % 2 == 1
        spoken = "" if code else make_speakable(text)
        self._first = self._first and not spoken
        return Sentence(text=text, spoken=spoken)

    def _find_cut(self) -> int | None:
        for end in _END.finditer(self._rest):
            if self._ends_sentence(end):
                return min(end.end(), self._longest())
        if self._first and len(self._rest) > EAGER_CHARS:
            for clause in _CLAUSE.finditer(self._rest, EAGER_LEAST, EAGER_CHARS):
                return clause.start() + 1
        return self._longest() if len(self._rest) > MAX_SENTENCE_CHARS else None

    def _longest(self) -> int:
        """Where to cut at the latest: behind a word."""
        if len(self._rest) <= MAX_SENTENCE_CHARS:
            return len(self._rest)
        space = self._rest.rfind(" ", MAX_SENTENCE_CHARS // 2, MAX_SENTENCE_CHARS)
        return space if space > 0 else MAX_SENTENCE_CHARS

    def _ends_sentence(self, end: re.Match[str]) -> bool:
        """Whether a mark ends a sentence: not behind a title or an initial, nor before a word in lower case."""
        if not self._rest[: end.start()].strip():
            return False
        mark = end.group()
        if mark[0] in "\n。！？":
            return True
        following = self._rest[end.end() :].lstrip()[:1]
        if following.islower():
            return False
        if mark[0] != "." or len(mark) > 1:
            return True
        word = self._rest[: end.start()].split()[-1].lstrip("(\"'“‘*_").lower()
        initial = len(word) == 1 and word.isalpha() and word != "i"
        return not (word in _TITLES or initial or (word.isdigit() and len(word) < 3 and self._at_line_start(end, word)))

    def _at_line_start(self, end: re.Match[str], word: str) -> bool:
        line = self._rest[: end.start()].rpartition("\n")[2]
        return line.strip() == word


def make_speakable(text: str) -> str:
    """Plain words of a sentence: no markdown, no addresses, no signs that have no sound; at most `MAX_SENTENCE_CHARS`.

    Empty if nothing can be spoken.
    """
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(r"\1", text)
    text = _BULLET.sub("", text)
    text = _EMPHASIS.sub("", text)
    text = _MARKS.sub(" ", text)
    text = "".join(char if _sounds(char) else " " for char in text)
    text = _SPACE.sub(" ", text).strip()[:MAX_SENTENCE_CHARS]
    return text if any(char.isalnum() for char in text) else ""


def _sounds(char: str) -> bool:
    """Letters, digits, punctuation, money and mathematics; not emoji, arrows, controls or surrogates."""
    return unicodedata.category(char) not in {"So", "Sk", "Cc", "Cf", "Cn", "Co", "Cs"} or char in "°\n"
