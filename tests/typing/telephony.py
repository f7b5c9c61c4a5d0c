"""What a telephone call may come over, as users' type checkers see it. Checked, never run."""

from __future__ import annotations

from typing import Any, Protocol, assert_type

import websockets
from websockets.asyncio.server import ServerConnection

from realtime import CallWebSocket, RealtimeSession, TelephonyStream, TextWebSocket
from realtime.testing import ScriptedPhone


class Starlette(Protocol):
    """A websocket of Starlette's shape."""

    async def send_text(self, data: str) -> None: ...
    async def receive_text(self) -> str: ...


async def by_websockets(websocket: ServerConnection) -> None:
    socket: CallWebSocket = websocket
    call = await TelephonyStream.open(socket, timeout_seconds=5)
    assert_type(call, TelephonyStream)
    assert_type(call.call_id, str)
    assert_type(call.statistics().sent_ms, int)


async def by_starlette(websocket: Starlette, session: RealtimeSession) -> None:
    socket: TextWebSocket = websocket
    call = await TelephonyStream.open(socket)
    session.attach(call)
    await call.wait_ended()


async def by_a_phone(url: str) -> Any:
    async with websockets.connect(url) as websocket:
        phone = ScriptedPhone(websocket)
        await phone.play(100)
        return phone.heard
