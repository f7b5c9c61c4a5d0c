"""Figures of a whole session, as values: the machine's and every shell's.

Owns: `SessionStatistics` and its parts. Made by `pipelines/runtime.py`. Never acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from realtime.core.statistics import MachineStatistics
from realtime.pipelines.worker import WorkerStatistics

__all__ = ["MemoryLedger", "SessionStatistics", "TrackStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackStatistics:
    """What came from one track."""

    kind: str
    """`audio` or `video`."""
    frames: int
    """Frames received."""
    skipped: int
    """Of them, passed over because a newer one was there already."""
    faults: int
    """Of them, that could not be handled."""
    undecoded: int = 0
    """Of them, never decoded, because nobody was going to look at them; where every frame is decoded, because a key frame came while the
    worker was behind. Only of tracks that are received directly."""
    concealed_ms: int = 0
    """Sound made up for packets that were lost. Only of tracks that are received directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLedger:
    """Bytes that the session holds, by what they are (behaviour.md R5)."""

    frames: int = 0
    """Video frames that wait for the end of a turn or for the encoder."""
    images: int = 0
    """Pictures in the history."""
    audio: int = 0
    """Recordings in the history, turns in progress included."""
    queued_audio: int = 0
    """Input audio that waits for the socket."""
    replay_audio: int = 0
    """Input audio kept to be sent again after a drop."""
    queued_pictures: int = 0
    """Sampled frames that wait for the socket."""
    reply_audio: int = 0
    """Reply audio that waits for its listeners."""

    @property
    def total(self) -> int:
        """All of it."""
        queues = self.queued_audio + self.replay_audio + self.queued_pictures + self.reply_audio
        return self.frames + self.images + self.audio + queues


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatistics:
    """What a session counts, at one moment."""

    machine: MachineStatistics
    """History, context, budgets, queues to the provider, tokens."""
    memory: MemoryLedger
    """Bytes held."""
    connected: bool
    """Whether a connection to the provider is up."""
    tracks: Mapping[str, TrackStatistics] = field(default_factory=dict[str, TrackStatistics])
    """Each track that is read, by source."""
    frames_replaced: int = 0
    """Kept frames that a newer one overtook on the way to the encoder."""
    tools_running: int = 0
    """Tool calls under way."""
    events_waiting: int = 0
    """Events that wait for the slowest iterator."""
    events_dropped: int = 0
    """Events that the present iterators have lost."""
    encoder: WorkerStatistics | None = None
    """The process's encoding threads; None before the session began."""
