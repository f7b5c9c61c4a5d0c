"""`realtime.pipelines.mixer`: several microphones as one stream, by sample positions (A3)."""

from __future__ import annotations

import sys
from array import array
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from realtime.pipelines.mixer import Mixer

RATE = 1_000  # one sample a millisecond keeps the figures readable


def samples(*values: int) -> bytes:
    return array("h", values).tobytes()


def values(data: bytes) -> list[int]:
    return array("h", data).tolist()


def test_one_source_passes_untouched():
    mixer = Mixer(RATE)
    mixer.add("a")
    data = samples(1, 2, 3)
    assert mixer.push("a", data) is data


def test_two_sources_are_added_at_the_same_positions():
    mixer = Mixer(RATE)
    mixer.add("a")
    mixer.add("b")
    assert mixer.push("a", samples(1, 2, 3)) == b""
    assert values(mixer.push("b", samples(10, 20))) == [11, 22]
    assert values(mixer.push("b", samples(30, 40))) == [33]


def test_loud_sources_clip_and_do_not_wrap():
    mixer = Mixer(RATE)
    mixer.add("a")
    mixer.add("b")
    mixer.push("a", samples(30_000, -30_000))
    assert values(mixer.push("b", samples(30_000, -30_000))) == [32_767, -32_768]


def test_a_source_that_says_nothing_does_not_mute_the_others():
    mixer = Mixer(RATE, max_lag_ms=50)
    mixer.add("a")
    mixer.add("silent")
    out = b"".join(mixer.push("a", samples(*[7] * 20)) for _ in range(10))
    assert len(values(out)) >= 150


def test_a_source_that_comes_late_joins_at_the_present_position():
    mixer = Mixer(RATE, max_lag_ms=10)
    mixer.add("a")
    mixer.add("late")
    out = mixer.push("a", samples(*[1] * 100))
    out += mixer.push("late", samples(5, 5))
    out += mixer.push("a", samples(1, 1))
    assert mixer.late == len(values(out)) - 2 or mixer.late > 0
    out += mixer.remove("late")
    assert values(out).count(6) == 2


def test_a_source_added_in_mid_stream_stands_where_the_stream_is():
    mixer = Mixer(RATE)
    mixer.add("a")
    mixer.push("a", samples(*[1] * 1000))
    mixer.add("b")
    mixer.push("b", samples(5))
    assert values(mixer.push("a", samples(1))) == [6]
    assert mixer.late == 0


def test_removing_the_source_that_was_waited_for_gives_what_it_held_back():
    mixer = Mixer(RATE)
    mixer.add("a")
    mixer.add("b")
    mixer.push("a", samples(1, 2, 3))
    assert values(mixer.remove("b")) == [1, 2, 3]
    assert values(mixer.push("a", samples(4))) == [4]


def test_seconds_at_once_cost_no_work_for_each_sample():
    """Nothing holds the loop over 5 ms: a pause of a sender is given to the mixer in one piece."""
    mixer = Mixer(24_000)
    mixer.add("a")
    mixer.add("b")
    mixer.push("b", samples(1))
    lines = 0

    def count(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        mixed = mixer.push("a", bytes(240_000))
    finally:
        sys.settrace(before)
    assert len(mixed) == 240_000
    assert lines < 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(-32_768, 32_767), max_size=40)), max_size=40))
def test_any_sequence_equals_the_naive_sum_and_stays_bounded(pushes):
    mixer = Mixer(RATE, max_lag_ms=100_000)
    for name in "abc":
        mixer.add(name)
    lines: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    out: list[int] = []
    for name, chunk in pushes:
        lines[name] += chunk
        out += values(mixer.push(name, samples(*chunk)))
        assert len(out) == min(map(len, lines.values()))
    for name in "abc":
        out += values(mixer.remove(name))
    length = max(map(len, lines.values()))
    padded = [line + [0] * (length - len(line)) for line in lines.values()]
    assert out == [min(32_767, max(-32_768, sum(column))) for column in zip(*padded, strict=True)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "push"]), st.sampled_from("ab"), st.integers(0, 40)), max_size=30
    )
)
def test_audio_of_the_only_source_need_not_be_pushed(steps):
    """Whoever asks `alone` first gets what a mixer gives that is pushed everything, and the same is late."""
    asked, pushed = Mixer(RATE, max_lag_ms=10), Mixer(RATE, max_lag_ms=10)
    sources: set[str] = set()
    for number, (act, source, count) in enumerate(steps):
        if act == "add":
            sources.add(source)
            asked.add(source)
            pushed.add(source)
        elif act == "remove":
            sources.discard(source)
            assert asked.remove(source) == pushed.remove(source)
        elif source in sources:
            data = samples(*[number + 1] * count)
            given_back = data if asked.alone == source else asked.push(source, data)
            assert given_back == pushed.push(source, data)
    assert asked.late == pushed.late
