"""The user's end of the call: a real pair of aiortc peer connections on loopback, and an ear for the reply.

Owns: `connect` (offer and answer between two peers of one process), `Listener` (reads the reply track that came over
the wire and records it). Driven by `demo/call.py`. Never leaves the machine: no STUN server, loopback addresses only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import aioice.ice
import av
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection
from aiortc.mediastreams import MediaStreamError

from realtime.demo.recording import Recording
from realtime.pipelines.clock import Clock

__all__ = ["Listener", "connect", "make_peer", "on_loopback"]

LISTEN_RATE_HZ = 48_000
"""What aiortc's Opus decoder gives."""
_MAX_GAP_SECONDS = 10.0


def make_peer() -> RTCPeerConnection:
    """Make a peer that asks no STUN server."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


def _loopback(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    return ["127.0.0.1"]


@contextmanager
def on_loopback() -> Generator[None]:
    """Let peers that gather addresses meanwhile use 127.0.0.1 and nothing else, so that no network is needed.

    aioice leaves loopback out on purpose and has no setting for it; its function is replaced while this lasts.
    """
    found = aioice.ice.get_host_addresses
    aioice.ice.get_host_addresses = _loopback
    try:
        yield
    finally:
        aioice.ice.get_host_addresses = found


async def connect(caller: RTCPeerConnection, callee: RTCPeerConnection) -> None:
    """Let `caller` call `callee` and return once both are connected.

    Raises:
        ConnectionError: One of them failed or was closed instead.
    """
    states: asyncio.Event = asyncio.Event()
    for peer in (caller, callee):
        peer.on("connectionstatechange", states.set)
    with on_loopback():
        await caller.setLocalDescription(await caller.createOffer())
        await callee.setRemoteDescription(caller.localDescription)
        await callee.setLocalDescription(await callee.createAnswer())
    await caller.setRemoteDescription(callee.localDescription)
    while {caller.connectionState, callee.connectionState} != {"connected"}:
        for peer in (caller, callee):
            if peer.connectionState in ("failed", "closed"):
                raise ConnectionError(f"the peer connection {peer.connectionState}")
        states.clear()
        await states.wait()


class Listener:
    """Hears a reply track and keeps what it heard.

    Attributes:
        recording: What came, mono at 48 kHz, with silence where packets were lost.
    """

    def __init__(self, clock: Clock) -> None:
        """Make a listener that has heard nothing."""
        self.recording = Recording(LISTEN_RATE_HZ)
        self._clock = clock
        self._next_pts: int | None = None

    async def listen(self, track: MediaStreamTrack) -> None:
        """Read the track until it ends."""
        while True:
            try:
                frame: object = await track.recv()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (Packet has an open parameter)
            except MediaStreamError:
                return
            if isinstance(frame, av.AudioFrame):
                self._hear(frame)

    def _hear(self, frame: av.AudioFrame) -> None:
        self.recording.begin(self._clock.now())
        pts = frame.pts
        if pts is not None:
            if self._next_pts is not None and 0 < pts - self._next_pts <= _MAX_GAP_SECONDS * LISTEN_RATE_HZ:
                self.recording.append(bytes((pts - self._next_pts) * 2))
            self._next_pts = pts + frame.samples
        channels = len(frame.layout.channels)
        samples = np.frombuffer(bytes(frame.planes[0])[: frame.samples * channels * 2], dtype="<i2")
        mono = samples.reshape(-1, channels).astype(np.int32).mean(axis=1)
        self.recording.append(mono.astype("<i2").tobytes())
