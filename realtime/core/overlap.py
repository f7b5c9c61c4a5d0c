"""Where a turn stands that the user began while a reply was being made (behaviour.md H3).

Owns: which turns were begun during the running response, and for how long they wait for its end. Only for providers that do
not say where an item joined their conversation; elsewhere their order alone decides. Driven by `realtime.core.floor` and,
when a wait is over, by `SessionMachine.handle_deadline`. Never decides what a turn says.
"""

from __future__ import annotations

from realtime.core.effects import Effects
from realtime.core.history import History
from realtime.core.places import Place, PlaceState

__all__ = ["Overlap"]

REPLY_PATIENCE_SECONDS = 5.0
"""How long a complete turn waits for the end of the reply that it was begun in."""


class Overlap:
    """The response that is being made, and the turns that were begun meanwhile."""

    def __init__(self, *, history: History, effects: Effects, is_needed: bool) -> None:
        """No response is being made.

        Args:
            history: Where the turns stand.
            effects: The present moment.
            is_needed: The provider does not report the order of its items.
        """
        self._history = history
        self._effects = effects
        self.is_needed = is_needed
        self._response_id: str | None = None
        self._end: Place | None = None
        self._turns: list[Place] = []

    def response_started(self, response_id: str) -> None:
        """The model began a response: what it makes stands before what comes meanwhile."""
        if self.is_needed and response_id != self._response_id:
            self.response_ended(self._response_id)
            self._response_id, self._end = response_id, self._history.begin_reply(response_id)

    def turn_placed(self, place: Place) -> None:
        """A turn of the user's has its place: behind the reply that is being made, if one is."""
        if self._end is not None and place not in self._turns:
            self._turns.append(place)

    def response_ended(self, response_id: str | None) -> None:
        """A response is over: the turns behind it stay there."""
        if self._end is None or response_id != self._response_id:
            return
        end, self._end, self._response_id = self._end, None, None
        self._turns.clear()
        self._history.end_reply(end)

    @property
    def gives_way_at(self) -> float | None:
        """When the first complete turn has waited for long enough; None if none waits."""
        settled = [place.settled_at for place in self._turns if place.settled_at is not None]
        return min(settled) + REPLY_PATIENCE_SECONDS if settled else None

    def give_way(self, *, all_of_them: bool = False) -> None:
        """The reply does not end: turns that have waited for long enough stand before it.

        Args:
            all_of_them: Those that are not complete yet, too: the reply will not end any more.
        """
        if self._end is None:
            return
        moment = self._effects.now - REPLY_PATIENCE_SECONDS
        going = [
            place
            for place in self._turns
            if all_of_them or (place.settled_at is not None and place.settled_at <= moment)
        ]
        before = self._beginning(self._end)
        for place in going:
            self._turns.remove(place)
            if not place.visible and not (place.state is PlaceState.FINAL and place.message is None):
                self._history.move_before(place, before)

    def _beginning(self, end: Place) -> Place:
        """The first place of the reply that is not shown yet."""
        first = end
        while (
            (before := first.preceding) is not None and not before.visible and before.response_id == self._response_id
        ):
            first = before
        return first
