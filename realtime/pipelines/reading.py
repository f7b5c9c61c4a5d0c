"""What can be read of a session, while it runs and after.

Owns: `SessionReading`, the reading half of `RealtimeSession`: its events, streams, messages and figures. Driven by the
application. It never changes anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Literal, overload

from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.messages import ChatMessage
from realtime.core.capabilities import ModelCapabilities
from realtime.core.events import TranscriptUpdated, TurnCompleted
from realtime.core.machine import SessionMachine
from realtime.core.model_events import TokenUsage
from realtime.core.settings import SessionSettings
from realtime.errors import SessionClosed, UserError
from realtime.pipelines.audio_stream import AudioStream
from realtime.pipelines.event_stream import EventStream
from realtime.pipelines.reply_listener import ReplyListener
from realtime.pipelines.reply_wait import ReplyWait
from realtime.pipelines.runtime import SessionRuntime
from realtime.pipelines.statistics import MemoryLedger, SessionStatistics
from realtime.pipelines.transcripts import TranscriptStream

__all__ = ["SessionReading"]


class SessionReading:
    """The reading half of `RealtimeSession`."""

    def __init__(
        self, *, context: ChatContext, basis: Conversation, capabilities: ModelCapabilities, settings: SessionSettings
    ) -> None:
        """Nothing has happened yet.

        Args:
            context: The live context.
            basis: The conversation that the session continues.
            capabilities: What the model can do.
            settings: What the user chose.
        """
        self._context = context
        self._basis = basis
        self._capabilities = capabilities
        self._settings = settings
        self._replies = ReplyWait()
        self._runtime: SessionRuntime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where it runs."""
        self._closed = False

    def _running(self) -> SessionRuntime:
        if self._runtime is None:
            if self._closed:
                raise SessionClosed("the session has ended")
            raise UserError("the session has not begun: use it inside `async with`")
        if not self._runtime.driver.closed and _current_loop() not in (self._loop, None):
            raise UserError(
                "the session runs on another event loop than this one: call it from there, or from a thread with"
                " asyncio.run_coroutine_threadsafe"
            )
        return self._runtime

    @property
    def begun(self) -> bool:
        """Whether ``async with`` has been entered; stays true after the end."""
        return self._runtime is not None

    # -- events -----------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> EventStream:
        """A new iterator of the session's events (`realtime.events`), from now on. Any number may run.

        It ends after `SessionEnded`, or raises what ended the session; `BusyError` if it fell too far behind.
        """
        return self._running().driver.subscribe()

    def stream_audio(self) -> AudioStream:
        """The replies' audio from now on, as PCM16 mono chunks at ``capabilities.output_rate_hz``.

        Without a reply track that is being read, a chunk counts as heard when the next one is asked for.
        """
        return self._running().player.open_reader()

    @overload
    def stream_transcripts(self, *, delta: Literal[False] = False) -> TranscriptStream[ChatMessage]: ...

    @overload
    def stream_transcripts(self, *, delta: Literal[True]) -> TranscriptStream[TranscriptUpdated]: ...

    def stream_transcripts(self, *, delta: bool = False) -> TranscriptStream[Any]:
        """What is said by either side from now on.

        Args:
            delta: False: each message when it is final, cut to what was heard. True: `TranscriptUpdated` events as the
                words come.
        """
        return TranscriptStream(self._running().driver.subscribe(), growing=delta)

    @property
    def listener(self) -> ReplyListener:
        """For who measures at the loudspeaker what was heard of the replies, as the browser page does."""
        return self._running().player.listener

    async def wait_for_reply(self) -> TurnCompleted:
        """The next reply that is over: done and played out, or cut; at once if one is over that no call has returned.

        Only what came after the last `send` or `create_response` of an idle session counts.

        Raises:
            ModelError: The model refused to reply.
            RealtimeError: What ended the session; `SessionClosed` if it was closed.
        """
        self._running()
        return await self._replies.wait()

    # -- what was said ----------------------------------------------------------------------------------------------------

    @property
    def context(self) -> ChatContext:
        """The live context: what the model holds, in order, inside the window. Read it; `send` changes it."""
        return self._context

    @property
    def pending(self) -> tuple[ChatMessage, ...]:
        """Turns that are still being spoken, transcribed or played, as far as they are."""
        return () if self._runtime is None else self._runtime.driver.machine.pending

    @property
    def is_replying(self) -> bool:
        """Whether a reply is being made, played or waited for."""
        return self._runtime is not None and not self._runtime.driver.closed and self._runtime.driver.machine.is_busy

    def heard_so_far(self) -> dict[str, str]:
        """What has been heard of each spoken message of the replies that are not over, by message id; for captions."""
        if self._runtime is None:
            return {}
        self._runtime.driver.catch_up()
        return self._runtime.driver.machine.heard_so_far()

    def all_messages(self) -> list[ChatMessage]:
        """The history: everything that was seeded or said, less what retention evicted. A snapshot."""
        return self._context.messages() if self._runtime is None else self._runtime.driver.machine.messages()

    def new_messages(self) -> list[ChatMessage]:
        """As `all_messages`, without what was seeded."""
        return [] if self._runtime is None else self._runtime.driver.machine.new_messages()

    @property
    def conversation(self) -> Conversation:
        """The bundle that a next session (``conversation=``) or a text agent continues."""
        return replace(
            self._basis,
            messages=tuple(self.all_messages()),
            handoffs=tuple(self._context.handoffs()),
            usage=self.usage,
            revision=self._basis.revision + (0 if self._runtime is None else self._runtime.driver.machine.revision),
        )

    # -- figures ----------------------------------------------------------------------------------------------------------

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all responses, those of a continued `conversation` included."""
        return self._basis.usage if self._runtime is None else self._runtime.driver.machine.usage

    @property
    def context_window_used(self) -> float | None:
        """The fraction of the model's context window in use; None until known."""
        return None if self._runtime is None else self._runtime.driver.machine.context_window_used

    @property
    def capabilities(self) -> ModelCapabilities:
        """What the model can do."""
        return self._capabilities if self._runtime is None else self._runtime.driver.machine.capabilities

    profile = capabilities

    @property
    def settings(self) -> SessionSettings:
        """What the user chose: sampling, window, retention, turn detection and the rest.

        The window counts pictures by the rule of the model that answers now.
        """
        window = self._settings.window.priced(self.capabilities.image_price)
        return self._settings if window == self._settings.window else replace(self._settings, window=window)

    def statistics(self) -> SessionStatistics:
        """Every depth, drop and byte."""
        if self._runtime is not None:
            return self._runtime.statistics()
        idle = SessionMachine(self._settings, self._capabilities, self._context.copy(), make_id=str)
        return SessionStatistics(machine=idle.statistics(), memory=MemoryLedger(), connected=False)


def _current_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
