"""OpenAI's realtime models.

Owns: `OpenAIRealtime` and what each model of the `gpt-realtime` family can do, as data. Driven by a session. The models of
GPT-Live speak another protocol (``/v1/live/sessions``); they are refused. Calls of a browser's own are `models/openai_call.py`'s.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Final, Unpack

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.models.base import check_name
from realtime.models.openai_call import BrowserCall, relay_offer
from realtime.models.websocket import OpenAISettings, WebSocketModel
from realtime.transports.websocket import KeepAlive

__all__ = ["OpenAIRealtime", "check_reasoning", "openai_capabilities"]

_URL: Final = "wss://api.openai.com/v1/realtime"
_SNAPSHOT: Final = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_REASONING: Final = ("reasoning_effort", "parallel_tool_calls")

_FAMILY: Final = ModelCapabilities(
    context_window=32_000,
    max_session_seconds=3600.0,  # platform.openai.com/docs/guides/realtime-conversations: sessions last up to 60 minutes
    supports_seeding_audio=True,
)
_REASONS: Final = replace(_FAMILY, context_window=128_000, supports_reasoning=True)
_MODELS: Final[dict[str, ModelCapabilities]] = {  # developers.openai.com/api/docs/models/…
    "gpt-realtime": _FAMILY,
    "gpt-realtime-mini": _FAMILY,
    "gpt-realtime-1.5": _FAMILY,
    "gpt-realtime-2": _REASONS,
    "gpt-realtime-2.1": _REASONS,
    "gpt-realtime-2.1-mini": _REASONS,
    "gpt-4o-realtime-preview": replace(_FAMILY, supports_image_input=False, supports_seeding_images=False),
    "gpt-4o-mini-realtime-preview": replace(_FAMILY, supports_image_input=False, supports_seeding_images=False),
}


def openai_capabilities(model: str) -> ModelCapabilities:
    """What a model can do. A dated snapshot is its family's; of a name not known here no context window is known."""
    family = _SNAPSHOT.sub("", model)
    known = _MODELS.get(family) or replace(_REASONS, context_window=None)
    return replace(known, model=model)


def check_reasoning(capabilities: ModelCapabilities, settings: OpenAISettings) -> None:
    """Raise `UserError` if a model that does not reason is told how."""
    for name in _REASONING:
        if name in settings and not capabilities.supports_reasoning:
            raise UserError(f"{capabilities.model} does not reason (supports_reasoning): leave {name} out")


class OpenAIRealtime(WebSocketModel):
    """A model of OpenAI's `gpt-realtime` family."""

    def __init__(
        self,
        model: str = "gpt-realtime",
        *,
        url: str | None = None,
        api_key: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        capabilities: ModelCapabilities | None = None,
        keep_alive: KeepAlive | None = None,
        **settings: Unpack[OpenAISettings],
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            model: Its name at OpenAI.
            url: Another server that speaks for OpenAI (a proxy, a test); it may go without a key.
            api_key: Default: the environment's ``OPENAI_API_KEY``.
            organization: Default: ``OPENAI_ORG_ID``.
            project: Default: ``OPENAI_PROJECT_ID``.
            voice: Where the agent names none, such as ``marin``.
            turn_detection: Where the session does not say.
            transcription: The transcription model, where the session says ``auto``.
            capabilities: Instead of what is known of the model.
            keep_alive: When a server that says nothing counts as gone.
            **settings: See `OpenAISettings`.

        Raises:
            UserError: There is no key, or the model does not have the setting.
            ArgumentError: A setting cannot be.
        """
        check_name("model", model, "a model's name, such as 'gpt-realtime'")
        if model.lower().startswith("gpt-live"):
            raise ArgumentError("model", model, "one of the gpt-realtime family: GPT-Live speaks another protocol")
        known = capabilities or openai_capabilities(model)
        check_reasoning(known, settings)
        key = api_key or os.environ.get("OPENAI_API_KEY")
        if not key and url is None:
            raise UserError("OpenAI needs a key: set OPENAI_API_KEY, or pass api_key=")
        headers = {
            "OpenAI-Organization": organization or os.environ.get("OPENAI_ORG_ID"),
            "OpenAI-Project": project or os.environ.get("OPENAI_PROJECT_ID"),
        }
        super().__init__(
            url or _URL,
            model=model,
            api_key=key,
            headers={name: value for name, value in headers.items() if value},
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=known,
            keep_alive=keep_alive,
            name=f"openai:{model}",
            **settings,
        )

    async def relay_offer(self, offer: str) -> BrowserCall:
        """Hand a browser's WebRTC offer to OpenAI: the browser then talks to the model directly, and a session stands beside.

        Args:
            offer: The session description (SDP) that the browser made.

        Returns:
            The answer for the browser, and the model that a `RealtimeSession` attaches with. It sees words, tools and
            events, and no sound, so audio cannot be retained.

        Raises:
            ArgumentError: The offer is none.
            MissingExtraError: The HTTP client (extra ``chat``) is not installed.
            ModelError: OpenAI refused.
            LinkLost: It could not be reached.
        """
        return await relay_offer(
            offer,
            url=self.url,
            model=self.name.removeprefix("openai:"),
            capabilities=self.capabilities,
            options=self._options,
            headers=self.headers,
            keep_alive=self.keep_alive,
        )
