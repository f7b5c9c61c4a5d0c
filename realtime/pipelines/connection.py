"""One connection to a provider: opened, greeted, and what is remembered of it.

Owns: `Connection`, and `open_connection`, one attempt. Driven by `pipelines/link.py`, which runs it. It never tries twice
and never feeds the machine.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CreateItem
from realtime.core.model_events import ModelEvent, ModelFault, SessionReady
from realtime.errors import LinkLost, ModelError
from realtime.pipelines.clock import Clock, Deadline
from realtime.transports.websocket import Transport
from realtime.wire.base import WireFormat

__all__ = ["Connection", "LinkModel", "open_connection", "refusal_of"]


class LinkModel(Protocol):
    """What the link needs of a model (`realtime.models.base.RealtimeModel`)."""

    capabilities: ModelCapabilities
    open_timeout_seconds: float

    def make_wire(self, *, wall: float | None = None) -> WireFormat:
        """The wire format of one connection."""
        ...

    async def open(self) -> Transport:
        """Connect."""
        ...


class Connection:
    """One socket, its wire format and what it said first."""

    def __init__(self, transport: Transport, wire: WireFormat) -> None:
        self.transport = transport
        self.wire = wire
        self.greeting: list[ModelEvent] = []
        self.expires_at: float | None = None
        self.opened_at = 0.0
        self.configured = asyncio.Event()
        self.refusal: ModelError | None = None
        self.last_item: CreateItem | None = None
        self.follower: Connection | None = None
        """The connection that takes over from this one, open already."""
        self.is_outdated = False
        """The session has moved to another model."""


async def open_connection(model: LinkModel, clock: Clock, patience_seconds: float) -> Connection:
    """One attempt: open, and read until the provider has opened its session.

    Raises:
        ModelError, UserError: Refused for good.
        LinkLost: Not reached, or not answered in time.
    """
    try:
        async with Deadline(clock, clock.now() + patience_seconds):
            transport = await model.open()
            try:
                connection = Connection(transport, model.make_wire(wall=clock.wall()))
                ready = await _read_greeting(connection)
            except BaseException:
                await transport.aclose()
                raise
    except TimeoutError:
        raise LinkLost(f"the provider did not open a session within {patience_seconds:g} s") from None
    connection.opened_at = clock.now()
    lives = [ready.expires_in_seconds, model.capabilities.max_session_seconds]
    known = [seconds for seconds in lives if seconds is not None]
    connection.expires_at = connection.opened_at + min(known) if known else None
    return connection


async def _read_greeting(connection: Connection) -> SessionReady:
    ready: SessionReady | None = None
    while ready is None:
        events = connection.wire.decode(await connection.transport.receive())
        for event in events:
            if isinstance(event, ModelFault):
                raise refusal_of(event)
            if isinstance(event, SessionReady):
                ready = event
        connection.greeting += events
    return ready


def refusal_of(fault: ModelFault) -> ModelError:
    """The provider's words as an error that ends the session: in a handshake every fault does."""
    return ModelError(
        fault.message or "the provider refused the session", code=fault.code, param=fault.param, fatal=True
    )
