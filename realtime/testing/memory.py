"""A connection without a socket, whose faults a test makes.

Owns: `MemoryPair` and its two ends. Driven by tests and by `ScriptedModel`. It never opens a socket and never reads a
clock but the one that it is given.
"""

from __future__ import annotations

import asyncio
from collections import deque

from realtime.errors import ArgumentError, LinkLost
from realtime.pipelines.clock import Clock
from realtime.transports.websocket import check_size

__all__ = ["MemoryEnd", "MemoryPair"]


class MemoryPair:
    """Two ends of one connection; each is a `realtime.transports.websocket.Transport`.

    ::

        pair = MemoryPair()
        link.use(pair.client)
        assert "session.update" in await pair.server.receive()
        await pair.server.send('{"type":"session.updated"}')
        pair.drop()                    # or pair.server.close(1011, "…"), pair.stall(), pair.delay(0.2)

    Faults: `drop` (the line goes dead), `MemoryEnd.close` (a close frame with code and reason), `stall` (half-open:
    nothing arrives any more and nobody is told), `delay` (each message arrives later, by the clock), garbage (send what
    you like), and a slow reader (an end that does not receive: once `capacity` messages wait, the other's `send` waits).

    Attributes:
        client: The end for the code under test.
        server: The end for the test.
    """

    def __init__(self, *, capacity: int = 64, max_message_bytes: int = 15_000_000, clock: Clock | None = None) -> None:
        """Make a connection.

        Args:
            capacity: How many messages may wait at an end before the other's `send` waits (policy ``block``).
            max_message_bytes: Largest message that the client may send.
            clock: What `delay` counts on.
        """
        if capacity < 1:
            raise ArgumentError("capacity", capacity, "at least 1")
        self._clock = clock
        self.client = MemoryEnd(self, capacity, max_message_bytes)
        self.server = MemoryEnd(self, capacity, None)
        self.client.other, self.server.other = self.server, self.client
        self.is_stalled = False
        self.delay_seconds = 0.0

    @property
    def clock(self) -> Clock | None:
        """What `delay` counts on."""
        return self._clock

    def drop(self, reason: str = "the connection broke off", *, keep: bool = False) -> None:
        """Cut the line: both ends lose it without a close code.

        Args:
            reason: What they are told.
            keep: What waits at the ends is still received before that; else it is lost and both learn of it at once.
        """
        for end in (self.client, self.server):
            if keep:
                end.put(LinkLost(reason))
            else:
                end.lose(LinkLost(reason), at_once=True)

    def stall(self, *, notice_after: float | None = None) -> None:
        """Make the line half-open: what is sent vanishes, and neither end is told.

        Args:
            notice_after: The client finds out after so many seconds by the clock, as by its keep-alive; None: never.

        Raises:
            ArgumentError: There is no clock to notice by.
        """
        self.is_stalled = True
        if notice_after is None:
            return
        if self._clock is None:
            raise ArgumentError("clock", None, "given to MemoryPair, for stall(notice_after=…)")
        gone = LinkLost(f"nothing arrived for {notice_after:g} s", silent_seconds=notice_after)
        self._clock.call_at(self._clock.now() + notice_after, lambda: self.client.lose(gone, at_once=True))

    def delay(self, seconds: float) -> None:
        """Let each message from now on arrive so much later, by the clock.

        Raises:
            ArgumentError: There is no clock.
        """
        if self._clock is None:
            raise ArgumentError("clock", None, "given to MemoryPair, for delay()")
        self.delay_seconds = seconds


class MemoryEnd:
    """One end. A transport, and for the server's also `close`.

    Attributes:
        sent: How many messages this end sent.
    """

    def __init__(self, pair: MemoryPair, capacity: int, max_message_bytes: int | None) -> None:
        """Made by `MemoryPair`."""
        self.other: MemoryEnd = self
        self.sent = 0
        self._pair = pair
        self._capacity = capacity
        self._max_message_bytes = max_message_bytes
        self._inbox: deque[tuple[float, str | bytes | LinkLost]] = deque()
        self._lost: LinkLost | None = None
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many messages wait to be received here."""
        return len(self._inbox)

    @property
    def is_lost(self) -> bool:
        """Whether this end knows that the connection is over."""
        return self._lost is not None

    async def send(self, data: str | bytes) -> None:
        """Send a message, waiting while the other end is full.

        Raises:
            ModelError: With code ``message_too_large``.
            LinkLost: The connection is gone.
        """
        if self._max_message_bytes is not None:
            check_size(data, self._max_message_bytes)
        while self._lost is None and self.other.is_full and not self._pair.is_stalled:
            await self.other.wait_for_change()
        self.send_at_once(data)

    @property
    def is_clear(self) -> bool:
        """Whether `send` would not wait."""
        return self._lost is None and (self._pair.is_stalled or not self.other.is_full)

    def send_at_once(self, data: str | bytes) -> None:
        """As `send`, without waiting.

        Raises:
            ModelError: With code ``message_too_large``.
            LinkLost: The connection is gone.
        """
        if self._max_message_bytes is not None:
            check_size(data, self._max_message_bytes)
        if self._lost is not None:
            raise self._lost
        self.sent += 1
        if not self._pair.is_stalled:
            self.other.put(data)

    async def receive(self) -> str | bytes:
        """Wait for the next message.

        Raises:
            LinkLost: The connection is gone.
        """
        while True:
            if self._inbox:
                due, data = self._inbox[0]
                clock = self._pair.clock
                if clock is not None and due > clock.now():
                    await clock.sleep_until(due)
                    continue
                self._inbox.popleft()
                self._notify()
                if isinstance(data, LinkLost):
                    self.lose(data, at_once=True)
                    raise data
                return data
            if self._lost is not None:
                raise self._lost
            await self.wait_for_change()

    async def aclose(self) -> None:
        """Close with 1000."""
        self.close(1000, "closed by the other side")
        self.lose(LinkLost("closed by us", code=1000), at_once=True)

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame: the other end reads what waits there, then loses the connection with this code."""
        if self._lost is not None:
            return
        self.lose(LinkLost("closed by us", code=code), at_once=False)
        if not self._pair.is_stalled:
            self.other.put(LinkLost(reason or "closed by the other side", code=code))

    # -- between the two ends ---------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the other end has to wait."""
        return len(self._inbox) >= self._capacity

    def put(self, data: str | bytes | LinkLost) -> None:
        """Take a message from the other end."""
        if self._lost is not None:
            return
        clock, delay = self._pair.clock, self._pair.delay_seconds
        self._inbox.append((clock.now() + delay if clock is not None and delay else 0.0, data))
        self._notify()

    def lose(self, error: LinkLost, *, at_once: bool) -> None:
        """Learn that the connection is over."""
        if at_once:
            self._inbox.clear()
        if self._lost is None:
            self._lost = error
        self._notify()
        self.other._notify()  # noqa: SLF001  (who waits there for room looks again)

    async def wait_for_change(self) -> None:
        """Wait until something arrived here, was taken, or the connection ended."""
        changed = self._changed
        await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
