"""The asyncio shell over aiortc: reading tracks, the spoken reply as a track, and joining a peer connection.

Names are resolved when they are asked for: aiortc takes most of a second to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.lazy import lazy_names

if TYPE_CHECKING:
    from realtime.tracks.peer import PeerAttachment, attach_peer
    from realtime.tracks.reader import TrackReader, is_track
    from realtime.tracks.reply import PlayoutClock, ReplyTrack

_HOMES = {
    "PeerAttachment": "realtime.tracks.peer",
    "PlayoutClock": "realtime.tracks.reply",
    "ReplyTrack": "realtime.tracks.reply",
    "TrackReader": "realtime.tracks.reader",
    "attach_peer": "realtime.tracks.peer",
    "is_track": "realtime.tracks.reader",
}

__all__ = ["PeerAttachment", "PlayoutClock", "ReplyTrack", "TrackReader", "attach_peer", "is_track"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
