"""The reading half of OpenAI's protocol: the user's side, items, faults, names of both generations."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.core.model_events import (
    InputBufferCleared,
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptFailed,
    InputTranscriptUpdated,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    ModelFault,
    ResponseEnded,
    ResponseStarted,
    SessionReady,
    SessionUpdated,
    SpeechBegan,
    SpeechEnded,
    UnknownReport,
)
from realtime.wire.openai_decode import OpenAIDecoder, command_of


def decode(*messages, decoder=None):
    decoder = decoder or OpenAIDecoder()
    return [event for message in messages for event in decoder.decode(json.dumps(message))]


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ({"type": "session.updated", "session": {}}, SessionUpdated()),
        (
            {"type": "input_audio_buffer.speech_started", "item_id": "u1", "audio_start_ms": 1460},
            SpeechBegan(item_id="u1", at_ms=1460),
        ),
        (
            {"type": "input_audio_buffer.speech_stopped", "item_id": "u1", "audio_end_ms": 4256},
            SpeechEnded(item_id="u1", at_ms=4256),
        ),
        (
            {"type": "input_audio_buffer.committed", "item_id": "u1", "previous_item_id": "a0"},
            InputCommitted(item_id="u1", previous_item_id="a0"),
        ),
        ({"type": "input_audio_buffer.cleared"}, InputBufferCleared()),
        (
            {
                "type": "conversation.item.added",
                "previous_item_id": None,
                "item": {"id": "m", "type": "message", "role": "user"},
            },
            ItemAdded(item_id="m", kind="message", role="user", previous_item_id=None, has_place=True),
        ),
        (
            {
                "type": "conversation.item.created",
                "previous_item_id": "p",
                "item": {"id": "f", "type": "function_call", "call_id": "c"},
            },
            ItemAdded(item_id="f", kind="function_call", previous_item_id="p", call_id="c"),
        ),
        (
            {"type": "conversation.item.added", "item": {"id": "o", "type": "function_call_output", "call_id": "c"}},
            ItemAdded(item_id="o", kind="function_call_output", has_place=False, call_id="c"),
        ),
        ({"type": "conversation.item.deleted", "item_id": "m"}, ItemDeleted(item_id="m")),
        (
            {"type": "conversation.item.truncated", "item_id": "m", "content_index": 0, "audio_end_ms": 480},
            ItemTruncated(item_id="m", audio_end_ms=480),
        ),
        (
            {"type": "conversation.item.input_audio_transcription.delta", "item_id": "u", "delta": " Hi"},
            InputTranscriptUpdated(item_id="u", delta=" Hi"),
        ),
        (
            {
                "type": "conversation.item.input_audio_transcription.completed",
                "item_id": "u",
                "content_index": 1,
                "transcript": "Hi.",
            },
            InputTranscriptDone(item_id="u", content_index=1, text="Hi."),
        ),
        (
            {
                "type": "conversation.item.input_audio_transcription.failed",
                "item_id": "u",
                "error": {"type": "server_error", "code": "audio_unintelligible", "message": "Say again."},
            },
            InputTranscriptFailed(item_id="u", code="audio_unintelligible", message="Say again."),
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_each_message_about_the_users_side_becomes_its_event(message, event):
    assert decode(message) == [event]


@pytest.mark.parametrize("kind", sorted(OpenAIDecoder.ignored))
def test_what_tells_the_core_nothing_is_known_and_not_counted(kind):
    decoder = OpenAIDecoder()
    assert decode({"type": kind}, decoder=decoder) == []
    assert decoder.unknown.counts() == {}


def test_item_done_never_moves_an_item():
    # wire.md: its previous_item_id is null for spoken replies
    message = {"type": "conversation.item.done", "previous_item_id": None, "item": {"id": "a", "type": "message"}}
    assert decode(message) == []


def test_binary_frames_are_read_like_text():
    assert OpenAIDecoder().decode(b'{"type":"session.updated"}') == [SessionUpdated()]


@pytest.mark.parametrize(("wall", "left"), [(None, None), (1000.0, 2600.0), (9000.0, None)])
def test_expiry_is_told_as_seconds_left_where_the_time_of_day_is_known(wall, left):
    decoder = OpenAIDecoder(wall=wall)
    message = {"type": "session.created", "session": {"id": "s", "expires_at": 3600}}
    assert decode(message, decoder=decoder) == [SessionReady(session_id="s", expires_in_seconds=left)]


def test_unknown_messages_are_reported_and_counted_within_a_bound():
    # L5
    decoder = OpenAIDecoder()
    for number in range(200):
        (event,) = decode({"type": f"tomorrow.{number}"}, decoder=decoder)
        assert event == UnknownReport(type=f"tomorrow.{number}")
    counts = decoder.unknown.counts()
    assert sum(counts.values()) == 200
    assert len(counts) == 65
    assert counts[""] == 200 - 64


@pytest.mark.parametrize("data", ["", "{", "[]", "null", "7", '"x"', b"\xff\xfe", "{}", '{"type": 7}', "[" * 100_000])
def test_what_cannot_be_read_is_a_fault_and_no_exception(data):
    decoder = OpenAIDecoder()
    (event,) = decoder.decode(data)
    assert isinstance(event, ModelFault)
    assert (event.code, event.fatal) == ("malformed_message", False)
    assert decoder.malformed == 1


@pytest.mark.parametrize(
    "kind",
    [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_item.added",
        "response.output_audio.delta",
        "response.output_text.done",
    ],
)
def test_a_message_without_what_it_must_have_is_a_fault_that_names_it(kind):
    (event,) = decode({"type": kind})
    assert isinstance(event, ModelFault)
    assert kind in event.message


@pytest.mark.parametrize(
    "done",
    [
        '{"type": "response.done"}',
        '{"type": "response.done", "response": 7}',
        '{"event_id":"e","type":"response.done","resp',
    ],
)
def test_a_malformed_response_done_still_ends_the_running_response(done):
    decoder = OpenAIDecoder()
    assert decode({"type": "response.created", "response": {"id": "r1"}}, decoder=decoder) == [
        ResponseStarted(response_id="r1")
    ]
    fault, ended = decoder.decode(done)
    assert isinstance(fault, ModelFault)
    assert isinstance(ended, ResponseEnded)
    assert (ended.response_id, ended.status, ended.error_code) == ("r1", "failed", "malformed_message")
    assert len(decoder.decode(done)) == 1  # there is none left to end


class TestErrors:
    """L6: an error names the command that caused it; before the session stands, it is fatal."""

    def fault(self, error, *, ready=True):
        decoder = OpenAIDecoder()
        decoder.configure_id = "k0"
        if ready:
            decode({"type": "session.updated"}, decoder=decoder)
        (event,) = decode({"type": "error", "error": error}, decoder=decoder)
        return event

    def test_the_cause_is_our_command_also_of_its_later_messages(self):
        error = {"type": "invalid_request_error", "code": "invalid_value", "message": "No.", "param": "item.id"}
        fault = self.fault({**error, "event_id": "k7"})
        assert fault == ModelFault(message="No.", code="invalid_value", param="item.id", command_id="k7")
        assert self.fault({**error, "event_id": "k7#3"}).command_id == "k7"
        assert self.fault({**error, "event_id": None}).command_id is None

    def test_an_error_without_code_has_its_type(self):
        assert self.fault({"type": "server_error", "message": "Oops."}).code == "server_error"

    def test_an_empty_error_still_says_something(self):
        assert self.fault({}).message

    @pytest.mark.parametrize(
        ("event_id", "ready", "fatal"),
        [("k0", False, True), (None, False, True), ("k5", False, False), ("k0", True, False), (None, True, False)],
    )
    def test_only_an_error_of_the_handshake_is_fatal(self, event_id, ready, fatal):
        error = {"type": "invalid_request_error", "code": "invalid_value", "message": "No.", "event_id": event_id}
        assert self.fault(error, ready=ready).fatal is fatal

    def test_a_key_that_is_refused_is_fatal_at_any_time_and_an_expired_session_is_not(self):
        assert self.fault({"type": "x", "code": "invalid_api_key", "message": "No."}).fatal
        assert not self.fault({"type": "x", "code": "session_expired", "message": "60 minutes."}).fatal


def test_command_ids_come_back_from_event_ids():
    assert command_of("k7") == "k7"
    assert command_of("k7#12") == "k7"
    assert command_of("") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known = st.sampled_from(sorted(OpenAIDecoder().handlers()) + sorted(OpenAIDecoder.ignored))
fields = st.sampled_from(
    ["item", "item_id", "response", "response_id", "delta", "content_index", "words", "error", "session", "text"]
)
inner_fields = st.sampled_from(["id", "type", "status", "output", "usage", "content", "call_id", "metadata", "code"])
holders = st.dictionaries(
    inner_fields, json_values | st.dictionaries(inner_fields, json_values, max_size=3), max_size=4
)


@given(st.lists(st.tuples(known, st.dictionaries(fields, json_values | holders, max_size=5)), max_size=6))
def test_any_fields_of_any_known_message_decode_without_an_exception(messages):
    decoder = OpenAIDecoder()
    for kind, body in messages:
        for event in decoder.decode(json.dumps({**body, "type": kind})):
            assert event is not None


@given(st.text() | st.binary())
def test_any_data_decodes_without_an_exception(data):
    assert OpenAIDecoder().decode(data)
