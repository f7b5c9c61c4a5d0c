"""The reply in a telephone call: what is sent, what is marked, what counts as heard (P0, P1, P3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from realtime.pcm import ms_to_bytes
from realtime.pipelines import telephony_reply
from realtime.pipelines.telephony_reply import LEAD_BYTES, PIECE_BYTES, CallReply
from realtime.testing import ManualClock

RATE = 24_000
SPEECH = b"\x00\x10"


def speech(ms: int) -> bytes:
    return SPEECH * (RATE * ms // 1000)


class Line:
    """A reply in a call, everything that was sent, and what was reported."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.reports: list[tuple[str, int, bool]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.reply = CallReply(
            RATE,
            stream_id="MZ1",
            send=self._send,
            on_played=lambda *report: self.reports.append(report),
            mark_names=count(1),
            clock=clock,
        )
        self.task = asyncio.create_task(self.reply.run())

    async def _send(self, message: str) -> None:
        await self.free.wait()
        self.sent.append(json.loads(message))

    async def settle(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    def kinds(self) -> list[str]:
        return [message["event"] for message in self.sent]

    def marks(self) -> list[str]:
        return [message["mark"]["name"] for message in self.sent if message["event"] == "mark"]

    def pass_marks(self, number: int) -> None:
        """The far end has played the first so many pieces."""
        for name in self.marks()[:number]:
            self.reply.pass_mark(name)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    yield made
    made.free.set()
    made.reply.stop()
    await made.task


async def test_each_piece_is_followed_by_its_mark_and_only_marks_count_as_heard(line: Line):
    line.reply.push("r1", speech(120))
    line.reply.end("r1")
    await line.settle()
    assert line.kinds() == ["media", "mark"] * 3
    assert line.reports == []
    line.pass_marks(1)
    assert line.reports == [("r1", 40, False)]
    line.pass_marks(3)
    assert line.reports[1:] == [("r1", 80, False), ("r1", 120, True)]
    assert line.reply.unknown_marks == 1


async def test_a_mark_that_was_lost_is_made_good_by_the_next(line: Line):
    line.reply.push("r1", speech(120))
    line.reply.end("r1")
    await line.settle()
    line.reply.pass_mark(line.marks()[-1])
    assert line.reports == [("r1", 120, True)]


async def test_the_tail_is_padded_and_its_end_is_the_reply_s_end(line: Line):
    """A2: framing loses nothing."""
    line.reply.push("r1", speech(50))
    line.reply.end("r1")
    await line.settle()
    sizes = [len(message["media"]["payload"]) for message in line.sent if message["event"] == "media"]
    assert len(sizes) == 2
    line.pass_marks(2)
    assert line.reports == [("r1", 40, False), ("r1", 50, True)]


async def test_a_reply_that_ends_after_all_of_it_was_heard_is_finished_at_once(line: Line):
    line.reply.push("r1", speech(200))
    await line.settle()
    line.pass_marks(len(line.marks()))
    before = len(line.reports)
    line.reply.end("r1")
    await line.settle()
    line.pass_marks(len(line.marks()))
    assert all(not finished for _, _, finished in line.reports[:before])
    assert line.reports[-1] == ("r1", 200, True)
    assert sum(finished for _, _, finished in line.reports) == 1


async def test_a_reply_without_sound_is_finished_at_once(line: Line):
    line.reply.end("r1")
    assert line.reports == [("r1", 0, True)]


async def test_no_more_is_sent_than_the_lead_until_marks_come_back(line: Line):
    line.reply.push("r1", speech(5_000))
    await line.settle()
    assert line.kinds().count("media") == LEAD_BYTES // PIECE_BYTES
    line.pass_marks(10)
    await line.settle()
    assert line.kinds().count("media") == LEAD_BYTES // PIECE_BYTES + 10


async def test_a_barge_in_clears_the_far_end_and_what_it_cleared_was_not_heard(line: Line):
    """P1, P3."""
    line.reply.push("r1", speech(2_000))
    await line.settle()
    line.pass_marks(5)
    assert line.reply.stop_reply("r1") == 200
    await line.settle()
    assert line.kinds()[-1] == "clear"
    assert line.kinds().count("clear") == 1
    line.pass_marks(40)  # clearing sends the marks of what was cleared back
    line.reply.push("r1", speech(100))  # a late delta
    line.reply.end("r1")
    await line.settle()
    assert line.reports[-1] == ("r1", 200, False)
    assert line.kinds()[-1] == "clear"
    assert line.reply.queued_ms() == 0
    assert line.reply.dropped_bytes == 800
    assert line.reply.stop_reply("r1") == 200


async def test_nothing_is_cleared_when_all_that_was_sent_has_been_heard(line: Line):
    line.reply.push("r1", speech(400))
    await line.settle()
    line.pass_marks(len(line.marks()))
    line.reply.stop_reply("r1")
    await line.settle()
    assert "clear" not in line.kinds()


async def test_a_barge_in_jumps_a_socket_that_takes_nothing(line: Line):
    line.free.clear()
    line.reply.push("r1", speech(1_000))
    await line.settle()
    line.reply.stop_reply("r1")
    line.free.set()
    await line.settle()
    assert line.kinds() == ["media", "clear"]


async def test_what_was_cleared_of_another_reply_is_sent_again(line: Line):
    line.reply.push("r1", speech(80))
    line.reply.end("r1")
    line.reply.push("r2", speech(80))
    await line.settle()
    line.reply.stop_reply("r1")
    await line.settle()
    again = line.kinds()[line.kinds().index("clear") + 1 :]
    assert again.count("media") == 1  # all but what is too short for a piece
    line.reply.pass_mark(line.marks()[-1])
    assert line.reports == [("r2", 40, False)]


async def test_a_reply_that_goes_on_begins_where_it_was_heard(line: Line):
    line.reply.push("r1", speech(400))
    await line.settle()
    line.pass_marks(3)
    assert line.reply.stop_reply("r1") == 120
    line.reply.resume("r1", speech(280))
    line.reply.end("r1")
    await line.settle()
    for name in line.marks()[-7:]:
        line.reply.pass_mark(name)
    assert line.reports[-1] == ("r1", 400, True)


async def test_a_reply_that_was_heard_to_its_end_stays_so(line: Line):
    """P1: a late stop gives what was heard. P3: a late delta is not played, nor is it a reply of its own."""
    line.reply.push("r1", speech(80))
    line.reply.end("r1")
    line.reply.push("r1", speech(80))  # ended, not heard yet
    await line.settle()
    assert line.kinds() == ["media", "mark"] * 2
    line.pass_marks(2)
    line.reply.push("r1", speech(80))
    line.reply.end("r1")
    await line.settle()
    assert line.kinds() == ["media", "mark"] * 2
    assert line.reply.dropped_bytes == 2 * 640
    assert line.reply.queued_ms() == 0
    assert line.reply.stop_reply("r1") == 80
    assert line.reports == [("r1", 40, False), ("r1", 80, True)]


async def test_a_finished_reply_that_goes_on_all_the_same_begins_where_it_was_heard(line: Line):
    line.reply.push("r1", speech(80))
    line.reply.end("r1")
    await line.settle()
    line.pass_marks(2)
    line.reply.resume("r1", speech(40))
    line.reply.end("r1")
    await line.settle()
    line.reply.pass_mark(line.marks()[-1])
    assert line.reports[-1] == ("r1", 120, True)


async def test_a_reply_that_was_stopped_before_its_first_sound_is_not_played(line: Line):
    """P3."""
    assert line.reply.stop_reply("r1") == 0
    line.reply.push("r1", speech(80))
    await line.settle()
    assert line.sent == []


async def test_what_is_remembered_of_replies_is_bounded(line: Line):
    for number in range(200):
        line.reply.end(f"r{number}")
        line.reply.stop_reply(f"s{number}")
    assert len(line.reply._finished) == len(line.reply._stopped) == 64


async def test_what_waits_is_bounded_and_counted(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(telephony_reply, "_MAX_WAITING_BYTES", 8_000)
    line.free.clear()
    line.reply.push("r1", speech(5_000))
    assert line.reply.queued_ms() <= 1_040
    assert line.reply.dropped_bytes >= 30_000
    assert ms_to_bytes(line.reply.queued_ms(), 8_000) // 2 + line.reply.dropped_bytes <= 40_000


async def test_after_the_end_nothing_is_sent_and_late_marks_change_nothing(line: Line):
    line.reply.push("r1", speech(80))
    await line.settle()
    names = line.marks()
    line.reply.stop()
    line.reply.push("r1", speech(80))
    line.reply.end("r1")
    for name in names:
        line.reply.pass_mark(name)
    await line.settle()
    assert len(line.sent) == 2
    assert line.reports == []
    assert (line.reply.readyState, line.reply.is_read) == ("ended", False)


# -- a far end without marks ------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def unmarked(clock: ManualClock) -> AsyncIterator[Line]:
    made = Line(clock)
    yield made
    made.reply.stop()
    await made.task
    assert clock.waiting == 0


async def test_without_marks_what_was_sent_counts_as_heard_as_time_passes(unmarked: Line, clock: ManualClock):
    """P0: none is sent, and one that comes all the same is only counted."""
    unmarked.reply.push("r1", speech(5_000))
    unmarked.reply.end("r1")
    await unmarked.settle()
    assert set(unmarked.kinds()) == {"media"}
    assert len(unmarked.sent) == LEAD_BYTES // PIECE_BYTES
    assert unmarked.reports == []
    await clock.run(1.02)
    assert unmarked.reports[-1] == ("r1", 1_000, False)
    assert len(unmarked.sent) == (LEAD_BYTES + 8_000) // PIECE_BYTES
    unmarked.reply.pass_mark("heard-99")
    assert unmarked.reply.unknown_marks == 1
    await clock.run(3.88)
    assert unmarked.reports[-1] == ("r1", 4_880, False)
    await clock.run(0.12)
    assert unmarked.reports[-1] == ("r1", 5_000, True)


async def test_without_marks_a_barge_in_cuts_where_the_time_is(unmarked: Line, clock: ManualClock):
    """P1, P3: and what comes next begins at once."""
    unmarked.reply.push("r1", speech(1_500))
    await clock.run(0.42)
    assert unmarked.reply.stop_reply("r1") == 400
    unmarked.reply.push("r2", speech(80))
    unmarked.reply.end("r2")
    await clock.run(0.1)
    assert unmarked.kinds().count("clear") == 1
    assert unmarked.reports[-1] == ("r2", 80, True)
    assert [report for report in unmarked.reports if report[0] == "r1"][-1] == ("r1", 400, False)


async def test_a_far_end_that_sends_no_mark_back_is_named(line: Line, caplog: pytest.LogCaptureFixture):
    line.reply.push("r1", speech(3_000))
    await line.settle()
    assert line.reply.stop_reply("r1") == 0
    assert "marks=False" in caplog.text


async def test_a_short_reply_that_is_cut_at_once_blames_nobody(line: Line, caplog: pytest.LogCaptureFixture):
    line.reply.push("r1", speech(1_000))
    await line.settle()
    line.reply.stop_reply("r1")
    assert caplog.text == ""
