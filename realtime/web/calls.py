"""All calls of one server: how many, which, until when.

Owns: `Calls`: making a call, finding it again, ending all of them. Driven by every way into the room and by the server's
end. It knows no socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from realtime.errors import RealtimeError, UserError
from realtime.pipelines.clock import Clock
from realtime.pipelines.setup import check_type
from realtime.session import RealtimeSession
from realtime.web.call import Call
from realtime.web.downloads import Downloads
from realtime.web.errors import CallRefused, session_refusal
from realtime.web.guard import is_same
from realtime.web.ice import IceServer, IceServers, resolve_ice_servers
from realtime.web.options import CallRequest, SessionFactory, WebLimits

__all__ = ["Calls"]

_DRAIN_SECONDS = 30.0
_BEGINNING_SECONDS = 3.0
"""How long the end waits for session factories that have not answered; their calls are refused then."""

logger = logging.getLogger(__name__)


class Calls(Mapping[str, Call]):
    """The calls in progress, by id."""

    def __init__(
        self,
        factory: SessionFactory,
        *,
        ice_servers: IceServers | None,
        limits: WebLimits,
        clock: Clock,
        record_folder: Path | None = None,
    ) -> None:
        """No call yet; see `realtime.web.app`."""
        self._factory = factory
        self._ice_servers = ice_servers
        self._record_folder = record_folder
        self._limits = limits
        self._clock = clock
        self._calls: dict[str, Call] = {}
        self._beginning: list[str] = []
        """The addresses of callers whose sessions are being made."""
        self._ended: OrderedDict[str, tuple[str, Downloads]] = OrderedDict()
        """Keys and files of calls that have just ended."""
        self._draining = False
        self._empty = asyncio.Event()

    def __getitem__(self, call_id: str) -> Call:
        """A call in progress."""
        return self._calls[call_id]

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._calls)

    def __len__(self) -> int:
        """How many."""
        return len(self._calls)

    @property
    def draining(self) -> bool:
        """Whether no new call is taken."""
        return self._draining

    async def open(self, request: CallRequest, *, base_path: str) -> Call:
        """Make a session and begin it.

        Raises:
            CallRefused: There are too many, the application refuses, or the session cannot begin.
        """
        self._check_draining()
        self._check_room(request.address)
        self._beginning.append(request.address)
        try:
            servers = await self.find_servers(request.address)
            session = await self._make(request)
            if self._draining:
                await session.aclose()
            self._check_draining()
            call = Call(
                session,
                request,
                ice_servers=servers,
                find_servers=self.find_servers,
                limits=self._limits,
                clock=self._clock,
                base_path=base_path,
                record_folder=self._record_folder,
                on_end=self._forget,
            )
            self._calls[call.id] = call
        finally:
            self._beginning.remove(request.address)
            self._empty.set()
        logger.info("call %s begins (%d in progress)", call.id, len(self._calls))
        await call.begin()
        return call

    def _check_room(self, address: str) -> None:
        most = self._limits.max_sessions_per_address
        if len(self._calls) + len(self._beginning) >= self._limits.max_sessions:
            raise CallRefused("full", "all lines are taken; call again soon", retry_seconds=10)
        same = [call for call in self._calls.values() if call.request.address == address]
        if most is not None and len(same) + self._beginning.count(address) >= most:
            raise CallRefused("full", "this address has as many calls as it may; end one first", retry_seconds=10)

    def _check_draining(self) -> None:
        if self._draining:
            raise CallRefused("draining", "the server is about to end; call again soon", retry_seconds=10)

    async def find_servers(self, address: str) -> tuple[IceServer, ...]:
        """The STUN and TURN servers for a caller of this address, now.

        Raises:
            CallRefused: `session_failed`: they could not be found out.
        """
        try:
            return await resolve_ice_servers(self._ice_servers, address)
        except Exception as error:
            logger.exception("the STUN and TURN servers could not be found out")
            raise CallRefused("session_failed", "the STUN and TURN servers could not be found out") from error

    async def _make(self, request: CallRequest) -> RealtimeSession:
        try:
            made = self._factory(request)
            session = await made if inspect.isawaitable(made) else made
            check_type("session_factory", session, RealtimeSession, "a function that gives a RealtimeSession")
            return session
        except CallRefused:
            raise
        except UserError as error:
            raise CallRefused("refused", str(error)) from error
        except RealtimeError as error:
            raise session_refusal(error) from error
        except Exception as error:
            logger.exception("the session factory failed")
            raise CallRefused("session_failed", "the session could not be made") from error

    def find(self, call_id: object, secret: object) -> Call:
        """A call in progress, for who knows its secret (in constant time).

        Raises:
            CallRefused: `gone`: there is no such call, or the secret is another.
        """
        call = self._calls.get(call_id) if isinstance(call_id, str) else None
        right = is_same(secret if isinstance(secret, str) else "", call.secret if call is not None else "-")
        if call is None or not right or call.over:
            raise CallRefused("gone", "there is no such call any more")
        return call

    def with_key(self, call_id: str, key: str) -> Call | None:
        """A call in progress, for who knows the key of its pictures and files."""
        call = self._calls.get(call_id)
        right = is_same(key, call.key if call is not None else "-")
        return call if right else None

    def find_downloads(self, call_id: str, key: str) -> Downloads | None:
        """The files of a call in progress or of one that has just ended, for who knows their key."""
        call = self._calls.get(call_id)
        right, found = (call.key, call.downloads) if call is not None else self._ended.get(call_id, ("-", None))
        return found if is_same(key, right) else None

    def _forget(self, call: Call) -> None:
        if self._calls.pop(call.id, None) is not None and call.session.begun:
            call_id = call.id
            self._ended[call_id] = (call.key, call.downloads)
            self._clock.call_at(self._clock.now() + self._limits.grace_seconds, lambda: self._ended.pop(call_id, None))
            while len(self._ended) > self._limits.max_sessions:
                self._ended.popitem(last=False)
        logger.info("call %s is over (%s; %d in progress)", call.id, call.reason, len(self._calls))
        self._empty.set()

    async def drain(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Take no new calls, tell those in progress, wait for their ends, then end the rest.

        Args:
            seconds: How long calls may go on.
        """
        self._draining = True
        for call in list(self._calls.values()):
            call.tell({"type": "draining", "seconds": seconds})
        deadline = self._clock.now() + seconds
        while (self._calls or self._beginning) and self._clock.now() < deadline:
            self._empty.clear()
            timer = self._clock.call_at(deadline, self._empty.set)
            try:
                await self._empty.wait()
            finally:
                timer.cancel()
        await self.aclose()

    async def aclose(self) -> None:
        """End every call and take no new one. Within a few seconds; idempotent."""
        self._draining = True
        await asyncio.gather(*(call.aclose("server_ended") for call in list(self._calls.values())))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BEGINNING_SECONDS):
                while self._beginning:
                    self._empty.clear()
                    await self._empty.wait()
