"""What audio costs on its way in and out, and how long it is held.

In: 20 ms frames as aiortc decodes them (48 kHz stereo) to a model's mono PCM16. Baseline: `av.AudioResampler`, which is what a
plain aiortc program uses; soxr beside it. Out: the reply track's `recv()`; baseline: a bare track that only makes a frame of
silence. Times are processor time, the best of several rounds that take turns.

Run:  python benchmarks/bench_audio.py [--rounds 9] [--check]
With --check it ends with 1 if the converter costs more than one and a half times the baseline or holds more than 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import soxr

from realtime.media.audio import AudioConverter
from realtime.tracks.reply import ReplyTrack

SOURCE_HZ = 48_000
SAMPLES = 960
FRAMES = 250
"""Five seconds."""
MOST_HELD_MS = 5.0
MOST_COST = 1.5


@dataclass
class Way:
    """One way of converting a stream: makes a function that takes a frame and gives PCM16."""

    name: str
    make: Callable[[int], Callable[[av.AudioFrame], bytes]]


def ours(rate_hz: int) -> Callable[[av.AudioFrame], bytes]:
    return AudioConverter(rate_hz).convert


def resampler_of_av(rate_hz: int) -> Callable[[av.AudioFrame], bytes]:
    resampler = av.AudioResampler("s16", "mono", rate_hz)

    def convert(frame: av.AudioFrame) -> bytes:
        return b"".join(bytes(out.planes[0])[: out.samples * 2] for out in resampler.resample(frame))

    return convert


def soxr_at(quality: str) -> Callable[[int], Callable[[av.AudioFrame], bytes]]:
    def make(rate_hz: int) -> Callable[[av.AudioFrame], bytes]:
        stream = soxr.ResampleStream(SOURCE_HZ, rate_hz, 1, dtype="int16", quality=quality)

        def convert(frame: av.AudioFrame) -> bytes:
            both = np.frombuffer(frame.planes[0], np.int16, count=frame.samples * 2).reshape(-1, 2)
            mono = (both.sum(axis=1, dtype=np.int32) // 2).astype(np.int16)
            return stream.resample_chunk(mono).tobytes()

        return convert

    return make


WAYS = [
    Way("av.AudioResampler", resampler_of_av),
    Way("numpy + soxr MQ", soxr_at("MQ")),
    Way("numpy + soxr HQ", soxr_at("HQ")),
    Way("realtime", ours),
]


def frames_of(mono: np.ndarray) -> list[av.AudioFrame]:
    """20 ms stereo frames of a mono signal (±1), as a decoder gives them."""
    frames = []
    for index in range(len(mono) // SAMPLES):
        part = np.rint(mono[index * SAMPLES : (index + 1) * SAMPLES] * 32_000).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(np.repeat(part, 2)[None, :], "s16", "stereo")
        frame.sample_rate, frame.pts, frame.time_base = SOURCE_HZ, index * SAMPLES, Fraction(1, SOURCE_HZ)
        frames.append(frame)
    return frames


def speechlike() -> np.ndarray:
    random = np.random.default_rng(1)
    t = np.arange(FRAMES * SAMPLES) / SOURCE_HZ
    envelope = np.clip(np.sin(2 * np.pi * 2.3 * t), 0, 1)
    voice = sum(np.sin(2 * np.pi * 130 * harmonic * t) / harmonic for harmonic in range(1, 20))
    return envelope * (0.2 * voice + 0.02 * random.normal(size=len(t)))


def held_ms(way: Way, rate_hz: int, frames: list[av.AudioFrame]) -> float:
    """How much of what has come in has not come out, after each frame, in the mean."""
    convert, out, held = way.make(rate_hz), 0, []
    for index, frame in enumerate(frames, 1):
        out += len(convert(frame)) // 2
        held.append(index * 20 - out / rate_hz * 1000)
    return float(np.mean(held[5:]))


def folded_db(way: Way, rate_hz: int) -> float:
    """The level of what a full-scale tone a tenth above the new Nyquist frequency leaves, in dB."""
    tone = np.sin(2 * np.pi * 1.1 * rate_hz / 2 * np.arange(SOURCE_HZ) / SOURCE_HZ)
    convert = way.make(rate_hz)
    got = np.frombuffer(b"".join(convert(frame) for frame in frames_of(tone)), np.int16)[rate_hz // 10 : -rate_hz // 10]
    return 20 * np.log10(max(1e-6, float(np.sqrt(np.mean(got.astype(float) ** 2))) / (32_000 / np.sqrt(2))))


def threads_of_av() -> str:
    """How many threads ten of the baseline's resamplers start, where the system tells."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return "unknown here"
    before = len(list(tasks.iterdir()))
    kept = [resampler_of_av(16_000) for _ in range(10)]
    for convert in kept:
        convert(frames_of(np.zeros(SAMPLES))[0])
    return f"{len(list(tasks.iterdir())) - before} (on {os.cpu_count()} processors)"


def converters(rounds: int) -> bool:
    """Print the table of the way in; gives whether the goals are met."""
    frames, met = frames_of(speechlike()), True
    for rate_hz in (24_000, 16_000):
        best = [float("inf")] * len(WAYS)
        for _ in range(rounds):
            for index, way in enumerate(WAYS):
                convert = way.make(rate_hz)
                start = time.process_time()
                for frame in frames:
                    convert(frame)
                best[index] = min(best[index], time.process_time() - start)
        print(f"\nIn: 48 kHz stereo → {rate_hz // 1000} kHz mono, per second of audio")
        print(f"{'':20} {'CPU ms':>8} {'× baseline':>11} {'held ms':>8} {'folded dB':>10}")
        for way, seconds in zip(WAYS, best, strict=True):
            cost, held = seconds / (FRAMES / 50) * 1000, held_ms(way, rate_hz, frames)
            print(f"{way.name:20} {cost:8.2f} {best[0] / seconds:10.2f}× {held:8.1f} {folded_db(way, rate_hz):10.0f}")
        met = met and best[-1] <= MOST_COST * best[0] and held_ms(WAYS[-1], rate_hz, frames) <= MOST_HELD_MS
    print(f"\nThreads that ten av.AudioResamplers start: {threads_of_av()}; ten of ours: 0")
    return met


class AtOnce:
    """A clock whose every moment has come, so that only the work is measured."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """The last moment that somebody waited for."""
        return self.time

    async def sleep_until(self, when: float) -> None:
        """Wait for nothing."""
        self.time = when


async def bare_recv() -> av.AudioFrame:
    frame = av.AudioFrame("s16", "mono", SAMPLES)
    frame.sample_rate, frame.pts, frame.time_base = SOURCE_HZ, 0, Fraction(1, SOURCE_HZ)
    frame.planes[0].update(bytes(SAMPLES * 2))
    return frame


async def replies(rounds: int) -> None:
    """Print the table of the way out."""
    minute = (8000 * np.sin(np.arange(24_000 * 60) / 9)).astype("<i2").tobytes()

    def talking(rate_hz: int) -> Callable[[], object]:
        track = ReplyTrack(rate_hz, clock=AtOnce())
        track.push("reply", minute)
        return track.recv

    works: list[tuple[str, Callable[[], Callable[[], object]]]] = [
        ("a bare silent track", lambda: bare_recv),
        ("idle", lambda: ReplyTrack(24_000, clock=AtOnce()).recv),
        *((f"talking, {rate // 1000} kHz", lambda rate=rate: talking(rate)) for rate in (24_000, 16_000, 48_000)),
    ]
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, (_, make) in enumerate(works):
            receive = make()
            start = time.process_time()
            for _ in range(FRAMES):
                await receive()
            best[index] = min(best[index], time.process_time() - start)
    print("\nOut: the reply track, per second of audio")
    print(f"{'':20} {'CPU ms':>8} {'× baseline':>11}")
    for (name, _), seconds in zip(works, best, strict=True):
        print(f"{name:20} {seconds / (FRAMES / 50) * 1000:8.2f} {best[0] / seconds:10.2f}×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds per figure; the best counts")
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    options = parser.parse_args()
    met = converters(options.rounds)
    asyncio.run(replies(options.rounds))
    print(
        f"\n{'met' if met else 'MISSED'}: costs at most {MOST_COST:g}× av.AudioResampler and holds at most {MOST_HELD_MS:g} ms"
    )
    raise SystemExit(0 if met or not options.check else 1)


if __name__ == "__main__":
    main()
