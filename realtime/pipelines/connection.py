"""One connection to a provider: opened, greeted, perhaps resumed, and what is remembered of it.

Owns: `Connection`, and `open_connection`, one attempt. Driven by `pipelines/link.py`, which runs it. It never tries twice
and never feeds the machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import ConfigureSession, CreateItem, LinkCommand
from realtime.core.model_events import ExpiryAnnounced, ModelEvent, ModelFault, SessionReady, SessionUpdated
from realtime.errors import LinkLost, ModelError
from realtime.pipelines.clock import Clock, Deadline
from realtime.pipelines.closing import as_lost, is_cancelled
from realtime.pipelines.rates import RateBridge
from realtime.transports.websocket import Transport
from realtime.wire.base import ResumableWire, Resumption, WireFormat

__all__ = ["Connection", "LinkModel", "ResumableModel", "open_connection", "refusal_of"]

logger = logging.getLogger(__name__)


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


@runtime_checkable
class ResumableModel(Protocol):
    """A model whose provider takes a dropped conversation up again by itself."""

    async def resume(self, resumption: Resumption, *, wall: float | None = None) -> tuple[Transport, WireFormat]:
        """Connect to where the conversation is, with a wire format that goes on with it.

        Raises:
            ModelError: The provider refused.
            LinkLost: It could not be reached.
        """
        ...


class Connection:
    """One socket, its wire format and what it said first."""

    def __init__(self, transport: Transport, wire: WireFormat, model: LinkModel) -> None:
        self.transport = transport
        self.wire = wire
        self.model = model
        self.rates = RateBridge(model.capabilities, model.capabilities)
        """Between the session's sample rates and the model's."""
        self.greeting: list[ModelEvent] = []
        self.expires_at: float | None = None
        self.opened_at = 0.0
        self.configured = asyncio.Event()
        self.refusal: ModelError | None = None
        self.last_item: CreateItem | None = None
        """The last large item that was sent and not acknowledged."""
        self.follower: Connection | None = None
        """The connection that takes over from this one, open already."""
        self.is_outdated = False
        """The session has moved to another model."""
        self.is_resumed = False
        """The provider has taken the earlier conversation up again: it is configured, and need not be told."""
        self.is_leaving = False
        """The provider has announced the end: the next quiet moment will do, however near or far it is."""
        self.expiry_moved = asyncio.Event()

    def bridge(self, session: ModelCapabilities) -> None:
        """Convert between the model's sample rates and those of the session, which it keeps."""
        self.rates = RateBridge(session, self.model.capabilities)

    def encode(self, command: LinkCommand) -> list[str | bytes]:  # hot path: every wire message
        """A command as wire messages, at the model's rates.

        Raises:
            UserError: The protocol has no place for it.
        """
        if self.rates.takes_as_is:
            return self.wire.encode(command)
        return [data for each in self.rates.outgoing(command) for data in self.wire.encode(each)]

    def ends_in(self, seconds: float, *, now: float, announced: bool = False) -> None:
        """The provider said how long it will keep the connection; an earlier end that it gave before stands."""
        end = now + max(0.0, seconds)
        self.is_leaving = self.is_leaving or announced
        if self.expires_at is None or end < self.expires_at:
            self.expires_at = end
        self.expiry_moved.set()

    def acknowledge(self, item_id: str) -> None:
        """The provider has an item."""
        if self.last_item is not None and item_id in self.last_item.item_ids:
            self.last_item = None

    def resumption(self) -> Resumption | None:
        """What the provider needs to take its conversation up again elsewhere, if it can."""
        return self.wire.resumption() if isinstance(self.wire, ResumableWire) else None


async def open_connection(
    model: LinkModel,
    clock: Clock,
    patience_seconds: float,
    *,
    earlier: Resumption | None = None,
    configure: Callable[[], ConfigureSession],
    in_advance: bool = False,
) -> Connection:
    """One attempt: open, and read until the provider has opened its session.

    Args:
        model: Whom to connect to.
        clock: What patience is measured by.
        patience_seconds: How long the attempt may take.
        earlier: The conversation to take up again; if the provider will not, the connection is a fresh one.
        configure: What a resumed connection is told before the provider says whether it resumes.
        in_advance: Tell a fresh connection the same and wait until the provider has accepted it.

    Raises:
        ModelError, UserError: Refused for good.
        LinkLost: Not reached, or not answered in time.
    """
    connection: Connection | None = None
    try:
        async with Deadline(clock, clock.now() + patience_seconds):
            if earlier is not None and isinstance(model, ResumableModel):
                connection = await _resume(model, clock, earlier, configure)
            if connection is None:
                transport = await model.open()
                try:
                    connection = Connection(transport, model.make_wire(wall=clock.wall()), model)
                    await _read_greeting(connection)
                    if in_advance:
                        await _configure(connection, configure())
                except BaseException:
                    await transport.aclose()
                    raise
    except TimeoutError:
        raise LinkLost(f"the provider did not open a session within {patience_seconds:g} s") from None
    except OSError as error:
        raise as_lost(error) from error
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise LinkLost("what opens the connection was cancelled") from None
    _date(connection, model.capabilities, clock.now())
    return connection


def _date(connection: Connection, capabilities: ModelCapabilities, now: float) -> None:
    """Note when the connection was opened, and when it will end by all that is known."""
    connection.opened_at = now
    if capabilities.max_session_seconds is not None:
        connection.ends_in(capabilities.max_session_seconds, now=now)
    for event in connection.greeting:
        if isinstance(event, SessionReady) and event.expires_in_seconds is not None:
            connection.ends_in(event.expires_in_seconds, now=now)
        elif isinstance(event, ExpiryAnnounced):
            connection.ends_in(event.seconds_left, now=now, announced=True)


async def _configure(connection: Connection, command: ConfigureSession) -> None:
    """Say whom the provider shall be, and read until it has accepted that.

    Raises:
        ModelError: It refused.
    """
    for data in connection.wire.encode(command):
        await connection.transport.send(data)
    while not connection.configured.is_set():
        connection.greeting += await _read_answer(connection)


async def _resume(
    model: LinkModel, clock: Clock, earlier: Resumption, configure: Callable[[], ConfigureSession]
) -> Connection | None:
    """Connect to an earlier conversation; None if the provider will not have it.

    Raises:
        LinkLost: The provider could not be reached; the conversation may still be there at the next attempt.
    """
    assert isinstance(model, ResumableModel)
    try:
        transport, wire = await model.resume(earlier, wall=clock.wall())
    except ModelError as error:
        logger.info("the provider did not take the conversation up again: %s", error)
        return None
    connection = Connection(transport, wire, model)
    try:
        await _read_greeting(connection)
        await _configure(connection, configure())
    except (ModelError, LinkLost) as error:
        logger.info("the provider did not take the conversation up again: %s", error)
        await transport.aclose()
        return None
    except BaseException:
        await transport.aclose()
        raise
    return connection


async def _read_answer(connection: Connection) -> list[ModelEvent]:
    """Read one message of a provider that was told whom to be.

    Raises:
        ModelError: It refused.
    """
    events = connection.wire.decode(await connection.transport.receive())
    for event in events:
        if isinstance(event, ModelFault):
            raise refusal_of(event)
        if isinstance(event, SessionUpdated):
            connection.is_resumed = event.resumed
            connection.configured.set()
    return events


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
