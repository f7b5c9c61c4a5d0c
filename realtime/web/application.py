"""The ASGI application: every endpoint of the room, behind one factory of sessions.

Owns: `app` and `WebApp`. Driven by an ASGI server, or by the application that it is mounted in. It knows no call's inside.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Clock, SystemClock
from realtime.web import files, simple, whip
from realtime.web.calls import Calls
from realtime.web.cross_origin import CrossOrigin
from realtime.web.guard import Guard
from realtime.web.http import SecurityHeaders
from realtime.web.ice import IceServers
from realtime.web.options import SessionFactory, TokenCheck, WebLimits
from realtime.web.signalling import serve_websocket
from realtime.web.state import WebState

__all__ = ["WebApp", "app"]

Endpoint = Callable[[Request, WebState], Awaitable[Response]]


class WebApp(Starlette):
    """The application that `app` makes. Mount it, or serve it by itself.

    Attributes:
        calls: The calls in progress, by id.
    """

    def __init__(self, state: WebState) -> None:
        """Lay out the endpoints."""
        self.calls = state.calls

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            yield
            await self.aclose()

        async def call(websocket: WebSocket) -> None:
            await serve_websocket(websocket, state)

        def bound(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                return await endpoint(request, state)

            return answer

        routes: list[Route | WebSocketRoute] = [
            Route("/", files.serve_page),
            Route("/assets/{name:path}", files.serve_asset),
            Route("/config", bound(files.serve_config)),
            Route("/healthz", bound(files.serve_health)),
            Route("/calls/{call}/{key}/pictures/{message:path}/{number:int}", bound(files.serve_picture)),
            Route("/calls/{call}/{key}/{name}", bound(files.serve_call_file)),
            Route("/offer", bound(simple.serve_offer), methods=["POST"]),
            *whip.routes(state),
            WebSocketRoute("/call", call),
        ]
        middleware = [Middleware(SecurityHeaders), Middleware(CrossOrigin, guard=state.guard)]
        super().__init__(routes=routes, middleware=middleware, lifespan=lifespan)

    async def drain(self, seconds: float = 30.0) -> None:
        """Take no new calls, let those in progress go on for so long, then end them."""
        await self.calls.drain(seconds)

    async def aclose(self) -> None:
        """End every call. An application that mounts this one calls it at its own end; idempotent."""
        await self.calls.aclose()


def app(
    session_factory: SessionFactory,
    *,
    token: TokenCheck | None = None,
    origins: Iterable[str] = (),
    ice_servers: IceServers | None = None,
    limits: WebLimits | None = None,
    model_name: str = "",
    record_folder: str | os.PathLike[str] | None = None,
    clock: Clock | None = None,
) -> WebApp:
    """Make an ASGI application that answers WebRTC calls, each with a session of its own, and serves the page to call from.

    ::

        bot = realtime.web.app(lambda request: RealtimeSession("local"))
        api.mount("/bot", bot)                       # FastAPI or Starlette; or: uvicorn module:bot

    Args:
        session_factory: Called with a `CallRequest` for each call; gives a `RealtimeSession` that has not begun. May be
            async. What it raises as `UserError` is told to the caller.
        token: What a caller has to know: one token, or a function that finds out whom a token belongs to (`TokenCheck`).
            None: nothing.
        origins: Origins of pages that may call, by websocket or HTTP, besides the one that this application is served
            from; ``*``: any.
        ice_servers: STUN and TURN servers, or a function (async too) that gives them anew, for each call and for who comes
            back to one later; None: those of the environment (`environment_ice_servers`). A caller from loopback is never given any.
        limits: How much, how many, how long.
        model_name: Shown on the page before a call.
        record_folder: A folder that is there; each call is recorded into it (`RealtimeSession.record`), and the page can
            download its own recording. None: calls are not recorded.
        clock: For tests.

    Raises:
        ArgumentError: An argument cannot be what it is.
    """
    if not callable(session_factory):
        raise ArgumentError("session_factory", session_factory, "a function that makes a RealtimeSession")
    bounds = limits or WebLimits()
    time = clock or SystemClock()
    return WebApp(
        WebState(
            calls=Calls(
                session_factory,
                ice_servers=ice_servers,
                limits=bounds,
                clock=time,
                record_folder=None if record_folder is None else Path(record_folder),
            ),
            guard=Guard(token=token, origins=origins, limits=bounds, clock=time),
            limits=bounds,
            model_name=model_name,
        )
    )
