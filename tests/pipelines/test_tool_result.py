"""`realtime.pipelines.tool_result`: every result becomes text (T2, T3), falsy ones too (B09), odd ones too (B11)."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel

from realtime.chat.messages import ImageContent
from realtime.pipelines.tool_result import MAX_OUTPUT_CHARACTERS, describe_error, make_result


class Weather(BaseModel):
    degrees: float


@dataclass
class Row:
    name: str
    when: dt.date


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr either")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), ({}, "{}"), ("", ""), (0, "0"), (False, "false"), ([], "[]"), ("hi", "hi"), (1.5, "1.5")],
)
def test_falsy_and_plain_results_are_kept(value, text):
    """B09: presence is tested, not truth."""
    assert make_result(value).output == text
    assert not make_result(value).is_error


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"t": dt.time(0, 25), "f": float("nan")}, {"t": "00:25:00", "f": None}),
        (Weather(degrees=3), {"degrees": 3.0}),
        (Row("a", dt.date(2024, 5, 1)), {"name": "a", "when": "2024-05-01"}),
        ({"b": b"x"}, {"b": "eA=="}),
        ({1: Decimal("1.5"), "p": Path("a/b")}, {"1": "1.5", "p": "a/b"}),
        ([float("inf")], [None]),
        ("ü"[:0] or {"ü": "日本"}, {"ü": "日本"}),
    ],
)
def test_odd_types_become_json(value, expected):
    """B11."""
    assert json.loads(make_result(value).output) == expected


def test_sets_become_lists():
    assert sorted(json.loads(make_result({"s": {1, 2}}).output)["s"]) == [1, 2]


def test_text_stays_real_characters():
    """F9."""
    assert make_result({"ü": "日本"}).output == '{"ü": "日本"}'


def test_what_nobody_can_write_still_gives_text():
    cycle: list[Any] = [1]
    cycle.append(cycle)
    for value in (object(), cycle, Broken(), {"x": Broken()}, lambda: None, {("a", 1): {2}}):
        result = make_result(value)
        assert json.loads(result.output) is not None
        assert len(result.output) < 10_000


def test_lone_surrogates_do_not_reach_the_wire():
    make_result("a\ud800b").output.encode("utf-8")
    make_result({"k": "a\ud800b"}).output.encode("utf-8")


def test_a_result_that_fits_no_message_is_cut_and_says_so():
    result = make_result("x" * (MAX_OUTPUT_CHARACTERS + 5))
    assert len(result.output) < MAX_OUTPUT_CHARACTERS + 100
    assert str(MAX_OUTPUT_CHARACTERS + 5) in result.output


def test_pictures_are_taken_out_wherever_they_sit():
    """T5."""
    picture = ImageContent.from_frame(Image.new("RGB", (8, 4), "red"))
    alone = make_result(picture)
    assert alone.images == (picture,)
    assert alone.output
    assert make_result(("a red square", picture)) == make_result(["a red square", picture])
    assert make_result(("a red square", picture)).output == "a red square"
    nested = make_result({"shots": [{"at": 1, "picture": picture}, picture]})
    assert nested.images == (picture, picture)
    assert "base64" not in nested.output
    assert json.loads(nested.output)["shots"][0]["at"] == 1


def test_frames_and_pillow_images_are_pictures():
    result = make_result(Image.new("RGB", (8, 4), "red"))
    assert len(result.images) == 1
    assert result.images[0].mime_type == "image/jpeg"


def test_errors_are_described_in_a_bounded_line():
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert describe_error(ValueError("no such city")) == "ValueError: no such city"
    assert describe_error(KeyError()) == "KeyError"
    assert describe_error(Mute()) == "Mute"
    assert len(describe_error(ValueError("x" * 10_000))) == 500


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
def test_any_value_gives_text_that_encodes_and_json_that_loads(value):
    result = make_result(value)
    result.output.encode("utf-8")
    if not isinstance(value, str):
        json.loads(result.output, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
