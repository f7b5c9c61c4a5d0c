"""What every HTTP answer carries, and what is read of every request.

Owns: the security headers, error answers, and `call_request`. Driven by every endpoint of the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realtime.web.errors import CallRefused
from realtime.web.guard import bearer
from realtime.web.options import CallRequest

__all__ = ["SecurityHeaders", "call_request", "read_body", "refusal", "remote_address", "websocket_token"]

_SECRET_HEADERS: Final = frozenset(("authorization", "cookie", "proxy-authorization"))
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:;"
    " connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self), geolocation=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class SecurityHeaders:
    """ASGI middleware: every HTTP answer carries the security headers, unless it says otherwise itself."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def remote_address(connection: HTTPConnection) -> str:
    """The caller's address, as the server sees it."""
    return connection.client.host if connection.client else ""


def call_request(connection: HTTPConnection, subject: str) -> CallRequest:
    """What a session factory is told of a request."""
    return CallRequest(
        headers={name: value for name, value in connection.headers.items() if name not in _SECRET_HEADERS},
        query={name: value for name, value in connection.query_params.items() if name != "token"},
        address=remote_address(connection),
        subject=subject,
    )


def websocket_token(connection: HTTPConnection, hello: Mapping[str, Any]) -> str | None:
    """The token of a hello, or of the handshake's header."""
    token = hello.get("token")
    return token if isinstance(token, str) and token else bearer(connection.headers)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The body of a request.

    Raises:
        CallRefused: It is too large.
    """
    refused = CallRefused("too_large", f"the body may have at most {max_bytes} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise refused
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise refused
    return bytes(body)


def refusal(error: CallRefused) -> JSONResponse:
    """What a refused request is answered."""
    headers: dict[str, str] = {}
    if error.retry_seconds is not None:
        headers["Retry-After"] = str(error.retry_seconds)
    if error.code == "bad_token":
        headers["WWW-Authenticate"] = 'Bearer realm="realtime"'
    return JSONResponse({"error": {"code": error.code, "message": error.message}}, error.status, headers)
