"""What a context tells about itself (behaviour.md V4; seed: chat and context).

Owns: `Readable`, the reading half of `ChatContext`. Driven by applications, at any time, also while a session runs on the
context. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from realtime.chat.conversions import Convertible
from realtime.chat.entry import ContextEntry
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.chat.tally import Tally

__all__ = ["Readable"]


def _words_rule(message: ChatMessage) -> int:
    """The seeds' estimate: two tokens for each word between white space, of contents only."""
    return 2 * len(message.content.split())


class Readable(Convertible):
    """The reading half of `ChatContext`."""

    __slots__ = ()

    def messages(self) -> list[ChatMessage]:
        """The messages, oldest first, as a new list."""
        return list(self.store.snapshot())

    def get(self, message_id: str) -> ChatMessage | None:
        """The message with an id; None if there is none."""
        entry = self._entry(message_id)
        return None if entry is None else entry.message

    def _entry(self, message_id: str) -> ContextEntry | None:
        return self.store.by_id.get(message_id) if isinstance(message_id, str) and message_id else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def handoffs(self) -> list[AgentHandoff]:
        """The handoffs, oldest first, as a new list."""
        return list(self.store.handoffs)

    def last_handoff(self) -> AgentHandoff | None:
        """The newest handoff; None if there is none."""
        return self.store.handoffs[-1] if self.store.handoffs else None

    def __len__(self) -> int:
        """How many messages there are."""
        return self.store.entries.count

    def __bool__(self) -> bool:
        """True, empty or not: ``context or other`` must not swap contexts."""
        return True

    def __iter__(self) -> Iterator[ChatMessage]:
        """The messages, oldest first, as they are now."""
        return iter(self.messages())

    def __eq__(self, other: object) -> bool:
        """By messages and handoffs."""
        if not isinstance(other, Readable):
            return NotImplemented
        return self.store.snapshot() == other.store.snapshot() and self.store.handoffs == other.store.handoffs

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"<ChatContext {len(self)} messages, {len(self.store.handoffs)} handoffs>"

    def estimated_tokens(self) -> int:
        """A rough count: two tokens for each word between white space, of all contents. O(1): the total is kept."""
        return self.words().total

    def turn_count(self) -> int:
        """How many messages are the user's, frames included."""
        return self.store.entries.user_messages

    def spoken_turn_count(self) -> int:
        """How many messages are the user's, sampled frames left out."""
        return self.store.entries.user_messages - len(self.store.entries.frames)

    def words(self) -> Tally:
        """The kept totals of the seeds' estimate."""
        return self.store.tally(_words_rule, _words_rule)
