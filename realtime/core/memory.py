"""The hard cap on what a session holds (behaviour.md R5).

Owns: the order in which bytes leave under `memory_limit_bytes`. Driven by whatever adds bytes: audio, pictures, frames that
wait. Words never leave by it.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime.core.commands import DropHeldFrame
from realtime.core.effects import Effects
from realtime.core.events import FrameSkipped
from realtime.core.keeping import Keeping
from realtime.core.outgoing import Outgoing
from realtime.core.sampling import FrameSampler

__all__ = ["MemoryCap"]


class MemoryCap:
    """What is held, and what leaves when it is too much."""

    def __init__(
        self,
        *,
        limit_bytes: int | None,
        keeping: Keeping,
        outgoing: Outgoing,
        sampler: FrameSampler,
        effects: Effects,
    ) -> None:
        """Nothing is held.

        Args:
            limit_bytes: The cap; None: none.
            keeping: The history's pictures and recordings.
            outgoing: Pictures on their way to the provider.
            sampler: Frames that are held for the end of a turn.
            effects: Audio that waits for the socket; where events and commands go.
        """
        self._limit = limit_bytes
        self.is_capped = limit_bytes is not None
        """Whether there is a cap at all."""
        self._keeping = keeping
        self._outgoing = outgoing
        self._sampler = sampler
        self._effects = effects

    @property
    def used_bytes(self) -> int:
        """Pictures, recordings, frames, and what waits for the socket or for a replay."""
        return (
            self._keeping.image_bytes
            + self._keeping.audio_bytes
            + self._sampler.held_bytes
            + self._outgoing.picture_bytes
            + self._effects.outbox.audio_bytes
        )

    def bound(self) -> None:
        """Bring what is held within the cap, as far as words allow."""
        if self._limit is not None:
            self.make_room(0)

    def make_room(self, byte_length: int, *, source: str | None = None) -> bool:
        """Let things go until so many more bytes fit, in the order of R5.

        Oldest audio, finished before live; pictures but the newest of each source; video that waits.

        Args:
            byte_length: What is about to come.
            source: Whose picture it is: it will be the newest of its source.

        Returns:
            Whether it fits; if not, a new picture is refused.
        """
        limit = self._limit
        if limit is None or self.used_bytes + byte_length <= limit:  # hot path: nearly always
            return True

        def over() -> int:
            return self.used_bytes + byte_length - limit

        while over() > 0 and self._keeping.audio.has_finished:
            self._keeping.evict_oldest_audio()
        while over() > 0 and self._keeping.audio.live_bytes:  # what is kept for a replay, too, is not freed by it
            self._keeping.audio.shorten_live(over())
        _while(lambda: over() > 0, lambda: self._keeping.evict_oldest_picture(source))
        _while(lambda: over() > 0, self._outgoing.drop_oldest_waiting)
        _while(lambda: over() > 0, self._drop_held)
        return over() <= 0

    def _drop_held(self) -> bool:
        held = self._sampler.drop_oldest_held()
        if held is None:
            return False
        self._effects.do(DropHeldFrame(command_id=self._effects.new_id(), source=held.source, frame_id=held.frame_id))
        self._effects.emit(FrameSkipped(source=held.source, reason="image_limit", captured_at=held.captured_at))
        return True


def _while(wanted: Callable[[], bool], step: Callable[[], bool]) -> None:
    """Take steps while they are wanted and possible."""
    while wanted() and step():
        pass
