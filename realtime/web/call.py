"""One call: one session, whoever listens to it, and the peer connections that it has one after another.

Owns: `Call`: the session's task, its event pump, its peer, its time limits and its end. Driven by `realtime.web.calls` and
by every way into the room (`signalling`, `simple`, `whip`). It decides when a call is over; what is said is the session's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from realtime.core.events import (
    MessageCommitted,
    ReplyStarted,
    SessionEnded,
    SessionEvent,
    SpeechStarted,
    SpeechStopped,
)
from realtime.errors import RealtimeError, SessionClosed
from realtime.pipelines.clock import Clock, Deadline
from realtime.session import RealtimeSession
from realtime.web.controls import Controls
from realtime.web.downloads import Downloads
from realtime.web.errors import CallRefused, RefusalCode, session_refusal
from realtime.web.events import event_to_dict
from realtime.web.guard import is_same
from realtime.web.history import History
from realtime.web.ice import IceServer, is_loopback
from realtime.web.inspector import Inspector
from realtime.web.lifetime import Lifetime
from realtime.web.listener import Listener
from realtime.web.options import CallRequest, WebLimits
from realtime.web.peer import Peer
from realtime.web.sender_hints import SenderHints

__all__ = ["Call"]

_BEGIN_SECONDS = 90.0
"""How long a session may take to begin: a local model may have to be loaded first."""
_SERVERS_FRESH_SECONDS = 60.0
"""A page offers right after its welcome: the servers need not be asked for twice."""
_HEARD_SECONDS = 0.2

logger = logging.getLogger(__name__)


class Call:
    """A call in progress."""

    def __init__(
        self,
        session: RealtimeSession,
        request: CallRequest,
        *,
        ice_servers: tuple[IceServer, ...],
        find_servers: Callable[[str], Awaitable[tuple[IceServer, ...]]],
        limits: WebLimits,
        clock: Clock,
        base_path: str = "",
        record_folder: Path | None = None,
        on_end: Callable[[Call], None],
    ) -> None:
        """Take a session that has not begun.

        Args:
            session: The session.
            request: Who called.
            ice_servers: For its peer connections, as of now.
            find_servers: Gives them anew for the caller's address; credentials live for a while only.
            limits: What it may do.
            clock: What it keeps time by.
            base_path: Where the room is mounted, for addresses of pictures and files.
            record_folder: Where its recording goes; None: it is not recorded.
            on_end: Called once, when it is over.
        """
        self.id = secrets.token_urlsafe(9)
        self.secret = secrets.token_urlsafe(24)
        self.key = secrets.token_urlsafe(18)
        """In the addresses of its pictures and files; it opens nothing else."""
        self.session = session
        self.request = request
        self.ice_servers = ice_servers
        """As they were found out last; see `refresh_servers`."""
        self._find_servers = find_servers
        self.base_path = base_path
        self.downloads = Downloads(session, None if record_folder is None else record_folder / f"{self.id}.rec")
        self.reason = ""
        """Why it ended."""
        self.hang_up_with_peer = False
        """The call is over when its peer has gone: nobody could come back (WHIP)."""
        self._limits = limits
        self._clock = clock
        self._on_end = on_end
        self._lifetime = Lifetime(limits, clock)
        self._servers_at = clock.now()
        self._listener: Listener | None = None
        self._telling_heard = False
        self._peer: Peer | None = None
        self._joining = asyncio.Lock()
        self._ending = asyncio.Event()
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self.inspector = Inspector(self)
        self.history = History(session)
        self.hints = SenderHints(session, self._send_on_channel)
        self.controls = Controls(self, limits, clock)

    @property
    def path(self) -> str:
        """Where its pictures and files are."""
        return f"{self.base_path}/calls/{self.id}/{self.key}"

    @property
    def over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._ending.is_set()

    @property
    def peer(self) -> Peer | None:
        """The present peer connection."""
        return self._peer

    @property
    def packets(self) -> dict[str, Any]:
        """Figures of the present peer connection."""
        return {} if self._peer is None else self._peer.figures

    def has_secret(self, given: str) -> bool:
        """Whether this is the call's secret, in constant time."""
        return is_same(given, self.secret)

    @property
    def at(self) -> float:
        """Seconds since it began."""
        return self._lifetime.seconds

    # -- life -----------------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin the session.

        Raises:
            CallRefused: `session_failed`, with the reason.
        """
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"realtime.web call {self.id}")
        try:
            await asyncio.shield(self._begun)
        except asyncio.CancelledError:
            self.end("gone")
            raise

    def end(self, reason: str) -> None:
        """Let it end, in good order, soon."""
        if not self._ending.is_set():
            self.reason = reason
            self._ending.set()
            if not self._begun.done():  # whoever waits for its beginning waits no longer
                self.spawn(self.session.aclose())

    async def aclose(self, reason: str = "closed") -> None:
        """End it and wait until everything of it has been let go."""
        self.end(reason)
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            async with Deadline(self._clock, self._clock.now() + _BEGIN_SECONDS):
                self.downloads.begin()
                if not self.session.begun:  # an application may have begun it, to listen from its first event on
                    await self.session.__aenter__()
            self._lifetime.session_began()
            self._begun.set_result(None)
            events = aiter(self.session)
            self.spawn(self._pump(events))
            self.spawn(self._keep_time())
            await self._ending.wait()
        except Exception as error:
            if not self.over:
                self.end("session_failed")
                if not self._begun.done():
                    self._begun.set_exception(session_refusal(error))
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """Everything ends: peer, tasks, session, listener."""
        self._ending.set()
        if not self._begun.done():
            ended = self.reason == "server_ended"
            self._begun.set_exception(CallRefused("draining" if ended else "gone", "the call was ended"))
        self._begun.exception()  # looked at, whoever waits or not
        peer, self._peer = self._peer, None
        try:
            for closing in (*(() if peer is None else (peer.aclose,)), self.session.aclose):
                try:
                    await closing()
                except Exception:
                    logger.exception("a part of call %s could not be closed", self.id)
            left = self._tasks - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
        finally:
            listener, self._listener = self._listener, None
            self.downloads.end()
            if listener is not None:
                files = self.downloads.listed(self.path)
                listener.tell(
                    {"type": "bye", "reason": self.reason, "files": files, "seconds": self._limits.grace_seconds}
                )
                listener.leave()
            self._on_end(self)

    def spawn(self, work: Any) -> None:
        """Run something that ends with the call."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())

    async def _guard(self, work: Any) -> None:
        try:
            await work
        except CallRefused as error:
            self.tell_error(error.code, error.message)
        except RealtimeError as error:
            self.tell_error("refused", str(error))
        except Exception:
            logger.exception("a part of call %s failed", self.id)

    async def _pump(self, events: Any) -> None:
        """Tell the listener of every event."""
        try:
            async for event in events:
                if isinstance(event, (SpeechStarted, SpeechStopped)) or _is_said(event):
                    self.touch()
                self.hints.take(event)
                self.inspector.take(event)
                self.history.take(event)
                if isinstance(event, ReplyStarted) and not self._telling_heard:
                    self._telling_heard = True
                    self.spawn(self._tell_heard())
                told = event_to_dict(event, at=self.at)
                if told is not None:
                    self.tell(told)
                if isinstance(event, SessionEnded):
                    self.end(f"session_{event.reason}")
        except RealtimeError as error:
            self.tell_error("session_failed", session_refusal(error).message)
        self.end("session_closed")

    async def _keep_time(self) -> None:
        """End it when its time is over."""
        while True:
            has_peer = self._peer is not None or self._joining.locked()
            reason = self._lifetime.reason_to_end(has_listener=self._listener is not None, has_peer=has_peer)
            if reason:
                self.end(reason)
            await self._lifetime.wait()

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await self._clock.sleep_until(self._clock.now() + seconds)

    async def _tell_heard(self) -> None:
        """While a reply sounds, tell how much of its text has been heard."""
        told: dict[str, int] = {}
        while self.session.is_replying:
            await self.pause(_HEARD_SECONDS)
            heard = {message_id: len(text) for message_id, text in self.session.heard_so_far().items()}
            for message_id, length in heard.items():
                if told.get(message_id) != length:
                    self.tell({"type": "heard", "message_id": message_id, "heard": length})
            told = heard
        self._telling_heard = False

    def touch(self) -> None:
        """Somebody has said or done something."""
        self._lifetime.touch()

    # -- who listens ----------------------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Tell this listener from now on; the one before is let go."""
        before, self._listener = self._listener, listener
        if before is not None:
            before.tell(
                {"type": "error", "code": "replaced", "message": "the call goes on in another place", "fatal": True}
            )
            before.leave()
        self.inspector.on = False

    def unlisten(self, listener: Listener) -> None:
        """This listener has gone; the call waits for its user to come back."""
        if self._listener is listener:
            self._listener = None
            self.inspector.on = False
            self._lifetime.left()

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell whoever listens."""
        if self._listener is not None:
            self._listener.tell(message)

    def tell_error(self, code: RefusalCode, message: str) -> None:
        """Tell of something that did not work; the call goes on."""
        self.tell({"type": "error", "code": code, "message": message})

    # -- what was heard -------------------------------------------------------------------------------------------------

    def played(self, message: Mapping[str, Any]) -> None:
        """The page says how far it has played the reply."""
        if self._peer is not None:
            self._peer.played(message)

    # -- peer connections -----------------------------------------------------------------------------------------------

    async def answer(self, sdp: str, sources: Mapping[str, str]) -> str:
        """Answer an offer with a new peer connection on the same session; the one before is let go first.

        Raises:
            CallRefused: The offer cannot be answered, or the call is over.
        """
        async with self._joining:
            if self.over:
                raise CallRefused("gone", "the call is over")
            before, self._peer = self._peer, None
            if before is not None:
                await before.aclose()
            await self.refresh_servers()
            peer = Peer(
                self.session,
                ice_servers=self.ice_servers,
                loopback=is_loopback(self.request.address),
                limits=self._limits,
                clock=self._clock,
                on_connected=self._peer_connected,
                on_lost=self._peer_lost,
                admit=self.controls.admit,
                on_message=self.controls.perform,
                on_channel=self.hints.tell,
                on_silent=self.tell_error,
            )
            self.hints.forget()
            try:
                answer = await peer.answer(sdp, sources)
            except BaseException as error:
                self._lifetime.left()
                await peer.aclose()
                if isinstance(error, SessionClosed):
                    raise CallRefused("gone", "the call is over") from error
                if isinstance(error, RealtimeError) and not isinstance(error, CallRefused):
                    raise CallRefused("bad_message", str(error)) from error
                raise
            if self.over:  # it ended meanwhile, and would not find this peer
                await peer.aclose()
                raise CallRefused("gone", "the call is over")
            self._peer = peer
            self.touch()
            return answer

    async def refresh_servers(self) -> None:
        """Find out the STUN and TURN servers anew, unless that was a moment ago. If they cannot be, the last ones may still do."""
        now = self._clock.now()
        if now - self._servers_at < _SERVERS_FRESH_SECONDS:
            return
        with contextlib.suppress(CallRefused):  # which has been logged
            self.ice_servers = await self._find_servers(self.request.address)
            self._servers_at = now

    async def add_candidate(self, candidate: Mapping[str, Any] | None) -> None:
        """Take a candidate of the present peer.

        Raises:
            CallRefused: There are too many.
        """
        if self._peer is not None:
            await self._peer.add_candidate(candidate)

    def _peer_connected(self, peer: Peer) -> None:
        if peer is self._peer:
            self.tell({"type": "connected"})

    def _peer_lost(self, peer: Peer, code: RefusalCode, why: str) -> None:
        """The peer has gone or never came; the call waits for another offer."""
        if peer is not self._peer:
            return
        logger.info("call %s: %s: %s", self.id, code, why)
        self._peer = None
        self._lifetime.left()
        self.tell_error(code, why)
        if not self.over:
            self.spawn(peer.aclose())
        if self.hang_up_with_peer:
            self.end(code)

    def _send_on_channel(self, message: Mapping[str, Any]) -> bool:
        return self._peer is not None and self._peer.send(message)


def _is_said(event: SessionEvent) -> bool:
    """Whether words joined the conversation; a camera that looks on says nothing."""
    return isinstance(event, MessageCommitted) and not event.message.is_frame
