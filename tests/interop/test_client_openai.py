"""The realtime client of the `openai` SDK, unchanged but for the address."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from conftest import FOG, KEY, LONG_STORY, SIGN, SUM, WEATHER, chunks
from openai import AsyncOpenAI

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Call:
    """A call, and everything that the server said in it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.events: list[Any] = []

    async def speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm):
            await self.connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())

    async def receive(self, kind: str) -> Any:
        """The next event of a type."""
        async with asyncio.timeout(120):
            while True:
                event = await self.connection.recv()
                self.events.append(event)
                assert event.type != "error", event
                if event.type == kind:
                    return event

    async def reply(self) -> str:
        """What the running response says."""
        response = (await self.receive("response.done")).response
        assert response.status == "completed"
        return " ".join(part.transcript or part.text for item in response.output for part in item.content)


@asynccontextmanager
async def calling(base_url: str, **session: Any) -> AsyncIterator[Call]:
    client = AsyncOpenAI(api_key=KEY, base_url=base_url)
    async with client, client.realtime.connect(model="gpt-realtime") as connection:
        call = Call(connection)
        await call.receive("session.created")
        await connection.session.update(session={"type": "realtime", **session})
        await call.receive("session.updated")
        yield call


async def test_a_spoken_call_with_a_tool_round_and_a_picture(
    base_url: str, say: Callable[[str], bytes], sign: bytes
) -> None:
    audio = {"input": {"transcription": {"model": "whisper-1"}}}
    async with calling(base_url, tools=[TOOL], audio=audio) as call:
        await call.speak(say(WEATHER))
        asked = await call.receive("response.function_call_arguments.done")
        assert json.loads(asked.arguments) == {"city": "London"}
        await call.receive("response.done")
        result = {"type": "function_call_output", "call_id": asked.call_id, "output": FOG}
        await call.connection.conversation.item.create(item=result)
        await call.connection.response.create()
        assert await call.reply() == FOG
        assert sum(len(event.delta) for event in call.events if event.type == "response.output_audio.delta") > 20_000
        heard = [event for event in call.events if event.type.endswith("input_audio_transcription.completed")]
        assert [event.transcript for event in heard] == [WEATHER]

        picture = {"type": "input_image", "image_url": "data:image/jpeg;base64," + base64.b64encode(sign).decode()}
        await call.connection.conversation.item.create(item={"type": "message", "role": "user", "content": [picture]})
        await call.speak(say(SIGN))
        assert await call.reply() == "It says: PLATFORM 9."


async def test_an_interruption(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url) as call:
        await call.connection.response.create(
            response={"instructions": f'Say exactly: "{LONG_STORY} {LONG_STORY} {LONG_STORY}"'}
        )
        item_id = (await call.receive("response.output_audio.delta")).item_id
        await call.speak(say(SUM))
        cut = (await call.receive("response.done")).response
        assert (cut.status, cut.status_details.reason) == ("cancelled", "turn_detected")
        await call.connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=300)
        await call.receive("conversation.item.truncated")
        assert "84" in await call.reply()
        await call.connection.conversation.item.retrieve(item_id=item_id)
        kept = (await call.receive("conversation.item.retrieved")).item.content[0].transcript
        assert len(kept) < 40
        assert LONG_STORY.startswith(kept)


async def test_text_instead_of_speech(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url, output_modalities=["text"]) as call:
        await call.speak(say(SUM))
        replied = await call.reply()
        assert "84" in replied
        assert "".join(event.delta for event in call.events if event.type == "response.output_text.delta") == replied
        assert not [event for event in call.events if event.type == "response.output_audio.delta"]
