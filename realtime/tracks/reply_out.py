"""How the reply gets into a peer connection, and out of it again.

Owns: nothing; `send_reply`, `take_back_reply` and `watch_packets` are functions. Driven by `realtime.tracks.peer`. A `ReplyTrack` is sent through a
track of its own (`realtime.tracks.sending`); any other track as it is. Never negotiates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiortc import MediaStreamTrack, RTCPeerConnection, RTCRtpSender

from realtime.tracks.aiortc_internals import SenderPort, port_of, take_over_sender
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.reply_feed import ReplyFeed
from realtime.tracks.sending import SendingTrack

__all__ = ["send_reply", "take_back_reply", "watch_packets"]

_OPUS = "opus"


def send_reply(pc: RTCPeerConnection, reply_track: MediaStreamTrack, *, direct: bool = True) -> None:
    """Add the reply to what a peer connection sends, unless it is there.

    Args:
        pc: The peer connection.
        reply_track: What it is sent.
        direct: Send a `ReplyTrack`'s packets by a timer of ours, where this aiortc is known. False: by aiortc's sender.
    """
    if any(_carries(sender, reply_track) for sender in pc.getSenders()):
        return
    if not isinstance(reply_track, ReplyTrack):
        pc.addTrack(reply_track)
        return
    sender: list[RTCRtpSender] = []
    track = reply_track.open_sender(lambda: _sends_opus(pc, sender[0]))
    sender.append(pc.addTrack(track))

    def look() -> None:
        if pc.connectionState in {"failed", "closed"}:  # aiortc stops what it has begun to send, and nothing else
            reply_track.let_go(track)

    pc.on("connectionstatechange", look)
    if direct:
        take_over_sender(sender[0], _open_feed)


def take_back_reply(pc: RTCPeerConnection, reply_track: MediaStreamTrack) -> None:
    """Let a peer connection send the reply no longer, without ending it."""
    for sender in pc.getSenders():
        track: Any = sender.track
        if not _carries(sender, reply_track):
            continue
        sender.replaceTrack(None)
        if isinstance(track, SendingTrack) and isinstance(reply_track, ReplyTrack):
            reply_track.release_sender(track)


def watch_packets(sender: Any, on_packet: Callable[[int], object]) -> None:
    """Call `on_packet` with the RTP time stamp of each packet of the reply right before it goes out, if we send it ourselves.

    Args:
        sender: An RTCRtpSender. What aiortc sends for it is not told.
        on_packet: Called synchronously; it takes the place of the one before.
    """
    port = port_of(sender)
    if port is not None:
        port.on_sent = on_packet


def _open_feed(track: Any, port: SenderPort, on_end: Callable[[BaseException], object]) -> ReplyFeed | None:
    return track.open_feed(port, on_end) if isinstance(track, SendingTrack) else None


def _carries(sender: RTCRtpSender, reply_track: MediaStreamTrack) -> bool:
    """Whether a sender sends this reply, itself or through a track of its own."""
    track: Any = sender.track
    return track is reply_track or (isinstance(track, SendingTrack) and track.reply is reply_track)


def _sends_opus(pc: RTCPeerConnection, sender: RTCRtpSender) -> bool:
    """Whether Opus is what the answer put first for a sender: aiortc sends that codec, and never another."""
    mid = next((each.mid for each in pc.getTransceivers() if each.sender is sender), None)
    for description in (pc.localDescription, pc.remoteDescription):
        current: Any = description
        if current is None or current.type != "answer":
            continue
        return _first_codec(current.sdp, mid) == _OPUS
    return False


def _first_codec(sdp: str, mid: str | None) -> str:
    """The codec that stands first in a media section of a description, in lower case; empty: there is none."""
    for section in sdp.split("\nm=")[1:]:
        lines = section.splitlines()
        if f"a=mid:{mid}" in lines:
            maps = (line.partition(" ")[2] for line in lines if line.startswith("a=rtpmap:"))
            return next(maps, "").partition("/")[0].lower()
    return ""
