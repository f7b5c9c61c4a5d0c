"""The session's line to the provider, over successive connections.

Owns: the connection, its two loops (what the provider says goes to the machine, what the machine wants goes to the
provider), coming back after a drop, and the change to another model (behaviour.md L1–L6). Where the provider can take its
conversation up again by itself it is asked to; where it will not, it is told it again. Driven by the socket, by `Driver`
(which wakes it) and by the clock. All events of one wire message are applied before the application sees any. It never
decides what to say, and never reads what it carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from realtime.chat.messages import ImageContent
from realtime.core.commands import AppendAudio, ConfigureSession, CreateItem, LinkCommand
from realtime.core.events import ErrorReported
from realtime.core.machine import SessionMachine
from realtime.core.model_events import ExpiryAnnounced, ItemAdded, ModelEvent, ModelFault, SessionUpdated
from realtime.core.settings import ReconnectPolicy
from realtime.errors import LinkLost, ModelError, RealtimeError, UserError
from realtime.pipelines.backoff import Backoff
from realtime.pipelines.clock import Clock, Deadline
from realtime.pipelines.closing import is_cancelled, most_telling
from realtime.pipelines.connection import Connection, LinkModel, open_connection, refusal_of
from realtime.pipelines.driver import Driver
from realtime.pipelines.renewal import renew_in_time
from realtime.pipelines.sound_line import SoundLine
from realtime.transports.websocket import MESSAGE_TOO_LARGE, PromptTransport
from realtime.wire.base import ReconfigurationError, Resumption

__all__ = ["MAX_WAITING_CONTROL", "Link"]

MAX_WAITING_CONTROL = 1_000
"""Control commands that may wait for the socket; beyond, the connection is given up and made anew."""
_BREATH_EVERY = 16
"""Wire messages read without waiting, after which other tasks get a turn."""
_CLOSE_TOO_BIG = 1009
_SUSPECT_BYTES = 32_768
"""A smaller message is over nobody's limit: a close with 1009 was not because of it."""

logger = logging.getLogger(__name__)


class Link:
    """Keeps a session connected until it is closed."""

    def __init__(
        self,
        model: LinkModel,
        driver: Driver,
        clock: Clock,
        policy: ReconnectPolicy,
        *,
        shrink: Callable[[ImageContent, int], Awaitable[ImageContent]],
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            model: Whom to connect to.
            driver: The way to the machine.
            clock: For back-off, deadlines and renewal.
            policy: What to do after a drop.
            shrink: Encodes a picture again, within so many bytes.
        """
        self._model = model
        self._driver = driver
        self._clock = clock
        self._policy = policy
        self._shrink = shrink
        self._connection: Connection | None = None
        self._prepared: Connection | None = None
        self._wake = asyncio.Event()
        self._overflow = asyncio.Event()
        self._closing = False

    def wake(self) -> None:
        """The machine has something for the provider."""
        self._driver.sound_line = None  # the writer goes first
        self._wake.set()
        if self._driver.machine.control_waiting > MAX_WAITING_CONTROL:
            self._overflow.set()

    @property
    def connected(self) -> bool:
        """Whether a connection is up."""
        return self._connection is not None

    async def prepare(self, model: LinkModel, configure: Callable[[], ConfigureSession]) -> Connection:
        """Open a connection to another model beside the present one, for `switch` to take.

        Args:
            model: Whom to connect to.
            configure: What it is told first.

        Returns:
            It, for `abandon`.

        Raises:
            ModelError, UserError: It refused; everything is as before.
            LinkLost: It could not be reached; everything is as before.
        """
        patience = max(self._policy.connect_timeout_seconds, model.open_timeout_seconds)
        prepared = await open_connection(model, self._clock, patience, configure=configure, in_advance=True)
        if self._closing:
            await self._hang_up(prepared)
            raise LinkLost("the session has ended")
        earlier, self._prepared = self._prepared, prepared
        try:
            await self._hang_up(earlier)
        except BaseException:
            await self.abandon(prepared)
            raise
        return prepared

    async def abandon(self, prepared: Connection) -> None:
        """Let a connection go that was prepared, unless it has been taken."""
        if self._prepared is prepared:
            self._prepared = None
            await self._hang_up(prepared)

    def switch(self, model: LinkModel) -> None:
        """Talk with another model from now on: over the connection that was prepared for it, or over a new one."""
        self._model = model
        connection = self._connection
        if connection is not None:
            connection.follower = self._take_prepared() or connection.follower
            connection.is_outdated = True
            self.wake()

    def _take_prepared(self) -> Connection | None:
        """The connection that was prepared for the present model, if there is one."""
        prepared = self._prepared
        if prepared is None or prepared.model is not self._model:
            return None
        self._prepared = None
        return prepared

    async def run(self, opened: asyncio.Future[None]) -> None:
        """Connect, and stay connected until `aclose`, a fault that cannot be mended, or the end of the policy's patience.

        Args:
            opened: Settled when the first connection is configured, or with what prevented it.
        """
        try:
            connection = await self._connect()
        except RealtimeError as error:
            _fail(opened, error)
            return
        backoff = Backoff(self._policy, self._clock)
        old: Connection | None = None
        while True:
            end = await self._serve(connection, opened, old)
            self._connection = None
            follower = connection.follower
            if follower is not None and follower.model is not self._model:
                await self._hang_up(follower)  # renewed in the very moment in which another model was wanted
                follower = self._take_prepared()
            if self._closing or self._driver.closed or not opened.done():
                _fail(opened, end)
                await self._hang_up(connection, follower)
                return
            if isinstance(end, LinkLost) and end.code == _CLOSE_TOO_BIG:
                self._blame_last_item(connection, end)
            if follower is not None:
                self._tell_lost(_reason(end), will_retry=True)
            else:
                await self._hang_up(connection)
                follower = await self._come_back(connection, end, backoff)
            if follower is None:
                return
            connection, old = follower, connection

    async def aclose(self) -> None:
        """Hang up, within the transport's second. Idempotent. `run` ends by it, unless it is connecting: cancel it then."""
        self._closing = True
        connection = self._connection
        await self._hang_up(connection, self._prepared, None if connection is None else connection.follower)

    async def _hang_up(self, *connections: Connection | None) -> None:
        for connection in connections:
            if connection is not None:
                with contextlib.suppress(OSError):  # gone already
                    await connection.transport.aclose()

    # -- connecting -----------------------------------------------------------------------------------------------------

    async def _connect(self, earlier: Resumption | None = None) -> Connection:
        patience = max(self._policy.connect_timeout_seconds, self._model.open_timeout_seconds)
        configure = self._driver.machine.configuration
        return await open_connection(self._model, self._clock, patience, earlier=earlier, configure=configure)

    async def _come_back(self, lost: Connection, end: RealtimeError, backoff: Backoff) -> Connection | None:
        """After a drop: connections are tried until one opens or the policy says that it is enough."""
        if not self._policy.enabled or (isinstance(end, ModelError) and end.fatal):
            self._give_up(end)
            return None
        backoff.lost(lost.opened_at)
        self._tell_lost(_reason(end), will_retry=True, silent_seconds=getattr(end, "silent_seconds", None))
        while not self._closing and not self._driver.closed:
            if not await backoff.wait():
                self._give_up(end)
                return None
            if (prepared := self._take_prepared()) is not None:
                return prepared
            is_same = lost.model is self._model
            try:
                connection = await self._connect(lost.resumption() if is_same else None)
                if connection.model is self._model:
                    return connection
                await self._hang_up(connection)  # another one was wanted meanwhile
            except (ModelError, UserError) as error:
                self._give_up(error)
                return None
            except RealtimeError as error:
                end = error
                logger.info("the provider could not be reached again: %s", _reason(end))
        return None

    def _tell_lost(
        self,
        reason: str,
        *,
        will_retry: bool,
        error: RealtimeError | None = None,
        silent_seconds: float | None = None,
    ) -> None:
        self._driver.feed(
            lambda machine, now: machine.receive_link_lost(
                reason, will_retry=will_retry, error=error, silent_seconds=silent_seconds, now=now
            ),
            where="link",
        )

    def _give_up(self, error: RealtimeError) -> None:
        self._tell_lost(_reason(error), will_retry=False, error=error)

    # -- one connection -------------------------------------------------------------------------------------------------

    async def _serve(
        self, connection: Connection, opened: asyncio.Future[None], old: Connection | None
    ) -> RealtimeError:
        """Run a connection until it ends, and let the one before it go. Returns why it ended."""
        self._connection = connection
        self._driver.feed(lambda machine, now: _greet(machine, connection, now), where="link")
        connection.bridge(self._driver.machine.capabilities)
        connection.greeting.clear()
        end: RealtimeError = LinkLost("the connection was let go")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_told(self._read(connection)), name="realtime link reader")
                group.create_task(_told(self._write(connection)), name="realtime link writer")
                group.create_task(self._confirm(connection, opened), name="realtime link handshake")
                group.create_task(self._watch_depth(), name="realtime link depth")
                group.create_task(self._hang_up(old), name="realtime link hang-up")
        except* (RealtimeError, OSError) as errors:
            end = most_telling(errors)
        # Whoever keeps the error (an event, a transport) must not keep our frames, and with them the session.
        return end.with_traceback(None)

    async def _confirm(self, connection: Connection, opened: asyncio.Future[None]) -> None:
        """Wait until the provider has accepted our configuration, then watch over the connection's lifetime."""
        try:
            async with Deadline(self._clock, self._clock.now() + self._policy.connect_timeout_seconds):
                await connection.configured.wait()
        except TimeoutError:
            raise LinkLost("the provider did not answer the session's configuration") from None
        if connection.refusal is not None:
            raise connection.refusal
        if not opened.done():
            opened.set_result(None)
        await renew_in_time(
            connection,
            clock=self._clock,
            is_quiet=self._is_quiet,
            connect=self._connect,
            retry_seconds=self._policy.first_delay_seconds,
        )

    async def _read(self, connection: Connection) -> None:  # hot path: every wire message
        receive, decode = connection.transport.receive, connection.wire.decode
        streak = 0
        while True:
            data = await receive()
            try:
                events = decode(data)
            except ModelError as error:
                self._driver.publish(ErrorReported(error=error, where="model"))
                continue
            events = connection.rates.incoming(events)
            if events:
                self._take_in(connection, events)
            streak += 1
            if streak == _BREATH_EVERY:
                streak = 0
                await asyncio.sleep(0)

    def _take_in(self, connection: Connection, events: list[ModelEvent]) -> None:
        faults: list[RealtimeError] = []
        self._driver.feed(lambda machine, now: _apply(machine, events, now, faults), where="model")
        for fault in faults:
            self._driver.publish(ErrorReported(error=fault, where="model"))
        for event in events:
            if isinstance(event, SessionUpdated):
                connection.configured.set()
            elif isinstance(event, ItemAdded):
                connection.acknowledge(event.item_id)
            elif isinstance(event, ExpiryAnnounced):
                connection.ends_in(event.seconds_left, now=self._clock.now(), announced=True)
            elif isinstance(event, ModelFault):
                if not connection.configured.is_set():
                    connection.refusal = refusal_of(event)
                    connection.configured.set()
                elif event.fatal:
                    raise LinkLost(event.message or event.code)

    async def _write(self, connection: Connection) -> None:  # hot path: every wire message
        driver, wake = self._driver, self._wake
        line = self._make_line(connection)
        try:
            while True:
                wake.clear()
                while (command := driver.next_link_command()) is not None:
                    await self._send(connection, command)
                if connection.is_outdated:
                    raise LinkLost("the session goes on with another model")
                if line is not None and line.fault is not None:
                    raise line.fault
                if not wake.is_set():
                    driver.sound_line = line
                await wake.wait()
        finally:
            driver.sound_line = None

    def _make_line(self, connection: Connection) -> SoundLine | None:
        transport = connection.transport
        if not isinstance(transport, PromptTransport):
            return None
        return SoundLine(connection, transport, refused=self._refuse, broken=self.wake)

    async def _watch_depth(self) -> None:
        """A socket that takes nothing while control messages pile up is as good as gone, whatever it says."""
        self._overflow.clear()
        await self._overflow.wait()
        raise LinkLost(f"more than {MAX_WAITING_CONTROL} control messages waited for a socket that takes none")

    async def _send(self, connection: Connection, command: LinkCommand) -> None:
        try:
            await self._put(connection, command)
        except ReconfigurationError as error:
            connection.follower = await self._connect(connection.resumption())
            raise LinkLost(f"made anew: {error}") from None
        except (UserError, ModelError) as error:
            self._refuse(command.command_id, error)
        else:
            if not isinstance(command, AppendAudio):  # which counts as sent
                self._driver.feed(
                    lambda machine, now: machine.receive_command_done(command.command_id, now=now), where="link"
                )

    def _refuse(self, command_id: str, error: RealtimeError) -> None:
        self._driver.feed(lambda machine, now: machine.receive_command_failed(command_id, error, now=now), where="link")

    async def _put(self, connection: Connection, command: LinkCommand) -> None:
        messages = connection.encode(command)
        if isinstance(command, CreateItem) and sum(map(len, messages)) >= _SUSPECT_BYTES:
            connection.last_item = command
        try:
            for data in messages:
                await connection.transport.send(data)
        except ModelError as error:
            if error.code != MESSAGE_TOO_LARGE or not isinstance(command, CreateItem) or not command.message.images:
                raise
            smaller = await self._shrunk(connection, command)
            for data in connection.wire.encode(smaller):
                await connection.transport.send(data)

    async def _shrunk(self, connection: Connection, command: CreateItem) -> CreateItem:
        """L5: the same item with its pictures small enough for the provider."""
        images = command.message.images
        room = connection.model.capabilities.max_message_bytes * 7 // 10 // len(images)
        smaller = tuple([await self._shrink(image, room) for image in images])
        return replace(command, message=replace(command.message, images=smaller))

    def _blame_last_item(self, connection: Connection, error: LinkLost) -> None:
        """Close code 1009: the large item that was sent last, and not acknowledged, is not sent again (field case B39)."""
        item = connection.last_item
        if item is None:
            return
        fault = ModelError("the provider closed the connection on a message over its limit", code=MESSAGE_TOO_LARGE)
        fault.__cause__ = error
        self._refuse(item.command_id, fault)

    def _is_quiet(self) -> bool:
        machine = self._driver.machine
        return not machine.is_busy and not machine.pending


def _greet(machine: SessionMachine, connection: Connection, now: float) -> None:
    for event in connection.greeting:
        machine.receive_model_event(event, now=now)
    capabilities = connection.model.capabilities
    changed = None if capabilities == machine.published else capabilities
    machine.receive_link_restored(state_restored=connection.is_resumed, capabilities=changed, now=now)


def _apply(machine: SessionMachine, events: list[ModelEvent], now: float, faults: list[RealtimeError]) -> None:
    for event in events:
        try:
            machine.receive_model_event(event, now=now)
        except RealtimeError as error:  # one report that cannot be is no reason to lose those behind it
            faults.append(error)


async def _told(work: Coroutine[Any, Any, None]) -> None:
    """What a transport waits for and somebody cancels is a connection that was lost: a task group would not say so."""
    try:
        await work
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise LinkLost("what the connection waited for was cancelled") from None


def _reason(error: BaseException) -> str:
    return error.reason if isinstance(error, LinkLost) else str(error)


def _fail(opened: asyncio.Future[None], error: BaseException) -> None:
    if not opened.done():
        opened.set_exception(error)
