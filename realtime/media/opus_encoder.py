"""PCM16 to Opus at the rate that a model speaks at, one packet for every 20 ms.

Owns: `OpusEncoder`. Driven by the reply track, on the loop: 50–70 µs a packet. It never resamples, starts no thread and
looks at no clock.

The settings are a choice by measurement (docs/frame-cost.md): the low-delay mode at 64 kbit/s and the lowest complexity takes a quarter of
the time of the voice mode at 32 kbit/s, is nearer to the original, and looks 2.5 ms ahead instead of 6.5.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import av
from av.audio.codeccontext import AudioCodecContext

from realtime.errors import ArgumentError

__all__ = ["OPUS_INPUT_RATES", "OpusEncoder"]

OPUS_INPUT_RATES: Final = (8_000, 12_000, 16_000, 24_000, 48_000)
"""What libopus encodes without resampling, in samples a second."""

_BITS_PER_SECOND = 64_000
_OPTIONS = {"application": "lowdelay", "compression_level": "0"}
_PACKETS_A_SECOND = 50


class OpusEncoder:
    """Encodes one mono stream.

    Attributes:
        samples: How many samples make a packet.
        silence: A packet of silence. It says the same whenever it comes, and any number of them in a row leave a decoder as
            one does, so long as the encoder itself was last given silence until `is_quiet`.
        is_quiet: Whether nothing but silence would follow if silence were encoded now.
    """

    __slots__ = ("_bytes", "_codec", "_frame", "is_quiet", "samples", "silence")

    def __init__(self, rate_hz: int) -> None:
        """Make an encoder.

        Args:
            rate_hz: Samples a second of what is encoded, one of `OPUS_INPUT_RATES`.

        Raises:
            ArgumentError: It is another rate.
        """
        if rate_hz not in OPUS_INPUT_RATES:
            raise ArgumentError("rate_hz", rate_hz, f"one of {', '.join(map(str, OPUS_INPUT_RATES))} Hz")
        self.samples = rate_hz // _PACKETS_A_SECOND
        self._codec = AudioCodecContext.create("libopus", "w")
        self._codec.sample_rate = rate_hz
        self._codec.layout = "mono"
        self._codec.format = "s16"
        self._codec.bit_rate = _BITS_PER_SECOND
        self._codec.time_base = Fraction(1, rate_hz)
        self._codec.options = _OPTIONS
        self._bytes = self.samples * 2
        self.silence = self._packet(b"")
        self.is_quiet = True

    def encode(self, pcm: bytes) -> bytes:
        """Encode 20 ms.

        Args:
            pcm: PCM16 mono, at most `samples` of them; what is missing is silence. Empty: silence.

        Returns:
            One packet.
        """
        if pcm:
            self.is_quiet = False
            return self._packet(pcm)
        if self.is_quiet:
            return self.silence
        packet = self._packet(b"")
        self.is_quiet = packet == self.silence
        return packet

    def _packet(self, pcm: bytes) -> bytes:  # hot path: every 20 ms of speech
        frame = av.AudioFrame(format="s16", layout="mono", samples=self.samples)
        frame.sample_rate = self._codec.sample_rate
        plane = frame.planes[0]
        plane.update(pcm[: self._bytes].ljust(plane.buffer_size, b"\0"))
        codec: Any = self._codec  # half typed
        [packet] = codec.encode(frame)
        return bytes(packet)
