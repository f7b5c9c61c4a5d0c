"""The call through FastRTC's stream: sound and pictures to a handler, which encodes one a second, and speech back.

The handler's video is taken, as FastRTC can only take pictures where it also gives some: its reader is started by hand, so that no
picture is sent back. That is the least that it can do here.
"""

from __future__ import annotations

import asyncio
import io
import time
from typing import Any

import numpy as np
from callee import MODEL_RATE_HZ, Counts, keep, run, serve
from fastrtc import AsyncAudioVideoStreamHandler, Stream
from PIL import Image

CHUNK = np.round(6_000 * np.sin(np.arange(2_400) * 2 * np.pi * 220 / MODEL_RATE_HZ)).astype(np.int16)[None, :]
counts = Counts()


class Model(AsyncAudioVideoStreamHandler):
    """Takes sound and pictures, and never stops speaking."""

    def __init__(self) -> None:
        super().__init__(
            input_sample_rate=MODEL_RATE_HZ, output_sample_rate=MODEL_RATE_HZ, output_frame_size=480, fps=30
        )
        self.next_picture = 0.0
        self.next_chunk = 0.0

    def copy(self) -> Model:
        return Model()

    async def start_up(self) -> None:
        return

    async def receive(self, frame: Any) -> None:
        counts.heard_samples += frame[1].shape[-1]

    async def emit(self) -> Any:
        now = time.monotonic()
        self.next_chunk = max(self.next_chunk + 0.1, now)
        await asyncio.sleep(self.next_chunk - now)
        return MODEL_RATE_HZ, CHUNK

    async def video_receive(self, frame: Any) -> None:
        if time.monotonic() >= self.next_picture:
            self.next_picture = time.monotonic() + 1
            await asyncio.get_running_loop().run_in_executor(None, jpeg, frame)
            counts.pictures += 1

    async def video_emit(self) -> Any:
        await asyncio.sleep(3600)


def jpeg(bgr: Any) -> bytes:
    out = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(bgr[:, :, ::-1]))
    picture.resize((1024, 1024), Image.Resampling.LANCZOS).save(out, "JPEG", quality=75, optimize=True)
    return out.getvalue()


async def main() -> None:
    tasks: set[Any] = set()
    stream = Stream(
        Model(),
        modality="audio-video",
        mode="send-receive",
        concurrency_limit=1000,
        server_rtc_configuration={"iceServers": []},
        verbose=False,
    )

    async def answer(offer: str, number: int) -> str:
        name = f"call-{number}"
        given = await stream.handle_offer({"sdp": offer, "type": "offer", "webrtc_id": name}, lambda *_: None)
        for track in stream.connections[name]:
            if track.kind == "video":
                keep(tasks, track.start())
        return given["sdp"]

    await serve(answer, counts)


run(main)
