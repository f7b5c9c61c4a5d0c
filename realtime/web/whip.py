"""WHIP (RFC 9725): standard senders, such as OBS and GStreamer, call with one POST.

Owns: ``/whip`` and ``/whip/{id}``: POST an offer, PATCH candidates, DELETE the call, OPTIONS. Driven by the server. The id in
the address is the call's secret: who knows it may end the call, as the RFC has it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from realtime.web.call import Call
from realtime.web.errors import CallRefused
from realtime.web.guard import bearer
from realtime.web.http import call_request, read_body, refusal, remote_address
from realtime.web.ice import IceServer
from realtime.web.state import WebState

__all__ = ["routes"]

_SDP: Final = "application/sdp"
_FRAGMENT: Final = "application/trickle-ice-sdpfrag"
_LINE: Final = re.compile(r"[a-z]=\S")


def routes(state: WebState) -> list[Route]:
    """The endpoints."""

    def route(path: str, **endpoints: Callable[[Request, WebState], Awaitable[Response]]) -> Route:
        async def answer(request: Request) -> Response:
            try:
                state.guard.check_origin(request.headers)
                return await endpoints[request.method](request, state)
            except CallRefused as error:
                return refusal(error)

        return Route(path, answer, methods=list(endpoints))

    return [
        route("/whip", POST=_publish, OPTIONS=_options),
        route("/whip/{secret}", PATCH=_trickle, DELETE=_end, OPTIONS=_session_options),
    ]


async def _publish(request: Request, state: WebState) -> Response:
    """POST: begin a call; 201 with the answer and the address of the call."""
    state.guard.check_rate(remote_address(request))
    subject = await state.guard.check_token(bearer(request.headers))
    _check_type(request, _SDP)
    offer = (await read_body(request, state.limits.max_sdp_bytes)).decode("utf-8", "replace")
    if not offer.startswith("v=0"):
        raise CallRefused("bad_message", "the body must be a session description")
    call = await state.calls.open(call_request(request, subject), base_path=state.base_path(request))
    try:
        answer = await call.answer(offer, {})
    except CallRefused:
        call.end("refused")
        raise
    call.hang_up_with_peer = True
    headers = {
        "Location": f"{state.base_path(request)}/whip/{call.secret}",
        "ETag": _etag(call),
        "Accept-Patch": _FRAGMENT,
    }
    response = Response(answer, 201, headers, media_type=_SDP)
    _add_links(response, call.ice_servers)
    return response


async def _trickle(request: Request, state: WebState) -> Response:
    """PATCH: more candidates (RFC 9725 section 4.3). ICE restarts are refused, and the ICE session stays: make another call."""
    call = _find(request, state)
    _check_type(request, _FRAGMENT)
    matched = request.headers.get("if-match")
    if matched is None:
        return Response("If-Match has to name the ICE session (ETag)", 428, media_type="text/plain")
    if matched.strip() != "*" and _etag(call) not in map(str.strip, matched.split(",")):
        return Response("that ICE session is over", 412, media_type="text/plain")
    fragment = (await read_body(request, state.limits.max_message_bytes)).decode("utf-8", "replace")
    lines = [line for line in map(str.strip, fragment.splitlines()) if line]
    if not lines or not all(_LINE.match(line) for line in lines):
        raise CallRefused("bad_message", "the body must be lines of a session description")
    if matched.strip() == "*" or _changes_credentials(lines, call):
        return Response("ICE restarts are not supported", 422, media_type="text/plain")
    for candidate in _candidates(lines):
        await call.add_candidate(candidate)
    return Response(status_code=204)


async def _end(request: Request, state: WebState) -> Response:
    """DELETE: hang up."""
    call = _find(request, state)
    await call.aclose("bye")
    return Response(status_code=200)


async def _options(request: Request, state: WebState) -> Response:
    """OPTIONS: what may be posted, and, for who may call, the ICE servers."""
    state.guard.check_rate(remote_address(request))
    response = Response(status_code=204, headers={"Allow": "POST, OPTIONS", "Accept-Post": _SDP})
    try:
        await state.guard.check_token(bearer(request.headers))
    except CallRefused:
        return response
    _add_links(response, await state.calls.find_servers(remote_address(request)))
    return response


async def _session_options(request: Request, state: WebState) -> Response:
    """OPTIONS of a call: what may be patched."""
    state.guard.check_rate(remote_address(request))
    return Response(status_code=204, headers={"Allow": "PATCH, DELETE, OPTIONS", "Accept-Patch": _FRAGMENT})


def _find(request: Request, state: WebState) -> Call:
    """The call of an address, in a time that does not tell how near a guess was."""
    secret = request.path_params["secret"]
    found = [call for call in state.calls.values() if call.has_secret(secret)]
    if not found or found[0].over:
        raise CallRefused("gone", "there is no such call any more")
    return found[0]


def _etag(call: Call) -> str:
    """Of the ICE session: there is one per call, since restarts are not supported."""
    return f'"{call.id}"'


def _check_type(request: Request, wanted: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise CallRefused("bad_type", f"the body must be {wanted}")


def _changes_credentials(lines: list[str], call: Call) -> bool:
    """Whether a fragment names another ICE session than the offer did."""
    known = set(map(str.strip, call.peer.remote_sdp.splitlines())) if call.peer is not None else set[str]()
    return any(line.startswith(("a=ice-ufrag:", "a=ice-pwd:")) and line not in known for line in lines)


def _candidates(lines: list[str]) -> list[Mapping[str, Any] | None]:
    """The candidates of an SDP fragment (RFC 8840), each with its media section; None: there are no more."""
    found: list[Mapping[str, Any] | None] = []
    mid: str | None = None
    index = -1
    for line in lines:
        if line.startswith("m="):
            index, mid = index + 1, None
        elif line.startswith("a=mid:"):
            mid = line.removeprefix("a=mid:")
        elif line.startswith("a=candidate:"):
            found.append({"candidate": line.removeprefix("a="), "sdpMid": mid, "sdpMLineIndex": max(0, index)})
        elif line == "a=end-of-candidates":
            found.append(None)
    return found


def _add_links(response: Response, servers: tuple[IceServer, ...]) -> None:
    """``Link`` headers with ``rel="ice-server"`` (RFC 9725 section 4.6)."""
    for server in servers:
        for url in server.urls:
            link = f'<{url}>; rel="ice-server"'
            if server.username:
                link += f'; username="{_quoted(server.username)}"; credential="{_quoted(server.credential)}"'
                link += '; credential-type="password"'
            response.headers.append("Link", link)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
