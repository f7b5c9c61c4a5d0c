"""What goes wrong between a caller and the server, with the code and the HTTP status that it is told by.

Owns: `CallRefused` and the table of codes. Raised by every part of the room, told by `signalling`, `simple` and `whip`.
"""

from __future__ import annotations

from typing import Final, Literal

from realtime.errors import RealtimeError

__all__ = ["CallRefused", "RefusalCode"]

RefusalCode = Literal[
    "bad_message",
    "bad_type",
    "bad_origin",
    "bad_token",
    "too_large",
    "full",
    "rate",
    "connect_timeout",
    "connect_failed",
    "no_media",
    "peer_lost",
    "session_failed",
    "refused",
    "gone",
    "replaced",
    "draining",
]
"""Told to the caller as `error.code` (docs/web-protocol.md)."""

_STATUS: Final[dict[RefusalCode, int]] = {
    "bad_message": 400,
    "bad_type": 415,
    "bad_origin": 403,
    "bad_token": 401,
    "too_large": 413,
    "full": 503,
    "rate": 429,
    "connect_timeout": 504,
    "connect_failed": 504,
    "no_media": 504,
    "peer_lost": 504,
    "session_failed": 502,
    "refused": 403,
    "gone": 404,
    "replaced": 409,
    "draining": 503,
}


class CallRefused(RealtimeError):  # noqa: N818  (an answer to a caller, as SessionClosed is)
    """The caller cannot have what it asked for.

    Attributes:
        code: Which case it is.
        message: Why, in words that may be shown.
        retry_seconds: When asking again makes sense; None: never, or at once.
    """

    def __init__(self, code: RefusalCode, message: str, *, retry_seconds: int | None = None) -> None:
        """Say which case it is and why."""
        super().__init__(f"{code}: {message}")
        self.code: RefusalCode = code
        self.message = message
        self.retry_seconds = retry_seconds

    @property
    def status(self) -> int:
        """The HTTP status that tells it."""
        return _STATUS[self.code]
