"""What waits of a reply comes out as it was put in, however it was cut (P1, A2)."""

from __future__ import annotations

from itertools import accumulate, cycle, takewhile
from typing import NamedTuple

import numpy as np
import pytest

from realtime.tracks.reply_queue import ReplyQueue

AHEAD = 24
SOUND = np.arange(30_000, dtype="<i2").tobytes()


class Taken(NamedTuple):
    """A piece, and what was told of it."""

    start: int
    pcm: bytes
    ahead: bytes
    is_last: bool
    report: tuple[str, int, bool]


def take_all(queue: ReplyQueue, reports: list[tuple[str, int, bool]]) -> list[Taken]:
    taken: list[Taken] = []
    while (piece := queue.take()) is not None:
        taken.append(Taken(piece.start, piece.pcm, piece.ahead, piece.is_last, reports[-1]))
    return taken


def played(rate: int, pushes: list[bytes]) -> list[Taken]:
    reports: list[tuple[str, int, bool]] = []
    queue = ReplyQueue(rate, lambda *report: reports.append(report), 900.0, look_ahead=AHEAD)
    for pcm in pushes:
        queue.push("one", pcm)
    queue.end("one")
    taken = take_all(queue, reports)
    assert queue.waiting == 0
    assert len(reports) == len(taken)
    return taken


@pytest.mark.parametrize("rate", [8_000, 11_025, 24_000])
@pytest.mark.parametrize("sizes", [(7,), (960,), (480, 1_003, 6), (9_620,), (33_620, 2, 20_000)])
def test_pieces_are_the_same_however_the_audio_was_pushed(rate, sizes):
    cuts = list(takewhile(lambda cut: cut < len(SOUND), accumulate(cycle(sizes), initial=0)))
    pushes = [SOUND[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(SOUND)], strict=True)]
    taken = played(rate, pushes)
    assert taken == played(rate, [SOUND])
    assert b"".join(piece.pcm for piece in taken) == SOUND
    assert [piece.start for piece in taken] == [number * rate // 50 for number in range(len(taken))]
    for piece in taken:
        behind = (piece.start + len(piece.pcm) // 2) * 2
        assert piece.ahead == SOUND[behind : behind + AHEAD * 2]
        assert piece.report == ("one", (behind * 500 + rate // 2) // rate, piece is taken[-1])
    assert [piece.is_last for piece in taken] == [*[False] * (len(taken) - 1), True]


def test_a_reply_that_goes_on_waits_for_what_is_to_be_shown_of_the_next_piece():
    queue = ReplyQueue(24_000, None, 900.0, look_ahead=AHEAD)
    queue.push("one", SOUND[: 960 * 2 + AHEAD * 2])
    assert [queue.take() is None for _ in range(3)] == [False, False, True]
    queue.push("one", SOUND[960 * 2 + AHEAD * 2 : 960 * 3 + AHEAD * 2])
    piece = queue.take()
    assert piece is not None
    assert piece.pcm == SOUND[960 * 2 : 960 * 3]


def test_a_reply_that_is_resumed_comes_before_the_one_that_is_being_taken():
    queue = ReplyQueue(24_000, None, 900.0)
    queue.push("one", SOUND)
    queue.push("two", SOUND)
    queue.stop_reply("one")
    first = queue.take()
    assert first is not None
    assert first.reply_id == "two"
    queue.resume("one", SOUND)
    second, third = queue.take(), queue.take()
    assert second is not None
    assert third is not None
    assert (second.reply_id, second.start, third.start) == ("one", 0, 480)


@pytest.mark.parametrize("stop", ["one", None])
def test_nothing_of_a_stopped_reply_is_taken_though_it_was_being_taken(stop):
    """P3."""
    reports: list[tuple[str, int, bool]] = []
    queue = ReplyQueue(24_000, lambda *report: reports.append(report), 900.0)
    queue.push("one", SOUND)
    queue.take()
    queue.take()
    assert queue.stop_reply(stop) == (40, ["one"])
    assert queue.take() is None
    assert queue.played_samples("one") == 960
    assert queue.waiting == 0
    assert reports == [("one", 20, False), ("one", 40, False)]


def test_small_chunks_are_put_together_and_large_ones_left_alone():
    """Whoever speaks byte by byte costs no object for each, and a long chunk is not copied for the sake of the next."""
    queue = ReplyQueue(24_000, None, 900.0)
    for at in range(0, 9_600, 2):
        queue.push("one", SOUND[at : at + 2])
    long = bytes(200_000)
    queue.push("one", long)
    chunks = next(iter(queue._replies.values())).chunks
    assert [len(chunk) for chunk in chunks] == [9_600, 200_000]
    assert chunks[1] is long


@pytest.mark.parametrize("rate", [8_000, 11_025, 24_000])
def test_what_is_not_wanted_yet_is_reported_when_its_time_has_come_or_when_it_is_asked_for(rate):
    reports: list[tuple[str, int, bool]] = []

    def on_played(*report: object) -> int:
        reports.append(report)  # type: ignore[arg-type]
        return 200

    queue = ReplyQueue(rate, on_played, 900.0)
    queue.push("one", bytes(rate * 2))
    for _ in range(9):
        queue.take()
    assert reports == [("one", 20, False)]
    queue.tell()
    queue.tell()
    assert reports[1:] == [("one", 180, False)]
    queue.take()
    assert reports[2:] == [("one", 200, False)]


@pytest.mark.parametrize("end", [lambda queue: queue.stop_reply("one"), lambda queue: queue.close()])
def test_what_was_taken_is_reported_before_the_rest_is_thrown_away(end):
    reports: list[tuple[str, int, bool]] = []

    def on_played(*report: object) -> int:
        reports.append(report)  # type: ignore[arg-type]
        return 10_000

    queue = ReplyQueue(24_000, on_played, 900.0)
    queue.push("one", SOUND)
    for _ in range(3):
        queue.take()
    end(queue)
    queue.tell()
    assert reports == [("one", 20, False), ("one", 60, False)]


def test_whoever_is_told_before_the_last_piece_may_stop_the_reply():
    queue: ReplyQueue

    def stop_at_the_end(reply_id: str, played_ms: int, finished: bool) -> int:
        if played_ms == 40 and not finished:
            queue.stop_reply(reply_id)
        return 10_000

    queue = ReplyQueue(24_000, stop_at_the_end, 900.0)
    queue.push("one", SOUND[: 480 * 3 * 2])
    queue.end("one")
    assert [queue.take() is not None for _ in range(3)] == [True, True, False]
    assert queue.waiting == 0
    assert queue.played_samples("one") == 480 * 2
