"""What a session has used, against what it may (`UsageLimits`).

Owns: the sums of tokens, responses and pictures. Driven by `SessionMachine`. Never ends a session: it names the breach.
"""

from __future__ import annotations

from realtime.core.capabilities import ModelCapabilities
from realtime.core.model_events import TokenUsage
from realtime.core.settings import UsageLimits
from realtime.errors import UsageLimitExceeded

__all__ = ["LimitWatch"]


class LimitWatch:
    """The sums of one session."""

    def __init__(self, limits: UsageLimits, *, started_at: float) -> None:
        """Start at nothing used."""
        self._limits = limits
        self._started_at = started_at
        self._elapsed = 0.0
        self.usage = TokenUsage()
        self.responses = 0
        self.images = 0
        self._last_total: int | None = None

    def add_usage(self, usage: TokenUsage) -> None:
        """A response was paid for."""
        self.usage = self.usage + usage
        self._last_total = usage.total_tokens

    def time_passed(self, now: float) -> None:
        """The present moment."""
        self._elapsed = now - self._started_at

    @property
    def ends_at(self) -> float | None:
        """When `max_seconds` is reached; None without that limit, or once it was."""
        if self._limits.max_seconds is None or self._elapsed >= self._limits.max_seconds:
            return None
        return self._started_at + self._limits.max_seconds

    @property
    def images_are_spent(self) -> bool:
        """Whether no further picture may be sent."""
        return self._limits.max_images is not None and self.images >= self._limits.max_images

    def breach(self) -> UsageLimitExceeded | None:
        """The first limit that is reached and ends the session; pictures only stop being sent."""
        limits = self._limits
        figures: tuple[tuple[str, float, float | None], ...] = (
            ("max_tokens", self.usage.total_tokens, limits.max_tokens),
            ("max_responses", self.responses, limits.max_responses),
            ("max_seconds", self._elapsed, limits.max_seconds),
        )
        for name, used, allowed in figures:
            if allowed is not None and used >= allowed:
                return UsageLimitExceeded(name, used=used, allowed=allowed)
        return None

    def window_fraction(self, capabilities: ModelCapabilities) -> float | None:
        """The last response's tokens over the context window (behaviour.md H4)."""
        if self._last_total is None or not capabilities.context_window or not capabilities.reports_total_usage:
            return None
        return self._last_total / capabilities.context_window
