"""Reading JSON without trusting it."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ModelError
from realtime.wire import json_fields as fields


@given(st.text())
def test_what_is_written_is_utf8_with_real_characters(text):
    # F9
    written = fields.dump_message({"text": text})
    written.encode()
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert json.loads(written) == {"text": text}
        assert "\\u" not in fields.dump_message({"text": "żółć 猫 🐈"})


def test_a_pair_of_surrogates_is_its_character_and_a_lone_one_is_replaced():
    assert fields.whole_text("a\ud83d\udc08b") == "a🐈b"
    assert fields.whole_text("a\ud83db") == "a\ufffdb"
    assert fields.whole_text("plain") == "plain"


def test_numbers_that_json_does_not_know_are_not_written():
    with pytest.raises(ValueError):
        fields.dump_message({"speed": float("nan")})


@pytest.mark.parametrize("data", ["", "{", "[1]", "null", '"x"', b"\xff", "{" * 100_000 + '"a":'])
def test_what_is_no_object_is_one_kind_of_error(data):
    with pytest.raises(ModelError) as caught:
        fields.parse_message(data)
    assert caught.value.code == "malformed_message"


@given(st.binary())
def test_base64_round_trip(data):
    assert fields.encode_base64(data) == base64.b64encode(data).decode()
    assert fields.decode_base64(fields.encode_base64(data)) == data
    assert fields.decode_base64(base64.urlsafe_b64encode(data).decode().rstrip("=")) == data


@pytest.mark.parametrize("text", ["a", "ä", "AAA*", "AAAA=A"])
def test_what_is_no_base64_is_none(text):
    assert fields.decode_base64(text) is None


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (7, 7),
        (7.6, 8),
        (0, 0),
        (-1, 3),
        (True, 3),
        ("7", 3),
        (None, 3),
        (float("nan"), 3),
        (float("inf"), 3),
        (2**70, 3),
    ],
)
def test_counts_are_whole_and_not_negative(value, count):
    assert fields.count_of({"n": value}, "n", 3) == count
    assert fields.as_count(value, 3) == count


def test_each_reader_takes_its_type_and_nothing_else():
    message = {"s": "x", "o": {"a": 1, "b": "y"}, "l": [1, {}], "f": True, "n": 1.5}
    assert [fields.text_of(message, key) for key in "solfn"] == ["x", "", "", "", ""]
    assert fields.optional_text_of(message, "o") is None
    assert [fields.object_of(message, key) for key in "sol"] == [{}, {"a": 1, "b": "y"}, {}]
    assert fields.list_of(message, "l") == [1, {}]
    assert fields.list_of(message, "o") == []
    assert fields.objects_of(message, "l") == [{}]
    assert fields.strings_of(message, "o") == {"b": "y"}
    assert fields.flag_of(message, "f") is True
    assert fields.flag_of(message, "s") is False
    assert fields.number_of(message, "n") == 1.5
    assert fields.number_of(message, "f") is None


def test_a_required_field_is_missed_by_name():
    with pytest.raises(fields.MissingFieldError, match="item_id"):
        fields.required_text({"item_id": ""}, "item_id")


def _slowly(monkeypatch):
    for name in ("_fast_loads", "_fast_decode"):
        monkeypatch.setattr(fields, name, None)
    monkeypatch.setattr(fields, "encode_base64", fields._plain_encode)


def _read(read, data):
    try:
        return read(data)
    except ModelError as error:
        return error.code


@given(
    st.one_of(
        st.text(),
        st.binary(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ).map(lambda value: json.dumps({"value": value})),
    )
)
def test_json_reads_the_same_with_and_without_the_extra(data):
    fast = _read(fields.parse_message, data)
    with pytest.MonkeyPatch.context() as patch:
        _slowly(patch)
        slow = _read(fields.parse_message, data)
    assert repr(_rounded(fast)) == repr(_rounded(slow))


def _rounded(value):
    """What no field can hold is read as the nearest float, or whole: no reader takes either."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


@given(st.binary() | st.text(alphabet="ABCabc012+/-_= \n", max_size=24))
def test_base64_reads_and_writes_the_same_with_and_without_the_extra(data):
    if isinstance(data, bytes):
        fast = fields.encode_base64(data)
    else:
        fast = fields.decode_base64(data)
    with pytest.MonkeyPatch.context() as patch:
        _slowly(patch)
        slow = fields.encode_base64(data) if isinstance(data, bytes) else fields.decode_base64(data)
    assert fast == slow


def test_without_the_extra_everything_is_read_too(monkeypatch):
    _slowly(monkeypatch)
    assert fields.parse_message('{"a": "é"}') == {"a": "é"}
    with pytest.raises(ModelError, match="no JSON"):
        fields.parse_message("{")
    assert fields.decode_base64(fields.encode_base64(b"abc")) == b"abc"
    assert fields._optional("a_package_that_nobody_has", "loads") is None
