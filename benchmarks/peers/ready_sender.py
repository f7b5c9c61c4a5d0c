"""Sends packets that are ready, at less cost than aiortc's own sender: the user of many calls must leave the processors to the called side.

Only what comes before encryption is short: encryption, ICE, reports, and what is asked for (key frames, packets again) are aiortc's.
"""

from __future__ import annotations

import asyncio
import re
import struct
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import count
from typing import Any

import av
from aiortc import RTCRtpCodecParameters
from aiortc.codecs import get_encoder

HISTORY = 1024
"""Packets that can be asked for again."""
KEY_INTERVAL_SECONDS = 0.3
"""Key frames are given at least so far apart, as browsers do it."""
ABS_SEND_TIME = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
MID = "urn:ietf:params:rtp-hdrext:sdes:mid"
_SPREAD = 0.618
"""Of a period: so much later each call begins, so that no two send at the same time."""


def payloads_of(mime_type: str, clock_hz: int, frames: Sequence[bytes]) -> list[list[bytes]]:
    """What aiortc makes of encoded frames: for each its RTP payloads."""
    encoder = get_encoder(RTCRtpCodecParameters(mimeType=mime_type, clockRate=clock_hz, payloadType=96))
    made: list[list[bytes]] = []
    for frame in frames:
        packet: Any = av.Packet(frame)
        packet.pts, packet.time_base = 0, Fraction(1, clock_hz)
        made.append(encoder.pack(packet)[0])
    return made


class ReadySender:
    """Takes the place of what a transceiver's sender does with its track."""

    def __init__(
        self, transceiver: Any, frames: list[list[bytes]], per_second: int, clock_hz: int, number: int
    ) -> None:
        """Prepare; it begins once the call is connected.

        Args:
            transceiver: Whose sender it is; its track is never asked for anything.
            frames: The payloads of each frame, sent in a circle.
            per_second: How many frames a second.
            clock_hz: Ticks a second of the time stamps.
            number: Which call it is.
        """
        self._transceiver = transceiver
        self._frames = frames
        self._period = 1 / per_second
        self._ticks = clock_hz // per_second
        self._phase = number * _SPREAD % 1 * self._period
        self._at = 0
        self._sequence = count(1)
        self._timestamp = 0
        self._sent: dict[int, bytes] = {}
        self._last_key = 0.0
        sender = transceiver.sender
        sender._run_rtp = self._run
        sender._send_keyframe = self._restart
        sender._retransmit = self._send_again

    async def _run(self, codec: RTCRtpCodecParameters) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = self._transceiver.sender.transport  # not before: media that are bundled share one
        self._first = struct.pack(">BB", 0x90, codec.payloadType)
        self._last = struct.pack(">BB", 0x90, codec.payloadType | 0x80)
        self._source = struct.pack(">I", self._transceiver.sender._ssrc)
        self._due = self._loop.time() + self._phase
        self._loop.call_at(self._due, self._send)
        await self._loop.create_future()

    def extend(self, sdp: str) -> None:
        """Learn from the offer how its header extensions are numbered."""
        media = next(part for part in sdp.split("\nm=") if f"a=mid:{self._transceiver.mid}\r" in part)
        numbers = {uri: int(number) for number, uri in re.findall(r"a=extmap:(\d+) (\S+)", media)}
        self._mid = bytes([numbers[MID] << 4]) + self._transceiver.mid.encode()
        self._time_id = numbers.get(ABS_SEND_TIME)

    def _extensions(self) -> bytes:
        if self._time_id is None:
            return b"\xbe\xde\x00\x01" + self._mid + b"\0\0"
        now = int(time.monotonic() * (1 << 18)) & 0xFFFFFF
        return b"\xbe\xde\x00\x02" + self._mid + bytes([self._time_id << 4 | 2]) + now.to_bytes(3, "big") + b"\0\0"

    def _send(self) -> None:
        with suppress(ConnectionError):  # the call is over
            self._send_frame()
            self._due += self._period
            self._loop.call_at(self._due, self._send)

    def _send_frame(self) -> None:
        payloads = self._frames[self._at % len(self._frames)]
        self._at += 1
        middle = struct.pack(">I", self._timestamp) + self._source + self._extensions()
        for left, payload in zip(range(len(payloads) - 1, -1, -1), payloads, strict=True):
            number = next(self._sequence) & 0xFFFF
            head = self._first if left else self._last
            packet = self._sent[number % HISTORY] = b"".join((head, struct.pack(">H", number), middle, payload))
            at_once(self._transport._send_rtp(packet))
        self._timestamp = (self._timestamp + self._ticks) & 0xFFFFFFFF

    def _restart(self) -> None:
        """A key frame was asked for: the first of the circle is one."""
        now = time.monotonic()
        if now - self._last_key >= KEY_INTERVAL_SECONDS:
            self._last_key = now
            self._at = 0

    async def _send_again(self, number: int) -> None:
        packet = self._sent.get(number % HISTORY)
        if packet is not None and packet[2:4] == struct.pack(">H", number):
            await self._transport._send_rtp(packet)


def at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing."""
    with suppress(StopIteration):
        work.send(None)
