"""Packets from the socket to whose they are: only authentic ones, all else goes aiortc's way (RFC 3550, 3711, 5761)."""

from __future__ import annotations

import random
import struct
from types import SimpleNamespace
from typing import Any

import pylibsrtp
import pytest
from aiortc.rtp import pack_header_extensions, unpack_header_extensions

from realtime.tracks.aiortc_internals import short_way as module
from realtime.tracks.aiortc_internals import srtp
from realtime.tracks.aiortc_internals.short_way import ShortWay
from realtime.tracks.aiortc_internals.socket_reader import FOREIGN, GOES_ON, TAKEN
from realtime.tracks.aiortc_internals.srtp import PacketPlace

KEY = bytes(range(30))
SOURCE, KIND = 0x1234_5678, 96


class Taker:
    """Whose packets they are."""

    def __init__(self, *, is_burst: bool = True) -> None:
        self.sent_time_id = 3 if is_burst else 0
        self.sent_time_from = 1.0
        self.is_burst = is_burst
        self.came: list[tuple[Any, ...]] = []
        self.receiver = SimpleNamespace(_enabled=True)
        self.fault: Exception | None = None
        self.told: list[tuple[str, Exception]] = []

    def receive_rtp(self, *packet: Any) -> None:
        if self.fault is not None:
            raise self.fault
        self.came.append(packet)

    def tell_of_failure(self, what: str, error: Exception) -> None:
        self.told.append((what, error))


class Line:
    """A transport as the short way sees it, and a sender with the same key."""

    def __init__(self) -> None:
        policy = pylibsrtp.Policy
        self.sender = pylibsrtp.Session(policy(key=KEY, ssrc_type=policy.SSRC_ANY_OUTBOUND))
        self.long_way: list[bytes] = []
        connection = SimpleNamespace(data_received=lambda data, _: self.long_way.append(data), _protocols=[])
        self.transport = SimpleNamespace(
            transport=SimpleNamespace(_connection=connection),
            _rx_srtp=pylibsrtp.Session(policy(key=KEY, ssrc_type=policy.SSRC_ANY_INBOUND)),
            _RTCDtlsTransport__rx_bytes=0,
            _RTCDtlsTransport__rx_packets=0,
        )
        self.connection = connection
        self.way = ShortWay(self.transport)
        self.taker = Taker()
        self.way.learn(SOURCE, KIND, self.taker)

    def protect(
        self, number: int, payload: bytes, *, flags: int = 0x80, kind: int = KIND, between: bytes = b""
    ) -> bytes:
        header = struct.pack("!BBHLL", flags, kind, number, number * 10, SOURCE)
        return self.sender.protect(header + between + payload)

    def arrive(self, data: bytes) -> int:
        self.way._view[: len(data)] = data
        return self.way.take(len(data), 1.5)


@pytest.fixture(params=["in place", "by copies"])
def line(request: Any, monkeypatch: Any) -> Line:
    """With the pylibsrtp that we know, and with one that differs."""
    if request.param == "by copies":
        monkeypatch.setattr(srtp, "_BINDING", None)
    return Line()


def test_the_pylibsrtp_that_is_installed_opens_packets_in_place():
    """Another fails here, and is asked by its own method."""
    assert "in_place" in PacketPlace(Line().transport._rx_srtp).open.__qualname__


def test_two_calls_have_two_places():
    """Each loop may run on a thread of its own: a packet must not be written over while another loop looks at it."""
    one, other = Line(), Line()
    good = one.protect(1, b"content")
    one.way._view[: len(good)] = good
    other.arrive(other.protect(1, b"something else"))
    assert one.way.take(len(good), 0.0) == GOES_ON
    assert one.taker.came[0][5] == b"content"


def test_a_library_that_answers_otherwise_is_not_used(monkeypatch):
    def differs(*_: Any) -> int:
        raise TypeError("takes other arguments")

    known = srtp._BINDING
    monkeypatch.setattr(srtp, "_BINDING", SimpleNamespace(ffi=known.ffi, lib=SimpleNamespace(srtp_unprotect=differs)))
    line = Line()
    assert line.arrive(line.protect(1, b"content")) == GOES_ON
    assert line.taker.came[0][5] == b"content"


def test_a_packet_is_told_as_it_was_sent(line):
    assert line.arrive(line.protect(1, b"content")) == GOES_ON
    assert line.arrive(line.protect(2, b"the end", kind=KIND | 0x80)) == TAKEN
    assert line.taker.came == [
        (KIND, SOURCE, 1, 10, False, b"content", 7, None, 1.5),
        (KIND, SOURCE, 2, 20, True, b"the end", 7, None, 1.5),
    ]
    assert line.transport._RTCDtlsTransport__rx_packets == 2
    assert line.transport._RTCDtlsTransport__rx_bytes == 2 * (12 + 7 + 10)


def test_of_a_closed_direction_nothing_is_taken(line):
    """Negotiation can close it."""
    line.taker.receiver._enabled = False
    assert line.arrive(line.protect(1, b"content", kind=KIND | 0x80)) == TAKEN
    assert not line.taker.came


def test_a_packet_that_cannot_be_handled_ends_nothing(line):
    line.taker.fault = RuntimeError("no")
    assert line.arrive(line.protect(1, b"content", kind=KIND | 0x80)) == TAKEN
    assert line.taker.told == [("packet", line.taker.fault)]
    line.taker.fault = None
    line.arrive(line.protect(2, b"content"))
    assert [packet[2] for packet in line.taker.came] == [2]


def test_contributors_extensions_and_padding_are_not_content(line):
    profile, content = pack_header_extensions([(1, b"0"), (3, b"\x01\x02\x03")])
    extension = struct.pack("!HH", profile, len(content) // 4) + content
    flags = 0x80 | 0x20 | 0x10 | 2
    between = bytes(8) + extension
    line.arrive(line.protect(7, b"content" + bytes(4) + b"\x05", flags=flags, kind=KIND | 0x80, between=between))
    assert line.taker.came == [(KIND, SOURCE, 7, 70, True, b"content", 12, 0x010203, 1.5)]


def test_when_it_was_sent_is_read_of_a_frames_last_packet_only(line):
    profile, content = pack_header_extensions([(3, b"\x01\x02\x03")])
    extension = struct.pack("!HH", profile, len(content) // 4) + content
    line.arrive(line.protect(1, b"a", flags=0x90, between=extension))
    line.arrive(line.protect(2, b"b", flags=0x90, kind=KIND | 0x80, between=extension))
    assert [packet[7] for packet in line.taker.came] == [None, 0x010203]


def test_when_it_was_sent_is_read_once_it_is_asked_for(line):
    profile, content = pack_header_extensions([(3, b"\x01\x02\x03")])
    extension = struct.pack("!HH", profile, len(content) // 4) + content
    told = []
    for number, since in enumerate((1.0, 1.5, 1.6)):
        line.taker.sent_time_from = since
        line.arrive(line.protect(number, b"b", flags=0x90, kind=KIND | 0x80, between=extension))
        told.append(line.taker.came[-1][7])
    assert told == [0x010203, 0x010203, None]


@pytest.mark.parametrize("seed", range(300))
def test_when_it_was_sent_is_read_as_aiortc_reads_it(seed):
    """Of extensions in both forms and any order, with padding between; of damaged ones nothing is read behind their end."""
    rng = random.Random(seed)
    longest = rng.choice([16, 40])  # the second form is for longer ones
    known = [
        (number, rng.randbytes(rng.choice([1, 3, 3, longest])))
        for number in rng.sample(range(1, 15), rng.randrange(1, 5))
    ]
    profile, content = pack_header_extensions(known)
    content = bytearray(content)
    if rng.random() < 0.3:
        content = bytearray(4) + content
    if rng.random() < 0.3:
        content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.1:
        profile = rng.randrange(65_536)
    wanted = rng.choice(known)[0]
    read = module._sent_at(wanted, memoryview(struct.pack("!HH", profile, len(content) // 4) + content))
    try:
        found = unpack_header_extensions(profile, bytes(content))
    except ValueError:
        return  # damaged: what came before that is read by us
    if not any(number in {15, 0} for number, _ in found) or profile != 0xBEDE:
        assert read == next(
            (int.from_bytes(at, "big") for number, at in found if number == wanted and len(at) == 3), None
        )


def test_of_header_extensions_nothing_is_read_behind_the_one_that_stops():
    """RFC 8285, 4.2."""
    content = b"\xf0\x00\x32\x01\x02\x03\x00\x00"
    assert module._sent_at(3, memoryview(struct.pack("!HH", 0xBEDE, 2) + content)) is None
    assert module._sent_at(3, memoryview(struct.pack("!HH", 0xBEDE, 2) + content[2:] + bytes(2))) == 0x010203


@pytest.mark.parametrize("content", [b"\x33\x01\x02\x03", b"\x30\x01\x00\x00", b"\x3f\x01\x02\x03"])
def test_damaged_header_extensions_are_none_and_the_packet_is_one(line, content):
    between = struct.pack("!HH", 0xBEDE, 1) + content
    line.arrive(line.protect(1, b"payload", flags=0x90, kind=KIND | 0x80, between=between))
    assert line.taker.came == [(KIND, SOURCE, 1, 10, True, b"payload", 7, None, 1.5)]


def test_a_packet_that_says_more_than_it_has_is_dropped(line):
    """Authentic, and wrong: cut off at its padding, with extensions longer than itself."""
    assert line.arrive(line.protect(1, b"abc\xff", flags=0xA0)) == TAKEN
    between = struct.pack("!HH", 0xBEDE, 0)
    assert line.arrive(line.protect(2, b"", flags=0x90, between=between)) == GOES_ON
    assert [packet[2] for packet in line.taker.came] == [2]


def test_what_is_forged_moves_nothing(line):
    """Without the key: in the clear, with a wrong tag, or an old one again."""
    good = line.protect(1, b"content")
    for forged in (good[:-10], good[:-1] + bytes([good[-1] ^ 1]), good[:12], good[:20] + bytes(30), bytes(1_900)):
        assert line.arrive(b"\x80" + good[1:12] + forged[12:]) != GOES_ON
    assert line.taker.came == []
    assert line.arrive(good) == GOES_ON
    assert line.arrive(good) == TAKEN
    assert len(line.taker.came) == 1


def test_a_sound_is_never_followed_by_another_at_once(line):
    line.way.forget(line.taker)
    line.way.learn(SOURCE, KIND, Taker(is_burst=False))
    assert line.arrive(line.protect(1, b"content")) == TAKEN


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x00\x00" + bytes(16),  # STUN
        b"\x16\xfe\xfd" + bytes(40),  # DTLS
        struct.pack("!BBHLL", 0x80, 200, 6, 0, SOURCE) + bytes(20),  # RTCP
        struct.pack("!BBHLL", 0x80, KIND, 6, 0, SOURCE + 1) + bytes(20),  # a stream that is not known
        struct.pack("!BBHLL", 0x80, KIND + 1, 6, 0, SOURCE) + bytes(20),  # another type of it
        b"\x80",
        b"",
    ],
)
def test_what_is_not_known_goes_the_long_way(line, data):
    line.way.learn(SOURCE, 200 & 0x7F, line.taker)
    assert line.arrive(data) == FOREIGN
    assert line.taker.came == []
    assert line.transport._RTCDtlsTransport__rx_packets == 0
    line.connection.data_received(data, 1)
    assert line.long_way == [data][: len(data)]


def test_what_would_end_the_call_at_aiortc_is_left_out(line):
    """pylibsrtp raises ValueError for what is longer than its place, aiortc IndexError for nothing at all."""
    other = struct.pack("!BBHLL", 0x80, KIND, 6, 0, SOURCE + 1)
    for data in (b"", other + bytes(1_489), other + bytes(60_000)):
        line.connection.data_received(data, 1)
    assert line.long_way == []
    line.connection.data_received(other + bytes(1_488), 1)
    assert len(line.long_way) == 1


def test_on_the_long_way_a_known_stream_is_taken_too(line):
    """TURN, and a connection whose sockets we do not read."""
    line.connection.data_received(line.protect(1, b"content"), 1)
    assert [packet[5] for packet in line.taker.came] == [b"content"]
    assert line.long_way == []


def test_streams_that_are_remembered_are_bounded(line):
    for source in range(10 * module._MAX_LEARNED):
        line.way.learn(source, KIND, line.taker)
    assert len(line.way._takers) == module._MAX_LEARNED
    line.way.forget(line.taker)
    assert line.way._takers == {}
