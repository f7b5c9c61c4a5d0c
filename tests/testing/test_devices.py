"""The microphone and the camera keep the pace of real time, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from realtime.pipelines.worker import WorkerPool
from realtime.testing.devices import FRAME_SAMPLES, Camera, Microphone, Picture

from .conftest import JumpingClock


def _sound(value: int, frames: int) -> Iterator[bytes]:
    for _ in range(frames):
        yield np.full(FRAME_SAMPLES, value, "<i2").tobytes()


def _value(frame: av.AudioFrame) -> int:
    return int(np.frombuffer(bytes(frame.planes[0])[: frame.samples * 2], "<i2")[100])


class AtOnce(WorkerPool):
    """Work takes no time, as nothing does on a clock that jumps: half a second of sound passes sooner than a thread wakes."""

    async def run(self, job: Callable[[], Any]) -> Any:
        return job()


async def test_microphone_is_silent_until_it_speaks_and_silent_again(clock: JumpingClock) -> None:
    microphone = Microphone(clock, AtOnce("realtime-kit-test", max_threads=1, max_waiting=1))
    heard = [_value(await microphone.recv()) for _ in range(3)]
    saying = asyncio.create_task(microphone.say(partial(_sound, 7, 120)))
    while not saying.done():
        heard.append(_value(await microphone.recv()))
    heard += [_value(await microphone.recv()) for _ in range(3)]
    assert heard[:3] == [0, 0, 0]
    assert heard.count(7) == 120
    first = heard.index(7)
    assert heard[first : first + 120] == [7] * 120  # no hole where a batch ends
    assert heard[-3:] == [0, 0, 0]


async def test_microphone_frames_are_20_ms_apart_by_pts_and_by_clock(clock: JumpingClock, pool: WorkerPool) -> None:
    microphone = Microphone(clock, pool)
    times = []
    pts = []
    for _ in range(50):
        frame = await microphone.recv()
        times.append(clock.now())
        pts.append(frame.pts)
    assert pts == [FRAME_SAMPLES * n for n in range(50)]
    assert times == pytest.approx([times[0] + 0.02 * n for n in range(50)])


async def test_microphone_makes_no_burst_after_a_stall(clock: JumpingClock, pool: WorkerPool) -> None:
    microphone = Microphone(clock, pool)
    await microphone.recv()
    clock.time += 3.0
    await microphone.recv()
    before = clock.now()
    for _ in range(10):
        await microphone.recv()
    assert clock.now() - before == pytest.approx(0.2)


async def test_microphone_records_what_it_gave(clock: JumpingClock, pool: WorkerPool) -> None:
    microphone = Microphone(clock, pool)
    for _ in range(100):
        await microphone.recv()
    assert microphone.recording.seconds == pytest.approx(2.0, abs=0.01)
    assert microphone.recording.begun_at == 100.0


def _film(frames: int, luma: int = 128) -> Iterator[Picture]:
    for number in range(frames):
        planes = np.full((24, 16), 128, np.uint8)
        planes[:16] = luma
        yield Picture(number / 10, av.VideoFrame.from_ndarray(planes, format="yuv420p"))


async def test_camera_loops_and_says_when_all_was_shown(clock: JumpingClock, pool: WorkerPool) -> None:
    camera = Camera(clock, pool, [partial(_film, 5), partial(_film, 5)])
    shown_after = []
    pts = []
    for _ in range(23):
        frame = await camera.recv()
        pts.append(frame.pts / 90_000)
        shown_after.append(camera.shown.is_set())
    assert shown_after == [False] * 10 + [True] * 13
    assert all(later > earlier for earlier, later in pairwise(pts))
    assert clock.now() - 100.0 == pytest.approx(pts[-1])


async def test_camera_leaves_out_pictures_whose_time_has_passed(clock: JumpingClock, pool: WorkerPool) -> None:
    camera = Camera(clock, pool, [partial(_film, 100)])
    await camera.recv()
    clock.time += 2.0
    frame = await camera.recv()
    assert frame.pts / 90_000 == pytest.approx(1.8)  # no backlog: at most 0.2 s late


async def test_camera_without_a_picture_ends_instead_of_turning_for_ever(clock: JumpingClock, pool: WorkerPool) -> None:
    camera = Camera(clock, pool, [lambda: iter(())])
    with pytest.raises(MediaStreamError):
        await camera.recv()
    assert camera.readyState == "ended"


async def test_stopped_tracks_end(clock: JumpingClock, pool: WorkerPool) -> None:
    for track in (Microphone(clock, pool), Camera(clock, pool, [lambda: iter(())])):
        track.stop()
        with pytest.raises(MediaStreamError):
            await track.recv()


async def test_a_camera_that_is_turned_shows_the_other_thing_next_and_time_goes_on(
    clock: JumpingClock, pool: WorkerPool
) -> None:
    camera = Camera(clock, pool, [partial(_film, 100, 40)])
    shown, pts = [], []
    for number in range(8):
        if number == 4:
            camera.show([partial(_film, 100, 200)])
        frame = await camera.recv()
        shown.append(int(frame.to_ndarray()[0, 0]))
        pts.append(frame.pts)
    assert shown == [40] * 4 + [200] * 4
    assert all(later > earlier for earlier, later in pairwise(pts))
    assert camera.frames == 8


async def test_a_microphone_that_is_hushed_says_no_more_and_lets_who_waits_go(
    clock: JumpingClock, pool: WorkerPool
) -> None:
    microphone = Microphone(clock, pool)
    saying = asyncio.create_task(microphone.say(partial(_sound, 7, 20)))
    while _value(await microphone.recv()) != 7:
        pass
    microphone.hush()
    await saying
    assert _value(await microphone.recv()) == 0
