"""A context in other people's shapes, and from them (behaviour.md V4, F1–F11).

Owns: `Convertible`, the converting half of `ChatContext`, and which conversions are kept. Driven by applications. What a
shape looks like is `formats`' business.

A conversion is kept and extended: after one more message only what it changed is converted again, and what was there before
comes out as it was, so that a provider's prompt cache stays warm. What comes out is the caller's own and may be changed.
Kept are the pieces of the last few formats, without pictures and recordings, which are written anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from realtime.chat.formats.anthropic import AnthropicFormat, AnthropicMessages
from realtime.chat.formats.context_messages import (
    from_context_dict,
    from_context_messages,
    to_context_dict,
    to_context_messages,
)
from realtime.chat.formats.conversion import Conversion, Format
from realtime.chat.formats.google import GoogleContents, GoogleFormat
from realtime.chat.formats.openai import OpenAIChatFormat
from realtime.chat.formats.openai_responses import OpenAIResponsesFormat
from realtime.chat.formats.pydantic_ai import from_pydantic_ai_messages, to_pydantic_ai_messages
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.chat.store import ContextStore

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["Convertible"]

_MAX_KEPT = 2
"""Formats whose pieces are kept for one context; the least recently used makes way."""


class _Kept:
    """One format's conversion of one context, and how far it came."""

    __slots__ = ("conversion", "count", "revision")

    def __init__(self, conversion: Conversion[Any, Any]) -> None:
        self.conversion = conversion
        self.count = 0
        self.revision = -1

    def convert(self, store: ContextStore) -> Any:
        messages = store.snapshot()
        unchanged = self.count if self.revision == store.revision else 0
        self.count, self.revision = len(messages), store.revision
        return self.conversion.convert(messages, unchanged=unchanged)


class Convertible:
    """The converting half of `ChatContext`."""

    __slots__ = ("_kept", "store")

    def __init__(
        self, initial_messages: Iterable[ChatMessage] = (), initial_handoffs: Iterable[AgentHandoff] = ()
    ) -> None:
        """Start with nothing converted; a context adds what it is given."""
        self.store = ContextStore()
        """The places and totals, for `ContextWindow` and sessions; applications use the methods."""
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def _convert(self, key: Hashable, make: Callable[[], Format[Any, Any]]) -> Any:
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept(Conversion(make()))
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return kept.convert(self.store)

    # -- to providers -------------------------------------------------------------------------------------------------

    def to_openai_messages(
        self, *, reasoning_model: bool = False, audio: bool = False, unheard: bool = False
    ) -> list[dict[str, Any]]:
        """OpenAI's chat messages, which most other servers take too.

        Args:
            reasoning_model: Send instructions as ``developer`` rather than ``system`` (behaviour.md F7).
            audio: Send the user's recordings rather than their transcripts (F11).
            unheard: Add to an interrupted reply what was not heard of it (F10).
        """
        return cast(
            "list[dict[str, Any]]",
            self._convert(
                ("openai", reasoning_model, audio, unheard),
                lambda: OpenAIChatFormat(reasoning_model=reasoning_model, audio=audio, unheard=unheard),
            ),
        )

    def to_openai_responses(self, *, reasoning_model: bool = False, unheard: bool = False) -> list[dict[str, Any]]:
        """Input items of OpenAI's Responses API.

        Args:
            reasoning_model: Send instructions as ``developer`` rather than ``system`` (behaviour.md F7).
            unheard: Add to an interrupted reply what was not heard of it (F10).
        """
        return cast(
            "list[dict[str, Any]]",
            self._convert(
                ("openai-responses", reasoning_model, unheard),
                lambda: OpenAIResponsesFormat(reasoning_model=reasoning_model, unheard=unheard),
            ),
        )

    def to_anthropic_messages(self, *, unheard: bool = False) -> AnthropicMessages:
        """Anthropic's messages and system text: ``(messages, system)``; `system` is None if there is none.

        Args:
            unheard: Add to an interrupted reply what was not heard of it (behaviour.md F10).
        """
        return cast(
            "AnthropicMessages", self._convert(("anthropic", unheard), lambda: AnthropicFormat(unheard=unheard))
        )

    def to_google_contents(self, *, audio: bool = False, unheard: bool = False) -> GoogleContents:
        """Gemini's contents and system text: ``(contents, system_instruction)``; the latter is None if there is none.

        Args:
            audio: Send the user's recordings rather than their transcripts (behaviour.md F11).
            unheard: Add to an interrupted reply what was not heard of it (F10).
        """
        return cast(
            "GoogleContents",
            self._convert(("google", audio, unheard), lambda: GoogleFormat(audio=audio, unheard=unheard)),
        )

    # -- Pydantic AI --------------------------------------------------------------------------------------------------

    def to_pydantic_ai_messages(self) -> list[ModelMessage]:
        """Pydantic AI's messages, for ``Agent.run(message_history=…)``; needs the extra ``pydantic-ai``.

        Raises:
            MissingExtraError: It is not installed.
        """
        return to_pydantic_ai_messages(self.store.snapshot())

    @classmethod
    def from_pydantic_ai_messages(cls, messages: Iterable[ModelMessage]) -> Self:
        """A context of Pydantic AI's messages, such as ``result.all_messages()``; needs the extra ``pydantic-ai``.

        Raises:
            MissingExtraError: It is not installed.
            UserError: There is content that has no place in a context: video, documents, files.
        """
        return cls(from_pydantic_ai_messages(messages))

    # -- transport ----------------------------------------------------------------------------------------------------

    def to_context_messages(self) -> list[dict[str, Any]]:
        """The messages as plain dicts, JSON-safe; `from_context_messages` gives them back."""
        return to_context_messages(self.store.snapshot())

    @classmethod
    def from_context_messages(cls, messages: Any) -> Self:
        """A context of messages given as mappings or objects.

        Unknown roles are the user's. A picture that cannot be read is left out and reported in the log; its message stays.

        Args:
            messages: An iterable of them; None is none.

        Raises:
            ArgumentError: It is no iterable of such.
        """
        return cls(from_context_messages(messages))

    def to_dict(self) -> dict[str, Any]:
        """The whole context as a plain dict, JSON-safe: ``{"items": […], "handoffs": […]}``. `from_dict` loses nothing."""
        return to_context_dict(self.store.snapshot(), self.store.handoffs)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """A context from what `to_dict` gave.

        Raises:
            ArgumentError: It is no such dict.
        """
        messages, handoffs = from_context_dict(data)
        return cls(messages, handoffs)
