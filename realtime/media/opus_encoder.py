"""PCM16 to Opus at the rate that a model speaks at, one packet for every 20 ms.

Owns: `OpusEncoder`. Driven by the reply track, on the loop: 25–35 µs a packet. It never resamples, starts no thread and
looks at no clock. libopus is called as it is; PyAV, which passes every frame through a filter graph, stands in where there is none.

The settings are a choice by measurement (docs/frame-cost.md): the low-delay mode at 64 kbit/s and the lowest complexity takes a quarter of
the time of the voice mode at 32 kbit/s, is nearer to the original, and looks 2.5 ms ahead instead of 6.5.
"""

from __future__ import annotations

import ctypes
import weakref
from fractions import Fraction
from typing import Any, Final, Protocol

import av
from av.audio.codeccontext import AudioCodecContext

from realtime.errors import ArgumentError
from realtime.media.opus_library import OPUS_RATES, OpusError, find_opus

__all__ = ["OPUS_INPUT_RATES", "OpusEncoder"]

OPUS_INPUT_RATES: Final = OPUS_RATES
"""What is encoded without resampling, in samples a second."""

_BITS_PER_SECOND = 64_000
_COMPLEXITY = 0
_PACKETS_A_SECOND = 50
_MAX_PACKET_BYTES = 1275
"""The longest that a frame of Opus can be (RFC 6716, 3.2.1)."""

_RESTRICTED_LOWDELAY = 2051
_SET_BITRATE = 4002
_SET_COMPLEXITY = 4010
_SET_VBR_CONSTRAINT = 4020


class _Codec(Protocol):
    """Encodes what is exactly 20 ms."""

    def encode(self, pcm: bytes, /) -> bytes: ...


class OpusEncoder:
    """Encodes one mono stream.

    Attributes:
        samples: How many samples make a packet.
        silence: A packet of silence. It says the same whenever it comes, and any number of them in a row leave a decoder as
            one does, so long as the encoder itself was last given silence until `is_quiet`.
        is_quiet: Whether nothing but silence would follow if silence were encoded now.
    """

    __slots__ = ("_bytes", "_encode", "_zeros", "is_quiet", "samples", "silence")

    def __init__(self, rate_hz: int) -> None:
        """Make an encoder.

        Args:
            rate_hz: Samples a second of what is encoded, one of `OPUS_INPUT_RATES`.

        Raises:
            ArgumentError: It is another rate.
            OpusError: libopus has no memory for it.
        """
        if rate_hz not in OPUS_INPUT_RATES:
            raise ArgumentError("rate_hz", rate_hz, f"one of {', '.join(map(str, OPUS_INPUT_RATES))} Hz")
        self.samples = rate_hz // _PACKETS_A_SECOND
        self._bytes = self.samples * 2
        self._zeros = bytes(self._bytes)
        library = find_opus()
        codec: _Codec = _PyAV(rate_hz, self.samples) if library is None else _LibOpus(library, rate_hz, self.samples)
        self._encode = codec.encode
        self.silence = self._encode(self._zeros)
        self.is_quiet = True

    def encode(self, pcm: bytes) -> bytes:
        """Encode 20 ms.

        Args:
            pcm: PCM16 mono, at most `samples` of them; what is missing is silence. Empty: silence.

        Returns:
            One packet.
        """
        # hot path: every 20 ms of speech
        if pcm:
            self.is_quiet = False
            if len(pcm) != self._bytes:
                pcm = pcm[: self._bytes].ljust(self._bytes, b"\0")
            return self._encode(pcm)
        if self.is_quiet:
            return self.silence
        packet = self._encode(self._zeros)
        self.is_quiet = packet == self.silence
        return packet


class _LibOpus:
    """libopus."""

    def __init__(self, library: Any, rate_hz: int, samples: int) -> None:
        error = ctypes.c_int()
        self._state = library.opus_encoder_create(rate_hz, 1, _RESTRICTED_LOWDELAY, ctypes.byref(error))
        if not self._state:
            raise OpusError(f"libopus makes no encoder (error {error.value})")
        finalizer = weakref.finalize(self, library.opus_encoder_destroy, self._state)
        finalizer.atexit = False  # a thread may be at work to the last
        for request, value in (
            (_SET_BITRATE, _BITS_PER_SECOND),
            (_SET_COMPLEXITY, _COMPLEXITY),
            (_SET_VBR_CONSTRAINT, 0),  # what a packet needs, whatever those before it took
        ):
            library.opus_encoder_ctl(self._state, request, ctypes.c_int(value))
        self._samples = samples
        self._packet: Any = (ctypes.c_char * _MAX_PACKET_BYTES)()
        self._address = ctypes.addressof(self._packet)
        self._call = library.opus_encode

    def encode(self, pcm: bytes) -> bytes:
        size: int = self._call(self._state, pcm, self._samples, self._address, _MAX_PACKET_BYTES)
        if size < 0:
            raise OpusError(f"libopus does not encode (error {size})")
        packet: bytes = self._packet[:size]
        return packet


class _PyAV:
    """PyAV's encoder, with the same settings."""

    def __init__(self, rate_hz: int, samples: int) -> None:
        codec: Any = AudioCodecContext.create("libopus", "w")
        codec.sample_rate = rate_hz
        codec.layout = "mono"
        codec.format = "s16"
        codec.bit_rate = _BITS_PER_SECOND
        codec.time_base = Fraction(1, rate_hz)
        codec.options = {"application": "lowdelay", "compression_level": str(_COMPLEXITY)}
        self._codec = codec
        self._rate_hz = rate_hz
        self._samples = samples

    def encode(self, pcm: bytes) -> bytes:
        frame = av.AudioFrame(format="s16", layout="mono", samples=self._samples)
        frame.sample_rate = self._rate_hz
        plane = frame.planes[0]
        plane.update(pcm.ljust(plane.buffer_size, b"\0"))
        [packet] = self._codec.encode(frame)
        return bytes(packet)
