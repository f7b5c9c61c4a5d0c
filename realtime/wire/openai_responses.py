"""Reads what a server of OpenAI's Realtime protocol says of responses.

Owns: `ResponseReader`, one per connection, and `read_usage`. Driven by `wire/openai_decode.py`. It remembers which
responses run, which calls and texts of the last few it has reported, and half samples of their audio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from realtime.core.model_events import (
    ItemKind,
    ModelEvent,
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextDone,
    OutputTextUpdated,
    OutputWords,
    ResponseEnded,
    ResponseStarted,
    ResponseStatus,
    TokenUsage,
    ToolCallDone,
)
from realtime.pcm import OddByteCarry
from realtime.wire.json_fields import (
    MALFORMED,
    JsonObject,
    MissingFieldError,
    as_count,
    count_of,
    decode_base64,
    list_of,
    object_of,
    objects_of,
    required_text,
    strings_of,
    text_of,
    whole_text,
)

__all__ = ["ITEM_KINDS", "ResponseReader", "read_usage"]

ITEM_KINDS: Final[dict[str, ItemKind]] = {
    "message": "message",
    "function_call": "function_call",
    "function_call_output": "function_call_output",
}
"""The items that hold words of the conversation. Others (a provider's own tools) are none of ours."""

_STATUSES: Final[dict[str, ResponseStatus]] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "failed": "failed",
    "incomplete": "incomplete",
}
_MAX_OPEN = 64
_MAX_SEEN = 16
_MAX_CALLS = 1024


def read_usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    """Tokens of a response as OpenAI reports them; None if there is nothing in it."""
    if not usage:
        return None
    inputs, outputs = object_of(usage, "input_token_details"), object_of(usage, "output_token_details")
    input_tokens, output_tokens = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
    return TokenUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=count_of(usage, "total_tokens") or input_tokens + output_tokens,
        cached_tokens=count_of(inputs, "cached_tokens"),
        input_audio_tokens=count_of(inputs, "audio_tokens"),
        input_image_tokens=count_of(inputs, "image_tokens"),
        output_audio_tokens=count_of(outputs, "audio_tokens"),
    )


def _usage_of(message: JsonObject) -> TokenUsage | None:
    return read_usage(object_of(object_of(message, "response"), "usage"))


@dataclass(slots=True)
class _Seen:
    """What was reported of one response."""

    carries: dict[str, OddByteCarry] = field(default_factory=dict[str, OddByteCarry])
    calls: set[str] = field(default_factory=set[str])
    texts: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])


class ResponseReader:
    """Responses of one connection.

    Attributes:
        has_spoken: The model has given audio; from then on its voice cannot be changed.
        running: Ids of the responses that began and are not over, oldest first.
        calls: Ids of the calls that this connection's model made, the last 1,024: they go back as they came.
    """

    def __init__(self, usage_of: Callable[[JsonObject], TokenUsage | None] | None = None) -> None:
        """Begin a connection.

        Args:
            usage_of: Finds what a `response.done` cost, where a protocol says it elsewhere than in `response.usage`.
        """
        self.has_spoken = False
        self.calls: dict[str, None] = {}
        self._usage_of = usage_of or _usage_of
        self.running: dict[str, None] = {}
        self._seen: dict[str, _Seen] = {}

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """What reads each type of message."""
        return {
            "response.created": self._response_created,
            "response.done": self._response_done,
            "response.output_item.added": self._output_item_added,
            "response.output_item.done": self._output_item_done,
            "response.output_audio.delta": self._output_audio,
            "response.output_audio_transcript.delta": self._spoken_delta,
            "response.output_audio_transcript.done": self._spoken_done,
            "response.output_audio_transcript.words": self._output_words,
            "response.output_text.delta": self._written_delta,
            "response.output_text.done": self._written_done,
        }

    def _response_created(self, message: JsonObject) -> list[ModelEvent]:
        response = object_of(message, "response")
        response_id = required_text(response, "id")
        if len(self.running) >= _MAX_OPEN:  # a server that never ends any
            del self.running[next(iter(self.running))]
        self.running[response_id] = None
        return [ResponseStarted(response_id=response_id, metadata=strings_of(response, "metadata"))]

    def _response_done(self, message: JsonObject) -> list[ModelEvent]:
        response = object_of(message, "response")
        response_id = text_of(response, "id")
        if not response_id:
            raise MissingFieldError("response.id")
        status = _STATUSES.get(text_of(response, "status", "completed"), "incomplete")
        events: list[ModelEvent] = []
        if status == "completed":  # a server that left out `output_item.done`
            for item in objects_of(response, "output"):
                events += self._finish_item(response_id, item)
        details = object_of(response, "status_details")
        error = object_of(details, "error")
        events.append(
            ResponseEnded(
                response_id=response_id,
                status=status,
                reason=text_of(details, "reason"),
                usage=self._usage_of(message),
                error_code=text_of(error, "code") or text_of(error, "type"),
                error_message=text_of(error, "message"),
            )
        )
        self.running.pop(response_id, None)
        return events

    def end_malformed(self) -> list[ModelEvent]:
        """End the running response, the oldest if there are several: its `done` could not be read."""
        if not self.running:
            return []
        response_id = next(iter(self.running))
        del self.running[response_id]
        text = "the message that ended the response could not be read"
        return [ResponseEnded(response_id=response_id, status="failed", error_code=MALFORMED, error_message=text)]

    def _seen_of(self, response_id: str) -> _Seen:
        """What was reported of a response; kept for the last few, since output may trail its `done`."""
        found = self._seen.get(response_id)
        if found is None:
            if len(self._seen) >= _MAX_SEEN:
                del self._seen[next(iter(self._seen))]
            found = self._seen[response_id] = _Seen()
        return found

    def _response_of(self, message: JsonObject) -> str:
        """Whose output a message is; a server that does not say means the running response."""
        response_id = text_of(message, "response_id")
        if not response_id:
            if not self.running:
                raise MissingFieldError("response_id")
            response_id = next(reversed(self.running))
        return response_id

    def _output_item_added(self, message: JsonObject) -> list[ModelEvent]:
        item = object_of(message, "item")
        item_id, kind = required_text(item, "id"), ITEM_KINDS.get(text_of(item, "type"))
        if kind is None:
            return []
        return [OutputItemStarted(response_id=self._response_of(message), item_id=item_id, kind=kind)]

    def _output_item_done(self, message: JsonObject) -> list[ModelEvent]:
        item = object_of(message, "item")
        response_id = self._response_of(message)
        item_id = required_text(item, "id")
        if text_of(item, "type") not in ITEM_KINDS:
            return []
        events = self._finish_item(response_id, item)
        phase = text_of(item, "phase")
        data: dict[str, object] = {"phase": phase} if phase else {}
        events.append(OutputItemDone(response_id=response_id, item_id=item_id, provider_data=data))
        return events

    def _finish_item(self, response_id: str, item: JsonObject) -> list[ModelEvent]:
        """Report what an item holds and was not reported yet: a whole call, the texts of its parts."""
        item_id, seen = text_of(item, "id"), self._seen_of(response_id)
        if text_of(item, "type") == "function_call":
            call_id = text_of(item, "call_id") or item_id
            if not call_id or call_id in seen.calls or text_of(item, "status") == "incomplete":
                return []
            seen.calls.add(call_id)
            if len(self.calls) >= _MAX_CALLS:
                del self.calls[next(iter(self.calls))]
            self.calls[call_id] = None
            name, arguments = text_of(item, "name"), text_of(item, "arguments")
            return [
                ToolCallDone(response_id=response_id, item_id=item_id, call_id=call_id, name=name, arguments=arguments)
            ]
        events: list[ModelEvent] = []
        for index, part in enumerate(list_of(item, "content")):
            if not isinstance(part, dict):
                continue
            content = cast("JsonObject", part)
            spoken = text_of(content, "type") in ("output_audio", "audio")
            text = text_of(content, "transcript" if spoken else "text")
            if text:
                events += self._text_done(response_id, item_id, index, text, spoken=spoken)
        return events

    def _text_done(self, response_id: str, item_id: str, index: int, text: str, *, spoken: bool) -> list[ModelEvent]:
        seen = self._seen_of(response_id)
        if not item_id or (item_id, index) in seen.texts:
            return []
        seen.texts.add((item_id, index))
        return [OutputTextDone(response_id=response_id, item_id=item_id, content_index=index, text=text, spoken=spoken)]

    def _output_audio(self, message: JsonObject) -> list[ModelEvent]:
        # hot path: every chunk of reply audio
        response_id, item_id = self._response_of(message), required_text(message, "item_id")
        index = count_of(message, "content_index")
        data = decode_base64(text_of(message, "delta"))
        if data is None:
            raise MissingFieldError("delta")
        carries = self._seen_of(response_id).carries
        key = f"{item_id}/{index}"
        carry = carries.get(key)
        if carry is None:
            if len(carries) >= _MAX_OPEN:
                del carries[next(iter(carries))]
            carry = carries[key] = OddByteCarry()
        events = self._output_words(message) if "words" in message else []
        pcm = carry.push(data, key)
        if pcm:
            self.has_spoken = True
            events.append(OutputAudio(response_id=response_id, item_id=item_id, content_index=index, pcm=pcm))
        return events

    def _delta(self, message: JsonObject, *, spoken: bool) -> list[ModelEvent]:
        return [
            OutputTextUpdated(
                response_id=self._response_of(message),
                item_id=required_text(message, "item_id"),
                content_index=count_of(message, "content_index"),
                delta=text_of(message, "delta"),
                spoken=spoken,
            )
        ]

    def _spoken_delta(self, message: JsonObject) -> list[ModelEvent]:
        return self._delta(message, spoken=True)

    def _written_delta(self, message: JsonObject) -> list[ModelEvent]:
        return self._delta(message, spoken=False)

    def _done(self, message: JsonObject, key: Literal["transcript", "text"]) -> list[ModelEvent]:
        response_id, item_id = self._response_of(message), required_text(message, "item_id")
        index, text = count_of(message, "content_index"), text_of(message, key)
        return self._text_done(response_id, item_id, index, text, spoken=key == "transcript")

    def _spoken_done(self, message: JsonObject) -> list[ModelEvent]:
        return self._done(message, "transcript")

    def _written_done(self, message: JsonObject) -> list[ModelEvent]:
        return self._done(message, "text")

    def _output_words(self, message: JsonObject) -> list[ModelEvent]:
        words: list[tuple[str, int]] = []
        for entry in list_of(message, "words"):
            pair: list[object] = cast("list[object]", entry) if isinstance(entry, list) else []
            if len(pair) != 2 or not isinstance(pair[0], str):
                raise MissingFieldError("words")
            words.append((whole_text(pair[0]), as_count(pair[1])))
        item_id = required_text(message, "item_id")
        return [OutputWords(response_id=self._response_of(message), item_id=item_id, words=tuple(words))]
