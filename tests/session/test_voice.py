"""A session hears by itself that the user speaks, where the model does not say so (I4)."""

from __future__ import annotations

import numpy as np
import pytest

from realtime import FrameSampling, ModelCapabilities, RealtimeSession, TurnDetection
from realtime.pipelines.worker import encode_pool
from realtime.testing import FakeTrack, ManualClock

RATE = 24_000


def silence(ms: int) -> bytes:
    return np.random.default_rng(1).normal(0, 3, ms * RATE // 1000).astype("<i2").tobytes()


def speech(ms: int) -> bytes:
    t = np.arange(ms * RATE // 1000) / RATE
    buzz = sum(np.sin(2 * np.pi * 140 * harmonic * t) / harmonic for harmonic in range(1, 20))
    return (3000 * buzz * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))).astype("<i2").tobytes()


@pytest.mark.parametrize("by_button", [False, True])
async def test_a_session_looks_oftener_while_the_user_speaks_to_a_model_that_does_not_say_so(obliging, by_button):
    """I4: with such a model, and with push-to-talk; the turn itself is not touched."""
    clock = ManualClock()
    model = obliging(capabilities=ModelCapabilities(reports_speech_boundaries=by_button))
    sampling = FrameSampling(fps_speaking=2.0, fps_idle=0.1, min_change=0, end_of_turn=False)
    detection = TurnDetection(mode="manual" if by_button else "server")
    async with RealtimeSession(model, clock=clock, sampling=sampling, turn_detection=detection) as session:
        session.add_track(FakeTrack.video(seconds=8, fps=10, clock=clock), source="camera")
        kept: list[int] = []
        for sound in (silence(3000), speech(3000), silence(2000)):
            for at in range(0, len(sound), 4800):
                await session.send_audio(sound[at : at + 4800])
                await clock.run(0.1)
            kept.append(sum(session.statistics().machine.frames_kept.values()))
        await encode_pool.run(int)
    assert kept[0] == 1
    assert 5 <= kept[1] - kept[0] <= 8
    assert kept[2] - kept[1] <= 2
    assert model.all("input_audio_buffer.commit") == []
