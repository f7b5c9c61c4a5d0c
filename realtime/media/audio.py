"""Audio of any shape to what a model takes: PCM16, mono, one rate, no holes in time.

Owns: `AudioConverter` (decoded av frames) and `PcmConverter` (raw PCM16), one per stream and stateful. Driven by the
audio pipeline, on the loop: tens of microseconds per 20 ms. Never starts a thread (av.AudioResampler would), never takes a
position from a clock: they come from sample counts and pts (behaviour.md A3). Only how much silence may be made at all goes
by one, where one is given: a sender whose time stamps outrun it is not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray

from realtime.errors import ArgumentError
from realtime.media.resample import Resampler, check_rate
from realtime.pcm import OddByteCarry, samples_to_ms

__all__ = ["AudioConverter", "PcmConverter", "Timeline"]

_Samples = NDArray[np.float32]

_LOWEST, _HIGHEST = np.float32(-32768.0), np.float32(32767.0)
_LOUDEST = 131_072.0
"""12 dB above full scale: what is louder might overflow in a resampler before it is clipped."""
_LONGEST_GAP_SECONDS = 3600
_SLACK_SECONDS = 1.0
"""No more silence is made than time has passed since the last frame, and this much."""
_EDGE_SAMPLES = 2_048
"""After so much silence no resampler remembers the sound before it."""

_DTYPES: dict[str, tuple[str, float, float]] = {
    # sample format, planar or not: (numpy type, offset, full scale)
    "u8": ("u1", 128.0, 128.0),
    "s16": ("i2", 0.0, 32768.0),
    "s32": ("i4", 0.0, 2147483648.0),
    "s64": ("i8", 0.0, 9223372036854775808.0),
    "flt": ("f4", 0.0, 1.0),
    "dbl": ("f8", 0.0, 1.0),
}


class AudioConverter:
    """Converts one track's frames to mono PCM16 at one rate (behaviour.md A1).

    Rate, layout and sample format may change at any frame: what is held of the old kind is given out first. Mono is the
    mean of all channels, taken in a wider type. A hole in the frames' pts (a lost packet, a sender that stops in
    silence) becomes silence of that length, so that time is kept (A3); a jump beyond `max_gap_seconds`, or backwards, is
    a new stream and becomes nothing.

    Attributes:
        rate_hz: Samples a second of what comes out.
        samples_out: How many samples have come out so far.
        filled_samples: How many samples of silence were put into holes so far, at the rate of the frames they stood in.
        late_samples: How many samples were left out because their place had been filled already, at their own rate.
        skipped_samples: How much silence was not put into holes because so much time had not passed, at the frames' rate.
    """

    __slots__ = (
        "_allowance",
        "_came_at",
        "_now",
        "_resampler",
        "_timeline",
        "filled_samples",
        "late_samples",
        "rate_hz",
        "samples_out",
        "skipped_samples",
    )

    def __init__(self, rate_hz: int, *, max_gap_seconds: float = 60.0, now: Callable[[], float] | None = None) -> None:
        """Prepare for one stream.

        Args:
            rate_hz: Samples a second of what comes out, 1000–768000.
            max_gap_seconds: The longest hole that is filled with silence; 0: none is.
            now: Tells monotonic seconds: no more silence is made than time has passed since the last frame, and a second
                more. None: the frames' pts are believed (a file).

        Raises:
            ArgumentError: A number is out of range.
        """
        self.rate_hz = check_rate("rate_hz", rate_hz)
        self._timeline = Timeline(max_gap_seconds)
        self._resampler: Resampler | None = None
        self.samples_out = 0
        self.filled_samples = 0
        self.late_samples = 0
        self.skipped_samples = 0
        self._now = now
        self._allowance = _SLACK_SECONDS
        self._came_at = 0.0 if now is None else now()

    @property
    def position_ms(self) -> int:
        """Where the stream stands: milliseconds of audio that have come out, silence in holes included."""
        return samples_to_ms(self.samples_out, self.rate_hz)

    def convert(self, frame: av.AudioFrame) -> bytes:
        """Take a frame and give the PCM16 there is now; empty output is normal.

        Raises:
            ArgumentError: The frame's sample format or rate cannot be read; the text names it.
        """
        # hot path: fifty times a second per call
        if not frame.samples:
            return b""
        samples = _mono(frame)
        rate_hz = check_rate("frame.sample_rate", frame.sample_rate)
        gap, skip = self._timeline.place(frame.time, len(samples), rate_hz)
        data = self._drain_if_changed(rate_hz)
        if self._now is not None:
            gap = self._allowed(gap, rate_hz, now=self._now())
        if gap:
            self.filled_samples += gap
            data += self._silence(gap)
        if skip:
            self.late_samples += skip
            samples = samples[skip:]
        data += self._push(samples)
        self.samples_out += len(data) // 2
        return data

    def flush(self) -> bytes:
        """Give what is held. The next frame starts a new stream."""
        held = self._resampler
        self._resampler = None
        self._timeline.restart()
        data = b"" if held is None else _to_pcm16(held.flush())
        self.samples_out += len(data) // 2
        return data

    def _allowed(self, gap: int, rate_hz: int, *, now: float) -> int:
        """How many of `gap` samples of silence may be made; what was not used is not kept for long."""
        self._allowance = min(self._allowance, _SLACK_SECONDS) + now - self._came_at
        self._came_at = now
        if not gap:
            return 0
        allowed = min(gap, int(self._allowance * rate_hz))
        self._allowance -= allowed / rate_hz
        self.skipped_samples += gap - allowed
        return allowed

    def _drain_if_changed(self, rate_hz: int) -> bytes:
        """Make the resampler for `rate_hz`; gives what the one before it still held."""
        held = self._resampler
        before = held.from_rate_hz if held is not None else self.rate_hz
        if before == rate_hz:
            return b""
        self._resampler = None if rate_hz == self.rate_hz else Resampler(rate_hz, self.rate_hz)
        return b"" if held is None else _to_pcm16(held.flush())

    def _push(self, samples: _Samples) -> bytes:
        return _to_pcm16(samples if self._resampler is None else self._resampler.push(samples))

    def _silence(self, samples: int) -> bytes:
        """`samples` samples of silence, at the rate of what comes in. A minute of it must not hold the loop."""
        if self._resampler is None:
            return bytes(samples * 2)
        edge = min(samples, _EDGE_SAMPLES)
        before = self._push(np.zeros(edge, np.float32))
        taken, given = self._resampler.skip_silence(samples - edge)
        return before + bytes(given * 2) + self._push(np.zeros(samples - edge - taken, np.float32))


def _mono(frame: av.AudioFrame) -> _Samples:
    """The frame as mono floats on the scale of 16 bit (±32768), shape (samples,). Padding of planes is left out."""
    name = frame.format.name
    planar = name.endswith("p")
    kind = _DTYPES.get(name.removesuffix("p"))
    if kind is None:
        raise ArgumentError("frame.format", name, "one of " + ", ".join(f"{known}(p)" for known in _DTYPES))
    dtype, offset, full_scale = kind
    channels = frame.layout.nb_channels
    if channels < 1:
        raise ArgumentError("frame.layout", frame.layout.name, "a layout with at least one channel")
    if planar:
        rows = [_plane(plane, dtype, frame.samples) for plane in frame.planes[:channels]]
        values = np.stack(rows, axis=1) if channels > 1 else rows[0]
    else:
        values = _plane(frame.planes[0], dtype, frame.samples * channels)
        values = values.reshape(-1, channels) if channels > 1 else values
    if dtype[0] != "f":
        return _mean(values, offset, full_scale)
    with np.errstate(over="ignore", invalid="ignore"):  # floats may be anything
        mono = _mean(values, offset, full_scale)
        if not np.abs(mono).max() <= _LOUDEST:  # neither is NaN
            mono = np.clip(np.nan_to_num(mono, nan=0.0, posinf=32767.0, neginf=-32768.0), -_LOUDEST, _LOUDEST)
        return mono


def _mean(values: NDArray[Any], offset: float, full_scale: float) -> _Samples:
    """The mean of the channels (the second axis, if there is one), taken in a wider type and brought to 16 bit's scale."""
    wide = np.float64 if values.dtype.itemsize >= 4 and values.dtype != np.float32 else np.float32
    mono: Any
    if values.ndim == 1:
        mono = values.astype(wide)
    elif values.shape[1] == 2:  # most of what comes; twice as fast as the mean of an axis
        mono = np.add(values[:, 0], values[:, 1], dtype=wide)
        mono *= 0.5
    else:
        mono = values.mean(axis=1, dtype=wide)
    if offset:
        mono -= offset
    if full_scale != 32768.0:
        mono *= 32768.0 / full_scale
    return cast("_Samples", mono.astype(np.float32, copy=False))


def _plane(plane: Any, dtype: str, count: int) -> NDArray[Any]:
    """The first `count` values of a plane; what follows them is padding."""
    return np.frombuffer(plane, dtype, count=count)


def _to_pcm16(samples: _Samples) -> bytes:
    """Round and clip to 16 bit."""
    if not len(samples):
        return b""
    rounded = np.rint(samples)
    np.minimum(rounded, _HIGHEST, out=rounded)  # a third of the time of np.clip
    np.maximum(rounded, _LOWEST, out=rounded)
    return rounded.astype("<i2").tobytes()


def _check_gap(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= _LONGEST_GAP_SECONDS:
        raise ArgumentError("max_gap_seconds", seconds, f"a number of 0 to {_LONGEST_GAP_SECONDS}")
    return float(seconds)


class Timeline:
    """Says where a frame stands after the ones before it: next to them, after a hole, or where a hole was filled.

    Works on what the frames say of themselves (pts and sample counts), never on when they arrive, so a stall and a
    burst change nothing (behaviour.md A3).
    """

    __slots__ = ("_anchor", "_filled", "_max_gap", "_since_anchor")

    _TOLERANCE_SECONDS = 0.005
    """Time stamps in milliseconds jitter by one; a real hole is a whole packet, 10 ms at least."""

    def __init__(self, max_gap_seconds: float = 60.0) -> None:
        """Fill holes up to `max_gap_seconds`."""
        self._max_gap = _check_gap(max_gap_seconds)
        self.restart()

    def restart(self) -> None:
        """Forget the past: the next frame follows directly."""
        self._anchor: float | None = None
        self._since_anchor = 0.0
        self._filled: tuple[float, float] = (0.0, 0.0)

    def place(self, pts_seconds: float | None, samples: int, rate_hz: int) -> tuple[int, int]:
        """Place a frame.

        Args:
            pts_seconds: Its time stamp, or None if it has none.
            samples: Its length.
            rate_hz: Its rate.

        Returns:
            ``(gap, skip)``: samples of silence to put before it, and samples of its own to leave out, at its rate.
        """
        length = samples / rate_hz
        if pts_seconds is None:
            self._since_anchor += length
            return 0, 0
        if self._anchor is None:
            self._anchor, self._since_anchor = pts_seconds, length
            return 0, 0
        expected = self._anchor + self._since_anchor
        ahead = pts_seconds - expected
        if abs(ahead) <= self._TOLERANCE_SECONDS:
            self._since_anchor += length
            return 0, 0
        if 0 < ahead <= self._max_gap:
            gap = round(ahead * rate_hz)
            self._filled = (expected, pts_seconds)
            self._since_anchor += gap / rate_hz + length
            return gap, 0
        begin, end = self._filled
        if ahead < 0 and begin - self._TOLERANCE_SECONDS <= pts_seconds < end - self._TOLERANCE_SECONDS:
            skip = min(samples, round(-ahead * rate_hz))
            self._since_anchor += (samples - skip) / rate_hz
            return 0, skip
        self._anchor, self._since_anchor = pts_seconds, length
        return 0, 0


class PcmConverter:
    """Resamples raw mono PCM16, chunk by chunk of any length in bytes (behaviour.md A1, A2)."""

    __slots__ = ("_carry", "_resampler", "from_rate_hz", "to_rate_hz")

    def __init__(self, from_rate_hz: int, to_rate_hz: int) -> None:
        """Prepare for one stream.

        Raises:
            ArgumentError: A rate is out of range.
        """
        self.from_rate_hz = check_rate("from_rate_hz", from_rate_hz)
        self.to_rate_hz = check_rate("to_rate_hz", to_rate_hz)
        self._carry = OddByteCarry()
        self._resampler = None if from_rate_hz == to_rate_hz else Resampler(from_rate_hz, to_rate_hz)

    def convert(self, pcm: bytes | bytearray | memoryview) -> bytes:
        """Take a chunk and give what can be given; an odd byte waits for the next chunk. Empty output is normal."""
        whole = self._carry.push(pcm)
        if self._resampler is None or not whole:
            return whole
        return _to_pcm16(self._resampler.push(np.frombuffer(whole, "<i2").astype(np.float32)))

    def flush(self) -> bytes:
        """Give what is held; an odd byte at the end is dropped. The next chunk starts a new stream."""
        self._carry.finish()
        return b"" if self._resampler is None else _to_pcm16(self._resampler.flush())
