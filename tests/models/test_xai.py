"""xAI: keys, and what it can do."""

import json

import pytest
from websockets.asyncio.server import serve

from realtime.core.commands import ConfigureSession
from realtime.errors import ArgumentError, UserError
from realtime.models import XaiRealtime
from realtime.wire.base import Resumption
from realtime.wire.xai import XaiWire


async def test_the_key_comes_from_the_argument_or_the_environment(monkeypatch):
    with pytest.raises(UserError, match="XAI_API_KEY"):
        XaiRealtime()
    monkeypatch.setenv("XAI_API_KEY", "x")
    model = XaiRealtime()
    assert model.url == "wss://api.x.ai/v1/realtime?model=grok-voice-latest"
    assert await model.headers() == {"Authorization": "Bearer x"}
    assert await XaiRealtime(api_key="y").headers() == {"Authorization": "Bearer y"}


def test_it_hears_and_speaks_and_sees_nothing():
    capabilities = XaiRealtime(api_key="k").capabilities
    assert capabilities.model == "grok-voice-latest"
    assert not capabilities.supports_image_input
    assert not capabilities.supports_truncation
    assert not capabilities.supports_text_output
    assert not capabilities.reports_total_usage


def test_settings_reach_the_wire():
    model = XaiRealtime(
        api_key="k", voice="ara", transcription="grok-2", transcription_language="de", tool_choice="none"
    )
    session = json.loads(model.make_wire(wall=0.0).encode(ConfigureSession(command_id="k1"))[0])["session"]
    assert (session["voice"], session["tool_choice"]) == ("ara", "none")
    assert session["audio"]["input"]["transcription"] == {"model": "grok-2", "language_hint": "de"}
    assert session["resumption"] == {"enabled": True}


def test_a_setting_that_it_does_not_have_is_refused_by_name():
    with pytest.raises(UserError, match="xAI has no setting 'noise_reduction'"):
        XaiRealtime(api_key="k", noise_reduction="near_field")
    with pytest.raises(ArgumentError, match="speed"):
        XaiRealtime(api_key="k", speed=3)


async def test_an_earlier_conversation_is_asked_for_by_its_id():
    seen = {}

    async def handle(connection):
        seen["path"] = connection.request.path
        await connection.wait_closed()

    async with serve(handle, "127.0.0.1", 0) as server:
        model = XaiRealtime(url=f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime", api_key="k")
        transport, wire = await model.resume(Resumption(handle="conv 1"))
        assert isinstance(wire, XaiWire)
        await transport.aclose()
    assert seen["path"] == "/v1/realtime?conversation_id=conv+1&model=grok-voice-latest"


def test_a_provider_that_must_keep_nothing_resumes_nothing():
    assert XaiRealtime(api_key="k").capabilities.supports_resumption
    model = XaiRealtime(api_key="k", resumption=False)
    assert not model.capabilities.supports_resumption
    session = json.loads(model.make_wire().encode(ConfigureSession(command_id="k1"))[0])["session"]
    assert "resumption" not in session
