"""Any server that speaks OpenAI's Realtime protocol.

Owns: `WebSocketModel` and the settings that all models of this protocol share. Driven by a session. `OpenAIRealtime`,
`AzureRealtime` and `LocalRealtime` build on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypedDict, Unpack
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError
from realtime.models.base import RealtimeModel, check_name, check_settings, check_texts
from realtime.transports.websocket import KeepAlive, Transport, connect
from realtime.wire.openai import OpenAIOptions, OpenAIWire
from realtime.wire.openai_mapped import MappedWire

__all__ = ["OpenAISettings", "WebSocketModel", "with_query"]


class OpenAISettings(TypedDict, total=False):
    """Settings of models that speak OpenAI's protocol. Left out: the provider's default."""

    transcription_language: str
    """ISO 639-1, such as `en`."""
    transcription_prompt: str
    """Words for the transcription to expect."""
    noise_reduction: Literal["near_field", "far_field"]
    """What is taken out of the input audio."""
    speed: float
    """Of the model's speech, 0.25 to 1.5."""
    idle_timeout_ms: int
    """The model speaks up when nobody has for so long (server turn detection only)."""
    tool_choice: Literal["auto", "none", "required"]
    """Whether tools may or must be called."""
    parallel_tool_calls: bool
    """Whether several tools may be called at once (reasoning models only)."""
    max_output_tokens: int
    """Of one response."""
    truncation: Literal["auto", "disabled"] | float
    """What the provider does when its context is full; a number is the share of the context that it keeps."""
    reasoning_effort: Literal["minimal", "low", "medium", "high", "xhigh"]
    """How long the model thinks (reasoning models only)."""


def with_query(url: str, **values: str) -> str:
    """A URL with more in its query; what the URL says already stays."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return urlunsplit(parts._replace(query=urlencode({**values, **query})))


class WebSocketModel(RealtimeModel):
    """A model behind a websocket that speaks OpenAI's Realtime protocol, by its address.

    ::

        WebSocketModel("ws://127.0.0.1:8765/v1/realtime")
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        capabilities: ModelCapabilities | None = None,
        keep_alive: KeepAlive | None = None,
        name: str | None = None,
        **settings: Unpack[OpenAISettings],
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            url: ``ws://…`` or ``wss://…``.
            model: Put in the URL's query as ``model``, unless the URL has one.
            api_key: Sent as a bearer token, if given.
            headers: Sent with the opening request besides. Never logged.
            voice: Where the agent names none.
            turn_detection: Where the session does not say.
            transcription: The transcription model, where the session says ``auto``.
            capabilities: What it can do; default: all that the protocol has.
            keep_alive: When a server that says nothing counts as gone.
            name: What messages call it; default: the host of the URL.
            **settings: See `OpenAISettings`.

        Raises:
            ArgumentError: A setting cannot be.
            UserError: There is no such setting.
        """
        check_settings("OpenAI's protocol", settings, OpenAISettings)
        check_name("url", url, "a ws:// or wss:// URL")
        if urlsplit(url).scheme not in ("ws", "wss") or not urlsplit(url).hostname:
            raise ArgumentError("url", url, "a ws:// or wss:// URL")
        check_texts(voice=voice, api_key=api_key, transcription=transcription)
        options = OpenAIOptions(voice=voice, **settings)
        if transcription is not None:
            options = replace(options, transcription_model=transcription)
        self.url = with_query(url, model=model) if model else url
        self.voice = voice
        self.turn_detection = turn_detection
        self.transcription = transcription
        self.capabilities = capabilities or ModelCapabilities(model=model, supports_seeding_audio=True)
        self.name = name or urlsplit(url).netloc.rpartition("@")[2]
        self.keep_alive = keep_alive
        self._headers = dict(headers or {})
        if api_key:
            self._headers.setdefault("Authorization", f"Bearer {api_key}")
        self._options = replace(
            options,
            input_rate_hz=self.capabilities.input_rate_hz,
            output_rate_hz=self.capabilities.output_rate_hz,
        )

    def make_wire(self, *, wall: float | None = None) -> OpenAIWire:
        """Make the wire format of one connection."""
        if not self.capabilities.supports_own_item_ids:
            return MappedWire(self._options, wall=wall)
        return OpenAIWire(self._options, wall=wall)

    async def headers(self) -> dict[str, str]:
        """What the opening request carries. A model whose tokens expire makes them here."""
        return dict(self._headers)

    async def open(self) -> Transport:
        """Connect.

        Raises:
            ModelError: The server refused for good.
            LinkLost: It could not be reached.
        """
        return await self.connect(self.url)

    async def connect(self, url: str) -> Transport:
        """Connect to an address with this model's headers and limits.

        Raises:
            ModelError: The server refused for good.
            LinkLost: It could not be reached.
        """
        return await connect(
            url,
            headers=await self.headers(),
            timeout_seconds=None,
            max_message_bytes=self.capabilities.max_message_bytes,
            keep_alive=self.keep_alive,
        )
