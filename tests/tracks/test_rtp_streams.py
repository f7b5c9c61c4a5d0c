"""What senders are told of what came: as RFC 3550 (A.1, A.3, A.8) and aiortc count it."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiortc.rate import RateCounter
from aiortc.rtcrtpreceiver import StreamStatistics

from realtime.tracks.received_rate import ReceivedRate
from realtime.tracks.rtp_streams import RtpStreams

CLOCK_HZ = 90_000


def _report(streams: RtpStreams) -> Any:
    (report,) = streams.receiver_reports()
    return report


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_counted_as_aiortc_counts_it(seed):
    """Lost, twice, late, and over the end of the numbers; a report now and then."""
    chance = random.Random(seed)
    streams, theirs = RtpStreams(), StreamStatistics(CLOCK_HZ)
    numbers: list[int] = []
    for number in range(65_000, 67_500):
        numbers += [number & 0xFFFF] * chance.choices((0, 1, 2), (10, 87, 3))[0]
        if len(numbers) > 4 and chance.random() < 0.1:
            numbers[-1], numbers[-4] = numbers[-4], numbers[-1]
    for index, number in enumerate(numbers):
        streams.add(1, number, number * 10, CLOCK_HZ, index / 100)
        theirs.add(SimpleNamespace(sequence_number=number, timestamp=number * 10))  # type: ignore[arg-type]
        if index % 97 == 0:
            ours = _report(streams)
            assert ours.fraction_lost == theirs.fraction_lost
            assert ours.packets_lost == theirs.packets_lost
            assert ours.highest_sequence == theirs.cycles + (theirs.max_seq or 0)
    assert _report(streams).packets_lost > 0


def test_a_steady_path_has_no_jitter_and_an_unsteady_one_as_much_as_it_is():
    """RFC 3550, A.8: it moves by a sixteenth of each difference, so that it ends at their mean."""
    steady, unsteady = RtpStreams(), RtpStreams()
    for index in range(2_000):
        sent = index / 50
        for number in range(3):  # a picture's packets: the first one tells
            late = 0.004 * number
            steady.add(1, index * 3 + number, index * 1_800, CLOCK_HZ, sent + late)
            unsteady.add(1, index * 3 + number, index * 1_800, CLOCK_HZ, sent + late + 0.010 * (index % 2))
    assert _report(steady).jitter <= 1
    assert _report(unsteady).jitter == pytest.approx(0.010 * CLOCK_HZ, rel=0.02)


def test_time_stamps_that_begin_again_at_zero_are_no_jitter():
    streams = RtpStreams()
    for index in range(50):
        timestamp = (0xFFFFFFFF - 20 * 1_800 + index * 1_800) & 0xFFFFFFFF
        streams.add(1, index, timestamp, CLOCK_HZ, index / 50)
    assert _report(streams).jitter <= 1


def test_what_came_again_is_more_than_was_sent_and_no_loss():
    streams = RtpStreams()
    for number in (1, 2, 2, 2, 3):
        streams.add(1, number, 0, CLOCK_HZ, 0.0)
    report = _report(streams)
    assert report.packets_lost == -2
    assert report.fraction_lost == 0


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_in_is_counted_as_aiortcs_estimate_expects_it(seed):
    """`ReceivedRate` stands where `aiortc.rate.RateCounter` does, which the estimate resets once nothing came for a while."""
    chance = random.Random(seed)
    ours, theirs = ReceivedRate(1000, 8000), RateCounter(1000, 8000)
    now_ms, is_under_way, seen = 5_000, True, 0
    for _ in range(3_000):
        now_ms += chance.choice((0, 1, 16, 33, 33, 100, 1_500))
        assert ours.rate(now_ms) == theirs.rate(now_ms)
        if chance.random() < 0.7:
            value = chance.randrange(20_000)
            ours.add(value, now_ms)
            if theirs.rate(now_ms) is None and is_under_way:
                theirs.reset()
                seen += 1
            is_under_way = theirs.rate(now_ms) is not None
            theirs.add(value, now_ms)
        assert ours.rate(now_ms) == theirs.rate(now_ms)
    assert seen > 100
