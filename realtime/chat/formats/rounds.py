"""Which result belongs to which call, over a list of messages that grows (behaviour.md F2–F4).

Owns: `Rounds` and its `Unit`s, by position in the list. A unit is one message, or one tool round: the calls that were
made in a row, each with its result. Driven by `conversion` and by the strategies of the context manager. O(1) per message
added; never looks at what a message says.
"""

from __future__ import annotations

from realtime.chat.messages import ChatMessage, ChatRole

__all__ = ["Rounds", "Slot", "Unit"]


class Slot:
    """One call, and where its result is."""

    __slots__ = ("at", "number", "result", "unit")

    def __init__(self, unit: Unit, at: int, number: int) -> None:
        self.unit = unit
        self.at = at
        """The position of the message that makes the call."""
        self.number = number
        """Which of that message's calls."""
        self.result: int | None = None
        """The position of its result; None while the call is open."""


class Unit:
    """One message, or one tool round. Its messages are kept or left out together."""

    __slots__ = ("calls", "ids", "is_leading", "number", "piece", "speakers")

    def __init__(self, number: int, speakers: tuple[int, ...], *, is_leading: bool) -> None:
        self.number = number
        """Which unit of the list it is."""
        self.is_leading = is_leading
        """An instruction with nothing but instructions before it."""
        self.speakers = speakers
        """Positions of the messages whose words it gives; in a round, of those that make its calls."""
        self.calls: tuple[Slot, ...] = ()
        """The calls of a round, in order; empty for any other message."""
        self.ids: tuple[str, ...] = ()
        """Set by a conversion: the ids of the calls, as its provider takes them."""
        self.piece: object = None
        """Set by a conversion: what the unit became."""

    def positions(self) -> list[int]:
        """The positions of all its messages, ascending."""
        if not self.calls:
            return list(self.speakers)
        places = {*self.speakers, *(slot.at for slot in self.calls)}
        places.update(slot.result for slot in self.calls if slot.result is not None)
        return sorted(places)


class Rounds:
    """Groups messages as they are added."""

    __slots__ = ("_count", "_instructions_only", "_open", "_row", "orphans", "touched", "units")

    def __init__(self) -> None:
        self.units: list[Unit] = []
        """In the order of their first messages."""
        self.orphans: list[int] = []
        """Positions of results without a call."""
        self.touched: dict[int, Unit] = {}
        """Units that are new or changed since this was last emptied, by number."""
        self._open: dict[str, list[Slot]] = {}
        self._row: Unit | None = None
        self._instructions_only = True
        self._count = 0

    def __len__(self) -> int:
        """How many messages were added."""
        return self._count

    # hot path: once per message of every conversion
    def add(self, message: ChatMessage) -> None:
        """Add the next message of the list."""
        position = self._count
        self._count += 1
        row, self._row = self._row, None
        if not message.is_instruction or message.is_result:
            self._instructions_only = False
        if message.is_result:
            self._answer(message.tool_call_id, position)
        elif not message.tool_calls or message.role is not ChatRole.ASSISTANT:
            self._begin((position,))
        if not message.tool_calls:
            return
        self._instructions_only = False
        speaks_here = message.role is ChatRole.ASSISTANT and not message.is_result
        if row is None or not speaks_here:
            row = self._begin(())
        self.touched[row.number] = row
        if speaks_here:
            row.speakers += (position,)
            self._row = row
        slots = tuple(Slot(row, position, number) for number in range(len(message.tool_calls)))
        row.calls += slots
        for slot, call in zip(slots, message.tool_calls, strict=True):
            self._open.setdefault(call.call_id, []).append(slot)

    def _begin(self, speakers: tuple[int, ...]) -> Unit:
        unit = Unit(len(self.units), speakers, is_leading=self._instructions_only)
        self.units.append(unit)
        self.touched[unit.number] = unit
        return unit

    def _answer(self, call_id: str, position: int) -> None:
        """Give a result to the nearest open call of its id: the last round that has one, and in it the first."""
        waiting = self._open.get(call_id)
        if not waiting:
            self.orphans.append(position)
            return
        nearest = len(waiting) - 1
        while nearest and waiting[nearest - 1].unit is waiting[nearest].unit:
            nearest -= 1
        slot = waiting.pop(nearest)
        if not waiting:
            del self._open[call_id]
        slot.result = position
        self.touched[slot.unit.number] = slot.unit
