"""What every wire format and every transport must do, as checks to call from tests.

Owns: `check_wire_format` and `check_transport`. Driven by tests of this package and of others' models. They assert, and
never skip.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast, get_args

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.core.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    ConfigureSession,
    CreateItem,
    CreateResponse,
    DeleteItem,
    LinkCommand,
    TruncateItem,
)
from realtime.core.model_events import ModelEvent, OutputAudio
from realtime.core.settings import ToolSpec, TurnDetection
from realtime.errors import LinkLost, ModelError, UserError
from realtime.transports.websocket import MESSAGE_TOO_LARGE, Transport
from realtime.wire.base import WireFormat, item_count

__all__ = ["check_transport", "check_wire_format", "mutations", "sample_commands"]

_EVENTS = get_args(ModelEvent)
_PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="


def sample_commands() -> list[LinkCommand]:
    """One command of each kind, and an item of each kind of message."""
    call = FunctionCall(call_id="call_1", name="look_up", arguments='{"id": 7}')
    picture = ImageContent(url=_PIXEL)
    messages = [
        ChatMessage(role=ChatRole.SYSTEM, content="The shop is closed on Sunday.", message_id="m1"),
        ChatMessage(role=ChatRole.USER, content="Where is order 7?", message_id="m2"),
        ChatMessage(role=ChatRole.USER, content="", message_id="m3", images=(picture,)),
        ChatMessage(role=ChatRole.ASSISTANT, content="I look.", message_id="m4", tool_calls=(call,)),
        ChatMessage(role=ChatRole.TOOL, content="on its way", message_id="m5", tool_call_id="call_1"),
        ChatMessage(role=ChatRole.TOOL, content="", message_id="m6", tool_call_id="call_1", images=(picture,)),
    ]
    tool = ToolSpec(name="look_up", description="Find an order.")
    items = [
        CreateItem(command_id=f"c{n}", message=message, item_ids=tuple(f"i{n}_{k}" for k in range(item_count(message))))
        for n, message in enumerate(messages)
    ]
    return [
        ConfigureSession(command_id="k1", instructions="Be brief.", tools=(tool,), voice="any"),
        ConfigureSession(
            command_id="k2", turn_detection=TurnDetection(mode="manual"), transcription=None, output="text"
        ),
        AppendAudio(command_id="k3", pcm=bytes(960)),
        CommitAudio(command_id="k4"),
        ClearAudio(command_id="k5"),
        *items,
        DeleteItem(command_id="k6", item_id="i1_0"),
        TruncateItem(command_id="k7", item_id="i3_0", content_index=0, audio_end_ms=480),
        CreateResponse(command_id="k8", metadata={"wish": "w1"}, tool_choice="none", instructions="Say yes."),
        CancelResponse(command_id="k9", response_id="resp_1"),
    ]


def mutations(messages: Sequence[str | bytes], count: int, seed: int = 0) -> Iterable[str | bytes]:
    """Recorded wire messages with damage: cut, garbled, fields taken away or of another type. The same for a seed."""
    chance = random.Random(seed)  # noqa: S311  (damage, not secrets)
    junk: list[Any] = [None, True, -1, 1e309, "", "\ud800", [], {}, [None], {"id": 3}, 2**70, "a" * 2000]
    for _ in range(count):
        message = chance.choice(messages)
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        kind = chance.randrange(4)
        if kind == 0:
            yield text[: chance.randrange(len(text) + 1)]
        elif kind == 1:
            at = chance.randrange(len(text) + 1)
            yield (text[:at] + chance.choice(["\0", "}", '"', "é", "[[", "\\u0"]) + text[at:]).encode()
        else:
            value = json.loads(text)
            for _ in range(kind):
                _damage(value, chance, junk)
            yield json.dumps(value)


def _damage(value: Any, chance: random.Random, junk: list[Any]) -> None:
    """Take away or replace one thing somewhere in a JSON value."""
    while isinstance(value, (dict, list)) and value:
        holder = cast("dict[Any, Any]", value)  # a list too: both are subscripted by their keys
        keys = list(holder) if isinstance(value, dict) else list(range(len(holder)))
        key = chance.choice(keys)
        if chance.random() < 0.5 and isinstance(holder[key], (dict, list)) and holder[key]:
            value = holder[key]
            continue
        if chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(junk))  # it may be damaged in its turn
        return


def check_wire_format(
    make_wire: Callable[[], WireFormat], messages: Sequence[str | bytes], *, damaged: int = 2000, seed: int = 0
) -> list[ModelEvent]:
    """Check a wire format: what it encodes can be sent, and nothing that it decodes breaks it.

    Args:
        make_wire: Makes one for a fresh connection.
        messages: What a real server of the protocol sent on one connection, in order.
        damaged: How many damaged messages to decode besides.
        seed: Of the damage.

    Returns:
        What the messages report, for assertions of the caller's own.

    Raises:
        AssertionError: With what is wrong.
    """
    wire = make_wire()
    for command in sample_commands():
        try:
            encoded = wire.encode(command)
        except UserError:
            continue  # the protocol has no place for it, and says so
        for message in encoded:
            assert isinstance(message, (str, bytes)), f"{type(command).__name__} is encoded as {type(message).__name__}"
            json.loads(message)
            (message if isinstance(message, bytes) else message.encode()).decode()
    events: list[ModelEvent] = []
    for message in messages:
        for event in wire.decode(message):
            _check_event(event)
            events.append(event)
    hurt = make_wire()
    for message in mutations(messages, damaged, seed):
        try:
            for event in hurt.decode(message):
                _check_event(event)
        except ModelError:
            continue
    counted = hurt.statistics()
    assert counted.decoded == damaged, f"{damaged} messages were decoded and {counted.decoded} counted"
    assert len(counted.unknown) <= 65, "the count of unknown types has no bound"
    fresh = make_wire()
    fresh.decode('{"type":"a.type.of.tomorrow","aTypeOfTomorrow":{}}')
    assert fresh.statistics().unknown, "an unknown message is not counted"
    return events


def _check_event(event: object) -> None:
    assert isinstance(event, _EVENTS), f"{event!r} is no model event"
    if isinstance(event, OutputAudio):
        assert event.pcm, "a chunk of audio is empty"
        assert len(event.pcm) % 2 == 0, "a chunk of audio holds half a sample (behaviour.md A2)"


Ends = tuple[Transport, Transport]
"""The transport under test, and the far end of its connection."""


async def check_transport(
    make_pair: Callable[[], AbstractAsyncContextManager[Ends]], *, max_message_bytes: int
) -> None:
    """Check a transport: order, characters, the limit of size, cancelling, and every way to end.

    Args:
        make_pair: Opens a connection and gives its two ends, the transport under test first; closes what is left of it.
        max_message_bytes: What the messages that it sends are limited to.

    Raises:
        AssertionError: With what is wrong.
    """
    async with make_pair() as (near, far):
        await _check_order(near, far)
        await _check_size(near, far, max_message_bytes)
        await _check_cancel(near, far)
        async with _bounded("aclose"):
            await near.aclose()
            await near.aclose()
        await _check_lost(near)
        await _check_lost(far)
    async with make_pair() as (near, far):
        waiting = asyncio.get_running_loop().create_task(near.receive())
        await asyncio.sleep(0)
        await far.send("last words")
        await far.aclose()
        assert await waiting == "last words", "what arrived before the end is lost"
        await _check_lost(near)
        await near.aclose()
        await far.aclose()


@contextlib.asynccontextmanager
async def _bounded(what: str) -> AsyncGenerator[None, None]:
    """A hang guard: ten times what a transport may take to end."""
    try:
        async with asyncio.timeout(10.0):
            yield
    except TimeoutError:
        raise AssertionError(f"{what} does not come to an end") from None


async def _check_order(near: Transport, far: Transport) -> None:
    for number in range(20):
        await near.send(f"é{number}")
        await far.send(bytes([number]))
        assert await far.receive() == f"é{number}", "text changes its order or its characters"
        assert await near.receive() == bytes([number]), "binary changes its order or its bytes"
    for number in range(5):
        await near.send(str(number))
    assert [await far.receive() for _ in range(5)] == ["0", "1", "2", "3", "4"], "messages change their order"


async def _check_size(near: Transport, far: Transport, most: int) -> None:
    for large in ("a" * (most + 1), "é" * (most // 2 + 1), bytes(most + 1)):
        code = None
        try:
            await near.send(large)
        except ModelError as error:
            code = error.code
        assert code == MESSAGE_TOO_LARGE, f"a message over the limit gives {code!r} (behaviour.md L5)"
    sending = asyncio.get_running_loop().create_task(near.send("a" * most))
    async with _bounded("sending the largest message"):
        assert await far.receive() == "a" * most, "the largest message does not arrive whole"
        await sending


async def _check_cancel(near: Transport, far: Transport) -> None:
    waiting = asyncio.get_running_loop().create_task(near.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled(), "a cancelled receive swallows its cancellation (behaviour.md L7)"
    await far.send("kept")
    async with _bounded("receive after a cancelled one"):
        assert await near.receive() == "kept", "a cancelled receive loses a message"


async def _check_lost(end: Transport) -> None:
    for call in (end.receive, lambda: end.send("too late")):
        async with _bounded("a call on a connection that is over"):
            try:
                await call()
            except LinkLost:
                continue
        raise AssertionError("a call on a connection that is over does not raise LinkLost (behaviour.md L4)")
