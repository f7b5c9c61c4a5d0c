"""How long a call may last: in all, in silence, and with nobody there.

Owns: `Lifetime`: when a call began, when somebody last said or did something, and since when nobody has been there. Driven by
`realtime.web.call`, which tells it and asks it. It ends nothing itself.
"""

from __future__ import annotations

from realtime.pipelines.clock import Clock
from realtime.web.options import WebLimits

__all__ = ["Lifetime"]

_LOOK_SECONDS = 0.5


class Lifetime:
    """The time of one call."""

    def __init__(self, limits: WebLimits, clock: Clock) -> None:
        """It begins now."""
        self._limits = limits
        self._clock = clock
        self._begun_at = self._active_at = self._alone_since = clock.now()

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return self._clock.now() - self._begun_at

    def session_began(self) -> None:
        """Who waited for it was not idle: a model may have been loaded until now."""
        self._alone_since = self._active_at = self._clock.now()

    def touch(self) -> None:
        """Somebody has said or done something."""
        self._active_at = self._clock.now()

    def left(self) -> None:
        """Somebody has gone who was there."""
        self._alone_since = self._clock.now()

    def reason_to_end(self, *, has_listener: bool, has_peer: bool) -> str:
        """Why it is over by now; empty: it is not.

        Whoever listens but neither offers a peer connection nor says anything holds a line that others may want.

        Args:
            has_listener: Somebody listens.
            has_peer: There is a peer connection, or one is being made.
        """
        limits, now = self._limits, self._clock.now()
        if limits.total_seconds is not None and now - self._begun_at >= limits.total_seconds:
            return "time_limit"
        if limits.idle_seconds is not None and now - self._active_at >= limits.idle_seconds:
            return "idle"
        if has_peer:
            return ""
        is_alone = not has_listener and now - self._alone_since >= limits.grace_seconds
        unused = now - max(self._alone_since, self._active_at)
        return "gone" if is_alone or unused >= limits.connect_seconds + limits.grace_seconds else ""

    async def wait(self) -> None:
        """Until it is time to look again."""
        await self._clock.sleep_until(self._clock.now() + max(_LOOK_SECONDS, self._limits.grace_seconds / 8))
