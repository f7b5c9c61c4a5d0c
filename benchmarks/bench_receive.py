"""What it costs to be at the other end of a call: processor time per second received, of the receiving process, threads included.

The sender is another process. It sends Opus and a moving picture with sensor noise as packets that were encoded before, and
answers a request for a key frame as an encoder would: with a key frame. In the same run the same is done with plain aiortc:
sound resampled with av.AudioResampler, every picture decoded, one a second through `to_image`, LANCZOS and Pillow's optimized
JPEG, and 24 kHz speech sent back as audio frames. No model and no conversation on either side.

Run:  python benchmarks/bench_receive.py [--seconds 6] [--sessions 1,5] [--check] [--all]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from PIL import Image

from realtime.core.sampling import FrameFacts, FrameSampler, FrameVerdict, Lull
from realtime.core.settings import FrameSampling
from realtime.media.image import DEFAULT_REALTIME_ENCODE_OPTIONS
from realtime.pipelines.direct import JobRunner
from realtime.pipelines.video import PictureEncoder, VideoInput
from realtime.pipelines.worker import encode_pool
from realtime.testing.loopback import connected, make_peer, on_loopback
from realtime.tracks.peer import attach_peer
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.rtp_receiver import TrackIntake, intake_of

MODEL_RATE_HZ = 24_000
WARM_UP_SECONDS = 2.5
CLIP_SECONDS = 3
CHUNK = bytes(np.round(6_000 * np.sin(np.arange(480) * 2 * np.pi * 220 / MODEL_RATE_HZ)).astype("<i2").tobytes())
"""20 ms of the reply."""


@dataclass(frozen=True)
class Case:
    """What is sent."""

    name: str
    codec: str = ""
    width: int = 0
    height: int = 0
    fps: int = 0
    bit_rate: int = 0


CASES = [
    Case("audio both ways"),
    Case("VP8 480p15", "VP8", 640, 480, 15, 500_000),
    Case("VP8 720p30", "VP8", 1280, 720, 30, 1_500_000),
    Case("H264 720p30", "H264", 1280, 720, 30, 1_500_000),
]
GOALS = {"audio both ways": 2.5, "VP8 720p30": 5.0}
"""How many times less than plain aiortc."""


# -- the sender ---------------------------------------------------------------------------------------------------------


def encode_opus(seconds: int) -> list[bytes]:
    """Something like a voice, in packets of 20 ms."""
    encoder: Any = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format, encoder.bit_rate = 48_000, "mono", "s16", 32_000
    t = np.arange(48_000 * seconds) / 48_000
    voice = 7_000 * np.sin(2 * np.pi * 180 * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))
    samples = (voice + np.random.default_rng(1).normal(0, 200, len(t))).astype("<i2")
    packets: list[bytes] = []
    for begin in range(0, len(samples), 960):
        frame = av.AudioFrame.from_ndarray(samples[None, begin : begin + 960], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, begin, Fraction(1, 48_000)
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


def encode_clip(case: Case) -> list[bytes]:
    """A picture that moves, with sensor noise: one key frame, then only what changes."""
    encoder: Any = av.CodecContext.create("libvpx" if case.codec == "VP8" else "libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = case.width, case.height, "yuv420p"
    encoder.bit_rate, encoder.gop_size, encoder.time_base = case.bit_rate, 3_000, Fraction(1, case.fps)
    encoder.thread_count = (
        1  # libvpx's threads wait for each other in circles, which on a busy machine takes ten times as long
    )
    if case.codec == "VP8":
        encoder.options = {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0"}
    else:
        encoder.options = {"preset": "superfast", "tune": "zerolatency", "profile": "baseline", "level": "31"}
    rng = np.random.default_rng(2)
    rough = rng.integers(40, 216, (case.height // 16, case.width // 16 + 40), dtype=np.uint8)
    wide = np.kron(rough, np.ones((16, 16), np.uint8))
    noise = [rng.normal(0, 3, (case.height, case.width)) for _ in range(4)]
    packets: list[bytes] = []
    for index in range(case.fps * CLIP_SECONDS):
        shift = 2 * min(index, case.fps * CLIP_SECONDS - index)
        luma = np.clip(wide[:, shift : shift + case.width] + noise[index % 4], 16, 235).astype(np.uint8)
        chroma = np.full((case.height // 2, case.width), 128, np.uint8)
        frame = av.VideoFrame.from_ndarray(np.vstack([luma, chroma]), format="yuv420p")
        frame.pts, frame.time_base = index, Fraction(1, case.fps)
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


class PacketTrack(MediaStreamTrack):
    """Sends packets that are ready, in a circle, at their pace."""

    def __init__(self, kind: str, packets: list[bytes], per_second: int, clock_hz: int) -> None:
        super().__init__()
        self.kind = kind
        self.packets = packets
        self.at = 0
        self._period = 1 / per_second
        self._ticks = clock_hz // per_second
        self._time_base = Fraction(1, clock_hz)
        self._numbers = count()
        self._start: float | None = None

    def restart(self) -> None:
        """Go on with the key frame."""
        self.at = 0

    async def recv(self) -> Any:
        """The next packet, when it is due."""
        now = asyncio.get_running_loop().time()
        number = next(self._numbers)
        if self._start is None:
            self._start = now
        await asyncio.sleep(max(0.0, self._start + number * self._period - now))
        packet: Any = av.Packet(self.packets[self.at % len(self.packets)])
        self.at += 1
        packet.pts, packet.time_base = number * self._ticks, self._time_base
        return packet


async def send(case: Case, sessions: int) -> None:
    """Offer calls on the standard output, take the answers from the standard input, and send until it ends."""
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    opus = encode_opus(4)
    clip = encode_clip(case) if case.codec else []
    peers: list[RTCPeerConnection] = []
    drains: list[asyncio.Task[None]] = []
    for _ in range(sessions):
        peer = make_peer()
        peers.append(peer)
        peer.addTransceiver(PacketTrack("audio", opus, 50, 48_000), direction="sendrecv")
        peer.on("track", lambda track: drains.append(asyncio.create_task(drain(track))))
        if clip:
            track = PacketTrack("video", clip, case.fps, 90_000)
            transceiver = peer.addTransceiver(track, direction="sendonly")
            codecs = RTCRtpSender.getCapabilities("video").codecs
            transceiver.setCodecPreferences([c for c in codecs if c.mimeType in (f"video/{case.codec}", "video/rtx")])
            answer_requests(transceiver.sender, track)
        with on_loopback():
            await peer.setLocalDescription(await peer.createOffer())
        print(json.dumps({"sdp": peer.localDescription.sdp}), flush=True)
        answer = json.loads(await lines.readline())
        await peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    await lines.read()
    os._exit(0)


def answer_requests(sender: Any, track: PacketTrack) -> None:
    """A request for a key frame gets one, at most every 300 ms, as browsers do it. aiortc asks its encoder only."""
    last = [0.0]

    def restart() -> None:
        now = time.monotonic()
        if now - last[0] >= 0.3:
            last[0] = now
            track.restart()

    sender._send_keyframe = restart


async def drain(track: Any) -> None:
    """Hear the reply as far as the socket; decoding it is not what is measured."""
    try:
        while True:
            await track.recv()
    except MediaStreamError:
        return


# -- the receivers ------------------------------------------------------------------------------------------------------


class Speech(MediaStreamTrack):
    """The reply the plain way: audio frames of 20 ms."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self._start: float | None = None

    async def recv(self) -> av.AudioFrame:
        """The next frame, when it is due."""
        number = next(self._numbers)
        now = asyncio.get_running_loop().time()
        if self._start is None:
            self._start = now
        await asyncio.sleep(max(0.0, self._start + number * 0.02 - now))
        frame = av.AudioFrame(format="s16", layout="mono", samples=480)
        frame.sample_rate, frame.pts, frame.time_base = MODEL_RATE_HZ, number * 480, Fraction(1, MODEL_RATE_HZ)
        frame.planes[0].update(CHUNK)
        return frame


class Plain:
    """The same work with aiortc and Pillow alone."""

    def __init__(self) -> None:
        self.bytes = 0
        self.pictures = 0
        self.frames = 0

    def attach(self, peer: RTCPeerConnection, tasks: set[asyncio.Task[Any]]) -> None:
        """Take a call."""
        peer.addTrack(Speech())

        def on_track(track: Any) -> None:
            work = self._hear(track) if track.kind == "audio" else self._look(track)
            tasks.add(asyncio.get_running_loop().create_task(work))

        peer.on("track", on_track)

    def frames_came(self) -> int:
        """Frames of video so far."""
        return self.frames

    async def _hear(self, track: Any) -> None:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=MODEL_RATE_HZ)
        while True:
            for frame in resampler.resample(await track.recv()):
                self.bytes += frame.samples * 2

    async def _look(self, track: Any) -> None:
        due = 0.0
        loop = asyncio.get_running_loop()
        while True:
            frame = await track.recv()
            self.frames += 1
            if loop.time() >= due:
                due = loop.time() + 1
                await loop.run_in_executor(None, pillow_jpeg, frame)
                self.pictures += 1


def pillow_jpeg(frame: av.VideoFrame) -> bytes:
    """The plain way to a picture."""
    out = io.BytesIO()
    frame.to_image().resize((1024, 1024), Image.Resampling.LANCZOS).save(out, "JPEG", quality=75, optimize=True)
    return out.getvalue()


class Ours:
    """The media path of a session, without the session."""

    def __init__(self) -> None:
        self.bytes = 0
        self.pictures = 0
        self._replies: list[ReplyTrack] = []
        self._run = JobRunner(encode_pool)
        self._videos: list[TrackIntake] = []
        self._feeder: asyncio.Task[None] | None = None
        encode_pool.join()

    def attach(self, peer: RTCPeerConnection, tasks: set[asyncio.Task[Any]]) -> None:
        """Take a call."""
        reply = ReplyTrack(MODEL_RATE_HZ)
        self._replies.append(reply)

        def on_track(track: Any) -> None:
            intake = intake_of(track)
            assert intake is not None
            if track.kind == "audio":
                intake.listen(MODEL_RATE_HZ, self._hear)
            else:
                self._videos.append(intake)
                intake.look(_Looking(self, self._run, tasks), decodes_all=False)

        attach_peer(peer, reply_track=reply, on_track=on_track, run=self._run)
        if self._feeder is None:
            self._feeder = asyncio.get_running_loop().create_task(self._feed())
            tasks.add(self._feeder)

    def frames_came(self) -> int:
        """Frames of video so far, decoded or not."""
        return sum(intake.video.frames for intake in self._videos if intake.video is not None)

    def _hear(self, pcm: bytes) -> None:
        self.bytes += len(pcm)

    async def _feed(self) -> None:
        """A model speaks without a pause: a second at a time."""
        while True:
            for reply in self._replies:
                if reply.queued_ms() < 3_000:
                    reply.push("reply", CHUNK * 50)
            await asyncio.sleep(1)


class _Looking:
    """A picture a second, as a session takes it."""

    def __init__(self, owner: Ours, run: JobRunner, tasks: set[asyncio.Task[Any]]) -> None:
        self.run = run
        self.now = time.monotonic
        self._owner = owner
        self._tasks = tasks
        self._sampler = FrameSampler(FrameSampling(fps_speaking=1, fps_idle=1, min_change=0))
        self._video = VideoInput(
            judge=self._judge,
            looks_at=self._sampler.looks_at,
            report=self._report,
            encoder=PictureEncoder(DEFAULT_REALTIME_ENCODE_OPTIONS, detail="auto", max_image_bytes=None),
            pool=encode_pool,
            now=self.now,
            max_age_seconds=2,
            spawn=self._spawn,
        )
        self._video.add("camera")

    def is_due(self, pts_ms: int) -> bool:
        return self._sampler.is_due("camera", pts_ms=pts_ms)

    def may_hold(self, pts_ms: int) -> bool:
        return self._sampler.looks_at("camera", pts_ms=pts_ms, captured_at=self.now())

    def lull(self) -> Lull | None:
        return self._sampler.lull("camera")

    def develop(self, frame: Any) -> Any:
        return self._video.develop("camera", frame)

    def receive(self, frame: Any, arrived_at: float) -> None:
        self._video.receive("camera", frame, arrived_at)

    def _judge(self, facts: FrameFacts) -> FrameVerdict:
        return self._sampler.receive(facts, now=facts.captured_at)

    def _report(self, *, image: Any, **others: Any) -> None:
        del others
        self._owner.pictures += image is not None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def receive(way: str, case: Case, sessions: int, seconds: float) -> None:
    """Take the calls of a sender and print what they cost."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--role", "sender", "--case", case.name, "--sessions", str(sessions)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    side: Plain | Ours = Plain() if way == "plain" else Ours()
    tasks: set[asyncio.Task[Any]] = set()
    for _ in range(sessions):
        peer = make_peer()
        offer = json.loads(await child.stdout.readline())
        side.attach(peer, tasks)
        with on_loopback():
            await peer.setRemoteDescription(RTCSessionDescription(offer["sdp"], "offer"))
            await peer.setLocalDescription(await peer.createAnswer())
        child.stdin.write(json.dumps({"sdp": peer.localDescription.sdp}).encode() + b"\n")
        await connected(peer)
    await asyncio.sleep(WARM_UP_SECONDS)
    heard, seen, frames = side.bytes, side.pictures, side.frames_came()
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(seconds)
    cpu, lasted = time.process_time() - cpu, time.monotonic() - began
    received = (side.bytes - heard) / 2 / MODEL_RATE_HZ
    figures = {
        "cpu_ms": cpu * 1000 / received,
        "frames": (side.frames_came() - frames) / lasted / sessions,
        "heard": received / lasted / sessions,
        "pictures": (side.pictures - seen) / lasted / sessions,
        "rss_mb": rss_mb(),
    }
    print(json.dumps(figures), flush=True)
    child.kill()
    os._exit(0)


def rss_mb() -> float:
    """Memory of this process, in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


# -- the run ------------------------------------------------------------------------------------------------------------


async def measure(way: str, case: Case, sessions: int, seconds: float) -> dict[str, float]:
    """One way in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--role", way, "--case", case.name),
        *("--sessions", str(sessions), "--seconds", str(seconds)),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    return json.loads(out)


async def run(cases: list[Case], sessions: list[int], seconds: float) -> dict[str, float]:
    """Print the table; gives the least ratio of each case."""
    least: dict[str, float] = {}
    print("| case | sessions | plain aiortc, CPU ms/s | ours | ratio | heard s/s, each | frames/s, each | pictures/s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in cases:
        for number in sessions:
            plain = await measure("plain", case, number, seconds)
            ours = await measure("ours", case, number, seconds)
            ratio = plain["cpu_ms"] / ours["cpu_ms"]
            least[case.name] = min(ratio, least.get(case.name, ratio))
            print(
                f"| {case.name} | {number} | {plain['cpu_ms']:.1f} | {ours['cpu_ms']:.1f} | {ratio:.1f} "
                f"| {plain['heard']:.2f} {ours['heard']:.2f} | {plain['frames']:.1f} {ours['frames']:.1f} "
                f"| {ours['pictures']:.2f} |",
                flush=True,
            )
    return least


def main() -> int:
    """Measure, and with --check compare with the goals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--sessions", default="1,5")
    parser.add_argument("--check", action="store_true", help="only the cases with a goal, and fail if one is missed")
    parser.add_argument("--case", help="only this one")
    parser.add_argument("--role", choices=("sender", "plain", "ours"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    sessions = [int(number) for number in options.sessions.split(",")]
    cases = [case for case in CASES if options.case in (None, case.name)]
    if options.role == "sender":
        asyncio.run(send(cases[0], sessions[0]))
    elif options.role:
        asyncio.run(receive(options.role, cases[0], sessions[0], options.seconds))
    if options.check:
        cases, sessions = [case for case in cases if case.name in GOALS], [3]
    least = asyncio.run(run(cases, sessions, options.seconds))
    if not options.check:
        return 0
    missed = [name for name in least if least[name] < GOALS[name]]
    for name in missed:
        print(f"missed: {name}: {least[name]:.2f} times less, wanted {GOALS[name]}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
