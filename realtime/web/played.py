"""From the RTP timestamp that comes out of a loudspeaker to what was heard of a reply.

Owns: `PlayedMap`: which mark of `ReplyListener` stood when each packet was sent. Driven by the peer that sends and by the page's
reports. Exact whatever is lost on the way: a timestamp says which packet is heard, not how many were.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

__all__ = ["PlayedMap"]

_RATE_HZ = 48_000
_PACKET_SAMPLES = 960
_SLACK_SAMPLES = 96
"""Two milliseconds: clocks of page and sound card are read one after the other."""
_MOST_PACKETS = 6_000
"""Two minutes of speech that no report has come for; older packets are forgotten."""
_MOST_DELAY_MS = 5_000.0


class PlayedMap:
    """The packets of one peer connection that have not been reported as heard."""

    def __init__(self) -> None:
        """No packet yet."""
        self._packets: deque[tuple[int, int]] = deque(maxlen=_MOST_PACKETS)
        """(position, mark), positions unwrapped."""
        self._newest = -1

    def sent(self, timestamp: int, mark: int) -> None:  # hot path: 50 a second
        """A packet goes out.

        Args:
            timestamp: Its RTP timestamp, 32 bits at 48 kHz.
            mark: `ReplyListener.mark` now.
        """
        self._newest = self._unwrap(timestamp)
        self._packets.append((self._newest, mark))

    def heard(self, report: Mapping[str, Any]) -> int | None:
        """The newest mark that a report says has been heard to its end; None if it says nothing new or is none.

        Args:
            report: ``rtp_timestamp`` of the packet that is played, ``age_ms`` since it was begun, ``delay_ms`` from there to
                the ear.
        """
        timestamp = report.get("rtp_timestamp")
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or not 0 <= timestamp < 1 << 32:
            return None
        if self._newest < 0:
            return None
        age = _milliseconds(report.get("age_ms"), 60_000.0)
        delay = _milliseconds(report.get("delay_ms"), _MOST_DELAY_MS)
        within = min(_PACKET_SAMPLES, (age - delay) * _RATE_HZ / 1000)
        position = self._unwrap(timestamp) + within + _SLACK_SAMPLES
        if position > self._newest + 2 * _PACKET_SAMPLES:  # of another stream, or made up
            return None
        mark: int | None = None
        while self._packets and self._packets[0][0] + _PACKET_SAMPLES <= position:
            mark = self._packets.popleft()[1]
        return mark

    def _unwrap(self, timestamp: int) -> int:
        """A 32-bit timestamp as the nearest to the newest position."""
        if self._newest < 0:
            return timestamp + (1 << 32)
        ahead = (timestamp - self._newest) & 0xFFFFFFFF
        return self._newest + (ahead if ahead < 1 << 31 else ahead - (1 << 32))


def _milliseconds(value: object, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    return float(min(most, max(0.0, value)))  # an int may be too large for a float
