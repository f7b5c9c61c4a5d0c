"""Files, read off the loop.

Owns: `read_off_loop` and its one thread, which lives only while something is read. Driven by `files` and `call`.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from realtime.pipelines.worker import WorkerPool

__all__ = ["read_off_loop"]

_POOL: Final = WorkerPool("realtime-web", max_threads=1, max_waiting=256)


async def read_off_loop(file: Traversable | Path) -> bytes | None:
    """A file's bytes; None if there is no such file."""
    member = _POOL.join()
    try:
        return await _POOL.run(_read, file)
    finally:
        await _POOL.leave(member)


def _read(file: Traversable | Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
