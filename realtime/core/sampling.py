"""Which video frames matter (behaviour.md I4).

Owns: the policy, per source: a schedule in media time, the thumbnail of the last kept frame, the frames held for the end
of the user's turn, and the counts of what was skipped and why. Driven by `SessionMachine.receive_frame` and by the
user's speech. Never sees a pixel: a frame is its facts and a 32×32 luma thumbnail.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass
from operator import sub
from typing import Literal

from realtime.core.events import KeepReason, SkipReason
from realtime.core.settings import FrameSampling

__all__ = ["FrameFacts", "FrameSampler", "FrameVerdict", "Lull", "thumb_difference"]

_TOLERANCE_MS = 20
"""By so much a frame may come early and still be on time: less than half a frame at 25 a second."""
_MIN_HOLD_SECONDS = 0.25
"""Held frames of one source are at least this far apart."""
_ROUNDING_SECONDS = 1e-6
"""A lull ends earlier by so much: a sum is not rounded as the difference is that decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFacts:
    """What the sampler knows of a frame."""

    frame_id: int
    """The shell's name of it, unique within the session."""
    source: str
    """Which camera or screen."""
    captured_at: float
    """When it arrived, on the session's clock, in seconds."""
    pts_ms: int
    """Its media time."""
    width: int
    """In pixels, after rotation."""
    height: int
    """In pixels, after rotation."""
    thumbprint: bytes = b""
    """32×32 luma values, row by row; empty: it counts as changed if it is looked at (`FrameSampler.looks_at`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameVerdict:
    """What to do with a frame."""

    action: Literal["keep", "hold", "drop"]
    """`keep`: encode it now; `hold`: keep it unencoded until told; `drop`: let it go."""
    keep_reason: KeepReason | None = None
    """Why it was kept."""
    skip_reason: SkipReason | None = None
    """Why it was dropped."""
    released: tuple[int, ...] = ()
    """Held frames of the same source that are no longer wanted."""


class Lull:
    """A while in which no frame of one source is due or held: whoever has it need not ask about each.

    Attributes:
        is_over: Something has changed: ask anew.
        until_ms: The media time from which on a frame may be due.
        until: The time of the session's clock from which on one may be held.
    """

    __slots__ = ("is_over", "until", "until_ms")

    def __init__(self, until_ms: float, until: float) -> None:
        """Begin one."""
        self.is_over = False
        self.until_ms = until_ms
        self.until = until


def thumb_difference(one: bytes, other: bytes) -> float:
    """Mean absolute luma difference of two thumbprints, 0–255; 255 if they cannot be compared."""
    if not one or len(one) != len(other):
        return 255.0
    total: int = sum(map(abs, map(sub, one, other)))
    return total / len(one)


def _period_ms(fps: float) -> float | None:
    return 1000.0 / fps if fps > 0 else None


def _frame_bytes(facts: FrameFacts) -> int:
    return facts.width * facts.height * 3 // 2


class _Source:
    """What is remembered of one camera or screen."""

    __slots__ = ("before", "due_ms", "held", "kept_at", "kept_pts_ms", "last_pts_ms", "period_ms", "thumb")

    def __init__(self) -> None:
        self.due_ms: float | None = None
        self.period_ms: float | None = None
        """The schedule that `due_ms` is of."""
        self.kept_pts_ms: int | None = None
        self.kept_at = 0.0
        self.last_pts_ms: int | None = None
        self.thumb = b""
        self.held: deque[FrameFacts] = deque()
        self.before: tuple[int | None, float, bytes] = (None, 0.0, b"")
        """`kept_pts_ms`, `kept_at` and `thumb` before the last frame was kept."""

    def keep(self, facts: FrameFacts, thumb: bytes) -> None:
        """A frame is the last that was kept."""
        self.before = (self.kept_pts_ms, self.kept_at, self.thumb)
        self.kept_pts_ms, self.kept_at, self.thumb = facts.pts_ms, facts.captured_at, thumb

    def is_last_kept(self, facts: FrameFacts) -> bool:
        """Whether none was kept since."""
        return (self.kept_pts_ms, self.kept_at) == (facts.pts_ms, facts.captured_at)


class FrameSampler:
    """One session's sampler, all sources."""

    def __init__(self, sampling: FrameSampling, *, hold_seconds: float = 0.5) -> None:
        """Start with no source.

        Args:
            sampling: The policy.
            hold_seconds: How long the provider takes to notice that a turn ended (its silence): the newest frame from
                before that is what the user was showing.
        """
        self._sampling = sampling
        self._hold_seconds = max(_MIN_HOLD_SECONDS, hold_seconds)
        self._sources: dict[str, _Source] = {}
        self._speaking = False
        self._period_ms = _period_ms(sampling.fps_idle)
        """Of the present schedule; None: there is none."""
        self._wanted: set[str] = set()
        self._wanted_from_any = 0
        self._lulls: dict[str, Lull] = {}
        """Those that were told of and are not over."""
        self.kept: Counter[str] = Counter()
        """Frames kept, by reason."""
        self.skipped: Counter[str] = Counter()
        """Frames skipped, by reason."""

    def looks_at(self, name: str, *, pts_ms: int, captured_at: float) -> bool:  # hot path: every frame of every source
        """Whether a frame could be kept or held; only then is its thumbprint looked at, by `receive` or later.

        Args:
            name: Its source.
            pts_ms: Its media time.
            captured_at: When it arrived, on the session's clock.
        """
        source = self._sources.get(name)
        return source is None or self.is_due(name, pts_ms=pts_ms) or self._holds(source, captured_at)

    def is_due(self, name: str, *, pts_ms: int) -> bool:  # hot path: every frame of every source
        """Whether a frame would be kept, if it is another picture: it is due by the schedule, or somebody looks.

        Args:
            name: Its source.
            pts_ms: Its media time.
        """
        if name in self._wanted or self._wanted_from_any:
            return True
        period_ms = self._period_ms
        source = self._sources.get(name)
        if source is None:
            return period_ms is not None
        if source.last_pts_ms is not None and pts_ms < source.last_pts_ms:
            return True
        return period_ms is not None and (source.kept_pts_ms is None or self._is_due(source, pts_ms, period_ms))

    def holds(self, name: str, *, captured_at: float) -> bool:  # hot path: every frame of every source
        """Whether a frame that is not due would be held for the end of the user's turn.

        Args:
            name: Its source.
            captured_at: When it arrived, on the session's clock.
        """
        if not (self._speaking and self._sampling.end_of_turn):
            return False
        source = self._sources.get(name)
        return source is None or self._holds(source, captured_at)

    def lull(self, name: str) -> Lull | None:
        """For how long no frame is due or held, as far as is known now; None: the next one may be.

        That is for frames no older than those that were received: an older one is always due.

        Args:
            name: Their source.
        """
        known = self._lulls.get(name)
        if known is not None:
            return known
        if name in self._wanted or self._wanted_from_any:
            return None
        period_ms = self._period_ms
        source = self._sources.get(name)
        until_ms = until = math.inf
        if period_ms is not None:
            if source is None or source.kept_pts_ms is None:
                return None
            until_ms = self._due_ms(source, period_ms) - _TOLERANCE_MS
        if self._speaking and self._sampling.end_of_turn:
            if source is None or not source.held:
                return None
            until = source.held[-1].captured_at + self._hold_seconds - _ROUNDING_SECONDS
        lull = self._lulls[name] = Lull(until_ms, until)
        return lull

    def _end_lull(self, name: str) -> None:
        """What was said of a source's next frames may hold no longer."""
        lull = self._lulls.pop(name, None)
        if lull is not None:
            lull.is_over = True

    def _end_lulls(self) -> None:
        for name in list(self._lulls):
            self._end_lull(name)

    def receive(self, facts: FrameFacts, *, now: float) -> FrameVerdict:  # hot path: every frame of every source
        """Judge a frame."""
        if self._lulls:
            self._end_lull(facts.source)
        source = self._sources.get(facts.source)
        if source is None:
            source = self._sources[facts.source] = _Source()
        if source.last_pts_ms is not None and facts.pts_ms < source.last_pts_ms:
            source.due_ms = None  # the source began anew
            source.kept_pts_ms = None
        source.last_pts_ms = facts.pts_ms
        if now - facts.captured_at > self._sampling.max_age_seconds:
            return self._skip("stale")
        if facts.source in self._wanted or self._wanted_from_any:
            self._wanted.discard(facts.source)
            self._wanted_from_any = max(0, self._wanted_from_any - 1)
            return self._keep(source, facts, "look")
        period_ms = self._period_ms
        if source.kept_pts_ms is None:
            return self._keep(source, facts, "first") if period_ms else self._hold_or_skip(source, facts)
        if period_ms is None or not self._is_due(source, facts.pts_ms, period_ms):
            return self._hold_or_skip(source, facts)
        least = self._sampling.min_change
        changed = not least or thumb_difference(facts.thumbprint, source.thumb) >= least
        if changed:
            return self._keep(source, facts, "schedule")
        if facts.captured_at - source.kept_at >= self._sampling.max_gap_seconds:
            return self._keep(source, facts, "max_gap")
        source.due_ms, source.period_ms = facts.pts_ms + period_ms, period_ms
        return self._skip("unchanged")

    def _is_due(self, source: _Source, pts_ms: int, period_ms: float) -> bool:
        return pts_ms >= self._due_ms(source, period_ms) - _TOLERANCE_MS

    @staticmethod
    def _due_ms(source: _Source, period_ms: float) -> float:
        """When the next scheduled frame is due; a faster schedule does not wait for the slower one's time."""
        assert source.kept_pts_ms is not None
        if source.due_ms is None or source.period_ms != period_ms:
            return source.kept_pts_ms + period_ms
        return source.due_ms

    def _keep(self, source: _Source, facts: FrameFacts, reason: KeepReason) -> FrameVerdict:
        period_ms = self._period_ms
        if period_ms is None:
            source.due_ms = None
        elif reason != "schedule" or facts.pts_ms - self._due_ms(source, period_ms) > period_ms * 0.5:
            source.due_ms = facts.pts_ms + period_ms  # after a stall or a request it starts again from this frame
        else:
            source.due_ms = self._due_ms(source, period_ms) + period_ms  # jitter does not move it
        source.period_ms = period_ms
        source.keep(facts, facts.thumbprint)
        self.kept[reason] += 1
        released = tuple(held.frame_id for held in source.held)
        source.held.clear()
        return FrameVerdict(action="keep", keep_reason=reason, released=released)

    def _skip(self, reason: SkipReason) -> FrameVerdict:
        self.skipped[reason] += 1
        return FrameVerdict(action="drop", skip_reason=reason)

    def _holds(self, source: _Source, captured_at: float) -> bool:
        """Whether a frame that is not due is held for the end of the user's turn."""
        if not (self._speaking and self._sampling.end_of_turn):
            return False
        return not source.held or captured_at - source.held[-1].captured_at >= self._hold_seconds

    def _hold_or_skip(self, source: _Source, facts: FrameFacts) -> FrameVerdict:
        if not self._holds(source, facts.captured_at):
            return self._skip("not_due")
        source.held.append(facts)
        released: tuple[int, ...] = ()
        if len(source.held) > 2:  # one before, one within the provider's silence: the older is surely the user's
            released = (source.held.popleft().frame_id,)
            self.skipped["not_due"] += 1
        return FrameVerdict(action="hold", released=released)

    # -- what moves the schedule --------------------------------------------------------------------------------------

    def speech_began(self) -> None:
        """The user speaks: the faster schedule holds from now on."""
        self._end_lulls()
        self._speaking = True
        self._period_ms = _period_ms(self._sampling.fps_speaking)

    def speech_ended(self, *, at: float) -> list[tuple[FrameFacts, bool]]:
        """The user stopped: decide about the held frames.

        Args:
            at: When the speech ended, on the session's clock.

        Returns:
            Every held frame and whether it is kept: of each source at most one, the newest from within the speech, if
            it is newer than what was kept already.
        """
        self._end_lulls()
        self._speaking = False
        self._period_ms = _period_ms(self._sampling.fps_idle)
        decided: list[tuple[FrameFacts, bool]] = []
        for source in self._sources.values():
            within = [facts for facts in source.held if facts.captured_at <= at]
            chosen = within[-1] if within else None
            if chosen is not None and self._differs(source, chosen):
                source.keep(chosen, chosen.thumbprint or source.thumb)  # never looked at: compare with the one before
                source.due_ms = None
                self.kept["end_of_turn"] += 1
            else:
                chosen = None
            decided += [(facts, facts is chosen) for facts in source.held]
            self.skipped["not_due"] += len(source.held) - (chosen is not None)
            source.held.clear()
        return decided

    def _differs(self, source: _Source, facts: FrameFacts) -> bool:
        if source.kept_pts_ms is None:
            return True
        return (
            facts.captured_at > source.kept_at
            and thumb_difference(facts.thumbprint, source.thumb) >= self._sampling.min_change
        )

    def learn(self, facts: FrameFacts, thumbprint: bytes) -> None:
        """A kept frame that had not been looked at is shown: later ones are compared with it."""
        source = self._sources.get(facts.source)
        if source is not None and source.is_last_kept(facts):
            source.thumb = thumbprint

    def take_back(self, facts: FrameFacts, reason: KeepReason) -> None:
        """A kept frame that had not been looked at shows nothing new, and is not shown: it was never kept."""
        self._end_lull(facts.source)
        self.kept -= Counter({reason: 1})
        self.skipped["unchanged"] += 1
        source = self._sources.get(facts.source)
        if source is None or not source.is_last_kept(facts):
            return
        source.kept_pts_ms, source.kept_at, source.thumb = source.before
        period_ms = self._period_ms
        if period_ms is not None and source.due_ms is None:  # as for every unchanged frame: looked at a period later
            source.due_ms, source.period_ms = facts.pts_ms + period_ms, period_ms

    def look(self, source: str | None) -> None:
        """The next frame (of `source`, or of any) is wanted, whatever the schedule."""
        self._end_lulls()
        if source is None:
            self._wanted_from_any += 1
        else:
            self._wanted.add(source)

    def forget(self, source: str) -> tuple[int, ...]:
        """A source ended.

        Returns:
            Its held frames, to be let go.
        """
        self._end_lull(source)
        self._wanted.discard(source)
        gone = self._sources.pop(source, None)
        return tuple(held.frame_id for held in gone.held) if gone else ()

    # -- what is held -------------------------------------------------------------------------------------------------

    @property
    def held_bytes(self) -> int:
        """Bytes, about, of the frames that are held (12 bits a pixel)."""
        return sum(_frame_bytes(facts) for source in self._sources.values() for facts in source.held)

    def drop_oldest_held(self) -> FrameFacts | None:
        """For the memory cap: let the frame go that has been held for longest; None if none is."""
        holding = [source for source in self._sources.values() if source.held]
        if not holding:
            return None
        self._end_lulls()
        self.skipped["image_limit"] += 1
        return min(holding, key=lambda source: source.held[0].captured_at).held.popleft()

    def let_go(self, facts: FrameFacts) -> None:
        """For the memory cap: the frame that was held just now is not."""
        self._end_lull(facts.source)
        self._sources[facts.source].held.remove(facts)
        self.skipped["image_limit"] += 1

    def next_due(self) -> dict[str, float | None]:
        """Each source's next scheduled media time in milliseconds, None if none is scheduled (for statistics)."""
        return {name: source.due_ms for name, source in self._sources.items()}

    @property
    def period_seconds(self) -> float | None:
        """The present schedule's period; None: no schedule."""
        period_ms = self._period_ms
        return None if period_ms is None else period_ms / 1000.0
