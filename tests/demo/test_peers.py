"""A real pair of peers on loopback: what the user's microphone says arrives, and nothing else is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import aioice.ice
import numpy as np
import pytest
from aiortc import MediaStreamTrack

from realtime.demo.media import FRAME_SAMPLES, read_sound
from realtime.demo.peers import Listener, connect, make_peer, on_loopback
from realtime.demo.player import Camera, Microphone
from realtime.demo.scene import street
from realtime.pipelines.clock import SystemClock
from realtime.pipelines.worker import WorkerPool


async def test_sound_and_pictures_cross_a_real_pair(pool: WorkerPool, tone: Path) -> None:
    clock = SystemClock()
    user, bot = make_peer(), make_peer()
    microphone, listener = Microphone(clock, pool), Listener(clock)
    user.addTrack(microphone)
    user.addTrack(Camera(clock, pool, [street]))
    sizes: set[tuple[int, int]] = set()
    listening: list[asyncio.Task[None]] = []

    async def look(track: MediaStreamTrack) -> None:
        frame = await track.recv()
        sizes.add((frame.width, frame.height))

    def on_track(track: MediaStreamTrack) -> None:
        task = listener.listen(track) if track.kind == "audio" else look(track)
        listening.append(asyncio.get_running_loop().create_task(task))

    bot.on("track", on_track)
    await connect(user, bot)
    assert "127.0.0.1" in user.localDescription.sdp
    await microphone.say(partial(read_sound, tone))
    await listening[1]
    await microphone.say(lambda: iter([bytes(FRAME_SAMPLES * 2)] * 30))  # what is on its way arrives meanwhile
    await user.close()
    await bot.close()
    await asyncio.gather(*listening)
    assert sizes == {(960, 540)}
    heard = np.frombuffer(listener.recording.sound(), "<i2").astype(float)
    crossings = np.count_nonzero(np.diff(np.signbit(heard[4_800:16_800])))
    assert abs(crossings - 2 * 440 * 0.5) < 20  # the tone, half a second of it, after Opus


async def test_a_peer_that_closes_is_an_error_not_a_wait_for_ever() -> None:
    user, bot = make_peer(), make_peer()
    user.createDataChannel("nothing")
    connecting = asyncio.get_running_loop().create_task(connect(user, bot))
    await asyncio.sleep(0)
    await bot.close()
    with pytest.raises(Exception, match="closed"):
        await connecting
    await user.close()


def test_addresses_are_as_before_once_gathered() -> None:
    def probe() -> Iterator[object]:
        yield aioice.ice.get_host_addresses

    before = next(probe())
    with on_loopback():
        assert aioice.ice.get_host_addresses(True, True) == ["127.0.0.1"]
    assert aioice.ice.get_host_addresses is before
