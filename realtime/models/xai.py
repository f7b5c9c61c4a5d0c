"""xAI's voice models.

Owns: `XaiRealtime`. Driven by a session. The protocol is `wire/xai.py`'s.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypedDict, Unpack

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import UserError
from realtime.models.base import check_name, check_settings
from realtime.models.websocket import WebSocketModel, with_query
from realtime.transports.websocket import KeepAlive, Transport
from realtime.wire.base import Resumption
from realtime.wire.xai import XaiOptions, XaiWire

__all__ = ["XaiRealtime", "XaiSettings"]

_URL: Final = "wss://api.x.ai/v1/realtime"
_CAPABILITIES: Final = ModelCapabilities(
    supports_image_input=False,
    supports_text_output=False,
    supports_semantic_turns=False,
    supports_reasoning=True,
    supports_truncation=False,
    supports_own_item_ids=False,
    supports_seeding_images=False,
    supports_resumption=True,  # docs.x.ai: turns are kept for 30 minutes, and replayed to whoever comes with their id
    max_session_seconds=3600.0,
    reports_total_usage=False,
    takes_commits_during_response=False,
)


class XaiSettings(TypedDict, total=False):
    """Settings of xAI's models. Left out: the provider's default."""

    transcription_language: str
    """BCP 47, such as `en` or `es-MX`: what the user is expected to speak."""
    key_terms: Sequence[str]
    """Names and words that the transcription should know; at most 100 of 50 characters."""
    speed: float
    """Of the model's speech, 0.7 to 1.5."""
    idle_timeout_ms: int
    """The model speaks up when nobody has for so long (server turn detection only)."""
    tool_choice: Literal["auto", "none", "required"]
    """Whether tools may or must be called."""
    reasoning_effort: Literal["none", "high"]
    """Whether it thinks before it answers."""
    resumption: bool
    """xAI keeps the conversation for half an hour, so that a dropped connection takes it up again; default: True."""


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
        keep_alive: KeepAlive | None = None,
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
            keep_alive: When a server that says nothing counts as gone.
            **settings: See `XaiSettings`.

        Raises:
            UserError: There is no key, or no such setting.
            ArgumentError: A setting cannot be.
        """
        check_settings("xAI", settings, XaiSettings)
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
            capabilities=capabilities
            or replace(_CAPABILITIES, model=model, supports_resumption=settings.get("resumption", True)),
            keep_alive=keep_alive,
            name=f"xai:{model}",
        )
        given: dict[str, Any] = {**settings}
        if transcription is not None:
            given["transcription_model"] = transcription
        self._xai_options = XaiOptions(
            voice=voice,
            input_rate_hz=self.capabilities.input_rate_hz,
            output_rate_hz=self.capabilities.output_rate_hz,
            **given,
        )

    def make_wire(self, *, wall: float | None = None) -> XaiWire:
        """Make the wire format of one connection."""
        return XaiWire(self._xai_options)

    async def resume(self, resumption: Resumption, *, wall: float | None = None) -> tuple[Transport, XaiWire]:
        """Connect to an earlier conversation, if xAI still has it.

        Raises:
            ModelError: The server refused.
            LinkLost: It could not be reached.
        """
        transport = await self.connect(with_query(self.url, conversation_id=resumption.handle))
        return transport, XaiWire(self._xai_options, resumption=resumption)
