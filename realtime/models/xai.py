"""xAI's voice models.

Owns: `XaiRealtime`. Driven by a session. The protocol is `wire/xai.py`'s.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final, Literal, TypedDict, Unpack

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import UserError
from realtime.models.base import check_name
from realtime.models.websocket import WebSocketModel
from realtime.wire.openai import OpenAIOptions
from realtime.wire.xai import XaiWire

__all__ = ["XaiRealtime", "XaiSettings"]

_URL: Final = "wss://api.x.ai/v1/realtime"
_CAPABILITIES: Final = ModelCapabilities(
    supports_image_input=False,
    supports_text_output=False,
    supports_truncation=False,
    supports_own_item_ids=False,
    supports_seeding_images=False,
    max_session_seconds=3600.0,
    reports_total_usage=False,
)


class XaiSettings(TypedDict, total=False):
    """Settings of xAI's models. Left out: the provider's default."""

    transcription_language: str
    """ISO 639-1, such as `en`."""
    tool_choice: Literal["auto", "none", "required"]
    """Whether tools may or must be called."""


class XaiRealtime(WebSocketModel):
    """A voice model of xAI's: speech and text in, speech out, tools; no pictures."""

    def __init__(
        self,
        model: str = "grok-voice-latest",
        *,
        url: str | None = None,
        api_key: str | None = None,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        capabilities: ModelCapabilities | None = None,
        **settings: Unpack[XaiSettings],
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            model: Its name at xAI.
            url: Another server that speaks for xAI (a proxy, a test); it may go without a key.
            api_key: Default: the environment's ``XAI_API_KEY``.
            voice: Where the agent names none, such as ``ara``.
            turn_detection: Where the session does not say.
            transcription: The transcription model, where the session says ``auto``.
            capabilities: Instead of what is known of the model.
            **settings: See `XaiSettings`.

        Raises:
            UserError: There is no key.
            ArgumentError: A setting cannot be.
        """
        check_name("model", model, "a model's name, such as 'grok-voice-latest'")
        key = api_key or os.environ.get("XAI_API_KEY")
        if not key and url is None:
            raise UserError("xAI needs a key: set XAI_API_KEY, or pass api_key=")
        super().__init__(
            url or _URL,
            model=model,
            api_key=key,
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=capabilities or replace(_CAPABILITIES, model=model),
            name=f"xai:{model}",
        )
        self._xai_options = OpenAIOptions(
            voice=voice, transcription_model=transcription or "grok-transcribe", **settings
        )

    def make_wire(self, *, wall: float | None = None) -> XaiWire:
        """Make the wire format of one connection."""
        return XaiWire(self._xai_options)
