"""The reply's packets by one timer: when each goes out, and nothing while there is nothing to say (P1, P3, P4, A3)."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from realtime.testing import ManualClock
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.reply_feed import ReplyFeed
from realtime.tracks.reply_pace import LoopClock
from realtime.tracks.sending import SendingTrack

GUARD = 10.0
SILENT_BYTES = 3


def speech(ms: float, rate: int = 24_000) -> bytes:
    return (8000 * np.sin(np.arange(round(ms * rate / 1000)) * 2 * np.pi * 300 / rate)).astype("<i2").tobytes()


class Sent(NamedTuple):
    """A packet that went out."""

    at: float
    payload: bytes
    pts: int
    late: float
    marker: bool

    @property
    def sounds(self) -> bool:
        return len(self.payload) > 60


class Peer:
    """What one peer is sent."""

    def __init__(self, clock: ManualClock | LoopClock, track: SendingTrack) -> None:
        self.clock = clock
        self.track = track
        self.sent: list[Sent] = []
        self.ends: list[BaseException] = []
        self.error: Exception | None = None
        self.feed: ReplyFeed = track.open_feed(self, self.ends.append)

    def send(self, payload: bytes, pts: int, late: float, *, marker: bool) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append(Sent(round(self.clock.now(), 6), payload, pts, round(late, 6), marker))


class Call:
    """A reply track that goes to peers, under a clock by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock(settle_rounds=6)
        self.reports: list[tuple[str, int, bool]] = []
        self.reply = ReplyTrack(24_000, lambda *report: self.reports.append(report), self.clock)

    def peer(self) -> Peer:
        return Peer(self.clock, self.reply.open_sender(lambda: True))

    def say(self, ms: float, reply_id: str = "one") -> None:
        self.reply.push(reply_id, speech(ms))
        self.reply.end(reply_id)


async def test_packets_go_out_20_ms_apart_with_exact_stamps():
    """P4, A3."""
    call = Call()
    call.reply.push("one", speech(200))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.08)
    assert [sent.at for sent in peer.sent] == [0.0, 0.02, 0.04, 0.06, 0.08]
    assert [sent.pts for sent in peer.sent] == [0, 960, 1920, 2880, 3840]
    assert [sent.marker for sent in peer.sent] == [True, False, False, False, False]
    assert all(sent.sounds for sent in peer.sent)
    assert call.reports[-1] == ("one", 100, False)
    peer.feed.stop()


async def test_while_there_is_nothing_to_say_the_timer_wakes_for_reminders_only():
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.18)
    assert [sent.pts for sent in peer.sent] == [960 * index for index in range(10)]
    wakes: list[float] = []
    for _ in range(3):
        wakes.append(round(call.clock.next_wake or 0, 6))
        await call.clock.run((call.clock.next_wake or 0) - call.clock.now())
    assert wakes == [0.58, 0.98, 1.38]
    assert [sent.pts for sent in peer.sent[10:]] == [8640 + 19_200 * index for index in range(1, 4)]
    assert {len(sent.payload) for sent in peer.sent} == {SILENT_BYTES}
    assert not any(sent.marker for sent in peer.sent)
    assert call.clock.waiting == 1
    peer.feed.stop()


async def test_the_first_word_leaves_at_once_marked_and_stamps_pass_over_the_silence():
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.18 + 0.1234)
    before = len(peer.sent)
    call.reply.push("one", speech(100))
    assert len(peer.sent) == before  # whoever pushes is not kept waiting
    await call.clock.settle()
    first = peer.sent[before]
    assert first.sounds
    assert first.marker
    assert first.at == round(0.18 + 0.1234, 6)
    assert first.pts == round((0.18 + 0.1234) * 48_000)
    await call.clock.run(0.07)
    assert [sent.pts - first.pts for sent in peer.sent[before + 1 :]] == [960, 1920, 2880]
    assert not any(sent.marker for sent in peer.sent[before + 1 :])
    peer.feed.stop()


async def test_what_is_there_when_the_silence_begins_to_rest_is_not_waited_for():
    """The reply comes in the very moment in which the tenth silent packet has gone out."""
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.17)
    call.say(100)
    await call.clock.run(0.03)
    assert peer.sent[-1].sounds
    assert [sent.at for sent in peer.sent[-2:]] == [0.18, 0.2]
    peer.feed.stop()


async def test_the_first_word_leaves_though_more_comes_at_every_turn_of_the_loop():
    """A model that speaks faster than it is heard. The loop's own timers: they come after the tasks of the same turn."""
    reply = ReplyTrack(24_000)
    track = reply.open_sender(lambda: True)
    track._reader.quiet = 25  # it has rested for a while
    peer = Peer(LoopClock(), track)
    peer.feed.start()
    async with asyncio.timeout(GUARD):
        while not any(sent.sounds for sent in peer.sent):
            if peer.sent:
                reply.push("one", speech(1))
            await asyncio.sleep(0)
    peer.feed.stop()


async def test_packets_come_to_go_out_with_those_of_other_calls():
    """One wake-up for all. No packet is ahead of its time, none a grid's width behind it, and none is told another time."""
    call = Call()
    await call.clock.run(0.0033)
    call.reply.push("one", speech(4_000))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(1.0)
    assert peer.sent[0].at == 0.0033
    assert [sent.pts for sent in peer.sent] == [960 * index for index in range(len(peer.sent))]
    assert [sent.late for sent in peer.sent] == [
        round(min(0.0067, 0.0005 * index), 6) for index in range(len(peer.sent))
    ]
    assert {round(sent.at * 1000, 3) % 10 for sent in peer.sent[14:]} == {0.0}
    call.reply.stop_reply("one")
    await call.clock.run(1.0)
    call.reply.push("two", speech(100))
    await call.clock.settle()
    assert peer.sent[-1].marker
    assert peer.sent[-1].late == 0
    assert peer.sent[-1].at == 2.0033
    peer.feed.stop()


@pytest.mark.parametrize("count", [2, 4])
async def test_all_peers_are_sent_the_whole_reply_and_it_is_encoded_once(count):
    call = Call()
    peers = [call.peer() for _ in range(count)]
    for peer in peers:
        peer.feed.start()
    await call.clock.run(1.05)
    call.say(200)
    await call.clock.run(0.5)
    said = [[sent.payload for sent in peer.sent if sent.sounds] for peer in peers]
    assert len(said[0]) >= 10
    assert all(payloads == said[0] for payloads in said)
    assert all(mine is theirs for payloads in said for mine, theirs in zip(payloads, said[0], strict=True))
    assert call.reports[-1] == ("one", 200, True)
    for peer in peers:
        peer.feed.stop()


async def test_the_packet_after_a_stop_is_silent():
    """P3, B58: nothing of the reply goes out any more, and the encoder is led to silence."""
    call = Call()
    call.reply.push("one", speech(10_000))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.99)
    assert call.reply.stop_reply("one") == 1000
    await call.clock.run(1.0)
    assert call.reports[-1] == ("one", 1000, False)
    assert peer.sent[-1].payload == call.reply._packets._encoder.silence
    peer.feed.stop()


async def test_a_loop_that_stood_still_sends_no_burst():
    """P4."""
    call = Call()
    call.reply.push("one", speech(2_000))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.11)
    before = len(peer.sent)
    call.clock.advance(0.5)
    await call.clock.settle()
    assert len(peer.sent) - before == 2  # the one that was due, and the first of the time that begins anew
    assert [sent.late for sent in peer.sent[before - 1 :]] == [0.0, 0.49, 0.0]
    await call.clock.run(0.11)
    assert len(peer.sent) - before == 7
    assert call.reply.played_ms("one") == 20 * len(peer.sent)
    peer.feed.stop()


@pytest.mark.parametrize("idle", [False, True])
async def test_the_end_of_the_track_is_told_once_and_leaves_nothing_behind(idle):
    call = Call()
    if not idle:
        call.reply.push("one", speech(1_000))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.5)
    peer.track.stop()
    peer.track.stop()
    assert [type(error) for error in peer.ends] == [MediaStreamError]
    assert call.clock.waiting == 0
    assert not call.reply._pace._idle
    before = len(peer.sent)
    await call.clock.run(1.0)
    assert len(peer.sent) == before


async def test_a_feed_of_a_track_that_has_ended_says_so():
    call = Call()
    track = call.reply.open_sender(lambda: True)
    track.stop()
    peer = Peer(call.clock, track)
    peer.feed.start()
    await call.clock.run(0.1)
    assert [type(error) for error in peer.ends] == [MediaStreamError]
    assert peer.sent == []


@pytest.mark.parametrize("idle", [False, True])
async def test_a_connection_that_is_gone_ends_it(idle):
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.5)
    peer.error = ConnectionError("gone")
    if not idle:
        call.say(100)
    await call.clock.run(0.4)
    assert peer.ends == [peer.error]
    assert call.clock.waiting == 0
    assert not call.reply._pace._idle


async def test_a_released_track_sends_nothing_more_and_the_reply_waits():
    call = Call()
    call.reply.push("one", speech(1_000))
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(0.1)
    before = len(peer.sent)
    call.reply.release_sender(peer.track)
    await call.clock.run(0.5)
    assert len(peer.sent) == before
    assert peer.ends == []
    assert call.reply.played_ms("one") == 20 * before
    following = call.peer()
    following.feed.start()
    await call.clock.run(0.04)
    assert [sent.sounds for sent in following.sent] == [True] * 3
    following.feed.stop()


async def test_a_feed_that_was_stopped_can_be_followed_by_another_of_the_same_track():
    """A peer that was away comes back: the stamps have gone on with the clock."""
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.run(1.0)
    peer.feed.stop()
    await call.clock.run(2.0)
    call.say(200)
    again = Peer(call.clock, peer.track)
    again.feed.start()
    await call.clock.run(0.1)
    assert [sent.pts for sent in again.sent[:3]] == [144_000, 144_960, 145_920]
    assert again.sent[0].sounds
    assert again.sent[0].marker
    again.feed.stop()
    assert call.clock.waiting == 0


async def test_frames_can_be_taken_beside_it():
    call = Call()
    peer = call.peer()
    peer.feed.start()
    await call.clock.settle()
    call.say(200)
    frames = asyncio.create_task(_frames(call.reply, 12))
    await call.clock.run(0.5)
    heard = np.concatenate(await frames)
    assert np.abs(heard).max() > 7_000
    assert sum(sent.sounds for sent in peer.sent) >= 10
    peer.feed.stop()


async def _frames(reply: ReplyTrack, count: int) -> list[np.ndarray]:
    return [(await reply.recv()).to_ndarray().reshape(-1).astype(int) for _ in range(count)]
