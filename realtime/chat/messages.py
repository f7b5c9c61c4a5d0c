"""The conversation's values: messages and their parts (behaviour.md V1–V3, V7; seed: chat and context).

Owns: `ChatRole`, `ChatMessage`, `ChatContent`, `ImageContent`, `AudioContent`, `FunctionCall`, `FunctionCallOutput`,
`AgentHandoff`. All are frozen: a change is a new value (`dataclasses.replace`) put in the same place. Driven by everyone;
drives nobody: no clock, no id is made here. Pictures and recordings are made in `content`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, cast

from realtime.chat.content import AudioContent, ImageContent
from realtime.chat.frozen import EMPTY, freeze
from realtime.errors import ArgumentError

__all__ = [
    "AgentHandoff",
    "AudioContent",
    "ChatContent",
    "ChatMessage",
    "ChatRole",
    "FunctionCall",
    "FunctionCallOutput",
    "ImageContent",
    "as_arguments",
    "as_output",
    "as_parts",
    "as_role",
    "as_text",
]

_Part = TypeVar("_Part")
_TEXTS = ("message_id", "tool_call_id", "agent_id", "tool_name", "thinking", "unheard", "source")
"""Fields of a message that are text and nothing else."""
_FLAGS = ("is_error", "interrupted", "summary")
"""Fields of a message that are yes or no."""


class ChatRole(StrEnum):
    """Who speaks in a message. Equal to its string: ``ChatRole.USER == "user"``."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


def as_role(role: ChatRole | str) -> ChatRole:
    """A role, given as itself or as its string.

    Raises:
        ArgumentError: There is no such role.
    """
    try:
        if isinstance(role, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return ChatRole(role)
    except ValueError:
        pass
    raise ArgumentError("role", role, f"a ChatRole or one of {', '.join(ChatRole)}")


def as_text(value: object) -> str:
    """Anything as text, by `str()`; what cannot say what it is gives its type's name."""
    try:
        return str(value)
    except Exception:  # its own __str__, or nested too deep
        return f"<{type(value).__name__}>"


def as_arguments(arguments: object) -> str:
    """A call's arguments as JSON text: text stays as it is, None is no arguments, anything else is encoded."""
    return "" if arguments is None else as_output(arguments)


def as_output(output: object) -> str:
    """A tool's output as text: text stays as it is, anything else is encoded as JSON; None, 0 and {} are results (F6).

    Never raises: the tool has done its work (field case B11). What JSON does not know is its `as_text`.
    """
    if isinstance(output, str):
        return output
    try:
        return json.dumps(output, ensure_ascii=False, default=as_text, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return as_text(output)


def as_parts(given: Iterable[_Part] | None, kind: type[_Part], argument: str) -> tuple[_Part, ...]:
    """Parts of one kind as a tuple; None is none.

    Args:
        given: Any iterable of them.
        kind: What each must be.
        argument: What the caller calls it, for the error.

    Raises:
        ArgumentError: It is no iterable, or something else is among them.
    """
    if given is None:
        return ()
    try:
        parts = tuple(given)
    except TypeError:
        raise ArgumentError(argument, given, f"an iterable of {kind.__name__}") from None
    for part in parts:
        if not isinstance(part, kind):
            raise ArgumentError(argument, part, f"made of {kind.__name__} only")
    return parts


@dataclass(frozen=True, slots=True)
class ChatContent:
    """A text part of a message."""

    type: str = "text"
    """Always ``text``."""
    text: str = ""
    """The text."""

    def __post_init__(self) -> None:
        """Check both.

        Raises:
            ArgumentError: One is no text, or the type another one.
        """
        if self.type != "text":
            raise ArgumentError("type", self.type, "'text' (the words are the second argument: text=…)")
        _check_texts(self, ("text",))

    def __str__(self) -> str:
        """The text: given as a message's content, a part is what it says."""
        return self.text


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A tool invocation that the model asked for."""

    name: str = ""
    """The tool."""
    arguments: str = ""
    """Its arguments as JSON text; anything but text is encoded."""
    call_id: str = ""
    """Pairs the call with its result."""
    provider_data: Mapping[str, Any] = field(default=EMPTY, kw_only=True)
    """What the provider attached (a thought signature), carried through unchanged within its session."""

    def __post_init__(self) -> None:
        """Freeze what was given.

        Raises:
            ArgumentError: A name or an id is no text, or the provider's data no mapping.
        """
        _check_texts(self, ("name", "call_id"))
        if not isinstance(self.arguments, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "arguments", as_arguments(self.arguments))
        if self.provider_data is not EMPTY:
            object.__setattr__(self, "provider_data", _frozen(self.provider_data))


@dataclass(frozen=True, slots=True)
class FunctionCallOutput:
    """The result of a tool."""

    name: str = ""
    """The tool."""
    output: str = ""
    """What it gave, as text; anything but text is encoded."""
    call_id: str = ""
    """The call that it answers."""
    is_error: bool = False
    """Whether the text says what went wrong."""

    def __post_init__(self) -> None:
        """Make text of the output.

        Raises:
            ArgumentError: A name or an id is no text, or `is_error` neither True nor False.
        """
        _check_texts(self, ("name", "call_id"))
        _check_flags(self, ("is_error",))
        if not isinstance(self.output, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "output", as_output(self.output))


@dataclass(frozen=True, slots=True)
class AgentHandoff:
    """One agent handed the conversation to another."""

    to_agent: str = ""
    """Who has it now."""
    from_agent: str = ""
    """Who had it; may be empty."""
    reason: str = ""
    """Why; may be empty."""
    handoff_id: str = ""
    """Its id."""

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            ArgumentError: One is no text.
        """
        _check_texts(self, ("to_agent", "from_agent", "reason", "handoff_id"))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    Any message can be built, odd ones too (a result without its call, pictures under any role); the converters make what
    they send valid. An empty `message_id` is no id.
    """

    role: ChatRole = ChatRole.USER
    """Who speaks; a string is taken, too."""
    content: str = ""
    """The text. What is no string becomes `str()`."""
    message_id: str = ""
    """Its id."""
    tool_calls: tuple[FunctionCall, ...] = ()
    """Tools it calls; any iterable is copied in."""
    tool_call_id: str = ""
    """The call that it is the result of."""
    images: tuple[ImageContent, ...] = ()
    """Its pictures; any iterable is copied in."""
    agent_id: str = ""
    """Which agent said it."""
    created_at: float | None = None
    """When, in seconds since the epoch; None if unknown."""
    audio: AudioContent | None = field(default=None, kw_only=True)
    """Its recording."""
    is_error: bool = field(default=False, kw_only=True)
    """A tool's result says what went wrong."""
    tool_name: str = field(default="", kw_only=True)
    """Which tool gave the result."""
    thinking: str = field(default="", kw_only=True)
    """What the model thought before it spoke."""
    interrupted: bool = field(default=False, kw_only=True)
    """The reply was cut; `content` is what was heard of it."""
    heard_ms: int | None = field(default=None, kw_only=True)
    """How much of a cut reply was heard, in milliseconds."""
    unheard: str = field(default="", kw_only=True)
    """Text that was generated and not heard."""
    source: str = field(default="", kw_only=True)
    """Which track it came from."""
    summary: bool = field(default=False, kw_only=True)
    """It is a digest of older messages."""
    provider_data: Mapping[str, Any] = field(default=EMPTY, kw_only=True)
    """What the provider attached, carried through unchanged within its session."""

    # hot path: one is made for every sentence and every kept frame
    def __post_init__(self) -> None:
        """Copy in what was given.

        Raises:
            ArgumentError: An unknown role, a field of another type, or something that is no call, picture or recording.
        """
        put = object.__setattr__
        if type(self.role) is not ChatRole:
            put(self, "role", as_role(self.role))
        if type(self.content) is not str:
            put(self, "content", as_text(self.content))
        _check_texts(self, _TEXTS)
        _check_flags(self, _FLAGS)
        _check_number("created_at", self.created_at, (int, float))
        _check_number("heard_ms", self.heard_ms, int)
        if self.heard_ms is not None and self.heard_ms < 0:
            raise ArgumentError("heard_ms", self.heard_ms, "a whole number of at least 0, or None")
        if self.tool_calls != ():
            put(self, "tool_calls", as_parts(self.tool_calls, FunctionCall, "tool_calls"))
        if self.images != ():
            put(self, "images", as_parts(self.images, ImageContent, "images"))
        if self.audio is not None and not isinstance(self.audio, AudioContent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("audio", self.audio, "an AudioContent or None")
        if self.provider_data is not EMPTY:
            put(self, "provider_data", _frozen(self.provider_data))

    @property
    def is_frame(self) -> bool:
        """Whether it is a sampled frame: the user's, one picture of a track, no word (behaviour.md H8)."""
        return (
            bool(self.source) and self.role is ChatRole.USER and not self.content and len(self.images) == 1
            and self.audio is None
        )  # fmt: skip

    @property
    def is_instruction(self) -> bool:
        """Whether it tells the model how to behave: a system or developer message."""
        return self.role is ChatRole.SYSTEM or self.role is ChatRole.DEVELOPER

    @property
    def is_result(self) -> bool:
        """Whether it is a tool's result: of role TOOL, or an answer to a call under any role."""
        return self.role is ChatRole.TOOL or bool(self.tool_call_id)

    @property
    def is_empty(self) -> bool:
        """Whether it says and shows nothing and is part of no tool round."""
        return not (
            self.content.strip()
            or self.images
            or self.audio is not None
            or self.tool_calls
            or self.is_result
            or self.thinking
        )


def _check_texts(value: object, names: Iterable[str]) -> None:
    for name in names:
        text = getattr(value, name)
        if not isinstance(text, str):
            raise ArgumentError(name, text, "text")


def _check_flags(value: object, names: Iterable[str]) -> None:
    for name in names:
        flag = getattr(value, name)
        if flag is not True and flag is not False:
            raise ArgumentError(name, flag, "True or False")


def _check_number(name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise ArgumentError(name, value, "a whole number or None" if kinds is int else "a number or None")
    if isinstance(value, float) and not math.isfinite(value):
        raise ArgumentError(name, value, "a finite number or None")


def _frozen(data: object) -> Mapping[str, Any]:
    if data is None:
        return EMPTY
    if not isinstance(data, Mapping):
        raise ArgumentError("provider_data", data, "a mapping")
    return cast("Mapping[str, Any]", freeze(data)) or EMPTY
