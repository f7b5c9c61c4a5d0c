"""The JSON of telephone media streams: what is read, what is refused, what is written."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ModelError
from realtime.wire.media_stream import (
    MAX_STREAM_MESSAGE_BYTES,
    DigitPressed,
    MarkPassed,
    MediaArrived,
    StreamOpened,
    StreamStarted,
    StreamStopped,
    UnknownStreamMessage,
    clear_message,
    mark_message,
    media_message,
    read_stream_message,
)

MEDIA = {
    "event": "media",
    "sequenceNumber": "4",
    "streamSid": "MZ1",
    "media": {"track": "inbound", "chunk": "2", "timestamp": "40", "payload": "f///"},
}
START = {
    "event": "start",
    "sequenceNumber": "1",
    "streamSid": "MZ1",
    "start": {
        "streamSid": "MZ1",
        "accountSid": "AC1",
        "callSid": "CA1",
        "tracks": ["inbound"],
        "customParameters": {"name": "Ada", "number": 7},
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    },
}


def read(message: object) -> object:
    return read_stream_message(json.dumps(message))


def test_each_message_of_a_call_is_read():
    assert read({"event": "connected", "protocol": "Call", "version": "1.0.0"}) == StreamOpened(protocol="Call")
    assert read(START) == StreamStarted(stream_id="MZ1", call_id="CA1", account_id="AC1", parameters={"name": "Ada"})
    assert read(MEDIA) == MediaArrived(stream_id="MZ1", payload=b"\x7f\xff\xff", chunk=2, at_ms=40)
    assert read({"event": "mark", "streamSid": "MZ1", "mark": {"name": "m"}}) == MarkPassed(stream_id="MZ1", name="m")
    assert read({"event": "dtmf", "streamSid": "MZ1", "dtmf": {"track": "inbound_track", "digit": "#"}}) == (
        DigitPressed(stream_id="MZ1", digit="#")
    )
    assert read({"event": "stop", "streamSid": "MZ1", "stop": {}}) == StreamStopped(stream_id="MZ1")
    assert read({"event": "novelty"}) == UnknownStreamMessage(event="novelty")


def test_numbers_may_be_numbers_and_may_be_missing():
    media = {"payload": "fw==", "chunk": 3, "timestamp": 60}
    assert read({**MEDIA, "media": media}) == MediaArrived(stream_id="MZ1", payload=b"\x7f", chunk=3, at_ms=60)
    assert read({**MEDIA, "media": {"payload": "fw=="}}) == MediaArrived(stream_id="MZ1", payload=b"\x7f")
    for odd in ("-1", "x", "1" * 40, 1.5, True, None):
        assert read({**MEDIA, "media": {"payload": "fw==", "chunk": odd}}) == MediaArrived(
            stream_id="MZ1", payload=b"\x7f"
        )


@pytest.mark.parametrize(
    "damaged",
    [
        {**MEDIA, "media": {}},
        {**MEDIA, "media": {"payload": ""}},
        {**MEDIA, "media": {"payload": "!"}},
        {**MEDIA, "media": "sound"},
        {"event": "mark", "mark": {}},
        {"event": "dtmf", "dtmf": {"digit": "12"}},
        {"event": "dtmf", "dtmf": {"digit": "x"}},
        {"event": "start", "start": {}},
        [],
        "media",
    ],
)
def test_a_message_that_lacks_what_it_must_have_is_a_typed_error(damaged: object):
    with pytest.raises(ModelError) as caught:
        read(damaged)
    assert caught.value.code == "malformed_message"


def test_a_message_that_is_too_large_is_not_parsed():
    with pytest.raises(ModelError, match="over"):
        read_stream_message(json.dumps({**MEDIA, "more": "x" * MAX_STREAM_MESSAGE_BYTES}))


def code_of(data: str | bytes) -> str | None:
    """The code of what a message is refused with; None: it is read."""
    try:
        read_stream_message(data)
    except ModelError as error:
        return error.code
    return None


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_whatever_comes_is_read_or_refused_by_a_typed_error(data: str | bytes):
    assert code_of(data) in (None, "malformed_message")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists))
def test_whatever_stands_in_a_field_is_read_or_refused_by_a_typed_error(value: object):
    for message in (MEDIA, START, {"event": "mark", "mark": {"name": "m"}}, {"event": "dtmf", "dtmf": {"digit": "1"}}):
        for key in message:
            assert code_of(json.dumps({**message, key: value})) in (None, "malformed_message")


def test_what_is_written_is_what_the_far_end_takes():
    assert json.loads(media_message("MZ1", b"\x7f\xff")) == {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"payload": "f/8="},
    }
    assert json.loads(mark_message("MZ1", "heard-1")) == {
        "event": "mark",
        "streamSid": "MZ1",
        "mark": {"name": "heard-1"},
    }
    assert json.loads(clear_message("MZ1")) == {"event": "clear", "streamSid": "MZ1"}


@given(stream_id=st.text(max_size=40).filter(lambda text: "\x7f" not in text), payload=st.binary(max_size=400))
def test_sound_is_written_as_json_would_write_it(stream_id, payload):
    """A DEL, which JSON may escape or not, is in no stream's id."""
    media = {"payload": base64.b64encode(payload).decode()}
    message = {"event": "media", "streamSid": stream_id, "media": media}
    assert media_message(stream_id, payload) == json.dumps(message, ensure_ascii=False, separators=(",", ":"))
