"""The newest messages within limits (behaviour.md V5, field case B14).

Owns: `newest`. Driven by `ChatContext.truncate`. Costs O(what is kept), and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime.chat.entries import EntryList
from realtime.chat.entry import ContextEntry
from realtime.chat.pairing import unit_of
from realtime.errors import ArgumentError

__all__ = ["newest"]


def newest(
    entries: EntryList,
    *,
    max_items: int | None,
    max_tokens: int | None,
    keep_instructions: bool,
    tokens_of: Callable[[ContextEntry], int],
) -> list[ContextEntry]:
    """Choose the newest entries.

    Args:
        entries: All of them.
        max_items: Most entries; None: any number.
        max_tokens: Most tokens; None: any number. Where nothing fits, the newest entry stays, with its tool round.
        keep_instructions: The leading instructions stay and count.
        tokens_of: What an entry counts.

    Returns:
        What stays, oldest first.

    Raises:
        ArgumentError: A limit is negative.
    """
    _check_limit("max_items", max_items)
    _check_limit("max_tokens", max_tokens)
    if max_items is None and max_tokens is None:
        return list(entries)
    if max_items == 0:
        return []
    leading = _leading(entries) if keep_instructions else []
    items, tokens = len(leading), sum(map(tokens_of, leading))
    kept: dict[ContextEntry, None] = {}
    entry = entries.last
    while entry is not None and not (keep_instructions and entry.is_leading):
        items, tokens = items + 1, tokens + tokens_of(entry)
        if (max_items is not None and items > max_items) or (max_tokens is not None and tokens > max_tokens):
            break
        kept[entry] = None
        entry = entry.preceding
    _drop_split_units(kept)
    _drop_leading_results(kept)
    last = entries.last
    if not kept and max_tokens is not None and last is not None and not (keep_instructions and last.is_leading):
        unit = unit_of(last)
        if max_items is None or len(unit) + len(leading) <= max_items:
            kept = dict.fromkeys(unit)
    return [*leading, *sorted(kept, key=lambda one: one.order)]


def _check_limit(argument: str, limit: object) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(argument, limit, "an int of at least 0, or None")


def _leading(entries: EntryList) -> list[ContextEntry]:
    found: list[ContextEntry] = []
    entry = entries.last_leading
    while entry is not None:
        found.append(entry)
        entry = entry.preceding
    return found[::-1]


def _drop_split_units(kept: dict[ContextEntry, None]) -> None:
    """A tool round that does not stay whole goes whole."""
    seen: set[ContextEntry] = set()
    for one in list(kept):
        if one in seen or (one.results is None and one.answers is None):
            continue
        unit = unit_of(one)
        seen.update(unit)
        if not all(part in kept for part in unit):
            for part in unit:
                kept.pop(part, None)


def _drop_leading_results(kept: dict[ContextEntry, None]) -> None:
    """Results without a call do not lead what is kept, nor what stands behind instructions that lead it."""
    for one in sorted(kept, key=lambda one: one.order):
        if one.message.is_instruction and not one.message.is_result:
            continue
        if not one.message.is_result or one.answers is not None:
            return
        del kept[one]
