"""Memory of a call whose video nobody wants, and of one whose consumer is slow, over a minute.

A user in another process shows a street through VP8. Measured is the memory of the process that is called, at the
beginning and at the end, and the frames that wait in aiortc's own queue. The named baseline of the same run is *plain
aiortc* with a track that is accepted and not read. aiortc's queue has no bound, so whatever is not drained grows.

Run:  python benchmarks/bench_drain.py [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from typing import Any

from bench_call import User, local_llm, process_rss_mb

from realtime import FrameSampling, RealtimeSession
from realtime.pipelines.video import PictureEncoder
from realtime.testing.loopback import make_peer

WARM_UP_SECONDS = 5.0
SLOW_SECONDS = 0.5


async def watch(tracks: list[Any], seconds: float) -> dict[str, float]:
    """Let the call settle, then look at memory and queues once a second."""
    await asyncio.sleep(min(WARM_UP_SECONDS, seconds))
    first, waiting = process_rss_mb(os.getpid()), 0
    for _ in range(round(seconds)):
        await asyncio.sleep(1.0)
        waiting = max([waiting, *(track._queue.qsize() for track in tracks if track.kind == "video")])
    last = process_rss_mb(os.getpid())
    return {"first": first, "last": last, "growth": (last - first) / seconds, "waiting": waiting}


async def run(role: str, url: str, seconds: float) -> dict[str, float]:
    """One called side."""
    peer, user, tracks = make_peer(), User(), list[Any]()
    peer.on("track", tracks.append)
    if role == "plain":
        await user.call(peer)
        figures = await watch(tracks, seconds)
        await user.hang_up()
        await peer.close()
        return figures
    if role == "slow":
        encode = PictureEncoder.__call__

        def encode_slowly(self: PictureEncoder, frame: object) -> object:
            time.sleep(SLOW_SECONDS)
            return encode(self, frame)

        PictureEncoder.__call__ = encode_slowly
    sampling = (
        FrameSampling(fps_idle=10.0, min_change=0.0) if role == "slow" else FrameSampling(fps_idle=0, fps_speaking=0)
    )
    async with RealtimeSession(url, sampling=sampling, retain_images_max=10) as session:
        session.attach(peer)
        await user.call(peer)
        figures = await watch(tracks, seconds)
        await user.hang_up()
        await peer.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each side is watched")
    parser.add_argument("--only", choices=("plain", "unwanted", "slow"), help="one of the three")
    parser.add_argument("--role", choices=("plain", "unwanted", "slow"), default=None, help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role is not None:
        print(json.dumps(asyncio.run(run(given.role, given.url, given.seconds))))
        return
    print(f"{'':42}{'MB at start':>12}{'MB at end':>12}{'MB/s':>8}{'frames waiting, most':>22}")
    with local_llm() as (url, _):
        for role, name in (
            ("plain", "plain aiortc, track not read"),
            ("unwanted", "session, video not wanted"),
            ("slow", f"session, {SLOW_SECONDS:g} s a picture at 10 a second"),
        ):
            if given.only not in (None, role):
                continue
            command = [sys.executable, __file__, "--role", role, "--url", url, "--seconds", str(given.seconds)]
            figures = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])
            print(
                f"{name:42}{figures['first']:12.0f}{figures['last']:12.0f}"
                f"{figures['growth']:8.2f}{figures['waiting']:22.0f}"
            )


if __name__ == "__main__":
    main()
