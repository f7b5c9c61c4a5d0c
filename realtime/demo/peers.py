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
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection
from aiortc.mediastreams import MediaStreamError

from realtime.demo.recording import RECORDED_RATE_HZ, Recording
from realtime.media.audio import AudioConverter
from realtime.pipelines.clock import Clock

__all__ = ["Listener", "connect", "make_peer", "on_loopback"]


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
        recording: What came, with silence where packets were lost.
    """

    def __init__(self, clock: Clock) -> None:
        """Make a listener that has heard nothing."""
        self.recording = Recording()
        self._clock = clock
        self._converter = AudioConverter(RECORDED_RATE_HZ)

    async def listen(self, track: MediaStreamTrack) -> None:
        """Read the track until it ends."""
        while True:
            try:
                frame: object = await track.recv()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (Packet has an open parameter)
            except MediaStreamError:
                return
            if isinstance(frame, av.AudioFrame):
                self.recording.begin(self._clock.now())
                self.recording.append(self._converter.convert(frame))
