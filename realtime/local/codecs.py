"""The three audio formats of the protocol, to samples and back: PCM16 at 24 kHz, and G.711 (mu-law, A-law) at 8 kHz.

Owns: `AudioDecoder` (a client's bytes to samples at the recognizer's rate) and `AudioEncoder` (the synthesizer's PCM16
to a client's bytes), both with state, one per stream; `FORMATS`. Driven by the session. The laws are `realtime.media.g711`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from realtime.local.parts import Samples
from realtime.media import g711
from realtime.media.resample import Resampler
from realtime.pcm import OddByteCarry

__all__ = ["FORMATS", "AudioDecoder", "AudioEncoder", "FormatFacts", "Pcm16", "duration_ms", "to_pcm16"]

Pcm16 = npt.NDArray[np.int16]
"""Mono samples, 16 bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFacts:
    """What is to be known of a format."""

    rate_hz: int
    """Samples a second."""
    sample_bytes: int
    """Bytes of a sample."""


FORMATS: Final[dict[str, FormatFacts]] = {
    "audio/pcm": FormatFacts(rate_hz=24_000, sample_bytes=2),
    "audio/pcmu": FormatFacts(rate_hz=8_000, sample_bytes=1),
    "audio/pcma": FormatFacts(rate_hz=8_000, sample_bytes=1),
}
"""The formats by the name that `session.audio.….format.type` has."""
_LAWS: Final[dict[str, g711.Law]] = {"audio/pcmu": "mu", "audio/pcma": "a"}


def duration_ms(byte_count: int, format_type: str) -> int:
    """How long so many bytes of a format last, in whole milliseconds, rounded down: never beyond the audio's end."""
    facts = FORMATS[format_type]
    return byte_count // facts.sample_bytes * 1000 // facts.rate_hz


class AudioDecoder:
    """A client's bytes to float32 samples at another rate, chunk by chunk."""

    def __init__(self, format_type: str, rate_hz: int) -> None:
        """Begin a stream.

        Args:
            format_type: One of `FORMATS`.
            rate_hz: The rate wanted.
        """
        law = _LAWS.get(format_type)
        self._table = None if law is None else g711.decode_table(law)
        self._carry = OddByteCarry()
        self._resampler = Resampler(FORMATS[format_type].rate_hz, rate_hz)

    def decode(self, data: bytes) -> Samples:
        """Samples of the next bytes. Half a sample at the end waits for the other half (behaviour.md A2)."""
        # hot path: every chunk of input audio
        if self._table is None:
            pcm: Pcm16 = np.frombuffer(self._carry.push(data), "<i2")
        else:
            pcm = self._table[np.frombuffer(data, np.uint8)]
        return self._resampler.push(pcm.astype(np.float32) * np.float32(1.0 / 32768.0))

    def flush(self) -> Samples:
        """The last samples, which waited for what would follow. What is decoded next begins another stream."""
        self._carry = OddByteCarry()
        return self._resampler.flush()


class AudioEncoder:
    """The synthesizer's PCM16 to a client's bytes, chunk by chunk."""

    def __init__(self, format_type: str, rate_hz: int) -> None:
        """Begin a stream.

        Args:
            format_type: One of `FORMATS`.
            rate_hz: The synthesizer's rate.
        """
        wanted = FORMATS[format_type].rate_hz
        self._encode: Callable[[Pcm16], bytes] = _ENCODERS[format_type]
        self._resampler = None if wanted == rate_hz else Resampler(rate_hz, wanted)

    def encode(self, pcm: bytes) -> bytes:
        """The client's bytes of the next whole samples."""
        samples: Pcm16 = np.frombuffer(pcm, "<i2")
        if self._resampler is None:
            return self._encode(samples)
        return self._encode(to_pcm16(self._resampler.push(samples.astype(np.float32))))

    def flush(self) -> bytes:
        """The last bytes, which waited for what would follow."""
        return b"" if self._resampler is None else self._encode(to_pcm16(self._resampler.flush()))


def to_pcm16(samples: Samples) -> Pcm16:
    """Round and clip samples on the scale of PCM16, -32768..32767."""
    clipped: Pcm16 = np.clip(np.rint(samples), -32768, 32767).astype(np.int16)
    return clipped


def _as_pcm16(samples: Pcm16) -> bytes:
    return samples.astype("<i2", copy=False).tobytes()


def _as_mu_law(samples: Pcm16) -> bytes:
    return g711.encode_samples(samples, "mu")


def _as_a_law(samples: Pcm16) -> bytes:
    return g711.encode_samples(samples, "a")


_ENCODERS: Final[dict[str, Callable[[Pcm16], bytes]]] = {
    "audio/pcm": _as_pcm16,
    "audio/pcmu": _as_mu_law,
    "audio/pcma": _as_a_law,
}
