"""Every error that `realtime` raises on purpose.

::

    RealtimeError
    ├── UserError                 what the caller asked for cannot be done; nothing was changed
    │   ├── ArgumentError         … because one argument cannot be (also a ValueError)
    │   │   └── ImageError        … because it is no image, or none that can be read
    │   └── MissingExtraError     … because an optional package is not installed (also an ImportError)
    ├── ModelError                the provider refused or failed; carries its code and message
    ├── LinkLost                  the connection to the provider is gone and will not come back
    ├── SessionClosed             the session has ended; nothing more can be asked of it
    ├── EndOfTrack                a track has given its last frame
    ├── WouldBlock                a ``*_nowait`` call found nothing to take or no room to put
    ├── BusyError                 a consumer fell behind, or a server is full
    ├── UsageLimitExceeded        a limit that the application set was reached
    └── IllegalTransition         the core was fed something that cannot happen now; it changed nothing

Recoverable faults are events (`realtime.events.ErrorReported`); these are raised from the call that caused them, or
from iterating a session that cannot go on.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArgumentError",
    "BusyError",
    "EndOfTrack",
    "IllegalTransition",
    "ImageError",
    "LinkLost",
    "MissingExtraError",
    "ModelError",
    "RealtimeError",
    "SessionClosed",
    "UsageLimitExceeded",
    "UserError",
    "WouldBlock",
]


class RealtimeError(Exception):
    """The root of all errors of this package. Each can be copied and pickled with its fields."""

    def __reduce__(self) -> tuple[Any, ...]:
        """By its text and fields: the constructors take other things than they hand on."""
        return (_rebuilt, (type(self), self.args, self.__dict__))


def _rebuilt(kind: type[RealtimeError], texts: tuple[object, ...], fields: dict[str, object]) -> RealtimeError:
    error = kind.__new__(kind, *texts)
    error.__dict__.update(fields)
    return error


class UserError(RealtimeError):
    """What the caller asked for cannot be done. Nothing was changed by the call."""


class ArgumentError(UserError, ValueError):
    """One argument cannot be what it is.

    Attributes:
        argument: The argument's name.
        given: What was passed (never an image's or a recording's content).
    """

    def __init__(self, argument: str, given: object, wanted: str) -> None:
        """Say which argument, what was given and what would do.

        Args:
            argument: The argument's name, as the caller wrote it.
            given: The value passed. Its repr is cut at 80 characters.
            wanted: What would be accepted, as the end of "… must be".
        """
        try:
            shown = repr(given)
        except Exception:  # its own __repr__
            shown = f"<{type(given).__name__}>"
        if len(shown) > 80:
            shown = shown[:77] + "..."
        super().__init__(f"{argument} must be {wanted}, not {shown}")
        self.argument = argument
        self.given = given


class ImageError(ArgumentError):
    """The bytes, URL, array or object is no image that can be used."""


class MissingExtraError(UserError, ImportError):
    """An optional package is needed for this.

    Attributes:
        extra: The extra that brings it, as in ``pip install 'realtime-session[extra]'``.
    """

    def __init__(self, what: str, *, extra: str, package: str) -> None:
        """Name the feature, the package it needs, and how to install it."""
        super().__init__(f"{what} needs {package}: pip install 'realtime-session[{extra}]'")
        self.extra = extra


class ModelError(RealtimeError):
    """The provider refused a request or failed.

    Attributes:
        code: The provider's code, such as ``invalid_api_key``; empty if it gave none.
        message: The provider's own words.
        param: The field that the provider blames, if it names one.
        fatal: True if the session cannot go on.
    """

    def __init__(self, message: str, *, code: str = "", param: str = "", fatal: bool = False) -> None:
        """Keep the provider's words and code."""
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
        self.message = message
        self.param = param
        self.fatal = fatal


class LinkLost(RealtimeError):
    """The connection to the provider is gone.

    Attributes:
        code: The websocket close code, or None if there was none.
        reason: Why, in words.
        silent_seconds: How long before nothing had arrived from the provider; None if unknown. What was sent in that time
            may not have arrived there either.
    """

    def __init__(self, reason: str, *, code: int | None = None, silent_seconds: float | None = None) -> None:
        """Keep the close code beside the reason."""
        super().__init__(reason if code is None else f"{reason} (close code {code})")
        self.code = code
        self.reason = reason
        self.silent_seconds = silent_seconds


class SessionClosed(RealtimeError):
    """The session has ended."""


class EndOfTrack(RealtimeError):
    """A track has given its last frame."""


class WouldBlock(RealtimeError):
    """A ``*_nowait`` call found nothing to take, or no room to put."""


class BusyError(RealtimeError):
    """A consumer fell too far behind, or a server is full.

    Attributes:
        dropped: How many events or items were lost.
    """

    def __init__(self, message: str, *, dropped: int = 0) -> None:
        """Keep how much was lost."""
        super().__init__(message)
        self.dropped = dropped


class UsageLimitExceeded(RealtimeError):
    """A limit of `UsageLimits` was reached; the session ended after the running reply.

    Attributes:
        limit: The limit's name, such as ``max_tokens``.
        used: What had been used when it was reached.
        allowed: What the limit allows.
    """

    def __init__(self, limit: str, *, used: float, allowed: float) -> None:
        """Say which limit, and by how much."""
        super().__init__(f"{limit} is {allowed:g} and {used:g} were used")
        self.limit = limit
        self.used = used
        self.allowed = allowed


class IllegalTransition(RealtimeError):
    """The core was fed something that cannot happen in its state. It changed nothing."""
