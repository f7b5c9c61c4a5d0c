"""The user's audio on its way to the provider, and what may be needed of it again.

Owns: the audio lane of the outbox (chunks, commits and clears in order), the sample count of this connection, and two
views of what was sent: the replay buffer (what a dropped connection would lose) and the live recording (what a turn's
retained audio is cut from). Driven by `SessionMachine`. Never looks at the sound.

Positions are integers of samples since the connection's first sample (behaviour.md A3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import cast

from realtime.core.commands import AppendAudio, ClearAudio, CommitAudio

__all__ = ["AudioTape", "InputAudio"]

_append = cast(
    "Callable[[type[AppendAudio], tuple[str, bytes]], AppendAudio]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]  (of what it is a tuple)
)
"""Makes one in a quarter of the time: its own way checks what it is given."""
_IDLE_REPLAY_SECONDS = 1.0
"""Replayed when nobody was speaking: what a provider's prefix padding may reach back for, and what may be under way."""


class AudioTape:
    """PCM16 mono chunks that know their position; whole samples can be taken from the front."""

    __slots__ = ("chunks", "end", "start")

    def __init__(self) -> None:
        """An empty tape at position 0."""
        self.chunks: deque[bytes] = deque()
        self.start = 0
        """Position of the first sample that is still there."""
        self.end = 0
        """Position behind the last sample."""

    def __len__(self) -> int:
        """Samples on the tape."""
        return self.end - self.start

    def append(self, pcm: bytes) -> None:
        """Add samples at the end."""
        self.chunks.append(pcm)
        self.end += len(pcm) // 2

    def take_until(self, position: int) -> bytes:
        """Remove and return everything before `position` (clamped to the tape)."""
        position = min(max(position, self.start), self.end)
        parts: list[bytes] = []
        while self.start < position:
            chunk = self.chunks.popleft()
            samples = len(chunk) // 2
            wanted = position - self.start
            if samples > wanted:
                self.chunks.appendleft(chunk[wanted * 2 :])
                chunk = chunk[: wanted * 2]
                samples = wanted
            parts.append(chunk)
            self.start += samples
        return b"".join(parts)

    def copy_all(self) -> bytes:
        """Everything on the tape, which keeps it."""
        return b"".join(self.chunks)

    def keep_last(self, samples: int) -> int:
        """Drop from the front until at most `samples` are left.

        Returns:
            How many samples were dropped.
        """
        dropped = over = max(0, self.end - self.start - samples)
        chunks = self.chunks
        while over:
            here = len(chunks[0]) // 2
            if here <= over:
                chunks.popleft()
                over -= here
            else:
                chunks[0] = chunks[0][over * 2 :]
                over = 0
        self.start += dropped
        return dropped

    def clear(self, *, at: int | None = None) -> None:
        """Empty the tape; the next sample stands at `at`, or where the tape ended."""
        self.chunks.clear()
        self.end = self.end if at is None else at
        self.start = self.end


class InputAudio:
    """The audio lane and what was sent of it."""

    def __init__(
        self,
        *,
        rate_hz: int,
        lane_seconds: float,
        replay_seconds: float,
        records: bool,
        reports_boundaries: bool = True,
    ) -> None:
        """Set the bounds.

        Args:
            rate_hz: The model's input rate.
            lane_seconds: How much may wait for the socket; the oldest is dropped beyond.
            replay_seconds: How much of an unfinished turn is kept to be sent again.
            records: Whether turns' audio is kept at all (`audio_retention`).
            reports_boundaries: The provider says when speech begins; where it does not, every sound may be speech.
        """
        self.rate_hz = rate_hz
        self.lane: deque[bytes | CommitAudio | ClearAudio] = deque()
        """What waits for the socket. For looking at."""
        self._lane_samples = 0
        self._lane_bound = int(lane_seconds * rate_hz)
        self._replay_bound = int(replay_seconds * rate_hz)
        self._idle = int(_IDLE_REPLAY_SECONDS * rate_hz)
        self.records = records
        """Whether turns' audio is kept."""
        self.replay = AudioTape()
        self.live = AudioTape()
        self.sent = 0
        """Samples sent on this connection."""
        self.dropped = 0
        """Samples dropped because the socket was too slow, ever."""
        self.since_commit = 0
        """Samples received since the last commit or clear (push-to-talk, behaviour.md T6)."""
        self.reports_boundaries = reports_boundaries
        self._turn_open = False
        self._taken_since_mark = 0
        self._commits_waiting = 0
        self._arrived = 0

    # -- the lane ---------------------------------------------------------------------------------------------------

    @property
    def waiting_ms(self) -> int:
        """How much audio waits for the socket."""
        return self._lane_samples * 1000 // self.rate_hz

    @property
    def waiting_bytes(self) -> int:
        """Bytes of audio that wait for the socket."""
        return self._lane_samples * 2

    @property
    def held_bytes(self) -> int:
        """Bytes kept for a replay, but for those that are in the live recording too: they are held once."""
        shared_from = self.live.start if len(self.live) else self.replay.end
        return 2 * max(0, min(shared_from, self.replay.end) - self.replay.start)

    def push(self, pcm: bytes) -> None:  # hot path: 25–50 times a second
        """Queue audio; the oldest waiting audio is dropped if the lane is full."""
        self.lane.append(pcm)
        self._lane_samples += len(pcm) // 2
        self.since_commit += len(pcm) // 2
        while self._lane_samples > self._lane_bound:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """The oldest audio goes, and with the last of a turn its commit: there is nothing left to commit."""
        kept: list[CommitAudio | ClearAudio] = []
        while not isinstance(entry := self.lane.popleft(), bytes):
            kept.append(entry)
        self._lane_samples -= len(entry) // 2
        self.dropped += len(entry) // 2
        is_next_empty = bool(kept) or not self._taken_since_mark
        if is_next_empty and self.lane and isinstance(self.lane[0], CommitAudio):
            self.lane.popleft()
            self._commits_waiting -= 1
        self.lane.extendleft(reversed(kept))

    def mark(self, command: CommitAudio | ClearAudio) -> None:
        """Queue a commit or a clear behind the audio before it."""
        self.lane.append(command)
        self._commits_waiting += isinstance(command, CommitAudio)
        self.since_commit = 0

    def holds_commit(self) -> bool:
        """Whether a turn that was committed by hand waits for the socket, behind its audio."""
        return self._commits_waiting > 0

    def has_waiting(self) -> bool:
        """Whether the lane holds anything."""
        return bool(self.lane)

    def take(self, command_id: str) -> AppendAudio | CommitAudio | ClearAudio | None:
        """The next of the lane, counted as sent."""
        if not self.lane:
            return None
        entry = self.lane.popleft()
        if not isinstance(entry, bytes):
            self._taken_since_mark = 0
            self._commits_waiting -= isinstance(entry, CommitAudio)
            if isinstance(entry, ClearAudio):
                self.replay.clear()
                self.live.clear()
            return entry
        self._lane_samples -= len(entry) // 2
        self.since_commit -= len(entry) // 2  # it was counted when it was pushed
        return self.send(command_id, entry)

    def send(self, command_id: str, pcm: bytes) -> AppendAudio:  # hot path: 50 times a second
        """Count audio that is in no lane as received and sent."""
        samples = len(pcm) // 2
        self.since_commit += samples
        self._taken_since_mark += samples
        self.sent += samples
        # kept is what a dropped connection would lose: all of an unfinished turn, else what may not have arrived
        replay, needed = self.replay, self._replay_bound
        replay.chunks.append(pcm)
        replay.end += samples
        if self.reports_boundaries and not self._turn_open:
            unarrived = self._idle + self.sent - self._arrived
            if unarrived < needed:  # noqa: PLR1730  (a call of min costs as much as all of this)
                needed = unarrived
        if replay.end - replay.start > needed:
            replay.keep_last(needed)
        if self.records:
            self.live.append(pcm)
        return _append(AppendAudio, (command_id, pcm))

    # -- what was sent ----------------------------------------------------------------------------------------------

    @property
    def sent_ms(self) -> int:
        """Position of the newest sample sent, in milliseconds."""
        return self.sent * 1000 // self.rate_hz

    def samples_at(self, at_ms: int) -> int:
        """The sample position of a time that the provider reported."""
        return at_ms * self.rate_hz // 1000

    def note_arrival(self) -> None:
        """The provider said something, so the line was whole: what was sent a moment ago has arrived."""
        self._arrived = self.sent

    def speech_began(self, at_ms: int) -> None:
        """The provider heard where speech began: what was sent before, but for a moment, was none."""
        if self.reports_boundaries and not self._turn_open:
            self.replay.take_until(self.samples_at(at_ms) - self._idle)

    def hold_turn(self, *, open_: bool) -> None:
        """While a turn is unfinished its audio is kept for a replay; otherwise only a moment is."""
        self._turn_open = open_

    def forget_before(self, at_ms: int) -> None:
        """The provider has understood everything before `at_ms`; it needs no replay."""
        self.replay.take_until(self.samples_at(at_ms))

    def record_until(self, position: int) -> bytes:
        """Cut the live recording: everything before `position` (samples) belongs to the turn that ends there."""
        return self.live.take_until(position)

    def restart(self, silent_seconds: float | None = None) -> None:
        """A new connection: what was not understood goes to the front of the lane, positions start anew.

        Args:
            silent_seconds: How long before the end nothing had come from the provider; None: unknown.
        """
        if silent_seconds is not None and self.reports_boundaries and not self._turn_open:
            self.replay.keep_last(self._idle + int(silent_seconds * self.rate_hz))
        unheard = self.replay.take_until(self.replay.end)
        if unheard:
            self.lane.appendleft(unheard)
            self._lane_samples += len(unheard) // 2
        self.sent = self._arrived = self._taken_since_mark = 0
        self.replay.clear(at=0)
        self.live.clear(at=0)
        while self._lane_samples > max(self._lane_bound, self._replay_bound):
            self._drop_oldest()
