"""G.711, the telephone's two codes of a byte a sample, to PCM16 and back.

Owns: the tables of mu-law and A-law (ITU-T G.711), each made when it is first used. Driven by the telephone line and by the
local LLM. It has no state and never resamples: G.711 is 8 kHz where a telephone speaks it.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["MU_LAW_SILENCE", "Law", "decode", "decode_table", "encode", "encode_samples"]

Law = Literal["mu", "a"]
"""mu-law (North America, Japan) or A-law (elsewhere)."""

MU_LAW_SILENCE: Final = b"\xff"
"""A sample of silence."""


def decode(data: bytes | bytearray | memoryview, law: Law = "mu") -> bytes:
    """PCM16 of G.711, a sample for each byte."""
    # hot path: 50 times a second per call
    return decode_table(law)[np.frombuffer(data, np.uint8)].astype("<i2", copy=False).tobytes()


def encode(pcm: bytes | bytearray | memoryview, law: Law = "mu") -> bytes:
    """G.711 of PCM16, a byte for each whole sample."""
    # hot path: every chunk of a reply
    whole = memoryview(pcm)[: len(pcm) // 2 * 2]
    return encode_samples(np.frombuffer(whole, "<i2"), law)


def encode_samples(samples: NDArray[np.int16], law: Law = "mu") -> bytes:
    """As `encode`, of an array of int16."""
    return _encode_table(law)[samples.astype(np.int32) + 32768].tobytes()


@cache
def decode_table(law: Law) -> NDArray[np.int16]:
    """The 256 values of a law, on the scale of 16 bit."""
    code = np.arange(256, dtype=np.int32)
    if law == "mu":
        code = ~code & 0xFF
        value = (((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)
        value -= 0x84
        return np.where(code & 0x80, -value, value).astype(np.int16)
    code ^= 0x55
    segment = (code & 0x70) >> 4
    value = ((code & 0x0F) << 4) + 8
    value = np.where(segment > 0, (value + 0x100) << np.maximum(segment - 1, 0), value)
    return np.where(code & 0x80, value, -value).astype(np.int16)


@cache
def _encode_table(law: Law) -> NDArray[np.uint8]:
    """The code of every 16-bit value: the one whose own value is nearest."""
    values = decode_table(law).astype(np.int32)
    order = np.argsort(values, kind="stable")
    middles = (values[order][1:] + values[order][:-1]) / 2.0
    every = np.arange(-32768, 32768)
    table: NDArray[np.uint8] = order[np.searchsorted(middles, every)].astype(np.uint8)
    return table
