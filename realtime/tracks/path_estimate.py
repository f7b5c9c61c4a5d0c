"""How much a path carries, by when frames were sent and when they came (draft-ietf-rmcat-gcc-02, sections 5.1 to 5.5, at the receiver).

Owns: `PathEstimate`. Driven by the receiver, frame by frame; pure, time is an argument. Frames that come later and later behind each
other pile up somewhere: the sender is told less than what comes. Else it is told more, step by step. It says what
`aiortc.rate.RemoteBitrateEstimator` says, in whose place it stands, in a quarter of the time: its state lies in one place, and what was
kept only to be gone through is not kept.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from realtime.tracks.received_rate import ReceivedRate

__all__ = ["PathEstimate"]

_NORMAL, _UNDERUSED, _OVERUSED = 0, 1, 2
"""What the path seems to be."""
_MASK: Final = 0xFFFFFFFF
_HALF: Final = 0x80000000
_TICK_MS: Final = 1000.0 / (1 << 26)
"""When a frame was sent is told in 1/2^26 s, 32 bits of it."""
_GROUP_TICKS: Final = (5 << 26) // 1000
"""What was sent within 5 ms is one group …"""
_BURST_MS: Final = 5
"""… and so is what came within so long of each other, though it had been sent farther apart."""
_INTERVAL_MS: Final = 500
"""The sender is told so often, and at once if the path is overused."""
_STEEPNESS: Final = (1e-13, 1e-3)
"""How fast what is estimated may drift: milliseconds a byte, and the queue's growth."""
_REMEMBERED_GAPS: Final = 60


class PathEstimate:
    """What one track's sender is to be told.

    Attributes:
        sources: The streams (SSRCs) that came; whoever owns this bounds it.
    """

    __slots__ = (
        "_avg_noise",
        "_came",
        "_control",
        "_deltas",
        "_e00",
        "_e01",
        "_e10",
        "_e11",
        "_gaps",
        "_group",
        "_group_before",
        "_noise",
        "_offset",
        "_offset_before",
        "_over_ms",
        "_overuses",
        "_slope",
        "_state",
        "_threshold",
        "_threshold_ms",
        "_told_ms",
        "_trend_before",
        "sources",
    )

    def __init__(self) -> None:
        """Nothing came yet."""
        self.sources: dict[int, None] = {}
        self._came = ReceivedRate(1000, 8000)
        self._group: tuple[int, int, int, int] | None = None
        """What came last: first and last time of sending, time of arrival, bytes."""
        self._group_before: tuple[int, int, int, int] | None = None
        self._deltas: int = 0
        """Differences between groups so far, a thousand at most."""
        self._slope: float = 1 / 64
        """Milliseconds that a byte takes."""
        self._offset: float = 0.0
        self._offset_before: float = 0.0
        """By so many milliseconds more each group is late."""
        self._e00: float = 100.0
        self._e01: float = 0.0
        self._e10: float = 0.0
        self._e11: float = 0.1
        """How uncertain slope and offset are: their covariance."""
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED_GAPS)
        """Milliseconds between groups as they were sent."""
        self._avg_noise: float = 0.0
        self._noise: float = 50.0
        """The variance of what is not explained."""
        self._state: int = _NORMAL
        self._trend_before: float = 0.0
        self._threshold: float = 12.5
        self._threshold_ms: int | None = None
        self._over_ms: float | None = None
        self._overuses: int = 0
        self._control = _RateControl()
        self._told_ms: int | None = None

    def add(self, source: int, sent_at: int, arrived_ms: int, size: int) -> int | None:
        """A frame came.

        Args:
            source: Its stream (SSRC).
            sent_at: When it was sent, in 1/2^18 s, 24 bits.
            arrived_ms: When it came.
            size: Bytes that came since the last call.

        Returns:
            What the sender is to be told now, in bits a second; None: nothing.
        """
        self.sources[source] = None
        self._came.add(size, arrived_ms)
        self._put_in_group(sent_at << 8, arrived_ms, size)
        is_due = self._told_ms is None or arrived_ms - self._told_ms > _INTERVAL_MS
        if not is_due and self._state != _OVERUSED:
            return None
        told = self._control.update(self._state, self._came.rate(arrived_ms), arrived_ms)
        if told is not None:
            self._told_ms = arrived_ms
        return told

    def _put_in_group(self, ticks: int, now: int, size: int) -> None:
        """Tell groups of frames apart; with each new one the two before it are compared."""
        group = self._group
        if group is None:
            self._group = (ticks, ticks, now, size)
            return
        first, last, arrived, bytes_before = group
        since_first = (ticks - first) & _MASK
        if since_first >= _HALF:
            return  # out of order
        apart = (ticks - last) & _MASK
        apart_ms = round(_TICK_MS * apart)
        late = now - arrived
        if not apart_ms or (late < apart_ms and late <= _BURST_MS) or since_first <= _GROUP_TICKS:
            self._group = (first, ticks if 0 < apart < _HALF else last, now, bytes_before + size)
            return
        before = self._group_before
        self._group_before, self._group = group, (ticks, ticks, now, size)
        if before is not None:
            gap_ms = ((last - before[1]) & _MASK) * _TICK_MS
            self._learn(arrived - before[2], gap_ms, bytes_before - before[3])
            self._judge(gap_ms, now)

    def _learn(self, took_ms: int, gap_ms: float, more: int) -> None:
        """A group came so much later than the one before, was sent so much later, and has so many bytes more: a Kalman filter's step."""
        self._deltas = min(self._deltas + 1, 1000)
        self._gaps.append(gap_ms)
        offset, before, state = self._offset, self._offset_before, self._state
        e00, e01, e10, e11 = self._e00 + _STEEPNESS[0], self._e01, self._e10, self._e11 + _STEEPNESS[1]
        if (state == _OVERUSED and offset < before) or (state == _UNDERUSED and offset > before):
            e11 += 10 * _STEEPNESS[1]  # it is on its way back: follow it faster
        residual = took_ms - gap_ms - self._slope * more - offset
        if state == _NORMAL:
            most = 3.0 * math.sqrt(self._noise)
            seen = residual if abs(residual) < most else math.copysign(most, residual)
            beta = pow(0.998 if self._deltas > 300 else 0.99, min(self._gaps) * 30.0 / 1000.0)
            self._avg_noise = average = beta * self._avg_noise + (1 - beta) * seen
            self._noise = max(1, beta * self._noise + (1 - beta) * (average - seen) ** 2)
        slope_part, offset_part = e00 * more + e01, e10 * more + e11
        whole = self._noise + more * slope_part + offset_part
        slope_gain, offset_gain = slope_part / whole, offset_part / whole
        keep, take = 1.0 - slope_gain * more, -slope_gain
        give, hold = -offset_gain * more, 1.0 - offset_gain
        self._e00, self._e01 = e00 * keep + e10 * take, e01 * keep + e11 * take
        self._e10, self._e11 = e00 * give + e10 * hold, e01 * give + e11 * hold
        self._offset_before = offset
        self._slope += slope_gain * residual
        self._offset = offset + offset_gain * residual

    def _judge(self, gap_ms: float, now: int) -> None:
        """What the path is, by how late each group is behind the one before; the threshold follows what is usual."""
        if self._deltas < 2:
            return
        offset = self._offset
        trend = min(self._deltas, _REMEMBERED_GAPS) * offset
        if trend > self._threshold:
            self._over_ms = gap_ms / 2 if self._over_ms is None else self._over_ms + gap_ms
            self._overuses += 1
            if self._over_ms > 10 and self._overuses > 1 and offset >= self._trend_before:
                self._over_ms, self._overuses = 0, 0
                self._state = _OVERUSED
        else:
            self._over_ms, self._overuses = None, 0
            self._state = _UNDERUSED if trend < -self._threshold else _NORMAL
        self._trend_before = offset
        size = abs(trend)
        if self._threshold_ms is not None and size <= self._threshold + 15:
            speed = 0.039 if size < self._threshold else 0.0087
            threshold = self._threshold + speed * (size - self._threshold) * min(now - self._threshold_ms, 100)
            self._threshold = max(6, min(threshold, 600))
        self._threshold_ms = now


class _RateControl:
    """What the sender is told: more, step by step, or, where the path is overused, less than what comes (section 5.5)."""

    __slots__ = ("_changed_ms", "_is_known", "_is_near", "_latest", "_most", "_rate", "_rises", "_since_ms", "_spread")

    def __init__(self) -> None:
        self._rate: int = 30_000_000
        self._latest: int = 30_000_000
        """What was told last, and what came last."""
        self._is_known = False
        """`_rate` is of this path."""
        self._since_ms: int | None = None
        self._changed_ms: int | None = None
        self._rises = False
        self._is_near = False
        """The path's end was met before: go on carefully."""
        self._most: float | None = None
        """What came, about, when it was overused, in kilobits a second …"""
        self._spread: float = 0.4
        """… and its variance, relative to it."""

    def update(self, state: int, came: int | None, now: int) -> int | None:
        """What to tell; None: nothing is known yet.

        Args:
            state: What the path is.
            came: Bits a second; None: not known.
            now: In milliseconds.
        """
        if not self._is_known and came is not None:
            if self._since_ms is None:
                self._since_ms = now
            elif now - self._since_ms > 3000:
                self._rate, self._is_known = came, True
        if not self._is_known and state != _OVERUSED:
            return None
        if came is None:
            came = self._latest
        self._latest = came
        rate = self._rate
        if state == _OVERUSED:
            rate = self._lower(came, now)
        elif state == _UNDERUSED:
            self._rises = False  # let what has piled up go
        elif self._rises:
            rate += self._step(came, now)
        else:
            self._rises, self._changed_ms = True, now
            rate += self._step(came, now)
        self._rate = min(rate, max(int(1.5 * came) + 10_000, self._rate))
        return self._rate

    def _lower(self, came: int, now: int) -> int:
        came_k = came / 1000
        if self._most is not None and came_k < self._most - 3 * self._deviation(self._most):
            self._most = None
        self._most = most = came_k if self._most is None else 0.95 * self._most + 0.05 * came_k
        spread = 0.95 * self._spread + 0.05 * ((most - came_k) ** 2) / max(1, most)
        self._spread = max(0.4, min(spread, 2.5))
        self._is_near, self._rises = True, False
        self._changed_ms = now
        return round(0.85 * came)

    def _step(self, came: int, now: int) -> int:
        if self._most is not None and came / 1000 >= self._most + 3 * self._deviation(self._most):
            self._is_near, self._most = False, None  # it carries more than it did
        since, self._changed_ms = self._changed_ms, now
        assert since is not None
        if not self._is_near:
            return int(max((pow(1.08, min(now - since, 1000) / 1000) - 1) * self._rate, 1000))
        frame_bits = self._rate / 30
        packet_bits = frame_bits / max(1, math.ceil(frame_bits / (8 * 1200)))
        return int((now - since) * max(4000, int(packet_bits * 1000 / 300)) / 1000)

    def _deviation(self, most: float) -> float:
        return math.sqrt(self._spread * most)
