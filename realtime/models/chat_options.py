"""How a `ChatModel` asks, and how long it waits.

Owns: `ChatOptions`, and `ReplyWait`, which keeps the deadlines of one reply by a clock. Driven by `models/chat.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Final

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Clock, Deadline

__all__ = ["ChatOptions", "ReplyWait"]

_WAITS: Final = ("connect_timeout_seconds", "answer_timeout_seconds", "idle_timeout_seconds", "timeout_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a `ChatModel` asks and how long it waits."""

    temperature: float | None = None
    """0 to 2; None: the server's default."""
    max_output_tokens: int | None = None
    """The longest reply, in tokens; None: the server's default."""
    reasoning_model: bool = False
    """Send instructions as ``developer`` and the limit as ``max_completion_tokens``, as OpenAI's reasoning models want it."""
    audio: bool = False
    """Send the user's recordings rather than their transcripts."""
    connect_timeout_seconds: float = 10.0
    """How long a connection may take."""
    answer_timeout_seconds: float = 60.0
    """How long the server may take to begin its reply: it reads a long prompt meanwhile."""
    idle_timeout_seconds: float = 30.0
    """How long it may be silent within a reply."""
    timeout_seconds: float = 180.0
    """How long a reply may be waited for altogether; the reader's own time is not counted."""
    max_response_bytes: int = 8 * 1024 * 1024
    """The largest reply, as it comes over the wire."""

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ArgumentError: A value is out of range.
        """
        for name in (*_WAITS, "max_response_bytes"):
            if not getattr(self, name) > 0:
                raise ArgumentError(name, getattr(self, name), "above 0")
        if self.max_output_tokens is not None and self.max_output_tokens <= 0:
            raise ArgumentError("max_output_tokens", self.max_output_tokens, "above 0, or None")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ArgumentError("temperature", self.temperature, "from 0 to 2, or None")


class ReplyWait:
    """How long one reply may still be waited for."""

    def __init__(self, clock: Clock, options: ChatOptions) -> None:
        """Nothing was waited for yet."""
        self._clock = clock
        self._options = options
        self._left = options.timeout_seconds
        self.limit = options.timeout_seconds
        """Which limit the present wait has."""

    def for_answer(self) -> _Deadline:
        """Until the server answers at all."""
        return self._within(self._options.answer_timeout_seconds)

    def for_more(self) -> _Deadline:
        """Until it sends more."""
        return self._within(self._options.idle_timeout_seconds)

    def _within(self, seconds: float) -> _Deadline:
        self.limit = self._options.timeout_seconds if self._left <= seconds else seconds
        return _Deadline(self, self._clock, min(seconds, self._left))

    def spent(self, seconds: float) -> None:
        """So long was waited."""
        self._left = max(0.0, self._left - seconds)


class _Deadline(Deadline):
    """One wait of them."""

    def __init__(self, wait: ReplyWait, clock: Clock, seconds: float) -> None:
        self._wait = wait
        self._began = clock.now()
        super().__init__(clock, self._began + seconds)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Reckon the time that it took."""
        self._wait.spent(self._clock.now() - self._began)
        await super().__aexit__(kind, error, trace)
