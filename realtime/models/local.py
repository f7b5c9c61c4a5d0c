"""The embedded websocket LLM as a model.

Owns: `LocalRealtime`, which runs ``python -m realtime.local`` as a child process and speaks to it by URL like to any
provider. Driven by a session. It never imports `realtime.local`: what it knows of it is its command line and the line
``listening on ws://127.0.0.1:PORT/v1/realtime`` that it prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection, check_number
from realtime.errors import ArgumentError, LinkLost, MissingExtraError, ModelError
from realtime.models.server_process import ServerProcess
from realtime.models.websocket import WebSocketModel
from realtime.transports.websocket import PromptTransport, Transport, connect

__all__ = ["LocalRealtime"]

_CAPABILITIES: Final = ModelCapabilities(model="local", supports_seeding_audio=True)
_MODULE: Final = "realtime.local"


class LocalRealtime(WebSocketModel):
    """The local websocket LLM: speech in and out and eyes, all offline, in a process of its own.

    The process starts with the first connection, serves every session of this object, is started again when it died,
    and ends with the last session, or with this process.

    ::

        RealtimeSession(LocalRealtime(silence_ms=400))
    """

    def __init__(
        self,
        *,
        voice: str | None = None,
        turn_detection: TurnDetection | None = None,
        transcription: str | None = None,
        start_timeout_seconds: float = 60.0,
        module: str = _MODULE,
        **llm_settings: str | float | bool | None,
    ) -> None:
        """Describe the server. Nothing is started yet.

        Args:
            voice: Where the agent names none.
            turn_detection: Where the session does not say.
            transcription: Where the session says ``auto``.
            start_timeout_seconds: How long the server may take to load its models.
            module: Another module with the same command line.
            **llm_settings: Options of ``realtime llm``: ``brain="rules"`` becomes ``--brain rules``, ``x=True`` becomes
                ``--x``, False and None leave it out.
        """
        check_number("start_timeout_seconds", start_timeout_seconds, above=True)
        super().__init__(
            "ws://127.0.0.1/v1/realtime",  # the port is the child's to say
            voice=voice,
            turn_detection=turn_detection,
            transcription=transcription,
            capabilities=_CAPABILITIES,
            name="local",
        )
        self.open_timeout_seconds = start_timeout_seconds
        self._arguments = ["-m", module, "--port", "0", "--exit-with-stdin", *_options(llm_settings)]
        self._process: ServerProcess | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._transports: set[_HeldTransport] = set()

    async def open(self) -> Transport:
        """Connect, starting the server first if it does not run.

        Raises:
            MissingExtraError: The server's packages are not installed.
            ModelError: It did not start; the text ends with what it said.
            LinkLost: It died meanwhile; another attempt starts it again.
        """
        process = await self._running()
        try:
            url = await process.url(self.open_timeout_seconds)
        except (ModelError, MissingExtraError):
            await self._end(process)
            raise
        self.url = url
        transport = await connect(url, timeout_seconds=None, max_message_bytes=self.capabilities.max_message_bytes)
        held = _HeldTransport(transport, self._transports.discard)
        self._transports.add(held)
        return held

    async def aclose(self) -> None:
        """End the server, unless another session still talks to it. Within a second."""
        if not self._transports and self._process is not None:
            await self._end(self._process)

    async def _running(self) -> ServerProcess:
        """The child, started if there is none that lives on this loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # what belonged to another loop ended with it
            self._loop, self._starting, self._process = loop, asyncio.Lock(), None
            self._transports.clear()
        async with self._starting:
            if self._process is not None and self._process.has_ended:
                await self._end(self._process)
            if self._process is None:
                self._process = await ServerProcess.start(self._arguments)
            return self._process

    async def _end(self, process: ServerProcess) -> None:
        if self._process is process:
            self._process = None
        await process.aclose()


class _HeldTransport:
    """A transport that says when it is over."""

    def __init__(self, transport: Transport, let_go: Callable[[_HeldTransport], None]) -> None:
        self._transport = transport
        self._prompt = transport if isinstance(transport, PromptTransport) else None
        self._let_go = let_go

    async def send(self, data: str | bytes) -> None:
        """Send one wire message."""
        try:
            await self._transport.send(data)
        except LinkLost:
            self._let_go(self)
            raise

    @property
    def is_clear(self) -> bool:
        """Whether `send` would not wait."""
        return self._prompt is not None and self._prompt.is_clear

    def send_at_once(self, data: str | bytes) -> None:
        """As `send`, without waiting."""
        assert self._prompt is not None
        try:
            self._prompt.send_at_once(data)
        except LinkLost:
            self._let_go(self)
            raise

    async def receive(self) -> str | bytes:
        """Wait for the next wire message."""
        try:
            return await self._transport.receive()
        except LinkLost:
            self._let_go(self)
            raise

    async def aclose(self) -> None:
        """Close, within a second."""
        self._let_go(self)
        await self._transport.aclose()


def _options(settings: dict[str, str | float | bool | None]) -> list[str]:
    """Command line options of keyword settings."""
    options: list[str] = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if option in ("--port", "--host", "--exit-with-stdin"):
            raise ArgumentError(name, value, "left to LocalRealtime; run `realtime llm` and give its URL instead")
        if value is None or value is False:
            continue
        options += [option] if value is True else [option, str(value)]
    return options
