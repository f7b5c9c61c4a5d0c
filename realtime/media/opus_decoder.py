"""Opus to PCM16, straight at the rate that is wanted, and what stands in for a packet that was lost.

Owns: `OpusDecoder`. Driven by the audio pipeline of a peer connection, on the loop: 20–40 µs a packet. libopus is called as it
is: PyAV's own interface to it always gives 48 kHz stereo, and neither conceals nor reads the copies of lost speech that packets
may carry (in-band FEC). It starts no thread and looks at no clock.
"""

from __future__ import annotations

import ctypes
import weakref

from realtime.errors import ArgumentError
from realtime.media.opus_library import OPUS_RATES, OpusError, find_opus

__all__ = ["OpusDecoder"]

_MAX_SECONDS = 0.120
"""The longest packet, and the longest that one call conceals."""
_STEP_HZ = 400
"""Concealment comes in steps of 2.5 ms."""
_USUAL_HZ = 50
"""Nearly every packet has 20 ms."""


class OpusDecoder:
    """Decodes one stream of Opus packets to mono PCM16.

    Attributes:
        rate_hz: Samples a second of what comes out.
    """

    __slots__ = ("__weakref__", "_bytes", "_capacity", "_decode", "_frame", "_pcm", "_state", "_usual", "rate_hz")

    def __init__(self, rate_hz: int) -> None:
        """Begin a stream.

        Args:
            rate_hz: One of `OPUS_RATES`.

        Raises:
            ArgumentError: It is another.
            OpusError: There is no libopus here (`find_opus`), or it has no memory.
        """
        if rate_hz not in OPUS_RATES:
            raise ArgumentError("rate_hz", rate_hz, "one of " + ", ".join(map(str, OPUS_RATES)))
        library = find_opus()
        if library is None:
            raise OpusError("there is no libopus on this machine")
        error = ctypes.c_int()
        state = library.opus_decoder_create(rate_hz, 1, ctypes.byref(error))
        if not state:
            raise OpusError(f"libopus makes no decoder (error {error.value})")
        finalizer = weakref.finalize(self, library.opus_decoder_destroy, state)
        finalizer.atexit = False  # a thread may be at work to the last
        self.rate_hz = rate_hz
        self._state = ctypes.c_void_p(state)
        self._capacity = int(rate_hz * _MAX_SECONDS)
        self._pcm = (ctypes.c_int16 * self._capacity)()
        self._bytes = memoryview(self._pcm).cast("B")
        self._usual = rate_hz // _USUAL_HZ
        self._frame = (ctypes.c_char * (self._usual * 2)).from_buffer(self._pcm)
        # A function of our own, of which no types are declared: what it is given has them, and to convert it anew for every
        # call costs more than the call.
        self._decode = library["opus_decode"]

    def decode(self, packet: bytes) -> bytes:
        """The sound of a packet, 2.5 to 120 ms.

        Raises:
            OpusError: It is no Opus packet.
        """
        # hot path: fifty times a second per call
        count: int = self._decode(self._state, packet, len(packet), self._pcm, self._capacity, 0)
        if count == self._usual:
            pcm: bytes = self._frame.raw
            return pcm
        return self._taken(count)

    def conceal(self, samples: int, following: bytes | None = None) -> bytes:
        """What stands in for lost sound; it fades the longer the loss is.

        Args:
            samples: How much was lost; up to 120 ms of it is made up, in whole steps of 2.5 ms.
            following: The packet right after the loss, if it is there: it may carry a copy of what went before it.

        Returns:
            At most `samples` samples.
        """
        step = self.rate_hz // _STEP_HZ
        samples = min(samples, self._capacity) // step * step
        if samples <= 0:
            return b""
        packet, with_copy = (following, 1) if following else (None, 0)
        count: int = self._decode(self._state, packet, len(packet or b""), self._pcm, samples, with_copy)
        if count < 0 and with_copy:  # the packet after it is damaged; that shows when its turn comes
            count = self._decode(self._state, None, 0, self._pcm, samples, 0)
        return self._taken(count)

    def _taken(self, count: int) -> bytes:
        if count < 0:
            raise OpusError(f"no Opus packet (libopus error {count})")
        return bytes(self._bytes[: count * 2])
