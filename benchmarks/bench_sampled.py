"""How good the pictures are that sampled decode shows, beside decoding every frame of a stream that nobody asks for key frames.

A sender shows a moving picture with sensor noise, 640×480 at 30 a second, to two peers at once, each over a connection and through an
encoder of its own with equal settings. Ours shows one picture a second: it asks for key frames (PLI) and decodes what leads to that
picture. The other is plain aiortc, which decodes everything and asks for nothing. A strip of large blocks says which frame it is, so that
what both made of it can be compared with what was sent: PSNR of the luma without the strip. The sender is aiortc with its encoders'
rate fixed (one that we pace), or Chromium with a canvas (a foreign one), if it is there.

Run:  python benchmarks/bench_sampled.py [--seconds 20] [--cases NAME ...] [--check]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import re
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.codecs import h264, vpx
from aiortc.mediastreams import MediaStreamError
from PIL import Image
from scene import BITS, HEIGHT, LIMITED, PAN, STRIP, WIDTH, Scene

from realtime.core.sampling import FrameFacts, FrameSampler, Lull
from realtime.core.settings import FrameSampling
from realtime.pipelines.direct import JobRunner
from realtime.pipelines.worker import encode_pool
from realtime.testing.loopback import connect, connected, make_peer, on_loopback
from realtime.tracks.peer import attach_peer
from realtime.tracks.picture_decoder import PictureDecoder
from realtime.tracks.rtp_receiver import TrackIntake, intake_of

playwright: Any = import_module("playwright.async_api") if find_spec("playwright") else None

FPS = 30
WARM_UP_PICTURES = 4
PACED_GOAL_DB, FOREIGN_GOAL_DB = -1.0, -2.0
"""The mean difference that is allowed."""


@dataclass(frozen=True)
class Case:
    """What is sent."""

    codec: str
    bit_rate: int
    is_foreign: bool = False

    @property
    def name(self) -> str:
        return f"{'Chromium ' * self.is_foreign}{self.codec} {self.bit_rate // 1000}k"

    @property
    def goal(self) -> float:
        return FOREIGN_GOAL_DB if self.is_foreign else PACED_GOAL_DB


CASES = [
    Case(codec, bit_rate, is_foreign)
    for is_foreign in (False, True)
    for codec in ("VP8", "H264")
    for bit_rate in (500_000, 1_500_000)
]


# -- the senders --------------------------------------------------------------------------------------------------------


class Camera(MediaStreamTrack):
    """The scene as frames, at their pace."""

    kind = "video"

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self._number = 0
        self._start: float | None = None

    async def recv(self) -> av.VideoFrame:
        now = asyncio.get_running_loop().time()
        if self._start is None:
            self._start = now
        await asyncio.sleep(max(0.0, self._start + self._number / FPS - now))
        planes = np.full((HEIGHT * 3 // 2, WIDTH), 128, np.uint8)
        planes[:HEIGHT] = LIMITED[self._scene.gray(self._number)]
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts, frame.time_base = self._number * 90_000 // FPS, Fraction(1, 90_000)
        self._number += 1
        return frame


Call = Callable[[RTCPeerConnection], Awaitable[None]]
"""Connects a sender of the case to a peer."""


@asynccontextmanager
async def aiortc_sender(case: Case, scene: Scene) -> AsyncGenerator[Call]:
    """aiortc; its encoders' rate is fixed, whatever they are told."""
    for module in (vpx, h264):
        for name in ("MIN_BITRATE", "DEFAULT_BITRATE", "MAX_BITRATE"):
            setattr(module, name, case.bit_rate)
    peers: list[RTCPeerConnection] = []

    async def call(callee: RTCPeerConnection) -> None:
        peer = make_peer()
        peers.append(peer)
        transceiver = peer.addTransceiver(Camera(scene), direction="sendonly")
        codecs = RTCRtpSender.getCapabilities("video").codecs
        transceiver.setCodecPreferences([each for each in codecs if each.mimeType == f"video/{case.codec}"])
        await connect(peer, callee)

    yield call
    for peer in peers:
        await peer.close()


SHOW = """
async ({ grounds, patch, noise, width, height, strip, bits, fps, pan }) => {
  const load = async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    return image;
  };
  const bounce = (at, span) => Math.abs((at % (2 * span)) - span);
  [grounds, noise] = await Promise.all([grounds, noise].map((pngs) => Promise.all(pngs.map(load))));
  patch = await load(patch);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  document.body.append(canvas);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  window.track = canvas.captureStream(0).getVideoTracks()[0];
  let number = 0;
  setInterval(() => {
    context.globalCompositeOperation = "source-over";
    const at = bounce(5 * number, 4 * pan - 1);
    context.drawImage(grounds[at % 4], -Math.floor(at / 4), 0);
    const [x, y] = [bounce(5 * number, width - patch.width), bounce(3 * number, height - strip - patch.height)];
    context.drawImage(patch, x, strip + y);
    context.globalCompositeOperation = "lighter";
    context.drawImage(noise[number % noise.length], 0, 0);
    context.globalCompositeOperation = "source-over";
    for (let bit = 0; bit < bits; bit++) {
      context.fillStyle = (number >> bit) & 1 ? "#fff" : "#000";
      context.fillRect((bit * width) / bits, 0, width / bits, strip);
    }
    window.track.requestFrame();
    number++;
  }, 1000 / fps);
}
"""
OFFER = """
async ({ codec, bitRate }) => {
  const peer = (window.peer = new RTCPeerConnection());
  const transceiver = peer.addTransceiver(window.track, { direction: "sendonly", sendEncodings: [{ maxBitrate: bitRate }] });
  const { codecs } = RTCRtpSender.getCapabilities("video");
  transceiver.setCodecPreferences(codecs.filter(({ mimeType }) => mimeType === `video/${codec}`));
  const parameters = transceiver.sender.getParameters();
  parameters.degradationPreference = "maintain-resolution";
  await transceiver.sender.setParameters(parameters);
  await peer.setLocalDescription();
  while (peer.iceGatheringState !== "complete") await new Promise((done) => setTimeout(done, 20));
  return peer.localDescription.sdp;
}
"""
ANSWER = "(sdp) => window.peer.setRemoteDescription({ type: 'answer', sdp })"


def find_chromium() -> str | None:
    """The browser, if it can be driven here."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None) if playwright else None


def as_png(gray: np.ndarray) -> str:
    """A picture to be uploaded."""
    out = io.BytesIO()
    Image.fromarray(gray).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def at_rate(sdp: str, case: Case) -> str:
    """An answer that says what the path carries: Chromium takes half a minute to find out, for each connection by itself."""
    rates = ";".join(f"x-google-{name}-bitrate={case.bit_rate // 1000}" for name in ("start", "min", "max"))
    return re.sub(rf"(a=rtpmap:(\d+) {case.codec}/\S*\r\n)", rf"\1a=fmtp:\2 {rates}\r\n", sdp)


@asynccontextmanager
async def chromium_sender(case: Case, scene: Scene) -> AsyncGenerator[Call]:
    """Chromium, which shows the scene on a canvas."""
    parts = {"grounds": list(map(as_png, scene.grounds)), "patch": as_png(scene.patch)}
    parts |= {"noise": list(map(as_png, scene.noise)), "width": WIDTH, "height": HEIGHT}
    parts |= {"strip": STRIP, "bits": BITS, "fps": FPS, "pan": PAN}
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_chromium(),
            args=["--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns"],
        )
        page = await browser.new_page()
        await page.evaluate(SHOW, parts)

        async def call(callee: RTCPeerConnection) -> None:
            offer = await page.evaluate(OFFER, {"codec": case.codec, "bitRate": case.bit_rate})
            with on_loopback():
                await callee.setRemoteDescription(RTCSessionDescription(offer, "offer"))
                await callee.setLocalDescription(await callee.createAnswer())
            await page.evaluate(ANSWER, at_rate(callee.localDescription.sdp, case))
            await connected(callee)

        yield call
        await browser.close()


# -- the receivers ------------------------------------------------------------------------------------------------------


class Plain:
    """Decodes every frame with aiortc and judges it."""

    def __init__(self, scene: Scene) -> None:
        self.psnr: dict[int, float] = {}
        self.came = asyncio.Event()
        self.peer = make_peer()
        self._judge = scene.judge
        self._pool = ThreadPoolExecutor(1)
        self.peer.on("track", self._begin)

    def _begin(self, track: Any) -> None:
        self._task = asyncio.create_task(self._look(track))

    async def _look(self, track: Any) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            number, psnr = await loop.run_in_executor(self._pool, self._judge, frame)
            self.psnr[number] = psnr
            self.came.set()

    async def reach(self, number: int) -> None:
        """Return once a frame was judged, or a later one."""
        while max(self.psnr, default=-1) < number:
            self.came.clear()
            await self.came.wait()


class Ours:
    """Shows one picture a second and judges it (`realtime.tracks.picture_sink.PictureSink`)."""

    def __init__(self, scene: Scene) -> None:
        self.psnr: dict[int, float] = {}
        self.came = asyncio.Event()
        self.peer = make_peer()
        self.run = JobRunner(encode_pool)
        self.now = time.monotonic
        self._judge = scene.judge
        self._sampler = FrameSampler(FrameSampling(fps_idle=1, min_change=0))
        self._intake: TrackIntake | None = None
        encode_pool.join()
        attach_peer(self.peer, reply_track=None, on_track=self._begin, run=self.run)

    def _begin(self, track: Any) -> None:
        self._intake = intake_of(track)
        assert self._intake is not None
        self._intake.look(self, decodes_all=False)

    @property
    def frames(self) -> int:
        """Frames that came, decoded or not."""
        video = self._intake.video if self._intake is not None else None
        return video.frames if video is not None else 0

    async def show(self, pictures: int) -> None:
        """Return once so many more were shown."""
        wanted = len(self.psnr) + pictures
        while len(self.psnr) < wanted:
            self.came.clear()
            await self.came.wait()

    def is_due(self, pts_ms: int) -> bool:
        return self._sampler.is_due("camera", pts_ms=pts_ms)

    def may_hold(self, pts_ms: int) -> bool:
        return False  # nobody speaks

    def lull(self) -> Lull | None:
        return self._sampler.lull("camera")

    def develop(self, frame: Any) -> tuple[int, int, float]:
        return round(frame.pts / 90), *self._judge(frame)

    def receive(self, frame: Any, arrived_at: float) -> None:
        if isinstance(frame, av.VideoFrame):  # where every frame is decoded
            if not self.is_due(round(frame.pts / 90)):
                return
            frame = self.develop(frame)
        pts_ms, number, psnr = frame
        came = {"frame_id": number, "captured_at": arrived_at, "pts_ms": pts_ms}
        facts = FrameFacts(**came, source="camera", width=WIDTH, height=HEIGHT)
        if self._sampler.receive(facts, now=arrived_at).action == "keep":
            self.psnr[number] = psnr
            self.came.set()


class Decoded:
    """Counts what sampled decode decodes."""

    frames = 0

    @classmethod
    def count(cls) -> None:
        """Begin to."""
        decode = PictureDecoder.decode

        def counted(self: PictureDecoder, frames: Any, **options: Any) -> Any:
            cls.frames += len(frames)
            return decode(self, frames, **options)

        PictureDecoder.decode = counted


# -- the run ------------------------------------------------------------------------------------------------------------


async def measure(case: Case, seconds: int) -> float:
    """Print one row; gives the mean difference in dB."""
    scene = Scene()
    ours, plain = Ours(scene), Plain(scene)
    async with (chromium_sender if case.is_foreign else aiortc_sender)(case, scene) as call:
        await call(ours.peer)
        await call(plain.peer)
        await ours.show(WARM_UP_PICTURES)
        before, came, decoded = set(ours.psnr), ours.frames, Decoded.frames
        await ours.show(seconds)
        came, decoded = ours.frames - came, Decoded.frames - decoded
        shown = [number for number in ours.psnr if number not in before]
        await plain.reach(max(shown))
        await ours.peer.close()
        await plain.peer.close()
    both = [(ours.psnr[number], plain.psnr[number]) for number in shown if number in plain.psnr]
    assert both, "no frame came to both"
    mean_ours, mean_plain = np.mean(both, axis=0)
    worst = min(one - other for one, other in both)
    print(
        f"| {case.name} | {len(both)} | {mean_ours - mean_plain:+.2f} | {worst:+.2f} "
        f"| {mean_ours:.1f} | {mean_plain:.1f} | {decoded} of {came} |",
        flush=True,
    )
    return float(mean_ours - mean_plain)


async def run(cases: list[Case], seconds: int) -> list[str]:
    """Print the table; gives what missed its goal."""
    Decoded.count()
    print("| case | pictures | mean dB | worst dB | PSNR ours | PSNR of all decoded | frames decoded |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    missed: list[str] = []
    for case in cases:
        mean = await measure(case, seconds)
        if mean < case.goal:
            missed.append(f"{case.name}: {mean:.2f} dB, wanted {case.goal}")
    return missed


def main() -> int:
    """Measure, and with --check compare with the goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("--seconds", type=int, default=20, help="how long each case takes, so many pictures it shows")
    parser.add_argument("--cases", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    options = parser.parse_args()
    cases = [case for case in CASES if case.name in options.cases]
    if find_chromium() is None and any(case.is_foreign for case in cases):
        print("Chromium or playwright is not there: no foreign sender is measured\n")
        cases = [case for case in cases if not case.is_foreign]
    missed = asyncio.run(run(cases, options.seconds))
    for told in missed:
        print(f"missed: {told}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
