"""Puts a stream of numbered packets in order, without ever waiting for long.

Owns: `PacketOrder`. Driven by a receiver, packet by packet; pure, no clock: its owner says when a gap has waited for long
enough. What is in order is given at once. What comes after a gap waits for as many later packets as the owner allows; then
the gap is given up. It holds no more than that.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["PacketOrder"]

T = TypeVar("T")

_HALF = 0x8000
_MASK = 0xFFFF
_MAX_BACK = 100
_MAX_AHEAD = 3_000
"""Beyond these a number is no neighbor's: the sender may have begun anew, which its next packet shows (RFC 3550, A.1). Where
packets are sent again on request, `max_back` is larger: they may come seconds after their place."""


class PacketOrder(Generic[T]):
    """One stream's packets, by their 16-bit sequence numbers.

    Attributes:
        late: Packets that came after they had been given up.
        duplicates: Packets that came again.
        restarts: How often the sender began anew.
        due: The number of the packet that is due, while nothing waits; None: something waits, or nothing came yet. Who has the
            packet of this number need not push it: its turn is over when the next number stands here.
    """

    __slots__ = ("_held", "_max_back", "_max_held", "_next", "_probe", "due", "duplicates", "late", "restarts")

    def __init__(self, max_held: int, *, max_back: int = _MAX_BACK) -> None:
        """Begin a stream.

        Args:
            max_held: So many packets behind a gap, and it is given up.
            max_back: A number so far behind is late and tells nothing else.
        """
        self._max_held = max_held
        self._max_back = max_back
        self._held: dict[int, T] = {}
        self._next = 0
        """The number that those wait for that are held."""
        self.due: int | None = None
        self._probe: int | None = None
        self.late = 0
        self.duplicates = 0
        self.restarts = 0

    @property
    def waits(self) -> bool:
        """Whether packets wait behind a gap."""
        return bool(self._held)

    def missing(self) -> list[int]:
        """The numbers of the gaps that are waited for, in order."""
        if not self._held:
            return []
        span = max((number - self._next) & _MASK for number in self._held)
        numbers = ((self._next + offset) & _MASK for offset in range(span))
        return [number for number in numbers if number not in self._held]

    def let_through(self, number: int) -> bool:
        """Whether the packet of this number is the one that is due while nothing waits; then its turn is over.

        The short form of `push` for what comes in order. If not, nothing has changed.
        """
        # hot path: every packet
        if number != self.due:
            return False
        self.due = (number + 1) & _MASK
        return True

    def push(self, number: int, packet: T, *, is_again: bool = False) -> list[T]:
        """Take a packet; gives those that are in order now.

        Args:
            number: Its sequence number.
            packet: It.
            is_again: It is known to be a retransmission: it never shows that the sender began anew.
        """
        # hot path: every packet
        expected = self.due
        if number == expected or (expected is None and not self._held):
            self.due = (number + 1) & _MASK
            return [packet]
        if expected is None:
            expected = self._next
        ahead = (number - expected) & _MASK
        if ahead >= _HALF:
            is_late = is_again or 0x10000 - ahead <= self._max_back
            return self._leave_out() if is_late else self._take_stranger(number, packet)
        if ahead > _MAX_AHEAD:
            return self._leave_out() if is_again else self._take_stranger(number, packet)
        if number in self._held:
            self.duplicates += 1
            return []
        self._held[number] = packet
        self._next = expected
        given = self._take_ordered()
        while len(self._held) >= self._max_held:
            given += self.give_up()
        return given

    def give_up(self) -> list[T]:
        """Wait no longer for the first gap; gives what stood behind it."""
        if not self._held:
            return []
        expected = self._next
        self._next = min(self._held, key=lambda number: (number - expected) & _MASK)
        return self._take_ordered()

    def restart(self) -> list[T]:
        """The stream ends; gives what waited. The next packet begins another."""
        given: list[T] = []
        while self._held:
            given += self.give_up()
        self.due = None
        self._probe = None
        return given

    def _take_ordered(self) -> list[T]:
        given: list[T] = []
        number = self._next
        while number in self._held:
            given.append(self._held.pop(number))
            number = (number + 1) & _MASK
        self._next = number
        self.due = None if self._held else number
        return given

    def _leave_out(self) -> list[T]:
        self.late += 1
        return []

    def _take_stranger(self, number: int, packet: T) -> list[T]:
        """A number far from its neighbors: the second in a row shows that the sender began anew."""
        if number != self._probe:
            self._probe = (number + 1) & _MASK
            self.late += 1
            return []
        given = self.restart()
        self.restarts += 1
        self.due = (number + 1) & _MASK
        return [*given, packet]
