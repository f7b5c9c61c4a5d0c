"""How the reply gets into a peer connection, and out of it again.

Owns: nothing; `send_reply` and `take_back_reply` are functions. Driven by `realtime.tracks.peer`. A `ReplyTrack` is sent through a
track of its own (`realtime.tracks.sending`); any other track as it is. Never negotiates.
"""

from __future__ import annotations

from typing import Any

from aiortc import RTCPeerConnection
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcrtpsender import RTCRtpSender
from aiortc.sdp import SessionDescription

from realtime.tracks.reply import ReplyTrack
from realtime.tracks.sending import SendingTrack

__all__ = ["send_reply", "take_back_reply"]

_OPUS = "audio/opus"


def send_reply(pc: RTCPeerConnection, reply_track: MediaStreamTrack) -> None:
    """Add the reply to what a peer connection sends, unless it is there."""
    if any(_carries(sender, reply_track) for sender in pc.getSenders()):
        return
    if not isinstance(reply_track, ReplyTrack):
        pc.addTrack(reply_track)
        return
    sender: list[RTCRtpSender] = []
    sender.append(pc.addTrack(reply_track.open_sender(lambda: _sends_opus(pc, sender[0]))))


def take_back_reply(pc: RTCPeerConnection, reply_track: MediaStreamTrack) -> None:
    """Let a peer connection send the reply no longer, without ending it."""
    for sender in pc.getSenders():
        track: Any = sender.track
        if not _carries(sender, reply_track):
            continue
        sender.replaceTrack(None)
        if isinstance(track, SendingTrack) and isinstance(reply_track, ReplyTrack):
            reply_track.release_sender(track)


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
        for media in SessionDescription.parse(current.sdp).media:
            if media.rtp.muxId == mid and media.rtp.codecs:
                return media.rtp.codecs[0].mimeType.lower() == _OPUS
    return False
