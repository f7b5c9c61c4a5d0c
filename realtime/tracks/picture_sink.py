"""What stands on both sides of a video stream that we receive: who looks at its pictures, and its sender.

Owns: the protocols `PictureSink` and `Feedback`. Driven by `sampled_decode`; a session's sampler, or whoever reads the track itself, is a
sink. It holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Feedback", "PictureSink"]


class PictureSink(Protocol):
    """Who looks at pictures."""

    def now(self) -> float:
        """The session's clock, in seconds."""
        ...

    def is_due(self, pts_ms: int) -> bool:
        """Whether a picture of this media time is wanted now (a question: it changes nothing)."""
        ...

    def may_hold(self, pts_ms: int) -> bool:
        """Whether a picture of this media time, which is not due, may be held undecoded for later."""
        ...

    def develop(self, frame: Any, /) -> Any:
        """What `receive` is to be given for a picture that was wanted. Called on the worker thread that decoded it."""
        ...

    def receive(self, frame: Any, arrived_at: float, /) -> None:
        """Take a picture that was wanted, as `develop` gave it, or one that was not and is not decoded (`UndecodedFrame`).

        Where every frame is decoded, those come as they are.
        """
        ...

    def run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], /) -> None:
        """Run a job on a worker thread, and call back on the loop with its result or its error."""
        ...


class Feedback(Protocol):
    """What can be told to the sender."""

    def request_key_frame(self) -> None:
        """Ask for a key frame (PLI)."""
        ...

    def report_missing(self, numbers: list[int]) -> None:
        """Ask for packets again (NACK)."""
        ...
