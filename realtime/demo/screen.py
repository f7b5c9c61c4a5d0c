"""The call, shown while it goes on: one printed line per thing that happened.

Owns: the `Screen` that a call shows itself on, `PlainScreen` (lines, for a pipe or a log), and `print_context`. The
live terminal is `demo/live.py`. Driven by `demo/call.py`. Never asks the session anything.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from realtime.chat.messages import ChatMessage
from realtime.demo.log import Budget, CallLog, Line, in_seconds

__all__ = ["PlainScreen", "Screen", "context_lines", "make_screen"]

_TEXT_WIDTH = 88


class Screen(Protocol):
    """Where a call is shown."""

    def open(self, log: CallLog, title: str) -> None:
        """Begin; `log` is read while the call goes on."""
        ...

    def show(self, lines: Sequence[Line], budgets: Sequence[Budget]) -> None:
        """Show what happened just now, and the budgets as they are."""
        ...

    def close(self) -> None:
        """End; the terminal is as it was."""
        ...


class PlainScreen:
    """Prints a line for everything that happens."""

    def open(self, log: CallLog, title: str) -> None:
        """Print the title."""
        print(title, flush=True)

    def show(self, lines: Sequence[Line], budgets: Sequence[Budget]) -> None:
        """Print the lines."""
        for line in lines:
            print(f"{in_seconds(line.at)}  {line.kind:<6} {line.text}", flush=True)

    def close(self) -> None:
        """Nothing to put back."""


def make_screen(*, plain: bool) -> Screen:
    """The live screen where stdout is a terminal and `rich` is installed; lines otherwise."""
    if not plain and sys.stdout.isatty():
        try:
            from realtime.demo.live import LiveScreen  # noqa: PLC0415  (rich is an extra)
        except ImportError:
            return PlainScreen()
        return LiveScreen()
    return PlainScreen()


def context_lines(messages: Sequence[ChatMessage]) -> list[str]:
    """A context to read: one line per message, numbered, long texts cut."""
    return [f"{number:4}  {message.role.value:<9} {_told(message)}" for number, message in enumerate(messages, 1)]


def _told(message: ChatMessage) -> str:
    parts = list[str]()
    if message.content:
        text = " ".join(message.content.split())
        parts.append(f"“{text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + '…'}”")
    parts.extend(f"calls {call.name}({call.arguments})" for call in message.tool_calls)
    for image in message.images:
        size = "{}×{} ".format(*image.size) if image.size else ""
        parts.append(f"picture {size}{image.mime_type}, {image.byte_length / 1000:.0f} kB")
    if message.audio is not None:
        parts.append(f"sound {message.audio.duration_ms / 1000:.1f} s")
    if message.source:
        parts.append(f"from {message.source}")
    if message.interrupted:
        parts.append(f"interrupted after {message.heard_ms} ms, unheard “{message.unheard}”")
    return " · ".join(parts) or "(no words)"
