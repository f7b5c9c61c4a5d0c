"""The sound of a voice call's packets: Opus, G.711, G.722 to mono PCM16.

Owns: `VoiceDecoder`, one stream's decoder with what stands in for lost packets, and `make_voice_decoder`. Driven by the
audio pipeline of a peer connection, packet by packet. It knows no RTP: order, loss and silence are told to it.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import av
import numpy as np

from realtime.media import g711
from realtime.media.concealment import Concealer
from realtime.media.opus_decoder import OpusDecoder
from realtime.media.opus_library import OPUS_RATES, find_opus

__all__ = ["VOICE_CODECS", "VoiceDecoder", "make_voice_decoder"]

VOICE_CODECS: Final = ("opus", "pcmu", "pcma", "g722")
"""Names, as in SDP but in small letters, of what can be decoded here."""


class VoiceDecoder(Protocol):
    """One stream's decoder."""

    @property
    def rate_hz(self) -> int:
        """Samples a second of what comes out."""
        ...

    def decode(self, payload: bytes, /) -> bytes:
        """The sound of a packet.

        Raises:
            Exception: It is no packet of this codec (whatever the codec's library raises).
        """
        ...

    def conceal(self, samples: int, following: bytes | None) -> bytes:
        """What stands in for so many lost samples, or for fewer; `following`: the packet right after them."""
        ...


def make_voice_decoder(codec: str, rate_hz: int) -> VoiceDecoder:
    """A decoder for a codec's packets, at `rate_hz` if it can.

    Args:
        codec: One of `VOICE_CODECS`.
        rate_hz: What is wanted in the end; the decoder's own `rate_hz` says what it gives.

    Raises:
        ValueError: There is no such codec here.
    """
    if codec == "opus":
        if find_opus() is None:
            return _AvDecoder("opus", 48_000)
        return _Opus(OpusDecoder(rate_hz if rate_hz in OPUS_RATES else 48_000))
    if codec == "pcmu":
        return _G711("mu")
    if codec == "pcma":
        return _G711("a")
    if codec == "g722":
        return _AvDecoder("g722", 16_000)
    raise ValueError(f"no voice codec {codec!r}")


class _Opus:
    """libopus, at the rate that is wanted."""

    def __init__(self, decoder: OpusDecoder) -> None:
        self._decoder = decoder
        self.rate_hz = decoder.rate_hz
        self.decode = decoder.decode

    def conceal(self, samples: int, following: bytes | None) -> bytes:
        return self._decoder.conceal(samples, following)


class _G711:
    """A table, and pitch repetition for what is lost."""

    rate_hz = 8_000

    def __init__(self, law: g711.Law) -> None:
        self._law: g711.Law = law
        self._concealer = Concealer(self.rate_hz)

    def decode(self, payload: bytes) -> bytes:
        pcm = g711.decode(payload, self._law)
        self._concealer.heard(pcm)
        return pcm

    def conceal(self, samples: int, following: bytes | None) -> bytes:
        del following
        return self._concealer.conceal(samples)


class _AvDecoder:
    """PyAV's decoder, and pitch repetition for what is lost: G.722, and Opus where there is no libopus."""

    def __init__(self, codec: str, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._concealer = Concealer(rate_hz)
        context: Any = av.CodecContext.create(codec, "r")
        context.sample_rate = rate_hz
        context.layout = "mono" if codec == "g722" else "stereo"
        self._context = context

    def decode(self, payload: bytes) -> bytes:
        pcm = b"".join(_mono16(frame) for frame in self._context.decode(av.Packet(payload)))
        self._concealer.heard(pcm)
        return pcm

    def conceal(self, samples: int, following: bytes | None) -> bytes:
        del following
        return self._concealer.conceal(samples)


def _mono16(frame: Any) -> bytes:
    """A decoded frame as mono PCM16; channels are averaged in a wider type."""
    values = frame.to_ndarray()
    if not frame.format.is_planar:
        values = values.reshape(-1, frame.layout.nb_channels).T
    mono = values.mean(axis=0, dtype=np.float32)
    if values.dtype.kind == "f":
        mono *= 32768.0
    pcm: bytes = np.clip(np.rint(mono), -32768, 32767).astype("<i2").tobytes()
    return pcm
