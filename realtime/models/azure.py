"""OpenAI's realtime models on Azure, and what all of Azure shares.

Owns: `AzureRealtime`, and `AzureAccess`, a key or a token of Microsoft Entra. Driven by a session. It speaks OpenAI's
protocol at Azure's GA address (``wss://{resource}/openai/v1/realtime?model={deployment}``, learn.microsoft.com, "Use the GPT
Realtime API via WebSockets"). Voice Live is `models/azure_voice_live.py`'s.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Unpack
from urllib.parse import urlsplit

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.models.base import check_name, check_texts
from realtime.models.openai import check_reasoning, openai_capabilities
from realtime.models.websocket import OpenAISettings, WebSocketModel
from realtime.transports.websocket import KeepAlive

__all__ = ["AzureAccess", "AzureRealtime", "TokenSource", "azure_url"]

TokenSource = str | Callable[[], str | Awaitable[str]]
"""A token, or what gives a fresh one for each connection."""


class AzureAccess:
    """How a connection to Azure says who it is: a key, or a token that is fresh each time. Never logged."""

    def __init__(self, api_key: str | None, token: TokenSource | None, *, environment: tuple[str, str]) -> None:
        """Take what was given, else what the environment has; what was given wins, then a token.

        Args:
            api_key: A key.
            token: A token, or what gives one.
            environment: The names of the key and of the token in the environment.
        """
        check_texts(api_key=api_key)
        key = api_key or os.environ.get(environment[0])
        self._token = token if token is not None else os.environ.get(environment[1])
        self._key = key if key and (api_key or not self._token) else None
        if self._key:
            self._token = None

    def __bool__(self) -> bool:
        """Whether there is either."""
        return bool(self._key or self._token)

    async def headers(self) -> dict[str, str]:
        """What the opening request carries."""
        if self._key:
            return {"api-key": self._key}
        if not self._token:
            return {}
        token = self._token() if callable(self._token) else self._token
        if inspect.isawaitable(token):
            token = await token
        return {"Authorization": f"Bearer {token}"}


class AzureRealtime(WebSocketModel):
    """A deployment of a `gpt-realtime` model in an Azure resource."""

    def __init__(
        self,
        deployment: str,
        *,
        endpoint: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        token: TokenSource | None = None,
        model: str = "gpt-realtime",
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        capabilities: ModelCapabilities | None = None,
        keep_alive: KeepAlive | None = None,
        **settings: Unpack[OpenAISettings],
    ) -> None:
        """Describe the deployment. Nothing is connected yet.

        Args:
            deployment: Its name.
            endpoint: The resource, ``https://NAME.openai.azure.com``; default: ``AZURE_OPENAI_ENDPOINT``.
            url: Another server that speaks for Azure (a proxy, a test); it may go without a key.
            api_key: Default: ``AZURE_OPENAI_API_KEY``.
            token: A token of Microsoft Entra instead of a key, or a plain or async function that gives a fresh one for
                each connection; default: ``AZURE_OPENAI_AD_TOKEN``.
            model: Which model is deployed; tells what it can do.
            voice: Where the agent names none.
            turn_detection: Where the session does not say.
            transcription: The deployment of a transcription model, where the session says ``auto``.
            capabilities: Instead of what is known of the model.
            keep_alive: When a server that says nothing counts as gone.
            **settings: See `OpenAISettings`.

        Raises:
            UserError: There is no endpoint, neither key nor token, or the model does not have the setting.
            ArgumentError: A setting cannot be.
        """
        check_name("deployment", deployment, "a deployment's name")
        known = capabilities or openai_capabilities(model)
        check_reasoning(known, settings)
        self._access = AzureAccess(api_key, token, environment=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"))
        if url is None:
            given = endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT")
            if not given:
                raise UserError("Azure needs the resource's address: set AZURE_OPENAI_ENDPOINT, or pass endpoint=")
            url = azure_url(given, "/openai/v1/realtime")
            if not self._access:
                raise UserError("Azure needs a key or a token: set AZURE_OPENAI_API_KEY, or pass api_key= or token=")
        super().__init__(
            url,
            model=deployment,
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=known,
            keep_alive=keep_alive,
            name=f"azure:{deployment}",
            **settings,
        )

    async def headers(self) -> dict[str, str]:
        """The key, or a token that is fresh now."""
        return {**await super().headers(), **await self._access.headers()}


def azure_url(endpoint: str, path: str) -> str:
    """The websocket address of something in a resource.

    Args:
        endpoint: The resource's address, with or without a scheme and what stands behind its host.
        path: Where in it.

    Raises:
        ArgumentError: `endpoint` is no address.
    """
    parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
    scheme = {"https": "wss", "wss": "wss", "http": "ws", "ws": "ws"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ArgumentError("endpoint", endpoint, "an address such as https://NAME.openai.azure.com")
    before = parts.path.rstrip("/")
    for ending in ("/openai/v1/realtime", "/openai/v1", "/openai", "/voice-live/realtime", "/voice-live"):
        before = before.removesuffix(ending)
    return f"{scheme}://{parts.netloc}{before}{path}"
