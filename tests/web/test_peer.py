"""`realtime.web.peer`: getting connected, noticing who has gone, letting go (field cases B47 and B48)."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest
from aiortc import RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from realtime.testing import ManualClock
from realtime.testing.loopback import make_peer, on_loopback
from realtime.web import WebLimits
from realtime.web import peer as peer_module
from realtime.web.bounds import check_offer
from realtime.web.errors import CallRefused
from realtime.web.transport import Heartbeat, quality_of

NEVER = "a=candidate:1 1 udp 2130706431 192.0.2.1 9 typ host"
"""An address of documentation: nothing is there."""


@pytest.fixture
async def pc() -> Any:
    made = make_peer()
    yield made
    await made.close()


async def offer(pc: Any, direction: str = "recvonly") -> str:
    """Of a peer that sends nothing."""
    pc.addTransceiver("audio", direction=direction)
    with on_loopback():
        await pc.setLocalDescription(await pc.createOffer())
    return pc.localDescription.sdp


def with_another_certificate(sdp: str) -> str:
    return re.sub(r"(a=fingerprint:\S+ )\S\S:\S\S", r"\g<1>00:00", sdp)


async def join(caller: Any, pc: Any, sdp: str) -> None:
    await caller.send(type="offer", sdp=sdp)
    answer = await caller.receive("answer")
    await pc.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))


def without_candidates(sdp: str, *more: str) -> str:
    lines = [line for line in sdp.splitlines() if "candidate" not in line]
    return "\r\n".join([*lines, *more, ""])


# -- B48: getting connected --------------------------------------------------------------------------------------------


async def test_a_peer_that_never_comes_is_given_up_at_the_deadline_with_the_step_that_is_missing(serve, call, pc):
    served = await serve(limits=WebLimits(connect_seconds=0.3))
    caller = await call(served)
    await caller.send(type="offer", sdp=without_candidates(await offer(pc), NEVER))
    told = await caller.receive("error")
    assert told["code"] == "connect_timeout"
    assert "ICE" in told["message"]
    assert "TURN" in told["message"]


async def test_a_certificate_that_is_not_the_offered_one_is_a_dtls_failure(serve, call, pc):
    served = await serve()
    caller = await call(served)
    await join(caller, pc, with_another_certificate(await offer(pc)))
    told = await caller.receive("error")
    assert told["code"] == "connect_failed"
    assert "DTLS" in told["message"]


async def test_a_connection_through_which_nothing_comes_is_told(serve, call, pc):
    served = await serve(limits=WebLimits(media_seconds=0.1))
    caller = await call(served)
    await join(caller, pc, await offer(pc, "sendrecv"))
    await caller.receive("connected")
    assert (await caller.receive("error"))["code"] == "no_media"


async def test_after_a_failure_another_offer_is_answered(serve, call, pc):
    served = await serve()
    caller = await call(served)
    await join(caller, pc, with_another_certificate(await offer(pc)))
    await caller.receive("error", code="connect_failed")
    caller.messages.clear()
    await caller.offer()
    await caller.receive("connected")


# -- B48: noticing who has gone ----------------------------------------------------------------------------------------


def cut(pc: Any) -> None:
    """The network is gone: no packet leaves or arrives, and nobody says goodbye."""
    for transceiver in pc.getTransceivers():
        for protocol in transceiver.receiver.transport.transport._connection._protocols:
            protocol.transport.abort()


async def test_a_peer_that_vanishes_is_noticed_and_the_conversation_waits_for_it(serve, call):
    served = await serve(limits=WebLimits(vanish_seconds=1.5))
    caller = await call(served)
    pc = await caller.offer()
    await caller.receive("connected")
    cut(pc)
    told = await caller.receive("error")
    assert (told["code"], told["message"]) == ("peer_lost", "nothing was heard for 1.5 s")
    await caller.hang_up()
    caller.messages.clear()
    await caller.offer()
    await caller.receive("connected")
    (running,) = served.bot.calls.values()
    assert set(running.session.statistics().tracks) == {"microphone"}


async def test_a_vanished_caller_without_a_websocket_ends_its_call_once_and_leaves_nothing(serve, call):
    served = await serve(limits=WebLimits(vanish_seconds=1.5, grace_seconds=0.2))
    caller = await call(served)
    pc = await caller.offer()
    cut(pc)
    await caller.websocket.close()
    await served.until_calls(0)


async def test_a_reply_waits_while_its_listener_is_cut_off(serve, call, model):
    """What was sent into nowhere was not heard: P0, with the page's own reports."""
    model.replies.append(" ".join(["word"] * 60))
    served = await serve(limits=WebLimits(vanish_seconds=1.5))
    caller = await call(served)
    pc = await caller.offer()
    await caller.send(type="text", text="Talk for six seconds.")
    (running,) = served.bot.calls.values()
    while caller.frames < 25 or not running.session.listener.measures:
        caller.channel.send('{"type": "played"}')
        await asyncio.sleep(0.02)
    cut(pc)
    await caller.receive("error", code="peer_lost")
    (pending,) = [each for each in running.session.pending if each.role.value == "assistant"]
    assert pending
    await caller.send(type="interrupt")
    stopped = await caller.receive("event", event="ReplyInterrupted")
    assert stopped["heard_ms"] < 1_000  # what was sent before the first report; no report said that more was heard


class FakeTransport:
    """A DTLS transport and the ICE connection beneath it."""

    def __init__(self) -> None:
        self.bytes = 0
        self.asked = 0
        self.answers = True
        self.remote_addr = ("192.0.2.1", 9)
        self.transport = self.iceGatherer = self._connection = self.protocol = self
        self.remote_password = "p"
        self._nominated = {1: self}
        self.bytesReceived = self.bytesSent = self.packetsReceived = self.packetsSent = 0

    def _get_stats(self) -> dict[str, Any]:
        self.bytesReceived = self.bytes
        return {"transport": self}

    def build_request(self, pair: Any, *, nominate: bool) -> str:
        return "request"

    async def request(self, message: Any, address: Any, **options: Any) -> None:
        self.asked += 1
        if not self.answers:
            raise ConnectionError("no answer")


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> FakeTransport:
    made = FakeTransport()
    monkeypatch.setattr("realtime.web.transport._transports", lambda _: [made])
    return made


async def test_one_that_only_listens_answers_when_it_is_asked_and_has_not_gone(transport):
    clock = ManualClock()
    heartbeat = Heartbeat(None, clock, ask_after_seconds=1)
    heartbeat.begin()
    await heartbeat.look()
    for _ in range(8):
        clock.advance(0.5)
        await heartbeat.look()
        await clock.settle()
    assert transport.asked > 1
    assert heartbeat.quiet_seconds <= 1
    await heartbeat.aclose()


async def test_one_that_does_not_answer_has_been_quiet_since_it_was_heard_last(transport):
    clock = ManualClock()
    heartbeat = Heartbeat(None, clock, ask_after_seconds=1)
    await heartbeat.look()
    transport.answers = False
    for _ in range(10):
        clock.advance(0.5)
        await heartbeat.look()
        await clock.settle()
    assert heartbeat.quiet_seconds == 5
    transport.bytes = 100
    await heartbeat.look()
    assert heartbeat.quiet_seconds == 0
    assert heartbeat.figures["received_bytes"] == 100
    await heartbeat.aclose()


async def test_hints_for_a_channel_that_has_closed_raise_nothing(serve, call):
    served = await serve()
    caller = await call(served)
    await caller.offer(camera=True)
    (running,) = served.bot.calls.values()
    peer = running.peer
    await caller.hang_up()
    await caller.receive("error", code="peer_lost")
    assert peer.send({"type": "sender"}) is False


async def test_loss_jitter_and_round_trip_of_the_sound_are_told(serve, call):
    served = await serve()
    caller = await call(served)
    await caller.offer()
    await caller.receive("connected")
    (running,) = served.bot.calls.values()
    await caller.send(type="inspect", on=True)

    def measured() -> list[dict[str, Any]]:
        return [each for each in caller.messages if each["type"] == "inspect" and "rtt_ms" in each["packets"]]

    (packets, *_) = [each["packets"] for each in await caller.until(measured)]
    assert packets["lost"] == packets["sent_lost"] == 0
    assert packets["jitter_ms"] >= 0
    assert packets["received"] > 0
    assert running.peer.figures["received"] >= packets["received"]


def test_statistics_of_pictures_and_unknown_figures_are_left_out():
    made = SimpleNamespace
    report = {
        "a": made(type="inbound-rtp", kind="audio", packetsLost=-1, jitter=96),
        "b": made(type="inbound-rtp", kind="video", packetsLost=9, jitter=9_000),
        "c": made(type="remote-inbound-rtp", kind="audio", packetsLost=3, roundTripTime=None),
        "d": made(type="transport"),
    }
    assert quality_of(report) == {"lost": 0, "jitter_ms": 2.0, "sent_lost": 3}


# -- B47: letting go ---------------------------------------------------------------------------------------------------


async def test_a_close_that_never_returns_does_not_keep_the_call(serve, call, monkeypatch, caplog):
    monkeypatch.setattr(peer_module, "_CLOSE_SECONDS", 0.1)
    served = await serve()
    caller = await call(served)
    await caller.offer()
    (running,) = served.bot.calls.values()
    close = running.peer.pc.close
    stuck = running.peer.pc

    async def never() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(stuck, "close", never)
    async with asyncio.timeout(60):
        await running.aclose()
    assert "did not close" in caplog.text
    await close()


@pytest.mark.parametrize("how", ["stopped", "raises"])
async def test_a_call_ends_when_its_outgoing_track_had_ended_first(serve, call, how):
    served = await serve()
    caller = await call(served)
    await caller.offer()
    (running,) = served.bot.calls.values()
    track = next(sender.track for sender in running.peer.pc.getSenders() if sender.track is not None)
    if how == "stopped":
        track.stop()
    else:

        async def fail() -> None:
            raise MediaStreamError

        track.recv = fail
    await caller.send(type="bye")
    await served.until_calls(0)


async def test_a_detach_that_never_returns_does_not_keep_the_call(serve, call, monkeypatch, caplog):
    monkeypatch.setattr(peer_module, "_CLOSE_SECONDS", 0.1)
    served = await serve()
    caller = await call(served)
    await caller.offer()
    (running,) = served.bot.calls.values()

    async def never(pc: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(running.session, "detach", never)
    async with asyncio.timeout(60):
        await running.aclose()
    assert "not detached" in caplog.text


async def test_a_call_ends_in_the_middle_of_an_offer(serve, call, pc):
    served = await serve()
    caller = await call(served)
    await caller.send(type="offer", sdp=await offer(pc))
    await caller.send(type="bye")
    await served.until_calls(0)


# -- what an offer may hold --------------------------------------------------------------------------------------------


def section(mid: int) -> str:
    return f"m=audio 9 RTP/SAVPF 0\r\na=mid:{mid}\r\n"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n" * 65, "too_large"),
        ("a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r" * 65, "too_large"),
        ("".join(section(mid) for mid in range(6)), "bad_message"),
    ],
)
def test_an_offer_with_too_much_in_it_is_refused_before_it_is_parsed(more, code):
    with pytest.raises(CallRefused) as caught:
        check_offer("v=0\r\n" + more, WebLimits())
    assert caught.value.code == code


async def test_too_much_in_an_offer_is_told_and_nothing_of_it_is_parsed(serve, call, monkeypatch):
    async def parse(pc: object, description: object) -> None:
        raise AssertionError(description)

    served = await serve()
    caller = await call(served)
    monkeypatch.setattr(peer_module.RTCPeerConnection, "setRemoteDescription", parse)
    await caller.send(type="offer", sdp="v=0\r\n" + NEVER + ("\r\n" + NEVER) * 64)
    assert (await caller.receive("error"))["code"] == "too_large"


async def test_candidates_of_the_offer_count_and_those_beyond_are_left_out_and_told_once(serve, call, pc):
    served = await serve(limits=WebLimits(max_candidates=3))
    caller = await call(served)
    await caller.send(type="offer", sdp=without_candidates(await offer(pc), NEVER, NEVER))
    await caller.receive("answer")
    for _ in range(4):
        await caller.send(type="candidate", candidate={"candidate": NEVER, "sdpMid": "0"})
    await caller.send(type="candidate", candidate=None)
    await caller.send(type="text", text="Still there?")
    await caller.receive("event", event="TurnCompleted")
    (told,) = [each for each in caller.messages if each["type"] == "error"]
    assert (told["code"], told.get("fatal")) == ("too_large", None)


@pytest.mark.parametrize("odd", ['{"type": "played", "rtp_timestamp": 5, "age_ms": 1' + "0" * 400 + "}", "[" * 50_000])
async def test_odd_json_on_the_data_channel_leaves_the_connection_as_it_is(serve, call, odd):
    served = await serve()
    caller = await call(served)
    await caller.offer()
    await caller.receive("connected")
    (running,) = served.bot.calls.values()
    running.peer._played.sent(0, 1)
    caller.channel.send(odd)
    caller.channel.send('{"type": "text", "text": "Still there?"}')
    await caller.receive("event", event="TurnCompleted")
    assert running.peer.connected


async def test_a_fault_in_what_takes_a_message_is_logged_once_and_ends_nothing(serve, call, caplog):
    served = await serve()
    caller = await call(served)
    await caller.offer()
    (running,) = served.bot.calls.values()
    take, running.peer._on_message = running.peer._on_message, lambda _: 1 / 0
    running.peer._take_message("{}")
    running.peer._take_message("{}")
    assert caplog.text.count("was left out") == 1
    running.peer._on_message = take
    caller.channel.send('{"type": "text", "text": "Still there?"}')
    await caller.receive("event", event="TurnCompleted")
