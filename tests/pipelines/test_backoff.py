"""`realtime.pipelines.backoff`: waits that double, with jitter, up to the policy's bounds (L1)."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from realtime.core.settings import ReconnectPolicy
from realtime.pipelines.backoff import Backoff
from realtime.testing import ManualClock


def delays(policy: ReconnectPolicy, count: int, spread: float = 0.5) -> list[float | None]:
    backoff = Backoff(policy, ManualClock(), spread=lambda: spread)
    return [backoff.next_delay() for _ in range(count)]


def test_the_first_attempt_is_at_once_and_waits_double_to_a_limit():
    policy = ReconnectPolicy(first_delay_seconds=1, max_delay_seconds=5, max_attempts=None)
    assert delays(policy, 7) == [0, 1, 2, 4, 5, 5, 5]


def test_attempts_end_where_the_policy_says():
    assert delays(ReconnectPolicy(max_attempts=2, first_delay_seconds=1), 4) == [0, 1, None, None]


@given(st.floats(0, 1), st.integers(2, 200))
def test_jitter_stays_within_its_share(spread, attempt):
    policy = ReconnectPolicy(first_delay_seconds=1, max_delay_seconds=8, max_attempts=None, jitter=0.25)
    plain = min(8.0, 2.0 ** min(attempt - 2, 30))
    last = delays(policy, attempt, spread)[-1]
    assert last is not None
    assert plain * 0.75 <= last <= plain * 1.25


def test_a_connection_that_lasted_counts_attempts_anew_and_one_that_did_not_does_not():
    clock = ManualClock()
    backoff = Backoff(ReconnectPolicy(max_attempts=2), clock, spread=lambda: 0.5)
    opened = clock.now()
    assert backoff.next_delay() == 0
    clock.advance(1)
    backoff.lost(opened)
    assert backoff.next_delay() != 0
    assert backoff.next_delay() is None
    clock.advance(60)
    backoff.lost(opened)
    assert backoff.next_delay() == 0


async def test_waiting_takes_the_clock_s_time():
    clock = ManualClock()
    backoff = Backoff(ReconnectPolicy(first_delay_seconds=4, max_attempts=2), clock, spread=lambda: 0.5)
    assert await backoff.wait()
    second = asyncio.create_task(backoff.wait())
    await clock.run(3.9)
    assert not second.done()
    await clock.run(0.2)
    assert await second
    assert not await backoff.wait()
