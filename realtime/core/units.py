"""What stays together: a response's calls and their results, as places stand beside each other (behaviour.md F2, H0).

Owns: how a unit is found from one of its places. Driven by `realtime.core.history`. Pure reading; it never moves a place.
"""

from __future__ import annotations

from collections.abc import Iterator

from realtime.chat.messages import ChatMessage
from realtime.core.places import Place

__all__ = ["call_ids", "oldest_unit", "seeded_round", "trimmed_units"]


def oldest_unit(head: Place) -> list[Place]:
    """The oldest visible message behind `head`, with its whole tool round if it is of one; a round with an open call stays."""
    first = head.following
    while first is not None and first.visible:
        unit = [first]
        following = first.following
        while first.round_id is not None and following is not None and following.round_id == first.round_id:
            unit.append(following)
            following = following.following
        if not any(place.awaits_result for place in unit):
            return unit
        first = following
    return []


def trimmed_units(head: Place, frontier: Place) -> Iterator[list[Place]]:
    """What is visible and not in the context, newest first, whole tool rounds; frames are left out.

    Args:
        head: What stands before the first place.
        frontier: The last visible place.
    """
    place: Place | None = frontier
    while place is not None and place is not head:
        unit = [place]
        before = place.preceding
        while place.round_id is not None and before is not None and before.round_id == place.round_id:
            unit.append(before)
            before = before.preceding
        if all(one.entry is None and one.message is not None and not one.message.is_frame for one in unit):
            yield unit
        place = before


def call_ids(place: Place) -> set[str]:
    """The calls of a place's message."""
    return {call.call_id for call in place.message.tool_calls} if place.message is not None else set()


def seeded_round(message: ChatMessage, rounds: dict[str, str], before: Place) -> str | None:
    """The round of a seeded message: calls in a row are one, and their results belong to it."""
    if message.tool_call_id:
        return rounds.get(message.tool_call_id)
    if not message.tool_calls:
        return None
    is_next_call = before.round_id is not None and before.message is not None and bool(before.message.tool_calls)
    round_id = before.round_id if is_next_call else f"seeded:{message.tool_calls[0].call_id}"
    assert round_id is not None
    rounds.update((call.call_id, round_id) for call in message.tool_calls)
    return round_id
