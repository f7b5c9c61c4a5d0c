"""Wire messages of megabytes, read without holding up anybody else's session.

Owns: `LargeMessage` and `decode_base64_in_pieces`. Driven by the session, in a worker thread, for messages longer than
`LARGE_CHARS`. A thread alone would not do: the parsers of JSON and base64 keep the interpreter to themselves until they are
through. So long strings are taken out before the rest is parsed, which is short then, and base64 is read piece by piece;
between two pieces the loop has its turn.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, Final, cast

from realtime.errors import ModelError
from realtime.wire.json_fields import decode_base64
from realtime.wire.openai_messages import INVALID_EVENT, ClientEvent

__all__ = ["LARGE_CHARS", "LargeMessage", "decode_base64_in_pieces"]

LARGE_CHARS: Final = 400_000
"""Longer messages are read in a worker thread. A picture of a camera, or seconds of audio, is read at once."""
LONG_STRING_CHARS: Final = 50_000
"""Strings from this length on are taken out; what is left must be shorter than `LARGE_CHARS`."""
PIECE_CHARS: Final = 1 << 18
"""What is decoded at once: a fraction of a millisecond."""
ESCAPE_CHARS: Final = 12
"""A pair of surrogates, the longest escape that must not be torn."""


class LargeMessage:
    """A wire message whose long strings were taken out. Made in a worker thread."""

    def __init__(self, data: str | bytes) -> None:
        """Take them out.

        Raises:
            ModelError: What is left is long, too, or something is no text.
        """
        try:
            text = data if isinstance(data, str) else data.decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"a wire message is no UTF-8: {error.reason}", code=INVALID_EVENT) from None
        self._mark = f"{secrets.token_hex(16)}:"
        self._strings: list[str] = []
        rest: list[str] = []
        begin = 0
        for start, end in _long_strings(text):
            rest += (text[begin:start], f"{self._mark}{len(self._strings)}")
            self._strings.append(_unescaped(text[start:end]))
            begin = end
        rest.append(text[begin:])
        if sum(map(len, rest)) > LARGE_CHARS:
            raise ModelError(
                f"The event is too large: without its long strings it may have {LARGE_CHARS} characters.",
                code=INVALID_EVENT,
            )
        self.rest = "".join(rest)
        """The message without them, to be parsed on the loop."""

    def restore(self, event: ClientEvent) -> ClientEvent:
        """The event that `rest` was parsed to, with the long strings where they were.

        Raises:
            ModelError: It is nested too deeply.
        """
        try:
            return cast("ClientEvent", self._restored(event))
        except RecursionError:
            raise ModelError("The event is nested too deeply.", code=INVALID_EVENT) from None

    def _restored(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._strings[int(value[len(self._mark) :])] if value.startswith(self._mark) else value
        if isinstance(value, dict):
            members: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  (whatever is in it)
            return {self._restored(name): self._restored(member) for name, member in members.items()}
        if isinstance(value, list):
            entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]  (whatever is in it)
            return [self._restored(entry) for entry in entries]
        return value


def decode_base64_in_pieces(text: str) -> bytes | None:
    """Read base64 as `decode_base64` does, a piece at a time; None if it is none."""
    pieces: list[bytes] = []
    for start in range(0, len(text), PIECE_CHARS):
        piece = decode_base64(text[start : start + PIECE_CHARS])
        is_whole = piece is not None and (len(piece) == PIECE_CHARS * 3 // 4 or start + PIECE_CHARS >= len(text))
        if piece is None or not is_whole:
            return decode_base64(text)  # white space or padding within: rare, and then all at once
        pieces.append(piece)
    return b"".join(pieces)


def _long_strings(text: str) -> Iterator[tuple[int, int]]:
    """The places of the long strings, without their quotes."""
    position = rest = 0
    while rest <= LARGE_CHARS:
        start = text.find('"', position) + 1
        if not start:
            return
        end = text.find('"', start)
        while end > 0 and _is_escaped(text, end):
            end = text.find('"', end + 1)
        if end < 0:
            return
        if end - start >= LONG_STRING_CHARS:
            yield start, end
        else:
            rest += end - position
        position = end + 1


def _is_escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes stands before a place."""
    first = at
    while text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _unescaped(text: str) -> str:
    """What a string says."""
    if "\\" not in text:
        return text
    pieces: list[str] = []
    begin = 0
    while begin < len(text):
        stop = min(begin + PIECE_CHARS, len(text))
        while stop < len(text) and "\\" in text[max(begin, stop - ESCAPE_CHARS) : stop]:
            stop += 1
        try:
            pieces.append(json.loads(f'"{text[begin:stop]}"', strict=False))
        except ValueError as error:
            raise ModelError(f"a wire message is no JSON: {error}", code=INVALID_EVENT) from None
        begin = stop
    return "".join(pieces)
