"""The application's websocket of a telephone call, whichever package it is of.

Owns: the shapes that are known, `CallWebSocket` and `TextWebSocket`, and `ways`, which finds out how one sends and receives. Driven
by `TelephonyStream`. It never reads or sends anything itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from realtime.errors import ArgumentError

__all__ = ["CallWebSocket", "Receive", "Send", "TextWebSocket", "ways"]


class CallWebSocket(Protocol):
    """A websocket as the package `websockets` has it."""

    def send(self, message: str, /) -> Awaitable[object]:
        """Send text."""
        ...

    def recv(self) -> Awaitable[str | bytes]:
        """Wait for the next message; raise when there is none any more."""
        ...


class TextWebSocket(Protocol):
    """A websocket as Starlette and FastAPI have it, accepted."""

    def send_text(self, data: str, /) -> Awaitable[object]:
        """Send text."""
        ...

    def receive_text(self) -> Awaitable[str]:
        """Wait for the next text; raise when there is none any more."""
        ...


Send = Callable[[str], Awaitable[object]]
Receive = Callable[[], Awaitable[str | bytes]]


def ways(websocket: Any) -> tuple[Send, Receive]:
    """How a websocket sends and receives text.

    Raises:
        ArgumentError: It does neither in a way that is known.
    """
    for sender, receiver in (("send_text", "receive_text"), ("send", "recv"), ("send_str", "receive_str")):
        send: Any = getattr(websocket, sender, None)
        receive: Any = getattr(websocket, receiver, None)
        if callable(send) and callable(receive):
            return cast("Send", send), cast("Receive", receive)
    raise ArgumentError(
        "websocket", websocket, "a websocket with send_text() and receive_text(), or send() and recv(), both async"
    )
