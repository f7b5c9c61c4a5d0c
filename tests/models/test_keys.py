"""Keys are never logged, shown or told (issue of the providers, part 1)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import Any

import pytest
from websockets.asyncio.server import serve

from realtime import (
    ArgumentError,
    AzureRealtime,
    ErrorReported,
    GeminiLive,
    OpenAIRealtime,
    RealtimeError,
    RealtimeSession,
    ReconnectPolicy,
    WebSocketModel,
    XaiRealtime,
)
from realtime.models import AzureVoiceLive
from realtime.testing import openai_script

KEY = "sk-the-secret-of-this-test"
SERVER_LOG = logging.getLogger("the test's own server, which logs what it is sent")
SERVER_LOG.setLevel(logging.ERROR)
MODELS: dict[str, Any] = {
    "openai": lambda url: OpenAIRealtime(url=url, api_key=KEY),
    "azure": lambda url: AzureRealtime("voice", url=url, api_key=KEY),
    "azure token": lambda url: AzureRealtime("voice", url=url, token=lambda: KEY),
    "voice live": lambda url: AzureVoiceLive(url=url, api_key=KEY),
    "gemini": lambda url: GeminiLive(url=url, api_key=KEY),
    "xai": lambda url: XaiRealtime(url=url, api_key=KEY),
    "websocket": lambda url: WebSocketModel(url, api_key=KEY, headers={"X-Other": KEY}),
}


async def handshake(connection: Any) -> None:
    """Open a session in whichever protocol the client speaks, say the key back in an error, and break off."""
    assert KEY in str(connection.request.headers)
    hello = [*openai_script.session_created(), {"type": "conversation.created", "conversation": {"id": "conv"}}]
    if "x-goog-api-key" not in connection.request.headers:
        for message in hello:
            await connection.send(json.dumps(message))
    setup = json.loads(await connection.recv())
    answer: dict[str, Any] = {"setupComplete": {}} if "setup" in setup else openai_script.session_updated()[0]
    await connection.send(json.dumps(answer))
    await connection.send(json.dumps({"type": "error", "error": {"message": "odd"}}))
    await connection.recv()
    connection.transport.abort()


@pytest.mark.parametrize("name", MODELS)
async def test_nothing_that_is_logged_or_told_holds_the_key(name, caplog):
    caplog.set_level(logging.DEBUG)
    async with serve(handshake, "127.0.0.1", 0, logger=SERVER_LOG) as server:
        model = MODELS[name](f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime")
        seen: list[Any] = [model, model.name, model.url, model.capabilities]
        async with RealtimeSession(model, reconnect=ReconnectPolicy(max_attempts=1)) as session:
            events = aiter(session)
            await session.send("Hi")
            with contextlib.suppress(RealtimeError, StopAsyncIteration, TimeoutError):
                async with asyncio.timeout(5):
                    while len(seen) < 40:
                        seen.append(await anext(events))
                        if isinstance(seen[-1], ErrorReported):
                            await session.send("again")
            seen += [session.statistics(), session.conversation]
    assert len(seen) > 6
    assert KEY not in "\n".join(map(repr, seen))
    assert KEY not in caplog.text
    assert caplog.records


@pytest.mark.parametrize("name", MODELS)
async def test_a_refusal_that_says_the_key_back_is_shown_without_it(name, caplog):
    caplog.set_level(logging.DEBUG)

    async def refuse(connection: Any, request: Any) -> Any:
        return connection.respond(401, f"Incorrect API key provided: {KEY}")

    async with serve(handshake, "127.0.0.1", 0, process_request=refuse, logger=SERVER_LOG) as server:
        model = MODELS[name](f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime")
        with pytest.raises(RealtimeError, match="401") as caught:
            await RealtimeSession(model).__aenter__()
    assert KEY not in f"{caught.value!r} {caught.value}"
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        lambda key: OpenAIRealtime(api_key=key),
        lambda key: AzureRealtime("voice", url="wss://one.example", api_key=key),
        lambda key: AzureVoiceLive(url="wss://one.example", api_key=key),
        lambda key: GeminiLive(api_key=key),
        lambda key: XaiRealtime(api_key=key),
        lambda key: WebSocketModel("wss://one.example", api_key=key),
    ],
    ids=["openai", "azure", "voice live", "gemini", "xai", "websocket"],
)
def test_a_key_that_is_no_text_is_refused_and_not_shown(make):
    with pytest.raises(ArgumentError, match="api_key must be text, or None, not 'bytes'") as caught:
        make(KEY.encode())
    assert KEY not in repr(caught.value)
