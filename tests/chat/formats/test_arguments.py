"""Arguments as text and as an object (F5, B08)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.formats.arguments import arguments_object, arguments_text


@pytest.mark.parametrize("arguments", ["", " ", "\n\t"])
def test_empty_arguments_mean_none(arguments):
    assert arguments_text(arguments) == "{}"
    assert arguments_object(arguments) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "San Fra', "null", "[1]", '"x"', "{}extra", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', "true",
        '{"a":' * 300, "[" * 100_000, '{"n": ' + "9" * 5000 + "}", '{"a": ' + "[" * 70 + "]" * 70 + "}",
    ],
)  # fmt: skip
def test_what_is_no_object_is_carried_as_it_is(arguments):
    assert arguments_text(arguments) == arguments
    assert arguments_object(arguments) == {"_raw": arguments}


def test_a_lone_surrogate_does_not_reach_the_provider():
    """F9."""
    assert arguments_text('{"a": "\ud800"}') == '{"a": "\ufffd"}'
    assert arguments_object('{"a": "\ud800"}') == {"a": "\ufffd"}
    assert arguments_object('{"\\ud800": ["\\ud83d\\ude00", {"b": "\\udc00"}]}') == {"\ufffd": ["😀", {"b": "\ufffd"}]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=3), st.booleans())
def test_an_object_is_that_object(value, ascii_only):
    assert arguments_object(json.dumps(value, ensure_ascii=ascii_only)) == value


@given(st.text(st.characters(exclude_categories=())))
def test_anything_at_all_becomes_a_json_object(text):
    json.dumps(arguments_object(text), ensure_ascii=False, allow_nan=False).encode()
    arguments_text(text).encode()
