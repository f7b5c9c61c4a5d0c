"""Reads what a server of OpenAI's Realtime protocol says.

Owns: `OpenAIDecoder`, one per connection. Driven by `wire/openai.py`; `wire/xai.py` builds on it. It remembers only what
one connection's messages need of each other: which responses run, which calls and texts it has reported, half samples.
It never raises: what cannot be read is a `ModelFault`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final

from realtime.core.model_events import (
    InputBufferCleared,
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptFailed,
    InputTranscriptUpdated,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    ModelEvent,
    ModelFault,
    SessionReady,
    SessionUpdated,
    SpeechBegan,
    SpeechEnded,
    UnknownReport,
)
from realtime.errors import ModelError
from realtime.wire.base import UnknownCounter
from realtime.wire.json_fields import (
    MALFORMED,
    JsonObject,
    MissingFieldError,
    count_of,
    number_of,
    object_of,
    parse_message,
    required_text,
    text_of,
    whole_text,
)
from realtime.wire.openai_responses import ITEM_KINDS, ResponseReader
from realtime.wire.openai_server_events import OLDER_NAMES

__all__ = ["FATAL_CODES", "OpenAIDecoder", "command_of"]

FATAL_CODES: Final = frozenset(
    {"invalid_api_key", "invalid_model", "model_not_found", "insufficient_quota", "account_deactivated"}
)
"""Errors that asking again does not change. `session_expired` is none: the server closes, and a new connection works."""

_BROKEN_DONE: Final = re.compile(r'"type"\s*:\s*"response\.done"')


def command_of(event_id: str) -> str | None:
    """Our command's id in the id of a client event: a command that took several events numbered the later ones."""
    return event_id.partition("#")[0] or None


class OpenAIDecoder:
    """The reading half of one connection.

    Attributes:
        decoded: Messages read.
        malformed: … of which could not be read, or lacked what they must have.
        unknown: … of which this version does not know the type.
        responses: What was said of responses.
        configure_id: The `ConfigureSession` that was sent first.
    """

    ignored: ClassVar[frozenset[str]] = frozenset(
        {
            "conversation.created",
            # its previous_item_id is null for spoken replies, whatever stands before them: `added` alone tells the place
            "conversation.item.done",
            "conversation.item.retrieved",
            "conversation.item.input_audio_transcription.segment",
            "input_audio_buffer.dtmf_event_received",
            "input_audio_buffer.timeout_triggered",
            "output_audio_buffer.started",
            "output_audio_buffer.stopped",
            "output_audio_buffer.cleared",
            "rate_limits.updated",
            "response.content_part.added",
            "response.content_part.done",
            "response.function_call_arguments.delta",
            # comes for cut-off calls too; `output_item.done` tells which are whole
            "response.function_call_arguments.done",
            "response.output_audio.done",
        }
    )
    """Types that are known and tell the core nothing."""

    def __init__(self, *, wall: float | None = None) -> None:
        """Begin a connection.

        Args:
            wall: The time of day now, in seconds since the epoch, to count `expires_at` from.
        """
        self.decoded = 0
        self.malformed = 0
        self.unknown = UnknownCounter()
        self.responses = ResponseReader()
        self.configure_id = ""
        self._wall = wall
        self._is_configured = False
        self._handlers: dict[str, Callable[[JsonObject], list[ModelEvent]]] = self.handlers()

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """What reads each type of message; a protocol that differs adds to it."""
        return {
            "session.created": self._session_created,
            "session.updated": self._session_updated,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.committed": self._committed,
            "input_audio_buffer.cleared": lambda _: [InputBufferCleared()],
            "conversation.item.added": self._item_added,
            "conversation.item.deleted": self._item_deleted,
            "conversation.item.truncated": self._item_truncated,
            "conversation.item.input_audio_transcription.delta": self._input_delta,
            "conversation.item.input_audio_transcription.completed": self._input_done,
            "conversation.item.input_audio_transcription.failed": self._input_failed,
            "error": self._error,
            **self.responses.handlers(),
        }

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        """Read one wire message."""
        # hot path: every chunk of reply audio passes here
        self.decoded += 1
        try:
            message = parse_message(data)
        except ModelError as error:
            start = data[:200].decode("utf-8", "replace") if isinstance(data, bytes) else data[:200]
            return self._broken(error.message, ends_response=_BROKEN_DONE.search(start) is not None)
        name = message.get("type")
        if not isinstance(name, str):
            return self._broken("a wire message has no type")
        name = OLDER_NAMES.get(name, name)
        handler = self._handlers.get(name)
        if handler is None:
            if name in self.ignored:
                return []
            name = whole_text(name[:80])
            self.unknown.add(name)
            return [UnknownReport(type=name)]
        try:
            return handler(message)
        except MissingFieldError as error:
            text = f"the {error} of a {name} message cannot be read"
            return self._broken(text, ends_response=name == "response.done")

    def _broken(self, message: str, *, ends_response: bool = False) -> list[ModelEvent]:
        self.malformed += 1
        events: list[ModelEvent] = [ModelFault(message=message, code=MALFORMED)]
        if ends_response:  # whatever else it said, that response is over
            events += self.responses.end_malformed()
        return events

    # -- the session and the user's side ----------------------------------------------------------------------------

    def _session_created(self, message: JsonObject) -> list[ModelEvent]:
        session = object_of(message, "session")
        expires_at = number_of(session, "expires_at")
        left = None
        # a session that opens after its own end tells of clocks that differ, not of its end
        if expires_at is not None and self._wall is not None and expires_at > self._wall:
            left = expires_at - self._wall
        return [SessionReady(session_id=text_of(session, "id"), expires_in_seconds=left)]

    def _session_updated(self, message: JsonObject) -> list[ModelEvent]:
        self._is_configured = True
        return [SessionUpdated()]

    def _speech_started(self, message: JsonObject) -> list[ModelEvent]:
        return [SpeechBegan(item_id=required_text(message, "item_id"), at_ms=count_of(message, "audio_start_ms"))]

    def _speech_stopped(self, message: JsonObject) -> list[ModelEvent]:
        return [SpeechEnded(item_id=required_text(message, "item_id"), at_ms=count_of(message, "audio_end_ms"))]

    def _committed(self, message: JsonObject) -> list[ModelEvent]:
        previous = text_of(message, "previous_item_id") or None
        return [InputCommitted(item_id=required_text(message, "item_id"), previous_item_id=previous)]

    def _item_added(self, message: JsonObject) -> list[ModelEvent]:
        item = object_of(message, "item")
        item_id = required_text(item, "id")
        kind = ITEM_KINDS.get(text_of(item, "type"))
        if kind is None:
            return []  # what only the provider runs (its own tools); it holds no words of the conversation
        return [
            ItemAdded(
                item_id=item_id,
                kind=kind,
                role=text_of(item, "role") or None,
                previous_item_id=text_of(message, "previous_item_id") or None,
                has_place="previous_item_id" in message,
                call_id=text_of(item, "call_id") or None,
            )
        ]

    def _item_deleted(self, message: JsonObject) -> list[ModelEvent]:
        return [ItemDeleted(item_id=required_text(message, "item_id"))]

    def _item_truncated(self, message: JsonObject) -> list[ModelEvent]:
        return [
            ItemTruncated(item_id=required_text(message, "item_id"), audio_end_ms=count_of(message, "audio_end_ms"))
        ]

    def _input_delta(self, message: JsonObject) -> list[ModelEvent]:
        item_id, index = required_text(message, "item_id"), count_of(message, "content_index")
        return [InputTranscriptUpdated(item_id=item_id, content_index=index, delta=text_of(message, "delta"))]

    def _input_done(self, message: JsonObject) -> list[ModelEvent]:
        item_id, index = required_text(message, "item_id"), count_of(message, "content_index")
        return [InputTranscriptDone(item_id=item_id, content_index=index, text=text_of(message, "transcript"))]

    def _input_failed(self, message: JsonObject) -> list[ModelEvent]:
        error = object_of(message, "error")
        code = text_of(error, "code") or text_of(error, "type")
        return [
            InputTranscriptFailed(
                item_id=required_text(message, "item_id"), code=code, message=text_of(error, "message")
            )
        ]

    # -- faults -----------------------------------------------------------------------------------------------------

    def _error(self, message: JsonObject) -> list[ModelEvent]:
        error = object_of(message, "error")
        code = text_of(error, "code") or text_of(error, "type")
        command_id = command_of(text_of(error, "event_id"))
        return [
            ModelFault(
                message=text_of(error, "message") or "the provider reported an error without a message",
                code=code,
                param=text_of(error, "param"),
                command_id=command_id,
                fatal=code in FATAL_CODES or (not self._is_configured and self.is_handshake(command_id)),
            )
        ]

    def is_handshake(self, command_id: str | None) -> bool:
        """Whether an error before the first `session.updated` is about the handshake: it names no command, or that one."""
        return command_id is None or command_id == self.configure_id
