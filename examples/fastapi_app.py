"""A voice bot within your own FastAPI application: its page under /bot, your routes beside it, a tool that knows your data.

Run:  pip install fastapi 'realtime-session[web,local]'
      python examples/fastapi_app.py            then open http://127.0.0.1:8000/bot/
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

import realtime.web
from realtime import RealtimeSession
from realtime.web import CallRequest, WebLimits

ORDERS = {"17": "shipped yesterday", "18": "waiting for payment"}


def order_state(number: str) -> str:
    """Say how far an order is.

    Args:
        number: The order's number.
    """
    return ORDERS.get(number, "unknown")


def make_app(model: str) -> FastAPI:
    """Build the application."""

    def begin(request: CallRequest) -> RealtimeSession:
        """A session for each call. `request` says who calls: headers, query, address, whose token."""
        name = request.query.get("name", "a guest")
        return RealtimeSession(
            model,
            instructions=f"You speak for a shop, with {name}. Be brief.",
            tools=[order_state],
            retain_images_max=20,
        )

    bot = realtime.web.app(begin, limits=WebLimits(max_sessions=4, total_seconds=1_800))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await bot.aclose()  # an application that is mounted hears nothing of the end

    api = FastAPI(lifespan=lifespan)

    @api.get("/orders/{number}")
    async def read_order(number: str) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  (FastAPI uses it)
        return {"number": number, "state": order_state(number)}

    api.mount("/bot", bot)
    return api


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local", help="local (default), openai:…, gemini:…, ws://…")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    print(f"open http://127.0.0.1:{given.port}/bot/", flush=True)
    uvicorn.run(make_app(given.model), port=given.port, ws="websockets-sansio", log_level="warning")


if __name__ == "__main__":
    main()
