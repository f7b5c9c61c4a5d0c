"""What the machine is told of a reply's progress is the same whether each piece is reported or asked for (P0, P1)."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from realtime.core.commands import EndReply, LocalCommand, PlayAudio, ResumeReply, StopReply
from realtime.pipelines.driver import Driver
from realtime.pipelines.reply import ReplyPlayer
from realtime.testing import ManualClock
from realtime.tracks.reply_queue import Piece, ReplyQueue

RATES = [8_000, 11_025, 24_000]


class Machine:
    """Notes what it is told, and decides what the test wants."""

    has_link_command = False

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.commands: deque[LocalCommand] = deque()

    def next_command(self) -> LocalCommand | None:
        return self.commands.popleft() if self.commands else None

    def next_event(self) -> None:
        return None

    def get_deadline(self) -> float | None:
        return None

    def receive_played(self, reply_id: str, played_ms: int, *, finished: bool = False, now: float) -> None:
        self.told.append((reply_id, played_ms, finished, round(now, 3)))


class Sink:
    """A reply track that is being read, without a pace."""

    is_read, readyState = True, "live"

    def __init__(self, rate_hz: int, on_played: Callable[[str, int, bool], int | None]) -> None:
        self.reports = 0
        self._on_played = on_played
        self._queue = ReplyQueue(rate_hz, self._report, 900.0)
        self.push, self.resume, self.end = self._queue.push, self._queue.resume, self._queue.end
        self.stop_reply, self.tell_played, self.stop = self._queue.stop_reply, self._queue.tell, self._queue.close

    def _report(self, reply_id: str, played_ms: int, finished: bool) -> int | None:
        self.reports += 1
        return self._on_played(reply_id, played_ms, finished)

    def take(self) -> Piece | None:
        return self._queue.take()

    def queued_ms(self) -> int:
        return 1_000 * self._queue.waiting // self._queue.rate_hz


class Call:
    """A session's way of the reply; `asks`: pieces are reported as the product has it, else each."""

    def __init__(self, rate_hz: int, *, asks: bool) -> None:
        self.machine, self.clock = Machine(), ManualClock()
        self.driver = Driver(self.machine, self.clock)  # type: ignore[arg-type]
        self.player = ReplyPlayer(rate_hz, self.driver.report_played, self.clock)
        self.driver.connect(
            execute=self.player.execute,  # type: ignore[arg-type]
            wake_link=lambda: None,
            ask_played=self.player.catch_up if asks else None,
        )
        self._asks, self._rate_hz = asks, rate_hz
        self.track = self.new_track()
        self._marks = [0]

    def new_track(self) -> Sink:
        def tell_each(reply_id: str, played_ms: int, finished: bool) -> None:
            self.player.on_track_played(reply_id, played_ms, finished)

        self.track = Sink(self._rate_hz, self.player.on_track_played if self._asks else tell_each)
        self.player.use_track(self.track)
        return self.track

    def decide(self, command: LocalCommand, *, timeless: bool = False) -> None:
        self.driver.step(lambda machine, _now: machine.commands.append(command), timeless=timeless)  # type: ignore[attr-defined]

    def sound(self, ms: int) -> bytes:
        return bytes(2 * (ms * self._rate_hz // 1_000))

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await asyncio.sleep(0)  # timers come with the loop's next turn

    async def do(self, what: str, reply_id: str, number: int) -> None:
        """One thing that may happen."""
        match what:
            case "play":
                self.decide(PlayAudio(command_id="c", reply_id=reply_id, pcm=self.sound(number * 37)))
            case "end":
                self.decide(EndReply(command_id="c", reply_id=reply_id))
            case "stop":
                self.decide(StopReply(command_id="c", reply_id=reply_id), timeless=number % 2 == 0)
            case "resume":
                self.decide(ResumeReply(command_id="c", reply_id=reply_id, pcm=self.sound(number * 20)))
            case "take":
                for _ in range(number):
                    self.track.take()
                    await self.pass_time(0.02)
            case "idle":
                await self.pass_time(number / 7)
            case "step":
                self.driver.step(lambda *_: None)
            case "timeless":
                self.driver.step(lambda *_: None, timeless=True)
            case "read":
                self.driver.catch_up()
            case "mark":
                self._marks.append(self.player.listener.mark)
            case "heard":
                self.player.listener.heard(self._marks[-min(number, len(self._marks))])
            case "away":
                self.player.listener.away(number / 10)
            case "back":
                self.player.listener.back()
            case "track":
                if number % 2:
                    self.track.stop()
                self.new_track()
            case _:
                raise AssertionError(what)


async def told(rate_hz: int, seed: int, *, asks: bool, measured: bool) -> list[tuple[Any, ...]]:
    """What the machine is told while this and that happens."""
    chance, call = random.Random(seed), Call(rate_hz, asks=asks)
    kinds = ["play"] * 5 + ["take"] * 5 + ["end", "stop", "resume", "idle", "step", "timeless", "read", "track"]
    kinds += ["mark", "mark", "mark", "heard", "heard", "away", "back"] if measured else []
    reply = 0
    for _ in range(150):
        reply += chance.random() < 0.06
        await call.do(chance.choice(kinds), f"r{reply}", chance.randrange(1, 60))
    call.driver.catch_up()
    call.player.close()
    assert call.clock.waiting == 0
    return call.machine.told


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("seed", range(8))
async def test_asking_tells_what_reporting_each_piece_tells(rate_hz, measured, seed):
    by_piece = await told(rate_hz, seed, asks=False, measured=measured)
    asked = await told(rate_hz, seed, asks=True, measured=measured)
    assert asked == by_piece
    assert len(asked) > 4


async def test_a_reply_that_nobody_asks_about_is_reported_once_a_second_and_at_its_end():
    call = Call(24_000, asks=True)
    await call.do("play", "r", 100)
    await call.do("end", "r", 1)
    await call.do("take", "r", 200)
    assert [ms for _, ms, _, _ in call.machine.told] == [20, 1_020, 2_020, 3_020, 3_680, 3_700]
    assert call.track.reports < 10  # every two seconds it is asked, to see whether anybody listens
    call.player.close()


async def test_an_interruption_finds_the_position_to_the_piece():
    call = Call(24_000, asks=True)
    await call.do("play", "r", 100)
    await call.do("take", "r", 33)
    assert call.track.reports == 1
    await call.do("stop", "r", 1)
    assert call.machine.told[-1][:3] == ("r", 660, False)
    call.player.close()


async def test_from_the_first_mark_on_each_piece_is_told_though_all_was_told_before():
    call = Call(24_000, asks=True)
    await call.do("play", "r", 100)
    await call.do("take", "r", 1)
    first = call.player.listener.mark
    await call.do("take", "r", 5)
    assert call.player.listener.mark == first + 5
    call.player.close()


async def test_a_track_that_plays_on_though_another_took_its_place_tells_each_piece():
    call = Call(24_000, asks=True)
    await call.do("play", "r", 100)
    await call.do("take", "r", 5)
    before = call.track
    call.new_track()
    for _ in range(10):
        before.take()
    await call.do("step", "r", 1)
    assert call.machine.told[-1][1] == 300
    call.player.close()
