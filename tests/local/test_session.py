"""The protocol, event by event, with stand-ins for the models. Every server event is checked against OpenAI's types."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from realtime.core.model_events import OutputWords
from realtime.errors import BusyError
from realtime.local.parts import ToolCall
from realtime.local.session import SessionLimits
from realtime.wire.openai_decode import OpenAIDecoder

from .kit import Client, FlatEyes, ScriptedRecognizer, ScriptedResponder, loud, make_parts, picture, quiet

COMMITTED = ["input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"]
REPLY_BEGINS = ["response.output_item.added", "conversation.item.added", "response.content_part.added"]
SPOKEN_ENDS = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
]
"""The orders of the recordings of OpenAI's server."""


# -- the session -------------------------------------------------------------------------------------------------------


async def test_a_session_greets_with_its_configuration() -> None:
    async with Client(make_parts(), model="gpt-realtime", limits=SessionLimits(silence_ms=300)) as client:
        (created,) = client.events
        session = created["session"]
        assert created["type"] == "session.created"
        assert session["model"] == "gpt-realtime"
        assert session["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300
        assert session["audio"]["output"]["format"] == {"type": "audio/pcm", "rate": 24000}
        assert session["expires_at"] == int(client.clock.wall()) + 3600


async def test_an_update_is_answered_with_the_whole_configuration() -> None:
    async with Client(make_parts()) as client:
        (updated,) = await client.update(instructions="Be brief.", audio={"output": {"speed": 1.2}})
        assert updated["type"] == "session.updated"
        assert updated["session"]["instructions"] == "Be brief."
        assert updated["session"]["audio"]["output"]["speed"] == 1.2
        assert updated["session"]["id"] == client.events[0]["session"]["id"]


async def test_a_refused_update_changes_nothing_and_names_its_cause() -> None:
    """L6: the error carries the client's own id of the event."""
    async with Client(make_parts()) as client:
        await client.say(
            "session.update", event_id="ev_1", session={"type": "realtime", "instructions": "x", "volume": 3}
        )
        (error,) = client.errors
        assert (error["code"], error["param"], error["event_id"]) == ("unknown_parameter", "session.volume", "ev_1")
        (updated,) = await client.update()
        assert updated["session"]["instructions"] == ""


@pytest.mark.parametrize(
    ("wire", "code", "param"),
    [
        ("no json", "invalid_event", None),
        ("[]", "invalid_event", None),
        ("{}", "invalid_event", None),
        ('{"type": "session.destroy"}', "invalid_value", "type"),
        ('{"type": "session.update"}', "missing_required_parameter", "session"),
        ('{"type": "input_audio_buffer.append", "audio": 5}', "invalid_type", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": "%%"}', "invalid_value", "audio"),
        ('{"type": "output_audio_buffer.clear"}', "invalid_value", "type"),
        ('{"type": "response.cancel"}', "response_cancel_not_active", None),
        ('{"type": "conversation.item.delete", "item_id": "x"}', "item_delete_invalid_item_id", "item_id"),
        ('{"type": "conversation.item.retrieve", "item_id": "x"}', "item_retrieve_invalid_item_id", "item_id"),
        (
            '{"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": 0}',
            "item_truncate_invalid_item_id",
            "item_id",
        ),
    ],
)
async def test_faults_of_the_client_are_answered_and_the_session_goes_on(
    wire: str, code: str, param: str | None
) -> None:
    async with Client(make_parts()) as client:
        await client.session.receive(wire)
        await client.settle()
        (error,) = client.errors
        assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
        assert (await client.update())[0]["type"] == "session.updated"


async def test_a_fault_of_the_server_is_said_so_and_the_session_goes_on() -> None:
    class Broken(FlatEyes):
        async def prepare(self) -> None:
            raise RuntimeError("no eyes")

    parts = make_parts(eyes=Broken())
    async with Client(parts) as client:
        client.session._handlers["input_audio_buffer.clear"] = _fail
        await client.say("input_audio_buffer.clear", event_id="ev_2")
        (error,) = client.errors
        assert (error["type"], error["event_id"]) == ("server_error", "ev_2")
        image = {"type": "input_image", "image_url": picture().url}
        await client.say("conversation.item.create", item={"type": "message", "role": "user", "content": [image]})
        assert (await client.update())[0]["type"] == "session.updated"


async def _fail(_event: Any) -> None:
    raise RuntimeError("broken")


async def test_a_session_ends_when_it_has_lived_as_long_as_it_may() -> None:
    async with Client(make_parts(), limits=SessionLimits(max_seconds=60)) as client:
        await client.clock.run(59.9)
        assert not client.session.expired.is_set()
        await client.clock.run(0.2)
        await client.settle()
        assert client.session.expired.is_set()
        assert client.errors[-1]["code"] == "session_expired"


# -- a spoken turn -----------------------------------------------------------------------------------------------------


async def test_a_spoken_turn_has_the_events_of_the_recordings_in_their_order() -> None:
    parts = make_parts(
        ScriptedResponder("Hello there. How are you?"), recognizer=ScriptedRecognizer("hello there friend")
    )
    async with Client(parts) as client:
        await client.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
        events = await client.append(quiet(500) + loud(600) + quiet(400))
        assert client.types(events) == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            *COMMITTED,
            "response.created",
            "rate_limits.updated",
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
            *REPLY_BEGINS,
            "response.output_audio_transcript.delta",
            "response.output_audio.delta",
            "response.output_audio_transcript.delta",
            "response.output_audio.delta",
            *SPOKEN_ENDS,
        ]
        started, stopped = events[0], events[1]
        assert 150 <= started["audio_start_ms"] <= 250
        assert 1250 <= stopped["audio_end_ms"] <= 1350
        item_id = started["item_id"]
        assert client.last("input_audio_buffer.committed") | {"event_id": 0} == {
            "type": "input_audio_buffer.committed",
            "event_id": 0,
            "item_id": item_id,
            "previous_item_id": None,
        }
        done = client.last("conversation.item.input_audio_transcription.completed")
        assert (done["item_id"], done["transcript"]) == (item_id, "hello there friend")
        response = client.last("response.done")["response"]
        assert response["status"] == "completed"
        (output,) = response["output"]
        assert output["content"] == [{"type": "output_audio", "transcript": "Hello there. How are you?"}]
        added = client.of("conversation.item.added")[-1]
        assert added["previous_item_id"] == item_id
        assert response["usage"]["input_token_details"]["audio_tokens"] > 0


async def test_words_are_timed_and_audio_comes_in_short_chunks() -> None:
    async with Client(make_parts(ScriptedResponder("One two three four five. Six seven."))) as client:
        await client.type("go")
        await client.say("response.create")
        deltas = client.of("response.output_audio.delta")
        assert [delta.get("words") for delta in deltas if "words" in delta] == [
            [["One", 100], [" two", 200], [" three", 300], [" four", 400], [" five.", 500]],
            [[" Six", 600], [" seven.", 700]],
        ]
        sizes = [len(base64.b64decode(delta["delta"])) for delta in deltas]
        assert sum(sizes) == 700 * 48
        assert max(sizes) <= 200 * 48
        decoder = OpenAIDecoder()
        events = [event for delta in client.events for event in decoder.decode(json.dumps(delta))]
        words = [word for event in events if isinstance(event, OutputWords) for word in event.words]
        assert "".join(word for word, _end in words) == "One two three four five. Six seven."


async def test_without_transcription_no_transcript_is_sent_and_the_words_are_still_used() -> None:
    responder = ScriptedResponder()
    async with Client(make_parts(responder, recognizer=ScriptedRecognizer("what time is it"))) as client:
        await client.append(quiet(300) + loud(500) + quiet(400))
        assert not [name for name in client.types() if "transcription" in name]
        assert responder.requests[0].messages[-1].content == "what time is it"


async def test_a_transcription_that_fails_is_said_so_and_the_turn_is_answered() -> None:
    recognizer = ScriptedRecognizer("x")
    recognizer.error = BusyError("16 pieces of work of this session are waiting")
    async with Client(make_parts(recognizer=recognizer)) as client:
        await client.update(audio={"input": {"transcription": {}}})
        await client.append(loud(1500) + quiet(400))
        failed = client.last("conversation.item.input_audio_transcription.failed")
        assert failed["error"]["code"] == "rate_limit_exceeded"
        assert client.last("response.done")["response"]["status"] == "completed"


async def test_a_noise_without_words_is_committed_and_not_answered() -> None:
    responder = ScriptedResponder()
    async with Client(make_parts(responder, recognizer=ScriptedRecognizer(""))) as client:
        await client.append(quiet(300) + loud(200) + quiet(400))
        response = client.last("response.done")["response"]
        assert (response["status"], response["output"]) == ("completed", [])
        assert responder.requests == []


async def test_the_language_that_the_client_names_reaches_the_recognizer() -> None:
    recognizer = ScriptedRecognizer("bonjour")
    async with Client(make_parts(recognizer=recognizer)) as client:
        await client.update(audio={"input": {"transcription": {"model": "x", "language": "fr"}}})
        await client.append(loud(400) + quiet(400))
        assert set(recognizer.languages) == {"fr"}


async def test_create_response_false_leaves_the_answer_to_the_client() -> None:
    async with Client(make_parts()) as client:
        await client.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
        await client.append(loud(400) + quiet(400))
        assert client.types()[-3:] == COMMITTED
        await client.say("response.create")
        assert client.last("response.done")["response"]["status"] == "completed"


# -- push-to-talk ------------------------------------------------------------------------------------------------------


async def test_push_to_talk_commits_when_it_is_told_to() -> None:
    responder = ScriptedResponder("Yes.")
    async with Client(make_parts(responder, recognizer=ScriptedRecognizer("are you there"))) as client:
        await client.update(audio={"input": {"turn_detection": None, "transcription": {"model": "x"}}})
        assert await client.append(loud(500) + quiet(1000) + loud(500)) == []
        events = await client.say("input_audio_buffer.commit")
        assert client.types(events) == [
            *COMMITTED,
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.input_audio_transcription.completed",
        ]
        await client.say("response.create")
        assert responder.requests[0].messages[0].content == "are you there"


async def test_a_commit_of_next_to_nothing_is_refused() -> None:
    """T6."""
    async with Client(make_parts()) as client:
        await client.update(audio={"input": {"turn_detection": None}})
        await client.say("input_audio_buffer.commit", event_id="ev_c")
        await client.append(quiet(50))
        await client.say("input_audio_buffer.commit")
        assert [error["code"] for error in client.errors] == ["input_audio_buffer_commit_empty"] * 2
        assert client.errors[0]["event_id"] == "ev_c"
        await client.append(quiet(60))
        await client.say("input_audio_buffer.commit")
        assert client.last("input_audio_buffer.committed")


async def test_cleared_audio_is_gone() -> None:
    async with Client(make_parts()) as client:
        await client.update(audio={"input": {"turn_detection": None}})
        await client.append(loud(500))
        assert client.types(await client.say("input_audio_buffer.clear")) == ["input_audio_buffer.cleared"]
        await client.say("input_audio_buffer.commit")
        assert client.errors[-1]["code"] == "input_audio_buffer_commit_empty"


async def test_a_commit_while_the_user_speaks_ends_the_turn_under_its_own_id() -> None:
    async with Client(make_parts()) as client:
        await client.append(loud(500))
        started = client.last("input_audio_buffer.speech_started")
        events = await client.say("input_audio_buffer.commit")
        assert events[0]["item_id"] == started["item_id"]
        assert "response.created" not in client.types()


# -- typed and shown -----------------------------------------------------------------------------------------------------


async def test_a_typed_turn_with_a_written_reply_has_the_events_of_the_recordings() -> None:
    async with Client(make_parts(ScriptedResponder(["It is", " foggy."]))) as client:
        await client.update(output_modalities=["text"])
        events = await client.type("What is the weather?", id="mine_1")
        assert [event["previous_item_id"] for event in events] == [None, None]
        assert events[0]["item"]["id"] == "mine_1"
        assert events[0]["item"]["content"] == [{"type": "input_text", "text": "What is the weather?"}]
        events = await client.say("response.create")
        assert client.types(events) == [
            "response.created",
            "rate_limits.updated",
            *REPLY_BEGINS,
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        assert [event["delta"] for event in client.of("response.output_text.delta")] == ["It is", " foggy."]
        assert client.last("conversation.item.done")["previous_item_id"] == "mine_1"


async def test_items_are_put_where_the_client_wants_them_and_taken_out_again() -> None:
    async with Client(make_parts()) as client:
        await client.type("b", id="b")
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}], "id": "a"}
        (added, _done) = await client.say("conversation.item.create", item=item, previous_item_id="root")
        assert added["previous_item_id"] is None
        (deleted,) = await client.say("conversation.item.delete", item_id="b")
        assert deleted["item_id"] == "b"
        (retrieved,) = await client.say("conversation.item.retrieve", item_id="a")
        assert retrieved["item"]["content"][0]["text"] == "a"
        await client.say("conversation.item.create", item=item | {"id": "c"}, previous_item_id="b")
        await client.say("conversation.item.create", item=item)
        codes = [error["code"] for error in client.errors]
        assert codes == ["item_create_invalid_previous_item_id", "item_create_duplicate_item_id"]


async def test_a_picture_reaches_the_responder_and_is_not_sent_back() -> None:
    responder, eyes = ScriptedResponder("I see."), FlatEyes()
    image = picture()
    async with Client(make_parts(responder, eyes=eyes)) as client:
        content = [{"type": "input_image", "image_url": image.url, "detail": "high"}]
        (added, _done) = await client.say(
            "conversation.item.create", item={"type": "message", "role": "user", "content": content}
        )
        assert added["item"]["content"] == [{"type": "input_image", "detail": "high"}]
        assert eyes.prepared == 1
        await client.say("response.create")
        (shown,) = responder.requests[0].messages[0].images
        assert shown.data == image.data
        assert client.last("response.done")["response"]["usage"]["input_token_details"]["image_tokens"] > 0


async def test_audio_in_an_item_is_recognized() -> None:
    responder = ScriptedResponder()
    async with Client(make_parts(responder, recognizer=ScriptedRecognizer("by mail"))) as client:
        audio = base64.b64encode(loud(700)).decode()
        content = [{"type": "input_audio", "audio": audio}]
        await client.say("conversation.item.create", item={"type": "message", "role": "user", "content": content})
        await client.say("response.create")
        assert responder.requests[0].messages[0].content == "by mail"


# -- tools ---------------------------------------------------------------------------------------------------------------

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Looks it up.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


async def test_a_tool_round_has_the_events_of_the_recordings() -> None:
    call = ToolCall(name="get_weather", arguments='{"city": "London"}')
    responder = ScriptedResponder([call], "It is foggy.")
    async with Client(make_parts(responder)) as client:
        await client.update(tools=[WEATHER], output_modalities=["text"])
        await client.type("Weather in London?")
        events = await client.say("response.create")
        assert client.types(events)[2:] == [
            "response.output_item.added",
            "conversation.item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        done = client.last("response.function_call_arguments.done")
        assert (done["name"], done["arguments"]) == ("get_weather", '{"city": "London"}')
        call_id = done["call_id"]
        output = {"type": "function_call_output", "call_id": call_id, "output": "fog"}
        await client.say("conversation.item.create", item=output)
        await client.say("response.create")
        result = responder.requests[1].messages[-1]
        assert (result.content, result.tool_call_id, result.tool_name) == ("fog", call_id, "get_weather")
        assert client.last("response.output_text.done")["text"] == "It is foggy."


async def test_words_and_calls_in_one_response_are_items_of_their_own_in_order() -> None:
    calls = [ToolCall(name="get_weather", arguments="{}"), ToolCall(name="get_weather", arguments='{"city": "Rome"}')]
    async with Client(make_parts(ScriptedResponder(["One moment.", *calls]))) as client:
        await client.update(tools=[WEATHER])
        await client.say("response.create")
        output = client.last("response.done")["response"]["output"]
        assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
        indexes = [event["output_index"] for event in client.of("response.output_item.added")]
        assert indexes == [0, 1, 2]
        assert output[1]["call_id"] != output[2]["call_id"]


@pytest.mark.parametrize(
    ("choice", "tools", "passed"),
    [
        ("none", [], "none"),
        ("auto", ["get_weather", "other"], "auto"),
        ("required", ["get_weather", "other"], "required"),
        ({"type": "function", "name": "other"}, ["other"], "required"),
    ],
)
async def test_tool_choice_is_obeyed(choice: Any, tools: list[str], passed: str) -> None:
    responder = ScriptedResponder()
    async with Client(make_parts(responder)) as client:
        await client.update(tools=[WEATHER, WEATHER | {"name": "other"}], tool_choice=choice)
        await client.say("response.create")
        request = responder.requests[0]
        assert ([tool.name for tool in request.tools], request.tool_choice) == (tools, passed)


async def test_a_result_of_an_unknown_call_is_refused() -> None:
    async with Client(make_parts()) as client:
        await client.say(
            "conversation.item.create", item={"type": "function_call_output", "call_id": "c", "output": "x"}
        )
        assert client.errors[0]["code"] == "invalid_tool_call_id"


async def test_a_delta_of_what_grew_while_the_user_spoke_is_continued() -> None:
    recognizer = ScriptedRecognizer("hello", "hello there", "hello there my friend")
    async with Client(make_parts(recognizer=recognizer)) as client:
        await client.update(audio={"input": {"transcription": {"model": "x"}}})
        await client.append(loud(2600))
        grown = client.of("conversation.item.input_audio_transcription.delta")
        assert [event["delta"] for event in grown] == ["hello"]
        await client.append(quiet(400))
        deltas = [event["delta"] for event in client.of("conversation.item.input_audio_transcription.delta")]
        assert "".join(deltas) == "hello there my friend"
        assert (
            client.last("conversation.item.input_audio_transcription.completed")["transcript"]
            == "hello there my friend"
        )


async def test_many_sessions_do_not_know_of_each_other() -> None:
    parts = make_parts(ScriptedResponder("A.", "B."))
    async with Client(parts) as one, Client(parts) as other:
        await one.type("for one")
        await other.type("for the other")
        await one.say("response.create")
        await other.say("response.create")
        requests = parts.responder.requests  # type: ignore[attr-defined]
        assert [[message.content for message in request.messages] for request in requests] == [
            ["for one"],
            ["for the other"],
        ]


async def test_a_session_that_is_closed_leaves_nothing_running() -> None:
    responder = ScriptedResponder([asyncio.Event()])
    client = Client(make_parts(responder))
    async with client:
        await client.say("response.create")
        assert client.session.is_busy
    assert responder.closed == 1
    assert json.dumps(client.events)


async def test_every_step_of_a_turn_is_measured() -> None:
    """Issue of the local LLM: end of speech → transcript → first token → first audio, as Prometheus text."""
    async with Client(make_parts()) as client:
        await client.append(loud(500) + quiet(400))
        assert client.last("response.done")["response"]["status"] == "completed"
        text = client.metrics.text({})
    for step in ("transcript", "token", "audio"):
        assert f"realtime_llm_{step}_seconds_count 1\n" in text
