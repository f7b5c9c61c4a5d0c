"""OpenAI's realtime models on Azure.

Owns: `AzureRealtime`. Driven by a session. It speaks OpenAI's protocol at Azure's GA address
(``wss://{resource}/openai/v1/realtime?model={deployment}``, learn.microsoft.com, "Use the GPT Realtime API via
WebSockets"), with a key or a token of Microsoft Entra.
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
from realtime.models.base import check_name
from realtime.models.openai import openai_capabilities
from realtime.models.websocket import OpenAISettings, WebSocketModel

__all__ = ["AzureRealtime"]

TokenSource = str | Callable[[], str | Awaitable[str]]
"""A token, or what gives a fresh one for each connection."""


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
            **settings: See `OpenAISettings`.

        Raises:
            UserError: There is no endpoint, or neither key nor token.
            ArgumentError: A setting cannot be.
        """
        check_name("deployment", deployment, "a deployment's name")
        key = api_key or os.environ.get("AZURE_OPENAI_API_KEY")
        self._token = token if token is not None else os.environ.get("AZURE_OPENAI_AD_TOKEN")
        if url is None:
            url = _realtime_url(endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT"))
            if not key and not self._token:
                raise UserError("Azure needs a key or a token: set AZURE_OPENAI_API_KEY, or pass api_key= or token=")
        use_key = key and (api_key or not self._token)
        super().__init__(
            url,
            model=deployment,
            headers={"api-key": key} if key and use_key else {},
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=capabilities or openai_capabilities(model),
            name=f"azure:{deployment}",
            **settings,
        )
        if use_key:
            self._token = None

    async def headers(self) -> dict[str, str]:
        """The key, or a token that is fresh now."""
        headers = await super().headers()
        if self._token:
            token = self._token() if callable(self._token) else self._token
            if inspect.isawaitable(token):
                token = await token
            headers["Authorization"] = f"Bearer {token}"
        return headers


def _realtime_url(endpoint: str | None) -> str:
    if not endpoint:
        raise UserError("Azure needs the resource's address: set AZURE_OPENAI_ENDPOINT, or pass endpoint=")
    parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
    scheme = {"https": "wss", "wss": "wss", "http": "ws", "ws": "ws"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ArgumentError("endpoint", endpoint, "an address such as https://NAME.openai.azure.com")
    path = parts.path.rstrip("/")
    for ending in ("/openai/v1/realtime", "/openai/v1", "/openai"):
        path = path.removesuffix(ending)
    return f"{scheme}://{parts.netloc}{path}/openai/v1/realtime"
