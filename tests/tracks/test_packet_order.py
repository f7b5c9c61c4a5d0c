"""Packets in order, at once or after a bounded wait (architecture section 5; behaviour.md A3)."""

from __future__ import annotations

import pytest

from realtime.tracks.packet_order import PacketOrder


def _feed(order: PacketOrder[int], numbers: list[int]) -> list[int]:
    return [given for number in numbers for given in order.push(number & 0xFFFF, number)]


def test_packets_in_order_are_given_at_once():
    order: PacketOrder[int] = PacketOrder(2)
    assert [order.push(number, number) for number in (7, 8, 9)] == [[7], [8], [9]]
    assert not order.waits


def test_two_packets_that_changed_places_are_put_in_order():
    order: PacketOrder[int] = PacketOrder(2)
    assert _feed(order, [1, 3, 2, 4]) == [1, 2, 3, 4]
    assert order.late == 0


def test_a_gap_waits_for_two_packets_and_no_more():
    order: PacketOrder[int] = PacketOrder(2)
    assert order.push(1, 1) == [1]
    assert order.push(3, 3) == []
    assert order.missing() == [2]
    assert order.push(4, 4) == [3, 4]
    assert order.push(2, 2) == []
    assert order.late == 1


def test_a_gap_is_given_up_when_its_owner_says_so():
    order: PacketOrder[int] = PacketOrder(9)
    _feed(order, [1, 3, 6, 7])
    assert order.missing() == [2, 4, 5]
    assert order.give_up() == [3]
    assert order.give_up() == [6, 7]
    assert order.give_up() == []


def test_packets_that_come_again_are_given_once():
    order: PacketOrder[int] = PacketOrder(3)
    assert _feed(order, [1, 1, 2, 4, 4, 3, 3]) == [1, 2, 3, 4]
    assert order.late + order.duplicates == 3


@pytest.mark.parametrize("pattern", [[0, 1, 2, 3, 4], [0, 2, 1, 3, 4], [0, 1, 1, 3, 2, 4]])
def test_numbers_wrap_around_wherever_that_is(pattern):
    for start in range(65_532, 65_537):
        order: PacketOrder[int] = PacketOrder(2)
        assert _feed(order, [start + step for step in pattern]) == [start + step for step in range(5)]


def test_a_sender_that_begins_anew_is_followed_from_its_second_packet_on():
    order: PacketOrder[int] = PacketOrder(2)
    assert _feed(order, [30_000, 30_001, 500, 501, 502]) == [30_000, 30_001, 501, 502]
    assert order.restarts == 1


def test_one_stray_number_changes_nothing():
    order: PacketOrder[int] = PacketOrder(2)
    assert _feed(order, [30_000, 500, 30_001, 20_000, 30_002]) == [30_000, 30_001, 30_002]
    assert order.restarts == 0


def test_it_never_holds_more_than_it_may():
    order: PacketOrder[int] = PacketOrder(4)
    order.push(0, 0)
    for number in range(2, 2_000, 2):
        order.push(number, number)
        assert len(order.missing()) <= 8


def test_the_end_of_a_stream_gives_what_waited():
    order: PacketOrder[int] = PacketOrder(9)
    _feed(order, [1, 3, 5])
    assert order.restart() == [3, 5]
    assert order.push(40_000, 7) == [7]


def test_packets_that_were_asked_for_again_and_come_very_late_are_no_new_beginning():
    """Two in a row, seconds behind: the stream goes on."""
    order: PacketOrder[int] = PacketOrder(2, max_back=3_000)
    _feed(order, [*range(30), *range(32, 400)])
    assert _feed(order, [30, 31, 400, 401]) == [400, 401]
    assert order.restarts == 0


@pytest.mark.parametrize("where", [5_000, 50_000])
def test_what_is_marked_as_sent_again_is_never_a_new_beginning(where):
    order: PacketOrder[int] = PacketOrder(2)
    _feed(order, [20_000, 20_001])
    for number in range(where, where + 4):
        assert order.push(number, number, is_again=True) == []
    assert _feed(order, [20_002]) == [20_002]
    assert order.late == 4


def test_what_is_marked_as_sent_again_fills_its_gap():
    order: PacketOrder[int] = PacketOrder(9)
    _feed(order, [1, 3])
    assert order.push(2, 2, is_again=True) == [2, 3]


def test_what_is_due_is_let_through_and_nothing_else():
    order: PacketOrder[int] = PacketOrder(9)
    assert not order.let_through(0xFFFF)  # nothing is due before the first
    assert _feed(order, [0xFFFF]) == [0xFFFF]
    assert not order.let_through(1)
    assert order.let_through(0)
    assert not order.let_through(0)
    assert _feed(order, [3]) == []
    assert not order.let_through(1)  # something waits: `push` gives what stands behind it too
    assert _feed(order, [1]) == [1]
    assert _feed(order, [2]) == [2, 3]
    assert order.let_through(4)
