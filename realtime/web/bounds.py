"""How much an offer may hold, found out before anything of it is parsed, and candidates that are read.

Owns: `check_offer` and `read_candidate`. Driven by `realtime.web.peer`. What a description means is aiortc's; its parser and ICE take
time and memory for every section and every candidate, whoever sent them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiortc import RTCIceCandidate

from realtime.web.errors import CallRefused
from realtime.web.options import WebLimits

__all__ = ["check_offer", "read_candidate"]


def check_offer(sdp: str, limits: WebLimits) -> int:
    """Count the media sections and candidates of an offer; gives the number of candidates.

    Raises:
        CallRefused: There are more than the limits allow.
    """
    lines = sdp.splitlines()  # as the parser splits it
    sections = sum(line.startswith("m=") for line in lines)
    if sections > limits.max_sources + 1:  # and one for the data channel
        raise CallRefused("bad_message", f"at most {limits.max_sources} tracks may be offered, and a data channel")
    candidates = sum(line.startswith("a=candidate:") for line in lines)
    if candidates > limits.max_candidates:
        raise CallRefused("too_large", f"more than {limits.max_candidates} candidates")
    return candidates


def read_candidate(given: Mapping[str, Any] | None) -> RTCIceCandidate | None:
    """An `RTCIceCandidateInit` as aiortc takes it; None: there are no more.

    Raises:
        ValueError: It is none.
    """
    line = str((given or {}).get("candidate") or "")
    if given is None or not line:
        return None
    candidate = _read(line.removeprefix("a=").removeprefix("candidate:"))
    mid, index = given.get("sdpMid"), given.get("sdpMLineIndex")
    candidate.sdpMid = str(mid) if mid is not None else None
    candidate.sdpMLineIndex = index if isinstance(index, int) else None
    if candidate.sdpMid is None and candidate.sdpMLineIndex is None:
        candidate.sdpMLineIndex = 0
    return candidate


def _read(line: str) -> RTCIceCandidate:
    """A candidate-attribute (RFC 8839, section 5.1) without its name."""
    foundation, component, protocol, priority, address, port, _, kind, *more = line.split()
    named = dict(zip(more[::2], more[1::2], strict=False))
    return RTCIceCandidate(
        component=int(component),
        foundation=foundation,
        ip=address,
        port=int(port),
        priority=int(priority),
        protocol=protocol,
        type=kind,
        relatedAddress=named.get("raddr"),
        relatedPort=int(named["rport"]) if "rport" in named else None,
        tcpType=named.get("tcptype"),
    )
