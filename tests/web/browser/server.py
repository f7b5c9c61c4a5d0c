"""The server that the browser tests call: four rooms on one port, and what is true of their sessions.

``/`` is open, ``/guarded`` wants a token, ``/manual`` is for push-to-talk, ``/quiet`` has a model that says nothing. ``/facts`` tells what the sessions hold and what
the process holds. Prints its address; ends with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

import realtime.web
from realtime import FrameSampling, RealtimeSession, TurnDetection
from realtime.core.capabilities import ModelCapabilities
from realtime.models.base import RealtimeModel
from realtime.testing import Expect, Reply, ScriptedModel, openai_script
from realtime.web import CallRequest, WebApp, WebLimits

TOKEN = "open sesame"
_LIMITS = WebLimits(requests_per_minute=60_000, max_sessions=16, messages_per_second=500)


def build(llm_url: str) -> Starlette:
    """All three rooms behind one application."""

    def session(mode: Any, model: str | RealtimeModel = llm_url) -> RealtimeSession:
        return RealtimeSession(
            model,
            instructions="Answer in one sentence.",
            sampling=FrameSampling(fps_idle=0.5),
            turn_detection=TurnDetection(mode=mode),
        )

    def room(make: Callable[[CallRequest], RealtimeSession], token: str | None = None) -> WebApp:
        return realtime.web.app(make, token=token, limits=_LIMITS, model_name="the local LLM")

    rooms = {
        "/guarded": room(lambda _: session("server"), TOKEN),
        "/manual": room(lambda _: session("manual")),
        "/quiet": room(lambda _: session("server", silent_model())),
        "/": room(lambda _: session("server")),
    }

    async def facts(_: Request) -> JSONResponse:
        gc.collect()
        calls = [each.calls[call_id] for each in rooms.values() for call_id in each.calls]
        return JSONResponse(
            {
                "calls": {call.id: _facts_of(call) for call in calls},
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "files": _open_files(),
            }
        )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for each in rooms.values():
            await each.aclose()

    return Starlette(
        routes=[
            Route("/facts", facts),
            *(Mount(path, each) for path, each in rooms.items()),
        ],
        lifespan=lifespan,
    )


def silent_model() -> ScriptedModel:
    """A model that takes speech, sees nothing and says nothing."""
    return ScriptedModel(
        [
            Reply(openai_script.session_created()),
            Expect("session.update"),
            Reply(openai_script.session_updated()),
        ],
        capabilities=ModelCapabilities(model="silent", supports_image_input=False),
    )


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def _facts_of(call: Any) -> dict[str, Any]:
    """What a session has heard, seen and said."""
    session = call.session
    return {
        "conversation": session.conversation.id,
        "messages": [
            {
                "id": message.message_id,
                "role": message.role.value,
                "text": message.content,
                "source": message.source,
                "interrupted": message.interrupted,
                "unheard": message.unheard,
                "heard_ms": message.heard_ms,
            }
            for message in session.all_messages()
        ],
        "measured": session.listener.measures,
        "query": dict(call.request.query),
    }


async def main() -> None:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--llm", required=True)
    options = parser.parse_args()
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(build(options.llm), log_level="warning", timeout_graceful_shutdown=3)
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(setattr, server, "should_exit", True)

    threading.Thread(target=wait_for_end, daemon=True).start()
    sys.stdout.write(f"listening on http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
