"""When a user begins to speak, pauses, and has finished: decided from one probability per window.

Owns: `Endpointer`, its settings and what it reports. Driven by `InputAudio` with every window's probability. A machine
without clock or loop: its time is the position in the input audio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from realtime.core.settings import check_count, check_number
from realtime.errors import ArgumentError

__all__ = ["Endpointer", "EndpointingSettings", "Heard", "SpeechEnd", "SpeechPause", "SpeechResume", "SpeechStart"]

HYSTERESIS = 0.15
"""Speech that has begun goes on down to this much below the threshold (Silero's own rule)."""
START_WINDOWS = 2
"""So many windows in a row begin speech: one alone is a click."""
DOUBT_SHARE = 4
"""A turn that may be over waits for this part of the cap."""

Eagerness = Literal["low", "medium", "high", "auto"]

_CAP_MS: dict[Eagerness, int] = {"low": 8000, "medium": 4000, "auto": 4000, "high": 2000}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointingSettings:
    """How turns are told apart."""

    threshold: float = 0.5
    """How sure of speech a window must be, 0..1."""
    prefix_padding_ms: int = 300
    """How much audio before the first window of speech belongs to it."""
    silence_ms: int = 200
    """How much silence ends a turn."""
    semantic: Eagerness | None = None
    """Not None: silence alone does not end a turn; what was said decides, and how, and after a cap of silence (8, 4 or
    2 s for `low`, `medium` or `auto`, `high`) it ends whatever was said."""
    pause_ms: int = 32
    """After so much silence a pause is reported, in time to recognize what was said before the turn ends."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_number("threshold", self.threshold, most=1.0)
        check_count("prefix_padding_ms", self.prefix_padding_ms)
        check_count("silence_ms", self.silence_ms)
        check_count("pause_ms", self.pause_ms)
        if self.semantic is not None and self.semantic not in _CAP_MS:
            raise ArgumentError("semantic", self.semantic, "'low', 'medium', 'high', 'auto' or None")

    @property
    def cap_ms(self) -> int:
        """The silence that ends a turn whatever was said."""
        return self.silence_ms if self.semantic is None else max(self.silence_ms, _CAP_MS[self.semantic])

    @property
    def doubt_ms(self) -> int:
        """The silence that ends a turn of which words and sound say different things."""
        return max(self.silence_ms, self.cap_ms // DOUBT_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStart:
    """The user began to speak."""

    at_ms: int
    """Where, in the input audio, the turn begins: prefix padding included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPause:
    """The user paused: perhaps this was the end."""

    at_ms: int
    """Where the speech before the pause ended."""
    silence_ms: int
    """How long the pause has lasted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechResume:
    """The user went on after a reported pause."""

    at_ms: int
    """Where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEnd:
    """The user has finished."""

    at_ms: int
    """Where the turn ends: the silence that ended it included."""
    speech_end_ms: int
    """Where the last speech was."""


Heard = SpeechStart | SpeechPause | SpeechResume | SpeechEnd


class Endpointer:
    """Tells turns apart, window by window."""

    def __init__(self, settings: EndpointingSettings, *, window_ms: float, start_ms: float = 0.0) -> None:
        """Begin in silence.

        Args:
            settings: How turns are told apart.
            window_ms: How long a window is.
            start_ms: Where in the input audio the first window begins.
        """
        self._settings = settings
        self._window_ms = window_ms
        self._now = start_ms
        self._floor = start_ms
        self._speaking = False
        self._loud = 0
        self._silence = 0.0
        self._paused = False

    @property
    def speaking(self) -> bool:
        """Whether a turn is under way, pauses included."""
        return self._speaking

    @property
    def silence_ms(self) -> float:
        """How long the silence has lasted, within a turn."""
        return self._silence

    @property
    def settings(self) -> EndpointingSettings:
        """How turns are told apart now."""
        return self._settings

    def configure(self, settings: EndpointingSettings) -> None:
        """Tell turns apart otherwise from the next window on. A turn under way goes on."""
        self._settings = settings

    def hear(self, probability: float) -> Heard | None:
        """Take the next window's probability. Returns what it means, if anything."""
        began = self._now
        self._now += self._window_ms
        if self._speaking:
            return self._hear_in_turn(probability, began)
        self._loud = self._loud + 1 if probability >= self._settings.threshold else 0
        if self._loud < START_WINDOWS:
            return None
        self._speaking = True
        self._silence = 0.0
        self._paused = False
        first = self._now - START_WINDOWS * self._window_ms
        return SpeechStart(at_ms=round(max(self._floor, first - self._settings.prefix_padding_ms)))

    def finish(self) -> SpeechEnd | None:
        """End the turn that is under way here and now, whatever the silence; None if there is none."""
        if not self._speaking:
            self._floor = self._now
            return None
        end = SpeechEnd(at_ms=round(self._now), speech_end_ms=round(self._now - self._silence))
        self._speaking = False
        self._loud = 0
        self._silence = 0.0
        self._floor = self._now
        return end

    def _hear_in_turn(self, probability: float, began: float) -> Heard | None:
        settings = self._settings
        if probability >= max(settings.threshold - HYSTERESIS, 0.01):
            resumed = self._paused
            self._silence = 0.0
            self._paused = False
            return SpeechResume(at_ms=round(began)) if resumed else None
        self._silence += self._window_ms
        if self._silence + self._window_ms / 2 > settings.cap_ms:  # the nearest whole number of windows
            return self.finish()
        if not self._paused and self._silence >= settings.pause_ms:
            self._paused = True
            return SpeechPause(at_ms=round(self._now - self._silence), silence_ms=round(self._silence))
        return None
