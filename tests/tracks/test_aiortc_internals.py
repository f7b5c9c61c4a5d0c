"""What we rely on of aiortc beside its public interface. A new aiortc that differs fails here, and runs on its own receiver."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aioice import turn
from aioice.ice import Connection, StunProtocol
from aiortc import RTCRtpReceiver, rtcdtlstransport, rtcpeerconnection
from aiortc.mediastreams import MediaStreamError
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpreceiver import RemoteStreamTrack

import realtime
from realtime.testing.loopback import make_peer, on_loopback
from realtime.tracks import aiortc_internals
from realtime.tracks.aiortc_internals import receiver as internal_receiver
from realtime.tracks.aiortc_internals import take_over, unsupported
from realtime.tracks.rtp_receiver import intake_of, receive_directly

PRIVATE = re.compile(
    r"_(un)?register_rtp_receiver|_send_rtp\b|_stats_id|_handle_(rtp|rtcp)_packet|_handle_disconnect"
    r"|_RTCRtp\w+__|_RTCDtls\w+__|\.sender\._ssrc"
)


def test_the_aiortc_that_is_installed_can_be_taken_over():
    assert unsupported() == ""


def test_a_transport_calls_of_a_receiver_what_ours_answers():
    """`RtpReceiver`, aiortc's own protocol: a method more, and packets would be lost."""
    called = {name for name in vars(rtcdtlstransport.RtpReceiver) if name.startswith("_handle")}
    assert called == {"_handle_disconnect", "_handle_rtcp_packet", "_handle_rtp_packet"}
    for name in called:
        ours = inspect.signature(getattr(aiortc_internals.ReceiverPort, name))
        theirs = inspect.signature(getattr(RTCRtpReceiver, name))
        assert list(ours.parameters) == list(theirs.parameters)


def test_nothing_else_of_a_receiver_is_used_by_a_peer_connection():
    """What `RTCPeerConnection` and `RTCRtpTransceiver` do with a receiver: its own object, never started, answers the rest."""
    used: set[str] = set()
    for module in (rtcpeerconnection, inspect.getmodule(rtcpeerconnection.RTCRtpTransceiver)):
        assert module is not None
        used |= set(re.findall(r"receiver\.(\w+)", inspect.getsource(module)))
    assert used <= {
        "track",
        "_track",
        "_enabled",
        "transport",
        "setTransport",
        "receive",
        "stop",
        "_set_rtcp_ssrc",
        "getStats",
    }


def test_what_else_is_relied_on_is_there():
    assert "self.__started = False" in inspect.getsource(RTCRtpReceiver.__init__)
    assert "if self.__started" in inspect.getsource(RTCRtpReceiver.stop)
    assert "self._queue" in inspect.getsource(RemoteStreamTrack.recv)
    assert "for protocol in self._protocols" in inspect.getsource(Connection)
    assert list(inspect.signature(StunProtocol.datagram_received).parameters) == ["self", "data", "addr"]
    assert "self.receiver.datagram_received(" in inspect.getsource(turn)  # looked up for each, so that ours is found


def test_private_names_of_aiortc_are_touched_in_one_package_only():
    room = Path(realtime.__file__).parent / "tracks"
    touching = {path.name for path in room.glob("*.py") if PRIVATE.search(path.read_text())}
    assert touching == set()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (RTCDtlsTransport, "_register_rtp_receiver"),
        (RTCDtlsTransport, "_send_rtp"),
        (RTCRtpReceiver, "_handle_rtp_packet"),
    ],
)
def test_an_aiortc_that_differs_is_left_alone(monkeypatch, owner, name):
    def differs(self: Any, something_else: Any) -> None:
        del self, something_else

    monkeypatch.setattr(owner, name, differs)
    assert name in unsupported()
    monkeypatch.delattr(owner, name)
    assert unsupported() == f"{owner.__name__}.{name} is gone"


async def _remote_track(kind: str = "audio") -> tuple[Any, Any]:
    """A peer that was offered a track, and that track."""
    sender, receiver = make_peer(), make_peer()
    sender.addTransceiver(kind, direction="sendonly")
    with on_loopback():
        await sender.setLocalDescription(await sender.createOffer())
    await receiver.setRemoteDescription(sender.localDescription)
    await sender.close()
    return receiver, receiver.getTransceivers()[0].receiver.track


async def test_with_an_aiortc_that_differs_a_track_is_received_by_aiortc(monkeypatch):
    receiver, track = await _remote_track()
    monkeypatch.delattr(RTCDtlsTransport, "_send_rtp")
    assert receive_directly(receiver, track, lambda *_: None) is None
    assert intake_of(track) is None
    await receiver.close()


async def test_a_receiver_that_has_begun_is_left_alone():
    receiver, track = await _remote_track()
    transceiver = receiver.getTransceivers()[0]
    transceiver.receiver._RTCRtpReceiver__started = True
    assert take_over(receiver, track, lambda: pytest.fail("no handler is needed")) is None
    transceiver.receiver._RTCRtpReceiver__started = False
    await receiver.close()


async def test_what_only_aiortcs_own_way_needs_is_let_go():
    """Its estimate of the rate counts in a thousand objects; a video track of ours has another."""
    peer, track = await _remote_track("video")
    aiortcs = peer.getTransceivers()[0].receiver
    assert aiortcs._RTCRtpReceiver__remote_bitrate_estimator is not None
    assert receive_directly(peer, track, lambda *_: None) is not None
    assert aiortcs._RTCRtpReceiver__remote_bitrate_estimator is None
    await peer.close()


async def test_a_track_is_taken_over_once_and_closing_ends_it():
    receiver, track = await _remote_track()
    intake = receive_directly(receiver, track, lambda *_: None)
    assert intake is not None
    assert receive_directly(receiver, track, lambda *_: None) is intake
    assert intake_of(track) is intake
    waiting = asyncio.create_task(track.recv())
    await asyncio.sleep(0)
    await receiver.close()
    with pytest.raises(MediaStreamError):
        await waiting
    assert track.readyState == "ended"


def test_what_is_no_remote_track_has_no_intake():
    assert intake_of(object()) is None
    assert intake_of([]) is None
    assert intake_of(3) is None


class Handler:
    """Fails at packets and reports while it is told to."""

    def __init__(self) -> None:
        self.fails = False
        self.taken = 0
        self.told: list[str] = []

    def receive_rtp(self, *packet: Any) -> None:
        del packet
        self._take()

    def receive_rtcp(self, packet: Any) -> None:
        del packet
        self._take()

    def sources(self) -> list[Any]:
        return []

    def end(self) -> None: ...

    def read_by_others(self) -> None:
        self.told.append("read")

    def read_no_more(self) -> None:
        self.told.append("read no more")

    def _take(self) -> None:
        self.taken += 1
        if self.fails:
            raise RuntimeError("no")


PACKET: Any = SimpleNamespace(
    payload_type=0,
    ssrc=1,
    sequence_number=2,
    timestamp=3,
    marker=1,
    payload=b"",
    padding_size=0,
    extensions=SimpleNamespace(abs_send_time=None),
)


async def test_of_packets_that_cannot_be_handled_the_first_of_ten_seconds_is_logged(caplog, monkeypatch):
    """A peer must not be able to fill the log, and one packet never ends the connection."""
    moments = [100.0]
    monkeypatch.setattr(internal_receiver, "monotonic", lambda: moments[-1])
    peer, track = await _remote_track()
    handler: Any = Handler()
    port = take_over(peer, track, lambda: handler)
    assert port is not None
    for moment in (100.0, 109.0, 110.0):
        moments.append(moment)
        for index in range(50):
            handler.fails = index % 2 == 0
            await port._handle_rtp_packet(PACKET, 0)
            await port._handle_rtcp_packet(object())
    assert handler.taken == 300
    told = [record.message for record in caplog.records if "could not be handled" in record.message]
    assert [message.split()[1] for message in told] == ["packet", "report", "packet", "report"]
    await peer.close()


async def test_a_track_that_has_ended_or_is_closed_takes_no_packets():
    """Negotiation can close a direction, and another track can get the stream of one that has ended."""
    peer, track = await _remote_track()
    handler: Any = Handler()
    port: Any = take_over(peer, track, lambda: handler)
    forgotten: list[Any] = []
    port._way = SimpleNamespace(forget=forgotten.append, learn=lambda *_: None)
    peer.getTransceivers()[0].receiver._enabled = False
    await port._handle_rtp_packet(PACKET, 0)
    assert not handler.taken
    port.end_track()
    port.end_track()
    assert forgotten == [port]
    await peer.close()


async def test_a_track_that_nobody_reads_any_more_is_said_to_be_so():
    """An application that took one frame must not have every frame decoded for the rest of the call."""
    receiver, track = await _remote_track()
    handler: Any = Handler()
    port = take_over(receiver, track, lambda: handler)
    assert port is not None
    long_ago = asyncio.get_running_loop().time() - 3_600
    waiting = asyncio.create_task(track.recv())
    await asyncio.sleep(0)
    port._read_at = long_ago
    for index in range(80):  # in one pass of the loop: who waits has not had its turn yet
        port.queue_frame(index)
    await waiting
    await asyncio.sleep(0)
    for index in range(80):
        port.queue_frame(index)
    await asyncio.sleep(0)
    assert handler.told == ["read"]
    port._read_at = long_ago
    port.queue_frame("old")
    await asyncio.sleep(0)
    assert handler.told == ["read", "read no more"]
    port.queue_frame("newest")
    assert await track.recv() == "newest"
    assert handler.told == ["read", "read no more", "read"]
    await receiver.close()
