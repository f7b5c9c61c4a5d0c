"""WebRTC calls over HTTP: an ASGI application that answers them, and the browser page to call from (extra `web`).

::

    import realtime.web
    from realtime import RealtimeSession

    bot = realtime.web.app(lambda request: RealtimeSession("local"))

Names are resolved when they are asked for. How a page and the server talk is in docs/web-protocol.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from realtime.errors import MissingExtraError

if TYPE_CHECKING:
    from realtime.web.application import WebApp, app
    from realtime.web.calls import Calls
    from realtime.web.errors import CallRefused
    from realtime.web.ice import (
        IceServer,
        IceServers,
        cloudflare_ice_servers,
        coturn_ice_servers,
        environment_ice_servers,
        metered_ice_servers,
        parse_ice_servers,
        twilio_ice_servers,
        xirsys_ice_servers,
    )
    from realtime.web.options import CallRequest, SessionFactory, TokenCheck, WebLimits

_HOMES = {
    "CallRefused": "errors",
    "CallRequest": "options",
    "Calls": "calls",
    "IceServer": "ice",
    "IceServers": "ice",
    "SessionFactory": "options",
    "TokenCheck": "options",
    "WebApp": "application",
    "WebLimits": "options",
    "app": "application",
    "cloudflare_ice_servers": "ice",
    "coturn_ice_servers": "ice",
    "environment_ice_servers": "ice",
    "metered_ice_servers": "ice",
    "parse_ice_servers": "ice",
    "twilio_ice_servers": "ice",
    "xirsys_ice_servers": "ice",
}

__all__ = [
    "CallRefused",
    "CallRequest",
    "Calls",
    "IceServer",
    "IceServers",
    "SessionFactory",
    "TokenCheck",
    "WebApp",
    "WebLimits",
    "app",
    "cloudflare_ice_servers",
    "coturn_ice_servers",
    "environment_ice_servers",
    "metered_ice_servers",
    "parse_ice_servers",
    "twilio_ice_servers",
    "xirsys_ice_servers",
]


def __getattr__(name: str) -> Any:
    """Load the module that `name` lives in."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"realtime.web.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("starlette", "uvicorn"):
            raise MissingExtraError("realtime.web", extra="web", package=error.name or "starlette") from error
        raise
