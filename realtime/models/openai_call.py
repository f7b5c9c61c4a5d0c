"""Calls that a browser holds with OpenAI directly, with a session of ours beside them.

Owns: `relay_offer`, which hands a browser's offer to OpenAI and brings the answer back, `BrowserCall`, and `OpenAISideband`, the
model that a session attaches with. Driven by the application's signalling. It carries no media and keeps no sound.

Source: developers.openai.com, "Create call" (``POST /v1/realtime/calls``, multipart: ``sdp`` and ``session``; the answer's
``Location`` names the call) and "Webhooks and server-side controls" (``wss://…/v1/realtime?call_id=…``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from realtime.core.capabilities import ModelCapabilities
from realtime.errors import ArgumentError, LinkLost, MissingExtraError, ModelError
from realtime.models.websocket import WebSocketModel
from realtime.pipelines.worker import encode_pool
from realtime.transports.websocket import KeepAlive, Transport, is_loopback, redacted
from realtime.wire.base import Resumption
from realtime.wire.openai import OpenAIOptions
from realtime.wire.openai_sideband import SidebandWire

if TYPE_CHECKING:
    import httpx2

__all__ = ["BrowserCall", "OpenAISideband", "relay_offer"]

_SECONDS: Final = 15.0
_MAX_ANSWER_BYTES: Final = 256 * 1024
_IS_INSTALLED: Final = find_spec("httpx2") is not None
Headers = Callable[[], Awaitable[dict[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCall:
    """A call between a browser and OpenAI.

    ::

        call = await OpenAIRealtime("gpt-realtime").relay_offer(offer)
        async with RealtimeSession(call.model, instructions="…", tools=[…]) as session:
            …                     # give call.answer to the browser, then listen to the session's events
    """

    answer: str
    """The session description for the browser's ``setRemoteDescription``."""
    call_id: str
    """OpenAI's id of the call."""
    model: OpenAISideband
    """What a `RealtimeSession` attaches to the call with."""
    _end: Callable[[], Awaitable[None]] = field(repr=False)

    async def hang_up(self) -> None:
        """End the call, for the browser too. A call that is over already is no error.

        Raises:
            ModelError: OpenAI refused.
            LinkLost: It could not be reached.
        """
        await self._end()


class OpenAISideband(WebSocketModel):
    """The model of a browser's call, as a session beside it sees it: words, tools and pictures, no sound."""

    def __init__(
        self,
        url: str,
        *,
        call_id: str,
        capabilities: ModelCapabilities,
        options: OpenAIOptions,
        headers: Headers,
        keep_alive: KeepAlive | None = None,
    ) -> None:
        """Describe it; made by `OpenAIRealtime.relay_offer`.

        Args:
            url: The call's address.
            call_id: The call.
            capabilities: What the model can do in a session that hears it.
            options: What it is told besides what every session says.
            headers: What the opening request carries.
            keep_alive: When a server that says nothing counts as gone.
        """
        beside = replace(
            capabilities,
            supports_audio_input=False,
            supports_audio_output=False,
            supports_truncation=False,  # OpenAI knows best what the browser has played, and cuts by itself
            supports_resumption=True,
        )
        super().__init__(
            url,
            voice=options.voice,
            capabilities=beside,
            keep_alive=keep_alive,
            name=f"openai:{capabilities.model} (call)",
        )
        self.call_id = call_id
        self._options = options
        self._given_headers = headers

    async def headers(self) -> dict[str, str]:
        """The key that the call was made with."""
        return await self._given_headers()

    def make_wire(self, *, wall: float | None = None) -> SidebandWire:
        """Make the wire format of one connection."""
        return SidebandWire(self._options, call_id=self.call_id, wall=wall)

    async def resume(self, resumption: Resumption, *, wall: float | None = None) -> tuple[Transport, SidebandWire]:
        """Attach again; the call has gone on meanwhile.

        Raises:
            ModelError: The call is over.
            LinkLost: It could not be reached.
        """
        transport = await self.connect(self.url)
        return transport, SidebandWire(self._options, call_id=self.call_id, wall=wall, resumes=True)


async def relay_offer(
    offer: str,
    *,
    url: str,
    model: str,
    capabilities: ModelCapabilities,
    options: OpenAIOptions,
    headers: Headers,
    keep_alive: KeepAlive | None = None,
) -> BrowserCall:
    """Hand a browser's offer to OpenAI.

    Args:
        offer: The session description that the browser made.
        url: The websocket address of the model.
        model: Its name.
        capabilities: What it can do.
        options: What it is told besides what every session says.
        headers: What requests carry.
        keep_alive: When a server that says nothing counts as gone.

    Raises:
        ArgumentError: The offer is none.
        MissingExtraError: The HTTP client is not installed.
        ModelError: OpenAI refused.
        LinkLost: It could not be reached.
    """
    if not isinstance(offer, str) or not offer.startswith("v=0"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError("offer", offer, "a session description (SDP) as text")
    parts = urlsplit(url)
    calls = urlunsplit((_HTTP[parts.scheme], parts.netloc, parts.path.rstrip("/") + "/calls", "", ""))
    session: dict[str, Any] = {"type": "realtime", "model": model}
    if options.voice is not None:
        session["audio"] = {"output": {"voice": options.voice}}
    files = {
        "sdp": (None, offer.encode(), "application/sdp"),
        "session": (None, json.dumps(session).encode(), "application/json"),
    }
    response = await _post(calls, await headers(), files=files)
    call_id = urlsplit(response.headers.get("Location", "")).path.rstrip("/").rpartition("/")[2]
    answer = response.text
    if not call_id or not answer.startswith("v=0"):
        raise ModelError("the answer to the offer names no call, or is no session description", code="malformed_answer")

    async def end() -> None:
        try:
            await _post(f"{calls}/{call_id}/hangup", await headers())
        except ModelError as error:
            if error.code != "http_404":  # over already
                raise

    where = urlunsplit((parts.scheme, parts.netloc, parts.path, f"call_id={call_id}", ""))
    beside = OpenAISideband(
        where, call_id=call_id, capabilities=capabilities, options=options, headers=headers, keep_alive=keep_alive
    )
    return BrowserCall(answer=answer, call_id=call_id, model=beside, _end=end)


_HTTP: Final = {"wss": "https", "ws": "http"}


async def _post(url: str, headers: Mapping[str, str], *, files: Any = None) -> httpx2.Response:
    """Post, and take whole what comes back.

    Raises:
        ModelError: The server refused.
        LinkLost: It could not be reached, or took too long.
    """
    if not _IS_INSTALLED:
        raise MissingExtraError("a browser's call", extra="chat", package="httpx2")
    member = encode_pool.join()
    try:
        client = await encode_pool.run(_make_client, url, headers)
    finally:
        await encode_pool.leave(member)
    import httpx2  # noqa: PLC0415  # an extra; making the client has loaded it

    where = urlsplit(url).netloc.rpartition("@")[2]
    try:
        async with asyncio.timeout(_SECONDS), client:
            response = await client.post(url, files=files)
    except (TimeoutError, httpx2.TimeoutException):
        raise LinkLost(f"{where} did not answer within {_SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise LinkLost(f"{where} could not be reached: {type(error).__name__}") from error
    if response.is_success:
        return response
    raise _refusal(response, where, headers)


def _make_client(url: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Made on a thread: loading the package and reading the system's certificate authorities take a while."""
    import httpx2  # noqa: PLC0415  # an extra

    return httpx2.AsyncClient(headers=dict(headers), trust_env=not is_loopback(url))


def _refusal(response: httpx2.Response, where: str, headers: Mapping[str, str]) -> ModelError:
    body = response.content[:_MAX_ANSWER_BYTES]
    error: Any = {}
    try:
        error = json.loads(body).get("error") or {}
    except (ValueError, AttributeError):
        error = {"message": body[:200].decode("utf-8", "replace")}
    said = error if isinstance(error, dict) else {"message": str(error)}  # pyright: ignore[reportUnknownVariableType]
    code = str(said.get("code") or f"http_{response.status_code}")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    text = redacted(str(said.get("message") or ""), headers)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return ModelError(f"{where} refused with HTTP {response.status_code}: {text}".rstrip(": "), code=code)
