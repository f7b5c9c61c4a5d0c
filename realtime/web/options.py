"""What an application says about its calls: who may make them, how many, how long.

Owns: `CallRequest`, `WebLimits`, and the kinds of functions that `realtime.web.app` is given. Values only; driven by
`realtime.web.app`. Never acts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from realtime.core.settings import check_count, check_number
from realtime.session import RealtimeSession

__all__ = ["CallRequest", "SessionFactory", "TokenCheck", "WebLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """Who asks for a call; what a session factory is given."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the HTTP request, names in lower case, without the ones that carry secrets (`authorization`, `cookie`)."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """The URL's parameters, without `token`."""
    address: str = ""
    """The remote address, as the server sees it; empty where it does not tell."""
    subject: str = ""
    """Who the token belongs to, if the application's token check says so."""


SessionFactory = Callable[[CallRequest], RealtimeSession | Awaitable[RealtimeSession]]
"""Makes the session of one call, begun or not; the call ends it. To refuse a call, raise a `UserError`: its text is told to the caller."""

TokenCheck = str | Callable[[str], str | Awaitable[str | None] | None]
"""The one token that opens a call, or a function that is given what the caller sent and returns who that is, None to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """What one server allows."""

    max_sessions: int = 16
    """Calls at one time."""
    max_sessions_per_address: int | None = None
    """Of one remote address; None: as many as there are. Callers behind one proxy or router have one address."""
    max_sdp_bytes: int = 64 * 1024
    """Of an offer."""
    max_message_bytes: int = 128 * 1024
    """Of one signalling message."""
    max_text_chars: int = 8_000
    """Of one typed sentence."""
    max_candidates: int = 64
    """Of one peer connection."""
    max_sources: int = 4
    """Tracks of one peer connection."""
    requests_per_minute: int = 60
    """Calls begun and offers made from one address."""
    max_addresses: int = 4_096
    """Addresses that are counted; beyond, the one that was seen longest ago is forgotten."""
    messages_per_second: int = 50
    """Signalling and data channel messages of one call, on average over ten seconds; one longer than 4,096 characters counts as several."""
    connect_seconds: float = 15.0
    """How long a peer connection may take from its offer until it is connected."""
    media_seconds: float = 10.0
    """How long after that the first sound or picture may take, before the caller is told that none comes."""
    vanish_seconds: float = 5.0
    """A peer of which nothing was heard for so long has gone."""
    grace_seconds: float = 30.0
    """How long a call waits for its user to come back; and, beyond `connect_seconds`, for one who neither offers a peer connection nor says
    anything."""
    idle_seconds: float | None = 900.0
    """A call in which nobody has said or typed anything for so long is ended; None: never."""
    total_seconds: float | None = 7_200.0
    """A call that has lasted so long is ended; None: never."""

    def __post_init__(self) -> None:
        """Check every range."""
        for name in (
            "max_sessions",
            "max_sdp_bytes",
            "max_message_bytes",
            "max_text_chars",
            "max_candidates",
            "max_sources",
            "requests_per_minute",
            "max_addresses",
            "messages_per_second",
        ):
            check_count(name, getattr(self, name), least=1)
        for name in ("connect_seconds", "media_seconds", "vanish_seconds", "grace_seconds"):
            check_number(name, getattr(self, name), above=True)
        if self.max_sessions_per_address is not None:
            check_count("max_sessions_per_address", self.max_sessions_per_address, least=1)
        for name in ("idle_seconds", "total_seconds"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=True)
