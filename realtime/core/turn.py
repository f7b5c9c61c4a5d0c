"""The turn and response tables: how the user's turn and the model's response go on, one response at a time (T1).

Owns: `TRANSITIONS` (the response) and `TURN_TRANSITIONS` (a spoken turn), the two tables of what may follow what, and what
walks them: `ResponseSlot` and `TurnProgress`. Driven by `realtime.core.responding` and `realtime.core.speech`. Never sends:
it says what should be sent. docs/turn-table.md shows both and is generated from them.

::

    IDLE ──wish──► REQUESTED ──started──► RUNNING ──ended──► IDLE
     └──started (the server asked by itself)──►┘  └─cancel─► CANCELLING ──ended──► IDLE

    BEGUN ──sound──► SPEAKING ──silence──► SPOKEN ──commit──► COMMITTED ──record──► RECORDED
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from realtime.errors import IllegalTransition

__all__ = [
    "TRANSITIONS",
    "TURN_TRANSITIONS",
    "ResponseInput",
    "ResponseSlot",
    "ResponseState",
    "TurnInput",
    "TurnProgress",
    "TurnState",
    "Wish",
]


class ResponseState(Enum):
    """What the provider is doing for us."""

    IDLE = "idle"
    """No response is running and none was asked for."""
    REQUESTED = "requested"
    """One was asked for and has not begun."""
    RUNNING = "running"
    """One is running."""
    CANCELLING = "cancelling"
    """The running one was cancelled and has not ended."""


class ResponseInput(Enum):
    """What can happen to the response."""

    WISH = "wish"
    """Somebody wants a response."""
    STARTED = "started"
    """The provider began one."""
    ENDED = "ended"
    """The running one is over."""
    REFUSED = "refused"
    """The provider refused to begin one."""
    CANCEL = "cancel"
    """The running one is not wanted any more."""
    LINK_LOST = "link_lost"
    """The connection is gone, and the response with it."""


class TurnState(Enum):
    """How far a spoken turn of the user's is."""

    BEGUN = "begun"
    """Its item is known, and nobody says whether it is still being spoken."""
    SPEAKING = "speaking"
    """It is being spoken."""
    SPOKEN = "spoken"
    """It has been spoken."""
    COMMITTED = "committed"
    """It is an item of the provider's; its words may be missing."""
    RECORDED = "recorded"
    """It is a message. What comes for it now is too late."""
    DROPPED = "dropped"
    """It became nothing: cleared, or lost with its connection to be said again."""


class TurnInput(Enum):
    """What can happen to a spoken turn."""

    SOUND = "sound"
    """The user speaks."""
    SILENCE = "silence"
    """The user has stopped."""
    COMMIT = "commit"
    """It became an item."""
    RECORD = "record"
    """Its words are final, failed, given up, or not wanted; or the session ends."""
    DROP = "drop"
    """Nothing comes of it."""


_S, _I = ResponseState, ResponseInput

TRANSITIONS: Mapping[ResponseState, Mapping[ResponseInput, ResponseState]] = {
    _S.IDLE: {_I.WISH: _S.REQUESTED, _I.STARTED: _S.RUNNING, _I.LINK_LOST: _S.IDLE},
    _S.REQUESTED: {
        _I.WISH: _S.REQUESTED,
        _I.STARTED: _S.RUNNING,
        _I.REFUSED: _S.IDLE,
        _I.LINK_LOST: _S.IDLE,
    },
    _S.RUNNING: {
        _I.WISH: _S.RUNNING,
        _I.STARTED: _S.RUNNING,
        _I.ENDED: _S.IDLE,
        _I.REFUSED: _S.RUNNING,
        _I.CANCEL: _S.CANCELLING,
        _I.LINK_LOST: _S.IDLE,
    },
    _S.CANCELLING: {
        _I.WISH: _S.CANCELLING,
        _I.STARTED: _S.RUNNING,
        _I.ENDED: _S.IDLE,
        _I.REFUSED: _S.CANCELLING,
        _I.CANCEL: _S.CANCELLING,
        _I.LINK_LOST: _S.IDLE,
    },
}
"""State × input → state. What is not in it is illegal: it raises and changes nothing."""

_T, _H = TurnState, TurnInput

TURN_TRANSITIONS: Mapping[TurnState, Mapping[TurnInput, TurnState]] = {
    _T.BEGUN: {
        _H.SOUND: _T.SPEAKING,
        _H.SILENCE: _T.SPOKEN,
        _H.COMMIT: _T.COMMITTED,
        _H.RECORD: _T.RECORDED,
        _H.DROP: _T.DROPPED,
    },
    _T.SPEAKING: {
        _H.SOUND: _T.SPEAKING,
        _H.SILENCE: _T.SPOKEN,
        _H.COMMIT: _T.COMMITTED,
        _H.RECORD: _T.RECORDED,
        _H.DROP: _T.DROPPED,
    },
    _T.SPOKEN: {
        _H.SOUND: _T.SPEAKING,
        _H.SILENCE: _T.SPOKEN,
        _H.COMMIT: _T.COMMITTED,
        _H.RECORD: _T.RECORDED,
        _H.DROP: _T.DROPPED,
    },
    _T.COMMITTED: {
        _H.SILENCE: _T.COMMITTED,
        _H.COMMIT: _T.COMMITTED,
        _H.RECORD: _T.RECORDED,
        _H.DROP: _T.DROPPED,
    },
    _T.RECORDED: {},
    _T.DROPPED: {},
}
"""As `TRANSITIONS`, for a spoken turn. Providers differ in what they say and when: any step may be left out."""


class TurnProgress:
    """How far one spoken turn is."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        """Begun."""
        self.state = TurnState.BEGUN

    def go(self, what: TurnInput) -> None:
        """Something happened to it.

        Raises:
            IllegalTransition: It cannot happen now; nothing was changed.
        """
        following = TURN_TRANSITIONS[self.state].get(what)
        if following is None:
            raise IllegalTransition(f"a turn that is {self.state.value} cannot get a {what.value}")
        self.state = following


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A response that somebody wants."""

    tool_choice: Literal["auto", "none", "required"] | None = None
    """Overrides the session's."""
    instructions: str | None = None
    """Overrides the session's."""

    def fold(self, later: Wish) -> Wish:
        """Two wishes are one: the later one's overrides win, `none` stays."""
        return Wish(
            tool_choice="none"
            if "none" in (self.tool_choice, later.tool_choice)
            else later.tool_choice or self.tool_choice,
            instructions=later.instructions or self.instructions,
        )


class ResponseSlot:
    """The one response that may be under way, and the wish that waits for its end."""

    def __init__(self) -> None:
        """Idle, nothing wanted."""
        self.state = ResponseState.IDLE
        self.response_id: str | None = None
        """The running response."""
        self.command_id: str | None = None
        """The `CreateResponse` that was sent and not yet answered."""
        self.requested: Wish | None = None
        """What was asked for and has not begun."""
        self.waiting: Wish | None = None
        """What is wanted next."""
        self._refused_once = False

    def _go(self, what: ResponseInput) -> None:
        following = TRANSITIONS[self.state].get(what)
        if following is None:
            raise IllegalTransition(f"a response cannot be {what.value} while it is {self.state.value}")
        self.state = following

    @property
    def is_busy(self) -> bool:
        """Whether a response is running or asked for."""
        return self.state is not ResponseState.IDLE

    def wish(self, wish: Wish) -> None:
        """A response is wanted; it waits until `take` finds the slot idle."""
        self.waiting = wish if self.waiting is None else self.waiting.fold(wish)

    def take(self) -> Wish | None:
        """If the slot is idle and something is wanted: the wish to send now (tell `sent` its command)."""
        if self.waiting is None or self.state is not ResponseState.IDLE:
            return None
        self._go(ResponseInput.WISH)
        self.requested, self.waiting = self.waiting, None
        return self.requested

    def sent(self, command_id: str) -> None:
        """The wish that was taken travels as this command."""
        self.command_id = command_id

    def started(self, response_id: str) -> None:
        """The provider began a response, asked for or not."""
        self._go(ResponseInput.STARTED)
        self.response_id = response_id
        self.command_id = self.requested = None
        self._refused_once = False

    def ended(self, response_id: str) -> bool:
        """A response is over.

        Returns:
            True if it was the running one; a stale end changes nothing (field case B31).
        """
        if response_id != self.response_id:
            return False
        self._go(ResponseInput.ENDED)
        self.response_id = None
        return True

    def cancelled(self) -> None:
        """The running response is not wanted any more."""
        self._go(ResponseInput.CANCEL)

    def refused(self, *, may_retry: bool) -> bool:
        """The provider refused the response that was asked for.

        Args:
            may_retry: The refusal was only about the moment.

        Returns:
            True if it is asked for once more when the way is free; False after a second refusal.
        """
        again = self.requested
        self._go(ResponseInput.REFUSED)
        self.command_id = self.requested = None
        if not may_retry or self._refused_once or again is None:
            self._refused_once = False
            return False
        self._refused_once = True
        self.waiting = again if self.waiting is None else again.fold(self.waiting)
        return True

    def link_lost(self) -> None:
        """The connection is gone. What was asked for and had not begun is wanted again."""
        self._go(ResponseInput.LINK_LOST)
        if self.requested is not None:
            self.waiting = self.requested if self.waiting is None else self.requested.fold(self.waiting)
        self.response_id = self.command_id = self.requested = None

    def forget_wish(self) -> None:
        """Nothing is wanted any more."""
        self.waiting = None
