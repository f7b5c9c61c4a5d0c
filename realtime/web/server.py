"""The HTTP server of `realtime serve`: uvicorn with bounds, and an end that lets calls end first.

Owns: `WebServer`. Driven by `realtime.web.serve` and by signals. What is served is the application's.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import uvicorn

from realtime.web.application import WebApp
from realtime.web.options import WebLimits

__all__ = ["WebServer"]

_KEEP_ALIVE_SECONDS = 5
_LAST_SECONDS = 3
"""How long open requests may take once every call is over."""
_MAX_HEADER_BYTES = 32 * 1024
_MAX_QUEUED_MESSAGES = 32


class WebServer(uvicorn.Server):
    """Serves one `WebApp`. Nothing larger than the application's limits is read."""

    def __init__(
        self,
        bot: WebApp,
        *,
        limits: WebLimits,
        ssl_certfile: Path | None = None,
        ssl_keyfile: Path | None = None,
    ) -> None:
        """Take the application."""
        self._bot = bot
        self._asked = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                bot,
                ws="websockets-sansio",
                ws_max_size=limits.max_message_bytes,
                ws_max_queue=_MAX_QUEUED_MESSAGES,
                ws_per_message_deflate=False,
                h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_LAST_SECONDS,
                server_header=False,
                access_log=False,
                log_config=None,
                ssl_certfile=ssl_certfile,
                ssl_keyfile=ssl_keyfile,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals alone: `ended_by_signals` has them."""
        yield

    async def unless_ended(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something before serving; False, and it is cancelled, if a signal comes first."""
        doing = asyncio.get_running_loop().create_task(work, name="realtime serve preparing")
        asked = asyncio.get_running_loop().create_task(self._asked.wait(), name="realtime serve signals")
        try:
            await asyncio.wait([doing, asked], return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                return False
            doing.result()
            return not self._asked.is_set()
        finally:
            for task in (doing, asked):
                task.cancel()
            await asyncio.wait([doing, asked])

    @contextlib.contextmanager
    def ended_by_signals(self, drain_seconds: float) -> Generator[None]:
        """Until this ends, the first SIGINT or SIGTERM drains and then ends the server; the second ends it at once.

        Args:
            drain_seconds: How long calls may go on.
        """
        loop = asyncio.get_running_loop()
        draining: list[asyncio.Task[None]] = []

        async def leave() -> None:
            await self._bot.drain(drain_seconds)
            self.should_exit = True

        def ask() -> None:
            self._asked.set()
            if draining:
                self.should_exit = self.force_exit = True
            else:
                draining.append(loop.create_task(leave(), name="realtime serve draining"))

        signals = (signal.SIGINT, signal.SIGTERM)
        for each in signals:
            with contextlib.suppress(NotImplementedError):  # Windows has none
                loop.add_signal_handler(each, ask)
        try:
            yield
        finally:
            for each in signals:
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(each)
            for task in draining:
                task.cancel()
