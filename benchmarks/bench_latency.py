"""How late things are: a word at the model, a reply at the socket, a picture in the context.

A speaker in another process sends Opus by a script: short tones on a clean line, the same after three packets were lost, and
sentences that are followed by nothing (DTX: one packet every 400 ms). It says when it sent what; both processes share the machine's
monotonic clock. In the same run the same is heard with plain aiortc (`recv()`, `av.AudioResampler`) and spoken through an aiortc track of
paced frames. A picture's way is measured from the arrival of its last packet to its place in the context, beside `recv()` to a Pillow JPEG.
(What the event loop feels of many calls at once: `bench_sessions.py`.)

Run:  python benchmarks/bench_latency.py [--rounds 6] [--check]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from bench_receive import CASES, PacketTrack, answer_requests, encode_clip, pillow_jpeg
from null_model import NullModel

from realtime import FrameSampling, RealtimeSession
from realtime.events import FrameKept, MessageCommitted
from realtime.media.opus_encoder import OpusEncoder
from realtime.testing.loopback import connected, make_peer, on_loopback

RATE_HZ = 24_000
TONE = np.round(9_000 * np.sin(np.arange(480) * 2 * np.pi * 500 / RATE_HZ)).astype("<i2").tobytes()
"""20 ms."""
LOUD = 3_000
LOUD_BYTES = 60
"""A packet of sound that is no silence has more."""
GOALS = {"clean": 40.0, "after loss": 40.0, "last word": 60.0}
"""Milliseconds at most, the median."""


class Said(NamedTuple):
    """A step of the speaker's script."""

    after_ms: int
    """After the step before."""
    packet: bytes
    mark: str = ""
    """What begins, or has ended, with this packet."""
    lost: bool = False


# -- the speaker, in a process of its own ---------------------------------------------------------------------------------


def script(rounds: int) -> Iterator[Said]:
    """Silence to begin with; then tones on a clean line, three lost packets, tones again, and sentences under DTX."""
    encoder = OpusEncoder(RATE_HZ)

    def quiet(count: int, *, lost: bool = False) -> Iterator[Said]:
        for _ in range(count):
            yield Said(20, encoder.encode(b""), lost=lost)

    def loud(count: int, begins: str = "", ends: str = "") -> Iterator[Said]:
        for index in range(count):
            mark = begins if index == 0 else ends if index == count - 1 else ""
            yield Said(20, encoder.encode(TONE), mark)

    yield from quiet(100)
    for _ in range(rounds):
        yield from loud(5, begins="clean")
        yield from quiet(35)
    yield from quiet(3, lost=True)
    yield from quiet(50)
    for _ in range(rounds):
        yield from loud(5, begins="after loss")
        yield from quiet(35)
    for _ in range(max(2, rounds // 3)):
        yield from loud(25, ends="last word")
        yield from quiet(1)  # an encoder looks ahead: the rest of the word is in it
        for _ in range(5):
            yield Said(400, encoder.silence)


class ScriptTrack(MediaStreamTrack):
    """Sends the script, and says on the standard output when it sent what is marked."""

    kind = "audio"

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.loses_next = False
        self._script = list(script(rounds))
        self._at = 0
        self._ms = 0
        self._start: float | None = None

    async def recv(self) -> Any:
        if self._at == len(self._script):
            print(json.dumps({"mark": "end", "at": time.monotonic()}), flush=True)
            await asyncio.sleep(3600)
        said = self._script[self._at]
        self._at += 1
        self._ms += said.after_ms
        self._start = time.monotonic() if self._start is None else self._start
        await asyncio.sleep(max(0.0, self._start + self._ms / 1000 - time.monotonic()))
        self.loses_next = said.lost
        if said.mark:
            print(json.dumps({"mark": said.mark, "at": time.monotonic()}), flush=True)
        packet: Any = av.Packet(said.packet)
        packet.pts, packet.time_base = self._ms * 48, Fraction(1, 48_000)
        return packet


async def speak(rounds: int, video: str) -> None:
    """Offer a call on the standard output, take the answer from the standard input, and say the script."""
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    peer, voice = make_peer(), ScriptTrack(rounds)
    sender = peer.addTransceiver(voice, direction="sendrecv").sender
    case = next(case for case in CASES if case.name == video)
    camera = PacketTrack("video", encode_clip(case), case.fps, 90_000)
    answer_requests(peer.addTransceiver(camera, direction="sendonly").sender, camera)
    with on_loopback():
        await peer.setLocalDescription(await peer.createOffer())
    print(json.dumps({"sdp": peer.localDescription.sdp}), flush=True)
    answer = json.loads(await lines.readline())
    send = sender.transport._send_rtp

    async def lossy(data: bytes) -> None:
        if voice.loses_next and data[1] & 0x7F == 96:
            voice.loses_next = False
            return
        await send(data)

    sender.transport._send_rtp = lossy

    async def hear(packet: Any, arrival_time_ms: int) -> None:
        if len(packet.payload) > LOUD_BYTES:
            print(json.dumps({"mark": "reply", "at": time.monotonic()}), flush=True)

    peer.getTransceivers()[0].receiver._handle_rtp_packet = hear
    await peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    await lines.read()
    os._exit(0)


# -- the listeners --------------------------------------------------------------------------------------------------------


class Ear:
    """When sound that is loud reached the model."""

    def __init__(self) -> None:
        self.loud: list[float] = []

    def hear(self, at: float, pcm: np.ndarray) -> None:
        if pcm.size and np.abs(pcm.astype(np.int32)).max() > LOUD:
            self.loud.append(at)

    def first_after(self, at: float) -> float:
        return next(heard for heard in self.loud if heard > at)

    def last_before(self, at: float) -> float:
        return [heard for heard in self.loud if heard < at][-1]


def latencies(ear: Ear, marks: list[tuple[str, float]]) -> dict[str, list[float]]:
    """How many milliseconds after it was sent each marked sound was heard."""
    found: dict[str, list[float]] = {name: [] for name in GOALS}
    for mark, at in marks:
        if mark == "last word":
            found[mark].append((ear.last_before(at + 1.95) - at) * 1000)
        elif mark in found:
            found[mark].append((ear.first_after(at) - at) * 1000)
    return found


async def answer(peer: RTCPeerConnection, speaker: asyncio.subprocess.Process) -> None:
    offer = json.loads(await speaker.stdout.readline())
    await peer.setRemoteDescription(RTCSessionDescription(offer["sdp"], "offer"))
    with on_loopback():
        await peer.setLocalDescription(await peer.createAnswer())
    speaker.stdin.write(json.dumps({"sdp": peer.localDescription.sdp}).encode() + b"\n")
    await connected(peer)


async def marks_of(speaker: asyncio.subprocess.Process) -> list[tuple[str, float]]:
    marks = []
    while True:
        said = json.loads(await speaker.stdout.readline())
        if said["mark"] == "end":
            return marks
        marks.append((said["mark"], said["at"]))


async def say_replies(say: Callable[[], None], rounds: int) -> list[float]:
    """Say some; when each began."""
    begins = []
    for number in range(rounds):
        await asyncio.sleep(1.2 + 0.0037 * number)
        begins.append(time.monotonic())
        say()
    return begins


def delays(begins: list[float], marks: list[tuple[str, float]]) -> list[float]:
    """From a reply's first sound to its first packet at the other end."""
    return [(next(at for mark, at in marks if mark == "reply" and at >= begun) - begun) * 1000 for begun in begins]


async def listen_session(rounds: int, speaker: asyncio.subprocess.Process) -> dict[str, Any]:
    """Through a session."""
    ear, peer = Ear(), make_peer()

    def heard(at: float, message: str) -> None:
        ear.hear(at, np.frombuffer(base64.b64decode(json.loads(message)["audio"]), "<i2"))

    model, pictures = NullModel(heard), list[float]()
    sampling = FrameSampling(fps_speaking=1.0, fps_idle=1.0, min_change=0.0)
    async with RealtimeSession(model, sampling=sampling) as session:

        async def watch() -> None:
            captured: dict[str, float] = {}
            async for event in session:
                if isinstance(event, FrameKept):
                    captured[event.message_id] = event.captured_at
                elif isinstance(event, MessageCommitted) and event.message.message_id in captured:
                    pictures.append((time.monotonic() - captured.pop(event.message.message_id)) * 1000)

        watching = asyncio.create_task(watch())
        session.attach(peer)
        await answer(peer, speaker)
        replies = asyncio.create_task(say_replies(lambda: model.reply(TONE * 10), rounds))
        marks = await marks_of(speaker)
        figures = {**latencies(ear, marks), "model to peer": delays(await replies, marks), "picture": pictures}
        print(json.dumps(figures), flush=True)
        watching.cancel()
        os._exit(0)


class PacedTrack(MediaStreamTrack):
    """The plain way to speak: 20 ms frames at the model's rate, silence when there is nothing."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[bytes] = deque()
        self._number = 0
        self._start = 0.0

    async def recv(self) -> av.AudioFrame:
        now = time.monotonic()
        self._start = self._start or now
        await asyncio.sleep(max(0.0, self._start + self._number * 0.02 - now))
        frame = av.AudioFrame(format="s16", layout="mono", samples=480)
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self._number * 480, Fraction(1, RATE_HZ)
        frame.planes[0].update(self.waiting.popleft() if self.waiting else bytes(960))
        self._number += 1
        return frame


async def listen_plain(rounds: int, speaker: asyncio.subprocess.Process) -> None:
    """With aiortc alone."""
    ear, peer, voice, pictures = Ear(), make_peer(), PacedTrack(), list[float]()
    tasks: set[asyncio.Task[None]] = set()

    async def hear(track: Any) -> None:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
        while True:
            for frame in resampler.resample(await track.recv()):
                ear.hear(time.monotonic(), np.frombuffer(bytes(frame.planes[0]), "<i2")[: frame.samples])

    async def look(track: Any) -> None:
        loop, due = asyncio.get_running_loop(), 0.0
        while True:
            frame = await track.recv()
            began = time.monotonic()
            if began >= due:
                due = began + 1
                await loop.run_in_executor(None, pillow_jpeg, frame)
                pictures.append((time.monotonic() - began) * 1000)

    peer.on("track", lambda t: tasks.add(asyncio.create_task(hear(t) if t.kind == "audio" else look(t))))
    peer.addTrack(voice)
    await answer(peer, speaker)
    replies = asyncio.create_task(say_replies(lambda: voice.waiting.extend([TONE] * 10), rounds))
    marks = await marks_of(speaker)
    print(
        json.dumps({**latencies(ear, marks), "model to peer": delays(await replies, marks), "picture": pictures}),
        flush=True,
    )
    os._exit(0)


async def listen(way: str, rounds: int, video: str) -> None:
    speaker = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--role", "speaker", "--rounds", str(rounds), "--video", video),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=1 << 22,
    )
    await (listen_session if way == "session" else listen_plain)(rounds, speaker)


# -- the run --------------------------------------------------------------------------------------------------------------


def measured(way: str, rounds: int, video: str) -> dict[str, list[float]]:
    print(f"{way}: about {12 + 4 * rounds} s", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--role", way, "--rounds", str(rounds), "--video", video]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f})" if values else "–"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="tones on each line")
    parser.add_argument("--video", default="VP8 720p30", help=f"one of {', '.join(case.name for case in CASES[1:])}")
    parser.add_argument("--only", choices=("plain", "session"), help="one side, without a table: its milliseconds")
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    parser.add_argument("--role", default="bench", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "speaker":
        asyncio.run(speak(given.rounds, given.video))
    elif given.role != "bench":
        asyncio.run(listen(given.role, given.rounds, given.video))
    if given.only:
        for key, found in measured(given.only, given.rounds, given.video).items():
            print(f"{key}: {spread(found)}")
        return 0
    plain, ours = (measured(way, given.rounds, given.video) for way in ("plain", "session"))
    print("| median (least–most), ms | plain aiortc | session |\n| --- | ---: | ---: |")
    names = {
        "clean": "a word at the model, clean line",
        "after loss": "… after three packets were lost",
        "last word": "the last word before DTX",
        "model to peer": "a reply's first sound to its first packet at the other end",
        "picture": "a picture's arrival to its place in the context",
    }
    for key, name in names.items():
        print(f"| {name} | {spread(plain[key])} | {spread(ours[key])} |")
    missed = [key for key, most in GOALS.items() if statistics.median(ours[key]) > most]
    for key in missed:
        print(f"missed: {names[key]}: wanted at most {GOALS[key]:g} ms")
    return 1 if missed and given.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
