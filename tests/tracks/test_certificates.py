"""Peers with an RSA certificate, as GStreamer's are, get through the handshake."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest
from aiortc import RTCCertificate, RTCPeerConnection
from aiortc.rtcdtlstransport import SRTP_PROFILES
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from realtime.testing import FakeTrack
from realtime.testing.loopback import connect, make_peer
from realtime.tracks.aiortc_internals.certificates import accept_rsa
from realtime.tracks.peer import attach_peer


class RsaCertificate(RTCCertificate):
    """A certificate of the kind that every OpenSSL program has."""

    def _create_ssl_context(self, srtp_profiles: Any) -> Any:
        context = super()._create_ssl_context(srtp_profiles)
        context.set_cipher_list(b"DEFAULT")
        return context


@pytest.fixture(scope="module")
def rsa_certificate() -> RsaCertificate:
    key = rsa.generate_private_key(65_537, 2_048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a sender")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return RsaCertificate(key, made)  # type: ignore[arg-type]


@pytest.mark.parametrize("ours_offers", [False, True])
async def test_a_peer_with_an_rsa_certificate_connects(rsa_certificate, ours_offers):
    """As the client of the handshake (we answer) and as its server (we offer)."""
    theirs, ours = make_peer(), make_peer()
    theirs._RTCPeerConnection__certificates[:] = [rsa_certificate]
    track = FakeTrack.audio(bytes(96_000))
    theirs.addTrack(track)
    if ours_offers:
        ours.addTransceiver("audio", direction="recvonly")
    attach_peer(ours, reply_track=None, on_track=lambda _: None)
    try:
        async with asyncio.timeout(60):
            await connect(*((ours, theirs) if ours_offers else (theirs, ours)))
        assert (ours.connectionState, theirs.connectionState) == ("connected", "connected")
    finally:
        track.stop()
        await theirs.close()
        await ours.close()


def test_what_this_aiortc_offers_is_offered_first_and_nothing_weaker_besides():
    """Ours takes the place of its list: an aiortc that offers others fails here."""
    certificate: Any = RTCCertificate.generateCertificate()

    def offered() -> list[str]:
        return SSL.Connection(certificate._create_ssl_context(SRTP_PROFILES), None).get_cipher_list()

    by_itself = offered()
    pc: Any = RTCPeerConnection()
    pc._RTCPeerConnection__certificates[:] = [certificate]
    assert accept_rsa(pc)
    assert offered() == [*by_itself, "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"]


async def test_this_aiortc_keeps_its_certificates_where_they_are_expected_and_with_another_nothing_is_changed(
    monkeypatch,
):
    pc = RTCPeerConnection()
    assert accept_rsa(pc)
    del pc._RTCPeerConnection__certificates[0]._create_ssl_context  # what was put on the object itself
    monkeypatch.setattr(RTCCertificate, "_create_ssl_context", None)
    assert not accept_rsa(pc)
    monkeypatch.delattr(pc, "_RTCPeerConnection__certificates")
    assert not accept_rsa(pc)
