"""Azure's Voice Live: any of its chat and realtime models behind one websocket, with Azure's ears and voices.

Owns: `AzureVoiceLive`. Driven by a session. The protocol is `wire/voice_live.py`'s; its address is
``wss://{resource}/voice-live/realtime?api-version=…&model=…`` (learn.microsoft.com, "How to use the Voice Live API").
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypedDict, Unpack

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import UserError
from realtime.models.azure import AzureAccess, TokenSource, azure_url
from realtime.models.base import check_name, check_settings
from realtime.models.websocket import WebSocketModel, with_query
from realtime.transports.websocket import KeepAlive
from realtime.wire.voice_live import VoiceLiveOptions, VoiceLiveWire

__all__ = ["AzureVoiceLive", "VoiceLiveSettings"]

_API_VERSION: Final = "2026-04-10"
_CAPABILITIES: Final = ModelCapabilities(supports_reasoning=True)
_OPENAI_EARS: Final = ("gpt-realtime", "gpt-4o-realtime", "gpt-4o-mini-realtime")
"""Models that hear by themselves; their speech is transcribed by a model of OpenAI's, that of all others by Azure."""


class VoiceLiveSettings(TypedDict, total=False):
    """Settings of Voice Live. Left out: the provider's default."""

    transcription_language: str
    """BCP 47, such as `en-US`, or several with commas between."""
    phrases: Sequence[str]
    """Names and words that Azure's transcription should know."""
    noise_reduction: Literal["azure_deep_noise_suppression", "near_field", "far_field"]
    """What is taken out of the input audio."""
    echo_cancellation: bool
    """The service takes the model's own voice out of the input audio."""
    remove_filler_words: bool
    """“Um” and “uh” do not interrupt (`TurnDetection(mode="semantic")`)."""
    multilingual: bool
    """Meaning is told in ten languages rather than in English (`TurnDetection(mode="semantic")`)."""
    speed: float
    """Of Azure's voices, 0.5 to 1.5."""
    voice_type: Literal["openai", "azure-standard", "azure-realtime-native"]
    """Whose voice `voice` is; default: told by its name."""
    voice_temperature: float
    """How lively an HD voice of Azure's is, 0 to 1."""
    tool_choice: Literal["auto", "none", "required"]
    """Whether tools may or must be called."""
    parallel_tool_calls: bool
    """Whether several tools may be called at once."""
    max_output_tokens: int
    """Of one response."""
    temperature: float
    """How freely the model chooses its words, 0 to 2."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"]
    """How long the model thinks (reasoning models only)."""


class AzureVoiceLive(WebSocketModel):
    """A model behind Azure's Voice Live: speech, text and pictures in, speech out, tools."""

    def __init__(
        self,
        model: str = "gpt-realtime",
        *,
        endpoint: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        token: TokenSource | None = None,
        api_version: str = _API_VERSION,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        capabilities: ModelCapabilities | None = None,
        keep_alive: KeepAlive | None = None,
        **settings: Unpack[VoiceLiveSettings],
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            model: Its name, such as ``gpt-realtime``, ``gpt-4.1`` or ``azure-realtime``; nothing need be deployed.
            endpoint: The resource, ``https://NAME.services.ai.azure.com``; default: ``AZURE_VOICELIVE_ENDPOINT``.
            url: Another server that speaks for Azure (a test, a proxy); it may go without a key.
            api_key: Default: ``AZURE_VOICELIVE_API_KEY``.
            token: A token of Microsoft Entra instead of a key, or a plain or async function that gives a fresh one for
                each connection.
            api_version: Of the protocol.
            voice: Where the agent names none: one of Azure's, such as ``en-US-Ava:DragonHDLatestNeural``, or of OpenAI's.
            turn_detection: Where the session does not say; ``semantic`` is Azure's, and works with every model.
            transcription: The transcription model, where the session says ``auto``; default: ``whisper-1`` for the models
                that hear by themselves, ``azure-speech`` for all others.
            capabilities: Instead of what is known of the model.
            keep_alive: When a server that says nothing counts as gone.
            **settings: See `VoiceLiveSettings`.

        Raises:
            UserError: There is no endpoint, neither key nor token, or no such setting.
            ArgumentError: A setting cannot be.
        """
        check_settings("Voice Live", settings, VoiceLiveSettings)
        check_name("model", model, "a model's name, such as 'gpt-realtime'")
        check_name("api_version", api_version, f"a version, such as {_API_VERSION!r}")
        self._access = AzureAccess(api_key, token, environment=("AZURE_VOICELIVE_API_KEY", "AZURE_VOICELIVE_TOKEN"))
        if url is None:
            given = endpoint or os.environ.get("AZURE_VOICELIVE_ENDPOINT")
            if not given:
                raise UserError(
                    "Voice Live needs the resource's address: set AZURE_VOICELIVE_ENDPOINT, or pass endpoint="
                )
            url = azure_url(given, "/voice-live/realtime")
            if not self._access:
                raise UserError(
                    "Voice Live needs a key or a token: set AZURE_VOICELIVE_API_KEY, or pass api_key= or token="
                )
        super().__init__(
            with_query(url, **{"api-version": api_version}),
            model=model,
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=capabilities or replace(_CAPABILITIES, model=model),
            keep_alive=keep_alive,
            name=f"azure-voice-live:{model}",
        )
        ears = "whisper-1" if model.startswith(_OPENAI_EARS) else "azure-speech"
        options: dict[str, Any] = {**settings}
        self._live_options = VoiceLiveOptions(
            voice=voice,
            transcription_model=transcription or ears,
            input_rate_hz=self.capabilities.input_rate_hz,
            **options,
        )

    def make_wire(self, *, wall: float | None = None) -> VoiceLiveWire:
        """Make the wire format of one connection."""
        return VoiceLiveWire(self._live_options, wall=wall)

    async def headers(self) -> dict[str, str]:
        """The key, or a token that is fresh now."""
        return {**await super().headers(), **await self._access.headers()}
