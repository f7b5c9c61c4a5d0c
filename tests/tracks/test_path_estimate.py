"""What a path carries: what aiortc's estimator says of the same frames, number by number."""

from __future__ import annotations

import random

import pytest
from aiortc.rate import RemoteBitrateEstimator

from realtime.tracks.path_estimate import PathEstimate, _RateControl

PATHS = ["wide", "narrow", "jitter", "stalls", "bursts", "disorder", "silence"]


def _frames(path: str, rng: random.Random) -> list[tuple[int, int, int]]:
    """When each was sent (24 bits of 1/2^18 s), when it came (ms), bytes; for two minutes, with a rate that changes."""
    frames: list[tuple[int, int, int]] = []
    sent, free_at, rate = 60.0, 60.0, 1_500_000.0
    while sent < 180:
        rate = min(4e6, max(5e4, rate * rng.choice([0.9, 1.0, 1.0, 1.0, 1.12])))
        carries = 600_000 if path == "narrow" else 3_000_000
        size = int(rate / 8 * 0.08 * rng.uniform(0.5, 1.5))
        free_at = max(sent, free_at) + size * 8 / carries
        came = free_at
        match path:
            case "jitter":
                came += rng.random() * 0.1
            case "stalls":
                free_at += 2.0 if rng.random() < 0.01 else 0.0
            case "disorder":
                came += 0.5 if rng.random() < 0.1 else 0.0
            case "silence":
                sent += 3.0 if rng.random() < 0.02 else 0.0
            case _:
                pass
        frames.append((int(sent * 2**18) & 0xFFFFFF, int(came * 1000), size))
        sent += rng.choice([0.0, 0.002, 0.004, 0.1]) if path == "bursts" else rng.uniform(0.08, 0.11)
    return sorted(frames, key=lambda frame: frame[1])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(3))
def test_it_says_what_aiortcs_says(path, seed):
    known, ours = RemoteBitrateEstimator(), PathEstimate()
    told: list[int] = []
    for at, (sent_at, arrived_ms, size) in enumerate(_frames(path, random.Random(seed))):
        source = 1 + (at > 500)
        expected = known.add(arrival_time_ms=arrived_ms, abs_send_time=sent_at, payload_size=size, ssrc=source)
        rate = ours.add(source, sent_at, arrived_ms, size)
        assert (None if rate is None else (rate, list(ours.sources))) == expected
        told += [] if rate is None else [rate]
    assert len(told) > 50
    assert len(set(told)) > 10


def test_a_path_that_is_overused_and_one_that_is_not_are_told_apart():
    """The frames above lead everywhere: else that both say the same would show little."""
    seen = set()
    for path in PATHS:
        ours = PathEstimate()
        for frame in _frames(path, random.Random(1)):
            ours.add(1, *frame)
            seen.add((ours._state, ours._control._is_near, ours._control._rises))
    assert {state for state, _, _ in seen} == {0, 1, 2}
    assert {near for _, near, _ in seen} == {rises for _, _, rises in seen} == {True, False}


def test_frames_of_no_bytes_on_an_overused_path_are_no_division_by_zero():
    """aiortc's raises there. Nothing comes, the path's end was met: the sender is told the least step more."""
    control = _RateControl()
    for state, came, now in [(0, 100, 0), (0, 100, 3_001), (2, 100, 3_500), (2, 0, 4_000)]:
        told = control.update(state, came, now)
    assert told == 0
    assert control.update(0, 0, 4_500) == 0
    assert control.update(0, 0, 5_500) == 4_000
