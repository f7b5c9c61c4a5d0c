"""What every endpoint of one application shares.

Owns: `WebState`. Made by `realtime.web.application`, given to each endpoint. Never acts.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from realtime.web.calls import Calls
from realtime.web.guard import Guard
from realtime.web.options import WebLimits

__all__ = ["WebState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """The parts of one application."""

    calls: Calls
    """Calls in progress."""
    guard: Guard
    """Who may call."""
    limits: WebLimits
    """What is allowed."""
    model_name: str
    """Shown to the page before a call."""

    def base_path(self, connection: HTTPConnection) -> str:
        """Where the application is mounted, as the caller sees it; empty at the root."""
        return str(connection.scope.get("root_path", "")).rstrip("/")
