"""What it costs to make a picture of a frame, how good it is, and what the event loop feels of it.

Baselines, measured in the same run: *Pillow* is the plain way (`to_image`, LANCZOS, an optimized JPEG); *swscale + Pillow*
scales to RGB with FFmpeg and lets Pillow compress. Times are processor time of all threads, the best of several rounds.
Quality is against the exact resize of the frame's exact colours, uncompressed.

Run:  python benchmarks/bench_encode.py [--rounds 7] [--check]
With --check it ends with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import av
import numpy as np
from av.video.reformatter import Interpolation, VideoReformatter
from PIL import Image

from realtime.media.frame import thumbprint
from realtime.media.image import EncodeOptions, ResizeOptions, encode

GOAL_PILLOW = 7.0
GOAL_SWSCALE = 2.5
GOAL_PSNR = 0.4
GOAL_SSIM = 0.005
EXACT = int(Interpolation.BICUBIC) | 0x2000 | 0x40000 | 0x80000
"""swscale's flags for full chroma, accurate rounding and bit-exactness."""


@dataclass
class Way:
    """One way to make the picture."""

    name: str
    make: Callable[[av.VideoFrame], bytes]


def webcam(width: int, height: int) -> av.VideoFrame:
    """Smooth shapes, sharp edges, fine texture and sensor noise, as yuv420p in limited range."""
    random = np.random.default_rng(5)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) * (720 / height)
    channels = (
        120 + 60 * np.sin(x / 210) + 40 * np.cos(y / 130),
        110 + 50 * np.cos((x + y) / 170) + 30 * np.sin(y / 41),
        100 + 70 * np.sin((x - y) / 260),
    )
    picture = np.stack(channels, axis=2)
    disc = ((x - 640) ** 2 + (y - 380) ** 2) < 200**2
    picture[disc] = picture[disc] * 0.4 + np.array([170, 120, 95])
    picture[(y > 600) & (x % 24 < 3)] *= 0.4
    picture += random.normal(0, 5, picture.shape)
    rgb = av.VideoFrame.from_ndarray(np.clip(picture, 0, 255).astype(np.uint8), "rgb24")
    return VideoReformatter().reformat(rgb, format="yuv420p", threads=1)


def pillow_way(size: tuple[int, int]) -> Callable[[av.VideoFrame], bytes]:
    def make(frame: av.VideoFrame) -> bytes:
        out = io.BytesIO()
        frame.to_image().resize(size, Image.Resampling.LANCZOS).save(out, "JPEG", quality=75, optimize=True)
        return out.getvalue()

    return make


def swscale_way(size: tuple[int, int]) -> Callable[[av.VideoFrame], bytes]:
    context = VideoReformatter()

    def make(frame: av.VideoFrame) -> bytes:
        scaled = context.reformat(frame, *size, "rgb24", interpolation=Interpolation.BICUBIC, threads=1)
        out = io.BytesIO()
        scaled.to_image().save(out, "JPEG", quality=75)
        return out.getvalue()

    return make


def our_way(size: tuple[int, int]) -> Callable[[av.VideoFrame], bytes]:
    options = EncodeOptions("JPEG", ResizeOptions(*size), 75)
    return lambda frame: encode(frame, options)


def cpu_ms(works: list[Callable[[], object]], rounds: int, repeats: int = 4) -> list[float]:
    """Processor milliseconds of one call of each, the best round.

    The rounds of all take turns, so that what else the machine does falls on all alike.
    """
    best = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(rounds):
        for index, work in enumerate(works):
            start = time.process_time()
            for _ in range(repeats):
                work()
            best[index] = min(best[index], (time.process_time() - start) / repeats * 1000)
    return best


def psnr(picture: np.ndarray, exact: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((picture.astype(np.float64) - exact) ** 2)))


def ssim(picture: np.ndarray, exact: np.ndarray) -> float:
    """Mean structural similarity of luma over 8×8 blocks."""

    def blocks(rgb: np.ndarray) -> np.ndarray:
        luma = rgb[: rgb.shape[0] // 8 * 8, : rgb.shape[1] // 8 * 8].astype(np.float64) @ (0.299, 0.587, 0.114)
        return luma.reshape(luma.shape[0] // 8, 8, -1, 8).swapaxes(1, 2).reshape(-1, 64)

    a, b = blocks(picture), blocks(exact)
    covariance = ((a - a.mean(1, keepdims=True)) * (b - b.mean(1, keepdims=True))).mean(1)
    one, two = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    above = (2 * a.mean(1) * b.mean(1) + one) * (2 * covariance + two)
    below = (a.mean(1) ** 2 + b.mean(1) ** 2 + one) * (a.var(1) + b.var(1) + two)
    return float((above / below).mean())


def decoded(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def compare(frame: av.VideoFrame, size: tuple[int, int], rounds: int) -> list[tuple[float, float, float]]:
    """Print one table; gives each way's cost, PSNR and SSIM."""
    exact_colors = Image.fromarray(frame.reformat(format="rgb24", interpolation=EXACT, threads=1).to_ndarray())
    exact = np.asarray(exact_colors.resize(size, Image.Resampling.LANCZOS))
    ways = [Way("Pillow", pillow_way(size)), Way("swscale + Pillow", swscale_way(size)), Way("realtime", our_way(size))]
    print(f"\n{frame.width}×{frame.height} yuv420p → {size[0]}×{size[1]} JPEG, quality 75")
    print(f"{'':18} {'CPU ms':>8} {'× Pillow':>9} {'kB':>7} {'PSNR dB':>8} {'SSIM':>8}")
    costs = cpu_ms([partial(way.make, frame) for way in ways], rounds)
    figures = []
    for way, cost in zip(ways, costs, strict=True):
        data = way.make(frame)
        picture = decoded(data)
        figures.append((cost, psnr(picture, exact), ssim(picture, exact)))
        print(
            f"{way.name:18} {cost:8.2f} {costs[0] / cost:8.1f}× {len(data) / 1000:7.1f} {figures[-1][1]:8.2f}"
            f" {figures[-1][2]:8.4f}"
        )
    return figures


def check_goals(figures: list[tuple[float, float, float]]) -> bool:
    """Print whether each goal is met; gives whether all are."""
    pillow, swscale, ours = figures
    return all(
        [
            goal(f"against Pillow, at least {GOAL_PILLOW:g}×", pillow[0] / ours[0], GOAL_PILLOW),
            goal(f"against swscale + Pillow, at least {GOAL_SWSCALE:g}×", swscale[0] / ours[0], GOAL_SWSCALE),
            goal(f"PSNR against Pillow, at least −{GOAL_PSNR:g} dB", ours[1] - pillow[1], -GOAL_PSNR),
            goal(f"SSIM against Pillow, at least −{GOAL_SSIM:g}", ours[2] - pillow[2], -GOAL_SSIM),
        ]
    )


def goal(name: str, got: float, wanted: float) -> bool:
    met = got >= wanted
    print(f"  {'met   ' if met else 'MISSED'}  {name}: {got:.3g}")
    return met


def other_costs(frame: av.VideoFrame, rounds: int) -> bool:
    """What the other inputs and the thumbprint cost, beside Pillow's way for the same frame; whether the goal is met."""
    rgb = frame.to_ndarray(format="rgb24")
    marked = VideoReformatter().reformat(frame, format="yuv420p", width=frame.width + 2, threads=1)
    marked.colorspace = 1

    def other(form: str) -> av.VideoFrame:
        return VideoReformatter().reformat(frame, format=form, threads=1)

    inputs: list[tuple[str, Callable[[], object]]] = [
        ("Pillow, yuv420p", partial(pillow_way((1024, 1024)), frame)),
        ("yuv420p", partial(encode, frame)),
        ("yuv420p, BT.709", partial(encode, marked)),
        *((form, partial(encode, other(form))) for form in ("nv12", "yuv420p10le", "rgb24", "bgra")),
        ("numpy RGB", partial(encode, rgb)),
        ("Pillow RGB", partial(encode, Image.fromarray(rgb))),
        ("thumbprint", partial(thumbprint, frame)),
    ]
    costs = cpu_ms([work for _, work in inputs], rounds)
    print(f"\nOther inputs of {frame.width}×{frame.height} → 1024×1024, and what is done with every frame")
    print(f"{'':18} {'CPU ms':>8} {'× Pillow':>9}")
    for (name, _), cost in zip(inputs, costs, strict=True):
        print(f"{name:18} {cost:8.3f} {costs[0] / cost:8.1f}×")
    return goal(f"marked BT.709, against Pillow, at least {GOAL_PILLOW:g}×", costs[0] / costs[2], GOAL_PILLOW)


async def overshoot(work: Callable[[], object] | None, seconds: float) -> np.ndarray:
    """How much later than asked a 1 ms sleep of the loop ends, in ms, while `work` runs in a thread all the time."""
    loop = asyncio.get_running_loop()
    stop = False

    def keep_working() -> None:
        while not stop and work is not None:
            work()

    lags = []
    with ThreadPoolExecutor(1) as pool:
        worker = loop.run_in_executor(pool, keep_working)
        end = loop.time() + seconds
        while loop.time() < end:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append((time.perf_counter() - start) * 1000 - 1)
        stop = True
        await worker
    return np.array(lags)


def loop_lag(frame: av.VideoFrame, seconds: float) -> None:
    """What the event loop feels of encoding in a worker thread."""
    size = (1024, 1024)
    print(f"\nLateness of the event loop while a thread encodes {frame.width}×{frame.height}, ms")
    print(f"{'':18} {'p50':>8} {'p99':>8} {'max':>8}")
    works: list[tuple[str, Callable[[], object] | None]] = [
        ("nothing", None),
        ("Pillow", lambda: pillow_way(size)(frame)),
        ("swscale + Pillow", lambda: swscale_way(size)(frame)),
        ("realtime", lambda: our_way(size)(frame)),
    ]
    for name, work in works:
        lags = asyncio.run(overshoot(work, seconds))
        print(f"{name:18} {np.percentile(lags, 50):8.2f} {np.percentile(lags, 99):8.2f} {lags.max():8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds per figure; the best counts")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long the loop is watched; 0: it is not")
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal at 1024×1024 is missed")
    options = parser.parse_args()
    frame = webcam(1280, 720)
    met = check_goals(compare(frame, (1024, 1024), options.rounds))
    compare(frame, (1024, 576), options.rounds)
    compare(webcam(1920, 1080), (1024, 1024), options.rounds)
    met = other_costs(frame, options.rounds) and met
    if options.seconds:
        loop_lag(frame, options.seconds)
        loop_lag(webcam(3840, 2160), options.seconds)
    raise SystemExit(0 if met or not options.check else 1)


if __name__ == "__main__":
    main()
