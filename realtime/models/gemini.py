"""Gemini Live.

Owns: `GeminiLive`. Driven by a session. The protocol is `wire/gemini.py`'s.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import Final, Literal, TypedDict, Unpack
from urllib.parse import urlsplit

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.models.base import RealtimeModel, check_name
from realtime.transports.websocket import Transport, connect
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.gemini_decode import GREETING

__all__ = ["GeminiLive", "GeminiSettings"]

_URL: Final = (
    "wss://generativelanguage.googleapis.com/ws/"
    "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
)
_CAPABILITIES: Final = ModelCapabilities(
    input_rate_hz=16_000,
    output_rate_hz=24_000,
    supports_truncation=False,
    supports_item_deletion=False,
    supports_own_item_ids=False,
    reports_item_order=False,
    reports_speech_boundaries=False,
    context_window=128_000,  # ai.google.dev/gemini-api/docs/live-session: 128k tokens of native audio models
    max_session_seconds=600.0,  # … connections last about ten minutes
)


class GeminiSettings(TypedDict, total=False):
    """Settings of Gemini's models. Left out: the provider's default."""

    language: str
    """BCP 47, such as `en-US`; what it speaks."""
    temperature: float
    """How freely it chooses its words."""
    max_output_tokens: int
    """Of one response."""
    turn_coverage: Literal["activity", "all"]
    """Which video a spoken turn includes: that shown while the user spoke, or all since the last turn."""
    compress_context: bool
    """Gemini shortens its context itself when it is full."""


class GeminiLive(RealtimeModel):
    """A model of Google's Gemini Live API: speech, text and pictures in, speech out, tools."""

    def __init__(
        self,
        model: str = "gemini-2.5-flash-native-audio-preview-09-2025",
        *,
        url: str | None = None,
        api_key: str | None = None,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        capabilities: ModelCapabilities | None = None,
        **settings: Unpack[GeminiSettings],
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            model: Its name at Google.
            url: Another server that speaks for Gemini (a proxy, a test); it may go without a key.
            api_key: Default: the environment's ``GEMINI_API_KEY``, else ``GOOGLE_API_KEY``.
            voice: Where the agent names none, such as ``Kore``.
            turn_detection: Where the session does not say.
            capabilities: Instead of what is known of the model.
            **settings: See `GeminiSettings`.

        Raises:
            UserError: There is no key.
            ArgumentError: A setting cannot be.
        """
        check_name("model", model, "a model's name, such as 'gemini-2.5-flash-native-audio-preview-09-2025'")
        key = api_key or os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
        if not key and url is None:
            raise UserError("Gemini needs a key: set GEMINI_API_KEY, or pass api_key=")
        if url is not None and (urlsplit(url).scheme not in ("ws", "wss") or not urlsplit(url).hostname):
            raise ArgumentError("url", url, "a ws:// or wss:// URL")
        self.url = url or _URL
        self.name = f"gemini:{model}"
        self.voice = voice
        self.turn_detection = turn_detection
        writes = "native-audio" not in model
        self.capabilities = capabilities or replace(_CAPABILITIES, model=model, supports_text_output=writes)
        self._headers = {"x-goog-api-key": key} if key else {}
        self._options = GeminiOptions(
            model=model, voice=voice, input_rate_hz=self.capabilities.input_rate_hz, **settings
        )

    def make_wire(self, *, wall: float | None = None) -> GeminiWire:
        """Make the wire format of one connection."""
        return GeminiWire(self._options, prefix=f"g{uuid.uuid4().hex[:10]}")

    async def open(self) -> Transport:
        """Connect.

        Raises:
            ModelError: The server refused for good.
            LinkLost: It could not be reached.
        """
        transport = await connect(
            self.url,
            headers=self._headers,
            timeout_seconds=None,
            max_message_bytes=self.capabilities.max_message_bytes,
        )
        return _GreetingTransport(transport)


class _GreetingTransport:
    """A transport on which the provider seems to speak first, as all others do: Gemini waits to be set up."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._has_greeted = False

    async def send(self, data: str | bytes) -> None:
        """Send one wire message."""
        await self._transport.send(data)

    async def receive(self) -> str | bytes:
        """The greeting first, then what the provider says."""
        if not self._has_greeted:
            self._has_greeted = True
            return GREETING
        return await self._transport.receive()

    async def aclose(self) -> None:
        """Close, within a second."""
        await self._transport.aclose()
