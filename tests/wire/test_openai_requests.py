"""What a server does with a client's event: read it, refuse it with the code and the field that are to blame."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ModelError
from realtime.testing import sample_commands
from realtime.wire.openai import OpenAIWire
from realtime.wire.openai_messages import client_event_id, error_event, parse_client_event


@pytest.mark.parametrize("command", sample_commands(), ids=lambda command: type(command).__name__)
def test_all_that_our_client_says_is_read(command):
    for message in OpenAIWire().encode(command):
        assert parse_client_event(message) == json.loads(message)


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ("{", "invalid_event", ""),
        ("[]", "invalid_event", ""),
        ({}, "invalid_event", ""),
        ({"type": 3}, "invalid_event", ""),
        ({"type": "session.destroy"}, "invalid_value", "type"),
        ({"type": "session.update"}, "missing_required_parameter", "session"),
        ({"type": "session.update", "session": []}, "invalid_type", "session"),
        ({"type": "input_audio_buffer.append", "audio": 7}, "invalid_type", "audio"),
        ({"type": "conversation.item.create"}, "missing_required_parameter", "item"),
        ({"type": "conversation.item.delete", "item_id": None}, "missing_required_parameter", "item_id"),
        (
            {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": True},
            "invalid_type",
            "audio_end_ms",
        ),
        (
            {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 1.5},
            "invalid_type",
            "audio_end_ms",
        ),
        ({"type": "response.create", "response": "now"}, "invalid_type", "response"),
    ],
)
def test_what_cannot_be_is_refused_with_code_and_field(event, code, param):
    with pytest.raises(ModelError) as caught:
        parse_client_event(event if isinstance(event, str) else json.dumps(event))
    assert (caught.value.code, caught.value.param) == (code, param)


def test_optional_fields_may_be_left_out():
    assert parse_client_event('{"type":"response.create"}') == {"type": "response.create"}
    assert parse_client_event('{"type":"response.cancel","response_id":"r1"}')


def test_the_error_event_names_the_cause_and_whose_fault_it_is():
    fault = ModelError("No.", code="invalid_value", param="item.id")
    event = error_event("e1", fault, cause="k7")
    assert event == {
        "type": "error",
        "event_id": "e1",
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_value",
            "message": "No.",
            "param": "item.id",
            "event_id": "k7",
        },
    }
    ours = error_event("e2", ModelError("Oops."))["error"]
    assert (ours["type"], ours["code"], ours["event_id"]) == ("server_error", None, None)
    (reported,) = OpenAIWire().decode(json.dumps(event))
    assert (reported.command_id, reported.code, reported.param) == ("k7", "invalid_value", "item.id")


def test_the_clients_own_id_is_found_in_what_was_refused():
    assert client_event_id('{"type":"nonsense","event_id":"k7"}') == "k7"
    assert client_event_id('{"event_id":7}') is None
    assert client_event_id("{") is None


@given(st.text() | st.binary() | st.dictionaries(st.sampled_from(["type", "item", "audio"]), st.text()).map(json.dumps))
def test_whatever_a_client_sends_is_read_or_refused(data):
    try:
        assert "type" in parse_client_event(data)
    except ModelError as error:
        assert error.code  # noqa: PT017  (either way)
