"""What was sent against what was heard, per reply (behaviour.md P0, P1).

Owns: the arithmetic of positions and the cut of a text to its heard share. Driven by `realtime.core.replies`. Never plays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

__all__ = ["heard_text"]

_WIDE = "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u0e00-\u0eff\u1780-\u17ff"
"""Scripts written without spaces: a character (with its marks) is a word here."""
_WORD = re.compile(rf"\s*(?:[{_WIDE}][\u0300-\u036f\u0e31-\u0e4e]*[、。！？，．」』）]*|[^\s{_WIDE}]+)")


def heard_text(text: str, *, heard_ms: int, total_ms: int, words: Sequence[tuple[str, int]] = ()) -> tuple[str, str]:
    """Divide a spoken text into what was heard and what was not, at a word border.

    Args:
        text: What was generated.
        heard_ms: How much of its audio was played.
        total_ms: How much audio there is of it.
        words: Each word and when it has been said, where that is known; they must be the words of `text`, in order,
            and may end before it does.

    Returns:
        The heard text and the rest. Everything is heard from `total_ms` on, nothing at 0.
    """
    if heard_ms <= 0 or not text:
        return "", text
    if heard_ms >= total_ms:
        return text, ""
    border = _border_by_words(text, heard_ms, words)
    if border is None:
        border = _border_by_share(text, heard_ms / total_ms)
    return text[:border].rstrip(), text[border:].lstrip()


def _border_by_words(text: str, heard_ms: int, words: Sequence[tuple[str, int]]) -> int | None:
    """Where the last word ends that had been said, or None if the words do not tell."""
    if not words or heard_ms > words[-1][1]:
        return None
    said = bisect_right([end_ms for _, end_ms in words], heard_ms)
    position = 0
    for word, _ in words[:said]:
        found = text.find(word.strip(), position)
        if found < 0:
            return None
        position = found + len(word.strip())
    return position


def _border_by_share(text: str, share: float) -> int:
    """Where the last word ends that fits into the share of the text."""
    reach = share * len(text) + 1e-6
    border = 0
    for word in _WORD.finditer(text):
        if word.end() > reach:
            break
        border = word.end()
    return border
