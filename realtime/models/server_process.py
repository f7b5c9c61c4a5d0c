"""A local server as a child process.

Owns: `ServerProcess`. Driven by `models/local.py`. The child listens on a free port of the loopback interface and says
which on its standard output; it ends when its standard input ends, so it never outlives this process. Its output is
read as it comes and all but the last lines are let go.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from realtime.errors import MissingExtraError, ModelError

__all__ = ["ServerProcess"]

_LISTENING = re.compile(rb"listening on (ws://[^\s]+)")
_MISSING_EXTRA = re.compile(r"(?:Error: )?(.+) needs (.+): pip install 'realtime-session\[([\w,-]+)\]'")
_TAIL_LINES = 40
_MAX_LINE_BYTES = 4096
_STEP_SECONDS = 0.4  # for the child to end by itself, then to obey; killed after both

_log = logging.getLogger(__name__)


class _Lines:
    """The last lines of a stream, each cut at a length."""

    def __init__(self) -> None:
        self.last: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._open = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk; give the lines that it completed."""
        *lines, rest = (self._open + data).split(b"\n")
        self._open = rest[:_MAX_LINE_BYTES]
        whole = [line[:_MAX_LINE_BYTES].rstrip(b"\r") for line in lines]
        self.last.extend(line for line in whole if line.strip())
        return whole

    def text(self) -> str:
        """What is kept, as text."""
        lines = [*self.last, self._open] if self._open.strip() else self.last
        return b"\n".join(lines).decode("utf-8", "replace")


class ServerProcess(asyncio.SubprocessProtocol):
    """One child. It is started once; a new one takes the place of one that has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make the protocol; use `start`."""
        self._url: asyncio.Future[str] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._output = _Lines()
        self._errors = _Lines()

    @classmethod
    async def start(cls, arguments: Sequence[str]) -> ServerProcess:
        """Start ``python ARGUMENTS`` with its three streams connected to us and no part in the terminal's signals."""
        loop = asyncio.get_running_loop()
        pipe = asyncio.subprocess.PIPE
        _, process = await loop.subprocess_exec(
            lambda: cls(loop),
            sys.executable,
            *arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        return process

    # -- what asyncio calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Read what the child says."""
        data = data if isinstance(data, bytes) else data.encode()
        stream = self._output if fd == 1 else self._errors
        for line in stream.feed(data):
            found = _LISTENING.search(line) if fd == 1 else None
            if found and not self._url.done():
                self._url.set_result(found[1].decode("ascii", "replace"))
            elif line.strip():
                _log.debug("local server: %s", line[:200].decode("utf-8", "replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The child has ended and all that it said was read."""
        if not self._ended.done():
            self._ended.set_result(None)

    # -- what the model calls ---------------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """Whether the child is gone."""
        return self._ended.done() or (self._transport is not None and self._transport.get_returncode() is not None)

    async def url(self, timeout_seconds: float) -> str:
        """Wait for the address that the child listens on. Cancelling leaves the child as it is.

        Raises:
            MissingExtraError: The child says that a package is missing.
            ModelError: The child ended before it listened, or took too long; with the end of what it said.
        """
        either: set[asyncio.Future[Any]] = {self._url, self._ended}
        await asyncio.wait(either, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._url.done():
            return self._url.result()
        if not self._ended.done():
            raise ModelError(
                f"the local server did not listen within {timeout_seconds:g} s{self._said()}",
                code="server_timeout",
                fatal=True,
            )
        missing = _MISSING_EXTRA.search(self._errors.text())
        if missing:
            raise MissingExtraError(missing[1], package=missing[2], extra=missing[3])
        code = self._transport.get_returncode() if self._transport is not None else None
        raise ModelError(
            f"the local server ended with code {code} before it listened{self._said()}",
            code="server_failed",
            fatal=True,
        )

    async def aclose(self) -> None:
        """End the child: let it go, ask it, kill it. Within a second; idempotent."""
        transport = self._transport
        if transport is None:
            return
        try:
            stdin = transport.get_pipe_transport(0)
            if stdin is not None:
                stdin.close()
            if not await self._wait():
                if transport.get_returncode() is None:
                    transport.terminate()
                await self._wait()
        finally:
            transport.close()  # kills what is left
            await self._wait()

    async def _wait(self) -> bool:
        await asyncio.wait({self._ended}, timeout=_STEP_SECONDS)
        return self._ended.done()

    def _said(self) -> str:
        text = self._errors.text() or self._output.text()
        return ": " + text[-2000:] if text else ", and said nothing"
