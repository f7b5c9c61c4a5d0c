"""Clients that we did not write, unchanged but for the address: the `openai` SDK and pydantic-ai."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from realtime.local.parts import Parts, ToolCall
from realtime.local.server import LlmServer
from realtime.local.settings import LlmSettings
from realtime.local.workers import FairPool

from .kit import ScriptedRecognizer, ScriptedResponder, loud, make_parts, picture, quiet


@asynccontextmanager
async def serving(parts: Parts) -> AsyncIterator[str]:
    """The address of a server, as an OpenAI base URL."""
    async with FairPool(1) as pool, LlmServer(LlmSettings(port=0, api_key="s3cret"), parts, pool) as server:
        yield f"http://127.0.0.1:{server.port}/v1"


@asynccontextmanager
async def official_connection(base: str) -> AsyncIterator[Any]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="s3cret", base_url=base, websocket_base_url=base.replace("http", "ws"))
    async with client, client.realtime.connect(model="gpt-realtime") as connection:
        yield connection


async def until_done(connection: Any) -> list[Any]:
    """Events up to the end of a response."""
    events: list[Any] = []
    async with asyncio.timeout(20):
        async for event in connection:
            events.append(event)
            if event.type == "response.done":
                return events
    raise AssertionError("the connection closed")


async def test_the_openai_sdk_holds_a_call_with_words_a_picture_a_tool_round_and_an_interruption() -> None:
    responder = ScriptedResponder()
    responder.replies = [
        ["Hello there."],
        [ToolCall(name="get_weather", arguments='{"city": "London"}')],
        ["It is foggy."],
        ["You said something."],
        [asyncio.Event()],
        ["Yes?"],
    ]
    recognizer = ScriptedRecognizer("can you hear me now")
    async with serving(make_parts(responder, recognizer=recognizer)) as base, official_connection(base) as connection:
        tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
        await connection.session.update(session={"type": "realtime", "output_modalities": ["text"], "tools": [tool]})
        content = [{"type": "input_text", "text": "Hi."}, {"type": "input_image", "image_url": picture().url}]
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await connection.response.create()
        events = await until_done(connection)
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello there."
        assert len(responder.requests[0].messages[0].images) == 1

        await connection.response.create()
        (call,) = (await until_done(connection))[-1].response.output
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "fog"}
        await connection.conversation.item.create(item=result)
        await connection.response.create()
        assert (await until_done(connection))[-1].response.output[0].content[0].text == "It is foggy."

        await connection.session.update(session={"type": "realtime", "output_modalities": ["audio"]})
        await connection.input_audio_buffer.append(audio=base64.b64encode(loud(500) + quiet(500)).decode())
        events = await until_done(connection)
        spoken = b"".join(
            base64.b64decode(event.delta) for event in events if event.type == "response.output_audio.delta"
        )
        assert len(spoken) == 300 * 48

        await connection.response.create()
        await connection.input_audio_buffer.append(audio=base64.b64encode(loud(200)).decode())
        details = (await until_done(connection))[-1].response.status_details
        assert (details.type, details.reason) == ("cancelled", "turn_detected")


@pytest.mark.filterwarnings("default")
async def test_pydantic_ai_holds_a_call_with_a_tool_round_a_picture_and_speech() -> None:
    from pydantic_ai import Agent, BinaryImage
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.realtime import RealtimeTurnCompleteEvent
    from pydantic_ai.realtime.openai import OpenAIRealtimeModel

    responder = ScriptedResponder(
        [ToolCall(name="get_weather", arguments='{"city": "London"}')], "It is foggy.", "I hear you."
    )
    recognizer = ScriptedRecognizer("can you hear me now")
    agent = Agent(instructions="Be brief.")

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Look it up."""
        return f"fog in {city}"

    shown = picture()
    async with serving(make_parts(responder, recognizer=recognizer)) as base:
        provider = await asyncio.get_running_loop().run_in_executor(
            None, lambda: OpenAIProvider(base_url=base, api_key="s3cret")
        )
        async with (
            provider,
            agent.realtime(OpenAIRealtimeModel("gpt-realtime", provider=provider)).session() as session,
        ):
            events = aiter(session)

            async def turn() -> None:
                while not isinstance(await anext(events), RealtimeTurnCompleteEvent):
                    pass

            async with asyncio.timeout(30):
                await session.send(BinaryImage(data=shown.data, media_type="image/jpeg"))
                await session.send("What is the weather?")
                await turn()
                await session.send_audio(loud(500) + quiet(500))
                await turn()
            said = [getattr(part, "transcript", None) for message in session.all_messages() for part in message.parts]
    assert [text for text in said if text] == ["It is foggy.", "can you hear me now", "I hear you."]
    assert responder.requests[1].messages[-1].content == "fog in London"
    assert responder.requests[0].messages[0].images[0].data == shown.data
