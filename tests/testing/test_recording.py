"""Both sides of a call lie on one time line, by sample counts (A3)."""

from __future__ import annotations

import numpy as np

from realtime.testing.recording import MAX_RECORDED_SECONDS, RECORDED_RATE_HZ, Recording, stereo


def _recording(begun_at: float, *pieces: tuple[int, float]) -> Recording:
    recording = Recording()
    recording.begin(begun_at)
    for value, seconds in pieces:
        recording.append(np.full(round(seconds * RECORDED_RATE_HZ), value, "<i2").tobytes())
    return recording


def test_sides_are_aligned_by_when_they_began() -> None:
    both = np.frombuffer(stereo(_recording(10.0, (5, 1.0)), _recording(10.5, (6, 1.0))), "<i2").reshape(-1, 2)
    half = RECORDED_RATE_HZ // 2
    assert len(both) == 3 * half
    assert both[:, 0].tolist() == [5] * (2 * half) + [0] * half
    assert both[:, 1].tolist() == [0] * half + [6] * (2 * half)


def test_a_side_that_never_began_is_silent() -> None:
    both = np.frombuffer(stereo(_recording(3.0, (5, 0.1)), Recording()), "<i2").reshape(-1, 2)
    assert both[:, 0].tolist() == [5] * (RECORDED_RATE_HZ // 10)
    assert not both[:, 1].any()


def test_only_the_first_moment_counts() -> None:
    recording = _recording(3.0)
    recording.begin(9.0)
    assert recording.begun_at == 3.0


def test_sound_is_cut_out_with_what_is_around_it() -> None:
    recording = _recording(0.0, (0, 2.0), (5_000, 0.5), (0, 1.0), (5_000, 0.5), (0, 2.0))
    seconds = len(recording.sound()) / 2 / RECORDED_RATE_HZ
    assert 2.0 < seconds < 2.5


def test_silence_has_no_sound() -> None:
    assert _recording(0.0, (3, 1.0)).sound() == b""
    assert Recording().sound() == b""


def test_a_recording_is_bounded_and_counts_what_it_leaves_out() -> None:
    recording = Recording()
    second = bytes(RECORDED_RATE_HZ * 2)
    for _ in range(MAX_RECORDED_SECONDS + 5):
        recording.append(second)
    assert recording.seconds == MAX_RECORDED_SECONDS
    assert recording.dropped_bytes == 5 * len(second)
