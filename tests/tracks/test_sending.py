"""The reply on its way to peers: ready packets, one encoder, nothing while there is nothing to say (P1, P3, P4)."""

import asyncio

import av
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender
from aiortc.mediastreams import MediaStreamError
from aiortc.sdp import SessionDescription
from av import AudioFrame

from realtime.testing import ManualClock
from realtime.tracks import reply_out
from realtime.tracks.reply import JOIN_SECONDS, ReplyTrack
from realtime.tracks.reply_out import send_reply, take_back_reply
from realtime.tracks.sending import SendingTrack

SILENT_BYTES = 3


def speech(ms: float, rate: int = 24_000, level: int = 8000) -> bytes:
    return (level * np.sin(np.arange(round(ms * rate / 1000)) * 2 * np.pi * 300 / rate)).astype("<i2").tobytes()


def sounds(packet: av.Packet) -> bool:
    return len(bytes(packet)) > 60


class Call:
    """A reply track that goes to peers, under a clock by hand."""

    def __init__(self, rate: int = 24_000) -> None:
        self.clock = ManualClock(settle_rounds=6)
        self.reports: list[tuple[str, int, bool]] = []
        self.reply = ReplyTrack(rate, lambda *report: self.reports.append(report), self.clock)

    def peer(self, *, opus: bool = True) -> SendingTrack:
        return self.reply.open_sender(lambda: opus)

    async def take(self, track: SendingTrack | ReplyTrack, count: int) -> list[av.Packet]:
        """What a peer is sent next, each when it is due."""
        return [await self.finish(asyncio.create_task(track.recv())) for _ in range(count)]

    async def finish(self, pending: asyncio.Task) -> av.Packet:
        await self.clock.settle()
        while not pending.done():
            self.clock.advance(self.clock.next_wake - self.clock.now())
            await self.clock.settle()
        return pending.result()


async def test_a_peer_that_takes_opus_is_sent_ready_packets_20_ms_apart():
    """P4: exact stamps, and never ahead of the clock."""
    call = Call()
    call.reply.push("one", speech(200))
    peer = call.peer()
    times, packets = [], []
    for _ in range(5):
        packets += await call.take(peer, 1)
        times.append(round(call.clock.now(), 6))
    assert all(isinstance(packet, av.Packet) and sounds(packet) for packet in packets)
    assert [packet.pts for packet in packets] == [0, 960, 1920, 2880, 3840]
    assert packets[0].time_base == 1 / 48_000 or str(packets[0].time_base) == "1/48000"
    assert times == [0.0, 0.02, 0.04, 0.06, 0.08]
    assert call.reports[-1] == ("one", 100, False)
    assert call.reply.played_ms("one") == 100


async def test_silence_is_sent_for_a_moment_and_then_hardly_at_all():
    """Issue: silence costs next to nothing. The moment pushes the last words out of every receiver's buffer."""
    call = Call()
    peer = call.peer()
    packets = await call.take(peer, 10)
    assert [packet.pts for packet in packets] == [960 * index for index in range(10)]
    start = call.clock.now()
    reminders = await call.take(peer, 5)
    assert round(call.clock.now() - start, 6) == 2.0
    assert [packet.pts for packet in reminders] == [8640 + 19_200 * index for index in range(1, 6)]
    assert all(len(bytes(packet)) == SILENT_BYTES for packet in packets + reminders)
    assert call.reports == []


async def test_the_first_word_leaves_at_once_and_stamps_pass_over_the_silence():
    """A3, P4: what was not sent has its time."""
    call = Call()
    peer = call.peer()
    await call.take(peer, 10)
    pending = asyncio.create_task(peer.recv())
    await call.clock.run(0.1234)
    assert not pending.done()
    call.reply.push("one", speech(100))
    await call.clock.settle()
    packet = pending.result()
    assert sounds(packet)
    assert packet.pts == round((0.18 + 0.1234) * 48_000)
    assert [each.pts - packet.pts for each in await call.take(peer, 3)] == [960, 1920, 2880]
    assert call.reports[0] == ("one", 20, False)


async def test_after_the_last_word_silence_is_sent_until_the_encoder_has_nothing_more_to_say():
    call = Call()
    call.reply.push("one", speech(100))
    call.reply.end("one")
    peer = call.peer()
    packets = await call.take(peer, 5 + 25)
    assert [sounds(packet) for packet in packets[:5]] == [True] * 5
    assert len(bytes(packets[-1])) == SILENT_BYTES
    gaps = np.diff([packet.pts for packet in packets])
    assert (gaps[:13] == 960).all()
    assert (gaps[-3:] == 19_200).all()
    assert call.reports[-1] == ("one", 100, True)


async def test_all_peers_hear_the_whole_reply_and_it_is_encoded_once():
    call = Call()
    first, second = call.peer(), call.peer()
    for peer in (first, second, first):
        await call.take(peer, 1)
    call.reply.push("one", speech(200))
    mine, theirs = [], []
    for _ in range(8):
        both = [asyncio.create_task(peer.recv()) for peer in (first, second)]
        mine.append(await call.finish(both[0]))
        theirs.append(await call.finish(both[1]))
    assert [bytes(packet) for packet in mine] == [bytes(packet) for packet in theirs]
    assert call.reply.played_ms("one") == 160
    assert len({report[1] for report in call.reports}) == len(call.reports)


@pytest.mark.parametrize("count", [2, 4])
async def test_all_peers_that_waited_are_sent_the_reply_from_its_first_word_on(count):
    """Issue: silence is hardly sent, so the first word wakes every peer at once; none of them may miss it (P4)."""
    call = Call()
    peers = [call.peer() for _ in range(count)]
    for _ in range(15):
        pending = [asyncio.create_task(peer.recv()) for peer in peers]
        for each in pending:
            assert not sounds(await call.finish(each))
    sent: list[list[bytes]] = [[] for _ in peers]

    async def carry(peer: SendingTrack, packets: list[bytes]) -> None:
        while True:
            packet = await peer.recv()
            if sounds(packet):
                packets.append(bytes(packet))

    carrying = [asyncio.create_task(carry(*each)) for each in zip(peers, sent, strict=True)]
    await call.clock.run(0.05)
    call.reply.push("one", speech(200))
    call.reply.end("one")
    await call.clock.run(0.5)
    for task in carrying:
        task.cancel()
    assert call.reports[-1] == ("one", 200, True)
    assert len(sent[0]) >= 10
    assert all(packets == sent[0] for packets in sent)


async def test_frames_can_be_taken_beside_it_and_are_the_same_reply():
    """`reply_track.recv()` always gives AudioFrames (contract)."""
    call = Call()
    peer = call.peer()
    await call.take(peer, 1)
    await call.take(call.reply, 1)
    await call.take(peer, 1)
    call.reply.push("one", speech(200))
    call.reply.end("one")
    frames: list[AudioFrame] = []
    for _ in range(10):
        both = [asyncio.create_task(track.recv()) for track in (peer, call.reply)]
        assert sounds(await call.finish(both[0]))
        frames.append(await call.finish(both[1]))
    heard = np.concatenate([np.frombuffer(bytes(frame.planes[0]), "<i2")[:960] for frame in frames]).astype(float)
    wanted = 8000 * np.sin(np.arange(9600) * 2 * np.pi * 300 / 48_000)
    assert np.abs(heard[100:-100] - wanted[100:-100]).max() < 30
    assert call.reports[-1] == ("one", 200, True)


async def test_a_listener_that_stood_still_goes_on_with_what_is_played_now():
    """P4: no burst."""
    call = Call()
    call.reply.push("one", speech(2000))
    quick, slow = call.peer(), call.peer()
    await call.take(quick, 1)
    await call.take(slow, 1)
    await call.take(quick, 50)
    before = call.clock.now()
    caught_up = await call.take(slow, 4)
    assert call.clock.now() == pytest.approx(before + 0.02)
    assert [packet.pts // 960 for packet in caught_up] == [47, 48, 49, 50]


async def test_the_packet_after_a_stop_is_silent_for_everybody():
    """P3, B58."""
    call = Call()
    call.reply.push("one", speech(10_000))
    quick, slow = call.peer(), call.peer()
    await call.take(quick, 1)
    await call.take(slow, 1)
    await call.take(quick, 49)
    assert call.reply.stop_reply("one") == 1000
    after = [*await call.take(slow, 6), *await call.take(quick, 6)]
    loud = [np.abs(samples).max() for samples in decoded(after)]
    assert max(loud[3:]) < 1000
    assert call.reply.queued_ms() == 0
    assert call.reports[-1] == ("one", 1000, False)


def decoded(packets: list[av.Packet]) -> list[np.ndarray]:
    decoder = av.AudioCodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.format, decoder.layout = 48_000, "s16", "mono"
    return [frame.to_ndarray().astype(int) for packet in packets for frame in decoder.decode(av.Packet(bytes(packet)))]


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
async def test_every_rate_is_heard(rate):
    """A rate that Opus does not know is brought to one that it does."""
    call = Call(rate)
    call.reply.push("one", speech(200, rate))
    call.reply.end("one")
    packets = await call.take(call.peer(), 12)
    heard = np.concatenate([samples.reshape(-1) for samples in decoded(packets)]).astype(float)
    wanted = 8000 * np.sin(np.arange(9600) * 2 * np.pi * 300 / 48_000)
    error = heard[1120:9120] - wanted[1000:9000]
    assert np.sqrt(np.mean(error**2)) < 1200
    assert [packet.pts for packet in packets] == [960 * index for index in range(12)]
    assert call.reports[-1] == ("one", 200, True)


async def test_a_peer_that_takes_no_opus_is_sent_frames_without_a_gap():
    call = Call()
    call.reply.push("one", speech(60))
    call.reply.end("one")
    frames = await call.take(call.peer(opus=False), 40)
    assert all(isinstance(frame, AudioFrame) for frame in frames)
    assert [frame.pts for frame in frames] == [960 * index for index in range(40)]
    assert call.reports[-1] == ("one", 60, True)


async def test_what_a_closing_peer_stops_ends_the_reply_with_the_last_of_them():
    """As a track that aiortc was given: `session.reply_track` is a new one then."""
    call = Call()
    first, second = call.peer(), call.peer()
    await call.take(first, 1)
    first.stop()
    assert call.reply.readyState == "live"
    second.stop()
    assert call.reply.readyState == "ended"
    with pytest.raises(MediaStreamError):
        await first.recv()


async def test_a_peer_that_was_let_go_leaves_the_reply_to_the_next_one():
    """It goes on from where it is; nothing is played to nobody."""
    call = Call()
    call.reply.push("one", speech(200))
    old = call.peer()
    await call.take(old, 3)
    call.reply.release_sender(old)
    call.reply.release_sender(old)
    await call.take(old, 2)
    old.stop()
    assert call.reply.readyState == "live"
    assert call.reply.played_ms("one") == 60
    new = call.peer()
    packets = await call.take(new, 3)
    assert [sounds(packet) for packet in packets] == [True] * 3
    assert call.reply.played_ms("one") == 120


async def test_a_peer_that_has_not_begun_is_waited_for_a_while_when_the_others_are_gone():
    """Somebody who comes back is attached before the old peer connection closes; one that never comes about keeps nothing."""
    call = Call()
    first, late = call.peer(), call.peer()
    await call.take(first, 1)
    first.stop()
    assert call.reply.readyState == "live"
    await call.clock.run(JOIN_SECONDS - 1)
    assert call.reply.readyState == "live"
    await call.clock.run(2)
    assert call.reply.readyState == "ended"
    assert call.clock.waiting == 0
    with pytest.raises(MediaStreamError):
        await late.recv()
    assert late.readyState == "ended"


@pytest.mark.parametrize("by_feed", [False, True])
async def test_a_peer_that_was_waited_for_no_longer_may_begin_all_the_same(by_feed):
    call = Call()
    first, late = call.peer(), call.peer()
    await call.clock.run(JOIN_SECONDS + 1)
    assert call.reply.readyState == "live"
    await call.take(first, 1)
    if by_feed:
        late.open_feed(Sink(), print)
    else:
        await call.take(late, 1)
    first.stop()
    assert call.reply.readyState == "live"
    late.stop()
    assert call.reply.readyState == "ended"


async def test_a_reply_that_was_let_go_waits_for_the_next_one_whatever_becomes_of_those_that_try():
    call = Call()
    old, failing = call.peer(), call.peer()
    await call.take(old, 1)
    call.reply.release_sender(old)
    call.reply.let_go(failing)
    assert call.reply.readyState == "live"
    call.reply.let_go(old)
    call.peer()
    call.reply.stop()
    assert call.clock.waiting == 0


class Sink:
    """Takes packets, and loses them."""

    def send(self, payload, pts, late, *, marker):
        del payload, pts, late, marker


@pytest.mark.parametrize("how", ["closes", "fails"])
async def test_a_peer_connection_that_ends_before_it_connects_keeps_the_reply_no_longer(how):
    """aiortc stops what it has begun to send, and nothing else."""
    ours, call = RTCPeerConnection(RTCConfiguration(iceServers=[])), Call()
    other = call.peer()
    send_reply(ours, call.reply)
    await call.take(other, 1)
    other.stop()
    assert call.reply.readyState == "live"
    if how == "closes":
        await ours.close()
    else:
        ours._RTCPeerConnection__connectionState = "connecting"
        ours.emit("connectionstatechange")
        assert call.reply.readyState == "live"
        ours._RTCPeerConnection__connectionState = "failed"
        ours.emit("connectionstatechange")
    assert call.reply.readyState == "ended"
    await ours.close()


async def test_the_only_peer_connection_closes_unconnected_and_the_reply_is_there_for_the_next():
    ours, call = RTCPeerConnection(RTCConfiguration(iceServers=[])), Call()
    send_reply(ours, call.reply)
    await ours.close()
    assert call.reply.readyState == "live"
    assert call.clock.waiting == 0


@pytest.mark.parametrize("idle", [False, True])
async def test_the_end_of_the_reply_track_ends_whoever_waits(idle):
    """B47: with MediaStreamError and nothing else."""
    call = Call()
    peer = call.peer()
    await call.take(peer, 12 if idle else 1)
    pending = asyncio.create_task(peer.recv())
    await call.clock.settle()
    call.reply.stop()
    assert peer.readyState == "ended"
    with pytest.raises(MediaStreamError):
        await call.finish(pending)


async def test_a_reply_without_sound_is_reported_while_nothing_is_sent():
    call = Call()
    peer = call.peer()
    await call.take(peer, 10)
    pending = asyncio.create_task(peer.recv())
    await call.clock.run(0.1)
    call.reply.end("mute")
    await call.finish(pending)
    assert call.reports == [("mute", 0, True)]


async def test_a_cancelled_wait_leaves_nothing_behind():
    call = Call()
    peer = call.peer()
    await call.take(peer, 10)
    pending = asyncio.create_task(peer.recv())
    await call.clock.settle()
    pending.cancel()
    await asyncio.gather(pending, return_exceptions=True)
    assert call.clock.waiting == 0
    assert not call.reply._pace._idle


async def test_the_codec_that_is_sent_is_the_first_of_its_section_as_aiortc_reads_it():
    ours = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    for kind in ("video", "audio", "audio"):
        ours.addTransceiver(kind)
    known = RTCRtpSender.getCapabilities("audio").codecs
    ours.getTransceivers()[2].setCodecPreferences([each for each in known if each.name == "PCMU"])
    await ours.setLocalDescription(await ours.createOffer())
    sdp = ours.localDescription.sdp
    await ours.close()
    theirs = {each.rtp.muxId: each.rtp.codecs[0].name.lower() for each in SessionDescription.parse(sdp).media}
    assert list(theirs.values()) == ["vp8", "opus", "pcmu"]
    assert {mid: reply_out._first_codec(sdp, mid) for mid in theirs} == theirs
    assert reply_out._first_codec(sdp, "9") == reply_out._first_codec(sdp, None) == ""


# -- a real pair -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "side"), [("opus", "offers"), ("opus", "answers"), ("PCMU", "answers"), ("G722", "answers")]
)
async def test_a_real_peer_hears_the_reply_in_whatever_codec_it_takes(codec, side):
    """What is no Opus gets frames, and aiortc encodes them."""
    ours, theirs = (RTCPeerConnection(RTCConfiguration(iceServers=[])) for _ in range(2))
    reply, heard = ReplyTrack(24_000), []
    theirs.on("track", heard.append)
    reply.push("one", speech(20_000))
    try:
        wanted = [each for each in RTCRtpSender.getCapabilities("audio").codecs if each.name.lower() == codec.lower()]
        if side == "answers":
            theirs.addTransceiver("audio").setCodecPreferences(wanted)
            await theirs.setLocalDescription(await theirs.createOffer())
            await ours.setRemoteDescription(theirs.localDescription)
            send_reply(ours, reply)
            await ours.setLocalDescription(await ours.createAnswer())
            await theirs.setRemoteDescription(ours.localDescription)
        else:
            send_reply(ours, reply)
            send_reply(ours, reply)
            await ours.setLocalDescription(await ours.createOffer())
            await theirs.setRemoteDescription(ours.localDescription)
            await theirs.setLocalDescription(await theirs.createAnswer())
            await ours.setRemoteDescription(theirs.localDescription)
        [sender] = ours.getSenders()
        assert isinstance(sender.track, SendingTrack)
        async with asyncio.timeout(60):
            while np.abs((await heard[0].recv()).to_ndarray().astype(int)).max() < 4000:
                pass
        assert sender.track._is_opus is (codec == "opus")
        take_back_reply(ours, reply)
        assert sender.track is None
    finally:
        await ours.close()
        await theirs.close()
    assert reply.readyState == "live"
    reply.stop()
