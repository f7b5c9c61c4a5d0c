"""Five minutes of a call in simulated time, through the session, as the provider sees it (W5; a whole day: tests/core).

The provider keeps its conversation by what is on the line, naively: it must be what the session's ledger says, and never
more than the window allows.
"""

from __future__ import annotations

import asyncio
from typing import Any

from realtime import ContextWindow, RealtimeSession
from realtime.chat.messages import ChatMessage, ImageContent
from realtime.testing import ManualClock

from .conftest import Obliging

WINDOW = 3_000
HISTORY = 100
TURNS = 30
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffc4001400010000000000000000000000000000000000ffda"
    "0008010100003f00d2cf20ffd9"
)


class Counting(Obliging):
    """Keeps the items that are on the line, and what each costs."""

    def __init__(self, window: ContextWindow) -> None:
        super().__init__(*["There is a street with two bicycles, and a dog beside it."] * TURNS)
        self.window = window
        self.items: dict[str, int] = {}
        self.highest = 0
        self.created = asyncio.Event()

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "conversation.item.delete":
            del self.items[message["item_id"]]
        if message["type"] == "response.create":  # what the reply is made from, and paid for
            self.highest = max(self.highest, self.tokens)
        await super()._take(message)
        if message["type"] == "conversation.item.create":
            self.created.set()

    async def say(self, messages: Any) -> None:
        messages = list(messages)
        for message in messages:
            if message["type"] == "conversation.item.added":
                self.items[message["item"]["id"]] = self._cost(message["item"])
            if message["type"] == "response.output_audio_transcript.done":
                spoken = ChatMessage("assistant", message["transcript"])
                self.items[message["item_id"]] = self.window.count_message(spoken)
        await super().say(messages)

    @property
    def tokens(self) -> int:
        return sum(self.items.values())

    def _cost(self, item: dict[str, Any]) -> int:
        parts = item.get("content", ())
        text = " ".join(part["text"] for part in parts if "text" in part)
        images = tuple(ImageContent(url=part["image_url"]) for part in parts if "image_url" in part)
        return self.window.count_message(ChatMessage("user", text, images=images))


async def test_the_providers_conversation_stays_within_the_window(obliging):
    clock = ManualClock(settle_rounds=0)
    window = ContextWindow(max_tokens=WINDOW, keep_recent_turns=3)
    model = Counting(window)
    session = RealtimeSession(
        model,
        window=window,
        retain_images_max=5,
        max_history_messages=HISTORY,
        memory_limit_bytes=1_000_000,
        clock=clock,
    )
    model.window = session.settings.window
    async with session:
        for number in range(TURNS):
            for second in range(10):
                model.created.clear()
                await session.send_image(ImageContent.from_bytes(JPEG + bytes([number, second]), "image/jpeg"))
                clock.advance(1.0)
                await model.created.wait()
            await session.send(f"What do you see in picture {number}?")
            turn = await session.wait_for_reply()
            assert turn.messages[0].content.startswith("There is a street")
            figures = session.statistics().machine
            assert figures.history_messages <= HISTORY
            assert figures.images_kept <= 5
            assert (figures.tokens.own + figures.tokens.gone) * figures.tokens.scale <= WINDOW + 1
        await session.send("Goodbye.", respond=True)
        await session.wait_for_reply()
        figures = session.statistics()
        assert figures.machine.provider_items == len(model.items)
        assert figures.memory.total <= 1_000_000
        assert len(session.context) <= len(model.items)
    assert WINDOW / 2 < model.highest <= WINDOW * 1.02
    await model.aclose()
