"""Waiting for the model's next reply.

Owns: `ReplyWait`: who waits, and which finished replies nobody has asked for yet. Driven by a session's events and by
`RealtimeSession.wait_for_reply`. It never asks for a reply.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from realtime.chat.messages import ChatMessage
from realtime.core.events import (
    ErrorReported,
    MessageChanged,
    MessagesRemoved,
    SessionEnded,
    SessionEvent,
    TurnCompleted,
)
from realtime.core.machine import SessionMachine
from realtime.errors import SessionClosed

__all__ = ["ReplyWait"]

_REMEMBERED = 16


class ReplyWait:
    """Matches finished replies with those who wait for one, first to first."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._finished: deque[TurnCompleted] = deque(maxlen=_REMEMBERED)
        self._waiting: deque[asyncio.Future[TurnCompleted]] = deque()
        self._over: BaseException | None = None

    def observe(self, machine: SessionMachine) -> Callable[[SessionEvent], None]:
        """What is to be called with every event of a session."""

        def observer(event: SessionEvent) -> None:
            match event:
                case TurnCompleted():
                    self._finish(event)
                case SessionEnded():
                    self._end(event.error)
                case MessageChanged(message=message) if self._finished:
                    self._change({message.message_id: message})
                case MessagesRemoved(message_ids=ids) if self._finished and event.reason not in ("window", "summary"):
                    self._change(dict.fromkeys(ids))
                case ErrorReported(where="model" | "link") if not machine.is_busy:
                    self._fail(event.error)  # nothing is under way any more that could still be waited for
                case _:
                    pass

        return observer

    def expect(self, machine: SessionMachine) -> None:
        """A reply is about to be asked for: if none is under way, those of before are no longer waited for."""
        if not machine.is_busy:
            self._finished.clear()

    async def wait(self) -> TurnCompleted:
        """The next reply that is over.

        Raises:
            BaseException: What ended the session, or why there is no reply.
        """
        if self._finished:
            return self._finished.popleft()
        if self._over is not None:
            raise self._over
        turn: asyncio.Future[TurnCompleted] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return await turn

    def _finish(self, event: TurnCompleted) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(event)
                return
        self._finished.append(event)

    def _change(self, changed: dict[str, ChatMessage | None]) -> None:
        """What retention took from a message is not kept here either: None, all but its words (behaviour.md R3)."""
        for number, turn in enumerate(self._finished):
            if any(message.message_id in changed for message in turn.messages):
                messages = tuple(
                    changed.get(message.message_id, message) or replace(message, audio=None, images=())
                    for message in turn.messages
                )
                self._finished[number] = replace(turn, messages=messages)

    def _fail(self, error: BaseException) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)

    def _end(self, error: BaseException | None) -> None:
        self._over = error or SessionClosed("the session has ended")
        self._fail(self._over)
