"""What of a context may stay (behaviour.md W1–W4; seed: chat and context).

Owns: `ContextWindow` (the limits, trimming, digesting) and `Summarizer`. Driven by applications, before a request; in a
session by `core.trimming`, after every turn and before every reply. Never talks to a model: a `Summarizer` does.

What goes is chosen in `selection`: O(what goes), however long the context is and however long its last turn.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

from realtime.chat.context import ChatContext
from realtime.chat.entry import ContextEntry
from realtime.chat.explain import Explanation, explain
from realtime.chat.image_prices import image_price
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.selection import Budget, Zone, select, select_run
from realtime.chat.store import ContextStore
from realtime.chat.tally import Tally
from realtime.chat.tokens import DEFAULT_COUNTER, TokenCounter, as_counter, message_tokens, priced
from realtime.errors import ArgumentError

__all__ = ["ContextWindow", "Summarizer"]

_logger = logging.getLogger(__name__)


@runtime_checkable
class Summarizer(Protocol):
    """Puts messages into fewer words."""

    async def summarize(self, messages: Sequence[ChatMessage]) -> str:
        """A digest of the messages, oldest first; an earlier digest may be among them (`ChatMessage.summary`).

        Whatever it raises, and an empty text, leave the context as it is.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """How much of a conversation a model is given.

    Leading instructions stay. Tool calls stay or go with their results, and an open call stays. The words and tool rounds
    of the newest turns stay even over budget; a turn is one party's contribution, and frames sampled with it belong to it.
    Over budget the oldest frames go first, then the oldest words.
    """

    max_tokens: int | None = None
    """Most tokens; None: no limit."""
    max_context_items: int | None = None
    """Most messages, instructions too; None: no limit."""
    keep_recent_turns: int = 3
    """How many of the newest turns stay verbatim."""
    max_tool_calls_per_turn: int = 10
    """Most tool calls within one turn of a session; further ones are answered with a text that says so."""
    summary_llm: Summarizer | None = None
    """Digests older messages before they are trimmed; None: they are only trimmed."""
    counter: TokenCounter | Callable[[str], int] | str | None = None
    """Counts tokens: a `TokenCounter`, its name (`words`, `estimate`, `o200k`), or a function of a text; None: `words`.
    In a session, but for a `TokenCounter` of your own, pictures count by the rule of the model's provider."""
    keep_recent_frames: int = 2
    """How many sampled frames of each source stay in the newest turns."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            ArgumentError: One cannot be.
            MissingExtraError: The counter's package is not installed.
        """
        for name in ("max_tokens", "max_context_items"):
            _check_count(name, getattr(self, name), optional=True)
        for name in ("keep_recent_turns", "max_tool_calls_per_turn", "keep_recent_frames"):
            _check_count(name, getattr(self, name), optional=False)
        if self.summary_llm is not None and not isinstance(self.summary_llm, Summarizer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("summary_llm", self.summary_llm, "an object with an async summarize(messages), or None")
        object.__setattr__(self, "counter", DEFAULT_COUNTER if self.counter is None else as_counter(self.counter))

    def priced(self, rule: str) -> ContextWindow:
        """The same window, counting pictures by a provider's rule, unless it was given a counter object.

        Args:
            rule: Its name in `image_prices`, such as ``gemini-3`` (`ModelCapabilities.image_price`).

        Raises:
            ArgumentError: There is no such rule.
        """
        return replace(self, counter=priced(self._counter, image_price(rule)))

    # -- counting -----------------------------------------------------------------------------------------------------

    @property
    def _counter(self) -> TokenCounter:
        return cast("TokenCounter", self.counter)  # __post_init__ made it one

    def count(self, context: ChatContext) -> int:
        """Tokens of a whole context. The total is kept: O(1) but for what came since."""
        return self.tally(context).total

    def count_message(self, message: ChatMessage) -> int:
        """Tokens of one message.

        Raises:
            ArgumentError: It is none.
        """
        if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("message", message, "a ChatMessage")
        return message_tokens(self._counter, message)

    def tally(self, context: ChatContext) -> Tally:
        """The kept counts of a context's messages.

        Raises:
            ArgumentError: It is no context.
        """
        return _store_of(context).tally(self.counter, self.count_message)

    def _needed_tally(self, context: ChatContext) -> Tally | None:
        return None if self.max_tokens is None else self.tally(context)

    def allows(self, context: ChatContext, *, scale: float = 1.0) -> bool:
        """Whether a context is within the limits.

        Args:
            context: Any context.
            scale: The provider's tokens for each of ours (behaviour.md W6).

        Raises:
            ArgumentError: `scale` is not above 0, or `context` is none.
        """
        _store_of(context)
        budget = self._budget(scale)
        tally = self._needed_tally(context)
        return budget.allows(0 if tally is None else tally.total, len(context))

    # -- trimming -----------------------------------------------------------------------------------------------------

    def _budget(self, scale: float) -> Budget:
        is_number = isinstance(scale, (int, float)) and not isinstance(scale, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_number or not 0 < scale < math.inf:
            raise ArgumentError("scale", scale, "a number above 0")
        return Budget(max_tokens=self.max_tokens, max_items=self.max_context_items, scale=scale)

    def zone(self, context: ChatContext) -> Zone:
        """The recent turns of a context, which stay."""
        return Zone(
            context.store.entries, keep_recent_turns=self.keep_recent_turns, keep_recent_frames=self.keep_recent_frames
        )

    def select(self, context: ChatContext, *, scale: float = 1.0) -> tuple[ContextEntry, ...]:
        """What `apply` would remove, oldest first; nothing under budget.

        Args:
            context: Any context; it is not changed.
            scale: The provider's tokens for each of ours (behaviour.md W6).

        Raises:
            ArgumentError: `scale` is not above 0.
        """
        if self.allows(context, scale=scale):
            return ()
        return tuple(
            select(context.store.entries, self._needed_tally(context), self._budget(scale), self.zone(context))
        )

    def apply(self, context: ChatContext) -> ChatContext:
        """Trim a context in place.

        Returns:
            The same context, to go on with; `apply(context.copy())` keeps the original as it is.

        Raises:
            UserError: A session is running on the context.
            ArgumentError: It is no context.
        """
        _store_of(context).check_free()
        context.store.remove(self.select(context))
        return context

    def explain(
        self, context: ChatContext, counter: TokenCounter | Callable[[str], int] | str | None = None
    ) -> list[Explanation]:
        """What becomes of each message of a context, and why (see `ChatContext.explain`)."""
        if counter is not None:
            return replace(self, counter=counter).explain(context)
        going = frozenset(self.select(context))
        return explain(
            context.store.entries,
            self.tally(context),
            self.zone(context),
            going,
            is_over=bool(going) or not self.allows(context),
        )

    # -- digesting ----------------------------------------------------------------------------------------------------

    def digest(self, context: ChatContext, *, scale: float = 1.0) -> tuple[ContextEntry, ...]:
        """What a summary would replace: the oldest messages in a row, whole units, none recent, none of an open call.

        Empty under budget, where nothing new would be digested, and where what must stay is over budget by itself.

        Args:
            context: Any context; it is not changed.
            scale: The provider's tokens for each of ours (behaviour.md W6).

        Raises:
            ArgumentError: `scale` is not above 0.
        """
        if self.allows(context, scale=scale):
            return ()
        return tuple(
            select_run(context.store.entries, self._needed_tally(context), self._budget(scale), self.zone(context))
        )

    async def compact(self, context: ChatContext) -> ChatContext:
        """Digest what is old if the context is over budget and there is a `summary_llm`, then trim.

        The digest is one message of the user's role with `summary=True`, in the place of what it digests. What is added
        while it is made stays. If it fails, is empty, or something it digests has gone meanwhile, the context is only
        trimmed.

        Returns:
            The same context.

        Raises:
            UserError: A session is running on the context.
            ArgumentError: It is no context.
        """
        _store_of(context).check_free()
        run = self.digest(context) if self.summary_llm is not None else ()
        if run:
            messages = tuple(entry.message for entry in run)
            text = await self._summarized(messages)
            context.store.check_free()
            if text and all(
                entry.is_listed and entry.message is message for entry, message in zip(run, messages, strict=True)
            ):
                context.store.replace_run(run, ChatMessage(ChatRole.USER, text, context.new_id(), summary=True))
        return self.apply(context)

    async def _summarized(self, messages: Sequence[ChatMessage]) -> str:
        assert self.summary_llm is not None
        try:
            text: Any = await self.summary_llm.summarize(messages)
        except Exception as error:
            _logger.warning("the summarizer failed, older messages are trimmed instead: %s", type(error).__name__)
            return ""
        return text.strip() if isinstance(text, str) else ""


def _store_of(context: ChatContext) -> ContextStore:
    if not isinstance(context, ChatContext):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            "context", type(context).__name__, "a ChatContext (a list of messages: ChatContext(messages))"
        )
    return context.store


def _check_count(name: str, value: object, *, optional: bool) -> None:
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ArgumentError(name, value, "an int of at least 0" + (", or None" if optional else ""))
