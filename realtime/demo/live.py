"""The call as a live terminal screen: who speaks, what is being said, frames with their reasons, budgets, latencies.

Owns: `LiveScreen`. Driven by `demo/call.py` through the `Screen` protocol; drawn by rich's own thread eight times a
second, so that drawing never holds the event loop. It reads the log and never changes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from realtime.chat.messages import ChatRole
from realtime.demo.log import Budget, CallLog, Kind, Line, in_seconds

__all__ = ["LiveScreen"]

_STYLES: dict[Kind, str] = {
    "user": "cyan",
    "model": "green",
    "frame": "blue",
    "budget": "yellow",
    "turn": "magenta",
    "tool": "magenta",
    "link": "bold yellow",
    "error": "bold red",
    "note": "dim",
}
_TALK: frozenset[Kind] = frozenset({"user", "model", "tool", "link", "error", "note"})
_BAR_WIDTH = 20


class LiveScreen:
    """Draws the call over the whole terminal and leaves the last picture standing when it ends."""

    def __init__(self, console: Console | None = None) -> None:
        """Draw on `console`; None: on stdout."""
        self._console = console or Console()
        self._log: CallLog | None = None
        self._budgets: tuple[Budget, ...] = ()
        self._title = ""
        self._live: Live | None = None

    def open(self, log: CallLog, title: str) -> None:
        """Take over the terminal."""
        self._log, self._title = log, title
        self._live = Live(get_renderable=self.render, console=self._console, refresh_per_second=8, screen=True)
        self._live.start()

    def show(self, lines: Sequence[Line], budgets: Sequence[Budget]) -> None:
        """Note the budgets; the lines are in the log."""
        self._budgets = tuple(budgets)

    def close(self) -> None:
        """Give the terminal back and print the last picture on it."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console.print(self.render(), height=min(self._console.height, 30))

    def render(self) -> RenderableType:
        """The screen as it is now."""
        log = self._log
        if log is None:
            return Text("")
        layout = Layout()
        layout.split_column(
            Layout(self._head(log), name="head", size=3),
            Layout(name="middle"),
            Layout(self._foot(log), name="foot", size=8),
        )
        layout["middle"].split_row(Layout(self._talk(log), ratio=5), Layout(self._frames(log), ratio=4))
        return layout

    def _head(self, log: CallLog) -> RenderableType:
        text = Text()
        for who, style in (("user", "cyan"), ("model", "green")):
            speaks = who in log.speaking
            text.append("● " if speaks else "○ ", style=style if speaks else "dim")
            text.append(f"{who} {'speaks' if speaks else 'listens'}    ", style=style if speaks else "dim")
        last = tuple(log.lines)[-1:]
        text.append(in_seconds(last[0].at) if last else "", style="dim")
        if not log.linked:
            text.append("    the model is away", style=_STYLES["error"])
        return Panel(text, title=self._title, title_align="left")

    def _talk(self, log: CallLog) -> RenderableType:
        rows = max(3, self._console.height - 16)
        text = Text(overflow="fold")
        for line in [line for line in tuple(log.lines) if line.kind in _TALK][-rows:]:
            text.append(f"{in_seconds(line.at)} ", style="dim")
            text.append(f"{line.kind:<6}", style=_STYLES[line.kind])
            text.append(f"{line.text}\n")
        for role, words in tuple(log.growing.values()):
            kind: Kind = "user" if role == ChatRole.USER else "model"
            text.append(f"{'…':>8} {kind:<6}", style=_STYLES[kind])
            text.append(f"{words} …\n", style="italic")
        shown = Text("\n").join(text.split("\n")[-rows:])
        return Panel(shown, title="talk", title_align="left")

    def _frames(self, log: CallLog) -> RenderableType:
        table = Table(box=None, expand=True, padding=(0, 1, 0, 0))
        for column in ("second", "source", "why", "age"):
            table.add_column(column, no_wrap=True)
        for frame in tuple(log.frames.values())[-max(3, self._console.height - 18) :]:
            style = "dim strike" if frame.left else _STYLES["frame"]
            reason = f"{frame.reason} → {frame.left}" if frame.left else frame.reason
            table.add_row(f"{frame.at:.2f}", frame.source, reason, f"{frame.age_ms} ms", style=style)
        return Panel(table, title=f"frames shown to the model ({log.pictures} kept)", title_align="left")

    def _foot(self, log: CallLog) -> RenderableType:
        bounds = Table(box=None, padding=(0, 1))
        for budget in self._budgets:
            bounds.add_row(budget.name, _bar(budget), f"{budget.used:g} of {_bound(budget)}")
        left = Group(
            bounds, Text(f"evicted {log.evicted}   trimmed {log.trimmed}   skipped {log.skipped}", style="dim")
        )
        turns = Table(box=None, padding=(0, 1))
        for column in ("turn", "transcript", "response", "first audio", "first heard"):
            turns.add_column(column, justify="right")
        latencies = tuple(log.latencies)
        for number, latency in list(enumerate(latencies, 1))[-5:]:
            steps = (latency.transcript_ms, latency.response_ms, latency.first_audio_ms, latency.first_played_ms)
            turns.add_row(str(number), *("–" if step is None else f"{step} ms" for step in steps))
        grid = Layout()
        grid.split_row(
            Layout(Panel(left, title="budgets", title_align="left")),
            Layout(Panel(turns, title="latency from the end of speech", title_align="left")),
        )
        return grid


def _bound(budget: Budget) -> str:
    return "any" if budget.bound is None else f"{budget.bound:g}"


def _bar(budget: Budget) -> Text:
    if not budget.bound:
        return Text("")
    full = min(_BAR_WIDTH, round(_BAR_WIDTH * budget.used / budget.bound))
    return Text("█" * full + "░" * (_BAR_WIDTH - full), style="red" if budget.used > budget.bound else "yellow")
