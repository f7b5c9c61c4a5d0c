"""Two aiortc peer connections of one machine, joined over loopback: no STUN server, no network.

Owns: `make_peer`, `on_loopback`, `connect`. Driven by `SyntheticPeer`, and by whoever joins peers by hand. It never knows
what is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import aioice
from aiortc import RTCConfiguration, RTCPeerConnection

__all__ = ["connect", "connected", "make_peer", "on_loopback"]


def make_peer() -> RTCPeerConnection:
    """Make a peer that asks no STUN server."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


def _loopback(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    return ["127.0.0.1"]


@contextmanager
def on_loopback() -> Generator[None]:
    """Let peers that gather addresses meanwhile use 127.0.0.1 and nothing else, so that no network is needed.

    aioice leaves loopback out on purpose and has no setting for it; its function is replaced while this lasts. Peers of an
    aioice that has no such function use the machine's addresses.
    """
    ice: Any = getattr(aioice, "ice", None)
    found: Any = getattr(ice, "get_host_addresses", None)
    if found is None:
        yield
        return
    ice.get_host_addresses = _loopback
    try:
        yield
    finally:
        ice.get_host_addresses = found


async def connect(caller: RTCPeerConnection, callee: RTCPeerConnection) -> None:
    """Let `caller` call `callee` and return once both are connected.

    Raises:
        ConnectionError: One of them failed or was closed instead.
    """
    with on_loopback():
        await caller.setLocalDescription(await caller.createOffer())
        await callee.setRemoteDescription(caller.localDescription)
        await callee.setLocalDescription(await callee.createAnswer())
    await caller.setRemoteDescription(callee.localDescription)
    await connected(caller, callee)


async def connected(*peers: RTCPeerConnection) -> None:
    """Return once all of these are connected.

    Raises:
        ConnectionError: One of them failed or was closed instead.
    """
    changed = asyncio.Event()
    for peer in peers:
        peer.on("connectionstatechange", changed.set)
    while any(peer.connectionState != "connected" for peer in peers):
        for peer in peers:
            if peer.connectionState in ("failed", "closed"):
                raise ConnectionError(f"the peer connection {peer.connectionState}")
        changed.clear()
        await changed.wait()
