"""The command `realtime`: `demo`, `serve`, `llm`, `inspect`.

Owns: its options, its exit codes (0 done; 1 the call failed; 2 what was asked cannot be done, said in one line on
stderr; 130 interrupted) and the check for another distribution of the same import name. Each command's room is loaded
only when it is asked for. It decides nothing that a room decides.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.metadata
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from realtime.command_line import CommandParser
    from realtime.demo.call import CallResult

__all__ = ["main"]

_DISTRIBUTION = "realtime-session"
_NAMESAKE = "realtime"
_OK, _FAILED, _CANNOT, _INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit code.

    Args:
        arguments: What stands after `realtime`; None: as the process was started.
    """
    warning = _namesake_warning()
    if warning:
        print(warning, file=sys.stderr)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from realtime.errors import RealtimeError
    except ImportError:
        return _CANNOT  # the other distribution has overwritten ours, as the warning says
    if given[:1] and given[0] in _COMMANDS_WITH_OWN_OPTIONS:
        run = _COMMANDS_WITH_OWN_OPTIONS[given[0]]
        call: Callable[[], int] = lambda: run(given[1:])  # noqa: E731  (typed, where a def would stand in a branch)
    else:
        options = _parser().parse_args(given)
        call = lambda: _demo(options.parser, options)  # noqa: E731
    try:
        return call()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (RealtimeError, OSError) as error:
        return _refuse(given[0], error)


def _refuse(command: str, error: BaseException) -> int:
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"realtime {command}: {text}", file=sys.stderr)
    return _CANNOT


def _namesake_warning() -> str:
    """What to say if PyPI's other `realtime`, which installs the same import name, is here too; empty if it is not."""
    try:
        other = importlib.metadata.distribution(_NAMESAKE)
    except importlib.metadata.PackageNotFoundError:
        return ""
    return (
        f"realtime: the distribution '{_NAMESAKE}' {other.version} (Supabase's client) is installed here as well as "
        f"'{_DISTRIBUTION}', under the same import name, and one overwrites the other: "
        f"pip uninstall -y {_NAMESAKE} && pip install --force-reinstall --no-deps {_DISTRIBUTION}"
    )


# -- options -----------------------------------------------------------------------------------------------------------


def _parser() -> CommandParser:
    from realtime.command_line import CommandParser

    parser = CommandParser(
        prog="realtime",
        description="Voice and vision sessions: a demo call, a local websocket LLM, an inspector of contexts.",
    )
    parser.add_argument("--version", action="version", version=f"{_DISTRIBUTION} {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    demo = commands.add_parser(
        "demo",
        help="play a microphone and a camera into a session and watch it live",
        description="Starts a local websocket LLM, plays media files through a real WebRTC call into a session, shows"
        " it live and writes context.json, reply.wav, call.wav and frames.png.",
    )
    _add_demo_options(demo)
    demo.set_defaults(parser=demo)
    commands.add_parser("serve", help="serve the page and the bot: talk to it in a browser (extra web)")
    commands.add_parser("llm", help="serve the local websocket LLM (OpenAI's Realtime protocol, offline)")
    commands.add_parser("inspect", help="show a written context: words, pictures, tool rounds, tokens")
    return parser


def _add_demo_options(parser: argparse.ArgumentParser) -> None:
    from realtime.command_line import count_or_any, number_or_any, path
    from realtime.demo.options import DEFAULT_INSTRUCTIONS

    add = parser.add_argument
    add("--media", action="append", type=path, default=[], metavar="FILE",
        help="a file to play: its sound is the microphone, its pictures the camera; may be given several times")  # fmt: skip
    add(
        "--text", action="append", default=[], metavar="SENTENCE", help="a sentence to type; may be given several times"
    )
    add(
        "--model",
        default="local",
        metavar="MODEL",
        help="local (default), openai:…, gemini:…, xai:…, azure:…, ws://host:port/v1/realtime",
    )
    add(
        "--out",
        type=path,
        default=Path("out"),
        metavar="DIR",
        help="the folder for the record of the call (default: out)",
    )
    add("--instructions", default=DEFAULT_INSTRUCTIONS, metavar="TEXT", help="what the model is told about its part")
    add(
        "--seconds",
        type=float,
        default=None,
        metavar="S",
        help="hang up after this long (default: when the media is over)",
    )
    add("--pause", type=float, default=None, metavar="S", dest="pause_seconds",
        help="silence between two spoken files (default: until the reply was heard)")  # fmt: skip
    add(
        "--max-tokens",
        type=count_or_any,
        default=8000,
        metavar="N",
        help="bound of the context window, or any (default: 8000)",
    )
    add("--retain-images-max", type=count_or_any, default=100, metavar="N", help="pictures kept, or any (default: 100)")
    add("--retain-images-every-n", type=int, default=1, metavar="N", help="keep one picture of every N (default: 1)")
    add("--audio-retention", default="transcript_only", choices=("transcript_only", "input_audio", "output_audio", "all"),
        help="whose sound the history keeps (default: transcript_only)")  # fmt: skip
    add(
        "--retain-audio-max-seconds",
        type=number_or_any,
        default=1800,
        metavar="S",
        help="seconds of sound kept, or any",
    )
    add(
        "--fps-speaking", type=float, default=1.0, metavar="FPS", help="frames shown while the user speaks (default: 1)"
    )
    add("--fps-idle", type=float, default=0.3, metavar="FPS", help="frames shown otherwise (default: 0.3)")
    add("--plain", action="store_true", help="print lines even on a terminal")


def _version() -> str:
    try:
        return importlib.metadata.version(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


# -- commands ----------------------------------------------------------------------------------------------------------


def _demo(parser: CommandParser, given: argparse.Namespace) -> int:
    from realtime.demo.call import run_call
    from realtime.demo.options import DemoOptions
    from realtime.demo.screen import context_lines, make_screen

    fields = {name: value for name, value in vars(given).items() if name not in {"command", "parser"}}
    fields["media"], fields["text"] = tuple(given.media), tuple(given.text)
    with parser.naming_options(given):
        options = DemoOptions(**fields)
        screen = make_screen(plain=options.plain)
        result = asyncio.run(_interruptible(lambda hang_up: run_call(options, screen, hang_up)))
    print("\nthe context at the end:")
    print("\n".join(context_lines(result.messages)))
    print("\nwritten: " + ", ".join(str(path) for path in result.files))
    if result.failed is not None:
        print(f"realtime demo: the session ended early: {result.failed}", file=sys.stderr)
        return _FAILED
    return _OK


async def _interruptible(call: Callable[[asyncio.Event], Coroutine[Any, Any, CallResult]]) -> CallResult:
    """Make a call that the first Ctrl-C hangs up in good order and the second one breaks off."""
    hang_up = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask() -> None:
        hang_up.set()
        loop.remove_signal_handler(signal.SIGINT)

    with contextlib.suppress(NotImplementedError):  # Windows has none: the first Ctrl-C breaks off
        loop.add_signal_handler(signal.SIGINT, ask)
    try:
        return await call(hang_up)
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _llm(arguments: list[str]) -> int:
    from realtime.local.cli import main as serve

    return serve(arguments)


def _inspect(arguments: list[str]) -> int:
    from realtime.demo.inspect import main as inspect

    return inspect(arguments)


def _serve(arguments: list[str]) -> int:
    from realtime.web.serve import main as serve

    return serve(arguments)


_COMMANDS_WITH_OWN_OPTIONS: dict[str, Callable[[list[str]], int]] = {
    "serve": _serve,
    "llm": _llm,
    "inspect": _inspect,
}
