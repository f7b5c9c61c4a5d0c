"""The conversation as values, usable alone: no loop, no socket, no codec.

::

    from realtime.chat import ChatContext, ContextWindow

    context = ChatContext.empty()
    context.add_message("system", "Answer in one sentence.")
    context.add_message("user", "What is the capital of France?")
    ContextWindow(max_tokens=4000).apply(context)
    context.to_openai_messages()

Names are resolved when they are asked for. Values (`messages`, `content`), the context (`context`, `conversation`), its
bounds (`window`, `tokens`, `image_prices`, `explain`), other people's shapes (`formats`), many conversations by id
(`manager`, `strategies`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.lazy import lazy_names

if TYPE_CHECKING:
    from realtime.chat.content import AudioContent, ImageContent
    from realtime.chat.context import ChatContext
    from realtime.chat.conversation import Conversation, TokenUsage
    from realtime.chat.explain import Explanation
    from realtime.chat.image_prices import ImagePrice, image_price
    from realtime.chat.manager import ContextManager
    from realtime.chat.messages import (
        AgentHandoff,
        ChatContent,
        ChatMessage,
        ChatRole,
        FunctionCall,
        FunctionCallOutput,
    )
    from realtime.chat.sanitize import sanitize_messages
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
    from realtime.chat.tokens import O200kCounter, ScriptCounter, TokenCounter, WordCounter
    from realtime.chat.window import ContextWindow, Summarizer

_HOMES = {
    "AgentHandoff": ".messages",
    "AssistantMessage": ".strategies",
    "AudioContent": ".content",
    "ChatContent": ".messages",
    "ChatContext": ".context",
    "ChatMessage": ".messages",
    "ChatRole": ".messages",
    "ContextManagement": ".strategies",
    "ContextManager": ".manager",
    "ContextMessage": ".strategies",
    "ContextWindow": ".window",
    "Conversation": ".conversation",
    "Explanation": ".explain",
    "FunctionCall": ".messages",
    "FunctionCallOutput": ".messages",
    "ImageContent": ".content",
    "ImagePrice": ".image_prices",
    "NoContextManagement": ".strategies",
    "O200kCounter": ".tokens",
    "ScriptCounter": ".tokens",
    "SmartWindowSizeContext": ".strategies",
    "Summarizer": ".window",
    "SystemMessage": ".strategies",
    "TokenCounter": ".tokens",
    "TokenUsage": ".conversation",
    "ToolResultMessage": ".strategies",
    "UserMessage": ".strategies",
    "WindowSizeContext": ".strategies",
    "WordCounter": ".tokens",
    "image_price": ".image_prices",
    "sanitize_messages": ".sanitize",
}

__all__ = [
    "AgentHandoff",
    "AssistantMessage",
    "AudioContent",
    "ChatContent",
    "ChatContext",
    "ChatMessage",
    "ChatRole",
    "ContextManagement",
    "ContextManager",
    "ContextMessage",
    "ContextWindow",
    "Conversation",
    "Explanation",
    "FunctionCall",
    "FunctionCallOutput",
    "ImageContent",
    "ImagePrice",
    "NoContextManagement",
    "O200kCounter",
    "ScriptCounter",
    "SmartWindowSizeContext",
    "Summarizer",
    "SystemMessage",
    "TokenCounter",
    "TokenUsage",
    "ToolResultMessage",
    "UserMessage",
    "WindowSizeContext",
    "WordCounter",
    "image_price",
    "sanitize_messages",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
