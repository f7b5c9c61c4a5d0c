"""Our sending loop in aiortc's sender, between real peers: what arrives, what is counted and reported, how it ends (A3, P4)."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import weakref
from collections.abc import AsyncIterator, Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiortc import RTCRtpSender, RTCSessionDescription, clock
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtp import RTCP_RTPFB_NACK, RtcpByePacket, RtcpRtpfbPacket, RtcpSdesPacket, RtcpSrPacket
from av import AudioFrame

from realtime.testing.loopback import connect, connected, make_peer, on_loopback
from realtime.tracks import rtp_header
from realtime.tracks.aiortc_internals import port_of, unsupported_sender
from realtime.tracks.aiortc_internals import sender as internals
from realtime.tracks.peer import attach_peer
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.reply_out import send_reply, take_back_reply, watch_packets
from realtime.tracks.sending import SendingTrack

GUARD = 60.0


def speech(ms: float, rate: int = 24_000) -> bytes:
    return (8000 * np.sin(np.arange(round(ms * rate / 1000)) * 2 * np.pi * 300 / rate)).astype("<i2").tobytes()


class Pair:
    """A peer that sends a reply, and one that notes what comes."""

    def __init__(self) -> None:
        self.ours, self.theirs = make_peer(), make_peer()
        self.reply = ReplyTrack(24_000)
        self.track: Any = None
        self.packets: list[Any] = []
        self.reports: list[Any] = []
        self.changed = asyncio.Event()
        self.theirs.on("track", self._take_track)

    async def open(self, *, direct: bool = True) -> None:
        send_reply(self.ours, self.reply, direct=direct)
        await connect(self.ours, self.theirs)

    def _take_track(self, track: Any) -> None:
        """Note packets and reports on their way into aiortc's receiver."""
        self.track = track
        receiver: Any = self.theirs.getTransceivers()[0].receiver
        rtp, rtcp = receiver._handle_rtp_packet, receiver._handle_rtcp_packet

        async def take_packet(packet: Any, arrival_time_ms: int) -> None:
            self.packets.append(packet)
            self.changed.set()
            await rtp(packet, arrival_time_ms)

        async def take_report(packet: Any) -> None:
            self.reports.append(packet)
            self.changed.set()
            await rtcp(packet)

        receiver._handle_rtp_packet, receiver._handle_rtcp_packet = take_packet, take_report

    @property
    def sender(self) -> Any:
        return self.ours.getSenders()[0]

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(GUARD):
            while not is_so():
                self.changed.clear()
                await self.changed.wait()

    async def hears(self) -> None:
        """Return once the peer hears the tone."""
        async with asyncio.timeout(GUARD):
            while np.abs((await self.track.recv()).to_ndarray().astype(int)).max() < 4_000:
                pass

    async def renegotiate(self) -> None:
        with on_loopback():
            await self.ours.setLocalDescription(await self.ours.createOffer())
            await self.theirs.setRemoteDescription(self.ours.localDescription)
            await self.theirs.setLocalDescription(await self.theirs.createAnswer())
            await self.ours.setRemoteDescription(self.theirs.localDescription)

    async def close(self) -> None:
        await self.ours.close()
        await self.theirs.close()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    made = Pair()
    yield made
    await made.close()
    made.reply.stop()


class Hum(MediaStreamTrack):
    """A track of an application's own: frames of a tone."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self.pts = 0

    async def recv(self) -> AudioFrame:
        await asyncio.sleep(0.02)
        samples = (8000 * np.sin((np.arange(960) + self.pts) * 2 * np.pi * 300 / 48_000)).astype("<i2")
        frame = AudioFrame.from_ndarray(samples[None, :], "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, self.pts, Fraction(1, 48_000)
        self.pts += 960
        return frame


def test_the_aiortc_that_is_installed_can_be_taken_over():
    assert unsupported_sender() == ""


async def test_the_peer_hears_the_reply_and_every_packet_has_its_time(pair):
    """P4, A3."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    assert port_of(pair.sender) is not None
    await pair.until(lambda: len(pair.packets) >= 50)
    await pair.hears()
    packets = pair.packets[:50]
    first = packets[0]
    numbers = [(packet.sequence_number - first.sequence_number) & 0xFFFF for packet in packets]
    assert numbers == list(range(50))
    stamps = [(packet.timestamp - first.timestamp) & 0xFFFFFFFF for packet in packets]
    assert np.diff(stamps).min() == 960  # more only where this machine stood still
    assert [packet.marker for packet in packets] == [1] + [0] * 49
    assert {packet.extensions.mid for packet in packets} == {pair.ours.getTransceivers()[0].mid}
    assert {packet.ssrc for packet in packets} == {pair.sender._ssrc}
    assert {packet.payload_type for packet in packets} == {96}


async def test_what_was_sent_is_counted_and_reported(pair):
    """The statistics, the transport's counts, and SR with SDES: as aiortc has them for what it sends itself."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: sum(isinstance(report, RtcpSrPacket) for report in pair.reports) >= 2)
    newest = [report for report in pair.reports if isinstance(report, RtcpSrPacket)][-1]
    before = [
        each for each in pair.packets if (newest.sender_info.rtp_timestamp - each.timestamp) & 0xFFFFFFFF < 1 << 31
    ]
    await pair.until(lambda: pair.packets and pair.packets[-1].timestamp != newest.sender_info.rtp_timestamp)
    info = newest.sender_info
    assert info.packet_count == len(before)
    assert info.octet_count == sum(len(packet.payload) for packet in before)
    assert info.rtp_timestamp == before[-1].timestamp
    assert abs(clock.current_ntp_time() - info.ntp_timestamp) < 60 << 32
    stats = {entry.type: entry for entry in (await pair.sender.getStats()).values()}
    outbound, transport = stats["outbound-rtp"], stats["transport"]
    assert outbound.packetsSent >= info.packet_count
    assert transport.packetsSent > outbound.packetsSent
    assert transport.bytesSent > outbound.bytesSent + 12 * outbound.packetsSent
    assert pair.sender._RTCRtpSender__cname is not None
    assert not any(isinstance(report, RtcpSdesPacket) for report in pair.reports)  # aiortc routes them to nobody


async def test_time_in_reports_goes_with_the_time_stamps(pair):
    """RFC 3550, 6.4.1: both of a report mean one moment, also when the machine stood still and the packet was late."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: sum(isinstance(report, RtcpSrPacket) for report in pair.reports) >= 2)
    one, two = [report.sender_info for report in pair.reports if isinstance(report, RtcpSrPacket)][:2]
    by_clock = (two.ntp_timestamp - one.ntp_timestamp) / 2**32
    by_stamps = ((two.rtp_timestamp - one.rtp_timestamp) & 0xFFFFFFFF) / 48_000
    assert by_clock == pytest.approx(by_stamps, abs=0.001)


async def test_a_machine_whose_time_is_set_reports_the_new_one_from_the_next_words_on(pair, monkeypatch):
    """Other streams of the peer connection, which are heard or seen beside it, are reported by that."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    set_time = clock.current_ntp_time() + (3_600 << 32)
    monkeypatch.setattr(internals, "current_ntp_time", lambda: set_time)
    pair.reply.stop_reply("one")
    seen = len(pair.packets)
    await pair.until(lambda: len(pair.packets) >= seen + 12)  # ten silent ones, and then hardly any
    pair.reply.push("two", speech(20_000))
    await pair.until(lambda: any(packet.marker for packet in pair.packets[seen:]))
    assert abs(set_time - pair.sender._RTCRtpSender__ntp_timestamp) < 60 << 32


async def test_what_the_other_side_reports_is_told(pair):
    """RTT and loss."""
    pair.reply.push("one", speech(30_000))
    await pair.open()
    async with asyncio.timeout(GUARD):
        while True:
            stats = {entry.type: entry for entry in (await pair.sender.getStats()).values()}
            remote = stats.get("remote-inbound-rtp")
            if remote is not None and remote.roundTripTime is not None:
                break
            await asyncio.sleep(0.05)
    assert remote.packetsLost == 0
    assert 0 <= remote.roundTripTime < GUARD


async def test_a_packet_that_was_lost_is_sent_again(pair, monkeypatch):
    lost: list[bytes] = []
    stock = internals.WayOut.send

    def lose_the_third(way: Any, data: bytes) -> None:
        if pair.sender._RTCRtpSender__packet_count == 2:
            lost.append(data)
        else:
            stock(way, data)

    monkeypatch.setattr(internals.WayOut, "send", lose_the_third)
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 5)
    number = int.from_bytes(lost[0][2:4], "big")
    assert number not in {packet.sequence_number for packet in pair.packets}
    request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=1, media_ssrc=pair.sender._ssrc)
    request.lost = [number, (number - 1_000) & 0xFFFF]
    await pair.sender._handle_rtcp_packet(request)
    await pair.until(lambda: number in {packet.sequence_number for packet in pair.packets})
    [again] = [packet for packet in pair.packets if packet.sequence_number == number]
    assert again.serialize(pair.sender._RTCRtpSender__rtp_header_extensions_map) == lost[0]


async def test_a_packet_is_sent_again_once_however_often_it_is_asked_for(pair):
    """One report of 1,200 bytes can ask five thousand times, and all calls of the loop would wait."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 10)
    transport, again = pair.sender.transport, list[bytes]()
    stock = transport._send_rtp

    async def send(data: bytes) -> None:
        again.append(data)
        await stock(data)

    transport._send_rtp = send
    numbers = [packet.sequence_number for packet in pair.packets[:10]]
    request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=1, media_ssrc=pair.sender._ssrc)
    request.lost = numbers * 100
    await pair.sender._handle_rtcp_packet(request)
    assert [int.from_bytes(data[2:4], "big") for data in again if data[1] & 0x7F == 96] == numbers


async def test_a_lost_packet_goes_by_its_own_stream_where_that_was_negotiated(pair):
    """RFC 4588."""
    sent: list[bytes] = []
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 3)
    pair.sender._RTCRtpSender__rtx_payload_type = 97
    lost, transport = pair.packets[1], pair.sender.transport
    stock = transport._send_rtp

    async def send(data: bytes) -> None:
        sent.append(data)
        await stock(data)

    transport._send_rtp = send
    request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=1, media_ssrc=lost.ssrc)
    request.lost = [lost.sequence_number]
    await pair.sender._handle_rtcp_packet(request)
    [again] = [data for data in sent if data[1] & 0x7F == 97]
    assert int.from_bytes(again[8:12], "big") == pair.sender._rtx_ssrc
    assert again.endswith(lost.sequence_number.to_bytes(2, "big") + lost.payload)


async def test_at_the_end_a_bye_is_sent_and_the_reply_ends(pair):
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    sender = pair.sender
    await pair.ours.close()
    await pair.until(lambda: any(isinstance(report, RtcpByePacket) for report in pair.reports))
    assert pair.reply.readyState == "ended"
    assert sender.track is None


@pytest.mark.parametrize("idle", [False, True])
async def test_a_peer_that_hangs_up_ends_the_sending(pair, idle):
    """The closed transport refuses the next packet; as with aiortc's loop, the track ends with it."""
    if not idle:
        pair.reply.push("one", speech(60_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    await pair.theirs.close()
    async with asyncio.timeout(GUARD):
        await pair.sender._RTCRtpSender__rtp_exited.wait()
    assert pair.sender.track is None
    assert pair.reply.readyState == "ended"


async def test_a_stopped_reply_ends_the_sending(pair):
    """B47: as a track of an application's own that ends."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    pair.reply.stop()
    async with asyncio.timeout(GUARD):
        await pair.sender._RTCRtpSender__rtp_exited.wait()
    assert pair.sender.track is None


async def test_a_peer_connection_closes_though_one_who_is_told_of_the_end_fails(pair, caplog):
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    pair.reply.on("ended", lambda: 1 // 0)
    async with asyncio.timeout(GUARD):
        await pair.ours.close()
    assert pair.reply.readyState == "ended"
    assert "telling of the end of the reply failed" in caplog.text


async def test_a_direction_that_negotiation_closes_is_sent_nothing_until_it_opens(pair):
    pair.reply.push("one", speech(60_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 3)
    pair.ours.getTransceivers()[0].direction = "inactive"
    await pair.renegotiate()
    count, played = pair.sender._RTCRtpSender__packet_count, pair.reply.played_ms("one")
    async with asyncio.timeout(GUARD):
        while pair.reply.played_ms("one") < played + 200:  # noqa: ASYNC110  (nothing comes that could be waited for)
            await asyncio.sleep(0.02)
    assert pair.sender._RTCRtpSender__packet_count == count
    pair.ours.getTransceivers()[0].direction = "sendrecv"
    await pair.renegotiate()
    seen = len(pair.packets)
    await pair.until(lambda: len(pair.packets) >= seen + 3)
    numbers = [packet.sequence_number for packet in pair.packets]
    assert numbers == [(numbers[0] + index) & 0xFFFF for index in range(len(numbers))]
    gaps = np.diff([packet.timestamp - pair.packets[0].timestamp & 0xFFFFFFFF for packet in pair.packets])
    assert gaps.max() >= 9_600  # what was not sent has its time


async def test_a_sender_without_a_track_waits_and_time_passes(pair):
    """A peer that is away for a moment: `replaceTrack(None)`, and back."""
    pair.reply.push("one", speech(60_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 3)
    track = pair.sender.track
    pair.sender.replaceTrack(None)
    await asyncio.sleep(0)
    count = pair.sender._RTCRtpSender__packet_count
    played = pair.reply.played_ms("one")
    await asyncio.sleep(0.2)
    assert pair.sender._RTCRtpSender__packet_count == count
    assert pair.reply.played_ms("one") == played
    pair.sender.replaceTrack(track)
    await pair.until(lambda: len(pair.packets) >= count + 3)
    steps = np.diff([(packet.timestamp - pair.packets[0].timestamp) & 0xFFFFFFFF for packet in pair.packets])
    assert steps[count - 1] >= 9_600
    numbers = [packet.sequence_number for packet in pair.packets]
    assert numbers == [(numbers[0] + index) & 0xFFFF for index in range(len(numbers))]


async def test_a_track_of_the_applications_own_is_sent_in_its_place(pair):
    """By aiortc's encoder, in the same stream: numbers and time go on."""
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 3)
    count, own = len(pair.packets), pair.sender.track
    pair.sender.replaceTrack(Hum())
    await pair.hears()
    hummed = len(pair.packets)
    pair.sender.replaceTrack(own)
    pair.reply.push("one", speech(20_000))
    await pair.until(lambda: len(pair.packets) >= max(count, hummed) + 20)
    numbers = [packet.sequence_number for packet in pair.packets]
    assert numbers == [(numbers[0] + index) & 0xFFFF for index in range(len(numbers))]
    stamps = [(packet.timestamp - pair.packets[0].timestamp) & 0xFFFFFFFF for packet in pair.packets]
    assert np.diff(stamps).min() >= 960
    assert stamps[-1] < 48_000 * GUARD
    assert {packet.extensions.audio_level is None for packet in pair.packets} == {True, False}


async def test_two_peers_hear_one_reply_and_the_second_goes_on_when_the_first_leaves(pair):
    other = Pair()
    other.reply = pair.reply
    pair.reply.push("one", speech(60_000))
    await pair.open()
    await other.open()
    await pair.until(lambda: len(pair.packets) >= 10)
    await other.until(lambda: len(other.packets) >= 10)
    assert {packet.payload for packet in pair.packets} & {packet.payload for packet in other.packets}
    await pair.ours.close()
    assert pair.reply.readyState == "live"
    seen = len(other.packets)
    await other.until(lambda: len(other.packets) >= seen + 3)
    await other.close()
    assert pair.reply.readyState == "ended"


async def test_a_reply_that_is_taken_back_goes_on_with_the_next_peer(pair):
    pair.reply.push("one", speech(60_000))
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 3)
    take_back_reply(pair.ours, pair.reply)
    assert pair.sender.track is None
    played = pair.reply.played_ms("one")
    await pair.ours.close()
    following = Pair()
    following.reply = pair.reply
    await following.open()
    await following.hears()
    assert pair.reply.readyState == "live"
    assert pair.reply.played_ms("one") > played
    await following.close()


@pytest.mark.parametrize("trouble", ["the socket is full", "others wait", "another transport"])
async def test_a_socket_that_takes_nothing_now_is_left_to_asyncio(pair, trouble):
    """A full socket, packets that wait in front, a relay's transport or uvloop's."""
    pair.reply.push("one", speech(30_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    port = port_of(pair.sender)
    assert port is not None
    way: Any = port._way
    assert way._at_once is not None  # this machine's loop is asyncio's own
    by_asyncio: list[bytes] = []
    stock = way._sendto

    def sendto(data: bytes, address: Any) -> None:
        by_asyncio.append(data)
        stock(data, address)

    def full(data: bytes, address: Any) -> None:
        raise BlockingIOError

    way._sendto = sendto
    if trouble == "the socket is full":
        way._at_once = full
    elif trouble == "others wait":
        way._udp = SimpleNamespace(_buffer=[b"before"])
    else:
        way._at_once = None
    await pair.until(lambda: len(by_asyncio) >= 3)
    way._udp = way._pair.protocol.transport
    seen = len(pair.packets)
    await pair.until(lambda: len(pair.packets) >= seen + 3)
    numbers = [packet.sequence_number for packet in pair.packets]
    assert numbers == [(numbers[0] + index) & 0xFFFF for index in range(len(numbers))]


async def test_whoever_asks_is_told_of_every_packet_before_it_goes_out(pair):
    """What the page's reports of what was heard are measured by."""
    told: list[int] = []
    pair.reply.push("one", speech(20_000))
    send_reply(pair.ours, pair.reply)
    watch_packets(pair.sender, told.append)
    watch_packets(object(), told.append)
    await pair.open()
    await pair.until(lambda: len(pair.packets) >= 5)
    stamps = [packet.timestamp for packet in pair.packets]
    assert told[: len(stamps)] == stamps


def without_bundle(description: Any) -> Any:
    sdp = re.sub(r"a=group:BUNDLE[^\r]*\r\n", "", description.sdp)
    return RTCSessionDescription(type=description.type, sdp=sdp)


async def test_a_reply_that_negotiation_moves_to_another_transport_goes_on_there(pair):
    """The other side offers one transport for all, after one for each: aiortc stops the reply's, and so would end the reply."""
    theirs, ours = pair.theirs, pair.ours
    theirs.addTransceiver("video", direction="recvonly")
    theirs.addTransceiver("audio", direction="recvonly")
    with on_loopback():
        await theirs.setLocalDescription(await theirs.createOffer())
        await ours.setRemoteDescription(without_bundle(theirs.localDescription))
        send_reply(ours, pair.reply)
        await ours.setLocalDescription(await ours.createAnswer())
        await theirs.setRemoteDescription(without_bundle(ours.localDescription))
        await connected(ours, theirs)
        picture, sound = ours.getTransceivers()
        before, after = sound.sender.transport, picture.sender.transport
        pair.reply.on("ended", pair.changed.set)
        pair.reply.push("one", speech(60_000))
        sent: list[int] = []
        watch_packets(sound.sender, lambda stamp: (sent.append(stamp), pair.changed.set()))
        await pair.until(lambda: len(sent) >= 5)

        await theirs.setLocalDescription(await theirs.createOffer())
        await ours.setRemoteDescription(theirs.localDescription)
    assert before.state == "closed"
    assert sound.sender.transport is after is not before
    seen, counted = len(sent), after._RTCDtlsTransport__tx_packets
    await pair.until(lambda: len(sent) >= seen + 10 or pair.reply.readyState == "ended")
    assert pair.reply.readyState == "live"
    assert after._RTCDtlsTransport__tx_packets >= counted + 9
    await after.stop()
    await pair.until(lambda: pair.reply.readyState == "ended")


# -- where it is not ours -----------------------------------------------------------------------------------------------


async def test_with_stock_aiortc_wanted_it_is_aiortc_that_sends(pair):
    """`session.attach(pc, direct=False)`."""
    attach_peer(pair.ours, reply_track=pair.reply, on_track=print)
    assert port_of(pair.sender) is None
    pair.reply.push("one", speech(20_000))
    await connect(pair.ours, pair.theirs)
    await pair.hears()


@pytest.mark.parametrize("name", ["_run_rtp", "_retransmit", "_next_encoded_frame"])
def test_an_aiortc_that_differs_is_left_alone(monkeypatch, name):
    def differs(self: Any, something_else: Any) -> None:
        del self, something_else

    monkeypatch.setattr(RTCRtpSender, name, differs)
    assert name in unsupported_sender()
    monkeypatch.delattr(RTCRtpSender, name)
    assert unsupported_sender() == f"RTCRtpSender.{name} is gone"


async def test_with_an_aiortc_that_differs_aiortc_sends(pair, monkeypatch):
    monkeypatch.setattr(internals, "_COUNTS", ("a_count_that_is_not_there",))
    pair.reply.push("one", speech(20_000))
    await pair.open()
    assert port_of(pair.sender) is None
    await pair.hears()


def no_pairs(_: Any) -> None:
    raise KeyError(1)


def other_extensions(**_: Any) -> None:
    raise TypeError("unexpected keyword argument 'mid'")


@pytest.mark.parametrize(
    "difference",
    [
        (internals.WayOut, "_look", None),
        (internals.WayOut, "_look", no_pairs),
        (rtp_header, "HeaderExtensions", other_extensions),
    ],
)
async def test_what_is_found_to_differ_when_it_begins_is_left_to_aiortc(pair, monkeypatch, caplog, difference):
    """An aioice or aiortc that differs: the loop is ours, and hands over to aiortc's."""
    caplog.set_level(logging.INFO, "realtime.tracks.aiortc_internals")
    monkeypatch.setattr(*difference)
    pair.reply.push("one", speech(20_000))
    await pair.open()
    assert port_of(pair.sender) is not None
    await pair.hears()
    assert "the reply is sent by aiortc" in caplog.text


async def test_another_codec_is_sent_by_aiortc(pair):
    send_reply(pair.ours, pair.reply)
    wanted = [each for each in RTCRtpSender.getCapabilities("audio").codecs if each.name == "PCMU"]
    pair.ours.getTransceivers()[0].setCodecPreferences(wanted)
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.hears()
    assert {packet.payload_type for packet in pair.packets} == {0}


async def test_a_loop_that_has_begun_is_left_alone(pair):
    await pair.open(direct=False)
    assert internals.take_over_sender(pair.sender, lambda *_: None) is None
    own = Pair()
    await own.open()
    assert internals.take_over_sender(own.sender, lambda *_: None) is None
    await own.close()
    own.reply.stop()


async def test_what_fails_while_sending_ends_it_and_is_logged(pair, caplog):
    """As in aiortc, where the loop that sends ends."""
    pair.reply.push("one", speech(20_000))
    await pair.open()
    await pair.until(lambda: pair.packets)
    port = port_of(pair.sender)
    assert port is not None
    port.on_sent = lambda _: 1 // 0
    async with asyncio.timeout(GUARD):
        await pair.sender._RTCRtpSender__rtp_exited.wait()
    assert "sending the reply failed" in caplog.text
    assert pair.sender.track is None


async def test_nothing_of_a_closed_call_stays():
    """A server takes calls for weeks."""

    async def hold_a_call() -> list[weakref.ref[Any]]:
        pair = Pair()
        pair.reply.push("one", speech(20_000))
        await pair.open()
        await pair.until(lambda: len(pair.packets) >= 3)
        track: Any = pair.sender.track
        assert isinstance(track, SendingTrack)
        gone = [weakref.ref(each) for each in (pair.ours, pair.sender, port_of(pair.sender), track, pair.reply)]
        await pair.close()
        pair.reply.stop()
        return gone

    gone = await hold_a_call()
    async with asyncio.timeout(GUARD):
        while any(ref() is not None for ref in gone):
            await asyncio.sleep(0.01)
            gc.collect()
