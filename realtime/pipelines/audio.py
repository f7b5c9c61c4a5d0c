"""From audio tracks to the model's input stream.

Owns: one converter per audio source, the mix of several sources, and the size of the chunks. Driven by track readers,
frame by frame; gives PCM16 mono at the model's rate to the machine. It never decides who speaks, and never takes a position
from a clock: they are pts and sample counts (behaviour.md A1–A3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from realtime import pcm
from realtime.media.audio import AudioConverter
from realtime.pipelines.mixer import Mixer

__all__ = ["AudioInput"]

CHUNK_MS = 15
"""Audio leaves in chunks of at least this much: a frame of a track at a time. Latency counts more than messages."""
MAX_CHUNK_MS = 100
"""… and of at most this much."""
MAX_GAP_SECONDS = 5.0
"""A longer hole in pts is a pause of the sender, not a loss: it does not become silence, which would all come at once."""


class AudioInput:
    """All audio sources of a session, as one stream."""

    def __init__(
        self, rate_hz: int, deliver: Callable[[bytes], None], *, now: Callable[[], float] | None = None
    ) -> None:
        """Start without sources.

        Args:
            rate_hz: The model's input rate.
            deliver: Takes each chunk of PCM16 mono, whole samples.
            now: Tells monotonic seconds, so that no source makes more silence than time passes (`AudioConverter`).
        """
        self._rate_hz = rate_hz
        self._now = now
        self._deliver = deliver
        self._mixer = Mixer(rate_hz)
        self._converters: dict[str, AudioConverter] = {}
        self._pending = bytearray()
        self._chunk_bytes = pcm.ms_to_samples(CHUNK_MS, rate_hz) * 2
        self._max_chunk_bytes = pcm.ms_to_samples(MAX_CHUNK_MS, rate_hz) * 2

    @property
    def rate_hz(self) -> int:
        """The model's rate."""
        return self._rate_hz

    def add(self, source: str) -> None:
        """Take a source in."""
        self._converters[source] = AudioConverter(self._rate_hz, max_gap_seconds=MAX_GAP_SECONDS, now=self._now)
        self._mixer.add(source)

    def remove(self, source: str) -> None:
        """Let a source go; what its converter still holds is delivered."""
        converter = self._converters.pop(source, None)
        if converter is None:
            return
        self._emit(self._mixer.push(source, converter.flush()))
        self._emit(self._mixer.remove(source))
        if not self._converters:
            self.flush()

    def receive(self, source: str, frame: Any) -> None:  # hot path: every audio frame of every source
        """Take an av.AudioFrame of a source that was added."""
        self._emit(self._mixer.push(source, self._converters[source].convert(frame)))

    def ear(self, source: str, failing: set[str], fail: Callable[[str, Exception], None]) -> Callable[[bytes], None]:
        """Who takes PCM16 mono at the model's rate, whole samples, of a source that was added; nothing that goes wrong rises.

        Args:
            source: Which.
            failing: The sources of which the last piece failed; it leaves them with the first that does not.
            fail: Told of a failure.
        """
        mixer, deliver, least, most = self._mixer, self._deliver, self._chunk_bytes, self._max_chunk_bytes

        def hear(samples: bytes) -> None:  # hot path: every packet of every source
            try:
                if source == mixer.alone and not self._pending and least <= len(samples) <= most:
                    deliver(samples)
                else:
                    self._emit(mixer.push(source, samples))
            except Exception as error:
                fail(source, error)
            else:
                if failing:
                    failing.discard(source)

        return hear

    def flush(self) -> None:
        """Deliver what is too short for a chunk."""
        if self._pending:
            rest, self._pending = bytes(self._pending), bytearray()
            self._deliver(rest)

    @property
    def late_ms(self) -> int:
        """Audio that came too late for its place in the mix and was put at the present one."""
        return pcm.samples_to_ms(self._mixer.late, self._rate_hz)

    def _emit(self, audio: bytes) -> None:
        if not self._pending and self._chunk_bytes <= len(audio) <= self._max_chunk_bytes:
            self._deliver(audio)
            return
        self._pending += audio
        while len(self._pending) >= self._chunk_bytes:
            chunk = bytes(self._pending[: self._max_chunk_bytes])
            del self._pending[: self._max_chunk_bytes]
            self._deliver(chunk)
