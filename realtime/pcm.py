"""Arithmetic on PCM: bytes, samples and milliseconds, the WAV container, and the odd byte between two chunks.

Owns: every conversion between a count of bytes, a count of samples and a position in milliseconds, for signed 16-bit
little-endian PCM ("PCM16"), which is the only sample format that rooms above `media` exchange. Driven by whoever holds
audio. Standard library only; never resamples (that is `realtime.media`), never holds audio but one byte.

Positions are integer milliseconds, rounded to the nearest; totals are kept in samples (behaviour.md A3, R2).
"""

from __future__ import annotations

import struct
import sys
from array import array

from realtime.errors import ArgumentError

__all__ = [
    "SAMPLE_BYTES",
    "OddByteCarry",
    "bytes_to_ms",
    "bytes_to_samples",
    "ms_to_bytes",
    "ms_to_samples",
    "read_wav",
    "samples_to_ms",
    "wav_bytes",
]

SAMPLE_BYTES = 2
"""Bytes of one PCM16 sample of one channel."""

_PCM_FORMAT = 0x0001
_FLOAT_FORMAT = 0x0003
_EXTENSIBLE_FORMAT = 0xFFFE
_MAX_RIFF_BYTES = 0xFFFFFFFF
_MAX_CHANNELS = 0x7FFF
_MAX_CHUNKS = 1_000
"""Chunks that are looked at before the samples; a file has a dozen at most."""
_EIGHT_BIT_TO_SIGNED = bytes(value ^ 0x80 for value in range(256))


def _check_positive(argument: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(argument, value, "an int of at least 1")


def samples_to_ms(samples: int, rate_hz: int) -> int:
    """The length of `samples` samples per channel at `rate_hz`, in whole milliseconds, rounded to the nearest.

    Raises:
        ArgumentError: `rate_hz` is no positive int.
    """
    if type(rate_hz) is not int or rate_hz < 1:  # hot path: twice for every 20 ms of a call
        _check_positive("rate_hz", rate_hz)
    return (samples * 1000 + rate_hz // 2) // rate_hz


def ms_to_samples(ms: float, rate_hz: int) -> int:
    """How many samples per channel last `ms` milliseconds at `rate_hz`, rounded to the nearest.

    Raises:
        ArgumentError: `rate_hz` is no positive int, or `ms` no finite number.
    """
    _check_positive("rate_hz", rate_hz)
    try:
        return round(ms * rate_hz / 1000)
    except (ValueError, OverflowError):
        raise ArgumentError("ms", ms, "a finite number") from None


def bytes_to_samples(count: int, channels: int = 1) -> int:
    """How many whole samples per channel `count` bytes of PCM16 hold. An odd byte counts for nothing.

    Raises:
        ArgumentError: `channels` is no positive int.
    """
    _check_positive("channels", channels)
    return count // (SAMPLE_BYTES * channels)


def bytes_to_ms(count: int, rate_hz: int, channels: int = 1) -> int:
    """The length of `count` bytes of PCM16, in whole milliseconds, rounded to the nearest."""
    return samples_to_ms(bytes_to_samples(count, channels), rate_hz)


def ms_to_bytes(ms: float, rate_hz: int, channels: int = 1) -> int:
    """How many bytes of PCM16 last `ms` milliseconds: always whole samples of all channels."""
    return ms_to_samples(ms, rate_hz) * SAMPLE_BYTES * channels


def wav_bytes(pcm: bytes | bytearray | memoryview, rate_hz: int, channels: int = 1) -> bytes:
    """Put PCM16 into a WAV container.

    Args:
        pcm: Signed 16-bit little-endian samples, interleaved if there are several channels. Whole samples.
        rate_hz: Samples a second.
        channels: 1 for mono.

    Returns:
        A RIFF WAVE file: 44 bytes of header, then the samples.

    Raises:
        ArgumentError: The samples are not whole, do not fit a WAV file (4 GiB), or a number is out of range.
    """
    _check_positive("rate_hz", rate_hz)
    _check_positive("channels", channels)
    if not isinstance(pcm, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("pcm", type(pcm).__name__, "bytes of 16-bit samples")
    if channels > _MAX_CHANNELS:
        raise ArgumentError("channels", channels, f"at most {_MAX_CHANNELS}, which is what a WAV file can hold")
    if rate_hz * channels * SAMPLE_BYTES > _MAX_RIFF_BYTES:
        raise ArgumentError("rate_hz", rate_hz, f"what a WAV file can hold of {channels} channel(s)")
    size = memoryview(pcm).nbytes
    if size % (SAMPLE_BYTES * channels):
        raise ArgumentError("pcm", f"{size} bytes", f"whole 16-bit samples of {channels} channel(s)")
    if size > _MAX_RIFF_BYTES - 36:
        raise ArgumentError("pcm", f"{size} bytes", "below 4 GiB, which is what a WAV file can hold")
    block = SAMPLE_BYTES * channels
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF", 36 + size, b"WAVE",
        b"fmt ", 16, _PCM_FORMAT, channels, rate_hz, rate_hz * block, block, 16,
        b"data", size,
    )  # fmt: skip
    return header + bytes(pcm)


def read_wav(data: bytes | bytearray | memoryview) -> tuple[bytes, int, int]:
    """Take PCM16 out of a WAV file.

    Understands 8, 16, 24 and 32-bit integers and 32-bit floats (also as WAVE_FORMAT_EXTENSIBLE), and reduces all to
    16 bit. A ``data`` chunk whose size was never filled in (0 or 0xFFFFFFFF, as streamed files have) or that is cut off
    gives what is there; one that is empty, with other chunks behind it, is empty. Chunks that are not needed are skipped.

    Returns:
        ``(pcm, rate_hz, channels)``; `pcm` is interleaved, whole samples.

    Raises:
        ArgumentError: It is no WAV file, or one of another encoding (named in the text).
    """
    view = memoryview(data).cast("B")
    if len(view) < 12 or bytes(view[:4]) != b"RIFF" or bytes(view[8:12]) != b"WAVE":
        raise ArgumentError("data", bytes(view[:12]), "a RIFF WAVE file")
    layout: tuple[int, int, int, int] | None = None
    at = 12
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(view):
            break
        name = bytes(view[at : at + 4])
        size = int.from_bytes(view[at + 4 : at + 8], "little")
        body = view[at + 8 : at + 8 + size]
        if name == b"fmt ":
            layout = _read_format(body)
        elif name == b"data":
            if layout is None:
                raise ArgumentError("data", "a data chunk before any fmt chunk", "a WAV file with its format first")
            if size == 0 and not _is_chunks(view[at + 8 :]):
                body = view[at + 8 :]
            encoding, channels, rate_hz, bits = layout
            return _to_pcm16(body, encoding, bits, channels), rate_hz, channels
        at += 8 + size + (size & 1)
    raise ArgumentError("data", f"{len(view)} bytes without a data chunk", "a WAV file with samples")


def _is_chunks(rest: memoryview) -> bool:
    """Whether these bytes are whole chunks, one after another to the end, and not sound of unknown length."""
    at = 0
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(rest):
            break
        if not all(0x20 <= letter < 0x7F for letter in rest[at : at + 4]):
            return False
        size = int.from_bytes(rest[at + 4 : at + 8], "little")
        at += 8 + size + (size & 1)
    return at >= 8 and at in (len(rest), len(rest) + 1)  # the last chunk's padding may be missing


def _read_format(body: memoryview) -> tuple[int, int, int, int]:
    """Read a ``fmt`` chunk: (encoding, channels, rate_hz, bits)."""
    if len(body) < 16:
        raise ArgumentError("data", f"a fmt chunk of {len(body)} bytes", "a WAV file with a whole fmt chunk")
    encoding, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if encoding == _EXTENSIBLE_FORMAT and len(body) >= 26:
        encoding = int.from_bytes(body[24:26], "little")
    known = (encoding == _PCM_FORMAT and bits in (8, 16, 24, 32)) or (encoding == _FLOAT_FORMAT and bits == 32)
    if not known:
        raise ArgumentError(
            "data", f"WAV encoding {encoding:#06x}, {bits} bit", "integer PCM (8, 16, 24, 32 bit) or 32-bit float"
        )
    if channels < 1 or rate_hz < 1:
        raise ArgumentError("data", f"{channels} channels at {rate_hz} Hz", "a WAV file with a channel and a rate")
    return encoding, channels, rate_hz, bits


def _to_pcm16(body: memoryview, encoding: int, bits: int, channels: int) -> bytes:
    """Reduce whole samples of `body` to PCM16."""
    width = bits // 8
    raw = bytes(body[: len(body) // (width * channels) * width * channels])
    if encoding == _FLOAT_FORMAT:
        return _floats_to_pcm16(raw)
    if width == 2:
        return raw
    out = bytearray(len(raw) // width * 2)
    if width == 1:
        out[1::2] = raw.translate(_EIGHT_BIT_TO_SIGNED)
    else:
        out[0::2] = raw[width - 2 :: width]
        out[1::2] = raw[width - 1 :: width]
    return bytes(out)


def _floats_to_pcm16(raw: bytes) -> bytes:
    floats = array("f", raw)
    if sys.byteorder == "big":
        floats.byteswap()
    # A NaN is no sound; what is beyond full scale is clipped.
    shorts = array("h", (round(min(1.0, max(-1.0, x)) * 32767) if x == x else 0 for x in floats))  # noqa: PLR0124
    if sys.byteorder == "big":
        shorts.byteswap()
    return shorts.tobytes()


class OddByteCarry:
    """Makes whole PCM16 samples of chunks of any length (behaviour.md A2).

    A byte left over at the end of a chunk is put before the next chunk of the *same* item. A new item starts without
    it: half a sample of one sentence would shift every sample of the next by a byte.

    Attributes:
        dropped_bytes: How many left-over bytes were dropped at the end of items so far.
    """

    __slots__ = ("_item", "_rest", "_sample_bytes", "dropped_bytes")

    def __init__(self, sample_bytes: int = SAMPLE_BYTES) -> None:
        """Carry for samples of `sample_bytes` bytes (2 × channels)."""
        _check_positive("sample_bytes", sample_bytes)
        self._sample_bytes = sample_bytes
        self._item: str | None = None
        self._rest = b""
        self.dropped_bytes = 0

    @property
    def held_bytes(self) -> int:
        """How many bytes wait for the rest of their sample (0 for PCM16: at most 1)."""
        return len(self._rest)

    def push(self, data: bytes | bytearray | memoryview, item: str = "") -> bytes:
        """Take a chunk of `item` and give the whole samples there are now; may be empty."""
        if item != self._item:
            self.finish()
            self._item = item
        joined = self._rest + bytes(data) if self._rest else bytes(data)
        whole = len(joined) // self._sample_bytes * self._sample_bytes
        self._rest = joined[whole:]
        return joined[:whole] if self._rest else joined

    def finish(self) -> int:
        """End the item: drop what is left of an unfinished sample. Returns how many bytes that were."""
        dropped = len(self._rest)
        self.dropped_bytes += dropped
        self._rest = b""
        self._item = None
        return dropped
