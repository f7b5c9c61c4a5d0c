"""A chat endpoint as the brain: what it is sent, how it is spoken, and that its faults do not hurt the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from realtime.local.brain.chat import SPOKEN_HINT, ChatResponder
from realtime.local.parts import Eyes
from realtime.models.chat import ChatModel, ChatOptions

from .endpoint import END, Answer, Endpoint, event, says, sends, streams
from .kit import Client, FlatEyes, ScriptedRecognizer, loud, make_parts, picture, until

pytestmark = pytest.mark.usefixtures("loop_watch")


@asynccontextmanager
async def calling(
    *answers: Answer, eyes: Eyes | None = None, options: ChatOptions | None = None, max_tokens: int = 8000
) -> AsyncIterator[tuple[Client, Endpoint]]:
    async with Endpoint(*answers) as endpoint:
        model = ChatModel("small", url=endpoint.url, api_key="s3cret", options=options)
        responder = ChatResponder(model, eyes=eyes, max_tokens=max_tokens)
        async with Client(make_parts(responder, recognizer=ScriptedRecognizer("and now"))) as client:
            yield client, endpoint
        await responder.aclose()


async def reply(client: Client, **response: Any) -> dict[str, Any]:
    """Ask for a response and wait for its end."""
    done = len(client.of("response.done"))
    await client.session.receive(json.dumps({"type": "response.create", "response": response}))
    await ends(client, lambda: len(client.of("response.done")) > done)
    answer: dict[str, Any] = client.last("response.done")["response"]
    return answer


async def ends(client: Client, condition: Callable[[], bool]) -> None:
    """Wait for something that crosses a socket."""
    async with asyncio.timeout(20):
        while not condition():
            client.changed.clear()
            await client.changed.wait()


async def test_the_endpoint_is_sent_instructions_history_pictures_and_tools() -> None:
    tool = {"type": "function", "name": "f", "description": "Does it.", "parameters": {"type": "object"}}
    async with calling(says("Yes.")) as (client, endpoint):
        await client.update(instructions="Be kind.", tools=[tool])
        shown = picture()
        content = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": shown.url}]
        await client.say("conversation.item.create", item={"type": "message", "role": "user", "content": content})
        call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "call_1"}
        await client.say("conversation.item.create", item=call)
        result = {"type": "function_call_output", "call_id": "call_1", "output": "7"}
        await client.say("conversation.item.create", item=result)
        await reply(client, max_output_tokens=50)
        path, headers, _body = endpoint.requests[0]
        asked = endpoint.asked()
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer s3cret"
    assert (asked["model"], asked["stream"], asked["max_tokens"], asked["tool_choice"]) == ("small", True, 50, "auto")
    assert asked["tools"] == [
        {"type": "function", "function": {"name": "f", "description": "Does it.", "parameters": {"type": "object"}}}
    ]
    system, user, called, given = asked["messages"]
    assert system == {"role": "system", "content": f"Be kind.\n\n{SPOKEN_HINT}"}
    assert user["content"][0] == {"type": "text", "text": "Look."}
    assert user["content"][1]["image_url"]["url"] == shown.url
    assert called["tool_calls"][0]["id"] == "call_1"
    assert (given["role"], given["tool_call_id"], given["content"]) == ("tool", "call_1", "7")


async def test_a_written_reply_is_not_told_to_be_speakable() -> None:
    async with calling(says("Yes.")) as (client, endpoint):
        await client.type("Hi.")
        await reply(client, output_modalities=["text"])
        assert SPOKEN_HINT not in json.dumps(endpoint.asked())


async def test_it_is_spoken_sentence_by_sentence_while_it_streams() -> None:
    rest = asyncio.Event()
    answer = streams(event(content="One two."), event(content=" Three"), rest, event(content=" four."), END)
    async with calling(answer) as (client, _endpoint):
        await client.type("Go.")
        await client.session.receive('{"type": "response.create"}')
        await ends(client, lambda: bool(client.of("response.output_audio.delta")))
        assert [item["delta"] for item in client.of("response.output_audio_transcript.delta")] == ["One two."]
        rest.set()
        await ends(client, lambda: bool(client.of("response.done")))
        texts = [item["delta"] for item in client.of("response.output_audio_transcript.delta")]
        assert texts == ["One two.", " Three four."]


async def test_its_calls_become_items_with_its_own_ids() -> None:
    call = {"index": 0, "id": "call_abc", "function": {"name": "f", "arguments": '{"a"'}}
    rest = {"index": 0, "function": {"arguments": ": 1}"}}
    answer = streams(event(tool_calls=[call]), event(tool_calls=[rest]), END)
    async with calling(answer) as (client, _endpoint):
        await client.update(tools=[{"type": "function", "name": "f", "parameters": {}}])
        await client.type("Do it.")
        response = await reply(client)
        (item,) = response["output"]
        assert (item["name"], item["arguments"], item["call_id"]) == ("f", '{"a": 1}', "call_abc")


async def test_speech_of_the_users_breaks_the_reply_off_at_the_endpoint() -> None:
    never = asyncio.Event()
    async with calling(streams(event(content="One two. Three"), never)) as (client, endpoint):
        await client.type("Go.")
        await client.session.receive('{"type": "response.create"}')
        await ends(client, lambda: bool(client.of("response.output_audio_transcript.delta")))
        await client.append(loud(200))
        assert client.last("response.done")["response"]["status_details"]["reason"] == "turn_detected"
        async with asyncio.timeout(10):
            await endpoint.gone.wait()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (streams(event(content="Half a")), "incomplete"),
        (streams(b"data: {nonsense\n\n"), "malformed"),
        (sends(b'{"error": {"message": "slow down", "code": "rate_limited"}}', status="429 Too Many"), "rate_limited"),
        (sends(b"<html>", status="502 Bad Gateway", kind="text/html"), "http_502"),
        (streams(*[event(content="x" * 1000)] * 200), "response_too_large"),
        (streams(asyncio.Event()), "timeout"),
    ],
    ids=["broken", "nonsense", "refused", "bad gateway", "huge", "silent"],
)
async def test_its_faults_fail_one_response_and_the_call_goes_on(answer: Answer, code: str) -> None:
    options = ChatOptions(idle_timeout_seconds=1.0, answer_timeout_seconds=20.0, max_response_bytes=50_000)
    async with calling(answer, says("Better."), options=options) as (client, _endpoint):
        await client.type("Go.")
        response = await reply(client)
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == code
        assert "s3cret" not in json.dumps(client.events)
        assert (await reply(client))["output"][0]["content"][0]["transcript"] == "Better."


def forever(piece: bytes) -> Answer:
    """Answers with a stream that has no end."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return answer


@pytest.mark.parametrize(
    "piece", [event(content="la ") * 100, b": still here\n\n" * 100], ids=["words", "signs of life"]
)
async def test_a_stream_that_never_ends_is_ended(piece: bytes) -> None:
    options = ChatOptions(idle_timeout_seconds=60.0, answer_timeout_seconds=60.0, max_response_bytes=50_000)
    async with calling(forever(piece), says("Better."), options=options) as (client, endpoint):
        await client.type("Go.")
        response = await reply(client)
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == "response_too_large"
        async with asyncio.timeout(20):
            await endpoint.gone.wait()
        assert (await reply(client))["output"][0]["content"][0]["transcript"] == "Better."


async def test_an_endpoint_that_is_not_there_fails_the_response() -> None:
    async with Endpoint() as endpoint:
        url = endpoint.url
    responder = ChatResponder(ChatModel("small", url=url))
    async with Client(make_parts(responder)) as client:
        await client.type("Go.")
        assert (await reply(client))["status_details"]["error"]["code"] == "connection_failed"
    await responder.aclose()


async def test_a_model_that_cannot_see_is_told_what_pictures_show() -> None:
    eyes = FlatEyes("EXIT")
    async with calling(says("A sign."), eyes=eyes) as (client, endpoint):
        for number in range(3):
            content = [{"type": "input_image", "image_url": picture((number, 0, 0)).url}]
            await client.say("conversation.item.create", item={"type": "message", "role": "user", "content": content})
        await client.type("What is it?")
        await reply(client)
        text = json.dumps(endpoint.asked()["messages"])
    assert "image_url" not in text
    assert text.count("[The user shows a medium bright, mostly red picture, 64 by 32 pixels. It says: EXIT.]") == 2
    assert text.count("[The user showed a picture.]") == 1
    assert eyes.looks == 2


async def test_a_long_conversation_is_sent_only_as_far_as_the_model_can_hold_it() -> None:
    async with calling(says("Yes."), max_tokens=300) as (client, endpoint):
        for number in range(30):
            await client.type(f"Sentence number {number} of the long talk that we have.")
            item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]}
            await client.say("conversation.item.create", item=item)
        await client.type("The last one.")
        await reply(client)
        messages = endpoint.asked()["messages"]
    assert messages[0]["role"] == "system"
    assert messages[-1]["content"] == "The last one."
    assert 5 < len(messages) < 50


async def test_where_nobody_has_spoken_the_model_is_greeted() -> None:
    async with calling(says("Hello!")) as (client, endpoint):
        await client.update(instructions="Greet the caller.")
        await reply(client)
        assert endpoint.asked()["messages"][-1] == {"role": "user", "content": "Hello."}


async def test_a_slow_stream_does_not_hold_the_session() -> None:
    rest = asyncio.Event()
    async with calling(streams(event(content="Wait"), rest, event(content=" over."), END)) as (client, _endpoint):
        await client.type("Go.")
        await client.session.receive('{"type": "response.create"}')
        await until(lambda: bool(client.of("response.created")))
        assert (await client.update(instructions="Meanwhile."))[-1]["type"] == "session.updated"
        rest.set()
        await ends(client, lambda: bool(client.of("response.done")))
        assert client.last("response.done")["response"]["status"] == "completed"
