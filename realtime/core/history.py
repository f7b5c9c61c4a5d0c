"""Where each message stands (behaviour.md H0–H3, H5).

Owns: the places, in the order of the provider's conversation; each is open (something is still missing), final, or void
(it became nothing). Messages become visible — join the history and the context — when everything before them is final,
and then never move. A tool's result is the one exception: it stands right behind the response that called it.
Driven by `SessionMachine` and its parts. Never decides what a message says.

The places are a linked list with an index by item id, so that every operation is O(1) (a snapshot is O(n)).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from realtime.chat.context import ContextEntry, ContextLease
from realtime.chat.messages import ChatMessage
from realtime.core.effects import Effects
from realtime.core.events import MessageCommitted
from realtime.core.places import Place, PlaceState
from realtime.core.units import call_ids, oldest_unit, seeded_round, trimmed_units

__all__ = ["History"]

TRANSCRIPT_PATIENCE_SECONDS = 30.0
"""How long a spoken turn without its transcript holds back what is final behind it (behaviour.md H2)."""
_REMEMBERED_IDS = 1024
"""Ids of places that are gone, so that a replayed report does not make them anew."""


class History:
    """The places of one session."""

    def __init__(self, lease: ContextLease, effects: Effects) -> None:
        """Take over a context; what it holds already is seeded, visible and not new."""
        self._lease = lease
        self._effects = effects
        self._head = Place(())
        self._head.state, self._head.visible = PlaceState.FINAL, True
        self._tail = self._head
        self._frontier = self._head
        self._by_item: dict[str, Place] = {}
        self._by_entry: dict[ContextEntry, Place] = {}
        self._digests: set[ContextEntry] = set()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._held_back: OrderedDict[Place, None] = OrderedDict()
        self._held_since: float | None = None
        self._reply_end: Place | None = None
        self.visible_count = 0
        """Messages in the history."""
        self.revision = 0
        """Rises with every change of the history."""
        self._made = 0
        rounds: dict[str, str] = {}
        for entry in lease.entries():
            place = Place((entry.message.message_id,) if entry.message.message_id else ())
            place.message, place.entry, place.is_new = entry.message, entry, False
            self._by_entry[entry] = place
            place.state, place.visible = PlaceState.FINAL, True
            place.round_id = seeded_round(entry.message, rounds, self._tail)
            self._link(place, self._tail)
            self._frontier = place
            self.visible_count += 1

    # -- places -----------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """The number of the place that was made last."""
        return self._made

    def _link(self, place: Place, behind: Place) -> None:
        self._made += 1
        place.number = self._made
        place.preceding, place.following = behind, behind.following
        if behind.following is None:
            self._tail = place
        else:
            behind.following.preceding = place
        behind.following = place
        for item_id in place.item_ids:
            self._by_item[item_id] = place

    def _unlink(self, place: Place) -> None:
        before, after = place.preceding, place.following
        assert before is not None
        before.following = after
        if after is None:
            self._tail = before
        else:
            after.preceding = before
        if self._frontier is place:
            self._frontier = before
        self._held_back.pop(place, None)
        for item_id in place.item_ids:
            self._by_item.pop(item_id, None)
            self._gone[item_id] = None
        while len(self._gone) > _REMEMBERED_IDS:
            self._gone.popitem(last=False)
        place.preceding = place.following = None

    def find(self, item_id: str) -> Place | None:
        """The place of an item, if it has one."""
        return self._by_item.get(item_id)

    def rename(self, place: Place, item_ids: tuple[str, ...]) -> None:
        """A place's items have other ids at a new connection."""
        for item_id in place.item_ids:
            self._by_item.pop(item_id, None)
        place.item_ids = item_ids
        for item_id in item_ids:
            self._by_item[item_id] = place

    def place_of(self, entry: ContextEntry) -> Place | None:
        """The place whose message stands at an entry of the context; None for a digest."""
        return self._by_entry.get(entry)

    def has_entry(self, entry: ContextEntry) -> bool:
        """Whether an entry is still in the context."""
        return entry in self._by_entry or entry in self._digests

    def entry_before(self, entry: ContextEntry) -> ContextEntry | None:
        """The entry of the context in front of another."""
        return self._lease.preceding(entry)

    def digest(self, entries: Sequence[ContextEntry], message: ChatMessage) -> None:
        """A digest takes the place of a run of the context; the history keeps what it digests."""
        for entry in entries:
            self._forget_entry(entry)
        self._digests.add(self._lease.replace_run(entries, message))

    def leave_context_entries(self, entries: Iterable[ContextEntry]) -> None:
        """Entries (digests included) leave the context; the history keeps their messages."""
        leaving = list(entries)
        for entry in leaving:
            self._forget_entry(entry)
        self._lease.remove(leaving)

    @property
    def has_digest(self) -> bool:
        """Whether a digest of this session's stands in the context."""
        return bool(self._digests)

    def trimmed_units(self) -> Iterator[list[Place]]:
        """What is visible and not in the context, newest first, whole tool rounds; frames are left out."""
        return trimmed_units(self._head, self._frontier)

    def come_back(self, places: Iterable[Place]) -> None:
        """Trimmed messages stand in the context again, where they stood."""
        coming = set(places)
        behind: ContextEntry | None = None
        for place in self.places() if coming else ():
            if place in coming and place.message is not None:
                place.entry = self._lease.insert_after(behind, place.message)
                self._by_entry[place.entry] = place
            behind = place.entry or behind

    def _forget_entry(self, entry: ContextEntry) -> None:
        self._digests.discard(entry)
        place = self._by_entry.pop(entry, None)
        if place is not None:
            place.entry = None

    def was_here(self, item_id: str) -> bool:
        """Whether an item had a place that is gone."""
        return item_id in self._gone

    def reserve(
        self, item_id: str, *, behind: str | None = None, at_end: bool = True, is_output: bool = False
    ) -> Place:
        """Give an item its place; one that has a place keeps it.

        Args:
            item_id: The item.
            behind: The item that it stands behind; None with `at_end=False`: at the front.
            at_end: The provider did not say; it stands at the end.
            is_output: The model made it: it stands within the reply that `begin_reply` marked, if one is.
        """
        place = self._by_item.get(item_id)
        if place is not None:
            return place
        place = Place((item_id,))
        after = self._tail
        if is_output and at_end and self._reply_end is not None:
            assert self._reply_end.preceding is not None
            after = self._reply_end.preceding
            place.response_id = self._reply_end.response_id
        if not at_end:
            known = None if behind is None else self._by_item.get(behind)
            if behind is None:
                after = self._head
            elif known is not None and not self._is_result(known):
                after = known  # a result stands beside its call, wherever its item is: what follows it came last
            while (
                after.following is not None
                and after.following.round_id is not None
                and self._is_result(after.following)
            ):
                after = after.following  # a result belongs to its call, not to the order of items
        if after.visible and after is not self._frontier:
            after = self._frontier  # nothing is inserted ahead of what is visible
        self._link(place, after)
        return place

    @staticmethod
    def _is_result(place: Place) -> bool:
        return place.message is not None and bool(place.message.tool_call_id)

    def settle(self, place: Place, message: ChatMessage | None) -> None:
        """A place is complete: it says `message`, or nothing. A second time changes nothing."""
        if place.state is PlaceState.FINAL:
            return
        place.message, place.state, place.settled_at = message, PlaceState.FINAL, self._effects.now
        place.waits_for_transcript = False
        if message is not None:
            self._hold_back(place)

    def _hold_back(self, place: Place) -> None:
        if not self._held_back:
            self._held_since = place.settled_at
        self._held_back[place] = None

    def begin_reply(self, response_id: str) -> Place:
        """Mark the end of a reply that is being made: what the model makes stands before it, all else that comes behind.

        Only for providers that do not say where an item joined (H3). Nothing behind the mark is shown before it is settled.
        """
        mark = self._reply_end = Place(())
        mark.response_id = response_id
        self._link(mark, self._tail)
        return mark

    def end_reply(self, mark: Place) -> None:
        """The marked reply is over."""
        if self._reply_end is mark:
            self._reply_end = None
        self.settle(mark, None)

    def move_before(self, place: Place, other: Place) -> None:
        """A place that is not shown yet stands before another that is not shown either."""
        assert not place.visible
        assert not other.visible
        assert place.preceding is not None
        place.preceding.following = place.following
        if place.following is None:
            self._tail = place.preceding
        else:
            place.following.preceding = place.preceding
        assert other.preceding is not None
        self._link(place, other.preceding)

    def add_result(self, call: Place, message: ChatMessage, item_ids: tuple[str, ...]) -> Place:
        """Put a tool's result right behind the response that called it, in the order of its calls.

        Args:
            call: The place of the call.
            message: The result.
            item_ids: The provider's items that it becomes.
        """
        after = call
        # behind every call of the round in a row with it, and behind the results of earlier calls
        calls_after: set[str] = set()
        probe = call.following
        while probe is not None and probe.round_id == call.round_id:
            if self._is_result(probe):
                assert probe.message is not None
                if probe.message.tool_call_id in calls_after:
                    break
            else:
                calls_after |= set(probe.item_ids) | call_ids(probe)
            after = probe
            probe = probe.following
        place = Place(item_ids)
        place.message, place.state, place.settled_at = message, PlaceState.FINAL, self._effects.now
        place.round_id, place.response_id = call.round_id, call.response_id
        self._link(place, after)
        if not after.visible:
            self._hold_back(place)
        else:
            self._show(place, behind=after)
            if self._frontier is after:
                self._frontier = place
        return place

    def remove(self, place: Place) -> None:
        """A place leaves the history, and the context if it is still there."""
        if place.visible and place.message is not None:
            self.visible_count -= 1
            self.revision += 1
            self.leave_context([place])
        place.state = PlaceState.FINAL  # nothing more can become of it
        self._unlink(place)

    def leave_context(self, places: Iterable[Place]) -> None:
        """Places leave the context; the history keeps them."""
        self.leave_context_entries([place.entry for place in places if place.entry is not None])

    def change(self, place: Place, message: ChatMessage) -> None:
        """A visible message becomes another value at the same place."""
        place.message = message
        if place.visible:
            self.revision += 1
        if place.entry is not None:
            self._lease.replace(place.entry, message)

    # -- visibility -------------------------------------------------------------------------------------------------

    def advance(self) -> list[Place]:
        """Show every message before which everything is final.

        Returns:
            The places that became visible.
        """
        shown: list[Place] = []
        place = self._frontier.following
        while place is not None and place.state is PlaceState.FINAL:
            following = place.following
            if place.message is None:
                self._unlink(place)
            else:
                self._show(place, behind=None)
                self._frontier = place
                shown.append(place)
            place = following
        if shown:  # what holds back now has held back since the first that it holds back
            first = next(iter(self._held_back), None)
            self._held_since = None if first is None else first.settled_at
        return shown

    def _show(self, place: Place, *, behind: Place | None) -> None:
        assert place.message is not None
        place.visible = True
        self._held_back.pop(place, None)
        self.visible_count += 1
        self.revision += 1
        if behind is None:
            place.entry = self._lease.append(place.message)
        elif behind.entry is not None:
            place.entry = self._lease.insert_after(behind.entry, place.message)
        if place.entry is not None:
            self._by_entry[place.entry] = place
        self._effects.emit(MessageCommitted(message=place.message))

    def patience_ends(self) -> float | None:
        """When the spoken turn that holds everything back has held it back for long enough; None if none does."""
        blocker = self._frontier.following
        if blocker is None or not blocker.waits_for_transcript:
            return None
        if self._held_since is None or not self._held_back:
            return None
        return max(self._held_since, blocker.said_at) + TRANSCRIPT_PATIENCE_SECONDS

    @property
    def blocker(self) -> Place | None:
        """The open place that holds back what follows it, if there is one."""
        return self._frontier.following

    # -- reading ----------------------------------------------------------------------------------------------------

    def places(self) -> Iterator[Place]:
        """The visible places, oldest first."""
        place = self._head.following
        while place is not None and place.visible:
            yield place
            place = place.following

    def waiting(self) -> Iterator[Place]:
        """The places that are not visible yet, in order."""
        place = self._frontier.following
        while place is not None:
            yield place
            place = place.following

    def messages(self) -> list[ChatMessage]:
        """The history: a snapshot."""
        return [place.message for place in self.places() if place.message is not None]

    def new_messages(self) -> list[ChatMessage]:
        """The history without what was seeded: a snapshot."""
        return [place.message for place in self.places() if place.message is not None and place.is_new]

    def oldest_unit(self) -> list[Place]:
        """The oldest visible message, with its whole tool round if it is of one; a round with an open call stays."""
        return oldest_unit(self._head)
