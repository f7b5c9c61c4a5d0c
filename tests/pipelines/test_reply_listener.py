"""`realtime.pipelines.reply_listener`: what was heard is measured where it is heard (P0, P1)."""

from __future__ import annotations

import pytest

from realtime.core.commands import EndReply, PlayAudio, ResumeReply, StopReply
from realtime.errors import ArgumentError
from realtime.pipelines.reply import ReplyPlayer
from realtime.pipelines.reply_listener import ReplyListener
from realtime.testing import ManualClock

Told = list[tuple[str, int, bool]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def listener(told: Told, clock: ManualClock) -> ReplyListener:
    return ReplyListener(lambda reply_id, ms, finished: told.append((reply_id, ms, finished)), lambda: None, clock)


def give(listener: ReplyListener, *positions: int, reply_id: str = "r") -> None:
    for ms in positions:
        listener.take(reply_id, ms, finished=False)


def test_without_reports_what_was_given_away_counts_as_heard(listener, told):
    assert listener.take("r", 20, finished=False)
    assert listener.take("r", 40, finished=True)
    assert told == []


def test_from_the_first_report_on_only_reports_count(listener, told):
    listener.heard(listener.mark)
    give(listener, 20, 40, 60)
    assert told == []
    listener.heard(2)
    assert told == [("r", 40, False)]
    listener.heard(1)
    assert told == [("r", 40, False)]
    listener.heard(3)
    assert told[-1] == ("r", 60, False)


def test_a_report_over_two_replies_tells_the_newest_position_of_each(listener, told):
    listener.heard(listener.mark)
    give(listener, 20)
    listener.take("r", 40, finished=True)
    give(listener, 20, reply_id="s")
    listener.heard(listener.mark)
    assert told == [("r", 40, True), ("s", 20, False)]


def test_a_listener_that_stops_reporting_for_two_seconds_measures_no_more(listener, told, clock):
    listener.heard(listener.mark)
    give(listener, 20, 40)
    clock.advance(2.5)
    listener.look()
    assert told == [("r", 40, False)]
    assert listener.take("r", 60, finished=False)
    listener.heard(listener.mark)
    assert not listener.take("r", 80, finished=False)
    assert told == [("r", 40, False)]


def test_nothing_counts_while_the_listener_is_away_until_its_time_is_over(listener, told, clock):
    listener.away(30)
    give(listener, 20)
    clock.advance(29)
    listener.look()
    assert told == []
    clock.advance(2)
    listener.look()
    assert told == [("r", 20, False)]


def test_a_listener_that_is_back_measures_on_without_having_lost_its_time(listener, told, clock):
    listener.heard(listener.mark)
    listener.away(30)
    give(listener, 20)
    clock.advance(20)
    listener.back()
    listener.look()
    assert told == []
    listener.heard(listener.mark)
    assert told == [("r", 20, False)]


def test_what_waits_is_bounded_and_the_oldest_counts_as_heard(listener, told):
    listener.heard(listener.mark)
    for number in range(1, 6_011):
        listener.take("r", number, finished=False)
    assert told[-1] == ("r", 10, False)


def test_a_cut_reply_is_reported_no_more(listener, told):
    listener.heard(listener.mark)
    give(listener, 20)
    give(listener, 20, reply_id="s")
    listener.forget("r")
    listener.heard(listener.mark)
    assert told == [("s", 20, False)]


@pytest.mark.parametrize("mark", [-1, 1.5, None, "1", True])
def test_what_is_no_mark_is_refused(listener, mark):
    with pytest.raises(ArgumentError, match="mark"):
        listener.heard(mark)


# -- with the player ---------------------------------------------------------------------------------------------------


class Track:
    """Gives away what it is told to."""

    is_read = True
    readyState = "live"

    def __init__(self) -> None:
        self.resumed: list[bytes] = []

    def push(self, reply_id: str, pcm: bytes) -> None: ...

    def resume(self, reply_id: str, pcm: bytes) -> None:
        self.resumed.append(pcm)

    def end(self, reply_id: str) -> None: ...

    def stop_reply(self, reply_id: str) -> None: ...

    def tell_played(self) -> None: ...

    def queued_ms(self) -> int:
        return 1_000

    def stop(self) -> None: ...


@pytest.fixture
def player(told: Told, clock: ManualClock) -> ReplyPlayer:
    made = ReplyPlayer(24_000, lambda reply_id, ms, *, finished: told.append((reply_id, ms, finished)), clock)
    made.use_track(Track())
    return made


def play(player: ReplyPlayer, ms: int) -> None:
    player.execute(PlayAudio(command_id="c", reply_id="r", pcm=bytes(48 * ms)))


async def test_a_reply_is_over_when_the_listener_has_heard_its_end(player, told):
    player.listener.heard(0)
    play(player, 40)
    player.execute(EndReply(command_id="c", reply_id="r"))
    player.on_track_played("r", 20, finished=False)
    player.on_track_played("r", 40, finished=True)
    assert told == []
    player.listener.heard(1)
    assert told == [("r", 20, False)]
    player.listener.heard(2)
    assert told[-1] == ("r", 40, True)
    player.close()


async def test_a_reply_that_goes_on_is_counted_from_what_was_heard(player, told):
    player.listener.heard(0)
    play(player, 100)
    for ms in (20, 40, 60):
        player.on_track_played("r", ms, finished=False)
    player.listener.heard(1)
    player.execute(StopReply(command_id="c", reply_id="r"))
    player.execute(ResumeReply(command_id="c", reply_id="r", pcm=bytes(48 * 80)))  # what had not been heard
    player.on_track_played("r", 80, finished=False)  # the track had given 60
    player.listener.heard(player.listener.mark)
    assert told[-1] == ("r", 40, False)
    player.close()


async def test_a_track_that_stands_still_while_its_listener_is_away_has_not_lost_it(player, told, clock):
    player.listener.away(30)
    play(player, 100)
    await clock.run(10)
    assert told == []
    await clock.run(30)
    assert set(told) == {("r", 100, False)}
    player.close()
