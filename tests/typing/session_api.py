"""The public API as users' type checkers see it. Checked, never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, assert_never, assert_type

from realtime import (
    DEFAULT_REALTIME_ENCODE_OPTIONS,
    Agent,
    AgentHandoff,
    AudioRetention,
    ChatContext,
    ChatMessage,
    ChatRole,
    ContextWindow,
    Conversation,
    EncodeOptions,
    FrameSampling,
    ImageContent,
    LocalRealtime,
    ModelCapabilities,
    RealtimeModel,
    RealtimeSession,
    ReconnectPolicy,
    SessionStatistics,
    SystemClock,
    TokenUsage,
    Tool,
    ToolContext,
    TurnDetection,
    UsageLimits,
    look_tool,
)
from realtime.errors import ArgumentError, BusyError, LinkLost, ModelError, RealtimeError, UserError
from realtime.events import (
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
    MessageChanged,
    MessageCommitted,
    MessagesRemoved,
    Reconnected,
    ReplyInterrupted,
    ReplyStarted,
    SessionEnded,
    SessionEvent,
    SpeechStarted,
    SpeechStopped,
    ToolCalled,
    ToolFinished,
    TrackEnded,
    TranscriptionFailed,
    TranscriptUpdated,
    TurnCompleted,
)


def plain(city: str, days: int = 1) -> str:
    """A tool."""
    return f"{city} {days}"


async def with_context(context: ToolContext, order: str) -> ImageContent:
    """A tool that knows where it runs."""
    assert_type(context.session, RealtimeSession)
    assert_type(context.call_id, str)
    assert_type(context.messages, tuple[ChatMessage, ...])
    assert_type(context.usage, TokenUsage)
    assert_type(context.context_window_used, float | None)
    await context.session.hand_off("expert", reason=order)
    return await context.session.look()


def construct(model: RealtimeModel, history: list[ChatMessage], conversation: Conversation) -> list[RealtimeSession]:
    """Every way to begin."""
    retention: AudioRetention = "all"
    everything = RealtimeSession(
        "local",
        instructions="Answer in one sentence.",
        context=ChatContext.empty(),
        tools=[plain, with_context, Tool(plain, sequential=True), look_tool],
        voice="sage",
        agents=[Agent(id="expert", tools=(plain,))],
        window=ContextWindow(max_tokens=8_000, keep_recent_turns=3),
        audio_retention=retention,
        retain_audio_max_seconds=None,
        retain_images_every_n=1,
        retain_images_max=None,
        max_history_messages=500,
        mirror_evictions=True,
        sampling=FrameSampling(fps_idle=0),
        encode_options=DEFAULT_REALTIME_ENCODE_OPTIONS,
        image_detail="low",
        turn_detection=TurnDetection(mode="manual"),
        transcription="auto",
        output="text",
        reconnect=ReconnectPolicy(max_attempts=None),
        usage_limits=UsageLimits(max_tokens=10_000),
        memory_limit_bytes=10_000_000,
        resume_after_ms=500,
        tool_timeout_seconds=5,
        clock=SystemClock(),
    )
    return [
        everything,
        RealtimeSession(LocalRealtime()),
        RealtimeSession(model, message_history=history),
        RealtimeSession(model, conversation=conversation, encode_options=EncodeOptions(quality=60)),
    ]


async def talk(session: RealtimeSession, pc: object, track: object) -> None:
    """Every call."""
    async with session as entered:
        assert_type(entered, RealtimeSession)
        assert_type(await session.send("hi"), tuple[str, ...])
        assert_type(await session.send(["look", b"..."], respond=False), tuple[str, ...])
        assert_type(await session.send_image(object(), source="screen"), str)
        await session.send_audio(b"", rate_hz=16_000)
        await session.commit_audio()
        await session.clear_audio()
        await session.create_response(instructions="Be brief.")
        await session.interrupt(played_ms=200)
        await session.approve("call", ok=True)
        assert_type(await session.look("camera"), ImageContent)
        assert_type(await session.hand_off(Agent(id="x")), AgentHandoff)
        assert_type(await session.wait_for_reply(), TurnCompleted)
        assert_type(session.add_track(track, source="camera"), str)
        await session.remove_track("camera")
        session.attach(pc)
        _ = session.reply_track
        assert_type(session.context, ChatContext)
        assert_type(session.pending, tuple[ChatMessage, ...])
        assert_type(session.all_messages(), list[ChatMessage])
        assert_type(session.new_messages(), list[ChatMessage])
        assert_type(session.conversation, Conversation)
        assert_type(session.usage, TokenUsage)
        assert_type(session.context_window_used, float | None)
        assert_type(session.statistics(), SessionStatistics)
        assert_type(session.capabilities, ModelCapabilities)
        assert_type(session.profile, ModelCapabilities)
        await session.aclose()


async def listen(session: RealtimeSession) -> None:
    """Every stream."""
    async for event in session:
        assert_type(event, SessionEvent)
        name(event)
    async for chunk in session.stream_audio():
        assert_type(chunk, bytes)
    async for message in session.stream_transcripts():
        assert_type(message, ChatMessage)
        assert_type(message.role, ChatRole)
    async for update in session.stream_transcripts(delta=True):
        assert_type(update, TranscriptUpdated)


def name(event: SessionEvent) -> str:
    """The union is closed: every event is named, and nothing else is one."""
    match event:
        case SpeechStarted() | SpeechStopped():
            return event.message_id
        case TranscriptUpdated():
            return event.text
        case MessageCommitted() | MessageChanged() | ContextSummarized():
            return event.message.content
        case MessagesRemoved():
            return event.reason
        case FrameKept() | FrameSkipped():
            return event.source
        case ReplyStarted() | AudioReceived() | ReplyInterrupted() | TurnCompleted():
            return event.reply_id
        case ToolCalled() | ToolFinished() | ApprovalRequested():
            return event.name
        case InputRejected():
            return event.reason
        case TranscriptionFailed():
            return event.code
        case HandedOff():
            return event.handoff.to_agent
        case TrackEnded():
            return event.kind
        case DtmfReceived():
            return event.digit
        case ConnectionDropped():
            return event.reason
        case Reconnected():
            return str(event.gap_ms)
        case ErrorReported():
            return event.where
        case SessionEnded():
            reason: Literal["closed", "error", "usage_limit", "link_lost"] = event.reason
            return reason
        case _:
            assert_never(event)


def errors(error: RealtimeError) -> object:
    """Errors carry what they are about."""
    if isinstance(error, ArgumentError):
        as_value_error: ValueError = error
        return assert_type(error.argument, str) or as_value_error
    if isinstance(error, ModelError):
        return assert_type(error.code, str)
    if isinstance(error, LinkLost):
        return assert_type(error.code, int | None)
    if isinstance(error, BusyError):
        return assert_type(error.dropped, int)
    as_user_error: type[UserError] = UserError
    return as_user_error


def tools() -> list[Tool]:
    """Anything callable is a tool."""
    lookup: Callable[[str], Any] = plain
    return [Tool(lookup, name="lookup", timeout_seconds=3, needs_approval=True, description="Looks up.")]
