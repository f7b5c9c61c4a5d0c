"""What the machine has decided and not yet handed out.

Owns: the queues of events and commands, the machine's present moment and its ids. Driven by every part of the core;
drained by `SessionMachine`. Never decides anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from realtime.core.commands import LinkCommand, LocalCommand
from realtime.core.events import SessionEvent
from realtime.core.outbox import Outbox

__all__ = ["Effects"]


class Effects:
    """Where the parts of the machine put what should happen."""

    __slots__ = ("_make_id", "_wall_offset", "events", "local", "now", "outbox")

    def __init__(self, *, make_id: Callable[[], str], wall_offset: float, now: float, outbox: Outbox) -> None:
        """Take the caller's ids and clocks; the core makes neither."""
        self._make_id = make_id
        self._wall_offset = wall_offset
        self.now = now
        self.outbox = outbox
        self.events: deque[SessionEvent] = deque()
        self.local: deque[LocalCommand] = deque()

    @property
    def wall(self) -> float:
        """The present moment for records (`created_at`), in epoch seconds."""
        return self._wall_offset + self.now

    def new_id(self) -> str:
        """A fresh id."""
        return self._make_id()

    def emit(self, event: SessionEvent) -> None:
        """Tell the application."""
        self.events.append(event)

    def do(self, command: LocalCommand) -> None:
        """Tell our own shells."""
        self.local.append(command)

    def send(self, command: LinkCommand) -> None:
        """Tell the provider."""
        self.outbox.put(command)
