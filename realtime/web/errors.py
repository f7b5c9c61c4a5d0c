"""What goes wrong between a caller and the server, with the code and the HTTP status that it is told by.

Owns: `CallRefused`, the table of codes, and what is said of a session's fault. Raised by every part of the room, told by `signalling`, `simple` and `whip`.
"""

from __future__ import annotations

import logging
from typing import Final, Literal

from realtime.errors import RealtimeError, UserError

__all__ = ["CallRefused", "RefusalCode", "session_refusal"]

logger = logging.getLogger(__name__)

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


def session_refusal(error: BaseException) -> CallRefused:
    """What a caller is told of a session that could not begin or go on.

    An application's own words (`UserError`) are for the caller. A provider's, with its hosts and ports, are for the log.
    """
    if isinstance(error, CallRefused):
        return error
    if isinstance(error, UserError):
        return CallRefused("session_failed", str(error))
    if isinstance(error, TimeoutError):
        return CallRefused("session_failed", "the model did not answer in time")
    if isinstance(error, RealtimeError):
        logger.warning("a session could not begin or go on: %s", error)
        return CallRefused("session_failed", "the model could not be reached, or refused")
    logger.error("a session could not begin or go on", exc_info=error)
    return CallRefused("session_failed", "the session could not begin")
