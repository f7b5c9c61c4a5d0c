"""A sender is asked no more often than it answers, and what it takes is learned (behaviour.md I4)."""

from __future__ import annotations

import pytest

from realtime.tracks.key_requests import INTERVAL_SECONDS, KeyRequests


class Sender:
    def __init__(self) -> None:
        self.asked = 0

    def ask(self) -> None:
        self.asked += 1


@pytest.fixture
def sender():
    return Sender()


@pytest.fixture
def requests(sender):
    return KeyRequests(sender.ask)


def test_requests_that_nobody_answers_are_repeated_and_not_too_often(requests, sender):
    for tick in range(100):
        requests.ask(tick / 100, 0.0)
    assert sender.asked == requests.count == 3  # at 0, 0.4 and 0.8
    assert requests.is_pending
    assert not requests.answers


def test_after_an_answer_the_next_request_waits_for_its_interval_only(requests, sender):
    requests.ask(0.0, 0.0)
    requests.receive_key(0.05)
    requests.ask(INTERVAL_SECONDS - 0.01, 0.2)
    assert sender.asked == 1
    requests.ask(INTERVAL_SECONDS + 0.01, 0.3)
    assert sender.asked == 2


def test_how_long_an_answer_takes_is_learned(requests):
    for second in range(12):
        requests.ask(float(second), float(second))
        requests.receive_key(second + 0.12)
    assert requests.delay_seconds == pytest.approx(0.12, abs=0.003)
    assert requests.answers


def test_one_late_answer_is_not_waited_for_for_ever(requests):
    requests.ask(0.0, 0.0)
    requests.receive_key(5.0)
    assert requests.delay_seconds <= 0.2
    for second in range(10, 22):
        requests.ask(float(second), float(second))
        requests.receive_key(second + 0.03)
    assert requests.delay_seconds == pytest.approx(0.03, abs=0.01)


def test_a_request_that_is_repeated_counts_from_the_first_one(requests):
    requests.ask(0.0, 0.0)
    requests.ask(0.5, 0.5)
    before = requests.delay_seconds
    requests.receive_key(0.55)
    assert requests.delay_seconds > before + 0.1


def test_a_key_frame_that_nobody_asked_for_teaches_nothing(requests):
    before = requests.delay_seconds
    requests.receive_key(7.0)
    assert (requests.delay_seconds, requests.answers, requests.is_pending) == (before, False, False)


def test_time_stamps_that_go_back_are_no_delay(requests):
    requests.ask(0.0, 9.0)
    requests.receive_key(1.0)
    assert 0.0 <= requests.delay_seconds <= 0.05


def test_two_coarse_answers_in_a_row_cost_more_than_they_give(requests):
    told = []
    for second, is_coarse in enumerate([True, False, True, True]):
        requests.ask(float(second), float(second))
        requests.receive_key(second + 0.1, is_coarse=is_coarse)
        requests.receive_key(second + 0.2, is_coarse=not is_coarse)  # that nobody asked for
        told.append(requests.are_costly)
    assert told == [False, False, False, True]
    requests.forget_coarse()
    assert not requests.are_costly
