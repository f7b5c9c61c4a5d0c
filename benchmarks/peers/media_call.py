"""The call without a session: sound in at the model's rate, a picture a second as a JPEG, speech back, and that is all.

`BENCHMARK_WAY=plain`: aiortc and Pillow by hand, every picture decoded. `ours`: `realtime.tracks` and `realtime.media`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from aiortc import RTCSessionDescription

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_receive import Ours, Plain
from callee import Counts, run, serve

from realtime.testing.loopback import make_peer


class Counted(Counts):
    def __init__(self, way: Plain | Ours) -> None:
        self._way = way

    heard_rate = 24_000

    @property
    def heard_samples(self) -> int:
        return self._way.bytes // 2

    @property
    def pictures(self) -> int:
        return self._way.pictures


async def main() -> None:
    way = Plain() if os.environ["BENCHMARK_WAY"] == "plain" else Ours()
    tasks, peers = set[Any](), []

    async def answer(offer: str, number: int) -> str:
        peer = make_peer()
        peers.append(peer)
        way.attach(peer, tasks)
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        return peer.localDescription.sdp

    await serve(answer, Counted(way))


run(main)
