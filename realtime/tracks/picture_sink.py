"""What stands on both sides of a video stream that we receive: who looks at its pictures, and its sender.

Owns: the protocols `PictureSink`, with `Lull`, and `Feedback`; and `EveryPicture`, the sink for whoever reads the track itself while
no session looks (a session's is in `realtime.pipelines.direct`). Driven by `sampled_decode`. It holds nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["EveryPicture", "Feedback", "Lull", "PictureSink", "RunJob"]

RunJob = Callable[[Callable[[], Any], Callable[[Any, BaseException | None], None]], None]
"""Runs a job on a worker thread and calls back on the loop with its result or its error."""


class Lull(Protocol):
    """A while in which nobody wants a picture."""

    @property
    def is_over(self) -> bool:
        """Something has changed: it tells nothing any more."""
        ...

    @property
    def until_ms(self) -> float:
        """The media time from which on a picture may be due."""
        ...

    @property
    def until(self) -> float:
        """The time of the session's clock from which on one may be held."""
        ...


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

    def lull(self) -> Lull | None:
        """For how long nothing newer than what `is_due` was asked about is due or may be held; None: the next one may be."""
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


class EveryPicture:
    """Looks at every picture, for whoever reads the track itself while no session looks."""

    def __init__(self, run: RunJob) -> None:
        """Prepare.

        Args:
            run: Runs decoding on a worker thread.
        """
        self.run = run

    def now(self) -> float:
        """The clock that sessions have as well."""
        return time.monotonic()

    def is_due(self, pts_ms: int) -> bool:
        """Always."""
        del pts_ms
        return True

    def may_hold(self, pts_ms: int) -> bool:
        """Never: all are due."""
        del pts_ms
        return False

    def lull(self) -> None:
        """There is none."""
        return

    def develop(self, frame: Any) -> Any:
        """Nothing is made of it."""
        return frame

    def receive(self, frame: Any, arrived_at: float) -> None:
        """Every picture goes to the track's queue already."""


class Feedback(Protocol):
    """What can be told to the sender."""

    def request_key_frame(self) -> None:
        """Ask for a key frame (PLI)."""
        ...

    def report_missing(self, numbers: list[int]) -> None:
        """Ask for packets again (NACK)."""
        ...
