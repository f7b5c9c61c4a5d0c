"""The server: a websocket per session, models shared, and an orderly end.

Owns: `LlmServer`. Driven by the command line, or by whoever runs it in their own process. A session's events leave
through one bounded channel: a client that does not read holds back its own replies and nobody else's.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from realtime.errors import ModelError, UserError
from realtime.local.gate import Gate, requested_model, select_subprotocol
from realtime.local.ids import make_id
from realtime.local.metrics import Metrics
from realtime.local.parts import Parts
from realtime.local.session import LocalSession, SessionLimits
from realtime.local.settings import LlmSettings
from realtime.local.workers import FairPool
from realtime.pipelines.channel import Channel, ChannelClosed
from realtime.pipelines.clock import Clock, SystemClock
from realtime.wire.json_fields import dump_message
from realtime.wire.openai_messages import SERVER_FULL, ServerEvent, error_event

__all__ = ["LlmServer"]

OUTBOX_BYTES = 256_000
"""What waits to be sent to one client; then its reply waits."""
PING_SECONDS = 20.0
CLOSE_SECONDS = 1.0

_log = logging.getLogger(__name__)
_wire_log = logging.getLogger("realtime.local.websockets")
_wire_log.setLevel(logging.WARNING)  # it would write down keys and content, and we say who comes and goes


class LlmServer:
    """A running server. Use it as an async context manager."""

    def __init__(
        self,
        settings: LlmSettings,
        parts: Parts,
        pool: FairPool,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Prepare. It does not listen yet.

        Args:
            settings: Where it listens and what it allows.
            parts: What its sessions hear, see, think and speak with.
            pool: Where the parts work.
            clock: The time; None: the system's.
            metrics: Where things are counted; None: a new one.
        """
        self._settings = settings
        self._parts = parts
        self._pool = pool
        self._clock = clock or SystemClock()
        self.metrics = metrics or Metrics()
        """What it counts."""
        self._sessions: dict[ServerConnection, LocalSession] = {}
        self._draining = False
        self._server: Server | None = None
        self._gate = Gate(
            api_key=settings.api_key, origins=settings.origins, health=self._health, metrics=self._metrics_text
        )

    # -- its life ------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            UserError: The address cannot be listened on.
        """
        settings = self._settings
        try:
            self._server = await serve(
                self._serve_client,
                settings.host,
                settings.port,
                process_request=self._gate.check,
                select_subprotocol=select_subprotocol,
                compression=None,
                max_size=settings.max_message_bytes,
                ping_interval=PING_SECONDS,
                ping_timeout=2 * PING_SECONDS,
                close_timeout=CLOSE_SECONDS,
                server_header=None,
                logger=_wire_log,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(f"cannot listen on {settings.host} port {settings.port}: {reason}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take no more clients, let replies end, and close."""
        await self.aclose()

    async def aclose(self) -> None:
        """Take no more clients, let replies under way end (for `drain_seconds`), close what is left, and stop.

        Until replies have ended, clients that come are told so, and `/healthz` says so: whoever sends clients here sends them
        elsewhere.
        """
        server = self._server
        if server is None or self._draining:
            return
        self._draining = True
        try:
            async with asyncio.timeout(self._settings.drain_seconds):
                for session in list(self._sessions.values()):
                    await session.drain()
        except TimeoutError:
            _log.warning("replies were cut: they took longer than %g s to end", self._settings.drain_seconds)
        self._server = None
        server.close(close_connections=False)
        closing = [
            asyncio.get_running_loop().create_task(connection.close(CloseCode.GOING_AWAY, "the server is ending"))
            for connection in server.connections
        ]
        if closing:
            await asyncio.wait(closing)
        await server.wait_closed()
        await self._parts.aclose()

    @property
    def port(self) -> int:
        """The port that it listens on.

        Raises:
            UserError: It does not listen.
        """
        if self._server is None:
            raise UserError("the server does not listen")
        return int(next(iter(self._server.sockets)).getsockname()[1])

    @property
    def url(self) -> str:
        """Where clients connect."""
        host = self._settings.host
        return f"ws://{f'[{host}]' if ':' in host else host}:{self.port}/v1/realtime"

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    # -- one client ----------------------------------------------------------------------------------------------------

    async def _serve_client(self, connection: ServerConnection) -> None:
        if len(self._sessions) >= self._settings.max_sessions or self._draining:
            await self._turn_away(connection)
            return
        outbox: Channel[str] = Channel(OUTBOX_BYTES, "block", weigh=len)

        async def send(event: ServerEvent) -> None:
            await outbox.send(dump_message(event))

        path = connection.request.path if connection.request is not None else ""
        session = LocalSession(
            self._parts,
            self._pool,
            send=send,
            clock=self._clock,
            metrics=self.metrics,
            model=requested_model(path),
            limits=SessionLimits(
                max_seconds=self._settings.session_seconds,
                requests_per_minute=self._settings.requests_per_minute,
                silence_ms=self._settings.silence_ms,
            ),
        )
        self._sessions[connection] = session
        self.metrics.count("sessions")
        _log.info("%s began", session.id)
        try:
            await self._converse(connection, session, outbox)
        finally:
            del self._sessions[connection]
            await session.aclose()
            outbox.close()
            _log.info("%s ended", session.id)

    async def _converse(self, connection: ServerConnection, session: LocalSession, outbox: Channel[str]) -> None:
        """Read and write until the client leaves or the session has lived as long as it may."""
        loop = asyncio.get_running_loop()
        reading = loop.create_task(_read(connection, session))
        writing = loop.create_task(_write(connection, outbox))
        expiring = loop.create_task(session.expired.wait())
        tasks = {reading, writing, expiring}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if expiring.done():
                reading.cancel()
                outbox.close()
                await asyncio.wait({writing}, timeout=CLOSE_SECONDS)
                await connection.close(CloseCode.GOING_AWAY, "session expired")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _turn_away(self, connection: ServerConnection) -> None:
        self.metrics.count("turned_away")
        why = "is ending" if self._draining else f"is full: it holds {self._settings.max_sessions} sessions"
        error = ModelError(f"The server {why}. Try again later.", code=SERVER_FULL)
        try:
            await connection.send(dump_message(error_event(make_id("event_"), error)))
        except ConnectionClosed:
            return
        await connection.close(CloseCode.TRY_AGAIN_LATER, "server full")

    # -- what it says of itself ----------------------------------------------------------------------------------------

    def _health(self) -> tuple[bool, dict[str, object]]:
        state = "draining" if self._draining else "ok"
        facts: dict[str, object] = {
            "status": state,
            "sessions": len(self._sessions),
            "max_sessions": self._settings.max_sessions,
            "model": self._parts.responder.name,
        }
        return not self._draining, facts

    def _metrics_text(self) -> str:
        pool = self._pool.statistics()
        return self.metrics.text(
            {
                "sessions_open": len(self._sessions),
                "sessions_max": self._settings.max_sessions,
                "work_running": pool.busy,
                "work_waiting": pool.waiting,
            }
        )


async def _read(connection: ServerConnection, session: LocalSession) -> None:
    """Hand every wire message to the session, in order."""
    await session.open()
    try:
        async for message in connection:
            await session.receive(message)
    except (ConnectionClosed, ChannelClosed):
        return


async def _write(connection: ServerConnection, outbox: Channel[str]) -> None:
    """Send what the session says, as fast as the client reads."""
    try:
        while True:
            await connection.send(await outbox.receive())
    except (ConnectionClosed, ChannelClosed):
        return
