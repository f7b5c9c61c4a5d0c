"""Joining real aiortc peers on loopback, as the side that offers and the side that answers (architecture.md section 7)."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from fractions import Fraction

import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from aiortc.mediastreams import MediaStreamTrack
from av import AudioFrame, VideoFrame
from PIL import Image

from realtime.errors import ArgumentError, UserError
from realtime.media.audio import AudioConverter
from realtime.media.image import EncodeOptions, ResizeOptions, encode
from realtime.tracks.peer import attach_peer
from realtime.tracks.reader import TrackReader
from realtime.tracks.reply import ReplyTrack

GUARD = 30.0


class Tone(MediaStreamTrack):
    """A microphone: 20 ms frames of a tone, paced."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self.position = 0
        self.start: float | None = None

    async def recv(self) -> AudioFrame:
        now = asyncio.get_running_loop().time()
        self.start = now if self.start is None else self.start
        await asyncio.sleep(max(0.0, self.start + self.position / 48_000 - now))
        wave = 8000 * np.sin(2 * np.pi * 500 * (self.position + np.arange(960)) / 48_000)
        frame = AudioFrame.from_ndarray(wave.astype(np.int16)[None, :], "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, self.position, Fraction(1, 48_000)
        self.position += 960
        return frame


class Picture(MediaStreamTrack):
    """A camera: 15 frames a second, grey that changes, held another way after every `turn_after` frames."""

    kind = "video"

    def __init__(self, turn_after: int = 10**9) -> None:
        super().__init__()
        self.number = 0
        self.turn_after = turn_after

    async def recv(self) -> VideoFrame:
        await asyncio.sleep(1 / 15)
        frame = VideoFrame(120, 160) if self.number // self.turn_after % 2 else VideoFrame(160, 120)
        for index, plane in enumerate(frame.planes):
            plane.update(bytes([(60 + 4 * self.number % 100) if index == 0 else 128]) * plane.buffer_size)
        frame.pts, frame.time_base = self.number * 6000, Fraction(1, 90_000)
        self.number += 1
        return frame


@pytest.fixture
async def connection() -> AsyncIterator[Callable[[], RTCPeerConnection]]:
    """Make peer connections that use no server, and close them afterwards."""
    made: list[RTCPeerConnection] = []

    def make() -> RTCPeerConnection:
        made.append(RTCPeerConnection(RTCConfiguration(iceServers=[])))
        return made[-1]

    yield make
    await asyncio.gather(*(pc.close() for pc in made))


async def offer(caller: RTCPeerConnection, answerer: RTCPeerConnection) -> None:
    await caller.setLocalDescription(await caller.createOffer())
    await answerer.setRemoteDescription(caller.localDescription)


async def answer(answerer: RTCPeerConnection, caller: RTCPeerConnection) -> None:
    await answerer.setLocalDescription(await answerer.createAnswer())
    await caller.setRemoteDescription(answerer.localDescription)


class Heard:
    """Reads a track until something was loud in it."""

    def __init__(self, track: MediaStreamTrack) -> None:
        self.loud = asyncio.Event()
        self.frames: list[object] = []
        self.ended = asyncio.Event()
        self.converter = AudioConverter(24_000)
        self.reader = TrackReader(track, self.on_frame, self.on_end)
        self.reader.start()

    def on_end(self, error: BaseException | None) -> None:
        self.ended.set()

    def on_frame(self, frame: AudioFrame | VideoFrame) -> None:
        self.frames.append(frame)
        if (
            isinstance(frame, VideoFrame)
            or np.abs(np.frombuffer(self.converter.convert(frame), "<i2")).max(initial=0) > 2000
        ):
            self.loud.set()


def keep_talking(reply: ReplyTrack) -> None:
    reply.push("reply", (8000 * np.sin(np.arange(24_000 * 20) / 9)).astype("<i2").tobytes())


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_answering_side_hears_the_peer_and_is_heard(connection, when):
    """Before or after setRemoteDescription."""
    browser, agent = connection(), connection()
    browser.addTrack(Tone())
    browser.addTrack(Picture())
    replies: list[MediaStreamTrack] = []
    browser.on("track", replies.append)
    reply, tracks = ReplyTrack(24_000), []
    keep_talking(reply)
    if when == "before":
        attach_peer(agent, reply_track=reply, on_track=tracks.append)
    await offer(browser, agent)
    if when == "after":
        attach_peer(agent, reply_track=reply, on_track=tracks.append)
    await answer(agent, browser)
    assert sorted(track.kind for track in tracks) == ["audio", "video"]
    assert [track.kind for track in replies] == ["audio"]
    listeners = [Heard(track) for track in [*tracks, *replies]]
    async with asyncio.timeout(GUARD):
        for listener in listeners:
            await listener.loud.wait()
    for listener in listeners:
        await listener.reader.aclose()


async def test_the_offering_side_hears_the_peer_and_is_heard(connection):
    agent, phone = connection(), connection()
    reply, tracks = ReplyTrack(24_000), []
    keep_talking(reply)
    agent.addTransceiver("video", direction="recvonly")
    attach_peer(agent, reply_track=reply, on_track=tracks.append)
    phone.addTrack(Tone())
    phone.addTrack(Picture())
    replies: list[MediaStreamTrack] = []
    phone.on("track", replies.append)
    await offer(agent, phone)
    await answer(phone, agent)
    assert sorted(track.kind for track in tracks) == ["audio", "video"]
    listeners = [Heard(track) for track in [*tracks, *replies]]
    async with asyncio.timeout(GUARD):
        for listener in listeners:
            await listener.loud.wait()
    for listener in listeners:
        await listener.reader.aclose()


async def test_the_end_of_a_remote_track_is_noticed(connection):
    """B45: the peer hangs up."""
    browser, agent = connection(), connection()
    browser.addTrack(Tone())
    browser.addTrack(Picture())
    tracks: list[MediaStreamTrack] = []
    attach_peer(agent, reply_track=ReplyTrack(24_000), on_track=tracks.append)
    await offer(browser, agent)
    await answer(agent, browser)
    listeners = [Heard(track) for track in tracks]
    async with asyncio.timeout(GUARD):
        for listener in listeners:
            await listener.loud.wait()
        await browser.close()
        for listener in listeners:
            await listener.ended.wait()
    assert not any(listener.reader.running for listener in listeners)


async def test_lost_packets_leave_the_audio_as_long_as_it_was(connection):
    """A3, B57: one packet in ten is lost on the way, by pattern; time is kept."""
    browser, agent = connection(), connection()
    sender = browser.addTrack(Tone())
    tracks: list[MediaStreamTrack] = []
    attach_peer(agent, reply_track=None, on_track=tracks.append)
    await offer(browser, agent)
    await answer(agent, browser)
    send, count = sender.transport._send_rtp, 0

    async def lossy(data: bytes) -> None:
        nonlocal count
        count += not 192 <= data[1] <= 223  # RTCP shares the transport
        if count % 10 != 9:
            await send(data)

    sender.transport._send_rtp = lossy
    converter, frames, enough = AudioConverter(24_000), [], asyncio.Event()
    total = 0

    def on_frame(frame: AudioFrame) -> None:
        nonlocal total
        frames.append((frame.pts, frame.samples))
        total += len(converter.convert(frame)) // 2
        if converter.filled_samples >= 3 * 960:
            enough.set()

    reader = TrackReader(tracks[0], on_frame)
    reader.start()
    async with asyncio.timeout(GUARD):
        await enough.wait()
    await reader.aclose()
    total += len(converter.flush()) // 2
    lasted = frames[-1][0] + frames[-1][1] - frames[0][0]
    assert sum(samples for _, samples in frames) < lasted
    assert abs(total - lasted // 2) <= 24


async def test_a_camera_that_is_turned_in_mid_call_gives_right_pictures(connection):
    """I5: resolution changes at any frame."""
    browser, agent = connection(), connection()
    browser.addTrack(Picture(turn_after=5))
    tracks: list[MediaStreamTrack] = []
    attach_peer(agent, reply_track=None, on_track=tracks.append)
    await offer(browser, agent)
    await answer(agent, browser)
    sizes: set[tuple[int, int]] = set()
    both = asyncio.Event()

    def on_frame(frame: VideoFrame) -> None:
        data = encode(frame, EncodeOptions("JPEG", ResizeOptions(80, 80, "fit")))
        sizes.add(Image.open(io.BytesIO(data)).size)
        if len(sizes) == 2:
            both.set()

    reader = TrackReader(tracks[0], on_frame)
    reader.start()
    async with asyncio.timeout(GUARD):
        await both.wait()
    await reader.aclose()
    assert sizes == {(80, 60), (60, 80)}
    assert reader.faults == 0


async def test_a_track_that_is_there_already_is_told_once(connection):
    """The scan and the event of the same track are one."""
    browser, agent = connection(), connection()
    browser.addTrack(Tone())
    await offer(browser, agent)
    tracks: list[MediaStreamTrack] = []
    attachment = attach_peer(agent, reply_track=None, on_track=tracks.append)
    assert len(tracks) == 1
    agent.emit("track", tracks[0])
    assert len(tracks) == 1
    attachment.detach()
    attachment.detach()
    agent.emit("track", Tone())
    assert len(tracks) == 1
    assert not agent.listeners("track")


async def test_a_reply_track_that_is_sent_already_is_left_as_it_is(connection):
    agent = connection()
    reply = ReplyTrack(24_000)
    agent.addTrack(reply)
    attach_peer(agent, reply_track=reply, on_track=print)
    assert [sender.track for sender in agent.getSenders()] == [reply]


async def test_without_a_reply_nothing_is_sent(connection):
    agent = connection()
    attach_peer(agent, reply_track=None, on_track=print)
    assert agent.getSenders() == []


@pytest.mark.parametrize("side", ["offer", "answer"])
async def test_once_the_local_description_is_set_it_is_too_late(connection, side):
    browser, agent = connection(), connection()
    browser.addTrack(Tone())
    if side == "offer":
        await offer(browser, agent)
        late = browser
    else:
        await offer(browser, agent)
        await agent.setLocalDescription(await agent.createAnswer())
        late = agent
    senders = len(late.getSenders())
    with pytest.raises(UserError, match="call attach before setLocalDescription"):
        attach_peer(late, reply_track=ReplyTrack(24_000), on_track=print)
    assert len(late.getSenders()) == senders


async def test_a_closed_connection_is_refused(connection):
    agent = connection()
    await agent.close()
    with pytest.raises(UserError, match="closed"):
        attach_peer(agent, reply_track=ReplyTrack(24_000), on_track=print)


@pytest.mark.parametrize("pc", [None, "pc", object()])
async def test_what_is_no_peer_connection_is_refused(pc):
    with pytest.raises(ArgumentError, match="pc must be an aiortc RTCPeerConnection"):
        attach_peer(pc, reply_track=None, on_track=print)
