"""Models by name."""

import pytest

from realtime.errors import ArgumentError, UserError
from realtime.models import (
    AzureRealtime,
    AzureVoiceLive,
    GeminiLive,
    LocalRealtime,
    OpenAIRealtime,
    WebSocketModel,
    XaiRealtime,
    resolve,
)


def test_each_form_gives_its_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    monkeypatch.setenv("XAI_API_KEY", "x")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com/")
    monkeypatch.setenv("AZURE_VOICELIVE_ENDPOINT", "https://acme.services.ai.azure.com/")
    monkeypatch.setenv("AZURE_VOICELIVE_API_KEY", "k")
    wanted = {
        "local": (LocalRealtime, "local"),
        "openai:gpt-realtime": (OpenAIRealtime, "openai:gpt-realtime"),
        "OpenAI:gpt-realtime-mini": (OpenAIRealtime, "openai:gpt-realtime-mini"),
        "azure:my-voice": (AzureRealtime, "azure:my-voice"),
        "azure-voice-live:gpt-4.1": (AzureVoiceLive, "azure-voice-live:gpt-4.1"),
        "gemini:gemini-live-2.5-flash": (GeminiLive, "gemini:gemini-live-2.5-flash"),
        "xai:grok-voice-latest": (XaiRealtime, "xai:grok-voice-latest"),
        "ws://127.0.0.1:8765/v1/realtime": (WebSocketModel, "127.0.0.1:8765"),
        " wss://llm.example.org/v1/realtime ": (WebSocketModel, "llm.example.org"),
    }
    for name, (kind, shown) in wanted.items():
        model = resolve(name)
        assert type(model) is kind
        assert model.name == shown


def test_a_model_is_returned_as_it_is():
    model = WebSocketModel("ws://127.0.0.1:1")
    assert resolve(model) is model


@pytest.mark.parametrize(
    "name", ["", "nobody:model", "openai:", "azure:", "gemini:", "xai: ", "http://localhost", None, 7, "locally"]
)
def test_an_unknown_name_is_refused_with_all_that_would_do(name):
    with pytest.raises(ArgumentError) as caught:
        resolve(name)
    forms = "'local' 'openai:MODEL' 'azure:DEPLOYMENT' 'azure-voice-live:MODEL' 'gemini:MODEL' 'xai:MODEL' 'ws://…'"
    for form in forms.split():
        assert form in str(caught.value)


def test_a_model_without_its_provider_is_told_how():
    with pytest.raises(UserError, match="'openai:gpt-realtime-2'"):
        resolve("gpt-realtime-2")


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-realtime", "OPENAI_API_KEY"),
        ("azure:voice", "AZURE_OPENAI_ENDPOINT"),
        ("azure-voice-live:gpt-4.1", "AZURE_VOICELIVE_ENDPOINT"),
        ("gemini:x", "GEMINI_API_KEY"),
        ("xai:x", "XAI_API_KEY"),
    ],
)
def test_a_missing_key_is_told_by_its_variable(name, variable):
    with pytest.raises(UserError, match=variable):
        resolve(name)
