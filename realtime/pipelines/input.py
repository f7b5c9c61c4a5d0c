"""What an application sends by hand: text, pictures, recordings, raw audio.

Owns: `as_parts`, which makes the machine's parts of anything that may be sent, `check_parts` and `check_ability`, which refuse
what the model cannot be given, and `AudioFeed`, the way of raw PCM.
Driven by `session.py`. It never decides where a message ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeGuard

from realtime import pcm
from realtime.chat.messages import AudioContent, ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.errors import ArgumentError, UserError
from realtime.media.audio import PcmConverter

__all__ = ["AudioFeed", "as_parts", "check_ability", "check_parts"]

_WANTED = "text, an ImageContent, an AudioContent, a picture, or a sequence of them"
_NEVER_SENT = (bool, int, float, dict, set)
_MAX_CHUNK_MS = 100

Part = str | ImageContent | AudioContent


async def as_parts(content: Any, encode: Callable[[Any], Awaitable[ImageContent]]) -> list[Part]:
    """Make parts of what was given.

    Args:
        content: One thing or a list or tuple of them; pictures of any kind are encoded.
        encode: Makes an `ImageContent` of a picture, off the loop.

    Raises:
        ArgumentError: It is empty, or something else.
    """
    given: Sequence[Any] = content if _is_sequence(content) else [content]
    if not given or any(isinstance(part, str) and not part for part in given):
        raise ArgumentError("content", content, _WANTED + "; not empty")
    for part in given:
        if part is None or type(part) in _NEVER_SENT:
            raise ArgumentError("content", part, _WANTED)
    return [part if isinstance(part, (str, ImageContent, AudioContent)) else await encode(part) for part in given]


def check_ability(capabilities: ModelCapabilities, ability: str, what: str) -> None:
    """Raise `UserError` unless the model has an ability.

    Args:
        capabilities: What it can do.
        ability: The name of the flag.
        what: What it is asked for, as in “… takes no …”.
    """
    if not getattr(capabilities, ability):
        raise UserError(f"{capabilities.model or 'this model'} {what} ({ability})")


def check_parts(parts: Sequence[Part], capabilities: ModelCapabilities) -> None:
    """Refuse what the model cannot be given, before any of it is sent.

    Raises:
        UserError: It takes no pictures, or no recordings without a transcript; the capability is named.
    """
    for part in parts:
        if isinstance(part, ImageContent):
            check_ability(capabilities, "supports_image_input", "takes no pictures")
        elif isinstance(part, AudioContent) and not part.transcript:
            check_ability(capabilities, "supports_seeding_audio", "takes no recording without its transcript")


def _is_sequence(content: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(content, (list, tuple))


def _is_audio(samples: object) -> bool:
    return isinstance(samples, (bytes, bytearray, memoryview))


class AudioFeed:
    """Raw PCM16 mono of any length and rate, as chunks of whole samples at the model's rate (behaviour.md A1, A2)."""

    def __init__(self, rate_hz: int) -> None:
        """Say the model's rate."""
        self._rate_hz = rate_hz
        self._max_bytes = pcm.ms_to_bytes(_MAX_CHUNK_MS, rate_hz)
        self._converter = PcmConverter(rate_hz, rate_hz)

    def push(self, samples: bytes, rate_hz: int | None) -> Iterator[bytes]:
        """Take audio and give the chunks that are complete.

        Args:
            samples: PCM16 mono, any number of bytes.
            rate_hz: Their rate; None: the model's. Another rate than before begins a new stream.

        Raises:
            ArgumentError: It is not bytes, or the rate is none.
        """
        if not _is_audio(samples):
            raise ArgumentError("pcm", type(samples).__name__, "bytes of PCM16 mono")
        rate = self._rate_hz if rate_hz is None else rate_hz
        rest = b""
        if rate != self._converter.from_rate_hz:
            converter = PcmConverter(rate, self._rate_hz)
            rest, self._converter = self._converter.flush(), converter
        return self._cut(rest + self._converter.convert(samples))

    def flush(self) -> Iterator[bytes]:
        """Give what is held; what comes next begins a new stream."""
        return self._cut(self._converter.flush())

    def _cut(self, samples: bytes) -> Iterator[bytes]:
        for begin in range(0, len(samples), self._max_bytes):
            yield samples[begin : begin + self._max_bytes]
