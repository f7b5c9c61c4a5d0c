"""What it costs to send a reply, and what Opus's settings cost and give.

Sending: everything from the model's speech to the socket — pace, Opus, RTP, SRTP, `sendto` — to a real peer in another process, while the
model speaks and while it is silent. Baselines: the same speech as a track of frames that aiortc sends (level of the sound in Python, resampling
to 48 kHz stereo, Opus at 96 kbit/s on a thread), and the same ready packets sent by aiortc (`attach(pc, direct=False)`). No time passes between
packets, so that only the work is measured; in a call each packet finds cold caches and costs three to five times as much, either way.
Settings: processor time of a packet, and how near the decoded sound is to the original. Times are processor time of the sending process, the
best of several rounds that take turns.

Run:  python benchmarks/bench_reply.py [--rounds 5] [--check]
With --check it ends with 1 if a packet costs more than a third of the first baseline or two thirds of the second, or a second of silence more
than a twentieth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import av
import numpy as np
from aiortc import RTCSessionDescription
from aiortc.mediastreams import MediaStreamTrack

from realtime.media.opus_encoder import OpusEncoder
from realtime.testing.loopback import connected, make_peer, on_loopback
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.reply_out import send_reply, watch_packets

RATE_HZ = 24_000
SECONDS = 4
PACKETS = SECONDS * 50
REMINDERS = 2.5
"""Packets a second while there is nothing to say."""


class AtOnce:
    """A clock that stands still until `begin`; from then on every moment has come, so that only the work is measured."""

    def __init__(self) -> None:
        self.time = 0.0
        self._begun = asyncio.Event()
        self._early: list[tuple[float, Callable[[], object]]] = []

    def begin(self) -> None:
        self._begun.set()
        for when, callback in self._early:
            self.call_at(when, callback)

    def now(self) -> float:
        return self.time

    async def sleep_until(self, when: float) -> None:
        await self._begun.wait()
        self.time = max(self.time, when)

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.Handle:
        loop = asyncio.get_running_loop()
        if not self._begun.is_set():
            self._early.append((when, callback))
            return asyncio.Handle(callback, (), loop)
        self.time = max(self.time, when)
        return loop.call_soon(callback)


@cache
def voice() -> np.ndarray:
    """Harmonics under an envelope, with some breath."""
    t = np.arange(RATE_HZ * SECONDS) / RATE_HZ
    envelope = np.clip(np.sin(2 * np.pi * 2.3 * t), 0.02, 1)
    sound = sum(np.sin(2 * np.pi * 130 * harmonic * t) / harmonic for harmonic in range(1, 40))
    noise = np.random.default_rng(1).normal(size=len(t))
    return np.round(envelope * (5_000 * sound + 400 * noise)).astype("<i2")


class Frames(MediaStreamTrack):
    """The speech as an application's own track would give it."""

    kind = "audio"

    def __init__(self, clock: AtOnce) -> None:
        super().__init__()
        self.taken = 0
        self.enough = asyncio.Event()
        self._clock = clock
        self._samples = voice().reshape(-1, 480)

    async def recv(self) -> av.AudioFrame:
        await self._clock.sleep_until(0)
        if self.taken == PACKETS:
            self.enough.set()
            await asyncio.Event().wait()
        frame = av.AudioFrame.from_ndarray(self._samples[self.taken % len(self._samples)][None, :], "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self.taken * 480, Fraction(1, RATE_HZ)
        self.taken += 1
        return frame


class Listener:
    """A peer in another process, which answers offers one after another."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Listener:
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(sys.executable, __file__, "--listen", stdin=pipe, stdout=pipe))

    async def answer(self, offer: str) -> str:
        process: Any = self._process
        process.stdin.write(json.dumps(offer).encode() + b"\n")
        return str(json.loads(await process.stdout.readline()))

    async def stop(self) -> None:
        process: Any = self._process
        process.stdin.close()
        await process.wait()


async def listen() -> None:
    """Be that peer."""
    loop, peers = asyncio.get_running_loop(), list[Any]()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        for peer in peers:
            await peer.close()
        peers = [make_peer()]
        with on_loopback():
            await peers[0].setRemoteDescription(RTCSessionDescription(json.loads(line), "offer"))
            await peers[0].setLocalDescription(await peers[0].createAnswer())
        print(json.dumps(peers[0].localDescription.sdp), flush=True)
    for peer in peers:
        await peer.close()


async def send(listener: Listener, way: str) -> float:
    """Processor seconds for each packet."""
    clock, peer = AtOnce(), make_peer()
    sent, enough = 0, asyncio.Event()

    def count(*_: object) -> None:
        nonlocal sent
        sent += 1
        if sent == PACKETS:
            enough.set()

    reply = ReplyTrack(RATE_HZ, count, clock)
    if way == "frames":
        frames = Frames(clock)
        peer.addTrack(frames)
        enough = frames.enough
    else:
        send_reply(peer, reply, direct=way != "stock")
    with on_loopback():
        await peer.setLocalDescription(await peer.createOffer())
    await peer.setRemoteDescription(RTCSessionDescription(await listener.answer(peer.localDescription.sdp), "answer"))
    await connected(peer)
    if way == "silent":
        watch_packets(peer.getSenders()[0], count)
    else:
        reply.push("reply", voice().tobytes() * 2)
    await asyncio.sleep(0.1)
    start = time.process_time()
    clock.begin()
    await enough.wait()
    cost = time.process_time() - start
    await peer.close()
    return cost / PACKETS


async def sending(rounds: int) -> bool:
    """Print the table; gives whether the goals are met."""
    works = [
        ("aiortc, frames", "frames", 50.0),
        ("aiortc, packets", "stock", 50.0),
        ("ours, speaking", "ours", 50.0),
        ("ours, silent", "silent", REMINDERS),
    ]
    best = [float("inf")] * len(works)
    listener = await Listener.start()
    for _ in range(rounds):
        for index, (_, way, _) in enumerate(works):
            best[index] = min(best[index], await send(listener, way))
    await listener.stop()
    print(f"Sending a reply, up to the socket\n{'':20} {'µs a packet':>12} {'CPU ms/s':>9} {'ratio':>7}")
    second = [cost * per_second * 1000 for cost, (_, _, per_second) in zip(best, works, strict=True)]
    for (name, _, _), cost, each in zip(works, second, best, strict=True):
        print(f"{name:20} {each * 1e6:12.0f} {cost:9.2f} {second[0] / cost:6.1f}×")
    frames, stock, ours, silent = second
    return frames >= 3 * ours and stock >= 1.5 * ours and frames >= 20 * silent


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
    ours, direct = OpusEncoder(RATE_HZ), float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for chunk in samples.reshape(-1, ours.samples):
            ours.encode(chunk.tobytes())
        direct = min(direct, (time.process_time() - start) / PACKETS * 1e6)
    print(
        f"chosen: lowdelay, 64 kbit/s, level 0, without PyAV in between: {direct:.0f} µs; silence is {len(ours.silence)} bytes"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    parser.add_argument("--listen", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.listen:
        asyncio.run(listen())
        return
    voice()  # made once
    met = asyncio.run(sending(given.rounds))
    settings(given.rounds)
    raise SystemExit(0 if met or not given.check else 1)


if __name__ == "__main__":
    main()
