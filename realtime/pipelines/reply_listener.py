"""What was heard, measured where it is heard (behaviour.md P0: the listener's own report overrides).

Owns: `ReplyListener`: the account of what was given to the reply track and has not been reported as heard. Driven by
`ReplyPlayer`, which tells it what the track gave away, and by whoever knows the loudspeaker: a browser page reports through
`realtime.web`. It plays nothing and knows no transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from realtime.core.settings import check_count, check_number
from realtime.pipelines.clock import Clock

__all__ = ["ReplyListener"]

_SILENT_SECONDS = 2.0
"""A listener that has not reported for so long measures no more: what was given to the track counts as heard again."""
_MOST_WAITING = 6_000
"""Pieces of 20 ms that may wait for a report; the oldest count as heard beyond."""


class _Piece(NamedTuple):
    """So far a reply had been given away."""

    mark: int
    reply_id: str
    played_ms: int
    finished: bool


class ReplyListener:
    """Measures at the listener what was heard of the replies.

    Note the `mark` whenever something is sent to the listener; say `heard` with the newest mark that has come out of the
    loudspeaker. From the first report on, replies advance by reports; when they stop coming for two seconds, by what the track
    gave away, as without a listener. ``away`` while the listener cannot hear: nothing counts then, and the reply waits.
    """

    def __init__(self, tell: Callable[[str, int, bool], None], catch_up: Callable[[], object], clock: Clock) -> None:
        """Nobody measures yet.

        Args:
            tell: Called with a reply's id, its position in ms and whether it has been heard out, for what had to wait.
            catch_up: Has `take` called for what the track gave away and did not tell.
            clock: For noticing that reports have stopped.
        """
        self._tell = tell
        self._catch_up = catch_up
        self.wants_pieces = False
        """Somebody measures, or is about to: from then on `take` is to be called for every piece."""
        self._clock = clock
        self._mark = 0
        self._waiting: deque[_Piece] = deque()
        self._heard_at: float | None = None
        self._away_until: float | None = None

    # -- what the listener does -----------------------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """All that the track has given away so far; from the first reading on it rises with every piece of a reply."""
        if not self.wants_pieces:
            self._want_pieces()
        return self._mark

    def heard(self, mark: int) -> None:
        """Everything up to a mark has been heard. A mark that is older than one before does nothing.

        Raises:
            ArgumentError: It is no mark.
        """
        check_count("mark", mark)
        self._want_pieces()
        self._heard_at = self._clock.now()
        self._give(lambda piece: piece.mark <= mark)

    def away(self, seconds: float) -> None:
        """The listener cannot hear, for so long at most: nothing counts as heard meanwhile."""
        check_number("seconds", seconds, above=True)
        self._want_pieces()
        self._away_until = self._clock.now() + seconds

    def back(self) -> None:
        """The listener hears again."""
        self._away_until = None
        if self._heard_at is not None:
            self._heard_at = self._clock.now()

    @property
    def is_away(self) -> bool:
        """Whether nothing counts as heard now."""
        return self._away_until is not None and self._clock.now() < self._away_until

    @property
    def measures(self) -> bool:
        """Whether reports decide what was heard."""
        return self.is_away or (self._heard_at is not None and self._clock.now() - self._heard_at <= _SILENT_SECONDS)

    def _want_pieces(self) -> None:
        if not self.wants_pieces:
            self.wants_pieces = True
            self._catch_up()

    # -- what the player does -------------------------------------------------------------------------------------------

    def take(self, reply_id: str, played_ms: int, *, finished: bool) -> bool:
        """The track gave a piece of a reply away, or several while nobody measures.

        Returns:
            Whether that counts as heard, as nobody measures; else it is told later.
        """
        self._mark += 1
        if not self._waiting and ((self._heard_at is None and self._away_until is None) or not self.measures):
            return True
        self._waiting.append(_Piece(self._mark, reply_id, played_ms, finished))
        if len(self._waiting) > _MOST_WAITING:
            oldest = self._waiting[0].mark
            self._give(lambda piece: piece.mark <= oldest)
        self.look()
        return False

    def look(self) -> None:
        """If reports have stopped, count as without them."""
        if self._waiting and not self.measures:
            self._give(lambda _: True)

    def forget(self, reply_id: str) -> None:
        """A reply was cut: what waits of it will not be heard."""
        self._waiting = deque(piece for piece in self._waiting if piece.reply_id != reply_id)

    def _give(self, is_heard: Callable[[_Piece], bool]) -> None:
        """Tell the newest position of each reply among the pieces at the front that were heard."""
        newest: dict[str, _Piece] = {}
        while self._waiting and is_heard(self._waiting[0]):
            piece = self._waiting.popleft()
            newest[piece.reply_id] = piece
        for piece in newest.values():
            self._tell(piece.reply_id, piece.played_ms, piece.finished)
