"""`realtime.web.played`: from the packet that is heard to what was heard of a reply (P0)."""

from __future__ import annotations

import pytest

from realtime.web.played import PlayedMap

PACKET = 960


def sent(*numbers: int, origin: int = 1_000) -> PlayedMap:
    """A map of packets; the mark of each is its number."""
    made = PlayedMap()
    for number in numbers:
        made.sent((origin + number * PACKET) % (1 << 32), number)
    return made


def report(number: float, *, age_ms: float = 20, delay_ms: float = 0, origin: int = 1_000) -> dict[str, object]:
    return {"rtp_timestamp": int(origin + number * PACKET) % (1 << 32), "age_ms": age_ms, "delay_ms": delay_ms}


def test_a_packet_counts_when_it_has_been_played_to_its_end():
    made = sent(1, 2, 3)
    assert made.heard(report(2, age_ms=5)) == 1
    assert made.heard(report(2, age_ms=19)) == 2
    assert made.heard(report(2, age_ms=500)) is None
    assert made.heard(report(3)) == 3


def test_packets_that_were_lost_are_passed_over():
    made = sent(1, 2, 3, 4, 5)
    assert made.heard(report(4)) == 4


def test_what_is_still_on_its_way_from_the_browser_to_the_ear_was_not_heard():
    made = sent(*range(1, 11))
    assert made.heard(report(9, age_ms=20, delay_ms=100)) == 4
    assert made.heard(report(10, age_ms=120, delay_ms=100)) == 10


def test_pauses_between_packets_are_no_sound():
    made = sent(1, 2, 50, 51)
    assert made.heard(report(2)) == 2
    assert made.heard(report(50)) == 50


def test_timestamps_go_round():
    origin = (1 << 32) - 2 * PACKET
    made = sent(0, 1, 2, 3, origin=origin)
    assert made.heard(report(1, origin=origin)) == 1
    assert made.heard(report(3, origin=origin)) == 3


def test_a_stream_that_begins_at_zero_is_read_right():
    made = sent(0, 1, 2, origin=0)
    assert made.heard(report(1, origin=0)) == 1


@pytest.mark.parametrize(
    "wrong",
    [{}, {"rtp_timestamp": None}, {"rtp_timestamp": "5"}, {"rtp_timestamp": -1}, {"rtp_timestamp": 1 << 32},
     {"rtp_timestamp": True}, {"rtp_timestamp": 1.5}, {"rtp_timestamp": 1_000 + 500 * PACKET}],
)  # fmt: skip
def test_a_report_that_is_none_changes_nothing(wrong):
    made = sent(1, 2)
    assert made.heard({"age_ms": 20, "delay_ms": 0} | wrong) is None
    assert made.heard(report(2)) == 2


@pytest.mark.parametrize("bad", [None, "x", float("nan"), float("inf"), -5, True, -(10**400)])
def test_times_that_are_none_count_as_zero(bad):
    made = sent(1, 2)
    assert made.heard(report(2) | {"age_ms": bad}) == 1
    assert made.heard(report(2) | {"delay_ms": bad}) == 2


def test_before_anything_was_sent_nothing_was_heard():
    assert PlayedMap().heard(report(1)) is None


def test_what_is_remembered_is_bounded():
    made = sent(*range(7_000))
    assert len(made._packets) == 6_000


def test_an_int_that_is_too_large_for_a_float_is_a_long_time():
    made = sent(1, 2)
    assert made.heard(report(2) | {"age_ms": 10**400}) == 2
