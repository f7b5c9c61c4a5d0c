"""A browser's own call: the offer relayed, a session beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from email.parser import BytesParser
from typing import Any

import pytest
from websockets.asyncio.server import serve

from realtime import RealtimeSession, Tool
from realtime.core.events import Reconnected
from realtime.errors import ArgumentError, LinkLost, ModelError, UserError
from realtime.models import OpenAIRealtime
from realtime.pipelines.channel import Channel
from realtime.testing import openai_script

OFFER = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n"
ANSWER = "v=0\r\no=- 2 2 IN IP4 127.0.0.1\r\n"
KEY = "sk-very-secret-key"


class Provider:
    """HTTP and websocket of an OpenAI that answers one call."""

    def __init__(self) -> None:
        self.status, self.location, self.answer = 201, "/v1/realtime/calls/rtc_1", ANSWER
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.attached: Channel[Any] = Channel(8)
        self.paths: list[str] = []
        self.url = ""

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append((line, headers, body))
        answer = self.answer.encode()
        location = f"Location: {self.location}\r\n" if self.location else ""
        writer.write(
            f"HTTP/1.1 {self.status} X\r\n{location}Content-Length: {len(answer)}\r\nConnection: close\r\n\r\n".encode()
        )
        writer.write(answer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async def websocket(self, connection: Any) -> None:
        self.paths.append(connection.request.path)
        for message in openai_script.session_created():
            await connection.send(json.dumps(message))
        update = json.loads(await connection.recv())
        await self.attached.send((connection, update))
        for message in openai_script.session_updated():
            await connection.send(json.dumps(message))
        await connection.wait_closed()


@pytest.fixture
async def provider():
    """It listens on two ports; the model's URL is the HTTP one's, and the call's is pointed to the other."""
    made = Provider()
    http = await asyncio.start_server(made.http, "127.0.0.1", 0)
    async with serve(made.websocket, "127.0.0.1", 0) as listening:
        made.url = f"ws://127.0.0.1:{http.sockets[0].getsockname()[1]}/v1/realtime"
        made.socket_port = listening.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            http.close()
            await http.wait_closed()


def model_of(provider: Provider, **options: Any) -> OpenAIRealtime:
    return OpenAIRealtime("gpt-realtime", url=provider.url, api_key=KEY, **options)


async def call_of(provider: Provider, **options: Any) -> Any:
    call = await model_of(provider, **options).relay_offer(OFFER)
    port = provider.url.split(":")[2].split("/")[0]
    call.model.url = call.model.url.replace(port, str(provider.socket_port))
    return call


async def say(connection: Any, messages: Any) -> None:
    for message in messages:
        await connection.send(json.dumps(message))


async def test_the_offer_goes_to_openai_and_its_answer_comes_back(provider):
    call = await call_of(provider, voice="marin")
    assert (call.answer, call.call_id) == (ANSWER, "rtc_1")
    ((line, headers, body),) = provider.requests
    assert line == "POST /v1/realtime/calls HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}"
    mail = BytesParser().parsebytes(f"Content-Type: {headers['content-type']}\r\n\r\n".encode() + body)
    parts = {part.get_param("name", header="content-disposition"): part for part in mail.get_payload()}
    assert parts["sdp"].get_content_type() == "application/sdp"
    assert parts["sdp"].get_payload(decode=True) == OFFER.encode()
    assert json.loads(parts["session"].get_payload()) == {
        "type": "realtime",
        "model": "gpt-realtime",
        "audio": {"output": {"voice": "marin"}},
    }
    assert KEY not in repr(call)


async def test_a_session_beside_it_sees_words_and_answers_calls_without_any_sound(provider):
    call = await call_of(provider)

    def weather() -> str:
        """Look up the weather."""
        return "fog"

    async with RealtimeSession(call.model, instructions="Be brief.", tools=[Tool(weather)]) as session:
        connection, update = await provider.attached.receive()
        assert provider.paths == ["/v1/realtime?call_id=rtc_1"]
        assert update["session"]["instructions"] == "Be brief."
        assert "format" not in update["session"]["audio"]["input"]
        assert update["session"]["audio"]["output"] == {}
        await say(connection, [*openai_script.user_speech("u1"), *openai_script.user_transcript("u1", "Weather?")])
        await say(connection, openai_script.tool_call("r1", "i1", "c1", "weather", previous_item_id="u1"))
        output = json.loads(await connection.recv())
        assert (output["item"]["type"], output["item"]["output"]) == ("function_call_output", "fog")
        await say(connection, openai_script.item_created(output["item"], "i1"))
        assert json.loads(await connection.recv())["type"] == "response.create"
        await say(
            connection, openai_script.spoken_reply("r2", "i2", "It is foggy.", bytes(9600), previous_item_id="i1")
        )
        turn = await session.wait_for_reply()
        assert not turn.interrupted
        with pytest.raises(UserError, match="supports_audio_input"):
            call.model.make_wire().encode(_append())
    said = [(str(message.role), message.content) for message in session.all_messages()]
    assert said == [("user", "Weather?"), ("assistant", ""), ("tool", "fog"), ("assistant", "It is foggy.")]


def _append() -> Any:
    from realtime.core.commands import AppendAudio

    return AppendAudio(command_id="k", pcm=b"ab")


async def test_what_was_said_before_a_barge_in_stays(provider):
    call = await call_of(provider)
    async with RealtimeSession(call.model) as session:
        connection, _ = await provider.attached.receive()
        reply = openai_script.spoken_reply("r1", "i1", "Once upon a time", bytes(9600), done=False)
        await say(connection, [*reply, *openai_script.user_speech("u1", previous_item_id="i1")[:1]])
        await say(connection, openai_script.response_done("r1", status="cancelled", reason="turn_detected"))
        turn = await session.wait_for_reply()
    assert turn.interrupted
    assert [message.content for message in turn.messages] == ["Once upon a time"]


async def test_sound_cannot_be_retained_where_none_is_heard(provider):
    call = await call_of(provider)
    for kept, lack in (("output_audio", "supports_audio_output"), ("input_audio", "supports_audio_input")):
        with pytest.raises(UserError, match=rf"{lack}.*audio_retention"):
            RealtimeSession(call.model, audio_retention=kept)


async def test_a_call_goes_on_without_us_and_is_found_again_as_it_is(provider):
    call = await call_of(provider)
    async with RealtimeSession(call.model) as session:
        connection, _ = await provider.attached.receive()
        await say(connection, [*openai_script.user_speech("u1"), *openai_script.user_transcript("u1", "Hello.")])
        events = aiter(session)
        await connection.close(1011)
        again, update = await provider.attached.receive()
        while not isinstance(event := await anext(events), Reconnected):
            pass
        assert event.state_restored
        assert update["type"] == "session.update"
        await session.send("More.")
        assert json.loads(await again.recv())["item"]["content"][0]["text"] == "More."  # and nothing was told again
    assert provider.paths == ["/v1/realtime?call_id=rtc_1"] * 2


async def test_hanging_up_ends_the_call_once_or_twice(provider):
    call = await call_of(provider)
    provider.answer, provider.location, provider.status = "", "", 200
    await call.hang_up()
    provider.status = 404
    await call.hang_up()
    assert [line for line, _, _ in provider.requests[1:]] == ["POST /v1/realtime/calls/rtc_1/hangup HTTP/1.1"] * 2
    provider.status = 500
    with pytest.raises(ModelError, match="HTTP 500"):
        await call.hang_up()


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (
            401,
            json.dumps({"error": {"code": "invalid_api_key", "message": f"no such key: {KEY}"}}),
            "invalid_api_key",
            "…",
        ),
        (400, '{"error": "odd"}', "http_400", "odd"),
        (503, "busy", "http_503", "busy"),
        (500, "[]", "http_500", "HTTP 500"),
    ],
)
async def test_a_refusal_is_told_in_openai_s_words_without_the_key(provider, status, body, code, words):
    provider.status, provider.answer, provider.location = status, body, ""
    with pytest.raises(ModelError, match=words) as caught:
        await model_of(provider).relay_offer(OFFER)
    assert caught.value.code == code
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(("location", "answer"), [("", ANSWER), ("/v1/realtime/calls/rtc_1", "<html>")])
async def test_an_answer_that_is_none_is_an_error(provider, location, answer):
    provider.location, provider.answer = location, answer
    with pytest.raises(ModelError, match="names no call"):
        await model_of(provider).relay_offer(OFFER)


async def test_nobody_there_is_a_lost_link(unused_tcp_port):
    model = OpenAIRealtime(url=f"ws://127.0.0.1:{unused_tcp_port}/v1/realtime", api_key=KEY)
    with pytest.raises(LinkLost, match="could not be reached"):
        await model.relay_offer(OFFER)


@pytest.mark.parametrize("offer", ["", "hello", None, b"v=0"])
async def test_what_is_no_offer_is_refused_by_name(offer):
    with pytest.raises(ArgumentError, match="offer"):
        await OpenAIRealtime(api_key=KEY).relay_offer(offer)
