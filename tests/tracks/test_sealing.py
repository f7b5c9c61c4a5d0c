"""Packets on their way out, protected in place: what another SRTP session opens, and what is refused."""

from __future__ import annotations

import os
import struct
from types import SimpleNamespace
from typing import Any

import pylibsrtp
import pytest

from realtime.tracks.aiortc_internals import sealing
from realtime.tracks.aiortc_internals.sealing import sealer

KEY = bytes(range(30))


def session(kind: int) -> Any:
    return pylibsrtp.Session(pylibsrtp.Policy(key=KEY, ssrc_type=kind))


def packet(number: int, size: int) -> bytes:
    return struct.pack("!BBHLL", 0x80, 96, number, 960 * number, 7) + os.urandom(size)


@pytest.fixture(params=["in place", "by pylibsrtp"])
def way(request, monkeypatch):
    """With the pylibsrtp that we know, and with one that differs."""
    if request.param == "by pylibsrtp":
        monkeypatch.setattr(sealing, "_BINDING", None)
    return request.param


def test_the_pylibsrtp_that_is_installed_seals_in_place():
    """Without it everything works, for more: that is worth a failing test."""
    sealed = sealer(session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND))(packet(1, 10))
    assert isinstance(sealed, memoryview)


@pytest.mark.usefixtures("way")
def test_what_is_sealed_another_session_opens():
    seal, other = sealer(session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND)), session(pylibsrtp.Policy.SSRC_ANY_INBOUND)
    for number, size in enumerate((0, 3, 150, 1_275, 1)):
        data = packet(number, size)
        sealed = bytes(seal(data))
        assert sealed[12 : 12 + size] != data[12:] or size < 4
        assert other.unprotect(sealed) == data


@pytest.mark.usefixtures("way")
def test_both_ways_say_the_same():
    seal, stock = (sealer(session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND)), session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND))
    for number in range(3):
        data = packet(number, 100)
        assert bytes(seal(data)) == stock.protect(data)


@pytest.mark.usefixtures("way")
def test_what_is_no_packet_is_refused():
    seal = sealer(session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND))
    with pytest.raises(pylibsrtp.Error):
        seal(b"\x80\x60")
    with pytest.raises(ValueError, match="too long"):
        seal(packet(1, 4_000))
    assert len(seal(packet(2, 10))) > 22


def test_two_calls_have_places_of_their_own():
    one, two = (sealer(session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND)) for _ in range(2))
    sealed = one(packet(1, 100))
    before = bytes(sealed)
    two(packet(2, 100))
    assert bytes(sealed) == before


@pytest.mark.parametrize("answer", [lambda *_: 0, lambda *_: 1 // 0])
def test_a_libsrtp_that_answers_otherwise_is_left_to_pylibsrtp(monkeypatch, answer):
    known: Any = sealing._BINDING
    monkeypatch.setattr(sealing, "_BINDING", SimpleNamespace(ffi=known.ffi, lib=SimpleNamespace(srtp_protect=answer)))
    stock = session(pylibsrtp.Policy.SSRC_ANY_OUTBOUND)
    assert sealer(stock) == stock.protect
