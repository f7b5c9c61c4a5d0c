"""`realtime inspect context.json`: a written context, to read.

Owns: the command's options, reading the file, and `show`. Driven by `cli.py`. Drawn by `inspect_terminal` (rich: words,
tool rounds, small pictures of half blocks) and, with ``--html``, by `inspect_page` (one file, pictures and sound in it).
What a window would trim is told message by message. Never changes the file, loads nothing from an address.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realtime.chat.context import ChatContext
from realtime.chat.window import ContextWindow
from realtime.command_line import CommandParser
from realtime.demo.inspect_facts import Inspection
from realtime.errors import ArgumentError, MissingExtraError, UserError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["inspect_file", "main", "show"]

_OK = 0


def main(arguments: Sequence[str]) -> int:
    """Run the command. Returns its exit code.

    Args:
        arguments: What stands after ``realtime inspect``.

    Raises:
        UserError: What was asked cannot be done, in one line.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    with parser.naming_options(given):
        window = ContextWindow(
            given.max_tokens, given.max_context_items, given.keep_recent_turns, counter=given.counter
        )
        show(given.path, html=given.html, window=window)
    return _OK


def show(
    path: str | Path,
    *,
    html: str | Path | None = None,
    window: ContextWindow | None = None,
    console: Console | None = None,
) -> None:
    """Show a written context in the terminal, or write it as a page.

    Args:
        path: A file as `ChatContext.to_dict` or `to_context_messages` has it, in JSON.
        html: Write a page to this file instead.
        window: Tell what this window would trim; None: nothing is trimmed.
        console: Where to draw; None: on stdout.

    Raises:
        UserError: The file cannot be read, is no context, or the page cannot be written.
        MissingExtraError: Drawing needs the extra ``demo``.
    """
    inspection = inspect_file(path, window)
    if html is not None:
        _check_path("html", html)
        from realtime.demo.inspect_page import page  # noqa: PLC0415  # only for pages

        try:
            Path(html).write_text(page(inspection), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{html} cannot be written ({error.strerror})") from error
        print(f"{inspection.summary}\nwritten: {html}")
        return
    try:
        from realtime.demo.inspect_terminal import draw  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise MissingExtraError("realtime inspect", extra="demo", package="rich") from error
    draw(inspection, console)


def inspect_file(path: str | Path, window: ContextWindow | None = None) -> Inspection:
    """Read a written context and ask a window about it.

    Raises:
        UserError: The file cannot be read, or is no context.
    """
    _check_path("path", path)
    context = _read(Path(path))
    asked = window or ContextWindow()
    return Inspection(
        name=Path(path).name,
        messages=tuple(context.explain(asked)),
        handoffs=tuple(context.handoffs()),
        window=asked,
        turn_count=context.spoken_turn_count(),
    )


def _check_path(name: str, path: str | Path) -> None:
    """An empty variable of a shell is no path; Path makes the present folder of it."""
    if not str(path):
        raise ArgumentError(name, path, "the path of a file")


def _read(path: Path) -> ChatContext:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        data: Any = json.loads(text)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON") from error
    try:
        if isinstance(data, list):
            return ChatContext.from_context_messages(data)
        if isinstance(data, dict) and ("items" in data or "handoffs" in data):
            return ChatContext.from_dict(data)  # pyright: ignore[reportUnknownArgumentType]
    except (ArgumentError, TypeError) as error:
        raise UserError(f"{path} is no context: {error}") from error
    raise UserError(f"{path} is no context: it has neither 'items' nor is it a list of messages")


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="realtime inspect",
        description="Shows a written context: words, pictures, tool rounds and tokens, and what a window would trim.",
    )
    add = parser.add_argument
    add("path", metavar="FILE", help="a context as JSON, such as out/context.json")
    add("--html", metavar="FILE", help="write a page with the pictures and the sound instead")
    add("--max-tokens", type=int, default=None, metavar="N", help="the window's bound in tokens (default: none)")
    add(
        "--max-context-items",
        type=int,
        default=None,
        metavar="N",
        help="the window's bound in messages (default: none)",
    )
    add("--keep-recent-turns", type=int, default=3, metavar="N", help="turns that the window keeps (default: 3)")
    add(
        "--counter",
        default=None,
        choices=("words", "estimate", "o200k"),
        help="how tokens are counted (default: words)",
    )
    return parser
