"""Files, read off the loop, and other work that would hold it.

Owns: `run_off_loop`, `read_off_loop`, `size_of`, `read_pieces` and their two threads, which live only while there is something to do. Driven
by `files` and `downloads`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from realtime.pipelines.worker import WorkerPool

__all__ = ["read_off_loop", "read_pieces", "run_off_loop", "size_of"]

P = ParamSpec("P")
T = TypeVar("T")

_POOL: Final = WorkerPool("realtime-web", max_threads=2, max_waiting=256)
_PIECE_BYTES = 256 * 1024


async def run_off_loop(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a thread."""
    member = _POOL.join()
    try:
        return await _POOL.run(function, *args, **kwargs)
    finally:
        await _POOL.leave(member)


async def read_off_loop(file: Traversable | Path) -> bytes | None:
    """A file's bytes; None if there is no such file."""
    return await run_off_loop(_read, file)


async def size_of(file: Path) -> int | None:
    """A file's size in bytes; None if there is no such file."""
    return await run_off_loop(_size, file)


async def read_pieces(file: Path, size: int) -> AsyncIterator[bytes]:
    """The first `size` bytes of a file, piece by piece; it may grow meanwhile."""
    at = 0
    while at < size:
        piece = await run_off_loop(_read_piece, file, at, min(_PIECE_BYTES, size - at))
        if not piece:
            return
        at += len(piece)
        yield piece


def _read(file: Traversable | Path) -> bytes | None:
    try:
        return file.read_bytes() if file.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


def _read_piece(file: Path, at: int, size: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(at)
        return opened.read(size)
