"""A linked list of a context's places, through two slots of theirs.

Owns: `Chain`. Driven by `entries`, which links each place into several: in the order of the list, among those that a party
said, among those that begin a turn. O(1).
"""

from __future__ import annotations

from realtime.chat.entry import ContextEntry

__all__ = ["Chain"]


class Chain:
    """Entries in order."""

    __slots__ = ("_before", "_behind", "first", "last")

    def __init__(self, before: str, behind: str) -> None:
        """Start with none.

        Args:
            before: The slot that holds the entry before.
            behind: The slot that holds the entry behind.
        """
        self._before = before
        self._behind = behind
        self.first: ContextEntry | None = None
        self.last: ContextEntry | None = None

    # hot path: three times for every sentence
    def link(self, entry: ContextEntry, before: ContextEntry | None) -> ContextEntry | None:
        """Put an entry behind another one (None: at the front). Gives the one that stands behind it now."""
        behind: ContextEntry | None = self.first if before is None else getattr(before, self._behind)
        setattr(entry, self._before, before)
        setattr(entry, self._behind, behind)
        if before is None:
            self.first = entry
        else:
            setattr(before, self._behind, entry)
        if behind is None:
            self.last = entry
        else:
            setattr(behind, self._before, entry)
        return behind

    def unlink(self, entry: ContextEntry) -> None:
        """Take an entry out."""
        before: ContextEntry | None = getattr(entry, self._before)
        behind: ContextEntry | None = getattr(entry, self._behind)
        if before is None:
            self.first = behind
        else:
            setattr(before, self._behind, behind)
        if behind is None:
            self.last = before
        else:
            setattr(behind, self._before, before)
        setattr(entry, self._before, None)
        setattr(entry, self._behind, None)
