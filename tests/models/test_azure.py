"""Azure: address, key or token."""

import pytest

from realtime.errors import ArgumentError, UserError
from realtime.models import AzureRealtime

ENDPOINT = "https://acme.openai.azure.com"
URL = "wss://acme.openai.azure.com/openai/v1/realtime?model=voice"


@pytest.mark.parametrize(
    "endpoint",
    [
        ENDPOINT,
        ENDPOINT + "/",
        "acme.openai.azure.com",
        ENDPOINT + "/openai/v1/",
        "wss://acme.openai.azure.com/openai/v1/realtime",
    ],
)
def test_the_address_is_made_of_any_spelling_of_the_resource(endpoint):
    assert AzureRealtime("voice", endpoint=endpoint, api_key="k").url == URL


def test_the_endpoint_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", ENDPOINT)
    assert AzureRealtime("voice", api_key="k").url == URL


async def test_a_key_goes_as_api_key():
    model = AzureRealtime("voice", endpoint=ENDPOINT, api_key="k")
    assert await model.headers() == {"api-key": "k"}


async def test_a_token_is_fresh_for_each_connection():
    given = iter(["one", "two", "three"])

    async def later():
        return next(given)

    plain = AzureRealtime("voice", endpoint=ENDPOINT, token=lambda: next(given))
    assert await plain.headers() == {"Authorization": "Bearer one"}
    assert await plain.headers() == {"Authorization": "Bearer two"}
    waiting = AzureRealtime("voice", endpoint=ENDPOINT, token=later)
    assert await waiting.headers() == {"Authorization": "Bearer three"}


async def test_what_is_passed_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "env-key")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "env-token")
    assert await AzureRealtime("voice", endpoint=ENDPOINT).headers() == {"Authorization": "Bearer env-token"}
    assert await AzureRealtime("voice", endpoint=ENDPOINT, api_key="k").headers() == {"api-key": "k"}
    assert await AzureRealtime("voice", endpoint=ENDPOINT, token="t").headers() == {"Authorization": "Bearer t"}
    monkeypatch.delenv("AZURE_OPENAI_AD_TOKEN")
    assert await AzureRealtime("voice", endpoint=ENDPOINT).headers() == {"api-key": "env-key"}


def test_what_is_missing_is_told_by_its_variable():
    with pytest.raises(UserError, match="AZURE_OPENAI_ENDPOINT"):
        AzureRealtime("voice", api_key="k")
    with pytest.raises(UserError, match="AZURE_OPENAI_API_KEY"):
        AzureRealtime("voice", endpoint=ENDPOINT)
    with pytest.raises(ArgumentError, match="deployment"):
        AzureRealtime("", endpoint=ENDPOINT, api_key="k")
    with pytest.raises(ArgumentError, match="endpoint"):
        AzureRealtime("voice", endpoint="ftp://acme", api_key="k")


def test_the_deployed_model_tells_what_it_can_do():
    model = AzureRealtime("voice", endpoint=ENDPOINT, api_key="k", model="gpt-realtime-2")
    assert model.capabilities.context_window == 128_000
