"""What entered a session's machine, in one file, as it entered (issue: record and replay).

Owns: `MachineTap`, through which everything enters a machine that is recorded; `Recorder`, the file and the thread that writes
it; `SessionIds`, whose ids a replay makes again. Driven by `pipelines/driver.py`. `realtime.testing.replay` reads the file.
It never changes what passes, and never makes the loop wait for the disk.

The file begins with a line that says what it is. Each entry is a line of JSON; an entry that names the lengths of `blobs` is
followed by so many raw bytes, and a line end. It is written as it happens, so that a process that dies leaves all but the last
moment; a whole recording ends with an `end` entry. Now and then, and at the end, a hash of all events so far is written, by
which a replay finds out where it differs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

from realtime.chat.context import ChatContext
from realtime.core.capabilities import ModelCapabilities
from realtime.core.events import SessionEvent
from realtime.core.machine import SessionMachine
from realtime.core.settings import SessionSettings
from realtime.errors import BusyError, RealtimeError, UserError
from realtime.pipelines.record_values import ValueWriter, describe

__all__ = ["ENTRANCES", "MAGIC", "MachineTap", "Opening", "Recorder", "SessionIds", "encode_opening"]

MAGIC = b"realtime recording 1\n"
"""The first line of a recording."""
ENTRANCES = frozenset(
    {
        *("receive_model_event", "receive_audio", "receive_frame", "receive_image", "receive_voice_activity"),
        *("receive_played", "receive_track_ended", "receive_tool_output", "receive_approval", "receive_summary"),
        *("receive_command_done", "receive_command_failed", "receive_link_lost", "receive_link_restored"),
        *("send", "commit_audio", "clear_audio", "create_response", "interrupt", "look", "hand_off", "close"),
        *("next_link_command", "handle_deadline"),
    }
)
"""The calls that change a machine. All else reads, or takes out what these have put there."""
_OF_THE_OPENING = frozenset(
    {
        *("receive_model_event", "receive_link_restored", "receive_command_done", "receive_command_failed"),
        *("next_link_command", "handle_deadline"),
    }
)
_MOST_OPENING = 4_096
"""What enters before anybody has said or shown anything is kept for so long, so that a recording can begin with it."""
_CHECK_EVERY = 256
_IDS_AT_ONCE = 32
_MOST_WAITING_BYTES = 64_000_000
"""What may wait for the disk; a recording with a hole would be none, so that it ends beyond."""


class SessionIds:
    """The ids of one session: 32 characters, the longest that providers take, and made again from the first 20."""

    def __init__(self, prefix: str | None = None) -> None:
        """Begin with a prefix of 20 characters of its own, or with a recorded one."""
        self.prefix = uuid.uuid4().hex[:20] if prefix is None else prefix
        self.make: Callable[[], str] = _numbered(self.prefix).__next__
        """Gives a fresh id. Hot path: 50 times a second."""


def _numbered(prefix: str) -> Iterator[str]:
    """The ids in order; many are made at once, since the first costs several times what the next do."""
    for first in count(1, _IDS_AT_ONCE):
        yield from [f"{prefix}{number:012x}" for number in range(first, first + _IDS_AT_ONCE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a machine was made of."""

    settings: SessionSettings
    """What the user chose."""
    capabilities: ModelCapabilities
    """What the model can do."""
    context: ChatContext
    """A copy of the context as it was."""
    id_prefix: str
    """Of its ids."""
    wall_offset: float
    """Wall time minus `now`."""
    now: float
    """When it was made."""


def encode_opening(opening: Opening, writer: ValueWriter, blobs: list[bytes]) -> dict[str, Any]:
    """The first entry of a recording."""
    return {
        "settings": writer.encode(opening.settings, blobs),
        "capabilities": writer.encode(opening.capabilities, blobs),
        "messages": writer.encode(tuple(opening.context.messages()), blobs),
        "handoffs": writer.encode(tuple(opening.context.handoffs()), blobs),
        "id_prefix": opening.id_prefix,
        "wall_offset": opening.wall_offset,
        "now": opening.now,
    }


class Recorder:
    """One file, written by a thread of its own."""

    def __init__(self, path: Path, *, report: Callable[[BaseException], None]) -> None:
        """Open the file; one that is there is replaced.

        Args:
            path: Where.
            report: Told, on the loop, if the recording ends early.

        Raises:
            UserError: The file cannot be written.
        """
        try:
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            raise UserError(f"the recording {path} cannot be written: {error.strerror or error}") from error
        self._report = report
        self._writer = ValueWriter()
        self._digest = hashlib.sha256()
        self._told = 0
        self._queued = 0
        self._written = 0
        self._failure: OSError | None = None
        self._is_over = False
        self._done = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="realtime-record", daemon=True)
        self._queue.put(MAGIC)
        self._thread.start()

    # -- what is written ----------------------------------------------------------------------------------------------

    def begin(self, opening: Opening) -> None:
        """The first entry: what the machine was made of."""
        blobs: list[bytes] = []
        self._put({"opening": encode_opening(opening, self._writer, blobs)}, blobs)

    def entered(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:  # hot path: every feed
        """Something enters the machine."""
        blobs: list[bytes] = []
        given = [self._writer.encode(one, blobs) for one in args]
        named = {key: self._writer.encode(one, blobs) for key, one in kwargs.items()}
        self._put({"call": name, "args": given, "kwargs": named}, blobs)

    def told(self, event: SessionEvent) -> None:
        """The machine told an event."""
        self._digest.update(describe(event))
        self._told += 1
        if self._told % _CHECK_EVERY == 0:
            self._put(self._check(), [])

    def published(self, event: SessionEvent) -> None:
        """A shell told an event that is none of the machine's business."""
        blobs: list[bytes] = []
        self._put({"published": self._writer.encode(event, blobs), "told": self._told}, blobs)

    def _check(self) -> dict[str, Any]:
        return {"check": self._told, "digest": self._digest.hexdigest()}

    def _put(self, entry: dict[str, Any], blobs: list[bytes]) -> None:
        if self._is_over:
            return
        if self._failure is not None:
            self._give_up(UserError(f"the recording ends: {self._failure.strerror or self._failure}"))
            return
        if blobs:
            entry["blobs"] = [len(blob) for blob in blobs]
        line = json.dumps(entry, separators=(",", ":")).encode()
        data = b"".join((line, b"\n", *blobs, b"\n")) if blobs else line + b"\n"
        if self._queued - self._written + len(data) > _MOST_WAITING_BYTES:
            self._give_up(BusyError("the recording ends: the disk is too slow for what enters"))
            return
        self._queued += len(data)
        self._queue.put(data)

    def _give_up(self, error: RealtimeError) -> None:
        """A recording with a hole is none: what was written until now stays, without an end."""
        self._is_over = True
        self._queue.put(None)
        self._report(error)

    # -- its end --------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Nothing more enters. A second time does nothing."""
        if not self._is_over:
            self._put({**self._check(), "end": True}, [])
        if not self._is_over:
            self._is_over = True
            self._queue.put(None)

    async def aclose(self) -> None:
        """Finish, and wait until everything is on disk."""
        self.finish()
        await self._done.wait()

    def _write(self) -> None:
        """On the thread: whatever comes, in order, until the end."""
        try:
            with self._file as file:
                while (data := self._queue.get()) is not None:
                    file.write(data)
                    self._written += len(data)
                    if self._queue.empty():
                        file.flush()
        except OSError as error:
            self._failure = error
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits
                self._loop.call_soon_threadsafe(self._done.set)


_Early = tuple[str, Any]


class _Entrance:
    """Stands where the machine stands, for whoever changes it. It has no names of its own, so that it hides none."""

    __slots__ = ("_enter", "_machine")

    def __init__(self, machine: SessionMachine, enter: Callable[..., Any]) -> None:
        self._machine = machine
        self._enter = enter

    def __getattr__(self, name: str) -> Any:
        """The machine's own; what changes it is noted first."""
        found = getattr(self._machine, name)
        return partial(self._enter, name, found) if name in ENTRANCES else found


class MachineTap:
    """Notes what enters a machine through `entrance`, and what is told."""

    def __init__(self, machine: SessionMachine, opening: Opening, *, on_idle: Callable[[], None]) -> None:
        """Keep the opening, so that a recording that begins soon begins with it.

        Args:
            machine: What is entered.
            opening: What it was made of.
            on_idle: Told when nothing is noted any more, and nothing will be.
        """
        self.entrance = cast("SessionMachine", _Entrance(machine, self._enter))
        """What to call in the machine's place."""
        self._opening: Opening | None = opening
        self._early: list[_Early] | None = []
        self._recorder: Recorder | None = None
        self._on_idle = on_idle

    @property
    def recorder(self) -> Recorder | None:
        """Who records, if anybody does."""
        return self._recorder

    def check_early(self) -> None:
        """Refuse a recording that could not begin with the session.

        Raises:
            UserError: It is recorded already, or too much has entered.
        """
        if self._recorder is not None:
            raise UserError("this session is being recorded already")
        if self._early is None:
            raise UserError("a recording begins with the session: call record() before anything is said or shown")

    def record(self, recorder: Recorder) -> None:
        """Write what has entered so far, and everything from now on.

        Raises:
            UserError: It is recorded already, or too much has entered.
        """
        self.check_early()
        assert self._early is not None
        assert self._opening is not None
        early, opening = self._early, self._opening
        self._early = self._opening = None
        self._recorder = recorder
        recorder.begin(opening)
        for kind, what in early:
            if kind == "call":
                recorder.entered(*what)
            elif kind == "told":
                recorder.told(what)
            else:
                recorder.published(what)

    def _enter(self, name: str, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._recorder is not None:
            self._recorder.entered(name, args, kwargs)
        elif self._early is not None:
            if name not in _OF_THE_OPENING or len(self._early) >= _MOST_OPENING:
                self._early = self._opening = None  # pictures and recordings that it holds are let go (R3)
                self._on_idle()
            else:
                self._early.append(("call", (name, args, kwargs)))
        return method(*args, **kwargs)

    def told(self, event: SessionEvent) -> None:
        """The machine told an event."""
        if self._recorder is not None:
            self._recorder.told(event)
        elif self._early is not None:
            self._early.append(("told", event))

    def published(self, event: SessionEvent) -> None:
        """A shell told an event."""
        if self._recorder is not None:
            self._recorder.published(event)
        elif self._early is not None:
            self._early.append(("published", event))

    def close(self) -> None:
        """The session is over."""
        self._early = self._opening = None
        if self._recorder is not None:
            self._recorder.finish()
