"""Silence where the user's sound stops coming while it is listened to.

Owns: until when the sound that came lasts, and how much silence stands in for it since: never more than time has passed,
since a dropped connection is told again by time; and that no silence is told twice: what comes again after an outage brings
the silence of the time between, by its time stamps (behaviour.md A3), and that goes for as much as stood in for it. Driven
by `SessionMachine`, in its audio and by its timer. Never judges whether somebody speaks.

A provider that decides by silence when a turn is over has to hear silence. A microphone that is muted at its source, a
player at the end of its file or a track that was removed sends none: the turn would stay open for as long as the call lasts,
and the camera at its speaking rate.
"""

from __future__ import annotations

from realtime.core.input_audio import InputAudio
from realtime.core.speech import Speech

__all__ = ["MissingAudio"]

PATIENCE_SECONDS = 1.0
"""Sound that is late by so much is missing; a network's stutter is shorter."""
_STEP_SECONDS = 0.1
"""Silence comes in pieces of this much, as fast as time passes."""
_MOST_SECONDS = 12.0
"""No provider waits longer for more words."""
_MOST_UNTOLD_SECONDS = 2.0
"""The same where the provider does not say whether it hears speech."""
_BACKLOG_SECONDS = 1.0
"""What an outage held back comes within this much of its end; later silence is the user's."""
_NEVER = float("-inf")
_RUN_SECONDS = 0.005
"""Shorter runs of samples of nothing are part of a sound."""


class MissingAudio:
    """The stand-in for sound that does not come."""

    def __init__(self, *, input_audio: InputAudio, speech: Speech, is_needed: bool) -> None:
        """Nothing was heard yet.

        Args:
            input_audio: Where the silence goes.
            speech: Whether a turn is open.
            is_needed: The provider decides when a turn is over.
        """
        self._input = input_audio
        self._speech = speech
        self.is_needed = is_needed
        """Whether silence ends the user's turns; changes with the model."""
        self.is_voice_heard = False
        """Our own ears hear the user speak (models that report no speech)."""
        self.goes_on = False
        """Sound has come and no silence has stood in for it since: more of it brings no deadline nearer."""
        self.lasts_until = _NEVER
        """Until when the sound that came lasts; `-inf`: none came yet."""
        self._made_seconds = 0.0
        self.repeatable = 0
        """Samples of silence that stood in and that the sound may bring once more."""
        self._told_until = 0.0
        """Up to which moment the provider was told everything, silence that stood in included."""
        self._came_at: float | None = None
        """When sound came again, after silence had stood in for it."""

    def heard(self, pcm: bytes, *, now: float) -> bytes:  # hot path: 25–50 times a second
        """Sound came. It lasts as long as it is: what comes at once is not missed before it is over.

        While it `goes_on`, and nothing is `repeatable`, `lasts_until` is all that changes.

        Returns:
            It, without the silence that was told already.
        """
        if self.repeatable:
            pcm = self._without_repeated(pcm, now=now)
        self.lasts_until = max(self.lasts_until, now) + len(pcm) / 2 / self._input.rate_hz
        self._made_seconds = 0.0
        self.goes_on = True
        return pcm

    def _without_repeated(self, pcm: bytes, *, now: float) -> bytes:
        """Sound after an outage: silence leaves it for as much as more is told than time has passed."""
        if self._came_at is None:
            self._came_at = now
        if now - self._came_at > _BACKLOG_SECONDS:
            self.repeatable = 0
            return pcm
        rate_hz = self._input.rate_hz
        ahead = round((self._told_until - now) * rate_hz) + len(pcm) // 2
        most = min(self.repeatable, ahead)
        shortest = round(_RUN_SECONDS * rate_hz)
        kept = pcm
        if most >= shortest:
            leading = _silent_samples(kept, kept.lstrip(b"\0"))
            if leading >= shortest:
                kept = kept[2 * min(leading, most) :]
                most -= min(leading, most)
            trailing = _silent_samples(kept, kept.rstrip(b"\0"))
            if most >= trailing >= shortest:
                kept = kept[: len(kept) - 2 * trailing]
        self.repeatable -= (len(pcm) - len(kept)) // 2
        self._told_until += len(kept) / 2 / rate_hz
        return kept

    @property
    def due_at(self) -> float | None:
        """When the next piece of silence is due; None: none is wanted."""
        if not self.is_needed or self.lasts_until == _NEVER:
            return None
        most = _MOST_UNTOLD_SECONDS
        if self._input.reports_boundaries:
            most = _MOST_SECONDS if self._speech.is_speaking else 0.0
        if self._made_seconds >= most:
            return None
        return self.lasts_until + PATIENCE_SECONDS + self._made_seconds

    def make(self, *, now: float) -> None:
        """Put in the silence that is due."""
        while (due_at := self.due_at) is not None and due_at <= now:
            if not self._made_seconds:
                self.repeatable, self._told_until, self._came_at = 0, self.lasts_until, None
            samples = round(_STEP_SECONDS * self._input.rate_hz)
            self._input.push(bytes(samples * 2))
            self.goes_on = False
            self._made_seconds += _STEP_SECONDS
            self.repeatable += samples
            self._told_until += _STEP_SECONDS

    @property
    def breaks_off_at(self) -> float | None:
        """When a voice that our own ears hear is taken to have stopped with its sound; None: none is heard."""
        return self.lasts_until + PATIENCE_SECONDS if self.is_voice_heard and self.lasts_until != _NEVER else None

    def take_break(self, *, now: float) -> float | None:
        """When the voice stopped, if it did with its sound; told once."""
        breaks_off_at = self.breaks_off_at
        if breaks_off_at is None or breaks_off_at > now:
            return None
        self.is_voice_heard = False
        return self.lasts_until


def _silent_samples(pcm: bytes, stripped: bytes) -> int:
    """How many whole samples of nothing were stripped off one end."""
    return (len(pcm) - len(stripped)) // 2
