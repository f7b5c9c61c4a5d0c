"""Reads what Gemini Live says.

Owns: `GeminiDecoder`, one per connection. Driven by `wire/gemini.py`. Gemini names no turns, responses or items, so ids are
made here: a response begins with its first output and ends with `turnComplete`, or with the calls that it makes, since
nothing follows before they are answered; the user's turn begins with the first word of its transcript, or with the
interruption that it is, and becomes an item when the response that answers it ends (behaviour.md H4). It never raises:
what cannot be read is a `ModelFault`.

Facts: recordings, and ai.google.dev/api/live. Thought text is no part of a transcript, and an empty `serverContent` happens.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, cast

from realtime.core.model_events import (
    ConversationSaved,
    ExpiryAnnounced,
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ModelEvent,
    ModelFault,
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextDone,
    OutputTextUpdated,
    ResponseEnded,
    ResponseStarted,
    ResponseStatus,
    SessionReady,
    SessionUpdated,
    SpeechBegan,
    SpeechEnded,
    ThinkingUpdated,
    TokenUsage,
    ToolCallDone,
    UnknownReport,
)
from realtime.errors import ModelError
from realtime.pcm import OddByteCarry
from realtime.wire.base import UnknownCounter
from realtime.wire.json_fields import (
    MALFORMED,
    JsonObject,
    MissingFieldError,
    count_of,
    decode_base64,
    flag_of,
    list_of,
    object_of,
    objects_of,
    parse_message,
    required_text,
    text_of,
    whole_text,
)

__all__ = ["GREETING", "GeminiDecoder", "read_usage"]

GREETING: Final = '{"sessionOpened":{}}'
"""Ours: stands for the opening of the connection, since Gemini says nothing before it was set up."""

_KNOWN: Final = frozenset({"usageMetadata", "voiceActivityDetectionSignal"})
_MAX_CALLS: Final = 1024


def read_usage(usage: JsonObject) -> TokenUsage | None:
    """Tokens of a response as Gemini reports them; None if there is nothing in it."""
    if not usage:
        return None

    def of_kind(key: str, kind: str) -> int:
        return sum(count_of(part, "tokenCount") for part in objects_of(usage, key) if part.get("modality") == kind)

    prompt, answer = count_of(usage, "promptTokenCount"), count_of(usage, "responseTokenCount")
    return TokenUsage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=count_of(usage, "totalTokenCount") or prompt + answer,
        cached_tokens=count_of(usage, "cachedContentTokenCount"),
        input_audio_tokens=of_kind("promptTokensDetails", "AUDIO"),
        input_image_tokens=of_kind("promptTokensDetails", "IMAGE") + of_kind("promptTokensDetails", "VIDEO"),
        output_audio_tokens=of_kind("responseTokensDetails", "AUDIO"),
    )


class GeminiDecoder:
    """The reading half of one connection.

    Attributes:
        decoded: Messages read.
        malformed: … of which could not be read, or lacked what they must have.
        unknown: … of which this version does not know the kind.
        calls: The names of the calls that this connection's model made, by their ids; the last 1,024.
        sent_ms: How much audio was sent, told by the writing half; an interruption is placed there.
        expects_speech: Audio was sent since the last response, told by the writing half: without a transcript, what is
            answered next is the user's speech.
        metadata: What the response that begins next was asked for with, told by the writing half.
        is_asked: What begins next answers a typed turn or a tool's output, told by the writing half: no speech.
        awaits_answer: Something was said that is answered without being asked, told by the writing half; until it is.
        handle: What takes the conversation up again; empty before there is one.
        handle_is_current: Nothing happened since that the handle does not hold.
    """

    def __init__(self, prefix: str, *, resumes: bool = False) -> None:
        """Begin a connection.

        Args:
            prefix: What the ids made here begin with; another one for each connection.
            resumes: The setup takes an earlier conversation up again.
        """
        self.decoded = 0
        self.malformed = 0
        self.unknown = UnknownCounter()
        self.calls: dict[str, str] = {}
        self.sent_ms = 0
        self.expects_speech = False
        self.metadata: dict[str, str] = {}
        self.is_asked = False
        self.awaits_answer = False
        self.handle = ""
        self.handle_is_current = False
        self._resumes = resumes
        self._prefix = prefix
        self._count = 0
        self._response: str = ""
        self._item: str = ""
        self._spoken = ""
        self._written = ""
        self._was_interrupted = False
        self._carry = OddByteCarry()
        self._turn: str = ""
        self._turn_text = ""
        self._usage: TokenUsage | None = None
        self._handlers: dict[str, Callable[[JsonObject], list[ModelEvent]]] = {
            "sessionOpened": lambda _: [SessionReady()],
            "setupComplete": lambda _: [SessionUpdated(resumed=self._resumes)],
            "serverContent": self._content,
            "toolCall": self._calls,
            "toolCallCancellation": self._calls_cancelled,
            "goAway": lambda message: [
                ExpiryAnnounced(seconds_left=_milliseconds(text_of(message, "timeLeft"), 0) / 1000)
            ],
            "sessionResumptionUpdate": self._saved,
            "voiceActivity": self._activity,
            "error": self._error,
        }

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        """Read one wire message."""
        # hot path: every chunk of reply audio passes here
        self.decoded += 1
        try:
            message = parse_message(data)
        except ModelError as error:
            return self._broken(error.message)
        usage = read_usage(object_of(message, "usageMetadata"))
        if usage is not None:
            self._usage = usage
        events: list[ModelEvent] = []
        for name in message:
            handler = self._handlers.get(name)
            if handler is None:
                if name not in _KNOWN:
                    kind = whole_text(name[:80])
                    self.unknown.add(kind)
                    events.append(UnknownReport(type=kind))
                continue
            try:
                events += handler(object_of(message, name))
            except MissingFieldError as error:
                events += self._broken(f"the {error} of a {name} message cannot be read")
        return events

    def _broken(self, message: str) -> list[ModelEvent]:
        self.malformed += 1
        return [ModelFault(message=message, code=MALFORMED)]

    def _error(self, error: JsonObject) -> list[ModelEvent]:
        code = text_of(error, "status") or str(count_of(error, "code") or "")
        return [ModelFault(message=text_of(error, "message") or "Gemini reported an error", code=code)]

    def _saved(self, update: JsonObject) -> list[ModelEvent]:
        """The conversation can be taken up again as it is now. While it cannot, the handle before still serves."""
        handle = text_of(update, "newHandle")
        if not handle or not flag_of(update, "resumable"):
            return []
        self.handle, self.handle_is_current = handle, True
        return [ConversationSaved()]

    def _calls_cancelled(self, cancellation: JsonObject) -> list[ModelEvent]:
        """The user spoke before these were answered. They were begun: what they give is told as text."""
        for call_id in list_of(cancellation, "ids"):
            if isinstance(call_id, str):
                self.calls.pop(call_id, None)
        return []

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}_{kind}{self._count}"

    # -- the user's turn --------------------------------------------------------------------------------------------

    def _begin_turn(self) -> list[ModelEvent]:
        """The user's turn, if none is open: its place is taken now, its sound and words are complete later."""
        if self._turn:
            return []
        self._turn, self._turn_text = self._new_id("user"), ""
        self.handle_is_current = False
        return [ItemAdded(item_id=self._turn, kind="message", role="user", has_place=False)]

    def _end_turn(self) -> list[ModelEvent]:
        if not self._turn:
            return []
        item_id, self._turn = self._turn, ""
        return [InputCommitted(item_id=item_id), InputTranscriptDone(item_id=item_id, text=self._turn_text.strip())]

    def _heard(self, transcription: JsonObject) -> list[ModelEvent]:
        text = text_of(transcription, "text")
        if not text:
            return []
        events = self._begin_turn()
        self._turn_text += text
        return [*events, InputTranscriptUpdated(item_id=self._turn, delta=text)]

    def _activity(self, activity: JsonObject) -> list[ModelEvent]:
        """Speech began or ended, where Gemini was asked to say so."""
        kind = text_of(activity, "voiceActivityType") or text_of(activity, "type")
        at_ms = _milliseconds(text_of(activity, "audioOffset"), self.sent_ms)
        if kind == "ACTIVITY_START":
            events = self._begin_turn()
            return [SpeechBegan(item_id=self._turn, at_ms=at_ms), *events]
        if kind == "ACTIVITY_END" and self._turn:
            return [SpeechEnded(item_id=self._turn, at_ms=at_ms)]
        return []

    # -- the response -----------------------------------------------------------------------------------------------

    def _content(self, content: JsonObject) -> list[ModelEvent]:
        events = self._heard(object_of(content, "inputTranscription"))
        for part in objects_of(object_of(content, "modelTurn"), "parts"):
            events += self._part(part)
        spoken = text_of(object_of(content, "outputTranscription"), "text")
        if spoken:
            events += self._begin_item()
            self._spoken += spoken
            events.append(OutputTextUpdated(response_id=self._response, item_id=self._item, delta=spoken, spoken=True))
        if flag_of(content, "interrupted"):
            events += self._interrupted()
        if flag_of(content, "generationComplete"):
            events += self._end_item()
        if flag_of(content, "turnComplete"):
            events += self._end_response(text_of(content, "turnCompleteReason"))
        return events

    def _part(self, part: JsonObject) -> list[ModelEvent]:
        blob, text = object_of(part, "inlineData"), text_of(part, "text")
        if blob:
            if not text_of(blob, "mimeType").startswith("audio/"):
                return []
            data = decode_base64(required_text(blob, "data"))
            if data is None:
                raise MissingFieldError("audio")
            events = self._begin_item()
            pcm = self._carry.push(data, self._item)
            if pcm:
                events.append(OutputAudio(response_id=self._response, item_id=self._item, pcm=pcm))
            return events
        if not text:
            return []
        events = self._begin_item()
        if flag_of(part, "thought"):
            return [*events, ThinkingUpdated(response_id=self._response, item_id=self._item, delta=text)]
        self._written += text
        return [*events, OutputTextUpdated(response_id=self._response, item_id=self._item, delta=text)]

    def _begin_response(self) -> list[ModelEvent]:
        if self._response:
            return []
        events: list[ModelEvent] = []
        if self.expects_speech and not self.is_asked:
            events += self._begin_turn()
        self.expects_speech = self.is_asked = self.awaits_answer = self.handle_is_current = False
        self._response, self._was_interrupted = self._new_id("response"), False
        metadata, self.metadata = self.metadata, {}
        return [*events, ResponseStarted(response_id=self._response, metadata=metadata)]

    def _begin_item(self) -> list[ModelEvent]:
        events = self._begin_response()
        if self._item:
            return events
        self._item = self._new_id("item")
        return [
            *events,
            OutputItemStarted(response_id=self._response, item_id=self._item, kind="message"),
            ItemAdded(item_id=self._item, kind="message", role="assistant", has_place=False),
        ]

    def _end_item(self) -> list[ModelEvent]:
        if not self._item:
            return []
        response_id, item_id = self._response, self._item
        events: list[ModelEvent] = []
        for text, spoken in ((self._spoken, True), (self._written, False)):
            if text:
                events.append(OutputTextDone(response_id=response_id, item_id=item_id, text=text, spoken=spoken))
        self._item = self._spoken = self._written = ""
        return [*events, OutputItemDone(response_id=response_id, item_id=item_id)]

    def _interrupted(self) -> list[ModelEvent]:
        """The user spoke into the reply: the first that is heard of it, unless speech is reported."""
        if not self._response:
            return []
        self._was_interrupted = True
        if self._turn:
            return []
        events = self._begin_turn()
        return [SpeechBegan(item_id=self._turn, at_ms=self.sent_ms), *events]

    def _end_response(self, reason: str = "") -> list[ModelEvent]:
        answered = [] if self._was_interrupted else self._end_turn()  # what interrupts a reply is not what it answers
        if not self._response:
            return answered
        events = self._end_item()
        status: ResponseStatus = "incomplete" if reason else "completed"
        if self._was_interrupted:
            status, reason = "cancelled", "turn_detected"
        events.append(
            ResponseEnded(
                response_id=self._response,
                status=status,
                reason=reason,
                usage=self._usage,
            )
        )
        self._response, self._usage, self._was_interrupted = "", None, False
        return [*answered, *events]

    def _calls(self, message: JsonObject) -> list[ModelEvent]:
        """The model asks for tools: its response ends with them, as it says nothing before they are answered."""
        calls = objects_of(message, "functionCalls")
        if not calls:
            return []
        events = [*self._begin_response(), *self._end_item()]
        for call in calls:
            call_id, name = text_of(call, "id") or self._new_id("call"), required_text(call, "name")
            if len(self.calls) >= _MAX_CALLS:
                del self.calls[next(iter(self.calls))]
            self.calls[call_id] = name
            item_id = self._new_id("item")
            arguments = json.dumps(cast("object", call.get("args") or {}), ensure_ascii=False)
            events += [
                OutputItemStarted(response_id=self._response, item_id=item_id, kind="function_call"),
                ItemAdded(item_id=item_id, kind="function_call", has_place=False, call_id=call_id),
                ToolCallDone(
                    response_id=self._response,
                    item_id=item_id,
                    call_id=call_id,
                    name=name,
                    arguments=whole_text(arguments),
                ),
                OutputItemDone(response_id=self._response, item_id=item_id),
            ]
        return [*events, *self._end_response()]


def _milliseconds(offset: str, default: int) -> int:
    """A duration such as ``1.5s``."""
    try:
        seconds = float(offset.removesuffix("s"))
    except ValueError:
        return default
    return round(seconds * 1000) if 0 <= seconds < 1e9 else default
