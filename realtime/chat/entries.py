"""The places of a context: a linked list that knows its order, and what each place is to turns, frames and tool rounds.

Owns: `EntryList`, which keeps, changed by each operation and never recomputed:

- the order: entries are linked, and each has a number that rises along the list, so that "which comes first" is one
  comparison and inserting costs O(1) amortised;
- the leading instructions: a prefix, ending at `last_leading`. An instruction leads if nothing but instructions stood before
  it when it came; what a trim lays bare later does not begin to lead, or it could never be trimmed again;
- turns (behaviour.md W3): the entries of one party in a row, linked by their first entries. Frames, instructions in
  mid-conversation and summaries belong to no party: they neither begin a turn nor end one;
- frames (H8): all in order, and by source;
- tool rounds (F2, F4): which result answers which call; calls in a row belong together, each with its result.

Driven by `ChatContext`, which is its only owner. Never counts tokens (`tally` does), never decides what goes (`window`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

from realtime.chat.chain import Chain
from realtime.chat.entry import ContextEntry
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.pairing import Pairing

__all__ = ["EntryList", "party_of"]

_GAP = 1 << 32
"""Between the numbers of neighbors that were appended."""
_PUSH = 1 << 8
"""By how much a number is moved where a gap is used up."""


def party_of(message: ChatMessage) -> int:
    """Whose contribution a message is: 1 the user's, 2 the model's (its tools included), 0 nobody's."""
    if message.role is ChatRole.ASSISTANT or message.is_result:
        return 2
    if message.role is ChatRole.USER and not message.summary and not message.is_frame:
        return 1
    return 0


def _signature(message: ChatMessage) -> tuple[object, ...]:
    """What of a message the list depends on."""
    return (
        message.role,
        message.tool_call_id,
        tuple(call.call_id for call in message.tool_calls),
        message.source if message.is_frame else None,
        party_of(message),
    )


class EntryList(Chain):
    """The entries of one context, in order."""

    def __init__(self) -> None:
        super().__init__("preceding", "following")
        self.last_leading: ContextEntry | None = None
        """The last of the leading instructions."""
        self.said = Chain("previous_said", "next_said")
        """Those that a party said."""
        self.turn_starts = Chain("previous_turn", "next_turn")
        """Those that begin a turn."""
        self.count = 0
        self.turns = 0
        """How many turns there are."""
        self.user_messages = 0
        """Messages of the user's, frames included."""
        self.frames: OrderedDict[ContextEntry, None] = OrderedDict()
        """All frames, oldest first."""
        self.frames_of: dict[str, OrderedDict[ContextEntry, None]] = {}
        """The frames of each source, oldest first."""
        self.systems: OrderedDict[ContextEntry, None] = OrderedDict()
        """The system messages, oldest first."""
        self.pairing = Pairing()

    def __iter__(self) -> Iterator[ContextEntry]:
        entry = self.first
        while entry is not None:
            yield entry
            entry = entry.following

    def messages(self) -> list[ChatMessage]:
        """All messages, as a new list."""
        found: list[ChatMessage] = []
        entry = self.first
        while entry is not None:
            found.append(entry.message)
            entry = entry.following
        return found

    # -- changing -----------------------------------------------------------------------------------------------------

    # hot path: once per sentence and kept frame
    def insert(self, message: ChatMessage, after: ContextEntry | None) -> ContextEntry:
        """Put a message behind an entry (None: at the front)."""
        entry = ContextEntry(message)
        before = self.link(entry, after)
        if before is None:
            entry.order = 0 if after is None else after.order + _GAP
        else:
            self._number(entry, before)
        entry.is_listed = True
        self.count += 1
        self._attach(entry)
        return entry

    def remove(self, entry: ContextEntry, leaving: Collection[ContextEntry] = ()) -> None:
        """Take an entry out.

        Args:
            entry: The entry.
            leaving: The set of those that are taken out with it.
        """
        self._detach(entry, leaving)
        self.unlink(entry)
        entry.is_listed = False
        self.count -= 1

    def replace(self, entry: ContextEntry, message: ChatMessage) -> None:
        """Put another message in an entry's place."""
        if _signature(message) == _signature(entry.message):
            entry.message = message
            return
        self._detach(entry)
        entry.message = message
        self._attach(entry)

    @staticmethod
    def _number(entry: ContextEntry, before: ContextEntry) -> None:
        """Number an entry between its neighbors; where no number is left, the ones behind move up."""
        if entry.preceding is None:
            entry.order = before.order - _GAP
            return
        entry.order = (entry.preceding.order + before.order) // 2
        moved: ContextEntry | None = entry
        while moved is not None and moved.preceding is not None and moved.order <= moved.preceding.order:
            moved.order = moved.preceding.order + _PUSH
            moved = moved.following

    def _attach(self, entry: ContextEntry) -> None:
        message = entry.message
        if message.role is ChatRole.USER:
            self.user_messages += 1
        elif message.role is ChatRole.SYSTEM:
            _put(self.systems, entry)
        self._attach_leading(entry)
        if party_of(message):
            self._attach_said(entry)
        elif message.is_frame:
            _put(self.frames, entry)
            _put(self.frames_of.setdefault(message.source, OrderedDict()), entry)
        if message.tool_calls or message.is_result:
            self.pairing.add(entry)

    def _detach(self, entry: ContextEntry, leaving: Collection[ContextEntry] = ()) -> None:
        message = entry.message
        if message.role is ChatRole.USER:
            self.user_messages -= 1
        elif message.role is ChatRole.SYSTEM:
            del self.systems[entry]
        if entry.is_leading:
            self._detach_leading(entry)
        if party_of(message):
            self._detach_said(entry)
        elif message.is_frame:
            del self.frames[entry]
            of_source = self.frames_of[message.source]
            del of_source[entry]
            if not of_source:
                del self.frames_of[message.source]
        if message.tool_calls or message.is_result:
            self.pairing.remove(entry, leaving)

    # -- leading instructions -----------------------------------------------------------------------------------------

    def _attach_leading(self, entry: ContextEntry) -> None:
        before = entry.preceding
        leads = entry.message.is_instruction and not entry.message.is_result
        if leads and (before is None or before.is_leading):
            entry.is_leading = True
            if self.last_leading is before:
                self.last_leading = entry
            return
        behind = entry.following
        if (
            behind is not None and behind.is_leading
        ):  # it stands between instructions: those behind do not lead any more
            self.last_leading = before
            while behind is not None and behind.is_leading:
                behind.is_leading = False
                behind = behind.following

    def _detach_leading(self, entry: ContextEntry) -> None:
        entry.is_leading = False
        if self.last_leading is entry:
            self.last_leading = entry.preceding

    # -- turns --------------------------------------------------------------------------------------------------------

    def _attach_said(self, entry: ContextEntry) -> None:
        previous = self.said.last
        if entry.following is not None:
            previous = entry.preceding
            while previous is not None and not party_of(previous.message):
                previous = previous.preceding
        behind = self.said.link(entry, previous)
        self._settle_start(entry)
        if behind is not None:
            self._settle_start(behind)

    def _detach_said(self, entry: ContextEntry) -> None:
        previous, behind = entry.previous_said, entry.next_said
        self.said.unlink(entry)
        before = entry.previous_turn
        was_start = entry.is_turn_start
        if was_start:
            self._unlink_turn(entry)
        if behind is not None and was_start and not behind.is_turn_start:
            if previous is None or party_of(previous.message) != party_of(behind.message):
                self._link_turn(behind, before)
        elif behind is not None:
            self._settle_start(behind)

    def _settle_start(self, entry: ContextEntry) -> None:
        previous = entry.previous_said
        starts = previous is None or party_of(previous.message) != party_of(entry.message)
        if starts == entry.is_turn_start:
            return
        if not starts:
            self._unlink_turn(entry)
            return
        before = self.turn_starts.last if entry.next_said is None else previous
        while before is not None and not before.is_turn_start:
            before = before.previous_said
        self._link_turn(entry, before)

    def _link_turn(self, entry: ContextEntry, before: ContextEntry | None) -> None:
        self.turn_starts.link(entry, before)
        entry.is_turn_start = True
        self.turns += 1

    def _unlink_turn(self, entry: ContextEntry) -> None:
        self.turn_starts.unlink(entry)
        entry.is_turn_start = False
        self.turns -= 1


def _put(entries: OrderedDict[ContextEntry, None], entry: ContextEntry) -> None:
    """Add an entry to a collection that is kept in the list's order."""
    newest = next(reversed(entries), None)
    entries[entry] = None
    if newest is None or newest.order < entry.order:
        return
    for one in sorted(entries, key=lambda one: one.order):
        entries.move_to_end(one)
