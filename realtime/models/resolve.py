"""Models by name.

Owns: `resolve`, which turns ``"provider:name"`` into a model. Driven by a session and the command line.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime.errors import ArgumentError, UserError
from realtime.models.azure import AzureRealtime
from realtime.models.azure_voice_live import AzureVoiceLive
from realtime.models.base import RealtimeModel, check_name
from realtime.models.gemini import GeminiLive
from realtime.models.local import LocalRealtime
from realtime.models.openai import OpenAIRealtime
from realtime.models.websocket import WebSocketModel
from realtime.models.xai import XaiRealtime

__all__ = ["resolve"]

_FORMS = (
    "'local', 'openai:MODEL', 'azure:DEPLOYMENT', 'azure-voice-live:MODEL', 'gemini:MODEL', 'xai:MODEL', 'ws://…' or "
    "'wss://…'"
)
_PROVIDERS: dict[str, Callable[[str], RealtimeModel]] = {
    "openai": OpenAIRealtime,
    "azure": AzureRealtime,
    "azure-voice-live": AzureVoiceLive,
    "gemini": GeminiLive,
    "xai": XaiRealtime,
}


def resolve(model: str | RealtimeModel) -> RealtimeModel:
    """The model that a name stands for; a model is returned as it is.

    Args:
        model: ``"local"``, ``"openai:gpt-realtime"``, ``"azure:my-deployment"``, ``"azure-voice-live:…"``, ``"gemini:…"``,
            ``"xai:…"``, a ``ws://`` or ``wss://`` URL of anything that speaks OpenAI's protocol, or a `RealtimeModel`.

    Raises:
        UserError: No such provider (the text lists what there is), or its key is missing (the text names the
            environment variable).
    """
    if isinstance(model, RealtimeModel):
        return model
    check_name("model", model, f"a RealtimeModel, {_FORMS}")
    name = model.strip()
    if name == "local":
        return LocalRealtime()
    if name.lower().startswith(("ws://", "wss://")):
        return WebSocketModel(name)
    provider, colon, rest = name.partition(":")
    make = _PROVIDERS.get(provider.lower())
    if make is not None and rest:
        return make(rest)
    if not colon and name.startswith("gpt-"):
        raise UserError(f"a model's name needs its provider: 'openai:{name}'")
    raise ArgumentError("model", model, _FORMS)
