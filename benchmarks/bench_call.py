"""What one call costs: processor time, loop lag, latencies, memory.

A user in another process speaks and shows a street through Opus and VP8. The session's process and the local LLM's
process are measured apart. In the same run the same user calls the named baseline, *plain aiortc*: both tracks decoded,
sound resampled with av.AudioResampler, one frame a second through `to_image`, LANCZOS and Pillow's optimized JPEG, silence
sent back; no model and no conversation. The lag of a bare loop is measured beside both.

Run:  python benchmarks/bench_call.py [--seconds 24]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError
from PIL import Image

from realtime import FrameSampling, RealtimeSession
from realtime.demo.scene import SCENE_QUESTIONS, spoken, street
from realtime.events import FrameKept, MessageCommitted, TurnCompleted
from realtime.pipelines.clock import SystemClock
from realtime.pipelines.worker import WorkerPool
from realtime.testing.devices import FRAME_SAMPLES, Camera, Microphone
from realtime.testing.listener import Listener
from realtime.testing.loopback import make_peer, on_loopback

TICK_SECONDS = 0.01
TURN_SECONDS = 8.0
WARM_UP_SECONDS = 3.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Figures:
    """What one process measured of its call."""

    cpu_ms: float = 0.0
    lag_ms: list[float] = field(default_factory=list)
    first_audio_ms: list[float] = field(default_factory=list)
    first_heard_ms: list[float] = field(default_factory=list)
    frame_ms: list[float] = field(default_factory=list)
    frames: int = 0
    rss_mb: tuple[float, float] = (0.0, 0.0)


# -- measuring ----------------------------------------------------------------------------------------------------------


async def sample_lag(into: list[float], seconds: float) -> None:
    """Ask to be woken every 10 ms and note how late that was."""
    loop = asyncio.get_running_loop()
    due, end = loop.time() + TICK_SECONDS, loop.time() + seconds
    while due < end:
        await asyncio.sleep(max(0.0, due - loop.time()))
        into.append((loop.time() - due) * 1000)
        due = max(due + TICK_SECONDS, loop.time())


def process_cpu_ms(pid: int) -> float:
    """Processor time of a process, threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / CLOCK_TICKS


def process_rss_mb(pid: int) -> float:
    """Memory of a process that is in RAM."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def warm_up_seconds(seconds: float) -> float:
    """How long a call that is measured for so long goes on before."""
    return min(WARM_UP_SECONDS, seconds)


async def measure(figures: Figures, seconds: float) -> None:
    """Let the call warm up, then measure this process for a while."""
    await asyncio.sleep(warm_up_seconds(seconds))
    rss, cpu = process_rss_mb(os.getpid()), time.process_time()
    await sample_lag(figures.lag_ms, seconds)
    figures.cpu_ms = (time.process_time() - cpu) * 1000 / seconds
    figures.rss_mb = (rss, process_rss_mb(os.getpid()))


# -- the user, in a process of its own -----------------------------------------------------------------------------------


async def run_user() -> None:
    """Offer a call on stdout, take the answer from stdin, speak and show until stdin ends."""
    clock, pool = SystemClock(), WorkerPool("realtime-demo", max_threads=2, max_waiting=16)
    member, peer = pool.join(), make_peer()
    microphone, listener = Microphone(clock, pool), Listener(clock)
    peer.addTrack(microphone)
    peer.addTrack(Camera(clock, pool, [street]))
    listening: list[asyncio.Task[None]] = []
    peer.on("track", lambda track: listening.append(asyncio.create_task(listener.listen(track))))
    with on_loopback():
        await peer.setLocalDescription(await peer.createOffer())
    print(json.dumps({"type": peer.localDescription.type, "sdp": peer.localDescription.sdp}), flush=True)
    answer = await pool.run(sys.stdin.readline)
    await peer.setRemoteDescription(RTCSessionDescription(**json.loads(answer)))
    hung_up = asyncio.create_task(pool.run(sys.stdin.readline))
    while not hung_up.done():
        turn_ends = clock.now() + TURN_SECONDS
        await microphone.say(partial(spoken, SCENE_QUESTIONS[0]))
        await asyncio.wait({hung_up}, timeout=turn_ends - clock.now())
    await peer.close()
    await pool.leave(member)


class User:
    """The user's process, seen from the process that is called."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None

    async def call(self, peer: RTCPeerConnection) -> None:
        """Start the user and answer the call."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--role", "user", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        offer = json.loads(await self.process.stdout.readline())
        await peer.setRemoteDescription(RTCSessionDescription(**offer))
        with on_loopback():
            await peer.setLocalDescription(await peer.createAnswer())
        answer = {"type": peer.localDescription.type, "sdp": peer.localDescription.sdp}
        self.process.stdin.write(json.dumps(answer).encode() + b"\n")

    async def hang_up(self) -> None:
        """Tell the user that it is over."""
        self.process.stdin.write(b"bye\n")
        self.process.stdin.close()
        await self.process.wait()


# -- the two that are called ---------------------------------------------------------------------------------------------


async def run_session(url: str, seconds: float) -> Figures:
    """The call through a session."""
    figures, peer, user = Figures(), make_peer(), User()
    sampling = FrameSampling(fps_speaking=1.0, fps_idle=1.0, min_change=0.0)  # as often as the baseline looks
    async with RealtimeSession(url, instructions="You see the user's camera.", sampling=sampling) as session:

        async def watch() -> None:
            captured: dict[str, float] = {}
            clock = SystemClock()
            async for event in session:
                match event:
                    case FrameKept():
                        figures.frames += 1
                        captured[event.message_id] = event.captured_at
                    case MessageCommitted(message=message) if message.is_frame:
                        if message.message_id in captured:
                            figures.frame_ms.append((clock.now() - captured.pop(message.message_id)) * 1000)
                    case TurnCompleted(latency=latency):
                        if latency.first_audio_ms is not None:
                            figures.first_audio_ms.append(latency.first_audio_ms)
                        if latency.first_played_ms is not None:
                            figures.first_heard_ms.append(latency.first_played_ms)

        watching = asyncio.create_task(watch())
        session.attach(peer)
        await user.call(peer)
        await measure(figures, seconds)
        await user.hang_up()
        await peer.close()
        await session.aclose()
        await watching
    return figures


async def run_plain(seconds: float) -> Figures:
    """The same media by hand, the usual way."""
    figures, peer, user = Figures(), make_peer(), User()
    reading: list[asyncio.Task[None]] = []

    async def hear(track: MediaStreamTrack) -> None:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=24_000)
        while True:
            for frame in resampler.resample(await track.recv()):
                bytes(frame.planes[0])

    async def look(track: MediaStreamTrack) -> None:
        loop, next_at = asyncio.get_running_loop(), 0.0
        while True:
            frame = await track.recv()
            if frame.pts * frame.time_base >= next_at:
                next_at = float(frame.pts * frame.time_base) + 1.0
                await loop.run_in_executor(None, plain_jpeg, frame)
                figures.frames += 1

    async def until_end(reader: object) -> None:
        try:
            await reader
        except MediaStreamError:
            return

    peer.on(
        "track", lambda t: reading.append(asyncio.create_task(until_end(hear(t) if t.kind == "audio" else look(t))))
    )
    peer.addTrack(PacedSilence())
    await user.call(peer)
    await measure(figures, seconds)
    await user.hang_up()
    await peer.close()
    await asyncio.gather(*reading)
    return figures


def plain_jpeg(frame: av.VideoFrame) -> bytes:
    out = io.BytesIO()
    frame.to_image().resize((1024, 1024), Image.Resampling.LANCZOS).save(out, "JPEG", quality=75, optimize=True)
    return out.getvalue()


class PacedSilence(AudioStreamTrack):
    """Silence at the rate of a reply: 20 ms frames at 48 kHz."""

    async def recv(self) -> av.AudioFrame:
        """The next 20 ms."""
        paced = await super().recv()
        frame = av.AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
        frame.planes[0].update(bytes(FRAME_SAMPLES * 2))
        frame.sample_rate, frame.time_base, frame.pts = 48_000, Fraction(1, 48_000), paced.pts * 6
        return frame


# -- the run -------------------------------------------------------------------------------------------------------------


def called(role: str, *arguments: str) -> Figures:
    """Run one called side in a process of its own and take its figures."""
    command = [sys.executable, __file__, "--role", role, *arguments]
    return Figures(**json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1]))


@contextmanager
def local_llm() -> Iterator[tuple[str, int]]:
    """The local LLM in a process of its own: its address and its process id."""
    command = [sys.executable, "-m", "realtime.local", "--port", "0", "--exit-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        line = next(line for line in server.stdout if "listening on " in line)
        yield line.split("listening on ", 1)[1].split()[0], server.pid
        server.stdin.close()


def bare_loop(seconds: float) -> list[float]:
    """The lag of a loop that does nothing else."""
    lag: list[float] = []
    asyncio.run(sample_lag(lag, seconds))
    return lag


def spread(values: list[float]) -> str:
    """Median, 99th of a hundred, largest."""
    if not values:
        return "–"
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} / {ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]:.1f} / {ordered[-1]:.1f}"


def tell(figures: Figures) -> None:
    """The figures of one side."""
    print(f"CPU {figures.cpu_ms:.1f} ms per second, {figures.frames} frames, loop lag {spread(figures.lag_ms)} ms")


def say(what: str) -> None:
    """Tell whoever waits what is being done."""
    print(what, file=sys.stderr, flush=True)


def bench(seconds: float, only: str | None) -> None:
    """Measure the bare loop, the baseline and the session, one after another, and print the table."""
    if only == "plain":
        tell(called("plain", "--seconds", str(seconds)))
        return
    if only == "session":
        with local_llm() as (url, _):
            tell(called("session", "--url", url, "--seconds", str(seconds)))
        return
    say(f"a bare loop, {min(10.0, seconds):g} s")
    bare = bare_loop(min(10.0, seconds))
    say(f"plain aiortc, {seconds + warm_up_seconds(seconds):g} s")
    plain = called("plain", "--seconds", str(seconds))
    say(f"the local LLM loads; then the session, {seconds + warm_up_seconds(seconds):g} s")
    with local_llm() as (url, pid):
        cpu = process_cpu_ms(pid)
        ours = called("session", "--url", url, "--seconds", str(seconds))
        call_seconds = seconds + warm_up_seconds(seconds)
        llm_cpu, llm_rss = (process_cpu_ms(pid) - cpu) / call_seconds, process_rss_mb(pid)
    rows = [
        ("", "session", "plain aiortc", "ratio"),
        ("CPU, ms per media second", f"{ours.cpu_ms:.1f}", f"{plain.cpu_ms:.1f}", f"{ours.cpu_ms / plain.cpu_ms:.2f}"),
        ("CPU of the local LLM, ms per media second", f"{llm_cpu:.1f}", "–", ""),
        (
            "frames looked at, per media second",
            f"{ours.frames / call_seconds:.2f}",
            f"{plain.frames / call_seconds:.2f}",
            "",
        ),
        ("loop lag p50 / p99 / max, ms", spread(ours.lag_ms), spread(plain.lag_ms), f"bare loop: {spread(bare)}"),
        (
            "end of speech to first reply audio, ms",
            spread(ours.first_audio_ms),
            "–",
            f"{len(ours.first_audio_ms)} turns",
        ),
        ("end of speech to first sample taken, ms", spread(ours.first_heard_ms), "–", ""),
        ("capture to context of a frame, ms", spread(ours.frame_ms), "–", f"{len(ours.frame_ms)} frames"),
        (
            "memory at start → end, MB",
            "{:.0f} → {:.0f}".format(*ours.rss_mb),
            "{:.0f} → {:.0f}".format(*plain.rss_mb),
            "",
        ),
        ("memory of the local LLM, MB", f"{llm_rss:.0f}", "–", ""),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=24.0, help="how long each side is measured")
    parser.add_argument("--only", choices=("plain", "session"), help="one side, without a table: its figures")
    parser.add_argument(
        "--role", choices=("bench", "user", "plain", "session"), default="bench", help=argparse.SUPPRESS
    )
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    match given.role:
        case "user":
            asyncio.run(run_user())
        case "plain":
            print(json.dumps(asdict(asyncio.run(run_plain(given.seconds)))))
        case "session":
            print(json.dumps(asdict(asyncio.run(run_session(given.url, given.seconds)))))
        case _:
            bench(given.seconds, given.only)


if __name__ == "__main__":
    main()
