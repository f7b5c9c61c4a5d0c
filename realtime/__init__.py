"""An asyncio session runtime for voice and vision agents: tracks in, a live context, a spoken reply out.

Every public name is importable from here, and is loaded when it is first asked for (PEP 562): `import realtime` by itself
loads nothing else of the package, and neither aiortc nor av. The rooms are also importable by themselves:
`realtime.chat`, `realtime.media`, `realtime.events`, `realtime.errors`, `realtime.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.lazy import lazy_names

if TYPE_CHECKING:
    from realtime.chat.context import (
        ChatContext,
    )
    from realtime.chat.conversation import (
        Conversation,
        TokenUsage,
    )
    from realtime.chat.explain import (
        Explanation,
    )
    from realtime.chat.formats.anthropic import (
        AnthropicMessages,
    )
    from realtime.chat.formats.google import (
        GoogleContents,
    )
    from realtime.chat.formats.openai_responses import (
        to_openai_responses_input,
    )
    from realtime.chat.formats.pydantic_ai import (
        from_pydantic_ai_messages,
        to_pydantic_ai_messages,
    )
    from realtime.chat.image_prices import (
        ImagePrice,
        image_price,
    )
    from realtime.chat.manager import (
        ContextManager,
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
    from realtime.chat.sanitize import (
        sanitize_messages,
    )
    from realtime.chat.strategies import (
        AssistantMessage,
        ContextManagement,
        ContextMessage,
        NoContextManagement,
        SmartWindowSizeContext,
        SystemMessage,
        ToolResultMessage,
        UserMessage,
        WindowSizeContext,
    )
    from realtime.chat.tokens import (
        O200kCounter,
        ScriptCounter,
        TokenCounter,
        WordCounter,
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
        DtmfReceived,
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
    from realtime.core.settings import (
        Agent,
        AudioRetention,
        FrameSampling,
        Prices,
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
    from realtime.models.azure_voice_live import (
        AzureVoiceLive,
    )
    from realtime.models.base import (
        RealtimeModel,
    )
    from realtime.models.chat import (
        ChatModel,
    )
    from realtime.models.chat_options import (
        ChatOptions,
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
    from realtime.models.openai_call import (
        BrowserCall,
        OpenAISideband,
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
    from realtime.pipelines.telephony import (
        TelephonyStatistics,
        TelephonyStream,
    )
    from realtime.pipelines.telephony_socket import (
        CallWebSocket,
        TextWebSocket,
    )
    from realtime.pipelines.tool import (
        Tool,
    )
    from realtime.session import (
        RealtimeSession,
        ToolContext,
    )
    from realtime.transports.websocket import (
        KeepAlive,
    )

_HOMES = {
    "DEFAULT_REALTIME_ENCODE_OPTIONS": "realtime.media.options",
    "Agent": "realtime.core.settings",
    "AgentHandoff": "realtime.chat.messages",
    "AnthropicMessages": "realtime.chat.formats.anthropic",
    "ApprovalRequested": "realtime.core.events",
    "ArgumentError": "realtime.errors",
    "AssistantMessage": "realtime.chat.strategies",
    "AudioContent": "realtime.chat.messages",
    "AudioReceived": "realtime.core.events",
    "AudioRetention": "realtime.core.settings",
    "AzureRealtime": "realtime.models.azure",
    "AzureVoiceLive": "realtime.models.azure_voice_live",
    "BrowserCall": "realtime.models.openai_call",
    "BusyError": "realtime.errors",
    "CallWebSocket": "realtime.pipelines.telephony_socket",
    "ChatContent": "realtime.chat.messages",
    "ChatContext": "realtime.chat.context",
    "ChatMessage": "realtime.chat.messages",
    "ChatModel": "realtime.models.chat",
    "ChatOptions": "realtime.models.chat_options",
    "ChatRole": "realtime.chat.messages",
    "Clock": "realtime.pipelines.clock",
    "ConnectionDropped": "realtime.core.events",
    "ContextManagement": "realtime.chat.strategies",
    "ContextManager": "realtime.chat.manager",
    "ContextMessage": "realtime.chat.strategies",
    "ContextSummarized": "realtime.core.events",
    "ContextWindow": "realtime.chat.window",
    "Conversation": "realtime.chat.conversation",
    "DtmfReceived": "realtime.core.events",
    "EncodeOptions": "realtime.media.options",
    "EndOfTrack": "realtime.errors",
    "ErrorReported": "realtime.core.events",
    "Explanation": "realtime.chat.explain",
    "FrameKept": "realtime.core.events",
    "FrameSampling": "realtime.core.settings",
    "FrameSkipped": "realtime.core.events",
    "FunctionCall": "realtime.chat.messages",
    "FunctionCallOutput": "realtime.chat.messages",
    "GeminiLive": "realtime.models.gemini",
    "GoogleContents": "realtime.chat.formats.google",
    "HandedOff": "realtime.core.events",
    "IllegalTransition": "realtime.errors",
    "ImageContent": "realtime.chat.messages",
    "ImageError": "realtime.errors",
    "ImagePrice": "realtime.chat.image_prices",
    "InputRejected": "realtime.core.events",
    "KeepAlive": "realtime.transports.websocket",
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
    "NoContextManagement": "realtime.chat.strategies",
    "O200kCounter": "realtime.chat.tokens",
    "OpenAIRealtime": "realtime.models.openai",
    "OpenAISideband": "realtime.models.openai_call",
    "Prices": "realtime.core.settings",
    "RealtimeError": "realtime.errors",
    "RealtimeModel": "realtime.models.base",
    "RealtimeSession": "realtime.session",
    "ReconnectPolicy": "realtime.core.settings",
    "Reconnected": "realtime.core.events",
    "RemovalReason": "realtime.core.events",
    "ReplyInterrupted": "realtime.core.events",
    "ReplyStarted": "realtime.core.events",
    "ResizeOptions": "realtime.media.options",
    "ScriptCounter": "realtime.chat.tokens",
    "SessionClosed": "realtime.errors",
    "SessionEnded": "realtime.core.events",
    "SessionEvent": "realtime.core.events",
    "SessionStatistics": "realtime.pipelines.statistics",
    "SkipReason": "realtime.core.events",
    "SmartWindowSizeContext": "realtime.chat.strategies",
    "SpeechStarted": "realtime.core.events",
    "SpeechStopped": "realtime.core.events",
    "Summarizer": "realtime.chat.window",
    "SystemClock": "realtime.pipelines.clock",
    "SystemMessage": "realtime.chat.strategies",
    "TelephonyStatistics": "realtime.pipelines.telephony",
    "TelephonyStream": "realtime.pipelines.telephony",
    "TextWebSocket": "realtime.pipelines.telephony_socket",
    "TokenCounter": "realtime.chat.tokens",
    "TokenUsage": "realtime.chat.conversation",
    "Tool": "realtime.pipelines.tool",
    "ToolCalled": "realtime.core.events",
    "ToolContext": "realtime.session",
    "ToolFinished": "realtime.core.events",
    "ToolResultMessage": "realtime.chat.strategies",
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
    "UserMessage": "realtime.chat.strategies",
    "WebSocketModel": "realtime.models.websocket",
    "WindowSizeContext": "realtime.chat.strategies",
    "WordCounter": "realtime.chat.tokens",
    "WouldBlock": "realtime.errors",
    "XaiRealtime": "realtime.models.xai",
    "coerce_image_to_jpeg_bytes": "realtime.media.image",
    "encode": "realtime.media.image",
    "from_pydantic_ai_messages": "realtime.chat.formats.pydantic_ai",
    "image_price": "realtime.chat.image_prices",
    "look_tool": "realtime.pipelines.look",
    "sanitize_messages": "realtime.chat.sanitize",
    "to_openai_responses_input": "realtime.chat.formats.openai_responses",
    "to_pydantic_ai_messages": "realtime.chat.formats.pydantic_ai",
}

__all__ = [
    "DEFAULT_REALTIME_ENCODE_OPTIONS",
    "Agent",
    "AgentHandoff",
    "AnthropicMessages",
    "ApprovalRequested",
    "ArgumentError",
    "AssistantMessage",
    "AudioContent",
    "AudioReceived",
    "AudioRetention",
    "AzureRealtime",
    "AzureVoiceLive",
    "BrowserCall",
    "BusyError",
    "CallWebSocket",
    "ChatContent",
    "ChatContext",
    "ChatMessage",
    "ChatModel",
    "ChatOptions",
    "ChatRole",
    "Clock",
    "ConnectionDropped",
    "ContextManagement",
    "ContextManager",
    "ContextMessage",
    "ContextSummarized",
    "ContextWindow",
    "Conversation",
    "DtmfReceived",
    "EncodeOptions",
    "EndOfTrack",
    "ErrorReported",
    "Explanation",
    "FrameKept",
    "FrameSampling",
    "FrameSkipped",
    "FunctionCall",
    "FunctionCallOutput",
    "GeminiLive",
    "GoogleContents",
    "HandedOff",
    "IllegalTransition",
    "ImageContent",
    "ImageError",
    "ImagePrice",
    "InputRejected",
    "KeepAlive",
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
    "NoContextManagement",
    "O200kCounter",
    "OpenAIRealtime",
    "OpenAISideband",
    "Prices",
    "RealtimeError",
    "RealtimeModel",
    "RealtimeSession",
    "ReconnectPolicy",
    "Reconnected",
    "RemovalReason",
    "ReplyInterrupted",
    "ReplyStarted",
    "ResizeOptions",
    "ScriptCounter",
    "SessionClosed",
    "SessionEnded",
    "SessionEvent",
    "SessionStatistics",
    "SkipReason",
    "SmartWindowSizeContext",
    "SpeechStarted",
    "SpeechStopped",
    "Summarizer",
    "SystemClock",
    "SystemMessage",
    "TelephonyStatistics",
    "TelephonyStream",
    "TextWebSocket",
    "TokenCounter",
    "TokenUsage",
    "Tool",
    "ToolCalled",
    "ToolContext",
    "ToolFinished",
    "ToolResultMessage",
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
    "UserMessage",
    "WebSocketModel",
    "WindowSizeContext",
    "WordCounter",
    "WouldBlock",
    "XaiRealtime",
    "coerce_image_to_jpeg_bytes",
    "encode",
    "from_pydantic_ai_messages",
    "image_price",
    "look_tool",
    "sanitize_messages",
    "to_openai_responses_input",
    "to_pydantic_ai_messages",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
