"""Plays a recorded session through the core again (issue: record and replay).

Owns: `replay` and `Replay`. Driven by tests and by whoever looks for a fault. Reads the file that `RealtimeSession.record`
wrote, entry by entry; no loop, no socket, no thread, no model. It never guesses: what cannot be read is said.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage
from realtime.core.commands import LinkCommand, LocalCommand
from realtime.core.events import SessionEvent
from realtime.core.machine import SessionMachine
from realtime.core.statistics import MachineStatistics
from realtime.errors import RealtimeError, UserError
from realtime.pipelines.record import ENTRANCES, MAGIC, SessionIds
from realtime.pipelines.record_values import ValueReader, describe

__all__ = ["Replay", "ReplayError", "describe", "replay"]


class ReplayError(AssertionError):
    """The core does something else now than it did when the session was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a recording."""

    events: tuple[SessionEvent, ...]
    """Everything that an iterator of the session would have got, in order."""
    commands: tuple[LinkCommand | LocalCommand, ...]
    """Everything that the machine wanted done."""
    context: ChatContext
    """The context at the end."""
    messages: tuple[ChatMessage, ...]
    """The history at the end."""
    statistics: MachineStatistics
    """The machine's figures at the end."""
    is_whole: bool
    """Whether the recording has its end; one of a process that died has not."""
    checked_events: int
    """How many events were compared with the recorded ones, by hash, and were the same."""


class _Unused:
    """In the place of a summarizer: its texts are in the recording."""

    async def summarize(self, messages: Sequence[ChatMessage]) -> str:
        """Never called."""
        raise AssertionError("a replay asks for no summary: its texts are in the recording")


def replay(path: str | os.PathLike[str], *, counter: object = None, check: bool = True) -> Replay:
    """Play a recording of `RealtimeSession.record`: the same events and context, byte for byte.

    Args:
        path: The file.
        counter: The token counter, if the session counted by one of its own.
        check: Compare the events with the recorded ones, by hash.

    Raises:
        UserError: It is no recording, or holds what this version does not know.
        ReplayError: The events are others, and `check` is on.
    """
    with Path(path).open("rb") as file:
        if file.readline(len(MAGIC) + 1) != MAGIC:
            raise UserError(f"{os.fspath(path)} is no recording of a session")
        player = _Player(ValueReader(counter=counter, summarizer=_Unused()), check=check)
        for entry, blobs in _entries(file):
            player.take(entry, blobs)
    return player.result()


def _entries(file: BinaryIO) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Each whole entry; one that was cut off by the end of the process that wrote it is passed over."""
    while (line := file.readline()).endswith(b"\n"):
        try:
            entry = cast("dict[str, Any]", json.loads(line))
        except ValueError as error:
            raise UserError(f"the recording is damaged before byte {file.tell()}") from error
        lengths: list[int] = entry.get("blobs", [])
        blobs = [file.read(length) for length in lengths]
        if [len(blob) for blob in blobs] != lengths or (lengths and file.read(1) != b"\n"):
            return
        yield entry, blobs


class _Player:
    """A machine that is fed by a recording."""

    def __init__(self, reader: ValueReader, *, check: bool) -> None:
        self._reader = reader
        self._checks = check
        self._machine: SessionMachine | None = None
        self._events: list[SessionEvent] = []
        self._commands: list[LinkCommand | LocalCommand] = []
        self._digest = hashlib.sha256()
        self._told = 0
        self._checked = 0
        self._is_whole = False

    def take(self, entry: dict[str, Any], blobs: list[bytes]) -> None:
        """One entry."""
        if "opening" in entry:
            self._open(entry["opening"], blobs)
        elif "call" in entry:
            self._call(entry, blobs)
        elif "published" in entry:
            self._drain(up_to=int(entry["told"]))
            self._events.append(self._reader.decode(entry["published"], blobs))
        elif "check" in entry:
            self._check(entry)
        else:
            raise UserError(f"this version knows no entry {sorted(entry)}, which the recording holds")

    def _open(self, opening: dict[str, Any], blobs: list[bytes]) -> None:
        read = self._reader.decode
        messages, handoffs = read(opening["messages"], blobs), read(opening["handoffs"], blobs)
        self._machine = SessionMachine(
            read(opening["settings"], blobs),
            read(opening["capabilities"], blobs),
            ChatContext(messages, handoffs),
            make_id=SessionIds(str(opening["id_prefix"])).make,
            wall_offset=float(opening["wall_offset"]),
            now=float(opening["now"]),
        )

    def _opened(self) -> SessionMachine:
        if self._machine is None:
            raise UserError("the recording has no beginning")
        return self._machine

    def _call(self, entry: dict[str, Any], blobs: list[bytes]) -> None:
        machine, name = self._opened(), str(entry["call"])
        if name not in ENTRANCES:
            raise UserError(f"this version knows no {name!r}, which the recording holds")
        args = [self._reader.decode(one, blobs) for one in entry["args"]]
        kwargs = {key: self._reader.decode(one, blobs) for key, one in entry["kwargs"].items()}
        try:
            found = getattr(machine, name)(*args, **kwargs)
        except RealtimeError:
            found = None  # it was raised then, too: what followed from it is in the recording
        if name in ("next_link_command", "receive_audio") and found is not None:
            self._commands.append(found)
        while (command := machine.next_command()) is not None:
            self._commands.append(command)

    def _drain(self, *, up_to: int | None = None) -> None:
        machine = self._opened()
        while up_to is None or self._told < up_to:
            event = machine.next_event()
            if event is None:
                if up_to is not None and self._checks:
                    raise ReplayError(f"{up_to} events were told then, and only {self._told} now")
                return
            self._events.append(event)
            self._digest.update(describe(event))
            self._told += 1

    def _check(self, entry: dict[str, Any]) -> None:
        self._drain(up_to=int(entry["check"]))
        if self._checks and self._digest.hexdigest() != entry["digest"]:
            raise ReplayError(f"the events {self._checked + 1} to {self._told} are not all what they were then")
        self._checked = self._told
        self._is_whole = bool(entry.get("end"))

    def result(self) -> Replay:
        """What came of it."""
        machine = self._opened()
        self._drain()
        if self._checks and self._is_whole and self._told != self._checked:
            raise ReplayError(f"{self._checked} events were told then, and {self._told} now")
        return Replay(
            events=tuple(self._events),
            commands=tuple(self._commands),
            context=machine.context,
            messages=tuple(machine.messages()),
            statistics=machine.statistics(),
            is_whole=self._is_whole,
            checked_events=self._checked,
        )
