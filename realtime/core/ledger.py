"""What the provider's conversation holds, apart from what we keep (behaviour.md W5).

Owns: the item ids that the provider has, and what it still holds though it is gone here, with its tokens: whole items, and
pictures of items whose words are still here. Driven by `SessionMachine`. Never sends.
"""

from __future__ import annotations

from collections import OrderedDict

__all__ = ["Ledger"]

_MOST_ITEMS = 20_000
"""Items that are remembered; of a conversation longer than any model's window the oldest are forgotten."""
_MOST_UNDER_WAY = 1_024
"""Deletions that the provider may not have confirmed; some providers never do."""


class Ledger:
    """The provider's items, oldest first."""

    def __init__(self) -> None:
        """An empty conversation."""
        self._items: OrderedDict[str, None] = OrderedDict()
        self._gone_here: OrderedDict[str, int] = OrderedDict()
        self._pictures: dict[str, int] = {}
        self._restored: set[str] = set()
        self._deleting: OrderedDict[str, None] = OrderedDict()
        self.gone_tokens = 0
        """Tokens that the provider has and the context has not."""

    def __contains__(self, item_id: object) -> bool:
        """Whether the provider has an item."""
        return item_id in self._items

    def __len__(self) -> int:
        """How many items the provider has."""
        return len(self._items)

    def add(self, item_id: str, *, is_restored: bool = False) -> None:
        """The provider has an item, unless it was told to delete it before it said so."""
        if item_id in self._deleting:
            return
        self._items.setdefault(item_id)
        if is_restored:
            self._restored.add(item_id)
        while len(self._items) > _MOST_ITEMS:
            self.remove(next(iter(self._items)))

    def is_spoken(self, item_id: str) -> bool:
        """Whether the provider has an item as it was spoken: one that was restored is text there, whatever it was."""
        return item_id in self._items and item_id not in self._restored

    def delete(self, item_id: str) -> None:
        """The provider was told to delete an item."""
        self.remove(item_id)
        self._deleting[item_id] = None
        while len(self._deleting) > _MOST_UNDER_WAY:
            self._deleting.popitem(last=False)

    def is_deleting(self, item_id: str) -> bool:
        """Whether the provider was told to delete an item and has not said that it did."""
        return item_id in self._deleting

    def remove(self, item_id: str) -> None:
        """The provider has deleted an item, or never had it."""
        self._deleting.pop(item_id, None)
        self._items.pop(item_id, None)
        self._restored.discard(item_id)
        self.gone_tokens -= self._gone_here.pop(item_id, 0) + self._pictures.pop(item_id, 0)

    def mark_gone(self, item_id: str, tokens: int) -> None:
        """An item left the context while the provider keeps it."""
        if item_id in self._items and item_id not in self._gone_here:
            self._gone_here[item_id] = tokens
            self.gone_tokens += tokens

    def lost_picture(self, item_id: str, tokens: int) -> None:
        """A picture left a message of the context while the provider keeps it in its item."""
        if item_id in self._items:
            self._pictures[item_id] = self._pictures.get(item_id, 0) + tokens
            self.gone_tokens += tokens

    def oldest_gone(self) -> str | None:
        """The oldest item that only the provider has."""
        return next(iter(self._gone_here), None)

    @property
    def gone_count(self) -> int:
        """How many items only the provider has."""
        return len(self._gone_here)

    def clear(self) -> None:
        """A new conversation at the provider."""
        self._items.clear()
        self._restored.clear()
        self._gone_here.clear()
        self._pictures.clear()
        self._deleting.clear()
        self.gone_tokens = 0
