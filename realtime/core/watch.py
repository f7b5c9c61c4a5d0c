"""Whether the response that is under way still lives (behaviour.md T1, H3; field case B36).

Owns: when the running response last said something, and when one that was cut should have ended. Driven by
`realtime.core.floor`, which carries out what is found. Never ends a response.

A provider may drop a response without a word, or never end one that was interrupted; whoever waits for its end would wait
for ever.
"""

from __future__ import annotations

from realtime.core.overlap import REPLY_PATIENCE_SECONDS

__all__ = ["SILENCE_SECONDS", "ResponseWatch"]

SILENCE_SECONDS = 30.0
"""A running response that says nothing for so long is reported."""


class ResponseWatch:
    """One running response and its two deadlines."""

    def __init__(self) -> None:
        """None is running."""
        self.response_id: str | None = None
        """The response that is watched."""
        self.is_silent = False
        """It has said nothing for long enough to be reported."""
        self._heard_at = 0.0
        self._cut_at: float | None = None

    def begin(self, response_id: str, *, now: float) -> None:
        """A response began."""
        self.response_id, self._heard_at = response_id, now
        self._cut_at, self.is_silent = None, False

    def heard(self, response_id: str, *, now: float) -> None:  # hot path: every chunk of a reply
        """A response said something."""
        if response_id == self.response_id:
            self._heard_at, self.is_silent = now, False

    def cut(self, *, now: float) -> None:
        """The response is not wanted any more: it should end soon."""
        if self.response_id is not None and self._cut_at is None:
            self._cut_at = now

    def end(self) -> None:
        """It is over."""
        self.response_id = self._cut_at = None
        self.is_silent = False

    @property
    def overdue_at(self) -> float | None:
        """When a cut response should have ended; None if none is cut."""
        return None if self._cut_at is None else self._cut_at + REPLY_PATIENCE_SECONDS

    @property
    def silent_at(self) -> float | None:
        """When the running response is to be reported as silent; None if none runs, or it was reported already."""
        if self.response_id is None or self.is_silent or self._cut_at is not None:
            return None
        return self._heard_at + SILENCE_SECONDS
