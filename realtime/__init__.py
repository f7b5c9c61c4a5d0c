"""An asyncio session runtime for voice and vision agents: tracks in, a live context, a spoken reply out.

Every public name is importable from here, and is loaded when it is first asked for (PEP 562): `import realtime` by itself
loads nothing else of the package, and neither aiortc nor av. The rooms are also importable by themselves:
`realtime.chat`, `realtime.media`, `realtime.events`, `realtime.errors`, `realtime.testing`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from realtime.chat.context import (
        ChatContext,
    )
    from realtime.chat.conversation import (
        Conversation,
    )
    from realtime.chat.messages import (
        AgentHandoff,
        AudioContent,
        ChatContent,
        ChatMessage,
        ChatRole,
        FunctionCall,
        FunctionCallOutput,
        ImageContent,
    )
    from realtime.chat.window import (
        ContextWindow,
        Summarizer,
    )
    from realtime.core.capabilities import (
        ModelCapabilities,
    )
    from realtime.core.events import (
        ApprovalRequested,
        AudioReceived,
        ConnectionDropped,
        ContextSummarized,
        ErrorReported,
        FrameKept,
        FrameSkipped,
        HandedOff,
        InputRejected,
        KeepReason,
        MessageChanged,
        MessageCommitted,
        MessagesRemoved,
        Reconnected,
        RemovalReason,
        ReplyInterrupted,
        ReplyStarted,
        SessionEnded,
        SessionEvent,
        SkipReason,
        SpeechStarted,
        SpeechStopped,
        ToolCalled,
        ToolFinished,
        TrackEnded,
        TranscriptionFailed,
        TranscriptUpdated,
        TurnCompleted,
        TurnLatency,
    )
    from realtime.core.model_events import (
        TokenUsage,
    )
    from realtime.core.settings import (
        Agent,
        AudioRetention,
        FrameSampling,
        ReconnectPolicy,
        TurnDetection,
        UsageLimits,
    )
    from realtime.errors import (
        ArgumentError,
        BusyError,
        EndOfTrack,
        IllegalTransition,
        ImageError,
        LinkLost,
        MissingExtraError,
        ModelError,
        RealtimeError,
        SessionClosed,
        UsageLimitExceeded,
        UserError,
        WouldBlock,
    )
    from realtime.media.image import (
        coerce_image_to_jpeg_bytes,
        encode,
    )
    from realtime.media.options import (
        DEFAULT_REALTIME_ENCODE_OPTIONS,
        EncodeOptions,
        ResizeOptions,
    )
    from realtime.models.azure import (
        AzureRealtime,
    )
    from realtime.models.base import (
        RealtimeModel,
    )
    from realtime.models.gemini import (
        GeminiLive,
    )
    from realtime.models.local import (
        LocalRealtime,
    )
    from realtime.models.openai import (
        OpenAIRealtime,
    )
    from realtime.models.websocket import (
        WebSocketModel,
    )
    from realtime.models.xai import (
        XaiRealtime,
    )
    from realtime.pipelines.clock import (
        Clock,
        SystemClock,
    )
    from realtime.pipelines.look import (
        look_tool,
    )
    from realtime.pipelines.statistics import (
        MemoryLedger,
        SessionStatistics,
        TrackStatistics,
    )
    from realtime.pipelines.tool import (
        Tool,
    )
    from realtime.session import (
        RealtimeSession,
        ToolContext,
    )

_HOMES = {
    "Agent": "realtime.core.settings",
    "AgentHandoff": "realtime.chat.messages",
    "ApprovalRequested": "realtime.core.events",
    "ArgumentError": "realtime.errors",
    "AudioContent": "realtime.chat.messages",
    "AudioReceived": "realtime.core.events",
    "AudioRetention": "realtime.core.settings",
    "AzureRealtime": "realtime.models.azure",
    "BusyError": "realtime.errors",
    "ChatContent": "realtime.chat.messages",
    "ChatContext": "realtime.chat.context",
    "ChatMessage": "realtime.chat.messages",
    "ChatRole": "realtime.chat.messages",
    "Clock": "realtime.pipelines.clock",
    "ConnectionDropped": "realtime.core.events",
    "ContextSummarized": "realtime.core.events",
    "ContextWindow": "realtime.chat.window",
    "Conversation": "realtime.chat.conversation",
    "DEFAULT_REALTIME_ENCODE_OPTIONS": "realtime.media.options",
    "EncodeOptions": "realtime.media.options",
    "EndOfTrack": "realtime.errors",
    "ErrorReported": "realtime.core.events",
    "FrameKept": "realtime.core.events",
    "FrameSampling": "realtime.core.settings",
    "FrameSkipped": "realtime.core.events",
    "FunctionCall": "realtime.chat.messages",
    "FunctionCallOutput": "realtime.chat.messages",
    "GeminiLive": "realtime.models.gemini",
    "HandedOff": "realtime.core.events",
    "IllegalTransition": "realtime.errors",
    "ImageContent": "realtime.chat.messages",
    "ImageError": "realtime.errors",
    "InputRejected": "realtime.core.events",
    "KeepReason": "realtime.core.events",
    "LinkLost": "realtime.errors",
    "LocalRealtime": "realtime.models.local",
    "MemoryLedger": "realtime.pipelines.statistics",
    "MessageChanged": "realtime.core.events",
    "MessageCommitted": "realtime.core.events",
    "MessagesRemoved": "realtime.core.events",
    "MissingExtraError": "realtime.errors",
    "ModelCapabilities": "realtime.core.capabilities",
    "ModelError": "realtime.errors",
    "OpenAIRealtime": "realtime.models.openai",
    "RealtimeError": "realtime.errors",
    "RealtimeModel": "realtime.models.base",
    "RealtimeSession": "realtime.session",
    "ReconnectPolicy": "realtime.core.settings",
    "Reconnected": "realtime.core.events",
    "RemovalReason": "realtime.core.events",
    "ReplyInterrupted": "realtime.core.events",
    "ReplyStarted": "realtime.core.events",
    "ResizeOptions": "realtime.media.options",
    "SessionClosed": "realtime.errors",
    "SessionEnded": "realtime.core.events",
    "SessionEvent": "realtime.core.events",
    "SessionStatistics": "realtime.pipelines.statistics",
    "SkipReason": "realtime.core.events",
    "SpeechStarted": "realtime.core.events",
    "SpeechStopped": "realtime.core.events",
    "Summarizer": "realtime.chat.window",
    "SystemClock": "realtime.pipelines.clock",
    "TokenUsage": "realtime.core.model_events",
    "Tool": "realtime.pipelines.tool",
    "ToolCalled": "realtime.core.events",
    "ToolContext": "realtime.session",
    "ToolFinished": "realtime.core.events",
    "TrackEnded": "realtime.core.events",
    "TrackStatistics": "realtime.pipelines.statistics",
    "TranscriptUpdated": "realtime.core.events",
    "TranscriptionFailed": "realtime.core.events",
    "TurnCompleted": "realtime.core.events",
    "TurnDetection": "realtime.core.settings",
    "TurnLatency": "realtime.core.events",
    "UsageLimitExceeded": "realtime.errors",
    "UsageLimits": "realtime.core.settings",
    "UserError": "realtime.errors",
    "WebSocketModel": "realtime.models.websocket",
    "WouldBlock": "realtime.errors",
    "XaiRealtime": "realtime.models.xai",
    "coerce_image_to_jpeg_bytes": "realtime.media.image",
    "encode": "realtime.media.image",
    "look_tool": "realtime.pipelines.look",
}

__all__ = [
    "DEFAULT_REALTIME_ENCODE_OPTIONS",
    "Agent",
    "AgentHandoff",
    "ApprovalRequested",
    "ArgumentError",
    "AudioContent",
    "AudioReceived",
    "AudioRetention",
    "AzureRealtime",
    "BusyError",
    "ChatContent",
    "ChatContext",
    "ChatMessage",
    "ChatRole",
    "Clock",
    "ConnectionDropped",
    "ContextSummarized",
    "ContextWindow",
    "Conversation",
    "EncodeOptions",
    "EndOfTrack",
    "ErrorReported",
    "FrameKept",
    "FrameSampling",
    "FrameSkipped",
    "FunctionCall",
    "FunctionCallOutput",
    "GeminiLive",
    "HandedOff",
    "IllegalTransition",
    "ImageContent",
    "ImageError",
    "InputRejected",
    "KeepReason",
    "LinkLost",
    "LocalRealtime",
    "MemoryLedger",
    "MessageChanged",
    "MessageCommitted",
    "MessagesRemoved",
    "MissingExtraError",
    "ModelCapabilities",
    "ModelError",
    "OpenAIRealtime",
    "RealtimeError",
    "RealtimeModel",
    "RealtimeSession",
    "ReconnectPolicy",
    "Reconnected",
    "RemovalReason",
    "ReplyInterrupted",
    "ReplyStarted",
    "ResizeOptions",
    "SessionClosed",
    "SessionEnded",
    "SessionEvent",
    "SessionStatistics",
    "SkipReason",
    "SpeechStarted",
    "SpeechStopped",
    "Summarizer",
    "SystemClock",
    "TokenUsage",
    "Tool",
    "ToolCalled",
    "ToolContext",
    "ToolFinished",
    "TrackEnded",
    "TrackStatistics",
    "TranscriptUpdated",
    "TranscriptionFailed",
    "TurnCompleted",
    "TurnDetection",
    "TurnLatency",
    "UsageLimitExceeded",
    "UsageLimits",
    "UserError",
    "WebSocketModel",
    "WouldBlock",
    "XaiRealtime",
    "coerce_image_to_jpeg_bytes",
    "encode",
    "look_tool",
]


def __getattr__(name: str) -> Any:
    """Load the module that `name` lives in, and remember the name."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return sorted({*globals(), *__all__})
