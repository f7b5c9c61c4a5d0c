"""Who may call: origin, token, rate.

Owns: `Guard` (the three checks) and `Bucket`. Driven by every way into the room, before anything of a request is looked
at. It never waits, but for an application's own token check.
"""

from __future__ import annotations

import hmac
import inspect
import ipaddress
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Clock
from realtime.web.errors import CallRefused
from realtime.web.options import TokenCheck, WebLimits

__all__ = ["Bucket", "Guard", "bearer", "is_same"]

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Bucket:
    """So many a second on average, and as many at once as come together in `seconds` of it."""

    __slots__ = ("_at", "_capacity", "_level", "_rate")

    def __init__(self, rate: float, seconds: float, now: float) -> None:
        """Begin full."""
        self._rate = rate
        self._capacity = max(1.0, rate * seconds)
        self._level = self._capacity
        self._at = now

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Take one, or one that costs as much as several (never more than the bucket holds); False if there is not enough."""
        cost = min(cost, self._capacity)
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < cost:
            return False
        self._level -= cost
        return True


class Guard:
    """Checks callers."""

    def __init__(self, *, token: TokenCheck | None, origins: Iterable[str], limits: WebLimits, clock: Clock) -> None:
        """Take the rules.

        Args:
            token: See `realtime.web.app`.
            origins: Origins besides the server's own; ``*``: any.
            limits: For the rate.
            clock: For the rate.

        Raises:
            ArgumentError: A token is empty, or an origin is none.
        """
        if isinstance(token, str) and not token:
            raise ArgumentError("token", token, "a token that is not empty, a function, or None")
        given = [origins] if isinstance(origins, str) else list(origins)
        self._token = token
        self._any_origin = "*" in given
        self._origins = {_parse_origin(origin) for origin in given if origin != "*"}
        self._limits = limits
        self._clock = clock
        self._rates: OrderedDict[str, Bucket] = OrderedDict()

    @property
    def token_required(self) -> bool:
        """Whether a call needs a token."""
        return self._token is not None

    @property
    def lists_origins(self) -> bool:
        """Whether pages of other origins may call."""
        return self._any_origin or bool(self._origins)

    def is_listed(self, origin: str) -> bool:
        """Whether an origin is among those that were given."""
        if self._any_origin:
            return True
        try:
            return _parse_origin(origin) in self._origins
        except ArgumentError:
            return False

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse pages from elsewhere. A request without an `Origin` does not come from a page.

        The server's own origin is the one that its `Host` names: an IP address, `localhost`, or, where a token is
        needed, any name. Other names have to be given in `origins`: any page can make its own name lead to this machine.

        Raises:
            CallRefused: `bad_origin`.
        """
        origin = headers.get("origin")
        if origin is None or self._any_origin:
            return
        try:
            parsed = _parse_origin(origin)
        except ArgumentError:
            raise CallRefused("bad_origin", "pages of an unknown origin may not call") from None
        if parsed in self._origins:
            return
        _, name, port = parsed
        host, host_port = _split_host(headers.get("host", ""))
        own = name == host and port == (host_port or _DEFAULT_PORTS.get(parsed[0], 0))
        if own and (_is_address(name) or name == "localhost" or self.token_required):
            return
        raise CallRefused(
            "bad_origin", f"pages of {origin[:200]} may not call; it is not among the origins of this server"
        )

    async def check_token(self, given: str | None) -> str:
        """Find out whom a token belongs to.

        Returns:
            Who, by the application's function; empty otherwise.

        Raises:
            CallRefused: `bad_token`.
        """
        if self._token is None:
            return ""
        if given:
            if isinstance(self._token, str):
                if is_same(given, self._token):
                    return ""
            else:
                answer = self._token(given)
                subject = await answer if inspect.isawaitable(answer) else answer
                if subject is not None:
                    return subject
        raise CallRefused("bad_token", "a valid token is needed" if given else "a token is needed")

    def check_rate(self, address: str) -> None:
        """Count a request of an address.

        Raises:
            CallRefused: `rate`.
        """
        now = self._clock.now()
        bucket = self._rates.get(address)
        if bucket is None:
            bucket = self._rates[address] = Bucket(self._limits.requests_per_minute / 60, 60, now)
            while len(self._rates) > self._limits.max_addresses:
                self._rates.popitem(last=False)
        self._rates.move_to_end(address)
        if not bucket.take(now):
            raise CallRefused("rate", "too many requests from this address; wait a little", retry_seconds=5)


def is_same(given: str, right: str) -> bool:
    """Whether a secret is the right one, in constant time; whatever JSON can hold may be given."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def bearer(headers: Mapping[str, str]) -> str | None:
    """The token of an `Authorization: Bearer` header."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def _parse_origin(origin: str) -> tuple[str, str, int]:
    """Scheme, host, port of an origin."""
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ArgumentError("origins", origin, "an origin such as https://example.com, or *")
    return parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme]


def _split_host(host: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname or "", parts.port
    except ValueError:
        return "", None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
