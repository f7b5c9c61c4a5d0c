"""The responses of one session: which one runs, which one waits, and when the server speaks up by itself.

Owns: `Replies`. Driven by the session. One response of the conversation runs at a time; a few out of band may run beside
it. A turn that ends while a reply that may not be interrupted is running is answered after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from realtime.errors import ModelError
from realtime.local.config import SessionConfiguration
from realtime.local.conversation import LocalConversation
from realtime.local.ids import make_id
from realtime.local.items import StoredPart
from realtime.local.limits import RequestLimit
from realtime.local.listening import Spawn
from realtime.local.metrics import Metrics, Turn
from realtime.local.output import Send
from realtime.local.parts import Parts
from realtime.local.response import ResponseRun, StopReason
from realtime.local.response_config import ResponseSettings
from realtime.pipelines.clock import Clock, Timer
from realtime.wire.openai_messages import ACTIVE_RESPONSE, CANCEL_NOT_ACTIVE, RATE_LIMIT, RateLimitsUpdatedEvent

__all__ = ["Replies"]

MAX_OUT_OF_BAND = 4
"""So many responses may run beside the conversation's."""
NOISE_MS = 1_200
"""A turn without words that is shorter than this is a noise, and is not answered."""


class Replies:
    """The responses of one session."""

    def __init__(
        self,
        parts: Parts,
        conversation: LocalConversation,
        *,
        owner: str,
        send: Send,
        clock: Clock,
        metrics: Metrics,
        limit: RequestLimit,
        spawn: Spawn,
        words_known: Callable[[], Awaitable[None]],
        on_idle: Callable[[int], Awaitable[None]],
    ) -> None:
        """Begin with none.

        Args:
            parts: The brain and the voice.
            conversation: What is answered.
            owner: The session.
            send: Sends events.
            clock: The time.
            metrics: Where turns are counted.
            limit: How many may be asked for.
            spawn: Starts a task that ends with the session.
            words_known: Returns when the words of everything that was said are known.
            on_idle: Called when nobody spoke for the idle timeout, with its milliseconds.
        """
        self._parts = parts
        self._conversation = conversation
        self._conversation_id = make_id("conv_")
        self._owner = owner
        self._send = send
        self._clock = clock
        self._metrics = metrics
        self._limit = limit
        self._spawn = spawn
        self._words_known = words_known
        self._on_idle = on_idle
        self._configuration = SessionConfiguration()
        self._tasks: dict[ResponseRun, asyncio.Task[Any]] = {}
        self._waiting: tuple[StoredPart, float] | None = None
        self._timer: Timer | None = None
        self.active: ResponseRun | None = None
        """The conversation's running response."""
        self.has_spoken = False
        """Whether any audio was sent."""

    def configure(self, configuration: SessionConfiguration) -> None:
        """Reply as a session's configuration says."""
        self._configuration = configuration
        if configuration.turn_taking is None or configuration.turn_taking.idle_timeout_ms is None:
            self.stop_waiting()

    # -- asked for -----------------------------------------------------------------------------------------------------

    async def create(self, settings: ResponseSettings) -> None:
        """Make a response, as a client asked.

        Raises:
            ModelError: One is running already, or too many were asked for.
        """
        if settings.in_conversation and self.active is not None:
            text = (
                f"Conversation already has an active response in progress: {self.active.id}. "
                "Wait until the response is finished before creating a new one."
            )
            raise ModelError(text, code=ACTIVE_RESPONSE)
        if len(self._tasks) > MAX_OUT_OF_BAND:
            raise ModelError(f"At most {MAX_OUT_OF_BAND} responses run out of band at once.", code=RATE_LIMIT)
        await self._start(settings, None, None)

    async def answer_turn(self, part: StoredPart, ended_at: float) -> None:
        """Answer a spoken turn, now or after the reply that is running.

        Args:
            part: The turn's audio, for its words.
            ended_at: When the user fell silent, on the clock.
        """
        if self.active is not None:
            self._waiting = (part, ended_at)
            return
        await self._start(ResponseSettings.of_session(self._configuration), part, ended_at)

    async def answer_silence(self) -> None:
        """Speak up, since nobody does."""
        if self.active is None:
            await self._start(ResponseSettings.of_session(self._configuration), None, None)

    async def cancel(self, response_id: str | None) -> None:
        """Stop a response, as a client asked. Returns when it has ended.

        Args:
            response_id: Which; None: the conversation's.

        Raises:
            ModelError: It is not running.
        """
        run = self.active
        if response_id is not None:
            run = next((run for run in self._tasks if run.id == response_id), None)
        if run is None:
            raise ModelError("Cancellation failed: no active response found", code=CANCEL_NOT_ACTIVE)
        await self._end(run, "client_cancelled")

    async def stop(self, reason: StopReason) -> None:
        """Stop the conversation's response, if one is running. Returns when it has ended."""
        self._waiting = None
        if self.active is not None:
            await self._end(self.active, reason)

    async def drain(self) -> None:
        """Return when none is running."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def close(self) -> None:
        """Nothing more is started."""
        self._waiting = None
        self.stop_waiting()

    def stop_waiting(self) -> None:
        """Something happened: the idle timeout begins anew with the next reply."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- running -------------------------------------------------------------------------------------------------------

    async def _start(self, settings: ResponseSettings, part: StoredPart | None, ended_at: float | None) -> None:
        now = self._clock.now()
        if not self._limit.take(now):
            raise ModelError("Rate limit reached for responses per minute.", code=RATE_LIMIT)
        self.stop_waiting()
        turn = None if ended_at is None else Turn(self._metrics, self._owner, ended_at, self._clock.now)
        run = ResponseRun(
            settings,
            responder=self._parts.responder,
            synthesizer=self._parts.synthesizer,
            conversation=self._conversation,
            conversation_id=self._conversation_id,
            owner=self._owner,
            send=self._send,
            ready=lambda: self._ready(part),
            on_step=turn.reached if turn is not None else _ignore,
        )
        if settings.in_conversation:
            self.active = run
        await run.announce()
        await self._send(
            RateLimitsUpdatedEvent(
                type="rate_limits.updated", event_id=make_id("event_"), rate_limits=[self._limit.state(now)]
            )
        )
        self._tasks[run] = self._spawn(self._run(run, turn))

    async def _run(self, run: ResponseRun, turn: Turn | None) -> None:
        status = "failed"
        try:
            status = await run.run()
        finally:
            self._tasks.pop(run, None)
            self.has_spoken = self.has_spoken or run.audio_ms > 0
            if self.active is run:
                self.active = None
            self._metrics.count("responses", status=status)
            if turn is not None:
                turn.finish(status)
        if run.settings.in_conversation and self.active is None:
            await self._after(run)

    async def _after(self, run: ResponseRun) -> None:
        """A response of the conversation is over: answer what waited for it, or wait for somebody to speak."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            await self.answer_turn(*waiting)
            return
        taking = self._configuration.turn_taking
        if taking is not None and taking.idle_timeout_ms is not None:
            idle_ms = taking.idle_timeout_ms
            when = self._clock.now() + (run.audio_ms + idle_ms) / 1000
            self._timer = self._clock.call_at(when, lambda: self._spawn(self._idle(idle_ms)))

    async def _idle(self, idle_ms: int) -> None:
        self._timer = None
        if self.active is None:
            await self._on_idle(idle_ms)

    async def _end(self, run: ResponseRun, reason: StopReason) -> None:
        run.stop(reason)
        task = self._tasks.get(run)
        if task is not None:
            await asyncio.wait({task})

    async def _ready(self, part: StoredPart | None) -> bool:
        await self._words_known()
        return part is None or bool(part.text) or part.audio_ms >= NOISE_MS


def _ignore(_step: str) -> None:
    """Responses that no turn asked for are not timed."""
