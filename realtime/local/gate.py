"""Who may come in: the check of a handshake before it becomes a websocket, and the answers to plain HTTP.

Owns: `Gate`. Driven by the server with every HTTP request. It knows the paths, the key and the origins; it never sees a
session.
"""

from __future__ import annotations

import hmac
import http
import json
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

__all__ = ["PATHS", "Gate", "requested_model", "select_subprotocol"]

PATHS: Final = ("/v1/realtime", "/openai/v1/realtime", "/realtime")
"""Where the protocol is spoken: OpenAI's path, Azure's, and OpenAI's under a base URL without a version."""
SUBPROTOCOL: Final = "realtime"
KEY_SUBPROTOCOL: Final = "openai-insecure-api-key."
"""How a browser, which cannot set headers, shows its key."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Gate:
    """Decides about every request."""

    def __init__(
        self,
        *,
        api_key: str | None,
        origins: Sequence[str],
        health: Callable[[], tuple[bool, dict[str, object]]],
        metrics: Callable[[], str],
    ) -> None:
        """Know what may come in.

        Args:
            api_key: What clients must show; None: nothing.
            origins: Web pages that may connect, besides those of this machine.
            health: Whether the server takes sessions, and what to say of it.
            metrics: What it counts, as Prometheus text.
        """
        self._api_key = api_key
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._health = health
        self._metrics = metrics

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request, or (None) let it become a websocket."""
        path = urlsplit(request.path).path.rstrip("/")
        if path == "/healthz":
            good, facts = self._health()
            status = http.HTTPStatus.OK if good else http.HTTPStatus.SERVICE_UNAVAILABLE
            return _answer(status, json.dumps(facts) + "\n", "application/json")
        if path == "/metrics":
            return _answer(http.HTTPStatus.OK, self._metrics(), "text/plain; version=0.0.4; charset=utf-8")
        if path not in PATHS:
            return _refuse(
                http.HTTPStatus.NOT_FOUND, "invalid_request_error", f"There is nothing at {path[:80]}.", "not_found"
            )
        if not self._may_come_from(request.headers):
            text = "This web page may not connect; start the server with --origin to allow it."
            return _refuse(http.HTTPStatus.FORBIDDEN, "invalid_request_error", text, "origin_not_allowed")
        if not self._has_key(request.headers):
            text = "Incorrect API key provided. Show the one that the server was started with."
            return _refuse(http.HTTPStatus.UNAUTHORIZED, "invalid_request_error", text, "invalid_api_key")
        return None

    def _may_come_from(self, headers: Headers) -> bool:
        origins = headers.get_all("Origin")
        if not origins:
            return True
        origin = origins[0].rstrip("/").lower()
        return len(origins) == 1 and (urlsplit(origin).hostname in _LOOPBACK or origin in self._origins)

    def _has_key(self, headers: Headers) -> bool:
        if self._api_key is None:
            return True
        wanted = self._api_key.encode()
        return any(hmac.compare_digest(shown.encode("utf-8", "replace"), wanted) for shown in _shown_keys(headers))


def requested_model(path: str) -> str:
    """The model that a client asked for in its address; empty if it did not."""
    return parse_qs(urlsplit(path).query).get("model", [""])[0][:100]


def select_subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The one subprotocol that is spoken, if it is offered; a key among the offers is never sent back."""
    return next((name for name in offered if name == SUBPROTOCOL), None)


def _shown_keys(headers: Headers) -> list[str]:
    keys = [
        value.split(None, 1)[1].strip()
        for value in headers.get_all("Authorization")
        if value[:7].lower() == "bearer " and value[7:].strip()
    ]
    keys += headers.get_all("api-key")
    for line in headers.get_all("Sec-WebSocket-Protocol"):
        offers = [offer.strip() for offer in line.split(",")]
        keys += [offer.removeprefix(KEY_SUBPROTOCOL) for offer in offers if offer.startswith(KEY_SUBPROTOCOL)]
    return keys


def _refuse(status: http.HTTPStatus, kind: str, message: str, code: str) -> Response:
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})
    return _answer(status, body + "\n", "application/json")


def _answer(status: http.HTTPStatus, text: str, content_type: str) -> Response:
    body = text.encode()
    headers = Headers(
        [
            ("Content-Type", content_type),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
    )
    return Response(status.value, status.phrase, headers, body)
