"""Any server that speaks OpenAI's protocol, by its address."""

import json

import pytest
from websockets.asyncio.server import serve

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import ConfigureSession
from realtime.core.model_events import SessionReady, SessionUpdated
from realtime.errors import ArgumentError, ModelError
from realtime.models import WebSocketModel
from realtime.models.base import RealtimeModel


@pytest.mark.parametrize("url", ["http://localhost", "ws://", "", None, 7, "localhost:8765"])
def test_what_is_no_address_is_refused_by_name(url):
    with pytest.raises(ArgumentError, match="url"):
        WebSocketModel(url)


def test_what_it_can_do_may_be_said():
    capabilities = ModelCapabilities(model="tiny", input_rate_hz=16_000, supports_image_input=False)
    model = WebSocketModel("ws://127.0.0.1:1", capabilities=capabilities, name="tiny")
    assert model.capabilities is capabilities
    (text,) = model.make_wire().encode(ConfigureSession(command_id="k1"))
    assert json.loads(text)["session"]["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 16_000}


def test_its_name_holds_no_password():
    model = WebSocketModel("wss://user:secret@llm.example.org:99/x", api_key="secret")
    assert model.name == "llm.example.org:99"
    assert "secret" not in repr(model)


async def test_it_connects_shakes_hands_and_says_who_it_is():
    seen = {}

    async def handle(connection):
        seen["path"] = connection.request.path
        seen["headers"] = connection.request.headers
        await connection.send('{"type":"session.created","session":{"id":"s1","expires_at":1600}}')
        seen["update"] = json.loads(await connection.recv())
        await connection.send('{"type":"session.updated","session":{}}')
        await connection.wait_closed()

    async with serve(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime"
        model = WebSocketModel(url, model="tiny", api_key="k", headers={"X-Tenant": "acme"})
        assert isinstance(model, RealtimeModel)
        wire, transport = model.make_wire(wall=1000.0), await model.open()
        assert wire.decode(await transport.receive()) == [SessionReady(session_id="s1", expires_in_seconds=600.0)]
        for message in wire.encode(ConfigureSession(command_id="k1", instructions="Be brief.")):
            await transport.send(message)
        assert wire.decode(await transport.receive()) == [SessionUpdated()]
        await transport.aclose()
        await model.aclose()
    assert seen["path"] == "/v1/realtime?model=tiny"
    assert (seen["headers"]["Authorization"], seen["headers"]["X-Tenant"]) == ("Bearer k", "acme")
    assert seen["update"]["session"]["instructions"] == "Be brief."


async def test_its_limit_of_size_is_its_capabilities():
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        model = WebSocketModel(url, capabilities=ModelCapabilities(max_message_bytes=100))
        transport = await model.open()
        with pytest.raises(ModelError, match="101 bytes"):
            await transport.send("a" * 101)
        await transport.aclose()


@pytest.mark.parametrize("argument", ["voice", "transcription"])
def test_what_is_no_text_is_refused_by_name(argument):
    with pytest.raises(ArgumentError, match=f"{argument} must be text, or None, not 'int'"):
        WebSocketModel("ws://one.example", **{argument: 3})
