"""`OpenAIRealtimeModel` of pydantic-ai, unchanged but for the address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from conftest import FOG, KEY, LONG_STORY, SIGN, STORY, SUM, WEATHER, chunks
from pydantic_ai import Agent, BinaryImage
from pydantic_ai.messages import TextPart
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeInputSpeechStartEvent, RealtimeTurnCompleteEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeModel


class Call:
    """A call, and everything that the session told of it."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.events: list[Any] = []
        self._incoming = aiter(session)

    async def speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm):
            await self.session.send_audio(chunk)

    async def receive(self, kind: type) -> Any:
        """The next event of a type."""
        async with asyncio.timeout(120):
            while True:
                event = await anext(self._incoming)
                self.events.append(event)
                if isinstance(event, kind):
                    return event

    async def until_said(self, text: str) -> None:
        """Wait until some words of the history hold a text."""
        while not any(text in said for said in self.said()):
            await self.receive(RealtimeTurnCompleteEvent)

    def said(self) -> list[str]:
        """All words of the history, typed and spoken."""
        parts = [part for message in self.session.all_messages() for part in message.parts]
        texts = [getattr(part, "transcript", None) or getattr(part, "content", None) for part in parts]
        return [text for text in texts if isinstance(text, str)]


@asynccontextmanager
async def calling(base_url: str, **settings: Any) -> AsyncIterator[Call]:
    agent = Agent(instructions="Be brief.")

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        assert city == "London"
        return FOG

    @agent.tool_plain
    def tell_story() -> str:
        """Tells a story."""
        return LONG_STORY

    model = OpenAIRealtimeModel("gpt-realtime", provider=OpenAIProvider(base_url=base_url, api_key=KEY))
    async with agent.realtime(model, model_settings=settings or None).session() as session:
        yield Call(session)


async def test_a_spoken_call_with_a_tool_round_and_a_picture(
    base_url: str, say: Callable[[str], bytes], sign: bytes
) -> None:
    async with calling(base_url) as call:
        await call.speak(say(WEATHER))
        await call.until_said(FOG)
        assert WEATHER in call.said()
        await call.session.send(BinaryImage(data=sign, media_type="image/jpeg"))
        await call.speak(say(SIGN))
        await call.until_said("It says: PLATFORM 9.")


async def test_an_interruption(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url) as call:
        audio = call.session.stream_audio()
        hearing = asyncio.create_task(anext(audio))
        await call.speak(say(STORY))
        while not hearing.done():
            await call.receive(object)
        await call.speak(say(SUM))
        await call.receive(RealtimeInputSpeechStartEvent)
        assert await call.session.interrupt(played_bytes=len(hearing.result()))
        await call.until_said("84")
        messages = call.session.all_messages()
        (cut,) = [message for message in messages if getattr(message, "state", "") == "interrupted"]
        assert LONG_STORY.startswith("".join(part.transcript or "" for part in cut.parts))
        await audio.aclose()


async def test_text_instead_of_speech(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url, output_modality="text") as call:
        await call.speak(say(SUM))
        await call.until_said("84")
        (response,) = [message for message in call.session.all_messages() if message.kind == "response"]
        (part,) = response.parts
        assert isinstance(part, TextPart)
