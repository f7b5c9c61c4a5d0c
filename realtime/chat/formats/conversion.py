"""Drives a format over a conversation, and converts again only what changed (behaviour.md F1, F4).

Owns: the ids that calls have at the provider, and the pieces of the last conversion. Driven by the `to_…` functions and
by whoever converts one conversation again and again (`ChatContext`). A format is two pure functions: one unit to one
piece, and pieces to the whole; so what was converted once stays as it was, the beginning of two conversions in a row is
the same, and a provider's prompt cache stays warm.

Pictures and recordings are never held here, not even as text: a unit whose piece holds one is converted each time, and
what is remembered about messages that carry either is forgotten with the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from realtime.chat.formats.rounds import Rounds, Unit
from realtime.chat.messages import ChatMessage, FunctionCall

__all__ = ["AnsweredCall", "Conversion", "Format", "UnitContent", "copied"]

PieceT = TypeVar("PieceT")
OutputT_co = TypeVar("OutputT_co", covariant=True)


class AnsweredCall(NamedTuple):
    """A call as it goes to a provider."""

    call: FunctionCall
    """What the model asked for."""
    call_id: str
    """Its id at the provider: legal there, and no other call's."""
    result: ChatMessage | None
    """Its result; None while there is none."""


class UnitContent(NamedTuple):
    """What a format converts at once."""

    speakers: tuple[ChatMessage, ...]
    """The message; or in a round, those that make its calls and may say something before them."""
    calls: tuple[AnsweredCall, ...]
    """The calls of a round; empty for any other message."""
    is_leading: bool
    """An instruction at the head of the conversation (behaviour.md F7)."""


class Format(Protocol[PieceT, OutputT_co]):
    """A provider's shape of a conversation."""

    max_id_length: int
    """The longest id that a call may have."""
    holds_recordings: bool
    """Whether the piece of a message with a recording holds it."""

    def legal_id(self, call_id: str) -> str:
        """A call's id in the provider's alphabet, at most `max_id_length` long; empty if nothing of it is left."""
        ...

    def convert(self, unit: UnitContent) -> PieceT:
        """Convert one unit, whatever stands around it."""
        ...

    def assemble(self, pieces: Iterable[PieceT]) -> OutputT_co:
        """Put the pieces together into containers of their own: a caller may change them."""
        ...


class Conversion(Generic[PieceT, OutputT_co]):
    """One conversation in one format."""

    def __init__(self, format: Format[PieceT, OutputT_co]) -> None:
        """Start with nothing converted."""
        self._format = format
        self._remembered: dict[int, _Remembered[PieceT]] = {}
        self._restart()
        self.converted_units = 0
        """How many units were converted so far, counting repeats: what an unchanged conversation does not raise."""

    def _restart(self) -> None:
        self._rounds = Rounds()
        self._used: dict[str, int] = {}
        self._unnamed = 0

    def convert(self, messages: Sequence[ChatMessage], *, unchanged: int = 0) -> OutputT_co:
        """Convert a conversation.

        Args:
            messages: All of it.
            unchanged: How many of the first messages are the same objects as at the last call, if the caller knows. If
                those are all that there were, only what was added is looked at; else every message is, and only changed
                units are converted.
        """
        known = self._remembered
        if unchanged != len(self._rounds) or unchanged > len(messages):
            self._restart()
            self._remembered = {}
        rounds = self._rounds
        for position in range(len(rounds), len(messages)):
            rounds.add(messages[position])
        for unit in rounds.touched.values():
            self._settle(unit, messages, known)
        rounds.touched.clear()
        return self._format.assemble(self._pieces(messages))

    # hot path: once per unit that is new or changed; without a hint, once per unit of every conversion
    def _settle(self, unit: Unit, messages: Sequence[ChatMessage], known: dict[int, _Remembered[PieceT]]) -> None:
        """Give a unit its ids and, unless it holds pictures or recordings, its piece."""
        if unit.calls:
            fresh = unit.calls[len(unit.ids) :]
            unit.ids += tuple(self._fresh_id(messages[slot.at].tool_calls[slot.number].call_id) for slot in fresh)
            parts = tuple(messages[position] for position in unit.positions())
        else:
            parts = (messages[unit.speakers[0]],)
        for part in parts:
            if part.images or (part.audio is not None and self._format.holds_recordings):
                unit.piece = None
                return
        found = known.get(id(parts[0]))
        if found is None or not found.is_of(parts, unit):
            found = _Remembered(parts, unit.ids, unit.is_leading, self._convert(_content_of(unit, messages)))
        unit.piece = found.piece
        for part in parts:
            if part.audio is not None:
                return
        self._remembered[id(parts[0])] = found

    def _pieces(self, messages: Sequence[ChatMessage]) -> Iterator[PieceT]:
        for unit in self._rounds.units:
            piece = unit.piece
            yield self._convert(_content_of(unit, messages)) if piece is None else cast("PieceT", piece)

    def _convert(self, content: UnitContent) -> PieceT:
        self.converted_units += 1
        return self._format.convert(content)

    def _fresh_id(self, call_id: str) -> str:
        """The id itself if it is legal and not yet used; else one like it (behaviour.md F4)."""
        legal = self._format.legal_id(call_id)
        if not legal:
            self._unnamed += 1
            legal = f"call_{self._unnamed}"
        wanted = legal
        while wanted in self._used:
            self._used[legal] += 1
            suffix = f"_{self._used[legal]}"
            wanted = legal[: self._format.max_id_length - len(suffix)] + suffix
        self._used[wanted] = 1
        return wanted


class _Remembered(Generic[PieceT]):
    """A piece, and what it was made of."""

    __slots__ = ("_ids", "_is_leading", "_parts", "piece")

    def __init__(self, parts: tuple[ChatMessage, ...], ids: tuple[str, ...], is_leading: bool, piece: PieceT) -> None:
        self._parts = parts
        self._ids = ids
        self._is_leading = is_leading
        self.piece = piece

    def is_of(self, parts: tuple[ChatMessage, ...], unit: Unit) -> bool:
        """Whether it was made of these very messages, in the same place."""
        if len(parts) == 1 and parts[0] is not self._parts[0]:
            return False
        return (
            self._is_leading == unit.is_leading
            and self._ids == unit.ids
            and len(self._parts) == len(parts)
            and all(mine is its for mine, its in zip(self._parts, parts, strict=True))
        )


def _content_of(unit: Unit, messages: Sequence[ChatMessage]) -> UnitContent:
    if not unit.calls:
        return UnitContent((messages[unit.speakers[0]],), (), unit.is_leading)
    return UnitContent(
        tuple(messages[position] for position in unit.speakers),
        tuple(
            AnsweredCall(
                messages[slot.at].tool_calls[slot.number],
                call_id,
                None if slot.result is None else messages[slot.result],
            )
            for slot, call_id in zip(unit.calls, unit.ids, strict=True)
        ),
        unit.is_leading,
    )


def convert_once(format: Format[Any, OutputT_co], messages: Iterable[ChatMessage]) -> OutputT_co:
    """Convert a conversation of which nothing is to be remembered."""
    return Conversion(format).convert(list(messages))


# hot path: once per value of every conversion
def copied(value: Any) -> Any:
    """A copy of JSON-like data whose containers are the caller's own."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: item if type(item) is str else copied(item) for key, item in members.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
