"""Models that a session can talk to, one module per provider, each with what it can do as data."""

from __future__ import annotations

from realtime.models.azure import AzureRealtime
from realtime.models.azure_voice_live import AzureVoiceLive
from realtime.models.base import RealtimeModel
from realtime.models.gemini import GeminiLive
from realtime.models.local import LocalRealtime
from realtime.models.openai import OpenAIRealtime
from realtime.models.resolve import resolve
from realtime.models.websocket import WebSocketModel
from realtime.models.xai import XaiRealtime

__all__ = [
    "AzureRealtime",
    "AzureVoiceLive",
    "GeminiLive",
    "LocalRealtime",
    "OpenAIRealtime",
    "RealtimeModel",
    "WebSocketModel",
    "XaiRealtime",
    "resolve",
]
