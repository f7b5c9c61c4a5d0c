"""What a server says of responses: audio, text, calls, ends."""

import base64
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.core.model_events import (
    ModelFault,
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextDone,
    OutputTextUpdated,
    OutputWords,
    ResponseEnded,
    ResponseStarted,
    TokenUsage,
    ToolCallDone,
)
from realtime.wire.openai_decode import OpenAIDecoder
from realtime.wire.openai_responses import read_usage

CREATED = {"type": "response.created", "response": {"id": "r1", "metadata": {"wish": "w1", "odd": 3}}}


def decode(*messages, decoder=None):
    decoder = decoder or OpenAIDecoder()
    return [event for message in messages for event in decoder.decode(json.dumps(message))]


def audio(pcm, item_id="a1", index=0, **more):
    return {
        "type": "response.output_audio.delta",
        "response_id": "r1",
        "item_id": item_id,
        "content_index": index,
        "delta": base64.b64encode(pcm).decode(),
        **more,
    }


def call_item(**more):
    return {"id": "f1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", **more}


def item_done(item, response_id="r1"):
    return {"type": "response.output_item.done", "response_id": response_id, "item": item}


def done(**response):
    return {"type": "response.done", "response": {"id": "r1", "status": "completed", **response}}


def test_a_response_starts_with_our_metadata():
    assert decode(CREATED) == [ResponseStarted(response_id="r1", metadata={"wish": "w1"})]


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=12))
def test_audio_cut_anywhere_joins_to_what_was_sent(pcm, cuts):
    # A2, B55
    places = sorted({min(cut, len(pcm)) for cut in cuts} | {0, len(pcm)})
    chunks = [pcm[a:b] for a, b in pairwise(places)]
    events = decode(CREATED, *(audio(chunk) for chunk in chunks))[1:]
    assert all(len(event.pcm) % 2 == 0 and event.pcm for event in events)
    assert b"".join(event.pcm for event in events) == pcm[: len(pcm) // 2 * 2]


def test_half_a_sample_stays_with_its_item_though_items_alternate():
    # B55
    events = decode(audio(b"abc"), audio(b"123", "a2"), audio(b"d"), audio(b"4", "a2"), audio(b"xy", index=1))
    heard = {}
    for event in events:
        heard[event.item_id, event.content_index] = heard.get((event.item_id, event.content_index), b"") + event.pcm
    assert heard == {("a1", 0): b"abcd", ("a2", 0): b"1234", ("a1", 1): b"xy"}


@pytest.mark.parametrize("delta", ["YWJj\nZGVm", "YWJjZGVmZw", "-_-_", "YWJjZGVmZw=="])
def test_base64_of_any_spelling_is_read(delta):
    plain = "".join(delta.split()).rstrip("=").replace("-", "+").replace("_", "/")
    wanted = base64.b64decode(plain + "=" * (-len(plain) % 4))
    events = decode({**audio(b""), "delta": delta})
    assert b"".join(event.pcm for event in events) == wanted[: len(wanted) // 2 * 2]


def test_audio_that_is_no_base64_is_a_fault():
    (event,) = decode({**audio(b""), "delta": "!!!!!"})
    assert isinstance(event, ModelFault)


@pytest.mark.parametrize("prefix", ["response.output_", "response."], ids=["today", "before"])
def test_both_generations_of_names_say_the_same(prefix):
    place = {"response_id": "r1", "item_id": "a1", "content_index": 0}
    events = decode(
        {"type": f"{prefix}audio.delta", **place, "delta": "AAAA"},
        {"type": f"{prefix}audio_transcript.delta", **place, "delta": "Hel"},
        {"type": f"{prefix}audio_transcript.done", **place, "transcript": "Hello"},
        {"type": f"{prefix}audio.done", **place},
        {"type": f"{prefix}text.delta", **place, "item_id": "a2", "delta": "W"},
        {"type": f"{prefix}text.done", **place, "item_id": "a2", "text": "World"},
    )
    assert events == [
        OutputAudio(response_id="r1", item_id="a1", pcm=b"\0\0"),
        OutputTextUpdated(response_id="r1", item_id="a1", delta="Hel", spoken=True),
        OutputTextDone(response_id="r1", item_id="a1", text="Hello", spoken=True),
        OutputTextUpdated(response_id="r1", item_id="a2", delta="W"),
        OutputTextDone(response_id="r1", item_id="a2", text="World"),
    ]


def test_a_server_that_names_no_response_means_the_running_one():
    delta = {"type": "response.output_text.delta", "item_id": "a1", "delta": "x"}
    assert decode(CREATED, delta)[1].response_id == "r1"
    assert isinstance(decode(delta)[0], ModelFault)


class TestCalls:
    """T2: one call, once, whole; a call that was cut off is none."""

    def test_a_call_is_reported_once_whole_when_its_item_is_done(self):
        arguments_done = {
            "type": "response.function_call_arguments.done",
            "response_id": "r1",
            "item_id": "f1",
            "call_id": "c1",
            "name": "look",
            "arguments": "{}",
        }
        item = call_item(status="completed")
        events = decode(CREATED, arguments_done, item_done(item), item_done(item), done(output=[item]))
        calls = [event for event in events if isinstance(event, ToolCallDone)]
        assert calls == [ToolCallDone(response_id="r1", item_id="f1", call_id="c1", name="look", arguments="{}")]
        assert events.index(calls[0]) < next(n for n, event in enumerate(events) if isinstance(event, OutputItemDone))

    def test_a_call_that_was_cut_off_is_not_run(self):
        item = call_item(status="incomplete", arguments='{"ci')
        events = decode(CREATED, item_done(item), done(status="cancelled", output=[item]))
        assert not [event for event in events if isinstance(event, ToolCallDone)]

    def test_a_finished_call_of_a_cancelled_response_stands(self):
        events = decode(CREATED, item_done(call_item(status="completed")), done(status="cancelled"))
        assert [type(event) for event in events] == [ResponseStarted, ToolCallDone, OutputItemDone, ResponseEnded]

    def test_a_server_without_item_done_gives_the_call_at_the_end(self):
        events = decode(CREATED, done(output=[call_item()]))
        assert [type(event) for event in events] == [ResponseStarted, ToolCallDone, ResponseEnded]

    def test_parallel_calls_are_all_reported(self):
        items = [call_item(id=f"f{n}", call_id=f"c{n}") for n in range(3)]
        events = decode(CREATED, *map(item_done, items))
        assert [event.call_id for event in events if isinstance(event, ToolCallDone)] == ["c0", "c1", "c2"]

    def test_the_kind_of_an_item_is_told_when_it_starts(self):
        added = {"type": "response.output_item.added", "response_id": "r1", "item": call_item(status="in_progress")}
        assert decode(added) == [OutputItemStarted(response_id="r1", item_id="f1", kind="function_call")]

    def test_a_providers_own_kind_of_item_is_none_of_ours(self):
        item = {"id": "x1", "type": "mcp_call"}
        added = {"type": "response.output_item.added", "response_id": "r1", "item": item}
        assert decode(added, item_done(item), {"type": "conversation.item.added", "item": item}) == []


class TestText:
    def test_the_final_text_is_taken_from_the_item_where_the_server_sent_no_done(self):
        content = [
            {"type": "output_audio", "transcript": "Hi"},
            {"type": "text", "text": "there"},
            7,
            {"type": "audio"},
        ]
        events = decode(item_done({"id": "a1", "type": "message", "content": content}))
        assert events == [
            OutputTextDone(response_id="r1", item_id="a1", content_index=0, text="Hi", spoken=True),
            OutputTextDone(response_id="r1", item_id="a1", content_index=1, text="there"),
            OutputItemDone(response_id="r1", item_id="a1"),
        ]

    def test_the_final_text_of_a_part_is_reported_once(self):
        # H5
        text_done = {
            "type": "response.output_audio_transcript.done",
            "response_id": "r1",
            "item_id": "a1",
            "content_index": 0,
            "transcript": "Hi",
        }
        item = {"id": "a1", "type": "message", "content": [{"type": "output_audio", "transcript": "Hi"}]}
        events = decode(CREATED, text_done, item_done(item), done(output=[item]))
        assert len([event for event in events if isinstance(event, OutputTextDone)]) == 1

    def test_a_messages_phase_is_carried(self):
        # V3
        events = decode(item_done({"id": "a1", "type": "message", "phase": "commentary"}))
        assert events == [OutputItemDone(response_id="r1", item_id="a1", provider_data={"phase": "commentary"})]

    def test_word_times_are_read(self):
        words = {
            "type": "response.output_audio_transcript.words",
            "response_id": "r1",
            "item_id": "a1",
            "content_index": 0,
            "words": [["Hello", 320], [" there", 610.4]],
        }
        wanted = (("Hello", 320), (" there", 610))
        assert decode(words) == [OutputWords(response_id="r1", item_id="a1", words=wanted)]
        assert isinstance(decode({**words, "words": [["Hello"]]})[0], ModelFault)

    def test_a_lone_surrogate_becomes_a_replacement_character(self):
        # F9
        (event,) = OpenAIDecoder().decode(
            '{"type":"response.output_text.delta","response_id":"r1","item_id":"a1","delta":"a\\ud83d"}'
        )
        assert event.delta == "a\ufffd"


class TestEnds:
    def test_a_cancelled_response_says_why(self):
        events = decode(
            CREATED, done(status="cancelled", status_details={"type": "cancelled", "reason": "turn_detected"})
        )
        assert events[-1] == ResponseEnded(response_id="r1", status="cancelled", reason="turn_detected")

    def test_a_failed_response_carries_the_error(self):
        error = {"type": "server_error", "code": None, "message": "Oops."}
        events = decode(CREATED, done(status="failed", status_details={"type": "failed", "error": error}))
        assert (events[-1].status, events[-1].error_code, events[-1].error_message) == (
            "failed",
            "server_error",
            "Oops.",
        )

    @pytest.mark.parametrize(
        ("status", "wanted"), [("in_progress", "incomplete"), ("odd", "incomplete"), (None, "completed")]
    )
    def test_a_status_nobody_knows_is_incomplete_and_none_is_completed(self, status, wanted):
        assert decode(done(status=status))[-1].status == wanted

    def test_an_earlier_responses_late_done_ends_only_that_one(self):
        # T1, B31
        other = {"type": "response.created", "response": {"id": "r2"}}
        events = decode(CREATED, other, done())
        assert [event.response_id for event in events] == ["r1", "r2", "r1"]

    def test_audio_that_trails_its_responses_end_starts_no_new_one(self):
        decoder = OpenAIDecoder()
        decode(CREATED, done(), audio(b"ab"), decoder=decoder)
        (fault,) = decoder.decode('{"type":"response.done"}')
        assert isinstance(fault, ModelFault)

    def test_a_server_that_never_ends_a_response_does_not_grow_us(self):
        decoder = OpenAIDecoder()
        for number in range(500):
            decode({"type": "response.created", "response": {"id": f"r{number}"}}, decoder=decoder)
            decode({**audio(b"abc"), "response_id": f"r{number}"}, decoder=decoder)
        assert len(decoder.responses.running) <= 64
        assert len(decoder.responses._seen) <= 16


def test_usage_is_read_by_kind():
    usage = {
        "total_tokens": 114,
        "input_tokens": 16,
        "output_tokens": 98,
        "input_token_details": {"cached_tokens": 3, "audio_tokens": 5, "image_tokens": 7},
        "output_token_details": {"text_tokens": 16, "audio_tokens": 82},
    }
    assert read_usage(usage) == TokenUsage(
        input_tokens=16,
        output_tokens=98,
        total_tokens=114,
        cached_tokens=3,
        input_audio_tokens=5,
        input_image_tokens=7,
        output_audio_tokens=82,
    )
    assert read_usage({}) is None
    assert read_usage({"input_tokens": 2, "output_tokens": 3}).total_tokens == 5
    assert read_usage({"input_tokens": "many", "total_tokens": -4}) == TokenUsage()
