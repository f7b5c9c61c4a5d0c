"""The call through Pipecat's SmallWebRTC transport: sound and one picture a second to a processor, speech back."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import numpy as np
from callee import MODEL_RATE_HZ, Counts, keep, run, serve
from loguru import logger
from PIL import Image
from pipecat.frames.frames import InputAudioRawFrame, OutputAudioRawFrame, UserImageRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.transports.base_transport import TransportParams, VideoInSourceParams
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
from pipecat.workers.runner import WorkerRunner

SECOND = np.round(6_000 * np.sin(np.arange(MODEL_RATE_HZ) * 2 * np.pi * 220 / MODEL_RATE_HZ)).astype("<i2").tobytes()


class Model(FrameProcessor):
    """Takes sound and pictures, and never stops speaking."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self._counts = counts
        self._speaking: Any = None

    async def process_frame(self, frame: Any, direction: Any) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self._counts.heard_samples += len(frame.audio) // 2
            if self._speaking is None:
                self._speaking = self.create_task(self._speak())
        elif isinstance(frame, UserImageRawFrame):
            await asyncio.get_running_loop().run_in_executor(None, jpeg, frame)
            self._counts.pictures += 1
        else:
            await self.push_frame(frame, direction)

    async def _speak(self) -> None:
        while True:
            await self.push_frame(OutputAudioRawFrame(SECOND, MODEL_RATE_HZ, 1))
            await asyncio.sleep(1)


def jpeg(frame: UserImageRawFrame) -> bytes:
    out = io.BytesIO()
    picture = Image.frombytes("RGB", frame.size, frame.image)
    picture.resize((1024, 1024), Image.Resampling.LANCZOS).save(out, "JPEG", quality=75, optimize=True)
    return out.getvalue()


async def main() -> None:
    logger.remove()
    counts, tasks = Counts(), set[Any]()
    params = TransportParams(
        audio_in_enabled=True,
        audio_out_enabled=True,
        audio_in_sample_rate=MODEL_RATE_HZ,
        audio_out_sample_rate=MODEL_RATE_HZ,
        video_in_enabled=True,
        video_in_sources={"camera": VideoInSourceParams(framerate=1)},
    )

    async def answer(offer: str, number: int) -> str:
        connection = SmallWebRTCConnection([])
        await connection.initialize(offer, "offer")
        transport = SmallWebRTCTransport(connection, params)
        worker = PipelineWorker(
            Pipeline([transport.input(), Model(counts), transport.output()]),
            params=PipelineParams(audio_in_sample_rate=MODEL_RATE_HZ, audio_out_sample_rate=MODEL_RATE_HZ),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
        )
        runner = WorkerRunner(handle_sigint=False)
        keep(tasks, run_pipeline(runner, worker))
        keep(tasks, connection.connect())
        return connection.get_answer()["sdp"]

    async def run_pipeline(runner: WorkerRunner, worker: PipelineWorker) -> None:
        await runner.add_workers(worker)
        await runner.run()

    await serve(answer, counts)


run(main)
