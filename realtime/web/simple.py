"""One offer, one answer, by a plain HTTP request; for clients without a websocket.

Owns: ``POST /offer``. Driven by the server. The call ends when its peer has been gone for the grace time.
"""

from __future__ import annotations

import json
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from realtime.web.errors import CallRefused
from realtime.web.guard import bearer
from realtime.web.http import call_request, read_body, refusal, remote_address
from realtime.web.signalling import read_offer
from realtime.web.state import WebState

__all__ = ["serve_offer"]

_ROOM_FOR_JSON = 2
"""A description in JSON may be twice as long as it is: every line end is escaped."""


async def serve_offer(request: Request, state: WebState) -> Response:
    """Answer ``{"sdp", "type": "offer", "sources"?, "call"?, "secret"?}`` with ``{"sdp", "type", "call", "secret"}``.

    With a call and its secret the user comes back to it.
    """
    try:
        state.guard.check_origin(request.headers)
        state.guard.check_rate(remote_address(request))
        subject = await state.guard.check_token(bearer(request.headers))
        body = await read_body(request, state.limits.max_sdp_bytes * _ROOM_FOR_JSON)
        message = _parse(body)
        sdp, sources = read_offer(message, state.limits.max_sdp_bytes)
        back = message.get("call") is not None
        if back:
            call = state.calls.find(message.get("call"), message.get("secret"))
        else:
            call = await state.calls.open(call_request(request, subject), base_path=state.base_path(request))
        try:
            answer = await call.answer(sdp, sources)
        except CallRefused:
            if not back:
                call.end("refused")
            raise
    except CallRefused as error:
        return refusal(error)
    return JSONResponse({"sdp": answer, "type": "answer", "call": call.id, "secret": call.secret})


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message: object = json.loads(body)
    except (ValueError, RecursionError):
        raise CallRefused("bad_message", "the body must be JSON") from None
    if not isinstance(message, dict) or cast("dict[str, Any]", message).get("type", "offer") != "offer":
        raise CallRefused("bad_message", "the body must be an offer: {sdp, type: 'offer'}")
    return cast("dict[str, Any]", message)
