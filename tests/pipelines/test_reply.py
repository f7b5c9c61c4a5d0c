"""`realtime.pipelines.reply`: who listens, and what was heard (P0)."""

from __future__ import annotations

import asyncio
import gc

import pytest

from realtime.core.commands import EndReply, PlayAudio, ResumeReply, StopReply
from realtime.pipelines.reply import ReplyPlayer
from realtime.testing import ManualClock
from realtime.tracks.reply import ReplyTrack

RATE = 24_000
MS = RATE * 2 // 1000
"""Bytes of a millisecond."""


class Reports:
    """What the machine is told."""

    def __init__(self) -> None:
        self.played: list[tuple[str, int, bool]] = []

    def __call__(self, reply_id: str, played_ms: int, *, finished: bool) -> None:
        self.played.append((reply_id, played_ms, finished))

    @property
    def last(self) -> tuple[str, int, bool]:
        return self.played[-1]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def player(reports: Reports, clock: ManualClock) -> ReplyPlayer:
    return ReplyPlayer(RATE, reports, clock)


def play(player: ReplyPlayer, ms: int, reply_id: str = "r") -> None:
    player.execute(PlayAudio(command_id="c", reply_id=reply_id, pcm=b"\1\2" * (ms * MS // 2)))


def end(player: ReplyPlayer, reply_id: str = "r") -> None:
    player.execute(EndReply(command_id="c", reply_id=reply_id))


def stop(player: ReplyPlayer, reply_id: str = "r") -> None:
    player.execute(StopReply(command_id="c", reply_id=reply_id))


# -- nobody listens ----------------------------------------------------------------------------------------------------


async def test_with_nobody_listening_received_counts_as_heard(player, reports):
    play(player, 100)
    play(player, 50)
    assert reports.played == [("r", 100, False), ("r", 150, False)]
    end(player)
    assert reports.last == ("r", 150, True)


async def test_a_track_that_nobody_reads_is_no_listener(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    play(player, 100)
    end(player)
    assert reports.last == ("r", 100, True)
    assert track.queued_ms() == 0


# -- a reader ----------------------------------------------------------------------------------------------------------


async def test_a_chunk_counts_when_its_reader_comes_back_for_the_next(player, reports):
    reader = player.open_reader()
    play(player, 100)
    play(player, 60)
    assert reports.played == []
    assert len(await anext(reader)) == 100 * MS
    assert reports.played == []
    assert len(await anext(reader)) == 60 * MS
    assert reports.last == ("r", 100, False)
    end(player)
    play(player, 20, "next")
    await anext(reader)
    assert reports.played[-2:] == [("r", 160, False), ("r", 160, True)]


async def test_a_reader_that_waits_hears_the_end_of_the_reply_at_once(player, reports):
    reader = player.open_reader()
    play(player, 100)
    await anext(reader)
    waiting = asyncio.create_task(anext(reader))
    await asyncio.sleep(0)
    end(player)
    await asyncio.sleep(0)
    assert reports.last == ("r", 100, True)
    player.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_stopping_takes_back_what_waits_and_what_is_in_hand_was_not_heard(player, reports):
    reader = player.open_reader()
    for _ in range(3):
        play(player, 100)
    await anext(reader)
    await anext(reader)
    stop(player)
    play(player, 10, "next")
    assert len(await anext(reader)) == 10 * MS
    assert reports.played == [("r", 100, False)]


class Sink:
    """A track that is being read."""

    is_read, readyState = True, "live"

    def push(self, reply_id: str, pcm: bytes, /) -> None: ...

    def resume(self, reply_id: str, pcm: bytes, /) -> None: ...

    def end(self, reply_id: str) -> None: ...

    def stop_reply(self, reply_id: str) -> None: ...

    def tell_played(self) -> None: ...

    def queued_ms(self) -> int:
        return 0

    def stop(self) -> None: ...


async def test_on_a_track_a_resumed_reply_is_counted_on_from_what_was_heard(player, reports):
    player.use_track(Sink())
    play(player, 200)
    player.on_track_played("r", 40, False)
    stop(player)
    player.execute(ResumeReply(command_id="c", reply_id="r", pcm=bytes(160 * MS)))
    player.on_track_played("r", 60, False)
    assert reports.played == [("r", 40, False), ("r", 60, False)]
    player.close()


async def test_a_resumed_reply_goes_on_where_it_was_heard(player, reports):
    reader = player.open_reader()
    play(player, 300)
    await anext(reader)
    stop(player)
    player.execute(ResumeReply(command_id="c", reply_id="r", pcm=bytes(200 * MS)))
    end(player)
    assert len(await anext(reader)) == 200 * MS
    waiting = asyncio.create_task(anext(reader))
    await asyncio.sleep(0)
    assert reports.last == ("r", 300, True)
    player.close()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_the_oldest_reader_counts_and_the_others_only_listen(player, reports):
    first, second = player.open_reader(), player.open_reader()
    play(player, 100)
    play(player, 100)
    await anext(second)
    await anext(second)
    assert reports.played == []
    await anext(first)
    await anext(first)
    assert reports.last == ("r", 100, False)


async def test_a_reader_that_leaves_lets_the_rest_count_as_heard(player, reports):
    reader = player.open_reader()
    play(player, 100)
    play(player, 100)
    end(player)
    await anext(reader)
    await reader.aclose()
    assert reports.last == ("r", 200, True)


async def test_a_reader_that_nobody_holds_any_more_is_noticed(player, reports, clock):
    reader = player.open_reader()
    play(player, 100)
    end(player)
    await anext(reader)
    del reader
    gc.collect()
    await clock.run(2.5)
    assert reports.last == ("r", 100, True)


async def test_readers_end_with_the_session_after_what_waits(player):
    reader = player.open_reader()
    play(player, 100)
    player.close()
    assert [len(chunk) async for chunk in reader] == [100 * MS]
    assert [chunk async for chunk in player.open_reader()] == []


async def test_a_reader_that_falls_ten_minutes_behind_loses_the_oldest_and_counts_it(player):
    reader = player.open_reader()
    for _ in range(13):
        play(player, 50_000)
    assert reader.waiting_bytes <= 600_000 * MS
    assert reader.dropped_bytes == 50_000 * MS


# -- the track ---------------------------------------------------------------------------------------------------------


async def frames(track: ReplyTrack, clock: ManualClock, count: int) -> list[bytes]:
    got = []
    for _ in range(count):
        taking = asyncio.create_task(track.recv())
        await clock.run(0.02)
        got.append(bytes((await taking).planes[0])[:1920])
    return got


async def test_a_track_that_is_read_counts_the_frames_taken(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    await frames(track, clock, 1)
    play(player, 100)
    assert reports.played == []
    await frames(track, clock, 2)
    assert reports.last[0] == "r"
    assert 20 <= reports.last[1] <= 40
    end(player)
    await frames(track, clock, 5)
    assert reports.last == ("r", 100, True)
    track.stop()


async def test_after_a_stop_the_next_frame_is_silence(player, reports, clock):
    """P3."""
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    await frames(track, clock, 1)
    play(player, 200)
    assert any(any(frame) for frame in await frames(track, clock, 3))
    told = len(reports.played)
    stop(player)
    assert not any(any(frame) for frame in await frames(track, clock, 3))
    assert len(reports.played) == told
    track.stop()


async def test_a_track_read_from_mid_reply_on_counts_from_there(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    play(player, 100)
    assert reports.last == ("r", 100, False)
    await frames(track, clock, 1)
    play(player, 100)
    end(player)
    await frames(track, clock, 6)
    assert reports.last == ("r", 200, True)
    track.stop()


async def test_a_track_whose_listener_is_gone_does_not_hold_the_reply(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    await frames(track, clock, 1)
    play(player, 1000)
    end(player)
    await frames(track, clock, 5)
    assert not reports.last[2]
    await clock.run(4.5)
    assert reports.last == ("r", 1000, True)
    play(player, 100, "next")  # and the next reply is tried again
    assert track.queued_ms() == 100
    track.stop()


async def test_a_track_that_ended_with_its_peer_is_no_listener_and_another_takes_its_place(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    await frames(track, clock, 1)
    play(player, 100)
    track.stop()
    assert player.needs_track
    play(player, 100)
    assert reports.last == ("r", 200, False)
    following = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(following)
    assert not player.needs_track
    await frames(following, clock, 1)
    play(player, 100)
    end(player)
    await frames(following, clock, 6)
    assert reports.last == ("r", 300, True)
    following.stop()


async def test_a_pause_of_the_model_is_no_lost_listener(player, reports, clock):
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    await frames(track, clock, 1)
    play(player, 100)
    await frames(track, clock, 300)
    play(player, 100)
    assert track.queued_ms() >= 100
    track.stop()


async def test_closing_ends_the_track_and_leaves_no_timer(player, clock):
    """B47."""
    track = ReplyTrack(RATE, on_played=player.on_track_played, clock=clock)
    player.use_track(track)
    play(player, 100)
    player.close()
    player.close()
    assert track.readyState == "ended"
    assert clock.waiting == 0
