"""Responses a minute."""

from __future__ import annotations

from realtime.local.limits import RequestLimit


def test_more_than_the_limit_in_a_minute_is_refused_until_the_oldest_is_a_minute_old() -> None:
    limit = RequestLimit(2)
    assert limit.take(0.0)
    assert limit.take(10.0)
    assert not limit.take(59.9)
    assert limit.take(60.0)
    assert not limit.take(69.9)
    assert limit.take(70.0)


def test_what_is_left_is_told() -> None:
    limit = RequestLimit(3)
    assert limit.state(0.0) == {"name": "requests", "limit": 3, "remaining": 3, "reset_seconds": 0.0}
    limit.take(5.0)
    assert limit.state(15.0) == {"name": "requests", "limit": 3, "remaining": 2, "reset_seconds": 50.0}
