"""xAI: keys, and what it can do."""

import json

import pytest

from realtime.core.commands import ConfigureSession
from realtime.errors import UserError
from realtime.models import XaiRealtime


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
    assert session["audio"]["input"]["transcription"] == {"model": "grok-2", "language": "de"}
