"""What it costs to send a reply, and what Opus's settings cost and give.

Sending: what a peer that takes Opus is sent for the reply (`ReplyTrack.open_sender`), while the model speaks and while it is silent; baseline:
what aiortc's sender does with audio frames of the same speech (level of the sound in Python, resampling to 48 kHz stereo, Opus at
96 kbit/s), without the thread that it hands the work to. Settings: processor time of a packet, and how near the decoded sound is to the
original. Times are processor time, the best of several rounds that take turns.

Run:  python benchmarks/bench_reply.py [--rounds 5] [--check]
With --check it ends with 1 if a packet costs more than half of the baseline, or a second of silence more than a twentieth.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import av
import numpy as np
from aiortc import rtp
from aiortc.codecs.opus import OpusEncoder as StockEncoder

from realtime.media.opus_encoder import OpusEncoder
from realtime.tracks.reply import ReplyTrack

RATE_HZ = 24_000
SECONDS = 4
PACKETS = SECONDS * 50
REMINDERS = 2.5
"""Packets a second while there is nothing to say."""


class AtOnce:
    """A clock whose every moment has come, so that only the work is measured."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep_until(self, when: float) -> None:
        self.time = when

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.Handle:
        self.time = max(self.time, when)
        return asyncio.get_running_loop().call_soon(callback)


@cache
def voice() -> np.ndarray:
    """Harmonics under an envelope, with some breath."""
    t = np.arange(RATE_HZ * SECONDS) / RATE_HZ
    envelope = np.clip(np.sin(2 * np.pi * 2.3 * t), 0.02, 1)
    sound = sum(np.sin(2 * np.pi * 130 * harmonic * t) / harmonic for harmonic in range(1, 40))
    noise = np.random.default_rng(1).normal(size=len(t))
    return np.round(envelope * (5_000 * sound + 400 * noise)).astype("<i2")


def talking() -> ReplyTrack:
    track = ReplyTrack(RATE_HZ, clock=AtOnce())
    track.push("reply", voice().tobytes() * 2)
    return track


async def stock(count: int) -> None:
    """Frames, as aiortc's sender treats them."""
    encoder: Any = StockEncoder()
    samples = voice().reshape(-1, 480)
    for number in range(count):
        frame = av.AudioFrame.from_ndarray(samples[number % len(samples)][None, :], "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, number * 480, Fraction(1, RATE_HZ)
        rtp.compute_audio_level_dbov(frame)
        encoder.encode(frame)


async def packets(count: int) -> None:
    sender = talking().open_sender(lambda: True)
    for _ in range(count):
        await sender.recv()


async def silence(count: int) -> None:
    sender = ReplyTrack(RATE_HZ, clock=AtOnce()).open_sender(lambda: True)
    for _ in range(count):
        await sender.recv()


def sending(rounds: int) -> bool:
    """Print the table; gives whether the goals are met."""
    works = [
        ("aiortc, frames", stock, 50.0),
        ("packets, speaking", packets, 50.0),
        ("packets, silent", silence, REMINDERS),
    ]
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, (_, work, per_second) in enumerate(works):
            start = time.process_time()
            asyncio.run(work(PACKETS))
            best[index] = min(best[index], (time.process_time() - start) / PACKETS * per_second * 1000)
    print(f"Sending a reply, up to RTP\n{'':20} {'CPU ms/s':>9} {'ratio':>7}")
    for (name, _, _), cost in zip(works, best, strict=True):
        print(f"{name:20} {cost:9.2f} {best[0] / cost:6.1f}×")
    return best[0] >= 2 * best[1] and best[0] >= 20 * best[2]


def encoded(options: dict[str, str], kbits: int, samples: np.ndarray) -> list[bytes]:
    codec: Any = av.AudioCodecContext.create("libopus", "w")
    codec.sample_rate, codec.layout, codec.format, codec.bit_rate = RATE_HZ, "mono", "s16", kbits * 1000
    codec.time_base, codec.options = Fraction(1, RATE_HZ), options
    found = []
    for chunk in samples.reshape(-1, 480):
        frame = av.AudioFrame.from_ndarray(chunk[None, :], "s16", "mono")
        frame.sample_rate = RATE_HZ
        found += [bytes(packet) for packet in codec.encode(frame)]
    return found


def nearness_db(said: list[bytes], samples: np.ndarray) -> float:
    """Sound against what differs from the original, at the delay at which that is least."""
    decoder: Any = av.AudioCodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.format, decoder.layout = 48_000, "s16", "mono"
    heard = np.concatenate([f.to_ndarray().reshape(-1) for p in said for f in decoder.decode(av.Packet(p))])
    heard = heard[::2].astype(float)  # at 24 kHz: what is above was never encoded
    middle = samples[12_000:-12_000].astype(float)
    errors = [np.mean((heard[12_000 + delay :][: len(middle)] - middle) ** 2) for delay in range(240)]
    return float(10 * np.log10(np.mean(middle**2) / min(errors)))


def settings(rounds: int) -> None:
    """Print what each setting costs."""
    samples = voice()
    rows = [
        (name, kbits, complexity)
        for name, kbits in (("voip", 32), ("voip", 64), ("audio", 64), ("lowdelay", 48), ("lowdelay", 64))
        for complexity in (0, 5)
    ]
    best = [float("inf")] * len(rows)
    for _ in range(rounds):
        for index, (name, kbits, complexity) in enumerate(rows):
            start = time.process_time()
            encoded({"application": name, "compression_level": str(complexity)}, kbits, samples)
            best[index] = min(best[index], (time.process_time() - start) / PACKETS * 1e6)
    print(f"\nOpus at 24 kHz, mono\n{'':12} {'kbit/s':>7} {'level':>6} {'µs':>6} {'bytes':>6} {'SNR dB':>7}")
    for (name, kbits, complexity), cost in zip(rows, best, strict=True):
        said = encoded({"application": name, "compression_level": str(complexity)}, kbits, samples)
        size = np.mean([len(packet) for packet in said])
        print(f"{name:12} {kbits:7} {complexity:6} {cost:6.0f} {size:6.0f} {nearness_db(said, samples):7.1f}")
    ours = OpusEncoder(RATE_HZ)
    print(f"chosen: lowdelay, 64 kbit/s, level 0; silence is {len(ours.silence)} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    given = parser.parse_args()
    voice()  # made once
    met = sending(given.rounds)
    settings(given.rounds)
    raise SystemExit(0 if met or not given.check else 1)


if __name__ == "__main__":
    main()
