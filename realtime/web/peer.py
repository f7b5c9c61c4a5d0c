"""One peer connection of a call: joined, watched, let go.

Owns: `Peer`: the aiortc peer connection that answers one offer, its deadline, its watch and its end. Driven by
`realtime.web.call`. It decides nothing about the call: it says that the peer is connected, or why it is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from aiortc import RTCBundlePolicy, RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription

from realtime.errors import RealtimeError
from realtime.pipelines.clock import Clock
from realtime.session import RealtimeSession
from realtime.web.bounds import check_offer, read_candidate
from realtime.web.errors import CallRefused, RefusalCode
from realtime.web.ice import IceServer
from realtime.web.options import WebLimits
from realtime.web.played import PlayedMap
from realtime.web.transport import Heartbeat, offer_loopback, quality_of, watch_sent

__all__ = ["CHANNEL_LABEL", "Peer"]

CHANNEL_LABEL = "realtime"
"""The label of the data channel between page and server."""
_CLOSE_SECONDS = 2.0
"""How long a peer connection may take to close (field case B47)."""
_LOOK_SECONDS = 0.5
_ASK_AT = 0.25
_PAUSE_AT = 0.35
"""Of the time after which a peer has gone. It is asked whether it is there; and a page that reports what it plays, which it does twice a
second, is away."""
_MISSED_LOOKS = 3
"""A peer has gone only if so many looks in a row found nothing: a loop that stood still heard nobody either."""
_MAX_CHANNEL_BUFFER = 64 * 1024
"""Bytes that may wait on the data channel; hints beyond it are left out."""

logger = logging.getLogger(__name__)


class Peer:
    """One aiortc peer connection, on the answering side."""

    def __init__(
        self,
        session: RealtimeSession,
        *,
        ice_servers: tuple[IceServer, ...],
        loopback: bool,
        limits: WebLimits,
        clock: Clock,
        on_connected: Callable[[Peer], None],
        on_lost: Callable[[Peer, RefusalCode, str], None],
        admit: Callable[[int], bool],
        on_message: Callable[[dict[str, Any]], None],
        on_channel: Callable[[], None],
        on_silent: Callable[[RefusalCode, str], None],
    ) -> None:
        """Make it; nothing is sent before `answer`.

        Args:
            session: What it will be attached to.
            ice_servers: STUN and TURN servers.
            loopback: Also be reached at 127.0.0.1.
            limits: Deadlines.
            clock: For the deadlines.
            on_connected: Called once media can flow.
            on_lost: Called once, with the reason, if the peer has gone or never came.
            admit: Says whether one more message of the data channel, of so many characters, may come; asked before it is read.
            on_message: Called with each message of the data channel.
            on_channel: Called when the data channel is open.
            on_silent: Called once if the peer is connected and has sent none of its tracks.
        """
        self._session = session
        self._limits = limits
        self._clock = clock
        self._loopback = loopback
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._admit = admit
        self._on_message = on_message
        self._on_channel = on_channel
        self._on_silent = on_silent
        self._candidates = 0
        self._over = False
        self._attached = False
        self._connected = False
        self._channel: Any = None
        self._watching: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._heartbeat: Heartbeat | None = None
        self._played = PlayedMap()
        self._quality: dict[str, Any] = {}
        self._measured = False
        self._hung_up = False
        self._has_media = False
        self._told_odd = False
        self._paused: list[tuple[Any, Any]] | None = None
        servers = [
            RTCIceServer(urls=list(each.urls), username=each.username or None, credential=each.credential or None)
            for each in ice_servers
        ]
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=servers, bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        self.pc.on("connectionstatechange", self._changed.set)
        self.pc.on("signalingstatechange", self._keep_reply)
        self.pc.on("datachannel", self._take_channel)

    # -- joining --------------------------------------------------------------------------------------------------------

    async def answer(self, sdp: str, sources: Mapping[str, str]) -> str:
        """Answer an offer, with all of our candidates in the answer, and begin to watch.

        Args:
            sdp: The offer.
            sources: Names of its tracks by media section.

        Raises:
            CallRefused: It cannot be understood, or has nothing in common with us.
        """
        pc = self.pc
        self._candidates = check_offer(sdp, self._limits)
        try:
            await pc.setRemoteDescription(RTCSessionDescription(sdp=sdp, type="offer"))
            if len(pc.getTransceivers()) > self._limits.max_sources:
                raise CallRefused("bad_message", f"at most {self._limits.max_sources} tracks may be offered")
            self._session.attach(pc, sources=sources)
            self._attached = True
            if self._loopback:
                offer_loopback(pc)
            await pc.setLocalDescription(await pc.createAnswer())
        except (CallRefused, RealtimeError):
            raise
        except Exception as error:  # aiortc's parser raises whatever its input makes it
            logger.debug("an offer could not be answered", exc_info=True)
            raise CallRefused("bad_message", f"the offer cannot be answered: {_brief(error)}") from error
        self._watch_reply()
        self._heartbeat = Heartbeat(pc, self._clock, ask_after_seconds=self._limits.vanish_seconds * _ASK_AT)
        self._watching = asyncio.get_running_loop().create_task(self._watch(), name="realtime.web peer")
        return pc.localDescription.sdp

    async def add_candidate(self, given: Mapping[str, Any] | None) -> None:
        """Take a candidate of the other side; None: there are no more. One that cannot be read is left out.

        Raises:
            CallRefused: There are too many.
        """
        if given is not None and self._candidates >= self._limits.max_candidates:
            raise CallRefused("too_large", f"more than {self._limits.max_candidates} candidates; the rest is left out")
        self._candidates += given is not None
        if self._over or not self.remote_sdp:
            return
        try:
            await self.pc.addIceCandidate(read_candidate(given))
        except Exception:
            logger.debug("a candidate was left out", exc_info=True)

    # -- the data channel -----------------------------------------------------------------------------------------------

    def send(self, message: Mapping[str, Any]) -> bool:
        """Say something on the data channel; False if it is not open or does not keep up."""
        channel = self._channel
        if channel is None or channel.readyState != "open" or channel.bufferedAmount > _MAX_CHANNEL_BUFFER:
            return False
        try:
            channel.send(json.dumps(message, ensure_ascii=False))
        except Exception:  # aiortc raises ConnectionError, InvalidStateError …; a hint is never worth a fault (B48)
            logger.debug("a data channel message was not sent", exc_info=True)
            return False
        return True

    def _take_channel(self, channel: Any) -> None:
        if channel.label != CHANNEL_LABEL or self._channel is not None:
            return
        self._channel = channel
        channel.on("message", self._take_message)
        self._on_channel()

    def _take_message(self, data: str | bytes) -> None:
        if self._over or not isinstance(data, str) or len(data) > self._limits.max_message_bytes:
            return
        try:
            if not self._admit(len(data)):
                return
            message: object = json.loads(data)
            if isinstance(message, dict):
                self._on_message(cast("dict[str, Any]", message))
        except (ValueError, RecursionError):
            return  # no JSON
        except Exception:  # what is raised here would end the transport, and with it the call's sound
            if not self._told_odd:
                self._told_odd = True
                logger.exception("a message of the data channel was left out")

    # -- what was heard -------------------------------------------------------------------------------------------------

    def played(self, message: Mapping[str, Any]) -> None:
        """The page says how far it has played the reply. The first report is where measuring begins."""
        if not self._connected or self._over or self._paused is not None:
            return
        mark = self._played.heard(message)
        listener = self._session.listener
        listener.heard(mark or 0)  # 0: nothing new, and it is still there
        self._measured = True

    def _watch_reply(self) -> None:
        """Note which piece of the reply each packet carries."""
        listener = self._session.listener
        for sender in self.pc.getSenders():
            track: Any = sender.track
            if sender.kind == "audio" and track is not None:
                watch_sent(sender, lambda timestamp: self._played.sent(timestamp, listener.mark))
                transport: Any = sender.transport
                transport.on("statechange", functools.partial(self._keep_reply, transport))

    def _pause_reply(self) -> None:
        """The other side cannot hear: the reply waits, and nothing of it counts as heard."""
        self._session.listener.away(self._limits.vanish_seconds + self._limits.grace_seconds)
        if self._paused is None:
            sending: list[tuple[Any, Any]] = [(sender, sender.track) for sender in self.pc.getSenders()]
            self._paused = [(sender, track) for sender, track in sending if track is not None]
            for sender, _ in self._paused:
                sender.replaceTrack(None)

    def _keep_reply(self, transport: Any = None) -> None:
        """The other side has hung up: aiortc is about to stop what it sent, and the reply may go on with another peer.

        Its sender stops the track at the next packet that the closed transport refuses, or when the peer connection closes.
        """
        is_over = transport is not None and transport.state in ("closed", "failed")
        if is_over or self.pc.signalingState == "closed":
            self._changed.set()
            if self._attached:
                self._hung_up = True
                self._pause_reply()

    def _resume_reply(self) -> None:
        paused, self._paused = self._paused, None
        for sender, track in paused or ():
            sender.replaceTrack(track)
        self._session.listener.back()

    @property
    def figures(self) -> dict[str, Any]:
        """Packets, for the inspector; loss, jitter and round trip as of the last `measure`."""
        return {} if self._heartbeat is None else self._heartbeat.figures | self._quality

    async def measure(self) -> None:
        """Ask for loss, jitter and round trip of the sound both ways."""
        if self._over:
            return
        try:
            self._quality = quality_of(await self.pc.getStats())
        except Exception:  # figures are never worth a fault
            logger.debug("statistics could not be read", exc_info=True)

    @property
    def remote_sdp(self) -> str:
        """The offer."""
        described: Any = self.pc.remoteDescription
        return "" if described is None else str(described.sdp)

    # -- the watch ------------------------------------------------------------------------------------------------------

    @property
    def quiet_seconds(self) -> float:
        """How long nothing has been heard of the other side."""
        return 0.0 if self._heartbeat is None else self._heartbeat.quiet_seconds

    @property
    def connected(self) -> bool:
        """Whether media can flow."""
        return self._connected and not self._over

    async def _watch(self) -> None:
        """Wait for the connection until its deadline; then listen for signs of life."""
        deadline = media_deadline = self._clock.now() + self._limits.connect_seconds
        assert self._heartbeat is not None
        while not self._over:
            state = "closed" if self._hung_up and self._connected else self.pc.connectionState
            if state in ("closed", "failed"):
                self._lose(*self._why(state))
                return
            now = self._clock.now()
            if state == "connected" and not self._connected:
                self._connected = True
                self._heartbeat.begin()
                self._session.listener.back()
                media_deadline = now + self._limits.media_seconds
                self._on_connected(self)
            if not self._connected and now >= deadline:
                self._lose("connect_timeout", self._what_is_missing())
                return
            if self._connected:
                await self._heartbeat.look()
                quiet = self._heartbeat.quiet_seconds
                if quiet >= self._limits.vanish_seconds and self._heartbeat.missed >= _MISSED_LOOKS:
                    self._lose("peer_lost", f"nothing was heard for {self._limits.vanish_seconds:g} s")
                    return
                if not self._has_media and now >= media_deadline:
                    self._has_media = True
                    self._tell_if_silent()
                if self._measured and quiet >= self._limits.vanish_seconds * _PAUSE_AT:
                    self._pause_reply()
                elif self._paused is not None and not self._hung_up:
                    self._resume_reply()
            await self._pause(min(_LOOK_SECONDS, self._limits.vanish_seconds / 4))

    async def _pause(self, seconds: float) -> None:
        """Wait, or until the connection's state changes."""
        self._changed.clear()
        timer = self._clock.call_at(self._clock.now() + seconds, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    def _tell_if_silent(self) -> None:
        """Connected, and nothing has come of what was offered. A page knows by itself what it sends."""
        if self._channel is not None:
            return
        tracks = self._session.statistics().tracks
        if tracks and not any(track.frames for track in tracks.values()):
            self._on_silent("no_media", "the connection stands, but no sound and no picture has come through it")

    def _why(self, state: str) -> tuple[RefusalCode, str]:
        if self._connected:
            return "peer_lost", "the other side has hung up" if state == "closed" else "the connection failed"
        return "connect_failed", self._what_is_missing()

    def _what_is_missing(self) -> str:
        """Which step of getting connected was not done."""
        ice = self.pc.iceConnectionState
        if ice != "completed":
            ours, theirs = _candidate_counts(self.pc)
            return (
                f"ICE found no way between the two sides (state {ice}; {ours} candidates of the server, {theirs} of the"
                " caller); a TURN server may be needed"
            )
        return "the DTLS handshake was not completed: the caller's packets arrive, its certificate did not"

    def _lose(self, code: RefusalCode, why: str) -> None:
        if not self._over:
            self._over = True
            self._on_lost(self, code, why)

    # -- the end --------------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Let the session go on without it, then close it; within about two seconds. Idempotent."""
        self._over = True
        watching, self._watching = self._watching, None
        if watching is not None and watching is not asyncio.current_task():
            watching.cancel()
            await asyncio.wait([watching])
        if self._heartbeat is not None:
            await self._heartbeat.aclose()
        if self._attached:
            self._attached = False
            with contextlib.suppress(RealtimeError):
                self._resume_reply()
                self._session.listener.away(self._limits.grace_seconds)
                await self._detach()
        closing = asyncio.get_running_loop().create_task(self.pc.close(), name="realtime.web closing a peer")
        _, late = await asyncio.wait([closing], timeout=_CLOSE_SECONDS)
        if late:
            logger.warning("a peer connection did not close within %g s", _CLOSE_SECONDS)
            closing.cancel()
            await asyncio.wait([closing], timeout=_CLOSE_SECONDS)
        elif not closing.cancelled() and closing.exception() is not None:
            logger.debug("closing a peer connection failed", exc_info=closing.exception())

    async def _detach(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._session.detach(self.pc)
        except TimeoutError:
            logger.warning("a peer connection was not detached within %g s", _CLOSE_SECONDS)


def _candidate_counts(pc: RTCPeerConnection) -> tuple[int, int]:
    """How many candidates each side has told."""
    ours = pc.localDescription.sdp.count("a=candidate:") if pc.localDescription else 0
    transports = {each.receiver.transport.transport for each in pc.getTransceivers()}
    return ours, sum(len(each.getRemoteCandidates()) for each in transports)


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__
