"""Joins an aiortc peer connection: the reply out, its tracks in.

Owns: `attach_peer` and `PeerAttachment`. Driven by the session. Knows aiortc's public interface only; reads no track
itself (that is `realtime.tracks.reader`, or `realtime.tracks.direct` for what we receive ourselves) and never negotiates:
offers and answers belong to the application.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

from aiortc import MediaStreamTrack, RTCPeerConnection

from realtime.errors import ArgumentError, UserError
from realtime.tracks.aiortc_internals.certificates import accept_rsa
from realtime.tracks.picture_sink import RunJob
from realtime.tracks.reply_out import send_reply, take_back_reply
from realtime.tracks.rtp_receiver import receive_directly

__all__ = ["PeerAttachment", "attach_peer"]


class PeerAttachment:
    """What `attach_peer` gives: a way to stop listening for tracks."""

    __slots__ = ("_on_closed", "_on_track", "_peer", "_reply_track", "_run", "_seen")

    def __init__(
        self,
        peer: RTCPeerConnection,
        on_track: Callable[[MediaStreamTrack], None],
        reply_track: MediaStreamTrack | None = None,
        run: RunJob | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        """Begin to listen; tracks that are there already are told at once."""
        self._peer = peer
        self._run = run
        self._on_track = on_track
        self._on_closed = on_closed
        self._reply_track = reply_track
        # Tracks themselves, not their ids: an id may be used again, and two m-lines may claim the same one.
        self._seen: list[Any] = []
        peer.on("track", self._tell)
        peer.on("connectionstatechange", self._look)
        for transceiver in peer.getTransceivers():
            track: Any = transceiver.receiver.track
            if track is not None and track.readyState == "live":
                self._tell(track)

    @property
    def peer(self) -> RTCPeerConnection:
        """The peer connection."""
        return self._peer

    @property
    def tracks(self) -> list[Any]:
        """The tracks that were told."""
        return list(self._seen)

    def mid_of(self, track: Any) -> str | None:
        """The media section that a track came with; None while there is none."""
        for transceiver in self._peer.getTransceivers():
            if transceiver.receiver.track is track:
                return transceiver.mid
        return None

    def detach(self) -> None:
        """Tell of no more tracks. The reply track stays where it is. Idempotent."""
        for event, listener in (("track", self._tell), ("connectionstatechange", self._look)):
            with contextlib.suppress(KeyError):
                cast("Any", self._peer).remove_listener(event, listener)
        self._seen.clear()

    def take_back_reply(self) -> None:
        """Send the reply no longer. The track lives on: another peer connection goes on with it where this one stopped.

        Without it, aiortc stops what a peer connection sent when that closes.
        """
        if self._reply_track is not None:
            take_back_reply(self._peer, self._reply_track)

    def _look(self) -> None:
        if self._peer.connectionState == "closed" and self._on_closed is not None:
            self._on_closed()

    def _tell(self, track: Any) -> None:
        if any(track is known for known in self._seen):
            return
        self._seen.append(track)
        if self._run is not None:
            receive_directly(self._peer, track, self._run)
        self._on_track(track)


def _check_peer(pc: object) -> None:
    if not isinstance(pc, RTCPeerConnection):
        raise ArgumentError("pc", pc, "an aiortc RTCPeerConnection")


def attach_peer(
    pc: RTCPeerConnection,
    *,
    reply_track: MediaStreamTrack | None,
    on_track: Callable[[MediaStreamTrack], None],
    run: RunJob | None = None,
    on_closed: Callable[[], None] | None = None,
) -> PeerAttachment:
    """Send the reply to a peer and tell of each track that it sends.

    Works for the side that offers and for the side that answers, before or after `setRemoteDescription`: tracks of
    transceivers that exist are told at once, those that come with a description later when they come, each once.
    A side that offers and wants video adds its own ``pc.addTransceiver("video", direction="recvonly")``.

    Args:
        pc: An aiortc peer connection whose local description is not set yet.
        reply_track: What to send; None: nothing. One that `pc` sends already is left as it is. A `ReplyTrack` is sent through
            a track of its own, which gives ready packets to a peer that takes Opus; with `run` they are sent by a timer of
            ours.
        on_track: Called, synchronously, with each remote track.
        run: Runs decoding on a worker thread: the tracks are received by ourselves where this aiortc is known
            (`realtime.tracks.rtp_receiver.intake_of` tells). None: aiortc receives them.
        on_closed: Called, synchronously, when `pc` is closed, and so can never come back.

    Raises:
        ArgumentError: `pc` is no aiortc peer connection.
        UserError: Its local description is set (the reply would not be in it), or it is closed.
    """
    _check_peer(pc)
    if pc.signalingState == "closed" or pc.connectionState == "closed":
        raise UserError("attach: the peer connection is closed; attach a new one")
    current: Any = pc.localDescription
    if current is not None:
        raise UserError(
            "attach: the local description is set already, so the reply track would not be in it; "
            "call attach before setLocalDescription"
        )
    if reply_track is not None:
        send_reply(pc, reply_track, direct=run is not None)
    accept_rsa(pc)
    return PeerAttachment(pc, on_track, reply_track, run, on_closed)
