"""Calls without `realtime.web`: your own signalling, an aiortc peer connection, and `session.attach(pc)`.

Here the signalling is one HTTP request, `POST /offer` with {"sdp": …, "type": "offer"}. Whatever carries the two descriptions
will do: a websocket, a chat, a queue.

Run:  python examples/own_signalling.py         then POST an offer to http://127.0.0.1:8000/offer
"""

from __future__ import annotations

import argparse
import asyncio

import uvicorn
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from realtime import RealtimeSession
from realtime.events import FrameKept, MessageCommitted

pages: tuple[str, ...] = ()  # origins of your own pages, such as "https://shop.example"
calls: set[asyncio.Task[None]] = set()


async def hold(model: str, offer: RTCSessionDescription, answered: asyncio.Future[RTCSessionDescription]) -> None:
    """Hold one call, from its offer to the moment when the caller has gone."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))  # your STUN and TURN servers, for callers from elsewhere
    try:
        async with RealtimeSession(model, instructions="You see the caller's camera. Be brief.") as session:
            session.attach(pc)  # the caller's tracks in, the reply out; before the local description
            await pc.setRemoteDescription(offer)
            await pc.setLocalDescription(await pc.createAnswer())
            answered.set_result(pc.localDescription)
            ending = asyncio.create_task(end_with(pc, session))
            async for event in session:
                match event:
                    case FrameKept():
                        print(f"saw: {event.source} {event.width}×{event.height}", flush=True)
                    case MessageCommitted(message=message) if message.content:
                        print(f"{message.role.value}: {message.content}", flush=True)
                    case _:
                        pass
            await ending
    except Exception as error:
        if answered.done():
            raise
        answered.set_exception(error)
    finally:
        await pc.close()
        print("the call is over", flush=True)


async def end_with(pc: RTCPeerConnection, session: RealtimeSession) -> None:
    """End the session when the peer connection is over."""
    changed = asyncio.Event()
    pc.on("connectionstatechange", changed.set)
    while pc.connectionState not in ("failed", "closed"):
        changed.clear()
        await changed.wait()
    await session.aclose()


def make_app(model: str) -> Starlette:
    """The application: one route."""

    async def offer(request: Request) -> JSONResponse:
        if request.headers.get("origin") not in (None, *pages):  # else any page in a browser here could call
            return JSONResponse({"error": "pages of this origin may not call"}, 403)
        given = await request.json()
        answered: asyncio.Future[RTCSessionDescription] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(hold(model, RTCSessionDescription(given["sdp"], given["type"]), answered))
        calls.add(task)
        task.add_done_callback(calls.discard)
        answer = await answered
        return JSONResponse({"sdp": answer.sdp, "type": answer.type})

    return Starlette(routes=[Route("/offer", offer, methods=["POST"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local", help="local (default), openai:…, gemini:…, ws://…")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    print(f"listening on http://127.0.0.1:{given.port}/offer", flush=True)
    uvicorn.run(make_app(given.model), port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
