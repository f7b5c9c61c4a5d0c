"""A session's input audio buffer: what a client appended, heard window by window, until it is committed.

Owns: `InputAudio`. Driven by the session with every `input_audio_buffer.append`; it calls `hear` until nothing waits,
a few windows at a time, so that a client that appends a minute at once does not hold the loop. Positions are
milliseconds of input audio since the session began, counted in samples (behaviour.md A3). What it holds is bounded:
before speech the prefix padding, in a turn `MAX_TURN_MS`; then the oldest is dropped and counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from realtime.local.codecs import AudioDecoder, Pcm16, to_pcm16
from realtime.local.endpointing import Endpointer, EndpointingSettings, Heard, SpeechEnd
from realtime.local.parts import Samples, SpeechDetector

__all__ = ["InputAudio", "Utterance"]

MAX_TURN_MS = 300_000
"""So much audio of one turn is kept; of a longer one the newest."""
SPARE_MS = 300
"""Kept beyond the prefix padding, as speech is noticed after it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Audio cut out of the buffer."""

    pcm: Pcm16
    """Its samples, at the detector's rate."""
    start_ms: int
    """Where it begins in the input audio."""
    end_ms: int
    """Where it ends."""

    @property
    def samples(self) -> Samples:
        """Its samples as float32."""
        return self.pcm.astype(np.float32) * np.float32(1.0 / 32768.0)

    @property
    def duration_ms(self) -> int:
        """How long it is."""
        return self.end_ms - self.start_ms


class InputAudio:
    """The input audio buffer of one session."""

    def __init__(self, detector: SpeechDetector, *, format_type: str = "audio/pcm") -> None:
        """Begin empty, at 0 ms, with nobody listening for turns (push-to-talk).

        Args:
            detector: Tells speech from silence.
            format_type: How the client's audio is coded, one of `codecs.FORMATS`.
        """
        self._rate = detector.rate_hz
        self._window = detector.window_samples
        self._stream = detector.open()
        self._decoder = AudioDecoder(format_type, self._rate)
        self._endpointer: Endpointer | None = None
        self._held = bytearray()
        self._first = 0  # the sample of the input audio that `_held` begins with
        self._heard = 0  # the sample up to which windows were heard
        self._uncommitted = 0  # the sample that the next commit begins with
        self.dropped_ms = 0
        """How much audio was dropped because a turn grew too long."""

    # -- settings ------------------------------------------------------------------------------------------------------

    def set_format(self, format_type: str) -> None:
        """Take audio coded otherwise from now on."""
        self._store(self._decoder.flush())
        self._decoder = AudioDecoder(format_type, self._rate)

    def set_endpointing(self, settings: EndpointingSettings | None) -> None:
        """Listen for turns, or (None) leave it to the client to commit. A turn under way goes on if it can."""
        if settings is None:
            self._endpointer = None
        elif self._endpointer is not None:
            self._endpointer.configure(settings)
        else:
            self._heard = self._end
            self._stream.reset()
            self._endpointer = self._make_endpointer(settings)

    # -- what is there -------------------------------------------------------------------------------------------------

    @property
    def position_ms(self) -> int:
        """How much audio was appended since the session began."""
        return self._ms(self._end)

    @property
    def uncommitted_ms(self) -> int:
        """How much audio a commit would take."""
        return self._ms(self._end) - self._ms(max(self._uncommitted, self._first))

    @property
    def speaking(self) -> bool:
        """Whether a turn is under way. Never in push-to-talk."""
        return self._endpointer is not None and self._endpointer.speaking

    @property
    def endpointing(self) -> EndpointingSettings | None:
        """How turns are told apart; None in push-to-talk."""
        return None if self._endpointer is None else self._endpointer.settings

    @property
    def silence_ms(self) -> int:
        """How long the user has paused, within a turn."""
        return 0 if self._endpointer is None else round(self._endpointer.silence_ms)

    def cut(self, start_ms: int, end_ms: int) -> Utterance:
        """Copy what is held of a stretch."""
        first = max(self._sample(start_ms), self._first)
        last = min(max(self._sample(end_ms), first), self._end)
        held = memoryview(self._held)[2 * (first - self._first) : 2 * (last - self._first)]
        pcm = np.frombuffer(held, np.int16).copy()
        held.release()
        return Utterance(pcm=pcm, start_ms=self._ms(first), end_ms=self._ms(last))

    # -- what happens --------------------------------------------------------------------------------------------------

    def append(self, data: bytes) -> None:
        """Take a client's bytes."""
        self._store(self._decoder.decode(data))

    def hear(self, max_windows: int) -> list[Heard]:
        """Listen to at most so many windows of what waits. Returns what they meant.

        It stops behind a window that meant something, so that the caller acts on it before the next is heard.
        """
        # hot path: every chunk of input audio
        endpointer = self._endpointer
        if endpointer is None:
            return []
        for _ in range(max_windows):
            if not self.waiting:
                break
            at = 2 * (self._heard - self._first)
            window = np.frombuffer(self._held, np.int16, self._window, at).astype(np.float32)
            self._heard += self._window
            meaning = endpointer.hear(self._stream.probability(window * np.float32(1.0 / 32768.0)))
            if meaning is not None:
                return [meaning]
        if not endpointer.speaking:
            keep = endpointer.settings.prefix_padding_ms + SPARE_MS
            self._forget(self._heard - self._sample(keep))
        return []

    @property
    def waiting(self) -> bool:
        """Whether a whole window has not been heard."""
        return self._endpointer is not None and self._end - self._heard >= self._window

    def finish(self) -> SpeechEnd | None:
        """End the turn under way as if the silence had lasted; None if there is none."""
        return None if self._endpointer is None else self._endpointer.finish()

    def commit(self, start_ms: int | None = None, end_ms: int | None = None) -> Utterance:
        """Cut out a turn, or everything, and forget it and what was before it.

        Args:
            start_ms: Where the turn begins; None: where the last commit ended.
            end_ms: Where it ends; None: with the newest sample.
        """
        if end_ms is None:
            self._store(self._decoder.flush())
        first = self._ms(self._uncommitted) if start_ms is None else start_ms
        last = self._ms(self._end) if end_ms is None else end_ms
        utterance = self.cut(first, last)
        if end_ms is None:
            self.clear()
        else:
            self._uncommitted = self._sample(last)
            self._forget(self._uncommitted)
        return utterance

    def clear(self) -> None:
        """Forget everything that was not committed."""
        if self._endpointer is not None:
            self._heard = self._end
            self._stream.reset()
            self._endpointer = self._make_endpointer(self._endpointer.settings)
        self._uncommitted = self._end
        self._forget(self._end)

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _end(self) -> int:
        return self._first + len(self._held) // 2

    def _make_endpointer(self, settings: EndpointingSettings) -> Endpointer:
        window_ms = 1000.0 * self._window / self._rate
        return Endpointer(settings, window_ms=window_ms, start_ms=1000.0 * self._heard / self._rate)

    def _store(self, samples: Samples) -> None:
        pcm = to_pcm16(samples * np.float32(32768.0))
        self._held += pcm.tobytes()
        surplus = self._end - self._first - self._sample(MAX_TURN_MS)
        if surplus > 0:
            self.dropped_ms += self._ms(surplus)
            self._forget(self._first + surplus)

    def _forget(self, sample: int) -> None:
        if sample > self._first:
            sample = min(sample, self._end)
            del self._held[: 2 * (sample - self._first)]
            self._first = sample
            self._heard = max(self._heard, sample)

    def _sample(self, ms: int) -> int:
        return ms * self._rate // 1000

    def _ms(self, sample: int) -> int:
        return sample * 1000 // self._rate
