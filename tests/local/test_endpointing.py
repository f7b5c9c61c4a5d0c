"""When the user begins, pauses, goes on and has finished, from one probability per window of 32 ms."""

from __future__ import annotations

import pytest

from realtime.errors import ArgumentError
from realtime.local.endpointing import (
    Endpointer,
    EndpointingSettings,
    Heard,
    SpeechEnd,
    SpeechPause,
    SpeechResume,
    SpeechStart,
)

WINDOW = 32.0


def hear(endpointer: Endpointer, *runs: tuple[float, int]) -> list[Heard]:
    """Feed runs of (probability, windows); gives what they meant."""
    heard = [endpointer.hear(probability) for probability, count in runs for _ in range(count)]
    return [meaning for meaning in heard if meaning is not None]


def make(**settings: object) -> Endpointer:
    return Endpointer(EndpointingSettings(**settings), window_ms=WINDOW)  # type: ignore[arg-type]


def test_a_turn_has_a_start_with_padding_a_pause_and_an_end_with_its_silence() -> None:
    heard = hear(make(), (0.0, 20), (0.9, 10), (0.0, 10))
    assert heard == [
        SpeechStart(at_ms=640 - 300),
        SpeechPause(at_ms=960, silence_ms=32),
        SpeechEnd(at_ms=960 + 192, speech_end_ms=960),
    ]


def test_one_loud_window_is_a_click_and_no_speech() -> None:
    assert hear(make(), (0.0, 5), (0.9, 1), (0.0, 20)) == []


def test_padding_never_reaches_before_the_stream_or_into_the_turn_before() -> None:
    endpointer = make()
    first = hear(endpointer, (0.9, 4), (0.0, 8))
    assert first[0] == SpeechStart(at_ms=0)
    assert isinstance(first[-1], SpeechEnd)
    second = hear(endpointer, (0.0, 2), (0.9, 3))
    assert second == [SpeechStart(at_ms=first[-1].at_ms)]


def test_speech_after_a_pause_goes_on_with_the_same_turn() -> None:
    heard = hear(make(silence_ms=500), (0.9, 5), (0.0, 5), (0.9, 5), (0.0, 20))
    assert [type(meaning) for meaning in heard] == [SpeechStart, SpeechPause, SpeechResume, SpeechPause, SpeechEnd]
    assert heard[2] == SpeechResume(at_ms=320)


def test_speech_that_has_begun_goes_on_a_little_below_the_threshold() -> None:
    heard = hear(make(), (0.9, 3), (0.4, 30))
    assert [type(meaning) for meaning in heard] == [SpeechStart]


@pytest.mark.parametrize(("silence_ms", "windows"), [(200, 6), (500, 16), (32, 1), (1000, 31)])
def test_the_silence_is_the_one_that_was_set_to_the_nearest_window(silence_ms: int, windows: int) -> None:
    endpointer = make(silence_ms=silence_ms)
    hear(endpointer, (0.9, 5))
    ends = [endpointer.hear(0.0) for _ in range(windows)]
    assert [isinstance(meaning, SpeechEnd) for meaning in ends] == [False] * (windows - 1) + [True]


def test_a_higher_threshold_needs_surer_speech() -> None:
    assert hear(make(threshold=0.8), (0.7, 10)) == []
    assert hear(make(threshold=0.6), (0.7, 10)) == [SpeechStart(at_ms=0)]


@pytest.mark.parametrize(("eagerness", "cap_ms"), [("low", 8000), ("medium", 4000), ("auto", 4000), ("high", 2000)])
def test_semantic_turns_end_by_silence_only_at_their_cap(eagerness: str, cap_ms: int) -> None:
    endpointer = make(semantic=eagerness)
    hear(endpointer, (0.9, 5))
    windows = 0
    while not isinstance(endpointer.hear(0.0), SpeechEnd):
        windows += 1
    assert abs((windows + 1) * WINDOW - cap_ms) <= WINDOW


def test_finishing_ends_the_turn_here_and_now() -> None:
    endpointer = make(semantic="low")
    hear(endpointer, (0.9, 5), (0.0, 4))
    assert endpointer.finish() == SpeechEnd(at_ms=288, speech_end_ms=160)
    assert endpointer.finish() is None
    assert not endpointer.speaking


@pytest.mark.parametrize(
    "bad",
    [{"threshold": 1.5}, {"threshold": -0.1}, {"silence_ms": -1}, {"prefix_padding_ms": 1.5}, {"semantic": "maybe"}],
)
def test_settings_that_cannot_be_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        EndpointingSettings(**bad)  # type: ignore[arg-type]
