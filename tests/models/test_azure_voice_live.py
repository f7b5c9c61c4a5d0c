"""Azure's Voice Live: address, key or token, settings."""

import json

import pytest

from realtime.core.commands import ConfigureSession
from realtime.errors import ArgumentError, UserError
from realtime.models import AzureVoiceLive

ENDPOINT = "https://acme.services.ai.azure.com"
URL = "wss://acme.services.ai.azure.com/voice-live/realtime?api-version=2026-04-10&model=gpt-realtime"


def session(model, **settings):
    (text,) = model.make_wire(wall=0.0).encode(ConfigureSession(command_id="k1", **settings))
    return json.loads(text)["session"]


@pytest.mark.parametrize(
    "endpoint", [ENDPOINT, f"{ENDPOINT}/", "acme.services.ai.azure.com", f"{ENDPOINT}/voice-live/realtime"]
)
async def test_the_address_is_the_resource_s(endpoint):
    model = AzureVoiceLive(endpoint=endpoint, api_key="k")
    assert sorted(model.url.partition("?")[2].split("&")) == sorted(URL.partition("?")[2].split("&"))
    assert model.url.partition("?")[0] == URL.partition("?")[0]
    assert await model.headers() == {"api-key": "k"}
    assert model.name == "azure-voice-live:gpt-realtime"


async def test_a_token_is_fresh_for_each_connection(monkeypatch):
    monkeypatch.setenv("AZURE_VOICELIVE_ENDPOINT", ENDPOINT)
    numbers = iter("12")

    async def token():
        return next(numbers)

    model = AzureVoiceLive(token=token)
    assert [await model.headers() for _ in range(2)] == [{"Authorization": "Bearer 1"}, {"Authorization": "Bearer 2"}]


async def test_what_is_missing_is_told_by_its_variable(monkeypatch):
    with pytest.raises(UserError, match="AZURE_VOICELIVE_ENDPOINT"):
        AzureVoiceLive()
    with pytest.raises(UserError, match="AZURE_VOICELIVE_API_KEY"):
        AzureVoiceLive(endpoint=ENDPOINT)
    monkeypatch.setenv("AZURE_VOICELIVE_API_KEY", "k")
    assert await AzureVoiceLive(endpoint=ENDPOINT).headers() == {"api-key": "k"}


@pytest.mark.parametrize(("model", "ears"), [("gpt-realtime", "whisper-1"), ("gpt-4.1", "azure-speech")])
def test_who_transcribes_depends_on_who_hears(model, ears):
    made = AzureVoiceLive(model, endpoint=ENDPOINT, api_key="k")
    assert session(made)["input_audio_transcription"] == {"model": ears}
    assert made.capabilities.model == model


def test_settings_reach_the_wire():
    model = AzureVoiceLive(
        "gpt-4.1", endpoint=ENDPOINT, api_key="k", voice="en-US-AvaNeural", speed=1.1, noise_reduction="near_field"
    )
    sent = session(model)
    assert sent["voice"] == {"type": "azure-standard", "name": "en-US-AvaNeural", "rate": "1.1"}
    assert sent["input_audio_noise_reduction"] == {"type": "near_field"}
    with pytest.raises(UserError, match="Voice Live has no setting 'truncation'"):
        AzureVoiceLive(endpoint=ENDPOINT, api_key="k", truncation="auto")
    with pytest.raises(ArgumentError, match="speed"):
        AzureVoiceLive(endpoint=ENDPOINT, api_key="k", speed=9)
