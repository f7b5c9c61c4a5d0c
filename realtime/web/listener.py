"""Who is told what happens in a call.

Owns: the `Listener` protocol. Driven by `realtime.web.call`; a signalling websocket is one. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Listener"]


class Listener(Protocol):
    """Who is told what happens in a call: a signalling websocket."""

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message soon; never waits."""
        ...

    def leave(self) -> None:
        """Say what is left to be said, and go: the call goes on without this listener, or not at all."""
        ...
