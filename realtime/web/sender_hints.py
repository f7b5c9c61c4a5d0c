"""What a page's cameras are asked to send: no more than is looked at.

Owns: `SenderHints`. Driven by a call's events and tracks; follows the sampler's settings. It only asks: whoever sends more
is looked at just the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from realtime.core.events import SessionEvent, SpeechStarted, SpeechStopped
from realtime.session import RealtimeSession

__all__ = ["SenderHints"]

_FRAMES_PER_LOOK = 3
"""So many frames for each one that is looked at: the newest is then fresh, and the decoder's work stays small."""
_MOST_FPS = 15.0
_LEAST_FPS = 1.0
_IDLE_SCALE = 0.75
"""Of the encoded size, while nobody speaks: enough to see that something changed, and to read a sign."""


class SenderHints:
    """The hints of one call."""

    def __init__(self, session: RealtimeSession, send: Callable[[Mapping[str, Any]], bool]) -> None:
        """Take the session whose sampler is followed, and the way to the page."""
        self._session = session
        self._send = send
        self._speaking = False
        self._told: dict[str, tuple[int, int, float]] = {}

    def take(self, event: SessionEvent) -> None:
        """Follow an event."""
        if isinstance(event, SpeechStarted):
            self.speaking(on=True)
        elif isinstance(event, SpeechStopped):
            self.speaking(on=False)

    def speaking(self, *, on: bool) -> None:
        """The user speaks, or has stopped."""
        self._speaking = on
        self.tell()

    def forget(self) -> None:
        """Another page is there; it has been told nothing."""
        self._told.clear()

    def tell(self) -> None:
        """Tell each camera and screen what has changed."""
        hint = self._hint()
        for name, track in self._session.statistics().tracks.items():
            if track.kind != "video" or self._told.get(name) == hint:
                continue
            width, height, fps = hint
            if self._send({"type": "sender", "source": name, "max_width": width, "max_height": height, "max_fps": fps}):
                self._told[name] = hint

    def _hint(self) -> tuple[int, int, float]:
        sampling = self._session.settings.sampling
        resize = self._session.encode_options.resize_options
        looked = sampling.fps_speaking if self._speaking else sampling.fps_idle
        fps = min(_MOST_FPS, max(_LEAST_FPS, looked * _FRAMES_PER_LOOK))
        scale = 1.0 if self._speaking else _IDLE_SCALE
        width, height = (resize.width, resize.height) if resize is not None else (1920, 1080)
        return round(width * scale), round(height * scale), fps
