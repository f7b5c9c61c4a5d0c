"""Media files made on the spot, and a pool of worker threads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import pytest_asyncio

from realtime.pcm import wav_bytes
from realtime.pipelines.worker import WorkerPool


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool("realtime-demo-test", max_threads=2, max_waiting=16)
    member = pool.join()
    yield pool
    await pool.leave(member)


@pytest.fixture
def tone(tmp_path: Path) -> Path:
    """One second of a tone, 16 kHz stereo: left twice as loud as right."""
    t = np.arange(16_000) / 16_000
    left = (8_000 * np.sin(2 * np.pi * 440 * t)).astype("<i2")
    path = tmp_path / "tone.wav"
    path.write_bytes(wav_bytes(np.stack([left, left // 2], axis=1).tobytes(), 16_000, 2))
    return path


def write_movie(path: Path, *, frames: int, fps: int, size: tuple[int, int] = (64, 48), sound: bool = False) -> Path:
    """A film whose brightness rises by 8 a frame; with a second of silence beside it if asked for."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libvpx", rate=fps)
        video.width, video.height, video.pix_fmt = (*size, "yuv420p")
        audio = container.add_stream("libopus", rate=48_000, layout="mono") if sound else None
        for number in range(frames):
            picture = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
            picture[: size[1]] = 16 + 8 * (number % 25)
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        if audio is not None:
            frame = av.AudioFrame(format="s16", layout="mono", samples=48_000)
            frame.planes[0].update(bytes(96_000))
            frame.sample_rate, frame.pts, frame.time_base = 48_000, 0, Fraction(1, 48_000)
            container.mux(audio.encode(frame))
            container.mux(audio.encode(None))
    return path
