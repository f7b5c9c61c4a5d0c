"""What a window does to a context, message by message and with the reason: for inspectors (behaviour.md W1–W4).

Owns: `Explanation` and `explain`. Driven by `ChatContext.explain` and ``realtime inspect``. Changes nothing, and asks the
window itself rather than guessing what it would do. O(n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from realtime.chat.entries import ContextEntry
from realtime.chat.messages import ChatMessage
from realtime.chat.pairing import has_open_call, unit_of
from realtime.chat.tokens import TokenCounter

if TYPE_CHECKING:
    from realtime.chat.context import ChatContext
    from realtime.chat.selection import Zone
    from realtime.chat.window import ContextWindow

__all__ = ["Explanation", "Reason", "explain"]

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


def explain(
    context: ChatContext,
    window: ContextWindow,
    counter: TokenCounter | Callable[[str], int] | str | None = None,
) -> list[Explanation]:
    """Say of each message what the window makes of it.

    Args:
        context: Any context; it is not changed.
        window: The window that would be applied.
        counter: Counts instead of the window's own.

    Returns:
        One explanation per message, oldest first.
    """
    if counter is not None:
        window = replace(window, counter=counter)
    tally, zone = window.tally(context), window.zone(context)
    going = set(window.select(context))
    is_over = bool(going) or not window.allows(context)
    explanations: list[Explanation] = []
    turn = 0
    for entry in context.store.entries:
        turn += entry.is_turn_start
        unit = unit_of(entry)
        explanations.append(
            Explanation(
                message=entry.message,
                tokens=tally.of(entry),
                kept=entry not in going,
                reason=_reason(entry, unit, zone, is_going=entry in going, is_over=is_over),
                turn=turn,
                round_size=len(unit),
            )
        )
    return explanations


def _reason(entry: ContextEntry, unit: list[ContextEntry], zone: Zone, *, is_going: bool, is_over: bool) -> Reason:
    if is_going:
        return "old_frame" if entry.message.is_frame else "old_turn"
    if not is_over:
        return "within_budget"
    if entry.is_leading:
        return "instruction"
    if has_open_call(unit):
        return "open_call"
    if zone.holds(entry):
        return "recent_frame" if entry.message.is_frame else "recent_turn"
    return "part_of_kept_unit" if any(zone.holds(part) for part in unit) else "newest_that_fit"
