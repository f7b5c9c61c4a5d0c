"""The signalling websocket: one, as long as the call (docs/web-protocol.md).

Owns: reading and checking its messages, the bounded queue of what is sent, and the close. Driven by the server. What a
message means is the call's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from typing import Any, cast

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from realtime.errors import RealtimeError
from realtime.pipelines.channel import Channel, ChannelClosed
from realtime.web.call import Call
from realtime.web.errors import CallRefused
from realtime.web.http import call_request, websocket_token
from realtime.web.state import WebState

__all__ = ["serve_websocket"]

_WAITING_BYTES = 4 * 1024 * 1024
"""What may wait for one page; the oldest is dropped beyond."""
_HELLO_SECONDS = 10.0
_LAST_WORDS_SECONDS = 5.0
_LONGEST_NAME = 40
_CLOSE_REFUSED = 4_400
_CLOSE_DONE = 1_000

logger = logging.getLogger(__name__)


async def serve_websocket(websocket: WebSocket, state: WebState) -> None:
    """Hold one signalling connection, from its handshake to its close."""
    try:
        state.guard.check_origin(websocket.headers)
        state.guard.check_rate(_address(websocket))
    except CallRefused as error:
        await websocket.accept()
        await _refuse(websocket, error)
        return
    await websocket.accept()
    await _Connection(websocket, state).run()


class _Connection:
    """One websocket."""

    def __init__(self, websocket: WebSocket, state: WebState) -> None:
        self._websocket = websocket
        self._state = state
        self._limits = state.limits
        self._outgoing: Channel[str] = Channel(_WAITING_BYTES, "drop_oldest", weigh=len)
        self._call: Call | None = None
        self._said_bye = False
        self._left = False
        self._told_candidates = False

    # -- as a listener --------------------------------------------------------------------------------------------------

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message soon."""
        with contextlib.suppress(ChannelClosed):
            self._outgoing.send_nowait(json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False))

    def leave(self) -> None:
        """The call is over, or another page has it."""
        self._left = True
        self._outgoing.close()

    # -- the connection -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        writing = asyncio.get_running_loop().create_task(self._write(), name="realtime.web websocket")
        reading = asyncio.get_running_loop().create_task(self._read(), name="realtime.web websocket")
        try:
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
            if writing.done() and not self._left:  # the page has closed: what it said before, such as bye, still counts
                await asyncio.wait([reading], timeout=_LAST_WORDS_SECONDS)
            if self._said_bye and self._call is not None:
                self._call.end("bye")  # which says so, and closes
            if reading.done() and not writing.done():  # what is left to be said is said
                if not self._said_bye:
                    self._outgoing.close()
                await asyncio.wait([writing], timeout=_LAST_WORDS_SECONDS)
        finally:
            self._outgoing.close()
            for task in (reading, writing):
                task.cancel()
            await asyncio.wait([reading, writing])
            if self._call is not None:
                self._call.unlisten(self)
            if self._websocket.application_state is not WebSocketState.DISCONNECTED:
                with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
                    await self._websocket.close(_CLOSE_DONE)

    async def _write(self) -> None:
        with contextlib.suppress(ChannelClosed, WebSocketDisconnect, RuntimeError, OSError):
            while True:
                await self._websocket.send_text(await self._outgoing.receive())

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = await self._receive()
            if hello is None:
                return
            controls = (await self._greet(self._parse(hello))).controls
            while (text := await self._receive()) is not None:
                if controls.admit(len(text)):
                    if not await self._take(self._parse(text)):
                        return
                elif controls.is_flooded:
                    raise CallRefused("rate", "far too many messages")
        except CallRefused as error:
            self.tell({"type": "error", "code": error.code, "message": error.message, "fatal": True})
        except TimeoutError:
            self.tell({"type": "error", "code": "bad_message", "message": "hello must come first", "fatal": True})
        except Exception:
            logger.exception("a signalling message could not be taken")
            self.tell({"type": "error", "code": "bad_message", "message": "that could not be done", "fatal": True})

    async def _receive(self) -> str | None:
        """The next message, unread; None at the end.

        Raises:
            CallRefused: It is none.
        """
        try:
            event = await self._websocket.receive()
        except (RuntimeError, WebSocketDisconnect):
            return None
        if event["type"] != "websocket.receive":
            return None
        text = event.get("text")
        if not isinstance(text, str):
            raise CallRefused("bad_message", "messages are JSON text")
        if len(text) > self._limits.max_message_bytes:
            raise CallRefused("too_large", f"a message may have at most {self._limits.max_message_bytes} bytes")
        return text

    @staticmethod
    def _parse(text: str) -> dict[str, Any]:
        """Read a message.

        Raises:
            CallRefused: It is none.
        """
        try:
            message: object = json.loads(text)
        except (ValueError, RecursionError):
            raise CallRefused("bad_message", "messages are JSON") from None
        if not isinstance(message, dict):
            raise CallRefused("bad_message", "messages are JSON objects")
        return cast("dict[str, Any]", message)

    async def _greet(self, hello: dict[str, Any]) -> Call:
        """Begin a call, or come back to one."""
        if hello.get("type") != "hello":
            raise CallRefused("bad_message", "hello must come first")
        subject = await self._state.guard.check_token(websocket_token(self._websocket, hello))
        back = hello.get("call") is not None
        if back:
            call = self._state.calls.find(hello.get("call"), hello.get("secret"))
            await call.refresh_servers()
        else:
            request = call_request(self._websocket, subject)
            call = await self._state.calls.open(request, base_path=self._state.base_path(self._websocket))
        self._call = call
        call.listen(self)
        self.tell(welcome(call, self._limits.max_sources))
        if back:
            self.tell(call.history.to_dict())
        return call

    async def _take(self, message: dict[str, Any]) -> bool:
        """Do what a message asks for; False: it was the last."""
        call = self._call
        assert call is not None
        if call.over:
            return False
        match message.get("type"):
            case "offer":
                await self._answer(call, message)
            case "candidate":
                candidate = message.get("candidate")
                await self._add_candidate(
                    call, cast("dict[str, Any]", candidate) if isinstance(candidate, dict) else None
                )
            case "bye":
                self._said_bye = True
                return False
            case _:
                call.controls.perform(message)
        return True

    async def _add_candidate(self, call: Call, candidate: dict[str, Any] | None) -> None:
        try:
            await call.add_candidate(candidate)
        except CallRefused as error:  # the others may do; told once for each offer
            if not self._told_candidates:
                self._told_candidates = True
                self.tell({"type": "error", "code": error.code, "message": error.message})

    async def _answer(self, call: Call, message: dict[str, Any]) -> None:
        self._told_candidates = False
        try:
            self._state.guard.check_rate(_address(self._websocket))
            sdp, sources = read_offer(message, self._limits.max_sdp_bytes)
            self.tell({"type": "answer", "sdp": await call.answer(sdp, sources)})
        except CallRefused as error:
            self.tell({"type": "error", "code": error.code, "message": error.message})
        except RealtimeError as error:
            self.tell({"type": "error", "code": "bad_message", "message": str(error)})


def welcome(call: Call, max_sources: int) -> dict[str, Any]:
    """The first message of a call."""
    capabilities = call.session.capabilities
    return {
        "type": "welcome",
        "call": call.id,
        "secret": call.secret,
        "ice_servers": [server.to_dict() for server in call.ice_servers],
        "model": capabilities.model,
        "input": {"audio": capabilities.supports_audio_input, "video": capabilities.supports_image_input},
        "sources_max": max_sources,
        "files": call.downloads.names,
        "replying": call.session.is_replying,
        "push_to_talk": call.session.settings.turn_detection.mode == "manual",
    }


def read_offer(message: Mapping[str, Any], max_bytes: int) -> tuple[str, dict[str, str]]:
    """The SDP and the names of an offer.

    Raises:
        CallRefused: They are none.
    """
    sdp: object = message.get("sdp")
    sources: object = message.get("sources") or {}
    if not isinstance(sdp, str) or not sdp.startswith("v=0"):
        raise CallRefused("bad_message", "offer.sdp must be a session description")
    if len(sdp) > max_bytes:
        raise CallRefused("too_large", f"an offer may have at most {max_bytes} bytes")
    if not isinstance(sources, dict):
        raise CallRefused("bad_message", "offer.sources must be {mid: name}")
    named: dict[str, str] = {}
    for mid, name in cast("dict[object, object]", sources).items():
        if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise CallRefused("bad_message", "the name of a source must be 1 to 40 printable characters")
        named[str(mid)] = name
    return sdp, named


def _address(websocket: WebSocket) -> str:
    return websocket.client.host if websocket.client else ""


async def _refuse(websocket: WebSocket, error: CallRefused) -> None:
    with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
        await websocket.send_text(
            json.dumps({"type": "error", "code": error.code, "message": error.message, "fatal": True})
        )
        await websocket.close(_CLOSE_REFUSED, error.code)
