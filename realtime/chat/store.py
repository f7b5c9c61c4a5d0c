"""What a context holds, and the one place through which it changes (behaviour.md V6).

Owns: `ContextStore` (entries in order, an index by message id, kept totals, handoffs, who may change them) and
`ContextLease`, by which a session changes a context while nobody else may. Driven by `ChatContext`, `ContextWindow` and, in
a session, by `core.history`. Never decides what is added or goes.

Appending, inserting, replacing and finding by id are O(1), removing is O(removed); a snapshot is O(n) and copies references
only, and one that only grew is not made again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

from realtime.chat.entries import EntryList
from realtime.chat.entry import ContextEntry
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.chat.tally import Tally
from realtime.errors import ArgumentError, UserError

__all__ = ["ContextLease", "ContextStore"]

_MAX_TALLIES = 4
"""Counters whose totals are kept for one context; the least recently added makes way."""


class MessageIndex:
    """The entry of each message id; should an id stand more than once, the one that came first."""

    __slots__ = ("_first", "_others")

    def __init__(self) -> None:
        self._first: dict[str, ContextEntry] = {}
        self._others: dict[str, OrderedDict[ContextEntry, None]] = {}

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._first

    def get(self, message_id: str) -> ContextEntry | None:
        """The entry with an id; an empty id is none."""
        return self._first.get(message_id)

    def add(self, message_id: str, entry: ContextEntry) -> None:
        """An entry came."""
        if message_id and self._first.setdefault(message_id, entry) is not entry:
            self._others.setdefault(message_id, OrderedDict())[entry] = None

    def remove(self, message_id: str, entry: ContextEntry) -> None:
        """An entry went."""
        others = self._others.get(message_id)
        if self._first.get(message_id) is not entry:
            if others is not None:
                others.pop(entry, None)
        elif others:
            self._first[message_id] = others.popitem(last=False)[0]
        else:
            del self._first[message_id]
        if others is not None and not others:
            del self._others[message_id]


class ContextStore:
    """The messages and handoffs of one context."""

    def __init__(self) -> None:
        self.entries = EntryList()
        self.by_id = MessageIndex()
        self.handoffs: list[AgentHandoff] = []
        self.holder: str | None = None
        """What to use instead, while a session holds the lease."""
        self.revision = 0
        """Rises with every change but appending: what was made of the messages before cannot be extended."""
        self._snapshot: list[ChatMessage] | None = []
        self._tallies: list[tuple[object, Tally]] = []

    def check_free(self) -> None:
        """Refuse a change while a session holds the lease.

        Raises:
            UserError: It does.
        """
        if self.holder is not None:
            raise UserError(
                f"a session is running on this context and only it changes it: use {self.holder}, or a copy() of the context"
            )

    def snapshot(self) -> list[ChatMessage]:
        """The messages, oldest first; not to be changed or kept by the caller."""
        if self._snapshot is None:
            self._snapshot = self.entries.messages()
        return self._snapshot

    # -- changing -----------------------------------------------------------------------------------------------------

    # hot path: once per sentence and kept frame
    def append(self, message: ChatMessage) -> ContextEntry:
        """Put a message at the end."""
        entry = self.entries.insert(message, self.entries.last)
        if self._snapshot is not None:
            self._snapshot.append(message)
        self._came(entry)
        return entry

    def insert_after(self, entry: ContextEntry | None, message: ChatMessage) -> ContextEntry:
        """Put a message behind an entry; None: at the front."""
        if entry is self.entries.last:
            return self.append(message)
        new = self.entries.insert(message, entry)
        self._changed()
        self._came(new)
        return new

    def _came(self, entry: ContextEntry) -> None:
        self.by_id.add(entry.message.message_id, entry)
        for _, tally in self._tallies:
            tally.add(entry)

    def replace(self, entry: ContextEntry, message: ChatMessage) -> None:
        """Put another message in an entry's place."""
        old_id = entry.message.message_id
        self.entries.replace(entry, message)
        self._changed()
        if old_id != message.message_id:
            self.by_id.remove(old_id, entry)
            self.by_id.add(message.message_id, entry)
        for _, tally in self._tallies:
            tally.change(entry)

    def remove(self, entries: Iterable[ContextEntry]) -> None:
        """Take entries out; those that are gone already are passed over."""
        leaving = {entry: None for entry in entries if entry.is_listed}
        for entry in leaving:
            self.entries.remove(entry, leaving)
            self.by_id.remove(entry.message.message_id, entry)
            for _, tally in self._tallies:
                tally.remove(entry)
        if leaving:
            self._changed()

    def replace_run(self, entries: Sequence[ContextEntry], message: ChatMessage) -> ContextEntry:
        """Put one message in the place of several in a row, given in any order; those that are gone are passed over.

        Raises:
            ArgumentError: There are none, or all are gone.
        """
        first = min((entry for entry in entries if entry.is_listed), key=lambda entry: entry.order, default=None)
        if first is None:
            raise ArgumentError("entries", entries, "at least one place that is still in the context")
        before = first.preceding
        self.remove(entries)
        return self.insert_after(before, message)

    def _changed(self) -> None:
        self._snapshot = None
        self.revision += 1

    # -- counting -----------------------------------------------------------------------------------------------------

    def tally(self, key: object, count: Callable[[ChatMessage], int]) -> Tally:
        """The kept total of a count: O(n) once, then O(1).

        Args:
            key: Whose count it is; equal ones share a total.
            count: What one message counts.
        """
        for known, tally in self._tallies:
            if known is key or known == key:
                return tally
        tally = Tally(count)
        for entry in self.entries:
            tally.add(entry)
        self._tallies = [*self._tallies[1 - _MAX_TALLIES :], (key, tally)]
        return tally


def listed(entry: ContextEntry) -> ContextEntry:
    """The entry, if it is still in its context.

    Raises:
        ArgumentError: It is not.
    """
    if not entry.is_listed:
        raise ArgumentError("entry", entry, "a place that is still in the context")
    return entry


class ContextLease:
    """The right to change a context. Every operation is O(1) or O(what it changes)."""

    def __init__(self, store: ContextStore) -> None:
        """Made by `ChatContext.lease`."""
        self._store = store
        self._is_held = True

    def _held(self) -> ContextStore:
        if not self._is_held:
            raise UserError("this lease was released; the context belongs to the application again")
        return self._store

    def append(self, message: ChatMessage) -> ContextEntry:
        """Put a message at the end."""
        return self._held().append(message)

    def insert_after(self, entry: ContextEntry | None, message: ChatMessage) -> ContextEntry:
        """Put a message right behind an entry; None: at the front.

        Raises:
            ArgumentError: The entry is gone.
        """
        return self._held().insert_after(None if entry is None else listed(entry), message)

    def replace(self, entry: ContextEntry, message: ChatMessage) -> None:
        """Put another message in an entry's place.

        Raises:
            ArgumentError: The entry is gone.
        """
        self._held().replace(listed(entry), message)

    def remove(self, entries: Iterable[ContextEntry]) -> None:
        """Take entries out; those that are gone already are passed over."""
        self._held().remove(entries)

    def replace_run(self, entries: Sequence[ContextEntry], message: ChatMessage) -> ContextEntry:
        """Put one message, a digest, in the place of several in a row.

        Raises:
            ArgumentError: There are none, or all are gone.
        """
        return self._held().replace_run(entries, message)

    def preceding(self, entry: ContextEntry) -> ContextEntry | None:
        """The place in front of another; None if that is the first.

        Raises:
            ArgumentError: The entry is gone.
        """
        self._held()
        return listed(entry).preceding

    def entries(self) -> Iterator[ContextEntry]:
        """The entries, oldest first."""
        return iter(self._held().entries)

    def add_handoff(self, handoff: AgentHandoff) -> None:
        """Record a handoff."""
        self._held().handoffs.append(handoff)

    def release(self) -> None:
        """Give the context back to the application. A second time does nothing."""
        if self._is_held:
            self._is_held = False
            self._store.holder = None
