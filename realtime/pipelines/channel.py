"""A bounded buffer between two tasks of one loop, with a named overflow policy and counted drops.

Owns: `Channel`, `ChannelStatistics`. Driven by one or more senders and receivers on one event loop. Every buffer of the
shells is one (architecture section 5); it never grows beyond its capacity, never loses anything without counting it, and
never blocks a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from realtime.core.settings import check_count
from realtime.errors import ArgumentError, SessionClosed, WouldBlock

__all__ = ["Channel", "ChannelClosed", "ChannelStatistics", "OverflowPolicy"]

T = TypeVar("T")

OverflowPolicy = Literal["block", "drop_oldest", "latest"]
"""What happens to an item that finds no room: its sender waits; the oldest items make room; it replaces all that wait."""


class ChannelClosed(SessionClosed):
    """The channel is closed: nothing can be sent, and nothing is left to receive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelStatistics:
    """What a channel holds and what it has lost."""

    waiting: int
    """Items held now."""
    weight: int
    """Their weight, in the unit of the capacity."""
    capacity: int
    """The most that it may hold."""
    dropped: int
    """Items lost to the overflow policy, since the beginning."""
    dropped_weight: int
    """Their weight."""


def _one(_item: object) -> int:
    return 1


class Channel(Generic[T]):
    """A bounded first-in, first-out buffer.

    An item heavier than the whole capacity is held alone: a bound of bytes must not refuse one large item for ever.
    """

    def __init__(
        self,
        capacity: int,
        policy: OverflowPolicy = "block",
        *,
        weigh: Callable[[T], int] = _one,
    ) -> None:
        """Make an empty channel.

        Args:
            capacity: The largest sum of weights that it holds; at least 1.
            policy: What happens to an item that finds no room.
            weigh: The weight of an item; by default each weighs 1. Use `len` for bytes.

        Raises:
            ArgumentError: The capacity is no int of at least 1, or the policy is unknown.
        """
        check_count("capacity", capacity, least=1)
        if policy not in ("block", "drop_oldest", "latest"):
            raise ArgumentError("policy", policy, "'block', 'drop_oldest' or 'latest'")
        self._capacity = capacity
        self._policy: OverflowPolicy = policy
        self._weigh = weigh
        self._items: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._dropped = 0
        self._dropped_weight = 0
        self._closed = False
        self._error: BaseException | None = None
        self._receivers: deque[asyncio.Future[None]] = deque()
        self._senders: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closed

    def statistics(self) -> ChannelStatistics:
        """What it holds and what it has lost."""
        return ChannelStatistics(
            waiting=len(self._items),
            weight=self._weight,
            capacity=self._capacity,
            dropped=self._dropped,
            dropped_weight=self._dropped_weight,
        )

    def send_nowait(self, item: T) -> None:
        """Put an item in, making room by the policy.

        Raises:
            ChannelClosed: The channel is closed.
            WouldBlock: It is full and its policy is ``block``.
        """
        if self._closed:
            raise ChannelClosed("the channel is closed")
        weight = self._weigh(item)
        if self._policy == "latest":
            while self._items:
                self._drop_oldest()
        elif not self._fits(weight):
            if self._policy == "block":
                raise WouldBlock(f"the channel is full ({self._weight} of {self._capacity})")
            while self._items and not self._fits(weight):
                self._drop_oldest()
        self._items.append((item, weight))
        self._weight += weight
        _wake_one(self._receivers)

    async def send(self, item: T) -> None:
        """Put an item in; with the policy ``block``, once there is room.

        Raises:
            ChannelClosed: The channel is closed, or was while this waited.
        """
        if self._policy == "block":
            weight = self._weigh(item)
            while not self._closed and not self._fits(weight):
                await _wait_in(self._senders)
        self.send_nowait(item)

    def receive_nowait(self) -> T:
        """Take the oldest item.

        Raises:
            WouldBlock: Nothing is there.
            ChannelClosed: Nothing is there and the channel is closed; or the error that it was closed with.
        """
        if not self._items:
            if self._error is not None:
                raise self._error
            if self._closed:
                raise ChannelClosed("the channel is closed")
            raise WouldBlock("the channel is empty")
        item, weight = self._items.popleft()
        self._weight -= weight
        _wake_one(self._senders)
        return item

    async def receive(self) -> T:
        """Take the oldest item, once there is one.

        Raises:
            ChannelClosed: Nothing is left and the channel is closed; or the error that it was closed with.
        """
        while not self._items and not self._closed:
            await _wait_in(self._receivers)
        return self.receive_nowait()

    def discard(self, unwanted: Callable[[T], bool]) -> int:
        """Take out what is no longer wanted; that is no loss and not counted as one. Returns how many items that were."""
        kept = deque((item, weight) for item, weight in self._items if not unwanted(item))
        count = len(self._items) - len(kept)
        self._items = kept
        self._weight = sum(weight for _, weight in kept)
        _wake_all(self._senders)
        return count

    def clear(self) -> int:
        """Throw away what waits, which counts as dropped. Returns how many items that were."""
        count = len(self._items)
        while self._items:
            self._drop_oldest()
        _wake_all(self._senders)
        return count

    def close(self, error: BaseException | None = None) -> None:
        """Let nothing more in. What waits can still be received; then `ChannelClosed` is raised, or `error`.

        Closing twice does nothing.
        """
        if self._closed:
            return
        self._closed = True
        self._error = error
        _wake_all(self._senders)
        _wake_all(self._receivers)

    def _fits(self, weight: int) -> bool:
        return not self._items or self._weight + weight <= self._capacity

    def _drop_oldest(self) -> None:
        _item, weight = self._items.popleft()
        self._weight -= weight
        self._dropped += 1
        self._dropped_weight += weight


async def _wait_in(line: deque[asyncio.Future[None]]) -> None:
    """Wait to be woken. Whoever is cancelled when already woken passes the wake on, so that it is not lost."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    line.append(turn)
    try:
        await turn
    except asyncio.CancelledError:
        if turn.done() and not turn.cancelled():
            _wake_one(line)
        else:
            with contextlib.suppress(ValueError):
                line.remove(turn)
        raise


def _wake_one(line: deque[asyncio.Future[None]]) -> None:
    while line:
        turn = line.popleft()
        if not turn.done():
            turn.set_result(None)
            return


def _wake_all(line: deque[asyncio.Future[None]]) -> None:
    while line:
        _wake_one(line)
