"""Gemini Live.

Owns: `GeminiLive` and what each generation of its models can do, as data. Driven by a session. The protocol is
`wire/gemini.py`'s.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import Any, Final, Literal, TypedDict, Unpack
from urllib.parse import urlsplit

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.models.base import RealtimeModel, check_name, check_settings, check_texts
from realtime.transports.websocket import KeepAlive, PromptTransport, Transport, connect
from realtime.wire.base import Resumption
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.gemini_decode import GREETING

__all__ = ["GeminiLive", "GeminiSettings", "gemini_capabilities"]

_URL: Final = (
    "wss://generativelanguage.googleapis.com/ws/"
    "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
)
_OLDER: Final = ("gemini-2", "gemini-live-2")
"""Models that take content at any time, and a budget for thinking rather than an effort."""
_WRITE: Final = ("gemini-2.0-flash-live", "gemini-live-2.5-flash")
"""Models that can answer in text (ai.google.dev/gemini-api/docs/models); the native audio models only speak."""
_CAPABILITIES: Final = ModelCapabilities(
    input_rate_hz=16_000,
    output_rate_hz=24_000,
    supports_text_output=False,
    supports_semantic_turns=False,
    supports_unanswered_turns=False,
    supports_audio_clearing=False,
    supports_reasoning=True,
    supports_truncation=False,
    supports_item_deletion=False,
    supports_own_item_ids=False,
    supports_resumption=True,  # ai.google.dev/gemini-api/docs/live-session: by a handle, for two hours
    reports_item_order=False,
    reports_speech_boundaries=False,
    context_window=128_000,  # … 128k tokens of native audio models
    max_session_seconds=600.0,  # … connections last about ten minutes
    image_price="gemini-3",
)


class GeminiSettings(TypedDict, total=False):
    """Settings of Gemini's models. Left out: the provider's default."""

    language: str
    """BCP 47, such as `en-US`; what it speaks."""
    transcription_language: str
    """BCP 47; what the user is expected to speak."""
    temperature: float
    """How freely it chooses its words, 0 to 2."""
    max_output_tokens: int
    """Of one response."""
    turn_coverage: Literal["activity", "all", "audio_activity_and_all_video"]
    """Which video a spoken turn includes: that shown while the user spoke, or all since the last turn."""
    media_resolution: Literal["low", "medium", "high"]
    """How closely pictures are looked at, and so what they cost."""
    reasoning_effort: Literal["minimal", "low", "medium", "high"]
    """How long it thinks (Gemini 3 and later)."""
    thinking_budget: int
    """Tokens that it may think for; 0: none (Gemini 2.5)."""
    truncation: Literal["auto", "disabled"] | float
    """What happens when the context is full: it slides (``auto``, the default), a share of it is kept, or the session ends
    (``disabled``: after 15 minutes, 2 with video)."""


def gemini_capabilities(model: str) -> ModelCapabilities:
    """What a model can do; one that is not known here is taken for one of the newest."""
    name = model.rpartition("/")[2]
    if not name.startswith(_OLDER):
        return replace(_CAPABILITIES, model=model)
    writes = name.startswith(_WRITE) and "native-audio" not in name
    return replace(_CAPABILITIES, model=model, supports_text_output=writes, image_price="gemini-tiles")


def _check_thinking(model: str, settings: GeminiSettings, *, is_older: bool) -> None:
    wrong, right = ("reasoning_effort", "thinking_budget") if is_older else ("thinking_budget", "reasoning_effort")
    if wrong in settings:
        raise UserError(f"{model} has no {wrong}: use {right}")


class GeminiLive(RealtimeModel):
    """A model of Google's Gemini Live API: speech, text and pictures in, speech out, tools."""

    def __init__(
        self,
        model: str = "gemini-3.8-live",
        *,
        url: str | None = None,
        api_key: str | None = None,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        capabilities: ModelCapabilities | None = None,
        keep_alive: KeepAlive | None = None,
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
            keep_alive: When a server that says nothing counts as gone.
            **settings: See `GeminiSettings`.

        Raises:
            UserError: There is no key, or no such setting.
            ArgumentError: A setting cannot be.
        """
        check_settings("Gemini", settings, GeminiSettings)
        check_name("model", model, "a model's name, such as 'gemini-3.8-live'")
        check_texts(voice=voice, api_key=api_key)
        is_older = model.rpartition("/")[2].startswith(_OLDER)
        _check_thinking(model, settings, is_older=is_older)
        key = api_key or os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
        if not key and url is None:
            raise UserError("Gemini needs a key: set GEMINI_API_KEY, or pass api_key=")
        if url is not None and (urlsplit(url).scheme not in ("ws", "wss") or not urlsplit(url).hostname):
            raise ArgumentError("url", url, "a ws:// or wss:// URL")
        self.url = url or _URL
        self.name = f"gemini:{model}"
        self.voice = voice
        self.turn_detection = turn_detection
        self.keep_alive = keep_alive
        self.capabilities = capabilities or gemini_capabilities(model)
        self._headers = {"x-goog-api-key": key} if key else {}
        given: dict[str, Any] = {**settings}
        self._options = GeminiOptions(
            model=model,
            voice=voice,
            history_first=not is_older,
            context_window=self.capabilities.context_window,
            input_rate_hz=self.capabilities.input_rate_hz,
            **given,
        )

    def make_wire(self, *, wall: float | None = None) -> GeminiWire:
        """Make the wire format of one connection."""
        return GeminiWire(self._options, prefix=_prefix())

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
            keep_alive=self.keep_alive,
        )
        return _GreetingTransport(transport)

    async def resume(self, resumption: Resumption, *, wall: float | None = None) -> tuple[Transport, GeminiWire]:
        """Connect to an earlier conversation; the setup says which.

        Raises:
            ModelError: The server refused.
            LinkLost: It could not be reached.
        """
        transport = await self.open()
        return transport, GeminiWire(self._options, prefix=_prefix(), resumption=resumption)


def _prefix() -> str:
    """What the ids of one connection begin with."""
    return f"g{uuid.uuid4().hex[:10]}"


class _GreetingTransport:
    """A transport on which the provider seems to speak first, as all others do: Gemini waits to be set up."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._prompt = transport if isinstance(transport, PromptTransport) else None
        self._has_greeted = False

    async def send(self, data: str | bytes) -> None:
        """Send one wire message."""
        await self._transport.send(data)

    @property
    def is_clear(self) -> bool:
        """Whether `send` would not wait."""
        return self._prompt is not None and self._prompt.is_clear

    def send_at_once(self, data: str | bytes) -> None:
        """As `send`, without waiting."""
        assert self._prompt is not None
        self._prompt.send_at_once(data)

    async def receive(self) -> str | bytes:
        """The greeting first, then what the provider says."""
        if not self._has_greeted:
            self._has_greeted = True
            return GREETING
        return await self._transport.receive()

    async def aclose(self) -> None:
        """Close, within a second."""
        await self._transport.aclose()
