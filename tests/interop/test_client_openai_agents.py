"""`RealtimeRunner` of `openai-agents`, unchanged but for the address."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession
from conftest import FOG, KEY, LONG_STORY, SIGN, STORY, SUM, WEATHER, chunks


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    assert city == "London"
    return FOG


@function_tool
def tell_story() -> str:
    """Tells a story."""
    return LONG_STORY


class Call:
    """A call, and everything that the session told of it."""

    def __init__(self, session: RealtimeSession) -> None:
        self.session = session
        self.events: list[Any] = []
        self._incoming = aiter(session)

    async def speak(self, pcm: bytes) -> None:
        for chunk in chunks(pcm):
            await self.session.send_audio(chunk)

    async def receive(self, kind: str) -> Any:
        """The next event of a type."""
        async with asyncio.timeout(120):
            while True:
                event = await anext(self._incoming)
                self.events.append(event)
                assert event.type != "error", event
                if event.type == kind:
                    return event

    async def until_said(self, text: str) -> None:
        """Wait until the assistant's words in the history hold a text."""
        while not any(text in said for said in self.said("assistant")):
            await self.receive("history_updated")

    def said(self, role: str) -> list[str]:
        """What one party said, by the newest history."""
        history = next((event.history for event in reversed(self.events) if event.type == "history_updated"), [])
        items = [item for item in history if getattr(item, "role", "") == role]
        texts = [
            getattr(part, "transcript", None) or getattr(part, "text", None) for item in items for part in item.content
        ]
        return [text for text in texts if text]


@asynccontextmanager
async def calling(base_url: str, **settings: Any) -> AsyncIterator[Call]:
    agent = RealtimeAgent(name="Assistant", instructions="Be brief.", tools=[get_weather, tell_story])
    runner = RealtimeRunner(agent, config={"tracing_disabled": True, "model_settings": settings})
    url = base_url.replace("http://", "ws://") + "/realtime?model=gpt-realtime"
    async with await runner.run(model_config={"api_key": KEY, "url": url}) as session:
        yield Call(session)


async def test_a_spoken_call_with_a_tool_round_and_a_picture(
    base_url: str, say: Callable[[str], bytes], sign: bytes
) -> None:
    async with calling(base_url) as call:
        await call.speak(say(WEATHER))
        done = await call.receive("tool_end")
        assert (done.tool.name, done.output) == ("get_weather", FOG)
        await call.until_said(FOG)
        assert WEATHER in call.said("user")
        assert sum(len(event.audio.data) for event in call.events if event.type == "audio") > 20_000

        picture = {"type": "input_image", "image_url": "data:image/jpeg;base64," + base64.b64encode(sign).decode()}
        question = {"type": "input_text", "text": SIGN}
        await call.session.send_message({"type": "message", "role": "user", "content": [picture, question]})
        await call.until_said("It says: PLATFORM 9.")


async def test_an_interruption(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url) as call:
        await call.speak(say(STORY))
        await call.receive("audio")
        await call.speak(say(SUM))
        await call.receive("audio_interrupted")
        await call.until_said("84")


async def test_text_instead_of_speech(base_url: str, say: Callable[[str], bytes]) -> None:
    async with calling(base_url, output_modalities=["text"]) as call:
        await call.speak(say(SUM))
        await call.until_said("84")
        assert not [event for event in call.events if event.type == "audio"]
