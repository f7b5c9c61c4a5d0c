"""Whether the user speaks, heard here, for models that do not say it.

Owns: `VoiceWatch`, and with it a `VoiceDetector` while one is needed. Driven by the input audio. The pictures need it: without it
a session with such a model, or with push-to-talk, would look at the user no oftener while they speak than while they are silent, and would
show no picture of the end of a turn (behaviour.md I4). It never ends a turn and never interrupts a reply: a fallback by level takes a door for a
voice.
"""

from __future__ import annotations

from realtime import pcm
from realtime.media.vad import VoiceChange, VoiceDetector
from realtime.pipelines.driver import Driver

__all__ = ["VoiceWatch"]

_STEP_MS = 60
"""Sound is looked at in steps of this much: 60 µs of the loop each, 1 ms of every second."""


class VoiceWatch:
    """Tells the machine when speech begins and ends, if the model does not."""

    def __init__(self, driver: Driver, rate_hz: int, *, is_manual: bool) -> None:
        """Hear nothing yet.

        Args:
            driver: The way to the machine.
            rate_hz: Samples a second of the input audio.
            is_manual: The application ends turns: no provider reports speech then.
        """
        self._driver = driver
        self._machine = driver.machine
        self._rate_hz = rate_hz
        self._is_manual = is_manual
        self._step_bytes = pcm.ms_to_samples(_STEP_MS, rate_hz) * 2
        self._waiting = bytearray()
        self._samples = 0
        """What the detector has been given, and what waits to be."""
        self._detector: VoiceDetector | None = None
        self.is_listening = is_manual
        """Sound is wanted; else only once the model does not report speech any more."""

    def receive(self, audio: bytes) -> None:  # hot path: 50 times a second
        """Hear input audio, PCM16 mono, whole samples, after the machine took it."""
        if self._machine.capabilities.reports_speech_boundaries and not self._is_manual:
            self._detector = None
            self.is_listening = False
            return
        if self._detector is None:
            self.is_listening = True
            self._waiting.clear()
            self._samples = 0
            self._detector = VoiceDetector(self._rate_hz)
        self._samples += len(audio) // 2
        self._waiting += audio
        if len(self._waiting) < self._step_bytes:
            return
        changes = self._detector.push(self._waiting)
        self._waiting.clear()
        for change in changes:
            self._tell(change)

    def _tell(self, change: VoiceChange) -> None:
        ago_ms = max(0, pcm.samples_to_ms(self._samples, self._rate_hz) - change.at_ms)
        self._driver.feed(
            lambda machine, now: machine.receive_voice_activity(speaking=change.speaking, ago_ms=ago_ms, now=now),
            where="audio",
        )
