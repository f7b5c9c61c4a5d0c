"""The call with aiortc and Pillow by hand: sound resampled with PyAV, every picture decoded, one a second encoded, speech sent back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from aiortc import RTCSessionDescription

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_receive import Plain
from callee import Counts, run, serve

from realtime.testing.loopback import make_peer


class Counted(Counts):
    def __init__(self, plain: Plain) -> None:
        self._plain = plain

    heard_rate = 24_000

    @property
    def heard_samples(self) -> int:
        return self._plain.bytes // 2

    @property
    def pictures(self) -> int:
        return self._plain.pictures


async def main() -> None:
    plain, tasks, peers = Plain(), set[Any](), []

    async def answer(offer: str, number: int) -> str:
        peer = make_peer()
        peers.append(peer)
        plain.attach(peer, tasks)
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        return peer.localDescription.sdp

    await serve(answer, Counted(plain))


run(main)
