"""What the session may keep: pictures, audio, messages, bytes (behaviour.md R1–R5).

Owns: the exact integer sums of each budget and the order of eviction. Driven by `SessionMachine`'s parts, which tell it what
was added. Names what must go in O(evicted); `realtime.core.keeping` carries it out. Never touches a message.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from realtime.core.input_audio import AudioTape
from realtime.core.places import Place
from realtime.core.settings import Retention

__all__ = ["AudioBudget", "ImageBudget"]


class ImageBudget:
    """Which pictures are kept: the first and then one of every N that were sent, the newest `images_max` of them."""

    def __init__(self, retention: Retention) -> None:
        """Start empty; seeded pictures do not count."""
        self._every_n = retention.images_every_n
        self._max = retention.images_max
        self._sent = 0
        self._count = 0
        self._kept: OrderedDict[Place, int] = OrderedDict()
        self._of_source: dict[str, OrderedDict[Place, None]] = {}

    @property
    def sent(self) -> int:
        """Pictures really sent."""
        return self._sent

    @property
    def kept(self) -> int:
        """Pictures kept now."""
        return self._count

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
        while self._max is not None and self._count >= self._max:
            oldest = next(iter(self._kept))
            self._lose_one(oldest)
            leaving.append(oldest)
        return leaving

    def add(self, place: Place) -> None:
        """A picture was kept at `place`."""
        self._kept[place] = self._kept.get(place, 0) + 1
        self._of_source.setdefault(_source_of(place), OrderedDict())[place] = None
        self._count += 1

    def oldest_but_newest_of_source(self, incoming: str | None = None) -> Place | None:
        """For the memory cap: the place of the oldest kept picture that is not the newest of its source.

        Args:
            incoming: A newer picture of this source is about to come.

        Returns:
            The place, which is no longer counted with that picture; None if there is none.
        """
        for place, count in self._kept.items():  # passes over one per source at most
            of_source = self._of_source[_source_of(place)]
            if count > 1 or _source_of(place) == incoming or next(reversed(of_source)) is not place:
                self._lose_one(place)
                return place
        return None

    def _lose_one(self, place: Place) -> None:
        self._count -= 1
        self._kept[place] -= 1
        if not self._kept[place]:
            self._drop(place)

    def _drop(self, place: Place) -> None:
        del self._kept[place]
        source = _source_of(place)
        del self._of_source[source][place]
        if not self._of_source[source]:
            del self._of_source[source]

    def forget(self, place: Place) -> int:
        """A place left with all its pictures.

        Returns:
            How many of them were counted (seeded ones are not).
        """
        counted = self._kept.get(place, 0)
        if counted:
            self._count -= counted
            self._drop(place)
        return counted


def _source_of(place: Place) -> str:
    return place.message.source if place.message is not None else ""


class AudioBudget:
    """One budget over both speakers and the turns in progress, in ticks that both sample rates divide."""

    def __init__(self, retention: Retention, *, input_rate_hz: int, output_rate_hz: int) -> None:
        """Start empty; seeded audio does not count."""
        self._per_second = per_second = math.lcm(input_rate_hz, output_rate_hz)
        self._input_ticks = per_second // input_rate_hz
        self._output_ticks = per_second // output_rate_hz
        seconds = retention.audio_max_seconds
        self._bound = None if seconds is None else math.floor(seconds * per_second)
        self._finished: OrderedDict[Place, tuple[int, int]] = OrderedDict()
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
        self._add(place, samples * (self._input_ticks if is_input else self._output_ticks), samples * 2)

    def add_recording(self, place: Place, *, duration_ms: int, byte_length: int) -> None:
        """A recording of the application's own, at any rate, is kept at `place`."""
        self._add(place, duration_ms * self._per_second // 1000, byte_length)

    def _add(self, place: Place, ticks: int, size: int) -> None:
        self._finished[place] = (ticks, size)
        self._finished_ticks += ticks
        self.bytes_kept += size

    def excess(self) -> list[Place]:
        """Bring the budget back in bounds: finished audio first, oldest first, then live audio from its front.

        Returns:
            The places whose audio must go.
        """
        leaving: list[Place] = []
        if self._bound is None:
            return leaving
        over = self.ticks - self._bound
        while self._finished and over > 0:
            before = self._finished_ticks
            leaving.append(self.pop_oldest())
            over -= before - self._finished_ticks
        for tape, unit in self._live:
            if over <= 0:
                break
            over -= unit * tape.keep_last(max(0, len(tape) - -(-over // unit)))
        return leaving

    def pop_oldest(self) -> Place:
        """Stop counting the oldest finished audio and name its place."""
        place = next(iter(self._finished))
        self.forget(place)
        return place

    @property
    def has_finished(self) -> bool:
        """Whether finished audio is kept."""
        return bool(self._finished)

    def shorten_live(self, over_bytes: int) -> None:
        """For the memory cap: turns in progress lose so many bytes, from the front of the oldest."""
        for tape, _ in self._live:
            if over_bytes <= 0:
                return
            over_bytes -= 2 * tape.keep_last(max(0, len(tape) - -(-over_bytes // 2)))

    def forget(self, place: Place) -> None:
        """A place left with its audio, or lost it."""
        ticks, size = self._finished.pop(place, (0, 0))
        self._finished_ticks -= ticks
        self.bytes_kept -= size
