"""What a session has used, against what it may (`UsageLimits`).

Owns: the sums of tokens, responses and pictures, and what they cost. Driven by `SessionMachine`. Never ends a session: it
names the breach.
"""

from __future__ import annotations

from realtime.core.capabilities import ModelCapabilities
from realtime.core.model_events import TokenUsage
from realtime.core.settings import UsageLimits
from realtime.errors import UsageLimitExceeded

__all__ = ["LimitWatch"]


class LimitWatch:
    """The sums of one session."""

    def __init__(self, limits: UsageLimits, *, started_at: float, usage: TokenUsage) -> None:
        """Start at what a continued conversation had used before.

        Args:
            limits: What may be used.
            started_at: When the session began.
            usage: Tokens used before it.
        """
        self._limits = limits
        self._started_at = started_at
        self._elapsed = 0.0
        self.usage = usage
        """Tokens of the whole conversation."""
        self.responses = 0
        """Responses of this session."""
        self.images = 0
        """Pictures sent in this session."""
        self._image_refused = False
        self._last_total: int | None = None

    def add_usage(self, usage: TokenUsage) -> None:
        """A response was paid for."""
        self.usage = self.usage + usage
        self._last_total = usage.total_tokens

    def time_passed(self, now: float) -> None:
        """The present moment."""
        self._elapsed = max(self._elapsed, now - self._started_at)

    @property
    def cost(self) -> float | None:
        """What was used so far costs; None without prices."""
        if self._limits.prices is None:
            return None
        return self._limits.prices.cost(self.usage, images=self.images, seconds=self._elapsed)

    @property
    def ends_at(self) -> float | None:
        """When time alone will reach a limit; None without such a limit, or once it is reached."""
        limits = self._limits
        if limits.max_seconds is None and limits.max_cost is None:
            return None
        left: list[float] = []
        if limits.max_seconds is not None:
            left.append(limits.max_seconds - self._elapsed)
        cost = self.cost
        if limits.max_cost is not None and cost is not None and limits.prices is not None and limits.prices.minute:
            left.append((limits.max_cost - cost) / limits.prices.minute * 60)
        soonest = min(left, default=0.0)
        return self._started_at + self._elapsed + soonest if soonest > 0 else None

    def allows_image(self, *, waiting: int = 0) -> bool:
        """Whether one more picture may be sent. One that is wanted beyond the limit is the breach.

        Args:
            waiting: Pictures that are on their way.
        """
        most = self._limits.max_images
        if most is None or self.images + waiting < most:
            return True
        self._image_refused = self._image_refused or self.images >= most
        return False

    def breach(self) -> UsageLimitExceeded | None:
        """The first limit that is reached."""
        limits = self._limits
        figures: tuple[tuple[str, float, float | None], ...] = (
            ("max_tokens", self.usage.total_tokens, limits.max_tokens),
            ("max_responses", self.responses, limits.max_responses),
            ("max_seconds", self._elapsed, limits.max_seconds),
            ("max_images", self.images + 1, limits.max_images if self._image_refused else None),
            ("max_cost", 0.0 if limits.max_cost is None else self.cost or 0.0, limits.max_cost),
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
