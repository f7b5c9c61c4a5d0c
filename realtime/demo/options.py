"""What `realtime demo` can be asked to do, as one frozen value that checks itself.

Owns: `DemoOptions`. Made by the command line, read by the rest of the demo. Never acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from realtime.core.settings import AudioRetention, check_count, check_number
from realtime.errors import ArgumentError

__all__ = ["DEFAULT_INSTRUCTIONS", "DemoOptions"]

DEFAULT_INSTRUCTIONS = "You hear the user and see the user's camera. Answer in one or two short sentences."


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """One call of the demo: what is played into it, who answers, what it may keep, where its record goes."""

    media: tuple[Path, ...] = ()
    """Files to play: sound becomes the microphone, pictures the camera. Empty: a scene is generated."""
    model: str = "local"
    """Who answers, as `RealtimeSession` takes it."""
    out: Path = Path("out")
    """The folder that the record of the call is written to; made if it is not there."""
    instructions: str = DEFAULT_INSTRUCTIONS
    """What the model is told about its part."""
    seconds: float | None = None
    """Hang up after this long; None: when the media is over and the last reply has been heard."""
    pause_seconds: float | None = None
    """Silence between two spoken files; None: the next one waits until the reply has been heard. Shorter than a reply,
    it makes the next file barge in."""
    text: tuple[str, ...] = ()
    """Sentences typed instead of spoken, one turn each, after what is spoken."""
    max_tokens: int | None = 8_000
    """Bound of the context window; None: no bound."""
    retain_images_max: int | None = 100
    """Pictures kept; None: no bound."""
    retain_images_every_n: int = 1
    """Keep the first picture and then one of every N."""
    audio_retention: AudioRetention = "transcript_only"
    """Whose audio the history keeps."""
    retain_audio_max_seconds: float | None = 1800
    """Seconds of audio kept; None: no bound."""
    fps_speaking: float = 1.0
    """Frames a second that the model is shown while the user speaks."""
    fps_idle: float = 0.3
    """Frames a second that the model is shown otherwise."""
    plain: bool = False
    """Print lines even where a live screen could be drawn."""

    def __post_init__(self) -> None:
        """Check what the session does not check itself."""
        check_number("seconds", self.seconds, above=True, none_is="the end of the media")
        check_number("pause_seconds", self.pause_seconds, none_is="the end of the reply")
        check_count("max_tokens", self.max_tokens, least=1, none_is="no bound")
        for sentence in self.text:
            if not sentence.strip():
                raise ArgumentError("text", sentence, "a sentence to type; not empty")
