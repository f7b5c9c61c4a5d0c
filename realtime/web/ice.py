"""STUN and TURN servers: given, from the environment, or with credentials that live for minutes.

Owns: `IceServer`, `IceServers`, the environment variables, and one helper for each common provider's answer. Driven by
`realtime.web.app` with every call. It asks nobody anything itself: an application's function does, with its own client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import inspect
import ipaddress
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from realtime.core.settings import check_count
from realtime.errors import ArgumentError
from realtime.pipelines.clock import SystemClock

__all__ = [
    "IceServer",
    "IceServers",
    "cloudflare_ice_servers",
    "coturn_ice_servers",
    "environment_ice_servers",
    "is_loopback",
    "metered_ice_servers",
    "parse_ice_servers",
    "resolve_ice_servers",
    "twilio_ice_servers",
    "xirsys_ice_servers",
]

_SCHEMES = ("stun:", "stuns:", "turn:", "turns:")


@dataclass(frozen=True, slots=True, kw_only=True)
class IceServer:
    """A STUN or TURN server, as the W3C's `RTCIceServer`."""

    urls: tuple[str, ...]
    """`stun:host:port`, `turn:host:port?transport=udp` and so on; at least one."""
    username: str = ""
    """For TURN."""
    credential: str = ""
    """For TURN."""

    def __post_init__(self) -> None:
        """Check every URL."""
        if not self.urls:
            raise ArgumentError("urls", self.urls, "at least one stun: or turn: URL")
        for url in self.urls:
            _check_url("urls", url)

    def to_dict(self) -> dict[str, Any]:
        """As a browser's `RTCPeerConnection` takes it."""
        shown: dict[str, Any] = {"urls": list(self.urls)}
        if self.username:
            shown |= {"username": self.username, "credential": self.credential}
        return shown


IceServers = Sequence[IceServer] | Callable[[], Sequence[IceServer] | Awaitable[Sequence[IceServer]]]
"""The servers, or a function that gives them anew for each call (credentials that expire)."""


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        found = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return address == "localhost"
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)


async def resolve_ice_servers(servers: IceServers | None, address: str) -> tuple[IceServer, ...]:
    """The servers of one call: none on loopback; those given; else those of the environment.

    Args:
        servers: As `realtime.web.app` was given them.
        address: Of the caller.
    """
    if is_loopback(address):
        return ()
    if servers is None:
        return tuple(environment_ice_servers())
    if not callable(servers):
        return tuple(servers)
    given = servers()
    return tuple(await given if inspect.isawaitable(given) else given)


def environment_ice_servers(environment: Mapping[str, str] | None = None) -> list[IceServer]:
    """The servers that the environment names.

    ``REALTIME_ICE_SERVERS`` is a JSON list as a browser takes it. Or else ``REALTIME_STUN_URLS`` and
    ``REALTIME_TURN_URLS`` are lists of URLs, separated by commas; TURN with ``REALTIME_TURN_USERNAME`` and
    ``REALTIME_TURN_CREDENTIAL``, or with ``REALTIME_TURN_SECRET`` (see `coturn_ice_servers`).

    Raises:
        ArgumentError: What is there is no list of servers.
    """
    known = os.environ if environment is None else environment
    whole = known.get("REALTIME_ICE_SERVERS", "").strip()
    if whole:
        try:
            return parse_ice_servers(json.loads(whole))
        except ValueError as error:
            raise ArgumentError("REALTIME_ICE_SERVERS", whole, "a JSON list of RTCIceServer") from error
    found: list[IceServer] = []
    stun = _urls_of(known, "REALTIME_STUN_URLS")
    if stun:
        found.append(IceServer(urls=stun))
    turn = _urls_of(known, "REALTIME_TURN_URLS")
    if turn:
        secret = known.get("REALTIME_TURN_SECRET", "")
        if secret:
            return [*found, *coturn_ice_servers(secret, turn)]
        username, credential = known.get("REALTIME_TURN_USERNAME", ""), known.get("REALTIME_TURN_CREDENTIAL", "")
        found.append(IceServer(urls=turn, username=username, credential=credential))
    return found


def parse_ice_servers(given: Any) -> list[IceServer]:
    """Read servers in the shape that browsers take: a list of ``{"urls": …, "username": …, "credential": …}``.

    ``url`` for ``urls``, one URL for a list, and one server for a list of them are read too.

    Raises:
        ArgumentError: It is something else.
    """
    entries = cast("list[object]", given) if isinstance(given, list) else [given]
    return [_parse_one(entry) for entry in entries]


def _parse_one(entry: Any) -> IceServer:
    if not isinstance(entry, Mapping):
        raise ArgumentError("ice_servers", entry, "a mapping with urls")
    fields = cast("Mapping[str, Any]", entry)
    urls = fields.get("urls", fields.get("url"))
    listed: list[Any] = [urls] if isinstance(urls, str) else list(urls or ())
    if not all(isinstance(url, str) for url in listed):
        raise ArgumentError("urls", urls, "a URL or a list of them")
    return IceServer(
        urls=tuple(listed), username=str(fields.get("username") or ""), credential=str(fields.get("credential") or "")
    )


def coturn_ice_servers(
    secret: str, urls: Iterable[str], *, seconds: int = 3_600, user: str = "", wall: float | None = None
) -> list[IceServer]:
    """Credentials for coturn's ``use-auth-secret`` (the TURN REST API draft): made here, valid for a while.

    Args:
        secret: coturn's ``static-auth-secret``.
        urls: The TURN server's URLs.
        seconds: How long the credentials are valid.
        user: A name for the server's log.
        wall: Now, in seconds since the epoch; None: the system's time.
    """
    check_count("seconds", seconds, least=1)
    expires = int(SystemClock().wall() if wall is None else wall) + seconds
    username = f"{expires}:{user}" if user else str(expires)
    digest = hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()
    return [IceServer(urls=tuple(urls), username=username, credential=base64.b64encode(digest).decode())]


def twilio_ice_servers(answer: Mapping[str, Any]) -> list[IceServer]:
    """Of what Twilio's Network Traversal Service answers to ``POST …/Tokens.json``."""
    return parse_ice_servers(_field(answer, "ice_servers"))


def cloudflare_ice_servers(answer: Mapping[str, Any]) -> list[IceServer]:
    """Of what Cloudflare answers to ``POST …/credentials/generate-ice-servers`` (or ``generate``).

    Port 53 is left out: browsers refuse it and would wait for it.
    """
    kept: list[IceServer] = []
    for server in parse_ice_servers(_field(answer, "iceServers")):
        urls = tuple(url for url in server.urls if not url.split("?", 1)[0].endswith(":53"))
        if urls:
            kept.append(IceServer(urls=urls, username=server.username, credential=server.credential))
    return kept


def metered_ice_servers(answer: Sequence[Any]) -> list[IceServer]:
    """Of what Metered answers to ``GET …/api/v1/turn/credentials``: the list itself."""
    return parse_ice_servers(list(answer))


def xirsys_ice_servers(answer: Mapping[str, Any]) -> list[IceServer]:
    """Of what Xirsys answers to ``PUT …/_turn/<channel>``."""
    return parse_ice_servers(_field(_field(answer, "v"), "iceServers"))


def _field(answer: Mapping[str, Any], name: str) -> Any:
    if name not in answer:
        raise ArgumentError("answer", dict(answer), f"the provider's answer, with {name!r} in it")
    return answer[name]


def _urls_of(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    urls = _split(environment.get(variable, ""))
    for url in urls:
        _check_url(variable, url)
    return urls


def _check_url(name: str, url: str) -> None:
    if not url.startswith(_SCHEMES):
        raise ArgumentError(name, url, "a URL of scheme stun, stuns, turn or turns")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
