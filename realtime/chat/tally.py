"""A total that is kept: what each entry of a context counts, and the sum (behaviour.md V6).

Owns: `Tally`. Driven by `ChatContext`, which tells it what came and went. Counts an entry once, when somebody first asks
after it came, and never recounts the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime.chat.entry import ContextEntry
from realtime.chat.messages import ChatMessage

__all__ = ["Tally"]


class Tally:
    """The sum of a count over the entries of one context."""

    __slots__ = ("_count", "_counted", "_total", "_waiting")

    def __init__(self, count: Callable[[ChatMessage], int]) -> None:
        """Count nothing yet.

        Args:
            count: What one message counts.
        """
        self._count = count
        self._counted: dict[ContextEntry, int] = {}
        self._waiting: dict[ContextEntry, None] = {}
        self._total = 0

    def add(self, entry: ContextEntry) -> None:
        """An entry came."""
        self._waiting[entry] = None

    def remove(self, entry: ContextEntry) -> None:
        """An entry went."""
        counted = self._counted.pop(entry, None)
        if counted is None:
            self._waiting.pop(entry, None)
        else:
            self._total -= counted

    def change(self, entry: ContextEntry) -> None:
        """An entry has another message."""
        self.remove(entry)
        self.add(entry)

    def of(self, entry: ContextEntry) -> int:
        """What one entry counts."""
        counted = self._counted.get(entry)
        if counted is None:
            counted = self._counted[entry] = self._count(entry.message)
            self._waiting.pop(entry, None)
            self._total += counted
        return counted

    @property
    def total(self) -> int:
        """What all entries count together."""
        while self._waiting:
            entry, _ = self._waiting.popitem()  # not reversed(): that walks over the gaps of all that went before
            try:
                self.of(entry)
            except BaseException:
                self._waiting[entry] = None  # it is counted when somebody asks again
                raise
        return self._total
