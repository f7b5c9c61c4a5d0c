"""OpenAI's realtime models.

Owns: `OpenAIRealtime` and what each model of the `gpt-realtime` family can do, as data. Driven by a session. GPT-Live,
which speaks another protocol, is none of them.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Final, Unpack

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import UserError
from realtime.models.base import check_name
from realtime.models.websocket import OpenAISettings, WebSocketModel

__all__ = ["OpenAIRealtime", "openai_capabilities"]

_URL: Final = "wss://api.openai.com/v1/realtime"
_SNAPSHOT: Final = re.compile(r"-\d{4}-\d{2}-\d{2}$")

_FAMILY: Final = ModelCapabilities(
    context_window=32_000,
    max_session_seconds=3600.0,  # platform.openai.com/docs/guides/realtime-conversations: sessions last up to 60 minutes
    supports_seeding_audio=True,
)
_MODELS: Final[dict[str, ModelCapabilities]] = {  # developers.openai.com/api/docs/models/…
    "gpt-realtime": _FAMILY,
    "gpt-realtime-mini": _FAMILY,
    "gpt-realtime-1.5": _FAMILY,
    "gpt-realtime-2": replace(_FAMILY, context_window=128_000),
    "gpt-realtime-2.1": replace(_FAMILY, context_window=128_000),
    "gpt-realtime-2.1-mini": replace(_FAMILY, context_window=128_000),
    "gpt-4o-realtime-preview": replace(_FAMILY, supports_image_input=False, supports_seeding_images=False),
    "gpt-4o-mini-realtime-preview": replace(_FAMILY, supports_image_input=False, supports_seeding_images=False),
}


def openai_capabilities(model: str) -> ModelCapabilities:
    """What a model can do. A dated snapshot is its family's; of a name not known here no context window is known."""
    family = _SNAPSHOT.sub("", model)
    known = _MODELS.get(family) or replace(_FAMILY, context_window=None)
    return replace(known, model=model)


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
            **settings: See `OpenAISettings`.

        Raises:
            UserError: There is no key.
            ArgumentError: A setting cannot be.
        """
        check_name("model", model, "a model's name, such as 'gpt-realtime'")
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
            capabilities=capabilities or openai_capabilities(model),
            name=f"openai:{model}",
            **settings,
        )
