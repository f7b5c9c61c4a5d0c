"""What a window does to a context, message by message and with the reason: for inspectors (behaviour.md W1–W4).

Owns: `Explanation` and `explain`. Driven by `ContextWindow.explain`, which gives it what it would do. Changes nothing. O(n).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from realtime.chat.entries import EntryList
from realtime.chat.entry import ContextEntry
from realtime.chat.messages import ChatMessage
from realtime.chat.pairing import has_open_call, unit_of
from realtime.chat.selection import Zone
from realtime.chat.tally import Tally
from realtime.chat.tokens import TokenCounter

__all__ = ["Explainer", "Explanation", "Reason", "explain"]

Reason = Literal[
    "within_budget",
    "instruction",
    "open_call",
    "recent_turn",
    "recent_frame",
    "part_of_kept_unit",
    "newest_that_fit",
    "old_frame",
    "old_turn",
]
"""Why a message stays or goes.

It stays: ``within_budget`` (nothing has to go), ``instruction`` (it leads the conversation), ``open_call`` (a call of its
tool round has no result), ``recent_turn`` (it is of the newest turns), ``recent_frame`` (of the newest frames of its source
there), ``part_of_kept_unit`` (its tool round has a recent message), ``newest_that_fit`` (enough older ones go). It goes:
``old_frame``, ``old_turn``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What becomes of one message."""

    message: ChatMessage
    """The message."""
    tokens: int
    """What it counts."""
    kept: bool
    """Whether it stays."""
    reason: Reason
    """Why."""
    turn: int
    """Which turn it belongs to, counted from 1; 0 before the first."""
    round_size: int
    """How many messages its tool round has; 1 if it is of none."""


class Explainer(Protocol):
    """What can say what becomes of a context: a `ContextWindow`."""

    def explain(
        self, context: Any, counter: TokenCounter | Callable[[str], int] | str | None = None
    ) -> list[Explanation]:
        """See `ChatContext.explain`."""
        ...


def explain(
    entries: EntryList, tally: Tally, zone: Zone, going: Collection[ContextEntry], *, is_over: bool
) -> list[Explanation]:
    """Say of each message what a window makes of it.

    Args:
        entries: All places.
        tally: What they count.
        zone: What is recent.
        going: What the window would remove.
        is_over: Whether the context is over the window's limits.

    Returns:
        One explanation per message, oldest first.
    """
    explanations: list[Explanation] = []
    sizes: dict[ContextEntry, int] = {}
    reasons: dict[ContextEntry, Reason | None] = {}
    turn = 0
    for entry in entries:
        turn += entry.is_turn_start
        if entry not in sizes:
            unit = unit_of(entry)
            sizes.update(dict.fromkeys(unit, len(unit)))
            reasons.update(dict.fromkeys(unit, _reason_of_unit(unit, zone)))
        is_going = entry in going
        explanations.append(
            Explanation(
                message=entry.message,
                tokens=tally.of(entry),
                kept=not is_going,
                reason=_reason(entry, reasons[entry], zone, is_going=is_going, is_over=is_over),
                turn=turn,
                round_size=sizes[entry],
            )
        )
    return explanations


def _reason_of_unit(unit: list[ContextEntry], zone: Zone) -> Reason | None:
    """Why a unit stays for the sake of one of its messages."""
    if has_open_call(unit):
        return "open_call"
    return "part_of_kept_unit" if any(zone.holds(part) for part in unit) else None


def _reason(entry: ContextEntry, of_unit: Reason | None, zone: Zone, *, is_going: bool, is_over: bool) -> Reason:
    if is_going:
        return "old_frame" if entry.message.is_frame else "old_turn"
    if not is_over:
        return "within_budget"
    if entry.is_leading:
        return "instruction"
    if of_unit != "open_call" and zone.holds(entry):
        return "recent_frame" if entry.message.is_frame else "recent_turn"
    return of_unit or "newest_that_fit"
