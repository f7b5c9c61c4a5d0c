"""Responses: one at a time, what they are told, how they are stopped, and how they end."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from realtime.errors import ModelError
from realtime.local.parts import ToolCall
from realtime.local.session import SessionLimits

from .kit import BeepSynthesizer, Client, ScriptedRecognizer, ScriptedResponder, loud, make_parts, quiet, until


async def create(client: Client, **response: Any) -> list[dict[str, Any]]:
    return await client.say("response.create", response=response)


# -- what a client may ask for -------------------------------------------------------------------------------------------


async def test_a_response_takes_what_it_is_told_for_itself_alone() -> None:
    responder = ScriptedResponder("Hi.", "Hi.")
    tool = {"type": "function", "name": "f", "parameters": {}}
    async with Client(make_parts(responder)) as client:
        await client.update(instructions="Session.")
        await create(
            client,
            instructions="Only now.",
            output_modalities=["text"],
            tools=[tool],
            tool_choice="required",
            max_output_tokens=50,
            metadata={"wish": "7"},
        )
        for name in ("response.created", "response.done"):
            response = client.last(name)["response"]
            assert response["metadata"] == {"wish": "7"}
            assert response["output_modalities"] == ["text"]
            assert response["max_output_tokens"] == 50
        await client.say("response.create")
        first, second = responder.requests
        assert (first.instructions, first.tool_choice, len(first.tools)) == ("Only now.", "required", 1)
        assert (second.instructions, second.tool_choice, len(second.tools)) == ("Session.", "auto", 0)
        assert client.last("response.done")["response"]["metadata"] is None


@pytest.mark.parametrize(
    ("response", "code", "param"),
    [
        ({"volume": 1}, "unknown_parameter", "response.volume"),
        ({"conversation": "other"}, "invalid_value", "response.conversation"),
        ({"output_modalities": []}, "invalid_value", "response.output_modalities"),
        ({"metadata": {"a": 5}}, "invalid_type", "response.metadata.a"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "invalid_value", "response.metadata"),
        ({"metadata": {"a" * 65: "x"}}, "invalid_value", "response.metadata"),
        ({"metadata": {"a": "x" * 513}}, "invalid_value", "response.metadata.a"),
        ({"input": [5]}, "invalid_type", "response.input[0]"),
        ({"input": [{"type": "item_reference", "id": "gone"}]}, "invalid_value", "response.input[0].id"),
        ({"input": [{"type": "message", "role": "user"}]}, "missing_required_parameter", "response.input[0].content"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "invalid_value", "response.tool_choice"),
        ({"audio": {"output": {"format": {"type": "mp3"}}}}, "invalid_value", "response.audio.output.format.type"),
    ],
)
async def test_what_a_response_cannot_be_is_refused(response: dict[str, Any], code: str, param: str) -> None:
    async with Client(make_parts()) as client:
        await create(client, **response)
        (error,) = client.errors
        assert (error["code"], error["param"]) == (code, param)
        assert "response.created" not in client.types()


async def test_a_response_out_of_band_leaves_the_conversation_alone() -> None:
    responder = ScriptedResponder("Aside.")
    async with Client(make_parts(responder)) as client:
        await client.type("Public.", id="pub")
        text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Private."}]}
        events = await create(
            client,
            conversation="none",
            input=[{"type": "item_reference", "id": "pub"}, text],
            output_modalities=["text"],
        )
        assert [message.content for message in responder.requests[0].messages] == ["Public.", "Private."]
        assert not [name for name in client.types(events) if name.startswith("conversation.item")]
        assert client.last("response.done")["response"]["conversation_id"] is None
        await client.type("Next.")
        assert client.last("conversation.item.added")["previous_item_id"] == "pub"


async def test_responses_out_of_band_run_beside_the_conversations() -> None:
    gate = asyncio.Event()
    async with Client(make_parts(ScriptedResponder([gate, "Main."], "Aside."))) as client:
        await client.say("response.create")
        await create(client, conversation="none", metadata={"aside": "yes"})
        done = client.last("response.done")["response"]
        assert (done["metadata"], done["status"]) == ({"aside": "yes"}, "completed")
        gate.set()
        await client.settle()
        assert client.last("response.done")["response"]["metadata"] is None


async def test_a_second_response_while_one_runs_is_refused() -> None:
    """T1, B31."""
    gate = asyncio.Event()
    async with Client(make_parts(ScriptedResponder([gate, "Done."]))) as client:
        await client.say("response.create")
        await client.say("response.create", event_id="ev_2")
        (error,) = client.errors
        assert (error["code"], error["event_id"]) == ("conversation_already_has_active_response", "ev_2")
        gate.set()
        await client.settle()
        assert len(client.of("response.done")) == 1
        await client.say("response.create")
        assert len(client.of("response.done")) == 2


async def test_more_responses_a_minute_than_allowed_are_refused() -> None:
    async with Client(make_parts(), limits=SessionLimits(requests_per_minute=2)) as client:
        for _ in range(3):
            await client.say("response.create")
        assert client.errors[0]["code"] == "rate_limit_exceeded"
        assert client.last("rate_limits.updated")["rate_limits"][0]["remaining"] == 0
        await client.clock.run(60.0)
        await client.say("response.create")
        assert len(client.of("response.done")) == 3


# -- how they are stopped ------------------------------------------------------------------------------------------------


async def test_speech_of_the_users_stops_a_reply_at_the_next_chunk() -> None:
    synthesizer, responder = BeepSynthesizer(), ScriptedResponder("One two. Three four. Five six.")
    async with Client(make_parts(responder, synthesizer=synthesizer)) as client:
        await client.say("response.create")
        client.events.clear()
        synthesizer.hold = asyncio.Event()
        responder.replies = [["One two. Three four."]]
        await client.say("response.create")
        synthesizer.hold.set()
        await until(lambda: bool(client.of("response.output_audio.delta")))
        synthesizer.hold = asyncio.Event()  # the next sentence never comes
        events = await client.append(loud(200))
        assert client.types(events)[0] == "input_audio_buffer.speech_started"
        response = client.last("response.done")["response"]
        assert response["status"] == "cancelled"
        assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        assert response["output"][0]["status"] == "incomplete"
        assert client.types(events)[-4:] == [
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        sent = sum(len(base64.b64decode(event["delta"])) for event in client.of("response.output_audio.delta"))
        assert sent <= 200 * 48
        assert responder.closed == 2


async def test_what_was_sent_can_be_truncated_and_no_more() -> None:
    """B29: a position beyond the audio is an error; the session goes on."""
    async with Client(
        make_parts(ScriptedResponder("One two three."), recognizer=ScriptedRecognizer("go on"))
    ) as client:
        await client.say("response.create")
        item_id = client.last("response.output_item.done")["item"]["id"]
        await client.say("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=301)
        assert client.errors[-1]["message"] == "Audio content of 300ms is already shorter than 301ms"
        (truncated,) = await client.say(
            "conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=200
        )
        assert truncated["audio_end_ms"] == 200
        await client.type("What did you say?")
        await client.say("response.create")
        heard = client.session._parts.responder.requests[-1].messages[0]  # type: ignore[attr-defined]
        assert (heard.content, heard.interrupted) == ("One two", True)


async def test_interrupt_response_false_lets_the_reply_end_and_answers_the_turn_after_it() -> None:
    gate, responder = asyncio.Event(), ScriptedResponder()
    responder.replies = [[gate, "First."], ["Second."]]
    async with Client(make_parts(responder, recognizer=ScriptedRecognizer("a long question here"))) as client:
        await client.update(audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_response": False}}})
        await client.say("response.create")
        await client.append(loud(500) + quiet(400))
        assert "response.done" not in client.types()
        gate.set()
        await client.settle()
        statuses = [event["response"]["status"] for event in client.of("response.done")]
        assert statuses == ["completed", "completed"]
        assert responder.requests[1].messages[-1].content == "First."
        assert "a long question here" in [message.content for message in responder.requests[1].messages]


async def test_a_cancelled_response_ends_and_another_can_begin_at_once() -> None:
    responder = ScriptedResponder()
    responder.replies = [["Some", asyncio.Event()], ["Again."]]
    async with Client(make_parts(responder)) as client:
        await client.update(output_modalities=["text"])
        await client.say("response.create")
        await client.session.receive('{"type": "response.cancel"}')
        await client.session.receive('{"type": "response.create"}')
        await client.settle()
        first, second = [event["response"] for event in client.of("response.done")]
        assert first["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        assert first["output"][0]["content"] == [{"type": "output_text", "text": "Some"}]
        assert second["status"] == "completed"
        assert client.errors == []


async def test_a_response_is_cancelled_by_its_id() -> None:
    gate = asyncio.Event()
    async with Client(make_parts(ScriptedResponder([gate, "Main."], [asyncio.Event()]))) as client:
        await client.say("response.create")
        await create(client, conversation="none")
        aside = client.last("response.created")["response"]["id"]
        await client.say("response.cancel", response_id=aside)
        assert client.last("response.done")["response"]["id"] == aside
        await client.say("response.cancel", response_id="resp_other")
        assert client.errors[-1]["code"] == "response_cancel_not_active"
        gate.set()
        await client.settle()
        assert client.last("response.done")["response"]["status"] == "completed"


@pytest.mark.parametrize("moment", ["response.function_call_arguments.delta", "response.output_item.added"])
async def test_a_stop_while_a_call_is_being_written_does_not_tear_it(moment: str) -> None:
    responder = ScriptedResponder([ToolCall(name="f", arguments="{}"), "After."])
    async with Client(make_parts(responder)) as client:

        def stop(event: dict[str, Any]) -> None:
            if event["type"] == moment:
                assert client.session._replies.active is not None
                client.session._replies.active.stop("turn_detected")

        client.on_event = stop
        await client.say("response.create")
        assert client.types()[-5:] == [
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        response = client.last("response.done")["response"]
        assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        assert [(item["type"], item["status"]) for item in response["output"]] == [("function_call", "completed")]


# -- how they end --------------------------------------------------------------------------------------------------------


async def test_a_brain_that_fails_fails_the_response_with_its_own_words() -> None:
    error = ModelError("the endpoint is gone", code="connection_refused")
    async with Client(make_parts(ScriptedResponder(["Some text. ", error], "Fine."))) as client:
        await client.say("response.create")
        response = client.last("response.done")["response"]
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == "connection_refused"
        assert response["output"][0]["status"] == "incomplete"
        await client.say("response.create")
        assert client.last("response.done")["response"]["status"] == "completed"


async def test_a_brain_with_a_bug_fails_only_its_response(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(make_parts(ScriptedResponder([KeyError("oops")], "Fine."))) as client:
        await client.say("response.create")
        assert client.last("response.done")["response"]["status_details"]["error"]["code"] == "server_error"
        await client.say("response.create")
        assert client.last("response.done")["response"]["status"] == "completed"
    assert "a response failed" in caplog.messages


async def test_a_reply_longer_than_allowed_is_incomplete() -> None:
    async with Client(make_parts(ScriptedResponder(["one two three", " four five six seven"]))) as client:
        await create(client, max_output_tokens=5, output_modalities=["text"])
        response = client.last("response.done")["response"]
        assert response["status"] == "incomplete"
        assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
        assert response["output"][0]["content"][0]["text"] == "one two three four five"


async def test_a_voice_that_fails_fails_the_response() -> None:
    class Hoarse(BeepSynthesizer):
        async def synthesize(self, text: str, *, owner: str, speed: float = 1.0, later: bool = False) -> Any:
            raise RuntimeError("no voice")

    async with Client(make_parts(ScriptedResponder("Hello."), synthesizer=Hoarse())) as client:
        await client.say("response.create")
        response = client.last("response.done")["response"]
        assert response["status"] == "failed"
        assert response["output"][0]["content"][0]["transcript"] == "Hello."


async def test_an_empty_reply_is_a_response_without_items() -> None:
    async with Client(make_parts(ScriptedResponder([]))) as client:
        await client.say("response.create")
        response = client.last("response.done")["response"]
        assert (response["status"], response["output"]) == ("completed", [])


@pytest.mark.parametrize(("kind", "bytes_per_ms"), [("audio/pcmu", 8), ("audio/pcma", 8), ("audio/pcm", 48)])
async def test_reply_audio_is_coded_as_the_client_wants_it(kind: str, bytes_per_ms: int) -> None:
    async with Client(make_parts(ScriptedResponder("One two three."))) as client:
        await client.update(audio={"output": {"format": {"type": kind}}})
        await client.say("response.create")
        sent = sum(len(base64.b64decode(event["delta"])) for event in client.of("response.output_audio.delta"))
        assert sent == 300 * bytes_per_ms


async def test_a_client_that_does_not_read_holds_back_its_own_reply() -> None:
    async with Client(make_parts(ScriptedResponder("One two. Three four. Five six."))) as client:
        client.room = asyncio.Event()
        creating = asyncio.create_task(client.session.receive('{"type": "response.create"}'))
        await client.settle()
        assert client.types() == ["session.created"]
        client.room.set()
        await creating
        await client.settle()
        assert client.last("response.done")["response"]["status"] == "completed"


# -- silence -------------------------------------------------------------------------------------------------------------

IDLE = {"input": {"turn_detection": {"type": "server_vad", "idle_timeout_ms": 5000}}}


async def test_after_the_idle_timeout_the_server_speaks_up() -> None:
    responder = ScriptedResponder("Hello.", "Are you there?")
    async with Client(make_parts(responder)) as client:
        await client.update(audio=IDLE)
        await client.say("response.create")
        await client.clock.run(5.05)  # the reply lasts 100 ms
        assert "input_audio_buffer.timeout_triggered" not in client.types()
        await client.clock.run(0.1)
        await client.settle()
        types = client.types()
        at = types.index("input_audio_buffer.timeout_triggered")
        assert types[at + 1 : at + 5] == [
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
        ]
        assert (
            client.last("input_audio_buffer.timeout_triggered")["item_id"]
            == client.last("input_audio_buffer.committed")["item_id"]
        )
        assert client.last("response.output_audio_transcript.done")["transcript"] == "Are you there?"


async def test_whatever_the_user_does_ends_the_idle_timeout() -> None:
    for act in ("speak", "type", "configure"):
        async with Client(make_parts()) as client:
            await client.update(audio=IDLE)
            await client.say("response.create")
            if act == "speak":
                await client.append(loud(200))
            elif act == "type":
                await client.type("I am here.")
            else:
                await client.update(audio={"input": {"turn_detection": None}})
            await client.clock.run(10.0)
            await client.settle()
            assert "input_audio_buffer.timeout_triggered" not in client.types()


async def test_a_sentence_behind_enough_audio_can_wait_for_what_others_wait_for() -> None:
    """A word of the stand-in lasts 100 ms; what stands behind a second and a half of a message is wanted later."""
    synthesizer = BeepSynthesizer()
    text = "One two three. " + "One two three four five six seven eight nine ten eleven twelve. " * 2
    async with Client(make_parts(ScriptedResponder(text), synthesizer=synthesizer)) as client:
        await client.say("response.create")
        assert client.last("response.done")["response"]["status"] == "completed"
    assert synthesizer.later == [False, False, True]
