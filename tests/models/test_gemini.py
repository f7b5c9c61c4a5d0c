"""Gemini Live: keys, address, and a provider that waits to be set up."""

import asyncio
import json

import pytest
from websockets.asyncio.server import serve

from realtime.chat.image_prices import image_price
from realtime.core.commands import AppendAudio, ConfigureSession
from realtime.core.model_events import SessionReady, SessionUpdated
from realtime.errors import ArgumentError, UserError
from realtime.models import GeminiLive
from realtime.transports.websocket import PromptTransport
from realtime.wire.base import Resumption


def test_the_key_comes_from_the_argument_or_the_environment(monkeypatch):
    with pytest.raises(UserError, match="GEMINI_API_KEY"):
        GeminiLive()
    monkeypatch.setenv("GOOGLE_API_KEY", "google")
    assert GeminiLive()._headers == {"x-goog-api-key": "google"}
    monkeypatch.setenv("GEMINI_API_KEY", "gemini")
    assert GeminiLive()._headers == {"x-goog-api-key": "gemini"}
    model = GeminiLive(api_key="very-secret")
    assert model._headers == {"x-goog-api-key": "very-secret"}
    assert "secret" not in f"{model!r} {model.url} {model.name}"


def test_what_it_can_do_is_data():
    capabilities = GeminiLive(api_key="k").capabilities
    assert (capabilities.input_rate_hz, capabilities.output_rate_hz) == (16_000, 24_000)
    assert not capabilities.supports_text_output
    assert not capabilities.reports_item_order
    assert capabilities.supports_resumption
    assert GeminiLive("gemini-live-2.5-flash-preview", api_key="k").capabilities.supports_text_output
    assert not GeminiLive("gemini-2.5-flash-native-audio-latest", api_key="k").capabilities.supports_text_output


@pytest.mark.parametrize(
    ("model", "price", "history_first"),
    [
        ("gemini-2.5-flash-native-audio-preview-09-2025", "gemini-tiles", False),
        ("models/gemini-live-2.5-flash", "gemini-tiles", False),
        ("gemini-3.1-flash-live-preview", "gemini-3", True),
        ("gemini-3.8-live", "gemini-3", True),
    ],
)
def test_its_generation_says_what_pictures_cost_and_how_it_is_told_things(model, price, history_first):
    made = GeminiLive(model, api_key="k")
    assert made.capabilities.image_price == price
    image_price(made.capabilities.image_price)
    (text,) = made.make_wire().encode(ConfigureSession(command_id="k1", earlier_items=1))
    assert ("historyConfig" in json.loads(text)["setup"]) == history_first


@pytest.mark.parametrize(
    ("model", "setting", "right"),
    [
        ("gemini-3.8-live", {"thinking_budget": 0}, "reasoning_effort"),
        ("gemini-2.5-flash-native-audio-latest", {"reasoning_effort": "low"}, "thinking_budget"),
    ],
)
def test_each_generation_is_told_its_own_way_how_to_think(model, setting, right):
    with pytest.raises(UserError, match=f"use {right}"):
        GeminiLive(model, api_key="k", **setting)


def test_a_setting_that_it_does_not_have_is_refused_by_name():
    with pytest.raises(UserError, match="Gemini has no setting 'tool_choice'"):
        GeminiLive(api_key="k", tool_choice="none")


async def test_an_earlier_conversation_is_asked_for_by_its_handle():
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
        model = GeminiLive(url=f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", api_key="k")
        transport, wire = await model.resume(Resumption(handle="h1"))
        assert wire.decode(await transport.receive()) == [SessionReady()]
        (text,) = wire.encode(ConfigureSession(command_id="k1"))
        assert json.loads(text)["setup"]["sessionResumption"] == {"handle": "h1"}
        await transport.aclose()


async def test_it_is_greeted_for_and_set_up_over_binary_frames():
    seen = {"sound": asyncio.get_running_loop().create_future()}

    async def handle(connection):
        seen["key"] = connection.request.headers["x-goog-api-key"]
        seen["setup"] = json.loads(await connection.recv())["setup"]
        await connection.send(b'{"setupComplete":{}}')
        seen["sound"].set_result(await connection.recv())
        await connection.wait_closed()

    async with serve(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        model = GeminiLive("gemini-x", url=url, api_key="k", voice="Kore", temperature=0.5)
        transport, wire = await model.open(), model.make_wire(wall=1000.0)
        assert wire.decode(await transport.receive()) == [SessionReady()]
        for message in wire.encode(ConfigureSession(command_id="k1")):
            await transport.send(message)
        assert wire.decode(await transport.receive()) == [SessionUpdated()]
        assert isinstance(transport, PromptTransport)
        assert transport.is_clear
        [sound] = wire.encode(AppendAudio(command_id="k2", pcm=bytes(640)))
        transport.send_at_once(sound)
        assert "audio" in json.loads(await seen["sound"])["realtimeInput"]
        await transport.aclose()
        assert not transport.is_clear
        await model.aclose()
    assert seen["key"] == "k"
    assert seen["setup"]["model"] == "models/gemini-x"
    assert seen["setup"]["generationConfig"]["temperature"] == 0.5


def test_two_connections_make_other_ids():
    model = GeminiLive(api_key="k")
    message = '{"toolCall":{"functionCalls":[{"name":"a"}]}}'
    assert model.make_wire().decode(message)[0] != model.make_wire().decode(message)[0]


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(ArgumentError, match="url"):
        GeminiLive(url="http://localhost")
    with pytest.raises(ArgumentError, match="model"):
        GeminiLive("", api_key="k")
