"""The reader as a child process.

Owns: `ReaderProcess`. Driven by the eyes, one picture at a time. The process is started with the first picture and again
if it died; it ends with the server. A picture that takes too long ends the process, so that the next one is read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any, Final

from realtime.errors import ImageError, ModelError
from realtime.local.reader import LENGTH

__all__ = ["ReaderProcess"]

START_SECONDS: Final = 60.0
"""How long it may take to load."""
READ_SECONDS: Final = 30.0
"""How long a picture may take."""
END_SECONDS: Final = 5.0
"""How long it may take to end by itself, when it has nothing to do. At work it is not waited for."""

_log = logging.getLogger(__name__)


class ReaderProcess:
    """A `WordReader` in a process of its own."""

    def __init__(self, module: str = "realtime.local.reader") -> None:
        """Describe it. Nothing is started yet.

        Args:
            module: What runs in the process.
        """
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._owed = 0  # answers that it has not given

    async def prepare(self) -> None:
        """Start it, if it does not run, and wait until it is ready.

        Raises:
            ModelError: It cannot.
        """
        async with self._turn:
            await self._running()

    async def read(self, picture: bytes) -> list[str]:
        """The lines of text in a picture, from top to bottom.

        Raises:
            ImageError: It cannot be decoded.
            ModelError: The process failed, or took too long.
        """
        async with self._turn:
            process = await self._running()
            assert process.stdin is not None
            try:
                async with asyncio.timeout(READ_SECONDS):
                    while self._owed:  # to somebody who did not wait for it
                        await self._answer(process)
                        self._owed -= 1
                    process.stdin.write(LENGTH.pack(len(picture)) + picture)
                    self._owed += 1
                    await process.stdin.drain()
                    answer = await self._answer(process)
                    self._owed -= 1
            except (TimeoutError, OSError) as error:
                await self._end(kill=True)
                raise ModelError(f"the reader failed: {type(error).__name__}", code="reader_failed") from None
        if "error" in answer:
            raise ImageError("picture", f"{len(picture)} bytes", f"an image that can be read ({answer['error']})")
        return [str(line) for line in answer.get("lines", ())]

    async def aclose(self) -> None:
        """End the process. It can be started again."""
        async with self._turn:
            await self._end()

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, stdin=pipe, stdout=pipe, stderr=nowhere
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._answer(process)
        except BaseException as error:
            await self._end(kill=True)
            if isinstance(error, TimeoutError):
                raise ModelError(f"the reader did not start within {START_SECONDS:g} s", code="reader_failed") from None
            raise
        if "fatal" in answer:
            await self._end()
            raise ModelError(str(answer["fatal"]), code="reader_failed")
        return process

    async def _answer(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            await self._end(kill=True)
            raise ModelError("the reader ended", code="reader_failed") from None
        return answer

    async def _end(self, *, kill: bool = False) -> None:
        process, self._process = self._process, None
        kill = kill or self._owed > 0  # it reads a picture that nobody waits for
        self._owed = 0
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not kill:
                async with asyncio.timeout(END_SECONDS):
                    await process.wait()
        except TimeoutError:
            _log.info("the reader did not end by itself within %g s", END_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
