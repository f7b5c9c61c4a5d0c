"""What a user at the other end of a call is to do, step by step.

Owns: the steps of a `SyntheticPeer`'s script. Pure values; done by `SyntheticPeer.play`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Pause", "Say", "Show", "Step", "Turn"]


@dataclass(frozen=True, slots=True)
class Say:
    """Speak."""

    what: Any
    """As for `SyntheticPeer.say`."""


@dataclass(frozen=True, slots=True)
class Show:
    """Turn the camera to something."""

    picture: Any
    """As for `SyntheticPeer.show`."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Be silent."""

    seconds: float
    """For how long."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Speak, and listen to the reply to its end."""

    what: Any
    """As for `SyntheticPeer.say`."""


Step = Say | Show | Pause | Turn
