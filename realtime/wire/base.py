"""What every wire format is: a pure pair of functions between a provider's wire messages and the core's vocabulary.

Owns: the protocol `WireFormat` and its counters `WireStatistics`; `ResumableWire` and `Resumption` for providers that take a
dropped conversation up again. `item_count`, which the core and every format agree on, is the core's. A format is driven
by `pipelines/link.py`; one instance serves one connection and remembers what that connection said (half samples, which
call was reported). It never opens a socket, reads a clock or waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from realtime.core.commands import LinkCommand
from realtime.core.model_events import ModelEvent
from realtime.core.seeding import item_count
from realtime.errors import UserError

__all__ = [
    "ReconfigurationError",
    "ResumableWire",
    "Resumption",
    "UnknownCounter",
    "WireFormat",
    "WireStatistics",
    "item_count",
]


class ReconfigurationError(UserError):
    """A command that the provider takes only on a new connection: the link makes one, and tells it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """What a provider needs to take its conversation up again on another connection."""

    handle: str
    """The provider's. A secret: whoever has it has the conversation. Never logged."""
    state: object = None
    """What the next connection's wire format goes on with; only the format itself looks at it."""

    def __repr__(self) -> str:
        """Without the handle."""
        return "Resumption(handle=…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStatistics:
    """What one connection's wire format has seen."""

    encoded: int = 0
    """Wire messages made for the provider."""
    decoded: int = 0
    """Wire messages of the provider read."""
    malformed: int = 0
    """… of which could not be read, or lacked what they must have."""
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    """… of which this version does not know the type, by type (the first 64 types; the rest under an empty name)."""


@runtime_checkable
class WireFormat(Protocol):
    """One provider protocol, for one connection."""

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages, to be sent in order; an empty list if the provider needs none.

        Raises:
            UserError: What the command holds cannot be put in this protocol. Nothing was changed.
        """
        ...

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        """Read one wire message: everything that it reports, in order.

        A message that cannot be read gives a `ModelFault`, an unknown one an `UnknownReport`.

        Raises:
            ModelError: At most this.
        """
        ...

    def statistics(self) -> WireStatistics:
        """What was encoded and decoded so far."""
        ...


@runtime_checkable
class ResumableWire(WireFormat, Protocol):
    """A protocol whose provider takes a dropped conversation up again by itself."""

    def resumption(self) -> Resumption | None:
        """What it needs for that, as things are now; None if it cannot."""
        ...


class UnknownCounter:
    """Counts wire messages of unknown types, for a bounded number of types."""

    def __init__(self, max_types: int = 64) -> None:
        """Count at most `max_types` types by name, the rest together."""
        self._max_types = max_types
        self._counts: dict[str, int] = {}

    def add(self, type_name: str) -> None:
        """Count one wire message."""
        name = type_name[:80]
        if name not in self._counts and len(self._counts) >= self._max_types:
            name = ""
        self._counts[name] = self._counts.get(name, 0) + 1

    def counts(self) -> dict[str, int]:
        """How many of each type, as a copy."""
        return dict(self._counts)
