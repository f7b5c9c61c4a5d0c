"""Pages of other origins that may call: what their browsers ask before, and want to read after, a request.

Owns: `CrossOrigin`. Driven by every HTTP request of the room. Whether a call is taken is the guard's, as ever; no cookie plays a part.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realtime.web.guard import Guard

__all__ = ["CrossOrigin"]

_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match",
    "Access-Control-Max-Age": "600",
}
_EXPOSED: Final = "Location, ETag, Link, Accept-Patch, Accept-Post, Retry-After"


class CrossOrigin:
    """ASGI middleware: browsers let the pages of the listed origins read what is answered (CORS)."""

    def __init__(self, app: ASGIApp, *, guard: Guard) -> None:
        """Wrap an application."""
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer what a browser asks before it."""
        if scope["type"] != "http" or not self._guard.lists_origins:
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        origin = asked.get("origin")
        listed = origin is not None and self._guard.is_listed(origin)
        is_picture = "/pictures/" in scope["path"]  # an img element asks without an Origin; the key is in the address

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Origin")
                if listed and origin is not None:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = _EXPOSED
                if listed or is_picture:
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            await send(message)

        if listed and scope["method"] == "OPTIONS" and "access-control-request-method" in asked:
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)
