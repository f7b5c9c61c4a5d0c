"""Conversations by script, in the recordings' shape, for what real recordings lack: each provider, each case that it can have.

Each is read whole by its provider's wire format, read damaged, and heard by a whole session whose user says nothing: whatever
is said to it, in whatever state, it ends in good order with a history that every provider's format takes (F1, H7, L4).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realtime import GeminiLive, OpenAIRealtime, RealtimeSession, XaiRealtime
from realtime.core.model_events import ModelFault, SessionReady, SessionUpdated, UnknownReport
from realtime.errors import LinkLost, ModelError, RealtimeError
from realtime.events import ErrorReported, ReplyStarted, SessionEnded
from realtime.models.azure_voice_live import AzureVoiceLive
from realtime.models.base import RealtimeModel
from realtime.testing import ManualClock, MemoryPair, check_wire_format
from realtime.wire.gemini_decode import GREETING

FOLDER = Path(__file__).with_name("recordings")
NOWHERE = "ws://127.0.0.1:9"
MODELS: dict[str, Callable[[], RealtimeModel]] = {
    "openai": lambda: OpenAIRealtime("gpt-realtime", url=NOWHERE),
    "azure": lambda: OpenAIRealtime("gpt-realtime", url=NOWHERE),
    "voice_live": lambda: AzureVoiceLive("gpt-realtime", url=NOWHERE),
    "gemini": lambda: GeminiLive("gemini-3.8-live", url=NOWHERE),
    "xai": lambda: XaiRealtime("grok-voice-latest", url=NOWHERE),
}
CASES = {"pictures", "interruption", "truncation", "error", "push_to_talk", "go_away", "resumption", "expiry"}
CANNOT = {
    *((name, case) for name in ("openai", "azure", "voice_live") for case in ("go_away", "resumption")),
    ("gemini", "truncation"),
    *(("xai", case) for case in ("pictures", "truncation", "go_away")),
}
FILES = sorted(FOLDER.glob("*/*.json"))


def interactions(path: Path) -> list[dict[str, Any]]:
    recording = json.loads(path.read_text(encoding="utf-8"))
    assert recording["version"] == 1
    return recording["interactions"]


def received(path: Path) -> list[str]:
    return [
        json.dumps(each["data"])
        for each in interactions(path)
        if each["kind"] == "message" and each["direction"] == "received"
    ]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_provider_has_every_case_that_it_can_have():
    there = {(path.parent.name, path.stem) for path in FILES}
    assert {name for name, _ in there} == set(MODELS)
    assert {(name, case) for name in MODELS for case in CASES} - there == CANNOT


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_scripted_conversation_is_understood_whole(path: Path):
    model = MODELS[path.parent.name]()
    events: list[Any] = []
    for whole in connections(interactions(path), model):
        wire = model.make_wire()
        events += [event for data in whole for event in wire.decode(data)]
    assert not [event for event in events if isinstance(event, UnknownReport)]
    faults = [event for event in events if isinstance(event, ModelFault)]
    assert all(fault.code != "malformed_message" for fault in faults)
    assert bool(faults) or path.stem not in ("error", "truncation", "active_response")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_scripted_conversation_that_is_damaged_raises_nothing_but_what_is_typed(path: Path):
    model = MODELS[path.parent.name]()
    check_wire_format(model.make_wire, received(path), damaged=100)


class Played(RealtimeModel):
    """Says what the provider said, connection by connection, whatever it is told."""

    def __init__(self, path: Path) -> None:
        self.real = MODELS[path.parent.name]()
        self.name, self.capabilities = name_of(path), self.real.capabilities
        self.is_gemini = path.parent.name == "gemini"
        self.connections = connections(interactions(path), self.real)
        self.pairs: list[MemoryPair] = []
        self.rest: list[list[str]] = []
        """What comes after each connection's handshake."""

    def make_wire(self, *, wall: float | None = None) -> Any:
        return self.real.make_wire(wall=wall)

    async def open(self) -> Any:
        if not self.connections:
            raise ModelError("there is no more of it", code="over", fatal=True)
        pair = MemoryPair(capacity=4_096)
        self.pairs.append(pair)
        whole = self.connections.pop(0)
        begin = handshake(whole, self.real)
        for data in [*([GREETING] if self.is_gemini else []), *whole[:begin]]:
            await pair.server.send(data)
        self.rest.append(whole[begin:])
        return pair.client


def connections(told: list[dict[str, Any]], model: RealtimeModel) -> list[list[str]]:
    """What the provider said on each connection; another one begins where it greets anew."""
    found: list[list[str]] = []
    for each in told:
        if each["kind"] != "message" or each["direction"] != "received":
            continue
        data = json.dumps(each["data"])
        begins = isinstance(model, GeminiLive) and "setupComplete" in each["data"]
        if begins or any(isinstance(event, SessionReady) for event in model.make_wire().decode(data)):
            found.append([])
        found[-1].append(data)
    return found


def handshake(whole: list[str], model: RealtimeModel) -> int:
    """How many of a connection's messages there are until it is configured."""
    wire = model.make_wire()
    for number, data in enumerate(whole, 1):
        if any(isinstance(event, SessionUpdated) for event in wire.decode(data)):
            return number
    return len(whole)


@pytest.mark.parametrize("path", FILES, ids=name_of)
async def test_a_session_that_only_listens_comes_through_in_good_order(path: Path):
    clock = ManualClock()
    model = Played(path)
    wholes = len(model.connections)
    assert wholes >= 1
    session = RealtimeSession(model, clock=clock)
    events: list[Any] = []
    async with session:
        stream = aiter(session)
        for number in range(wholes):
            while len(model.pairs) <= number and not session._runtime.driver.closed:  # type: ignore[union-attr]
                await clock.run(1.0)
            if len(model.pairs) <= number:
                break
            for data in model.rest[number]:
                await model.pairs[number].server.send(data)
            while model.pairs[number].client.waiting:
                await clock.run(0.1)
            if number + 1 < wholes:
                model.pairs[number].drop(keep=True)
            await clock.run(2.0)
        await session.aclose()
    with contextlib.suppress(LinkLost, ModelError):  # what it ended with, if not by us
        while True:
            events.append(await anext(stream))
            if isinstance(events[-1], SessionEnded):
                break
    speaks = any("response.created" in data or "modelTurn" in data for data in received(path))
    assert any(isinstance(event, ReplyStarted) for event in events) == speaks
    assert sum(isinstance(event, SessionEnded) for event in events) == 1
    assert all(isinstance(event.error, RealtimeError) for event in events if isinstance(event, ErrorReported))
    messages = session.all_messages()
    answered = {message.tool_call_id for message in messages}
    assert all(call.call_id in answered for message in messages for call in message.tool_calls)
    for convert in ("to_openai_messages", "to_anthropic_messages", "to_google_contents"):
        getattr(session.context, convert)()
