"""Providers with one slot for instructions and two roles that take turns: Anthropic and Gemini (behaviour.md F7, F8).

Owns: the assembly of such a conversation. Driven by those formats. A piece is what one unit becomes: its parts under each
role, in order. Neighbors of one role are merged, so that results stand first in what follows their calls; a conversation
that does not begin and end with the user gets a short filler there, because nothing else would be accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from realtime.chat.formats.conversion import UnitContent, copied
from realtime.chat.formats.text import CLOSING_FILLER, OPENING_FILLER, tagged_instruction

__all__ = ["Part", "Said", "alternate", "instruction"]

logger = logging.getLogger("realtime.chat.formats")

Part = dict[str, Any]
Side = Literal["system", "user", "model"]


class Said(NamedTuple):
    """Some parts, said by one side."""

    side: Side
    """``system`` is the slot for instructions."""
    parts: Sequence[Part]
    """What is said; each ``system`` part is ``{"text": …}``."""
    is_moved: bool = False
    """An instruction that goes as the user's text, for want of a role."""


def instruction(unit: UnitContent, text: str, part: Part) -> Said:
    """An instruction: in the slot at the head of a conversation, else in its place as tagged text.

    Args:
        unit: The instruction's unit.
        text: What it says.
        part: A text part of the provider's, whose text is put here.
    """
    if unit.is_leading:
        return Said("system", [{"text": text}])
    return Said("user", [{**part, "text": tagged_instruction(text)}], is_moved=True)


def alternate(pieces: Iterable[Sequence[Said]], text_part: Part) -> tuple[list[tuple[Side, list[Part]]], str | None]:
    """Put a conversation together.

    Args:
        pieces: What each unit became.
        text_part: A text part of the provider's without its text, for fillers.

    Returns:
        ``(turns, system)``: each turn's side and parts, containers of the caller's own; the instructions, or None.
    """
    turns: list[tuple[Side, list[Part]]] = []
    system: list[str] = []
    moved = 0
    for piece in pieces:
        for side, parts, is_moved in piece:
            moved += is_moved
            if side == "system":
                system += (part["text"] for part in parts)
            elif turns and turns[-1][0] == side:
                turns[-1][1].extend(copied(part) for part in parts)
            elif parts:
                turns.append((side, [copied(part) for part in parts]))
    if moved:
        logger.info("%d later instruction(s) go as tagged user text: this provider has no such role there", moved)
    if not turns and not system:
        return [], None
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [{**text_part, "text": OPENING_FILLER}]))
    if turns[-1][0] != "user":
        turns.append(("user", [{**text_part, "text": CLOSING_FILLER}]))
    return turns, "\n\n".join(system) or None
