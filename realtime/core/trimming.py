"""The window in a session: what leaves the context leaves the provider's conversation too (behaviour.md W4–W6).

Owns: when the window is applied, the summary that is awaited, the correction of our token count by the provider's. Driven
by `SessionMachine`, after every turn and before every reply. Never counts or chooses: `ContextWindow` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.chat.context import ChatContext, ContextEntry
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.window import ContextWindow
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CreateItem, DeleteItem, RequestSummary
from realtime.core.effects import Effects
from realtime.core.events import ContextSummarized, MessagesRemoved
from realtime.core.history import History
from realtime.core.ledger import Ledger
from realtime.core.places import Place

__all__ = ["Trimming"]

_SUMMARY_TIMEOUT_SECONDS = 20.0


class Trimming:
    """The window of one session."""

    def __init__(
        self,
        *,
        window: ContextWindow,
        context: ChatContext,
        history: History,
        ledger: Ledger,
        capabilities: ModelCapabilities,
        effects: Effects,
    ) -> None:
        """Apply nothing yet."""
        self._window = window
        self._context = context
        self._history = history
        self._ledger = ledger
        self._capabilities = capabilities
        self._effects = effects
        self.scale = 1.0
        """Reported tokens for each of our own (W6)."""
        self.reported_tokens: int | None = None
        """What the provider said of the last response's input."""
        self._coming = 0
        self._basis = 0
        self._digesting: tuple[ContextEntry, ...] = ()
        self._summary_failed_at: int | None = None
        self.trimmed = 0
        """Messages trimmed so far."""
        self.summarized = 0
        """Messages digested so far."""

    def use(self, capabilities: ModelCapabilities, window: ContextWindow) -> None:
        """Another model answers from now on, and its provider prices pictures by a rule of its own."""
        self._capabilities = capabilities
        self._window = window

    def begin_anew(self) -> None:
        """Another model takes over: its count is not known yet, and what the window had trimmed is told it as far as it fits.

        A digest stands for what it digests (H0: handing off uses the history).
        """
        self.scale, self.reported_tokens = 1.0, None
        tokens, items = self._window.max_tokens, self._window.max_context_items
        own, count = self.own_tokens, len(self._context)
        if self._history.has_digest or (tokens is None and items is None):
            return
        coming: list[Place] = []
        for unit in self._history.trimmed_units():
            own += sum(self._window.count_message(message) for place in unit if (message := place.message) is not None)
            count += len(unit)
            if (tokens is not None and own > tokens) or (items is not None and count > items):
                break
            coming += unit
        self._history.come_back(coming)

    @property
    def own_tokens(self) -> int:
        """Our count of the context."""
        return self._window.count(self._context)

    def note_usage(self, input_tokens: int) -> None:
        """The provider reported what a response's input cost: the context, and what only the provider still has (W6)."""
        if input_tokens <= 0:
            return
        self.reported_tokens = input_tokens
        self.scale = min(20.0, max(1.0, input_tokens / max(1, self.own_tokens + self._ledger.gone_tokens)))

    def apply(self, *, coming: int = 0) -> None:
        """Bring the context, and with it the provider's conversation, inside the window.

        Args:
            coming: Tokens of what was sent and has no place yet: a reply that is asked for now is made from it, too.
        """
        self._coming = coming
        self._delete_gone()
        if self._digesting:
            return
        digest = self._window.digest(self._context, scale=self._felt_scale()) if self._may_summarize() else ()
        if digest:
            self._ask(digest)
        else:
            self._trim()

    def _felt_scale(self) -> float:
        """What our count is multiplied by, so that the window has room for what only the provider has."""
        limit = self._window.max_tokens
        besides = self._coming + (self._ledger.gone_tokens if self._capabilities.supports_item_deletion else 0)
        if not limit or not besides:
            return self.scale
        return limit / max(1.0, limit / self.scale - besides)

    def _may_summarize(self) -> bool:
        return self._window.summary_llm is not None and self._summary_failed_at != self._history.revision

    def _trim(self) -> None:
        entries = self._window.select(self._context, scale=self._felt_scale())
        if not entries:
            return
        ids = tuple(entry.message.message_id for entry in entries)
        self._delete_at_provider(entries)
        self._history.leave_context_entries(entries)
        self.trimmed += len(ids)
        self._effects.emit(MessagesRemoved(message_ids=ids, reason="window"))

    def _delete_at_provider(self, entries: Sequence[ContextEntry]) -> None:
        """What left the context leaves the provider's conversation, where it can; else it is only known to be there."""
        for entry in entries:
            tokens = self._window.count_message(entry.message)
            for item_id in self._items_of(entry):
                if item_id not in self._ledger:
                    continue
                if self._capabilities.supports_item_deletion:
                    self._effects.send(DeleteItem(command_id=self._effects.new_id(), item_id=item_id))
                    self._ledger.delete(item_id)
                else:
                    self._ledger.mark_gone(item_id, tokens)
                    tokens = 0

    def _delete_gone(self) -> None:
        """Items that are gone here and still there count, and are the first to be deleted there (W5)."""
        if not self._capabilities.supports_item_deletion:
            return
        while (item_id := self._ledger.oldest_gone()) is not None and self._is_too_much():
            self._effects.send(DeleteItem(command_id=self._effects.new_id(), item_id=item_id))
            self._ledger.delete(item_id)

    def _is_too_much(self) -> bool:
        """Whether the provider's conversation is over the window."""
        tokens, items = self._window.max_tokens, self._window.max_context_items
        if tokens is not None and (self.own_tokens + self._ledger.gone_tokens + self._coming) * self.scale > tokens:
            return True
        return items is not None and len(self._context) + self._ledger.gone_count > items

    # -- summaries ----------------------------------------------------------------------------------------------------

    def _ask(self, entries: Sequence[ContextEntry]) -> None:
        self._basis += 1
        self._digesting = tuple(entries)
        self._effects.do(
            RequestSummary(
                command_id=self._effects.new_id(),
                basis_revision=self._basis,
                messages=tuple(entry.message for entry in entries),
                timeout_seconds=_SUMMARY_TIMEOUT_SECONDS,
            )
        )

    def receive_summary(self, basis_revision: int, text: str | None) -> None:
        """A summary came, or failed (None or empty): a stale one is ignored, a failed one falls back to trimming."""
        if basis_revision != self._basis or not self._digesting:
            return
        asked, self._digesting = self._digesting, ()
        entries = [entry for entry in asked if self._history.has_entry(entry)]
        if not entries or text is None or not text.strip():
            self._summary_failed_at = self._history.revision
            self._trim()
            return
        digest = ChatMessage(
            ChatRole.USER, text.strip(), self._effects.new_id(), created_at=self._effects.wall, summary=True
        )
        before = self._item_before(entries[0])
        ids = tuple(entry.message.message_id for entry in entries)
        self._delete_at_provider(entries)
        self._history.digest(entries, digest)
        self._ledger.add(digest.message_id)
        self.summarized += len(ids)
        self._effects.send(
            CreateItem(
                command_id=self._effects.new_id(),
                message=digest,
                item_ids=(digest.message_id,),
                previous_item_id=before,
            )
        )
        self._effects.emit(ContextSummarized(message=digest, digested=ids))
        self._effects.emit(MessagesRemoved(message_ids=ids, reason="summary"))
        self._trim()

    def _item_before(self, entry: ContextEntry) -> str:
        """The provider's item in front of an entry; `root` is the front of its conversation."""
        before = self._history.entry_before(entry)
        while before is not None:  # instructions and open calls only: what else is older is digested
            for item_id in reversed(self._items_of(before)):
                if item_id in self._ledger:
                    return item_id
            before = self._history.entry_before(before)
        return "root"

    def _items_of(self, entry: ContextEntry) -> tuple[str, ...]:
        place = self._history.place_of(entry)
        return place.item_ids if place is not None else (entry.message.message_id,)
