"""Reads a reply of OpenAI's Chat Completions, streamed or whole, from bytes.

Owns: `ReplyReader`. Driven by `models/chat.py`. Pure: no socket, no clock. What it holds is bounded by `max_bytes`; what
makes no sense is a `ModelError` with the code ``malformed``, never another exception.

Events come as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each a JSON
``chat.completion.chunk``, ended by ``[DONE]``; a server that does not stream sends one ``chat.completion``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from realtime.chat.formats.text import clean
from realtime.chat.messages import FunctionCall
from realtime.errors import ModelError

__all__ = ["ReplyReader"]

_DONE: Final = "[DONE]"
_MAX_CALLS: Final = 128
"""The most calls of one reply; OpenAI takes as many tools."""
_MAX_SHOWN: Final = 500


class _Call:
    """A call that is being put together."""

    __slots__ = ("arguments", "call_id", "name")

    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []

    def whole(self) -> FunctionCall:
        return FunctionCall(clean(self.name), clean("".join(self.arguments)), clean(self.call_id))


class ReplyReader:
    """One reply."""

    def __init__(self, *, max_bytes: int, redact: Callable[[str], str]) -> None:
        """Begin before the first byte.

        Args:
            max_bytes: The most that is read.
            redact: Takes secrets out of the server's words: some repeat the key.
        """
        self._max_bytes = max_bytes
        self._redact = redact
        self._read = 0
        self._unread: list[bytes] = []
        self._data: list[str] = []
        self._held = ""
        self._is_stream = True
        self._finished = False
        self._calls: dict[int, _Call] = {}
        self.has_begun = False
        """Whether the server began a reply."""
        self.is_done = False
        """Whether the reply is complete, and nothing more of it is to be waited for."""

    def begin(self, content_type: str) -> None:
        """The server has answered with success."""
        self.has_begun = True
        self._is_stream = "json" not in content_type.lower()

    def feed(self, chunk: bytes) -> Iterator[str | FunctionCall]:
        """Read more bytes.

        Yields:
            Text, and calls that are complete.

        Raises:
            ModelError: It is too much, is no reply, or tells of an error.
        """
        self._read += len(chunk)
        if self._read > self._max_bytes:
            raise ModelError(f"a reply of more than {self._max_bytes} bytes", code="response_too_large")
        self._unread.append(chunk)
        if not self._is_stream or b"\n" not in chunk:
            return
        *lines, rest = b"".join(self._unread).split(b"\n")
        self._unread = [rest]
        for line in lines:
            yield from self._line(line.rstrip(b"\r").decode("utf-8", "replace"))
            if self.is_done:
                return

    def end(self) -> Iterator[str | FunctionCall]:
        """The server has closed the reply.

        Yields:
            What was still missing.

        Raises:
            ModelError: It broke off in the middle.
        """
        rest, self._unread = b"".join(self._unread).decode("utf-8", "replace"), []
        if not self._is_stream:
            yield from self._whole(rest)
            return
        yield from self._line(rest)
        yield from self._line("")
        if not self.is_done:
            if not self._finished:
                raise ModelError("the reply broke off", code="incomplete")
            yield from self._complete()

    # -- events --------------------------------------------------------------------------------------------------------

    def _line(self, line: str) -> Iterator[str | FunctionCall]:
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            data, self._data = "\n".join(self._data), []
            yield from self._event(data)

    def _event(self, data: str) -> Iterator[str | FunctionCall]:
        if data.strip() == _DONE:
            yield from self._complete()
            return
        event = self._object(data)
        self._raise_error(event)
        for choice in _objects(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta")
            if isinstance(delta, dict):
                yield from self._delta(cast("dict[str, Any]", delta))
            if choice.get("finish_reason"):
                self._finished = True

    def _delta(self, delta: dict[str, Any]) -> Iterator[str]:
        text = self._held + _text(delta.get("content")) + _text(delta.get("refusal"))
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""  # its other half comes next
        if text := text[: len(text) - len(self._held)]:
            yield clean(text)
        for place, part in enumerate(_objects(delta.get("tool_calls"))):
            index = part.get("index")
            self._add_call(index if isinstance(index, int) else self._place_of(part, place), part)

    def _place_of(self, part: dict[str, Any], place: int) -> int:
        """Where a part belongs that has no index: to the call of its id, a new one if that is new, else to the last."""
        last = max(self._calls, default=-1)
        if not part.get("id"):
            return max(last, place)
        return next((index for index, call in self._calls.items() if call.call_id == part["id"]), last + 1)

    def _add_call(self, index: int, part: dict[str, Any]) -> None:
        if index not in self._calls and len(self._calls) >= _MAX_CALLS:
            raise ModelError(f"a reply with more than {_MAX_CALLS} tool calls", code="malformed")
        call = self._calls.setdefault(index, _Call())
        call.call_id = call.call_id or _text(part.get("id"))
        function = part.get("function")
        if isinstance(function, dict):
            inner = cast("dict[str, Any]", function)
            call.name = call.name or _text(inner.get("name"))
            arguments = inner.get("arguments")
            call.arguments.append(json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments))

    def _complete(self) -> Iterator[str | FunctionCall]:
        self.is_done = True
        if self._held:
            yield clean(self._held)
        for _, call in sorted(self._calls.items()):
            yield call.whole()

    def _whole(self, body: str) -> Iterator[str | FunctionCall]:
        reply = self._object(body)
        self._raise_error(reply)
        choices = list(_objects(reply.get("choices")))
        if not choices:
            raise ModelError(f"no reply in {self._shown(body)}", code="malformed")
        message = choices[0].get("message")
        if isinstance(message, dict):
            whole = cast("dict[str, Any]", message)
            calls = [{**part, "index": place} for place, part in enumerate(_objects(whole.get("tool_calls")))]
            yield from self._delta({**whole, "tool_calls": calls})
        yield from self._complete()

    # -- errors --------------------------------------------------------------------------------------------------------

    def refusal(self, status: int, body: bytes) -> ModelError:
        """What a server said when it refused a request.

        Args:
            status: The HTTP status.
            body: What it sent, cut.
        """
        text = body.decode("utf-8", "replace")
        try:
            error = self._object(text).get("error")
        except ModelError:
            error = None
        message, code, param = self._told(error)
        return ModelError(
            message or self._redact(text.strip())[:_MAX_SHOWN] or f"HTTP status {status}",
            code=code or f"http_{status}",
            param=param,
            fatal=status in (401, 403, 404),
        )

    def _raise_error(self, event: dict[str, Any]) -> None:
        if error := event.get("error"):
            message, code, param = self._told(error)
            raise ModelError(message or "the server reports an error", code=code, param=param)

    def _told(self, error: Any) -> tuple[str, str, str]:
        """The message, code and field of an error, in the shapes that servers use."""
        if not isinstance(error, dict):
            return self._redact(_text(error))[:_MAX_SHOWN], "", ""
        fields = cast("dict[str, Any]", error)
        code = _text(fields.get("code")) or _text(fields.get("type"))
        message = self._redact(_text(fields.get("message")))[:_MAX_SHOWN]  # cut last: half a key is a key to guess by
        return message, self._redact(code), self._redact(_text(fields.get("param")))

    def _object(self, text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelError(f"what should be JSON is {self._shown(text)}", code="malformed") from None
        if not isinstance(value, dict):
            raise ModelError(f"what should be a JSON object is {self._shown(text)}", code="malformed")
        return cast("dict[str, Any]", value)

    def _shown(self, text: str) -> str:
        return repr(self._redact(text)[:80])


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(item, dict):
                yield cast("dict[str, Any]", item)


def _text(value: Any) -> str:
    """Text, of a string or of a list of text parts; empty for anything else."""
    if isinstance(value, str):
        return value
    return "".join(_text(part.get("text")) for part in _objects(value))
