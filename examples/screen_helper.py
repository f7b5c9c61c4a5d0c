"""A helper that sees your screen: share it on the page, ask about it, and read here what the helper was shown and said.

Screens hold small print and stand still for long: they are looked at seldom, but sharply, and few pictures are kept.

Run:  pip install 'realtime-session[web,local]'
      python examples/screen_helper.py          then open the address that it prints
"""

from __future__ import annotations

import argparse
import asyncio

import uvicorn

import realtime.web
from realtime import ContextWindow, EncodeOptions, FrameSampling, RealtimeSession, ResizeOptions
from realtime.errors import RealtimeError
from realtime.events import FrameKept, MessageCommitted
from realtime.web import CallRequest

INSTRUCTIONS = (
    "You see the user's screen. Say in one or two sentences what you are asked about it; quote what is written."
)
watching: set[asyncio.Task[None]] = set()


def make_session(model: str) -> RealtimeSession:
    """A session for a shared screen."""
    return RealtimeSession(
        model,
        instructions=INSTRUCTIONS,
        window=ContextWindow(max_tokens=8_000, keep_recent_frames=3),
        retain_images_max=10,
        sampling=FrameSampling(fps_speaking=0.5, fps_idle=0.1, min_change=0.5, max_gap_seconds=60),
        encode_options=EncodeOptions(resize_options=ResizeOptions(1600, 1000, mode="fit"), quality=80),
        image_detail="high",
    )


async def watch(session: RealtimeSession) -> None:
    """Print what happens in a call."""
    try:
        async for event in session:
            match event:
                case FrameKept():
                    print(f"shown: {event.source} {event.width}×{event.height} ({event.reason})", flush=True)
                case MessageCommitted(message=message) if message.content:
                    print(f"{message.role.value}: {message.content}", flush=True)
                case _:
                    pass
    except RealtimeError as error:
        print(f"the call ended early: {error}", flush=True)


async def begin(request: CallRequest, model: str) -> RealtimeSession:
    """Begin a session and watch it; the application takes one that has begun as well as one that has not."""
    session = await make_session(model).__aenter__()
    task = asyncio.create_task(watch(session))
    watching.add(task)
    task.add_done_callback(watching.discard)
    return session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local", help="local (default), openai:…, gemini:…, ws://…")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    helper = realtime.web.app(lambda request: begin(request, given.model), model_name="screen helper")
    print(f"open http://127.0.0.1:{given.port}/", flush=True)
    uvicorn.run(helper, port=given.port, ws="websockets-sansio", log_level="warning")


if __name__ == "__main__":
    main()
