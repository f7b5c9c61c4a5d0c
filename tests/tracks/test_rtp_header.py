"""RTP headers as aiortc reads them, with whatever extensions were negotiated (RFC 3550, RFC 8285)."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import pytest
from aiortc.rtcrtpparameters import RTCRtpHeaderExtensionParameters, RTCRtpParameters
from aiortc.rtp import HeaderExtensionsMap, RtpPacket

from realtime.tracks.rtp_header import RtpHeader

MID = "urn:ietf:params:rtp-hdrext:sdes:mid"
SENT = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
LEVEL = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"


def negotiated(**ids: int) -> Any:
    names = HeaderExtensionsMap()
    uris = {"mid": MID, "sent": SENT, "level": LEVEL}
    extensions = [RTCRtpHeaderExtensionParameters(id=number, uri=uris[name]) for name, number in ids.items()]
    names.configure(RTCRtpParameters(headerExtensions=extensions))
    return names


@pytest.mark.parametrize(
    ("ids", "level"),
    list(
        product(
            [
                {},
                {"mid": 1},
                {"sent": 3},
                {"level": 2},
                {"mid": 1, "level": 2},
                {"mid": 1, "sent": 3, "level": 2},
                {"mid": 14, "sent": 1},
                {"mid": 15, "sent": 200, "level": 3},
            ],
            [None, 0, 31, 127],
        )
    ),
)
def test_a_header_says_what_was_negotiated_and_nothing_else(ids, level):
    names = negotiated(**ids)
    header = RtpHeader(111, 0x87654321, "audio-0", names)
    for number, timestamp, marker, sent in ((0, 0, True, 0), (65_535, 0xFFFFFFFF, False, 0xABCDEF), (7, 960, False, 1)):
        data = header.write(number, timestamp, marker=marker, sent=sent, level=level) + b"payload"
        packet = RtpPacket.parse(data, names)
        found = packet.payload_type, packet.sequence_number, packet.timestamp, packet.ssrc, packet.marker
        assert found == (111, number, timestamp, 0x87654321, int(marker))
        assert packet.payload == b"payload"
        assert packet.csrc == []
        assert packet.padding_size == 0
        extensions = packet.extensions
        assert extensions.mid == ("audio-0" if "mid" in ids else None)
        assert extensions.abs_send_time == (sent if "sent" in ids else None)
        assert extensions.audio_level == ((False, level) if "level" in ids and level is not None else None)
        assert packet.serialize(names) == data


def test_a_long_name_of_the_section_takes_the_other_form():
    """More than 16 bytes do not fit the one-byte form (RFC 8285, 4.2)."""
    names = negotiated(mid=1, sent=3)
    data = RtpHeader(96, 1, "a-name-of-twenty-chars", names).write(5, 6, marker=False, sent=0x123456)
    assert struct.unpack_from("!H", data, 12) == (0x1000,)
    extensions = RtpPacket.parse(data, names).extensions
    assert (extensions.mid, extensions.abs_send_time) == ("a-name-of-twenty-chars", 0x123456)


def test_without_a_section_it_is_not_said():
    names = negotiated(mid=1)
    assert RtpHeader(96, 1, None, names).write(5, 6, marker=False) == struct.pack("!BBHLL", 0x80, 96, 5, 6, 1)
