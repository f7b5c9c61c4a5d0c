"""One client's session: what each of its events does.

Owns: `LocalSession`. Driven by the server, which hands it every wire message in order and lets it send events. It keeps
the conversation and the configuration; hearing is `listening.py`'s, replies are `replies.py`'s. A client's fault is
answered with an `error` event that names it, and changes nothing; the session goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from realtime.errors import BusyError, ModelError
from realtime.local.config import SessionConfiguration, TurnTaking
from realtime.local.conversation import LocalConversation
from realtime.local.endpointing import EndpointingSettings
from realtime.local.ids import make_id
from realtime.local.input_audio import Utterance
from realtime.local.items import StoredItem, StoredPart, item_to_wire, read_item
from realtime.local.large_messages import LARGE_CHARS, LargeMessage, decode_base64_in_pieces
from realtime.local.limits import RequestLimit
from realtime.local.listening import Listener, Spoken
from realtime.local.metrics import Metrics
from realtime.local.output import Send
from realtime.local.parts import Parts
from realtime.local.replies import Replies
from realtime.local.response_config import read_response
from realtime.local.transcripts import Transcripts
from realtime.local.workers import FairPool
from realtime.pipelines.clock import Clock
from realtime.wire.openai_messages import (
    COMMIT_EMPTY,
    INVALID_VALUE,
    RATE_LIMIT,
    SESSION_EXPIRED,
    AudioClearedEvent,
    AudioCommittedEvent,
    ItemAddedEvent,
    ItemDeletedEvent,
    ItemDoneEvent,
    ItemRetrievedEvent,
    ItemTruncatedEvent,
    SessionCreatedEvent,
    SessionUpdatedEvent,
    SpeechStartedEvent,
    SpeechStoppedEvent,
    TimeoutTriggeredEvent,
    client_event_id,
    error_event,
    parse_client_event,
)

__all__ = ["LocalSession", "SessionLimits"]

P = ParamSpec("P")
T = TypeVar("T")

LEAST_COMMIT_MS = 100
"""A commit of less audio than this is refused."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What one session may have."""

    max_seconds: float = 3600.0
    """How long it may live."""
    requests_per_minute: int = 600
    """How many responses it may ask for in a minute."""
    silence_ms: int = 200
    """How much silence ends a turn, where the client does not say."""


class LocalSession:
    """One client's session."""

    def __init__(
        self,
        parts: Parts,
        pool: FairPool,
        *,
        send: Send,
        clock: Clock,
        metrics: Metrics,
        model: str = "",
        limits: SessionLimits | None = None,
    ) -> None:
        """Prepare. Nothing is sent yet.

        Args:
            parts: What it hears, sees, thinks and speaks with.
            pool: Where the parts work, and large messages are read.
            send: Sends events, once there is room.
            clock: The time.
            metrics: Where it is counted.
            model: The name that the client asked for.
            limits: What it may have.
        """
        self.id = make_id("sess_")
        """Its id, which is also what its work in the pool goes by."""
        self._limits = limits or SessionLimits()
        self._clock = clock
        self._send = send
        self._metrics = metrics
        self._model = model or parts.responder.name
        self._parts = parts
        self._pool = pool
        self._large: LargeMessage | None = None
        self._default_taking = TurnTaking(endpointing=EndpointingSettings(silence_ms=self._limits.silence_ms))
        self._configuration = SessionConfiguration(turn_taking=self._default_taking)
        self._conversation = LocalConversation()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._expires_at = int(clock.wall() + self._limits.max_seconds)
        self._listener = Listener(parts, pool, owner=self.id, ear=self, spawn=self._spawn)
        self._listener.configure(self._configuration)
        self._transcripts = Transcripts(send=send, metrics=metrics, spawn=self._spawn)
        self._replies = Replies(
            parts,
            self._conversation,
            owner=self.id,
            send=send,
            clock=clock,
            metrics=metrics,
            limit=RequestLimit(self._limits.requests_per_minute),
            spawn=self._spawn,
            words_known=self._transcripts.known,
            on_idle=self._nobody_spoke,
        )
        self._handlers: dict[str, Callable[[Any], Awaitable[None]]] = {
            "session.update": self._session_update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
            "output_audio_buffer.clear": self._output_clear,
            "conversation.item.create": self._item_create,
            "conversation.item.retrieve": self._item_retrieve,
            "conversation.item.truncate": self._item_truncate,
            "conversation.item.delete": self._item_delete,
            "response.create": self._response_create,
            "response.cancel": self._response_cancel,
        }
        self.expired = asyncio.Event()
        """Set when it has lived as long as it may."""

    # -- its life ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Greet the client with `session.created`, and begin to count its time."""
        self._spawn(self._expire())
        wire = self._configuration.to_wire(session_id=self.id, model=self._model, expires_at=self._expires_at)
        await self._send(SessionCreatedEvent(type="session.created", event_id=make_id("event_"), session=wire))

    async def receive(self, data: str | bytes) -> None:
        """Do what a client's event says, or say why not."""
        cause: str | None = None
        try:
            large = self._large = await self._take_apart(data)
            data = data if large is None else large.rest
            event = parse_client_event(data)
            event = event if large is None else large.restore(event)
            cause = event.get("event_id") if isinstance(event.get("event_id"), str) else None
            await self._handlers[event["type"]](event)
        except ModelError as error:
            self._metrics.count("refused_events", code=error.code)
            cause = cause or (client_event_id(data) if len(data) <= LARGE_CHARS else None)
            await self._send(error_event(make_id("event_"), error, cause=cause))
        except BusyError as error:
            refusal = ModelError(str(error), code=RATE_LIMIT)
            await self._send(error_event(make_id("event_"), refusal, cause=cause))
        except Exception as error:
            _log.exception("an event of %s failed", self.id)
            failure = ModelError(f"The server had an error while processing the event: {type(error).__name__}")
            await self._send(error_event(make_id("event_"), failure, cause=cause))

    async def _take_apart(self, data: str | bytes) -> LargeMessage | None:
        return None if len(data) <= LARGE_CHARS else await self._pool.run(self.id, "first", LargeMessage, data)

    async def _read(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what reads a part of the event under way: in a worker thread if it is a large one."""
        if self._large is None:
            return function(*args, **kwargs)
        return await self._pool.run(self.id, "first", function, *args, **kwargs)

    async def drain(self) -> None:
        """Return when no reply is running."""
        await self._replies.drain()

    async def aclose(self) -> None:
        """End everything that it does."""
        self._replies.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def is_busy(self) -> bool:
        """Whether a reply is running."""
        return self._replies.active is not None

    async def _expire(self) -> None:
        await self._clock.sleep_until(self._clock.now() + self._limits.max_seconds)
        minutes = round(self._limits.max_seconds / 60)
        error = ModelError(f"Your session hit the maximum duration of {minutes} minutes.", code=SESSION_EXPIRED)
        await self._send(error_event(make_id("event_"), error))
        self.expired.set()

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a task of %s failed", self.id, exc_info=task.exception())

    # -- configuration -------------------------------------------------------------------------------------------------

    async def _session_update(self, event: Any) -> None:
        self._configuration = self._configuration.updated(
            event["session"], default_turn_taking=self._default_taking, spoken=self._replies.has_spoken
        )
        self._listener.configure(self._configuration)
        self._replies.configure(self._configuration)
        self._transcripts.wanted = self._configuration.transcription is not None
        wire = self._configuration.to_wire(session_id=self.id, model=self._model, expires_at=self._expires_at)
        await self._send(SessionUpdatedEvent(type="session.updated", event_id=make_id("event_"), session=wire))

    # -- input audio ---------------------------------------------------------------------------------------------------

    async def _append(self, event: Any) -> None:
        data = await self._read(decode_base64_in_pieces, event["audio"])
        if data is None:
            raise ModelError("Invalid 'audio': no base64.", code=INVALID_VALUE, param="audio")
        await self._listener.append(data)

    async def _commit(self, event: Any) -> None:
        held = self._listener.input.uncommitted_ms
        if held < LEAST_COMMIT_MS:
            text = f"at least {LEAST_COMMIT_MS}ms of audio, but buffer only has {held:.2f}ms of audio."
            text = f"Error committing input audio buffer: buffer too small. Expected {text}"
            raise ModelError(text, code=COMMIT_EMPTY)
        spoken = self._listener.commit()
        self._transcripts.take(await self._add_speech(spoken), spoken.words)

    async def _clear(self, event: Any) -> None:
        self._listener.clear()
        await self._send(AudioClearedEvent(type="input_audio_buffer.cleared", event_id=make_id("event_")))

    async def _output_clear(self, event: Any) -> None:
        raise ModelError("'output_audio_buffer.clear' is for WebRTC and SIP only.", code=INVALID_VALUE, param="type")

    async def speech_started(self, item_id: str, at_ms: int) -> None:
        """The user began to speak: say so, and stop the reply that it interrupts."""
        self._replies.stop_waiting()
        await self._send(
            SpeechStartedEvent(
                type="input_audio_buffer.speech_started",
                event_id=make_id("event_"),
                item_id=item_id,
                audio_start_ms=at_ms,
            )
        )
        taking = self._configuration.turn_taking
        if taking is not None and taking.interrupt_response:
            await self._replies.stop("turn_detected")

    async def speech_stopped(self, spoken: Spoken, at_ms: int) -> None:
        """The user has finished: say so, make an item of it, and answer."""
        ended_at = self._clock.now() - spoken.silence_ms / 1000
        await self._send(
            SpeechStoppedEvent(
                type="input_audio_buffer.speech_stopped",
                event_id=make_id("event_"),
                item_id=spoken.item_id,
                audio_end_ms=at_ms,
            )
        )
        item = await self._add_speech(spoken)
        taking = self._configuration.turn_taking
        try:
            if taking is not None and taking.create_response:
                await self._replies.answer_turn(item.parts[0], ended_at)
        finally:  # `response.created` comes before the words
            self._transcripts.take(item, spoken.words)

    async def words_grew(self, item_id: str, delta: str) -> None:
        """More of what the user is saying is certain."""
        await self._transcripts.grow(item_id, delta)

    async def _nobody_spoke(self, silence_ms: int) -> None:
        """Nobody spoke for the idle timeout: commit the silence and answer it."""
        end = self._listener.input.position_ms
        utterance = self._listener.input.cut(max(0, end - silence_ms), end)
        item_id = make_id("item_")
        await self._send(
            TimeoutTriggeredEvent(
                type="input_audio_buffer.timeout_triggered",
                event_id=make_id("event_"),
                item_id=item_id,
                audio_start_ms=max(0, end - silence_ms),
                audio_end_ms=end,
            )
        )
        part = StoredPart(type="input_audio", audio_ms=utterance.duration_ms)
        await self._add_audio_item(StoredItem(id=item_id, kind="message", role="user", parts=[part]))
        await self._replies.answer_silence()

    async def _add_speech(self, spoken: Spoken) -> StoredItem:
        utterance = spoken.utterance
        part = StoredPart(type="input_audio", transcribed=False, pcm=utterance.pcm, audio_ms=utterance.duration_ms)
        item = StoredItem(id=spoken.item_id, kind="message", role="user", parts=[part])
        await self._add_audio_item(item)
        return item

    async def _add_audio_item(self, item: StoredItem) -> None:
        previous = self._conversation.add(item)
        await self._send(
            AudioCommittedEvent(
                type="input_audio_buffer.committed",
                event_id=make_id("event_"),
                previous_item_id=previous,
                item_id=item.id,
            )
        )
        await self._send_added(item, previous)

    # -- items ---------------------------------------------------------------------------------------------------------

    async def _item_create(self, event: Any) -> None:
        audio_format = self._configuration.input_format
        item = await self._read(read_item, event["item"], new_id=make_id("item_"), audio_format=audio_format)
        previous_id = event.get("previous_item_id")
        previous = self._conversation.add(item, previous_id if isinstance(previous_id, str) else None)
        self._replies.stop_waiting()
        await self._send_added(item, previous)
        for index, part in enumerate(item.parts):
            if part.pcm is not None and not part.transcribed:
                utterance = Utterance(pcm=part.pcm, start_ms=0, end_ms=part.audio_ms)
                self._transcripts.take(item, self._listener.seek(utterance), index)
        if any(part.image is not None for part in item.parts):
            self._metrics.count("pictures", sum(part.image is not None for part in item.parts))
            self._spawn(self._parts.eyes.prepare())

    async def _item_retrieve(self, event: Any) -> None:
        item = self._conversation.retrieve(event["item_id"])
        wire = item_to_wire(item, media_format=self._configuration.input_format)
        await self._send(ItemRetrievedEvent(type="conversation.item.retrieved", event_id=make_id("event_"), item=wire))

    async def _item_truncate(self, event: Any) -> None:
        item_id, index, end = event["item_id"], event["content_index"], event["audio_end_ms"]
        self._conversation.truncate(item_id, index, end)
        await self._send(
            ItemTruncatedEvent(
                type="conversation.item.truncated",
                event_id=make_id("event_"),
                item_id=item_id,
                content_index=index,
                audio_end_ms=end,
            )
        )

    async def _item_delete(self, event: Any) -> None:
        item = self._conversation.delete(event["item_id"])
        await self._send(
            ItemDeletedEvent(type="conversation.item.deleted", event_id=make_id("event_"), item_id=item.id)
        )

    async def _send_added(self, item: StoredItem, previous: str | None) -> None:
        wire = item_to_wire(item)
        await self._send(
            ItemAddedEvent(
                type="conversation.item.added", event_id=make_id("event_"), previous_item_id=previous, item=wire
            )
        )
        await self._send(
            ItemDoneEvent(
                type="conversation.item.done", event_id=make_id("event_"), previous_item_id=previous, item=wire
            )
        )

    # -- responses -----------------------------------------------------------------------------------------------------

    async def _response_create(self, event: Any) -> None:
        fields: dict[str, Any] = event.get("response") or {}
        find = self._conversation.retrieve
        settings = await self._read(read_response, self._configuration, fields, find=find, make_id=make_id)
        await self._replies.create(settings)

    async def _response_cancel(self, event: Any) -> None:
        response_id = event.get("response_id")
        await self._replies.cancel(response_id if isinstance(response_id, str) else None)
