"""The call through `RealtimeSession`: tracks in and out, sampler, pictures, conversation, wire messages; the model takes all of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
from aiortc import RTCSessionDescription

sys.path.insert(0, str(Path(__file__).parents[1]))

from callee import MODEL_RATE_HZ, Counts, keep, run, serve
from null_model import NullModel

from realtime import FrameSampling, RealtimeSession
from realtime.testing.loopback import make_peer

SECOND = np.round(6_000 * np.sin(np.arange(MODEL_RATE_HZ) * 2 * np.pi * 220 / MODEL_RATE_HZ)).astype("<i2").tobytes()


async def speak(model: NullModel) -> None:
    """A model that never stops: a second of sound every second."""
    say = model.begin_reply()
    say(SECOND)
    while True:
        say(SECOND)
        await asyncio.sleep(1)


async def main() -> None:
    counts, tasks = Counts(), set[Any]()
    kept: list[Any] = []
    sampling = FrameSampling(fps_speaking=1.0, fps_idle=1.0, min_change=0.0)

    async def answer(offer: str, number: int) -> str:
        peer, model = make_peer(), NullModel()
        session = await RealtimeSession(model, sampling=sampling, retain_images_max=10).__aenter__()
        kept.extend((peer, session))
        session.attach(peer)
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        keep(tasks, count(model))
        peer.on("connectionstatechange", lambda: peer.connectionState == "connected" and keep(tasks, speak(model)))
        return peer.localDescription.sdp

    async def count(model: NullModel) -> None:
        before = 0
        while True:
            await asyncio.sleep(0.5)
            now = model.audio_messages
            counts.pictures += len(model.pictures)
            model.pictures.clear()
            counts.heard_samples += (now - before) * MODEL_RATE_HZ // 50
            before = now

    await serve(answer, counts)


run(main)
