"""The page, and what a call lets be downloaded: its pictures, its context, its recording.

Owns: those GET endpoints. Driven by the server. The page's own files are public; a call's need its key, which is in the
address that the page was told.
"""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from realtime.web.call import Call
from realtime.web.errors import CallRefused
from realtime.web.http import refusal, remote_address
from realtime.web.reading import read_off_loop
from realtime.web.state import WebState

__all__ = ["serve_asset", "serve_call_file", "serve_config", "serve_health", "serve_page", "serve_picture"]

_PAGE: Traversable = files("realtime.web") / "page"
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
"""What the page's files are called; nothing that a file system would take for a drive or a device's path."""
_GONE = CallRefused("gone", "there is no such file")


async def _file(name: str) -> Response:
    """One file of the page; nothing outside of its folder."""
    parts = name.split("/")
    if not all(_NAME.fullmatch(part) for part in parts) or ".." in parts or "." in parts:
        return refusal(_GONE)
    content = await read_off_loop(_PAGE.joinpath(*parts))
    if content is None:
        return refusal(_GONE)
    suffix = "." + parts[-1].rpartition(".")[2]
    media_type = _TYPES.get(suffix, "application/octet-stream")
    return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache"})


async def serve_page(request: Request) -> Response:
    """The page."""
    return await _file("index.html")


async def serve_asset(request: Request) -> Response:
    """A style sheet, a module."""
    return await _file(request.path_params["name"])


async def serve_config(request: Request, state: WebState) -> Response:
    """What the page has to know before it calls. ICE servers may cost a request and hold credentials: they come with `welcome`."""
    return JSONResponse(
        {
            "ice_servers": [],
            "token_required": state.guard.token_required,
            "max_message_bytes": state.limits.max_message_bytes,
            "model": state.model_name,
        }
    )


async def serve_health(request: Request, state: WebState) -> Response:
    """Whether new calls are taken; for load balancers."""
    draining = state.calls.draining
    return JSONResponse(
        {"status": "draining" if draining else "ok", "calls": len(state.calls)}, 503 if draining else 200
    )


def _call_of(request: Request, state: WebState) -> Call:
    call = state.calls.with_key(request.path_params["call"], request.path_params["key"])
    if call is None:
        raise _GONE
    return call


async def serve_picture(request: Request, state: WebState) -> Response:
    """A picture of a message that is in the history now."""
    try:
        call = _call_of(request, state)
    except CallRefused as error:
        return refusal(error)
    wanted: str = request.path_params["message"]
    number: int = request.path_params["number"]
    for message in reversed(call.session.context.messages()):
        if message.message_id == wanted and number < len(message.images):
            image = message.images[number]
            if image.byte_length and image.mime_type.startswith("image/") and "svg" not in image.mime_type:
                return Response(
                    image.data, media_type=image.mime_type, headers={"Cache-Control": "private, max-age=600"}
                )
    return refusal(_GONE)


async def serve_call_file(request: Request, state: WebState) -> Response:
    """The context as JSON, or the recording; for the grace time after the call, too."""
    try:
        state.guard.check_rate(remote_address(request))
        downloads = state.calls.find_downloads(request.path_params["call"], request.path_params["key"])
        if downloads is None:
            raise _GONE
        name = request.path_params["name"]
        found = await downloads.read(name)
    except CallRefused as error:
        return refusal(error)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(found.size)}
    return StreamingResponse(found.pieces, media_type=found.media_type, headers=headers)
