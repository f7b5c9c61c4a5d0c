"""Real aiortc peers on loopback, received by our own receiver, with loss, disorder and duplicates by pattern.

architecture.md section 5; behaviour.md A1–A3, I4, I5; field cases B43 (drained for ever), B45 (the end of a track),
B57 (no drift), B65 (range).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import av
import numpy as np
import pytest
from aioice.ice import StunProtocol
from aiortc.contrib.media import MediaRelay
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtcdtlstransport import State
from aiortc.rtcrtpsender import RTCRtpSender

from realtime.testing.loopback import connect, make_peer
from realtime.tracks.aiortc_internals import receiver, short_way
from realtime.tracks.aiortc_internals.sender import WayOut
from realtime.tracks.direct import DirectReader
from realtime.tracks.peer import attach_peer
from realtime.tracks.picture_decoder import UndecodedFrame
from realtime.tracks.rtp_receiver import TrackIntake, intake_of

GUARD = 60.0
RATE = 24_000


class Packet(NamedTuple):
    """What a handler is given."""

    payload_type: int
    ssrc: int
    number: int
    timestamp: int
    marker: bool
    payload: bytes
    size: int
    sent_at: int | None
    arrived_at: float


class Voice(MediaStreamTrack):
    """Frames of 20 ms as fast as a loop turns; or Opus as ready packets."""

    kind = "audio"

    def __init__(self, frames: int = 10**9) -> None:
        super().__init__()
        self.frames = frames
        self.at = 0

    async def recv(self) -> av.AudioFrame:
        if self.at >= self.frames:
            await asyncio.Event().wait()
        await asyncio.sleep(0.002)
        wave = 9_000 * np.sin(2 * np.pi * 200 * (self.at * 960 + np.arange(960)) / 48_000)
        frame = av.AudioFrame.from_ndarray(wave.astype("<i2")[None, :], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, self.at * 960, Fraction(1, 48_000)
        self.at += 1
        return frame


class Camera(MediaStreamTrack):
    """Thirty frames a media second, five times as fast; it is turned after every `turn_after` frames."""

    kind = "video"

    def __init__(self, turn_after: int = 10**9) -> None:
        super().__init__()
        self.at = 0
        self.turn_after = turn_after

    async def recv(self) -> av.VideoFrame:
        await asyncio.sleep(0.007)
        width, height = (128, 192) if self.at // self.turn_after % 2 else (192, 128)
        picture = np.full((height * 3 // 2, width), 128, np.uint8)
        picture[:height] = np.linspace(30, 200, width, dtype=np.uint8)
        picture[:height, self.at * 4 % (width - 16) :][:, :16] = 235
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        frame.pts, frame.time_base = self.at * 3_000, Fraction(1, 90_000)
        self.at += 1
        return frame


class Looker:
    """Looks once every so many media milliseconds."""

    def __init__(self, every_ms: int) -> None:
        self.every_ms = every_ms
        self.last = -(10**9)
        self.pictures: list[Any] = []
        self.passed = 0
        self.changed = asyncio.Event()
        self.jobs: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def is_due(self, pts_ms: int) -> bool:
        return pts_ms >= self.last + self.every_ms

    def may_hold(self, pts_ms: int) -> bool:
        return pts_ms % 2 == 0

    def lull(self) -> None:
        return None

    def develop(self, frame: Any, /) -> Any:
        return frame

    def receive(self, frame: Any, arrived_at: float, /) -> None:
        assert arrived_at <= self.now()
        if isinstance(frame, UndecodedFrame):
            self.passed += 1
            return
        self.last = round(frame.pts * 1000 / 90_000)
        self.pictures.append(frame)
        self.changed.set()

    def run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], /) -> None:
        run_job(job, done, self.jobs)


JOBS: set[asyncio.Task[None]] = set()


def run_job(
    job: Callable[[], Any],
    done: Callable[[Any, BaseException | None], None],
    jobs: set[asyncio.Task[None]] = JOBS,
) -> None:
    async def work() -> None:
        try:
            result = await asyncio.get_running_loop().run_in_executor(None, job)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    task = asyncio.get_running_loop().create_task(work())
    jobs.add(task)
    task.add_done_callback(jobs.discard)


class Call:
    """A sender and a receiver that is ours."""

    def __init__(self) -> None:
        self.sender, self.receiver = make_peer(), make_peer()
        self.tracks: list[Any] = []
        self.heard = bytearray()
        self.changed = asyncio.Event()
        self.ended: list[BaseException | None] = []
        self.reader: DirectReader | None = None

    async def open(self, track: MediaStreamTrack, codec: str | None = None) -> TrackIntake:
        transceiver = self.sender.addTransceiver(track, direction="sendonly")
        if codec is not None:
            known = RTCRtpSender.getCapabilities("video").codecs
            transceiver.setCodecPreferences([c for c in known if c.mimeType in (f"video/{codec}", "video/rtx")])
        attach_peer(self.receiver, reply_track=None, on_track=self.tracks.append, run=run_job)
        await connect(self.sender, self.receiver)
        intake = intake_of(self.tracks[0])
        assert intake is not None
        on_the_way(intake, lambda _, packet: self.changed.set() or [packet])
        return intake

    def hear(self, pcm: bytes) -> None:
        self.heard += pcm
        self.changed.set()

    def read(self, intake: TrackIntake, begin: Callable[[TrackIntake], None] | None) -> DirectReader:
        self.reader = DirectReader(self.tracks[0], intake, begin, self._on_end)
        self.reader.start()
        return self.reader

    def _on_end(self, error: BaseException | None) -> None:
        self.ended.append(error)
        self.changed.set()

    async def until(self, is_so: Callable[[], bool], changed: asyncio.Event | None = None) -> None:
        event = self.changed if changed is None else changed
        async with asyncio.timeout(GUARD):
            while not is_so():
                event.clear()
                await event.wait()

    async def aclose(self) -> None:
        await self.sender.close()
        await self.receiver.close()


@pytest.fixture
async def call() -> AsyncIterator[Call]:
    made = Call()
    yield made
    await made.aclose()


def on_the_way(intake: TrackIntake, pattern: Callable[[int, Any], list[Any]]) -> list[Any]:
    """Let a pattern decide what of each packet arrives; gives the packets that did."""
    port: Any = intake._port
    arrive = port.receive_rtp
    arrived: list[Any] = []
    count = [0]

    def receive(*packet: Any) -> None:
        count[0] += 1
        for each in pattern(count[0], Packet(*packet)):
            arrived.append(each)
            arrive(*each)

    port.receive_rtp = receive
    return arrived


def _rough(index: int, packet: Any, held: list[Any]) -> list[Any]:
    """Every fifth lost, every seventh twice, every eleventh after the next."""
    if index % 11 == 0:
        held.append(packet)
        return []
    given = [packet, *held]
    held.clear()
    if index % 5 == 0:
        return given[1:]
    return given * 2 if index % 7 == 0 else given


async def test_a_voice_is_whole_and_exact_through_loss_disorder_and_duplicates(call):
    intake = await call.open(Voice())
    held: list[Any] = []
    arrived = on_the_way(intake, lambda index, packet: _rough(index, packet, held))
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > 2 * RATE * 2)
    intake.end()
    times = [packet.timestamp for packet in arrived]
    length = (max(times) - min(times) + 960) / 48_000
    assert len(call.heard) / 2 / RATE == pytest.approx(length, abs=1e-6)
    loud = np.frombuffer(bytes(call.heard), "<i2").reshape(-1, 480).astype(float)
    rms = np.sqrt((loud**2).mean(axis=1))
    assert (rms[10:] > 500).all()  # no hole anywhere


async def test_a_voice_without_trouble_is_delivered_packet_by_packet(call):
    intake = await call.open(Voice())
    pieces: list[int] = []
    call.read(intake, lambda intake: intake.listen(RATE, lambda pcm: pieces.append(len(pcm)) or call.hear(pcm)))
    await call.until(lambda: len(pieces) >= 50)
    assert set(pieces) == {960}
    assert intake.voice_statistics().concealed_ms == 0


async def test_a_voice_that_pauses_goes_on_with_what_comes_next(call):
    """Mute, and another track in its place: replaceTrack."""
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    sender = call.sender.getSenders()[0]
    sender.replaceTrack(None)
    packets = intake.packets
    sender.replaceTrack(Voice())
    before = len(call.heard)
    await call.until(lambda: intake.packets > packets + 30 and len(call.heard) > before + 30 * 480)
    assert not call.ended


@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_pictures_come_by_asking_and_what_is_not_looked_at_is_not_decoded(call, codec):
    """PLI over the wire, a real encoder's answer, in real packets."""
    intake = await call.open(Camera(), codec)
    looker = Looker(1_000)
    call.read(intake, lambda intake: intake.look(looker, decodes_all=False))
    await call.until(lambda: len(looker.pictures) >= 4, looker.changed)
    video = intake.video
    assert video is not None
    assert video.key_requests >= 2
    assert video.undecoded > video.frames / 2
    assert video.faults == 0
    assert looker.passed > 0
    luma = np.frombuffer(looker.pictures[-1].planes[0], np.uint8).reshape(-1, looker.pictures[-1].planes[0].line_size)
    assert luma[:128, :192].max() > 220  # the bar is there, in limited range as it was sent (B65)
    assert luma[:128, :192].min() >= 16


@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_pictures_go_on_through_loss_and_turns(call, codec):
    """I5; every thirteenth packet is lost."""
    intake = await call.open(Camera(turn_after=40), codec)
    looker = Looker(400)
    on_the_way(intake, lambda index, packet: [] if index % 13 == 0 else [packet])
    call.read(intake, lambda intake: intake.look(looker, decodes_all=False))
    sizes: set[tuple[int, int]] = set()

    def has_seen_both() -> bool:
        sizes.update((picture.width, picture.height) for picture in looker.pictures)
        return len(looker.pictures) >= 5 and sizes == {(192, 128), (128, 192)}

    await call.until(has_seen_both, looker.changed)
    times = [picture.pts for picture in looker.pictures]
    assert times == sorted(set(times))


@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_what_was_lost_is_asked_for_and_sent_again(call, codec):
    """NACK and RTX (RFC 4585, RFC 4588): where every frame is wanted, none is missing."""
    intake = await call.open(Camera(), codec)
    looker = Looker(0)
    media: list[int] = []

    def lose(index: int, packet: Any) -> list[Any]:
        media.append(packet.ssrc)
        return [] if index % 13 == 0 and packet.ssrc == media[0] else [packet]

    on_the_way(intake, lose)
    call.read(intake, lambda intake: intake.look(looker, decodes_all=True))
    await call.until(lambda: len(looker.pictures) >= 80, looker.changed)
    times = [picture.pts for picture in looker.pictures]
    assert {b - a for a, b in pairwise(times)} <= {2_999, 3_000, 3_001}
    assert len(set(media)) == 2
    assert intake.video is not None
    assert intake.video.faults == 0


async def test_without_the_short_way_all_is_the_same(call, monkeypatch):
    """An aiortc whose transport differs: packets come by its own way."""
    monkeypatch.setattr(receiver, "short_way", lambda _: None)
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    assert intake.voice_statistics().concealed_ms == 0


@pytest.mark.parametrize("is_own_loop", [True, False])
async def test_media_does_not_come_by_way_of_stuns_parser(call, monkeypatch, is_own_loop):
    """Read by ourselves; or, where the loop or the way (TURN) is another, taken before aioice looks at it."""
    if not is_own_loop:
        monkeypatch.setattr(short_way, "read_ourselves", lambda *_: False)
    parsed: list[bytes] = []
    handed_on = StunProtocol.datagram_received

    def receive(self: StunProtocol, data: bytes, addr: Any) -> None:
        parsed.append(data)
        handed_on(self, data, addr)

    monkeypatch.setattr(StunProtocol, "datagram_received", receive)
    intake = await call.open(Camera(), "VP8")
    looker = Looker(200)
    call.read(intake, lambda intake: intake.look(looker, decodes_all=False))
    await call.until(lambda: intake.packets >= 200)
    media = [data for data in parsed if 127 < data[0] < 192 and not 192 <= data[1] <= 223]
    assert 1 <= len(media) < 50  # what came before the first had shown whose it is
    assert any(data[0] < 4 for data in parsed)  # STUN still does
    assert intake.video is not None
    assert intake.video.faults == 0
    connection = call.receiver.getReceivers()[0].transport.transport._connection
    (pair,) = connection._nominated.values()
    assert ("datagram_received" in vars(pair.protocol)) is not is_own_loop


@pytest.mark.parametrize("is_own_loop", [True, False])
async def test_consent_is_asked_for_and_given_while_media_comes(call, monkeypatch, is_own_loop):
    """RFC 7675: STUN in both directions on the socket that media comes by."""
    if not is_own_loop:
        monkeypatch.setattr(short_way, "read_ourselves", lambda *_: False)
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: intake.packets > 20)
    ends = call.sender.getSenders()[0], call.receiver.getReceivers()[0]
    for connection in (end.transport.transport._connection for end in ends):
        (pair,) = connection._nominated.values()
        answer, _ = await pair.protocol.request(
            connection.build_request(pair, nominate=False),
            pair.remote_addr,
            integrity_key=connection.remote_password.encode(),
        )
        assert "XOR-MAPPED-ADDRESS" in answer.attributes
    packets = intake.packets
    await call.until(lambda: intake.packets > packets + 20)


@pytest.mark.parametrize("is_own_loop", [True, False])
async def test_a_strangers_datagrams_do_not_end_the_call(call, monkeypatch, is_own_loop):
    """Nothing at all, and more than SRTP takes: each ends aiortc's transport by an error that it does not expect."""
    if not is_own_loop:
        monkeypatch.setattr(short_way, "read_ourselves", lambda *_: False)
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: intake.packets > 20)
    connection = call.receiver.getReceivers()[0].transport.transport._connection
    (pair,) = connection._nominated.values()
    address = pair.protocol.transport.get_extra_info("sockname")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"\x80", b"\x80\x60" + bytes(1_600), b"\x80\x60" + bytes(30_000), b"\x16" + bytes(3_000)):
            stranger.sendto(data, address)
    packets = intake.packets
    await call.until(lambda: intake.packets > packets + 50)
    assert call.receiver.connectionState == "connected"
    assert not call.ended


@pytest.mark.parametrize("is_own_loop", [True, False])
async def test_a_long_datagram_reaches_dtls_whole(call, monkeypatch, is_own_loop):
    """A record of DTLS may have 16 KB (RFC 6347): one that were cut off could not be read, and the data channel would wait."""
    if not is_own_loop:
        monkeypatch.setattr(short_way, "read_ourselves", lambda *_: False)
    intake = await call.open(Voice())
    await call.until(lambda: intake.packets > 5)
    ours, theirs = call.receiver.getReceivers()[0].transport, call.sender.getSenders()[0].transport
    came: list[bytes] = []

    async def take(data: bytes) -> None:
        came.append(data)
        call.changed.set()

    ours._register_data_receiver(SimpleNamespace(_handle_data=take, _handle_disconnect=lambda: None))
    theirs._ssl.send(b"word" * 4_000)
    record = theirs._ssl.bio_read(65_536)
    assert len(record) > 16_000
    await theirs.transport._send(record)
    await call.until(lambda: bool(came))
    assert came[0] == (b"word" * 4_000)[: len(came[0])]  # aiortc reads so much of a record at a time
    assert call.receiver.connectionState == "connected"


async def test_a_forged_packet_is_not_taken(call):
    """Without the key nobody speaks: a packet in the clear, of a stream that is known."""
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    (source,) = call.receiver.getReceivers()[0].getSynchronizationSources()
    connection = call.receiver.getReceivers()[0].transport.transport._connection
    payload_type = call.receiver.getTransceivers()[0]._codecs[0].payloadType
    header = bytes([0x80, payload_type]) + bytes(6) + source.source.to_bytes(4, "big")
    before = intake.packets
    for forged in (header + bytes(40), header[:11], header, b"\x9f" + header[1:] + bytes(3)):
        connection.data_received(forged, 1)
    assert intake.packets == before
    await call.until(lambda: intake.packets > before + 5)


async def test_the_sender_is_told_the_truth_about_loss(call):
    """Frames that are not decoded are not lost: a sender that believed so would lower its rate."""
    intake = await call.open(Camera(), "VP8")
    call.read(intake, None)
    async with asyncio.timeout(GUARD):
        while True:
            report = await call.sender.getSenders()[0].getStats()
            told = [entry for entry in report.values() if entry.type == "remote-inbound-rtp"]
            if told and intake.packets > 100:
                break
            await asyncio.sleep(0.05)
    assert told[0].packetsLost == 0
    assert told[0].fractionLost == 0
    video = intake.video
    assert video is not None
    assert video.undecoded == video.frames > 0


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_a_sender_is_told_goes_out_at_once_or_by_aiortc_where_that_differs(call, monkeypatch, is_known):
    """PLI, RR, REMB: protected and sent where it comes up. An aiortc or aioice that differs sends it in a task."""
    if not is_known:
        monkeypatch.delattr(WayOut, "_look")
    intake = await call.open(Camera(), "VP8")
    looker = Looker(1_000)
    call.read(intake, lambda intake: intake.look(looker, decodes_all=False))
    await call.until(lambda: len(looker.pictures) >= 3, looker.changed)
    port = intake._port
    assert port is not None
    assert intake.video is not None
    assert intake.video.key_requests >= 1
    transport = port._transport
    sent = transport._RTCDtlsTransport__tx_packets
    intake.request_key_frame()
    assert len(port._tasks) == (not is_known)
    assert transport._RTCDtlsTransport__tx_packets - sent == is_known
    await call.until(lambda: not port._tasks)
    assert transport._RTCDtlsTransport__tx_packets > sent
    monkeypatch.setattr(transport, "_state", State.CLOSED)
    intake.request_key_frame()  # nobody to tell


async def test_our_receiver_answers_for_aiortcs(call):
    """Statistics and sources, as an application asks for them."""
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    receiver = call.receiver.getReceivers()[0]
    report = await receiver.getStats()
    (inbound,) = [entry for entry in report.values() if entry.type == "inbound-rtp"]
    assert inbound.packetsReceived > 10
    assert inbound.packetsLost == 0
    assert any(entry.type == "inbound-rtp" for entry in (await call.receiver.getStats()).values())
    (source,) = receiver.getSynchronizationSources()
    assert source.source == inbound.ssrc


async def test_a_track_that_nobody_wants_is_drained_and_keeps_nothing(call):
    """B43 (unread-track)."""
    track = Camera()
    intake = await call.open(track, "VP8")
    call.read(intake, None)
    await call.until(lambda: intake.packets >= 150)
    assert call.tracks[0]._queue.qsize() == 0
    video = intake.video
    assert video is not None
    assert video._chain is None
    assert call.reader is not None
    assert call.reader.undecoded == call.reader.frames


async def test_two_voices_of_one_peer_are_two(call):
    """B43 (unread-track): an offer with two audio tracks; each is drained, and none is taken for the other."""
    call.sender.addTransceiver(Voice(), direction="sendonly")
    await call.open(Voice())
    assert len(call.tracks) == 2
    heard = [bytearray(), bytearray()]
    for track, sound in zip(call.tracks, heard, strict=True):
        intake = intake_of(track)
        assert intake is not None
        on_the_way(intake, lambda _, packet: call.changed.set() or [packet])
        DirectReader(track, intake, lambda intake, sound=sound: intake.listen(RATE, sound.extend)).start()
    await call.until(lambda: all(len(sound) > RATE for sound in heard))


async def test_relays_of_the_track_do_not_hold_the_session_up(call):
    """B44 (relay-lag): a slow subscriber gets the newest, a fast one everything, the session its own."""
    intake = await call.open(Camera(), "VP8")
    looker = Looker(100)
    call.read(intake, lambda intake: intake.look(looker, decodes_all=False))
    relay = MediaRelay()
    fast, slow = relay.subscribe(call.tracks[0]), relay.subscribe(call.tracks[0], buffered=False)
    async with asyncio.timeout(GUARD):
        await slow.recv()
        quick = [await fast.recv() for _ in range(30)]
        newest = await slow.recv()
    assert newest.pts >= quick[-2].pts
    await call.until(lambda: len(looker.pictures) >= 10, looker.changed)
    assert call.tracks[0]._queue.qsize() <= 2
    fast.stop()
    slow.stop()


async def test_the_end_of_the_call_ends_the_track_once(call):
    """B45 (track-end): what waited is delivered first."""
    intake = await call.open(Voice())
    reader = call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    await call.sender.close()
    await call.until(lambda: bool(call.ended))
    assert call.ended == [None]
    assert call.tracks[0].readyState == "ended"
    assert not reader.running
    with pytest.raises(MediaStreamError):
        await call.tracks[0].recv()
    await reader.aclose()
    assert call.ended == [None]


async def test_a_track_that_the_application_stops_ends_here_too(call):
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    call.tracks[0].stop()
    await call.until(lambda: bool(call.ended))
    assert call.ended == [None]


async def test_a_reader_that_is_closed_hears_no_more_and_the_next_one_does(call):
    intake = await call.open(Voice())
    reader = call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    await reader.aclose()
    before, packets = len(call.heard), intake.packets
    await call.until(lambda: intake.packets >= packets + 20)
    assert len(call.heard) == before
    assert not intake.is_wanted
    assert not call.ended
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > before + RATE)


async def test_an_application_that_reads_the_track_itself_gets_frames_too(call):
    """A recorder beside the session: sound as the model hears it."""
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    async with asyncio.timeout(GUARD):
        frames = [await call.tracks[0].recv() for _ in range(10)]
    assert {(frame.sample_rate, frame.samples) for frame in frames} == {(RATE, 480)}
    times = [frame.pts for frame in frames]
    assert times == list(range(times[0], times[0] + 4_800, 480))
    before = len(call.heard)
    await call.until(lambda: len(call.heard) > before + 60 * 960)
    assert call.tracks[0]._queue.qsize() <= 50  # the newest second


async def test_an_application_that_reads_the_pictures_itself_gets_every_one(call):
    intake = await call.open(Camera(), "VP8")
    call.read(intake, None)
    async with asyncio.timeout(GUARD):
        frames = [await call.tracks[0].recv() for _ in range(20)]
    assert {(frame.width, frame.height) for frame in frames} == {(192, 128)}
    times = [frame.pts for frame in frames]
    assert times == sorted(set(times))
    assert not intake.is_wanted  # by a session


async def test_a_peer_that_closes_its_side_of_the_transport_ends_the_tracks(call):
    """The other side's process is gone, without a word on RTCP."""
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    transport = call.sender.getSenders()[0].transport
    await transport.stop()
    await call.until(lambda: bool(call.ended))
    assert call.ended == [None]


async def test_a_direction_that_is_closed_by_negotiation_is_not_heard(call):
    intake = await call.open(Voice())
    call.read(intake, lambda intake: intake.listen(RATE, call.hear))
    await call.until(lambda: len(call.heard) > RATE)
    call.receiver.getTransceivers()[0].receiver._enabled = False
    before = len(call.heard)
    handled = on_the_way(intake, lambda _, packet: [packet])
    voice = call.sender.getSenders()[0].track
    assert voice is not None
    async with asyncio.timeout(GUARD):
        for _ in range(20):
            await voice.recv()  # the sender takes as many meanwhile
    assert not handled
    assert len(call.heard) == before
