"""What the session may keep: pictures, audio, messages, bytes (behaviour.md R1–R5).

Owns: the exact integer sums of each budget and the order of eviction. Driven by `SessionMachine`'s parts, which tell it what
was added. Names what must go in O(evicted); `realtime.core.keeping` carries it out. Never touches a message.
"""

from __future__ import annotations

import math
from collections import deque

from realtime.core.history import Place
from realtime.core.input_audio import AudioTape
from realtime.core.settings import Retention

__all__ = ["AudioBudget", "ImageBudget"]


class ImageBudget:
    """Which pictures are kept: the first and then one of every N that were sent, the newest `images_max` of them."""

    def __init__(self, retention: Retention) -> None:
        """Start empty; seeded pictures do not count."""
        self._every_n = retention.images_every_n
        self._max = retention.images_max
        self._sent = 0
        self._kept: deque[Place] = deque()

    @property
    def sent(self) -> int:
        """Pictures really sent."""
        return self._sent

    @property
    def kept(self) -> int:
        """Pictures kept now."""
        return len(self._kept)

    def admit(self) -> bool:
        """Count one picture as sent.

        Returns:
            Whether it is kept.
        """
        kept = self._sent % self._every_n == 0 and self._max != 0
        self._sent += 1
        return kept

    def room(self) -> list[Place]:
        """Name what must leave before one more picture is kept (a place stands once per picture that it loses)."""
        leaving: list[Place] = []
        while self._max is not None and len(self._kept) >= self._max:
            leaving.append(self._kept.popleft())
        return leaving

    def add(self, place: Place) -> None:
        """A picture was kept at `place`."""
        self._kept.append(place)

    def oldest_but_newest_of_source(self) -> Place | None:
        """For the memory cap: the oldest kept picture that is not the newest of its source; it is no longer counted."""
        newest: dict[str, int] = {}
        for index, place in enumerate(self._kept):
            newest[place.message.source if place.message is not None else ""] = index
        for index, place in enumerate(self._kept):
            if index not in newest.values():
                del self._kept[index]
                return place
        return None

    def forget(self, place: Place) -> int:
        """A place left with all its pictures.

        Returns:
            How many of them were counted (seeded ones are not).
        """
        before = len(self._kept)
        if self._kept and self._kept[0] is place:  # the oldest leave first, nearly always
            while self._kept and self._kept[0] is place:
                self._kept.popleft()
        elif place in self._kept:
            self._kept = deque(kept for kept in self._kept if kept is not place)
        return before - len(self._kept)


class AudioBudget:
    """One budget over both speakers and the turns in progress, in ticks that both sample rates divide."""

    def __init__(self, retention: Retention, *, input_rate_hz: int, output_rate_hz: int) -> None:
        """Start empty; seeded audio does not count."""
        per_second = math.lcm(input_rate_hz, output_rate_hz)
        self._input_ticks = per_second // input_rate_hz
        self._output_ticks = per_second // output_rate_hz
        seconds = retention.audio_max_seconds
        self._bound = None if seconds is None else math.floor(seconds * per_second)
        self._finished: deque[tuple[Place, int]] = deque()
        self._finished_ticks = 0
        self._live: list[tuple[AudioTape, int]] = []
        self.bytes_kept = 0
        """Bytes of finished audio that is kept."""

    def watch(self, tape: AudioTape, *, is_input: bool) -> None:
        """A turn in progress is recorded on this tape."""
        self._live.append((tape, self._input_ticks if is_input else self._output_ticks))

    def leave(self, tape: AudioTape) -> None:
        """A turn is over; its tape was cut."""
        self._live = [(live, unit) for live, unit in self._live if live is not tape]

    @property
    def ticks(self) -> int:
        """Everything kept, in ticks."""
        return self._finished_ticks + sum(len(tape) * unit for tape, unit in self._live)

    @property
    def live_bytes(self) -> int:
        """Bytes of turns in progress."""
        return 2 * sum(len(tape) for tape, _ in self._live)

    def add(self, place: Place, samples: int, *, is_input: bool) -> None:
        """A turn's audio was finished: `samples` of it are kept at `place`."""
        ticks = samples * (self._input_ticks if is_input else self._output_ticks)
        self._finished.append((place, ticks))
        self._finished_ticks += ticks
        self.bytes_kept += samples * 2

    def excess(self) -> list[Place]:
        """Bring the budget back in bounds: finished audio first, oldest first, then live audio from its front.

        Returns:
            The places whose audio must go.
        """
        leaving: list[Place] = []
        if self._bound is None:
            return leaving
        while self._finished and self.ticks > self._bound:
            leaving.append(self.pop_oldest())
        over = self.ticks - self._bound
        for tape, unit in self._live:
            if over <= 0:
                break
            over -= unit * tape.keep_last(max(0, len(tape) - -(-over // unit)))
        return leaving

    def pop_oldest(self) -> Place:
        """Stop counting the oldest finished audio and name its place."""
        place, ticks = self._finished.popleft()
        self._finished_ticks -= ticks
        message = place.message
        if message is not None and message.audio is not None:
            self.bytes_kept -= max(0, len(message.audio.data) - 44)
        return place

    @property
    def has_finished(self) -> bool:
        """Whether finished audio is kept."""
        return bool(self._finished)

    def forget(self, place: Place) -> None:
        """A place left with its audio."""
        for index, (kept, ticks) in enumerate(self._finished):
            if kept is place:
                del self._finished[index]
                self._finished_ticks -= ticks
                if place.message is not None and place.message.audio is not None:
                    self.bytes_kept -= max(0, len(place.message.audio.data) - 44)
                return
