"""What a window leaves out, and what a summary would replace (behaviour.md W2–W4).

Owns: `Budget`, `Zone`, `select` and `select_run`. Driven by `ContextWindow`. Changes nothing.

Costs O(what is named), plus a step for each turn, source of frames and open call that is protected, at any length of the
context: the parts that are asked here (turn starts, frames by source, kept totals) are kept by `entries` and `tally`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from realtime.chat.entries import EntryList, party_of
from realtime.chat.entry import ContextEntry
from realtime.chat.pairing import has_open_call, unit_of
from realtime.chat.tally import Tally

__all__ = ["Budget", "Zone", "select", "select_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may stay."""

    max_tokens: int | None
    """Most tokens; None: any number."""
    max_items: int | None
    """Most messages, instructions too; None: any number."""
    scale: float
    """The provider's tokens for each of ours (W6)."""

    def allows(self, tokens: int, items: int) -> bool:
        """Whether that much may stay."""
        return (self.max_tokens is None or tokens * self.scale <= self.max_tokens) and (
            self.max_items is None or items <= self.max_items
        )


class Zone:
    """The recent turns, which stay (W2, W3)."""

    __slots__ = ("_frames_from", "_from", "_kept_frames")

    def __init__(self, entries: EntryList, *, keep_recent_turns: int, keep_recent_frames: int) -> None:
        """Find where the recent turns begin.

        Args:
            entries: All places.
            keep_recent_turns: How many turns stay.
            keep_recent_frames: How many frames of each source stay among them.
        """
        self._from: float = math.inf if keep_recent_turns == 0 else -math.inf
        self._frames_from = self._from
        if 0 < keep_recent_turns < entries.turns:
            start = entries.turn_starts.last
            for _ in range(keep_recent_turns - 1):
                assert start is not None
                start = start.previous_turn
            assert start is not None
            self._from = self._frames_from = start.order
            if party_of(start.message) == 1 and start.previous_said is not None:
                # frames right before the user's words were sampled with them
                self._frames_from = start.previous_said.order + 1
        self._kept_frames: set[ContextEntry] = set()
        for frames in entries.frames_of.values():
            newest = islice(reversed(frames), keep_recent_frames)
            self._kept_frames.update(frame for frame in newest if frame.order >= self._frames_from)

    def holds(self, entry: ContextEntry) -> bool:
        """Whether an entry is protected by being recent."""
        if entry.message.is_frame:
            return entry in self._kept_frames
        return entry.order >= self._from

    def is_before(self, entry: ContextEntry) -> bool:
        """Whether an entry stands before all recent words."""
        return entry.order < self._from


def select(entries: EntryList, tally: Tally | None, budget: Budget, zone: Zone) -> list[ContextEntry]:
    """What must go: frames first, oldest first; then whole units of words and tool rounds, oldest first.

    Leading instructions, the zone and units with an open call stay, even over budget.

    Args:
        entries: All places.
        tally: What they count; None if the budget is not one of tokens.
        budget: How much may stay.
        zone: What is recent.

    Returns:
        The entries, oldest first; empty under budget.
    """
    tokens, items, count = _totals(entries, tally)
    if budget.allows(tokens, items):
        return []
    going: dict[ContextEntry, None] = {}
    for frame in entries.frames:
        if zone.holds(frame):
            continue
        going[frame] = None
        tokens, items = tokens - count(frame), items - 1
        if budget.allows(tokens, items):
            return list(going)
    passed: set[ContextEntry] = set()
    entry = entries.first if entries.last_leading is None else entries.last_leading.following
    while entry is not None and zone.is_before(entry):
        if entry not in going and entry not in passed:
            unit = unit_of(entry)
            if has_open_call(unit) or any(zone.holds(part) for part in unit):
                passed.update(unit)
            else:
                going.update(dict.fromkeys(unit))
                tokens, items = tokens - sum(map(count, unit)), items - len(unit)
                if budget.allows(tokens, items):
                    break
        entry = entry.following
    return sorted(going, key=lambda one: one.order)


def select_run(entries: EntryList, tally: Tally | None, budget: Budget, zone: Zone) -> list[ContextEntry]:
    """What one summary would replace: the oldest messages in a row that are whole units and not recent.

    Args:
        entries: All places.
        tally: What they count; None if the budget is not one of tokens.
        budget: How much may stay.
        zone: What is recent.

    Returns:
        The entries, oldest first. Empty under budget, where nothing new would be digested, and where what must stay is
        over budget by itself, so that no summary could help (B15).
    """
    tokens, items, count = _totals(entries, tally)
    oldest = entries.said.first
    if budget.allows(tokens, items) or oldest is None or not zone.is_before(oldest):
        return []
    run = _whole_units(_old_in_a_row(entries, zone))
    if all(entry.message.summary or entry.message.is_frame for entry in run):
        return []
    left = tokens - sum(map(count, run))
    return run if budget.allows(left + 1, items - len(run) + 1) else []


def _totals(entries: EntryList, tally: Tally | None) -> tuple[int, int, Callable[[ContextEntry], int]]:
    """Tokens and items of all, and what counts one; without a tally tokens do not matter, and nothing is counted."""
    if tally is None:
        return 0, entries.count, lambda _entry: 0
    return tally.total, entries.count, tally.of


def _old_in_a_row(entries: EntryList, zone: Zone) -> list[ContextEntry]:
    run: list[ContextEntry] = []
    seen: dict[ContextEntry, bool] = {}
    entry = entries.first if entries.last_leading is None else entries.last_leading.following
    while entry is not None and zone.is_before(entry):
        if entry not in seen:
            unit = unit_of(entry)
            seen.update(dict.fromkeys(unit, has_open_call(unit)))
        if seen[entry] or zone.holds(entry):
            if run:
                break
        else:
            run.append(entry)
        entry = entry.following
    return run


def _whole_units(run: list[ContextEntry]) -> list[ContextEntry]:
    """The longest beginning of a run that no unit reaches out of."""
    inside = set(run)
    seen: set[ContextEntry] = set()
    reach, whole = -math.inf, 0
    for position, entry in enumerate(run):
        if entry not in seen:
            unit = unit_of(entry)
            if not inside.issuperset(unit):
                break
            seen.update(unit)
            reach = max(reach, *(part.order for part in unit))
        if position + 1 == len(run) or reach < run[position + 1].order:
            whole = position + 1
    return run[:whole]
