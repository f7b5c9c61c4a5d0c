"""Models that a session can talk to, one module per provider, each with what it can do as data."""

from __future__ import annotations

from realtime.models.azure import AzureRealtime
from realtime.models.base import RealtimeModel
from realtime.models.local import LocalRealtime
from realtime.models.openai import OpenAIRealtime
from realtime.models.resolve import resolve
from realtime.models.websocket import WebSocketModel

__all__ = [
    "AzureRealtime",
    "LocalRealtime",
    "OpenAIRealtime",
    "RealtimeModel",
    "WebSocketModel",
    "resolve",
]
