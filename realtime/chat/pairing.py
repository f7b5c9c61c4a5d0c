"""Which result answers which call, kept as entries come and go (behaviour.md F2, F4).

Owns: `Pairing` (the entries that call or answer, by call id) and `unit_of` (what stays or goes together). A result answers
the nearest open call of its id before it; which of several in one row is all the same here, for a row stays or goes whole.
Driven by `EntryList`. O(1) at the end of the list, for whole units that leave, and where an id is one call's only; elsewhere
the entries of that one id are paired again.
"""

from __future__ import annotations

from collections.abc import Collection

from realtime.chat.entry import ContextEntry
from realtime.chat.messages import ChatMessage, ChatRole

__all__ = ["Pairing", "has_open_call", "unit_of"]


class _Slots:
    """The entries of one call id."""

    __slots__ = ("entries", "newest", "waiting")

    def __init__(self) -> None:
        self.entries: dict[ContextEntry, None] = {}
        """Those that call or answer by it."""
        self.newest: ContextEntry | None = None
        """The last of them in the list; None if that is not known."""
        self.waiting: list[tuple[ContextEntry, int]] = []
        """Open calls, in order: the entry, and which of its calls."""


class Pairing:
    """The calls and results of one context."""

    __slots__ = ("_by_id", "open_calls")

    def __init__(self) -> None:
        self._by_id: dict[str, _Slots] = {}
        self.open_calls = 0
        """How many calls have no result."""

    def add(self, entry: ContextEntry) -> None:
        """An entry that calls or answers was put in the list."""
        message = entry.message
        if message.tool_calls:
            entry.results = [None for _ in message.tool_calls]
        for call_id in _ids_of(message):
            slots = self._by_id.setdefault(call_id, _Slots())
            slots.entries[entry] = None
            if slots.newest is None and len(slots.entries) > 1:
                slots.newest = max(slots.entries, key=lambda one: one.order)
            if slots.newest is None or slots.newest.order <= entry.order:
                slots.newest = entry
                self._add_last(slots, entry, call_id)
            else:
                self._pair_again(slots, call_id)

    def remove(self, entry: ContextEntry, leaving: Collection[ContextEntry] = ()) -> None:
        """An entry that calls or answers leaves the list, or becomes another message.

        Args:
            entry: The entry.
            leaving: What leaves with it. If that is its whole unit, no other pair changes.
        """
        alone: set[str] = set()
        for number, result in enumerate(entry.results or ()):
            if result is None:
                self.open_calls -= 1
                self._by_id[entry.message.tool_calls[number].call_id].waiting.remove((entry, number))
                continue
            result.answers = None
            if result not in leaving:
                alone.add(result.message.tool_call_id)
        caller = entry.answers
        if caller is not None and caller.results is not None:
            number = caller.results.index(entry)
            caller.results[number] = None
            self.open_calls += 1
            call_id = entry.message.tool_call_id
            self._by_id[call_id].waiting.append((caller, number))
            if caller not in leaving:
                alone.add(call_id)
        entry.answers = entry.results = None
        for call_id in _ids_of(entry.message):
            slots = self._by_id[call_id]
            del slots.entries[entry]
            if slots.newest is entry:
                slots.newest = None
            if not slots.entries:
                del self._by_id[call_id]
            elif call_id in alone:
                self._pair_again(slots, call_id)

    def _add_last(self, slots: _Slots, entry: ContextEntry, call_id: str) -> None:
        """Pair an entry that stands behind all others of its id."""
        if entry.message.is_result and entry.message.tool_call_id == call_id:
            self._answer(slots, entry)
        for number, call in enumerate(entry.message.tool_calls):
            if call.call_id == call_id:
                slots.waiting.append((entry, number))
                self.open_calls += 1

    def _answer(self, slots: _Slots, result: ContextEntry) -> None:
        if not slots.waiting:
            return
        caller, number = slots.waiting.pop()
        assert caller.results is not None
        caller.results[number] = result
        result.answers = caller
        self.open_calls -= 1

    def _pair_again(self, slots: _Slots, call_id: str) -> None:
        """Pair the entries of one id from the first on."""
        self.open_calls -= len(slots.waiting)
        slots.waiting = []
        for entry in slots.entries:
            if entry.message.is_result and entry.message.tool_call_id == call_id:
                entry.answers = None
            for number, call in enumerate(entry.message.tool_calls):
                if call.call_id == call_id and entry.results is not None:
                    entry.results[number] = None
        ordered = sorted(slots.entries, key=lambda one: one.order)
        slots.newest = ordered[-1]
        for entry in ordered:
            self._add_last(slots, entry, call_id)


def _ids_of(message: ChatMessage) -> tuple[str, ...]:
    """The call ids by which a message calls or answers, each once."""
    ids = [call.call_id for call in message.tool_calls]
    if message.is_result:
        ids.append(message.tool_call_id)
    return tuple(dict.fromkeys(ids))


def _is_in_row(entry: ContextEntry) -> bool:
    message = entry.message
    return bool(message.tool_calls) and message.role is ChatRole.ASSISTANT and not message.is_result


def unit_of(entry: ContextEntry) -> list[ContextEntry]:
    """What stays or goes with an entry: itself; in a tool round, the calls made in a row and all their results."""
    if entry.results is None and entry.answers is None:
        return [entry]
    unit: dict[ContextEntry, None] = {}
    found = [entry]
    while found:
        one = found.pop()
        if one in unit:
            continue
        unit[one] = None
        found += [result for result in one.results or () if result is not None]
        if one.answers is not None:
            found.append(one.answers)
        if _is_in_row(one):
            found += [beside for beside in (one.preceding, one.following) if beside is not None and _is_in_row(beside)]
    return list(unit)


def has_open_call(unit: Collection[ContextEntry]) -> bool:
    """Whether a call of a unit has no result yet."""
    return any(entry.results is not None and None in entry.results for entry in unit)
