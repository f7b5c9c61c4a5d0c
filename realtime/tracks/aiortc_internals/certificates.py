"""Peers whose certificate is an RSA one: GStreamer's are, and aiortc would refuse their handshake.

Owns: `accept_rsa`. Driven by `realtime.tracks.peer` for every peer connection that is attached. aiortc offers the cipher suites of
elliptic-curve certificates alone; WebRTC asks for one of them (RFC 8827 section 6.5) and forbids no other. Our own certificate
stays what it is, and who the peer is is proved as ever by the fingerprint in its description. Touches
`RTCPeerConnection.__certificates` and `RTCCertificate._create_ssl_context`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aiortc import RTCPeerConnection

__all__ = ["accept_rsa"]

_CERTIFICATES: Final = "_RTCPeerConnection__certificates"
_MAKE: Final = "_create_ssl_context"
_SUITES: Final = (
    b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:"
    b"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305"
)
"""aiortc's own, then those of RSA certificates with forward secrecy and authenticated encryption."""


def accept_rsa(pc: RTCPeerConnection) -> bool:
    """Let a peer connection whose handshake has not begun take peers with RSA certificates, too.

    Returns:
        Whether it will: not with an aiortc that keeps its certificates elsewhere, which then goes on as it is.
    """
    certificates: tuple[Any, ...] = tuple(getattr(pc, _CERTIFICATES, ()))
    found = [certificate for certificate in certificates if callable(getattr(certificate, _MAKE, None))]
    for certificate in found:
        setattr(certificate, _MAKE, _with_suites(getattr(certificate, _MAKE)))
    return bool(found)


def _with_suites(make: Callable[..., Any]) -> Callable[..., Any]:
    """The maker of TLS contexts, with more cipher suites."""

    def make_context(*args: Any, **kwargs: Any) -> Any:
        context = make(*args, **kwargs)
        context.set_cipher_list(_SUITES)
        return context

    return make_context
