"""When a sender is asked for a key frame, and how long it takes to answer.

Owns: `KeyRequests`, what is known of one sender's answers. Driven by `sampled_decode`, frame by frame. It never decides
whether a key frame is wanted.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["KeyRequests"]

INTERVAL_SECONDS = 0.3
"""Requests are at least this far apart: senders ignore more."""
_RETRY_SECONDS = 0.4
_MAX_DELAY_SECONDS = 0.3
"""A sender that takes longer is not waited for in advance."""
_FIRST_DELAY_SECONDS = 0.05
"""What is expected of a sender that was never asked."""
_COARSE_IN_A_ROW = 2
"""One alone may be the first of a stream, whose encoder is still looking for its rate."""
_SLOWER, _FASTER = 0.5, 0.25
"""By which share of the difference an answer changes what is expected: one that comes too late costs a late picture, one that
comes early only the decoding of a few more frames."""


class KeyRequests:
    """What one sender is asked for.

    Attributes:
        count: How often.
        answers: It has answered at least once.
        delay_seconds: How long an answer takes, about, in media time: from the newest frame at the request to the key frame.
    """

    __slots__ = ("_ask", "_asked_at", "_asked_seconds", "_coarse", "_last", "answers", "count", "delay_seconds")

    def __init__(self, ask: Callable[[], None]) -> None:
        """Nothing was asked for yet.

        Args:
            ask: Asks the sender (PLI).
        """
        self._ask = ask
        self._asked_at: float | None = None
        self._asked_seconds = 0.0
        self._coarse = 0
        self._last = float("-inf")
        self.count = 0
        self.answers = False
        self.delay_seconds = _FIRST_DELAY_SECONDS

    @property
    def is_pending(self) -> bool:
        """Whether a key frame was asked for that has not come."""
        return self._asked_at is not None

    @property
    def are_costly(self) -> bool:
        """The last answers were so coarse that the pictures are better without."""
        return self._coarse >= _COARSE_IN_A_ROW

    def ask(self, now: float, media_seconds: float) -> None:
        """Ask, unless that was done just now.

        Args:
            now: The session's clock.
            media_seconds: The newest frame's media time.
        """
        since = now - self._last
        if since < INTERVAL_SECONDS or (self._asked_at is not None and since < _RETRY_SECONDS):
            return
        self._last = now
        if self._asked_at is None:
            self._asked_at, self._asked_seconds = now, media_seconds
        self.count += 1
        self._ask()

    def forget_coarse(self) -> None:
        """What the last answers were like does not count any more."""
        self._coarse = 0

    def receive_key(self, media_seconds: float, *, is_coarse: bool = False) -> None:
        """A key frame came, asked for or not.

        Args:
            media_seconds: Its media time.
            is_coarse: It is a poor picture, by what it says of itself.
        """
        if self._asked_at is None:
            return
        self._coarse = self._coarse + 1 if is_coarse else 0
        self._asked_at = None
        self.answers = True
        waited = min(max(media_seconds - self._asked_seconds, 0.0), _MAX_DELAY_SECONDS)
        share = _SLOWER if waited > self.delay_seconds else _FASTER
        self.delay_seconds += share * (waited - self.delay_seconds)
