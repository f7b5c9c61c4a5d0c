"""A whole session with a server that gives items ids of its own: order, deletion and truncation go by its ids (H1, P2, W5)."""

from __future__ import annotations

from typing import Any

import pytest

from realtime import ContextWindow, ModelCapabilities, RealtimeSession
from realtime.events import MessagesRemoved, ReplyInterrupted
from realtime.wire.openai import OpenAIWire
from realtime.wire.openai_mapped import MappedWire

from .conftest import Obliging


class Renaming(Obliging):
    """Gives every item that it is told an id of its own, and knows no other."""

    def __init__(self, *replies: Any, keeps: bool = False) -> None:
        super().__init__(*replies, capabilities=ModelCapabilities(model="renaming", supports_own_item_ids=keeps))
        self.keeps = keeps
        self.known: list[str] = []

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        return OpenAIWire(wall=wall) if self.keeps else MappedWire(wall=wall)

    async def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "conversation.item.create" and not self.keeps:
            name = f"srv_{len(self.known)}"
            self.known.append(name)
            message = {**message, "item": {**message["item"], "id": name}}
        await super()._take(message)


async def until(events: Any, kind: type[Any]) -> Any:
    while not isinstance(event := await anext(events), kind):
        pass
    return event


@pytest.fixture(params=[True, False], ids=["keeps ids", "gives ids"])
async def server(request: pytest.FixtureRequest) -> Any:
    made = Renaming("First.", "Second.", "Third.", keeps=request.param)
    yield made
    await made.aclose()


async def test_what_was_said_stands_in_order_under_our_ids(server: Renaming):
    async with RealtimeSession(server) as session:
        said: list[str] = []
        for text in ("One?", "Two?", "Three?"):
            said += await session.send(text)
            await session.wait_for_reply()
        messages = session.context.messages()
    assert [message.content for message in messages] == ["One?", "First.", "Two?", "Second.", "Three?", "Third."]
    assert [message.message_id for message in messages][::2] == said


async def test_what_the_window_trims_is_deleted_under_the_server_s_ids(server: Renaming):
    async with RealtimeSession(server, window=ContextWindow(max_context_items=2, keep_recent_turns=1)) as session:
        events = aiter(session)
        first = await session.send("One?")
        await session.wait_for_reply()
        await session.send("Two?")
        await session.wait_for_reply()
        removed = await until(events, MessagesRemoved)
        assert first[0] in removed.message_ids
        deleted = (await server.hears("conversation.item.delete"))["item_id"]
    assert deleted == (first[0] if server.keeps else "srv_0")


async def test_a_reply_is_cut_at_the_server_under_its_id(server: Renaming):
    server.replies.clear()
    server.replies.append("One two three four five.")
    async with RealtimeSession(server) as session:
        events = aiter(session)
        audio = session.stream_audio()
        await session.send("Count.")
        await anext(audio)
        await session.interrupt(played_ms=200)
        cut = await until(events, ReplyInterrupted)
        truncated = await server.hears("conversation.item.truncate")
    assert truncated["item_id"].startswith("reply_")
    assert truncated["audio_end_ms"] == cut.heard_ms
