"""Models by name.

Owns: `resolve`, which turns ``"provider:name"`` into a model. Driven by a session and the command line.
"""

from __future__ import annotations

from realtime.errors import ArgumentError, UserError
from realtime.models.azure import AzureRealtime
from realtime.models.base import RealtimeModel, check_name
from realtime.models.local import LocalRealtime
from realtime.models.openai import OpenAIRealtime
from realtime.models.websocket import WebSocketModel

__all__ = ["resolve"]

_FORMS = "'local', 'openai:MODEL', 'azure:DEPLOYMENT', 'ws://…' or 'wss://…'"
_NOT_YET = {"gemini": "Gemini Live", "google": "Gemini Live", "xai": "xAI"}


def resolve(model: str | RealtimeModel) -> RealtimeModel:
    """The model that a name stands for; a model is returned as it is.

    Args:
        model: ``"local"``, ``"openai:gpt-realtime"``, ``"azure:my-deployment"``, a ``ws://`` or ``wss://`` URL, or a
            `RealtimeModel`.

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
    provider = provider.lower()
    if provider == "openai" and rest:
        return OpenAIRealtime(rest)
    if provider == "azure" and rest:
        return AzureRealtime(rest)
    if provider in _NOT_YET:
        raise UserError(f"this version has no provider for {_NOT_YET[provider]} ({model!r}); it knows {_FORMS}")
    if not colon and name.startswith("gpt-"):
        raise UserError(f"a model's name needs its provider: 'openai:{name}'")
    raise ArgumentError("model", model, _FORMS)
