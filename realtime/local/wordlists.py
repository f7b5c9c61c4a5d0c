"""Lists of words as they are read best: a text, split at its spaces.

Owns: `word_set` and `word_tuple`. Driven at import by whoever keeps a list of words. Pure.
"""

from __future__ import annotations

__all__ = ["word_set", "word_tuple"]


def word_tuple(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())
