"""Cameras and microphones by script."""

import asyncio

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame

from realtime.errors import ArgumentError
from realtime.testing import FakeTrack, ManualClock


async def all_frames(track):
    frames = []
    while True:
        try:
            frames.append(await track.recv())
        except MediaStreamError:
            return frames


async def test_a_microphone_gives_its_sound_in_frames_and_ends():
    pcm = np.arange(2400, dtype=np.int16).tobytes()
    track = FakeTrack.audio(pcm, rate_hz=48_000)
    assert isinstance(track, MediaStreamTrack)
    assert track.kind == "audio"
    frames = await all_frames(track)
    assert [frame.samples for frame in frames] == [960, 960, 960]
    assert [frame.pts for frame in frames] == [0, 960, 1920]
    assert {frame.sample_rate for frame in frames} == {48_000}
    heard = b"".join(frame.to_ndarray().tobytes() for frame in frames)
    assert heard[: len(pcm)] == pcm
    assert not any(heard[len(pcm) :])
    assert (track.given, track.readyState) == (3, "ended")


async def test_a_microphone_without_sound_is_silent_for_so_long():
    frames = await all_frames(FakeTrack.audio(seconds=0.1, rate_hz=16_000))
    assert sum(frame.samples for frame in frames) == 1600
    assert not any(frame.to_ndarray().any() for frame in frames)


async def test_a_camera_gives_other_pictures_at_its_rate():
    frames = await all_frames(FakeTrack.video(size=(32, 16), fps=10, seconds=0.5))
    assert [(frame.width, frame.height) for frame in frames] == [(32, 16)] * 5
    assert [float(frame.pts * frame.time_base) for frame in frames] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert len({int(frame.to_ndarray(format="gray")[0, 0]) for frame in frames}) == 5


async def test_a_camera_shows_what_it_is_told():
    def picture(number):
        shown = np.zeros((8, 8, 3), dtype=np.uint8)
        shown[:, :, 0] = 255 if number == 1 else 0
        return shown

    frames = await all_frames(FakeTrack.video(picture, fps=2, seconds=1))
    reds = [int(frame.to_ndarray(format="rgb24")[4, 4, 0]) for frame in frames]
    assert reds[0] < 20
    assert reds[1] > 230


async def test_a_clock_paces_it_from_the_first_recv():
    clock = ManualClock(100.0)
    track = FakeTrack.audio(seconds=0.1, clock=clock)
    times = []

    async def read():
        for _ in range(5):
            await track.recv()
            times.append(round(clock.now() - 100.0, 3))

    reading = asyncio.create_task(read())
    await clock.run(1.0)
    await reading
    assert times == [0.0, 0.02, 0.04, 0.06, 0.08]


async def test_by_hand_recv_waits_for_what_is_pushed():
    track = FakeTrack("audio")
    waiting = asyncio.create_task(track.recv())
    await asyncio.sleep(0)
    assert not waiting.done()
    frame = AudioFrame(format="s16", layout="mono", samples=480)
    track.push(frame)
    assert await waiting is frame
    track.push(ValueError("a broken frame"))
    track.push(frame)
    track.end()
    with pytest.raises(ValueError, match="broken"):
        await track.recv()
    assert await track.recv() is frame
    with pytest.raises(MediaStreamError):
        await track.recv()
    assert track.given == 2


async def test_stopping_it_wakes_who_waits():
    track = FakeTrack("video")
    waiting = asyncio.create_task(track.recv())
    await asyncio.sleep(0)
    track.stop()
    with pytest.raises(MediaStreamError):
        await waiting


async def test_it_is_audio_or_video():
    with pytest.raises(ArgumentError, match="kind"):
        FakeTrack("smell")
