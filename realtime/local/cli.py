"""The command line of the local server: ``python -m realtime.local`` and ``realtime llm``.

Owns: its options, and running a server until it is told to end: by SIGTERM or SIGINT, or by the end of its standard input
where a parent asked for that. What was asked and cannot be done is one line on stderr and exit code 2.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from realtime.command_line import CommandParser, path
from realtime.errors import RealtimeError
from realtime.local.settings import LlmSettings

__all__ = ["add_arguments", "main", "run"]

SWITCH_SECONDS = 0.001
"""How long a worker thread may hold the interpreter while the loop has something to do."""
_OK, _CANNOT = 0, 2
_DEFAULTS = LlmSettings()
_METAVARS: dict[Callable[[str], object], str] = {str: "TEXT", path: "DIR"}
_KEY_NAMES = {
    "api_key": "REALTIME_API_KEY",
    "brain_key": "REALTIME_BRAIN_KEY",
    "recognizer_key": "REALTIME_RECOGNIZER_KEY",
    "synthesizer_key": "REALTIME_SYNTHESIZER_KEY",
}
"""Environment variables for keys: other users of a machine see its command lines."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `realtime llm` to a parser. A setting's name is its option's, `_` for `-`."""
    _add_server(parser.add_argument_group("the server").add_argument)
    _add_parts(parser.add_argument_group("its parts").add_argument)
    other = parser.add_argument_group("its process")
    other.add_argument("--exit-with-stdin", action="store_true", help="end when standard input ends, as a child")
    other.add_argument(
        "--log-level", default="warning", choices=("debug", "info", "warning", "error"), help="what goes to stderr"
    )


def _add_server(add: Callable[..., object]) -> None:
    _add(add, "--host", str, "address to listen on; the default is for this machine alone")
    _add(add, "--port", int, "port to listen on; 0: any free one")
    _add(add, "--max-sessions", int, "sessions at once")
    _add(add, "--silence-ms", int, "silence that ends a turn, where a client does not say")
    _add(add, "--threads", int, "threads that recognize, synthesize and look")
    _add(add, "--api-key", str, f"what clients must show as their key (or {_KEY_NAMES['api_key']})")
    add(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="a web page that may connect, besides those of this machine; may be given several times",
    )
    _add(add, "--session-seconds", float, "how long a session may live")
    _add(add, "--requests-per-minute", int, "responses that a session may ask for")
    _add(add, "--max-message-bytes", int, "the largest message that is taken")
    _add(add, "--drain-seconds", float, "when told to end, how long replies under way may take")


def _add_parts(add: Callable[..., object]) -> None:
    _add(add, "--brain", str, "what replies: rules, smollm, or the URL of an OpenAI-compatible chat endpoint")
    _add(add, "--brain-model", str, "the chat endpoint's model")
    _add(add, "--brain-key", str, f"the chat endpoint's key (or {_KEY_NAMES['brain_key']})")
    _add(add, "--brain-max-tokens", int, "how much of a conversation the chat endpoint is sent")
    add("--brain-blind", action="store_true", help="the chat endpoint takes no pictures: put them into words")
    _add(add, "--recognizer", str, "what hears: tiny, base, or the URL of an OpenAI-compatible endpoint")
    _add(add, "--recognizer-model", str, f"the endpoint's model; its key is {_KEY_NAMES['recognizer_key']}")
    _add(add, "--model-dir", path, "a CTranslate2 Whisper model of your own")
    _add(add, "--turn-judge", str, "what hears whether a turn is over: smart-turn, none, or auto (if it is installed)")
    _add(add, "--synthesizer", str, "what speaks: hibari, or the URL of an OpenAI-compatible endpoint")
    _add(add, "--synthesizer-model", str, f"the endpoint's model; its key is {_KEY_NAMES['synthesizer_key']}")
    _add(add, "--synthesizer-voice", str, "the endpoint's voice")


def _add(add: Callable[..., object], option: str, kind: Callable[[str], object], text: str) -> None:
    default = getattr(_DEFAULTS, option[2:].replace("-", "_"))
    shown = f"{text} (default: {f'{default:g}' if kind is float else default})" if default else text
    add(option, type=kind, default=default, metavar=_METAVARS.get(kind, "N"), help=shown)


def run(parser: CommandParser, options: argparse.Namespace) -> int:
    """Run a server until it is told to end. Returns the exit code.

    Args:
        parser: What read the options.
        options: What it read.
    """
    try:
        with parser.naming_options(options, origins="origin"):
            settings = _settings(options)
            logging.basicConfig(
                level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
            )
            asyncio.run(_serve(settings, exit_with_stdin=options.exit_with_stdin))
    except KeyboardInterrupt:
        return _OK
    except (RealtimeError, OSError) as error:
        print(f"realtime llm: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201  (a command's words)
        return _CANNOT
    return _OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code.

    Args:
        arguments: The options; None: as the process was started.
    """
    parser = CommandParser(
        prog="realtime llm",
        description="A websocket LLM that runs offline and speaks OpenAI's Realtime protocol: speech in and out, pictures, tools.",
    )
    add_arguments(parser)
    return run(parser, parser.parse_args(arguments))


def _settings(options: argparse.Namespace) -> LlmSettings:
    names = [field.name for field in fields(LlmSettings)]
    given: dict[str, Any] = {name: getattr(options, name) for name in names if hasattr(options, name)}
    keys = {name: os.environ.get(variable) or None for name, variable in _KEY_NAMES.items() if given.get(name) is None}
    given |= keys
    given |= {"origins": tuple(options.origin), "brain_sees": not options.brain_blind}
    return LlmSettings(**given)


async def _serve(settings: LlmSettings, *, exit_with_stdin: bool) -> None:
    from realtime.local.loading import load_parts  # noqa: PLC0415  (a wrong option needs no models)
    from realtime.local.server import LlmServer  # noqa: PLC0415
    from realtime.local.workers import FairPool  # noqa: PLC0415

    sys.setswitchinterval(SWITCH_SECONDS)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if exit_with_stdin:
        watcher = threading.Thread(target=_watch_stdin, args=(loop, stop), name="realtime-stdin", daemon=True)
        watcher.start()
    async with FairPool(settings.threads) as pool:
        parts = await pool.run("", "now", load_parts, settings, pool)
        gc.collect()
        gc.freeze()  # what was loaded stays: to look through it again and again would hold the loop for tens of milliseconds
        async with LlmServer(settings, parts, pool) as server:
            print(f"listening on {server.url}", flush=True)  # noqa: T201  (who started it reads this)
            await stop.wait()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Wait for the end of standard input: whoever started this has let it go, or is gone."""
    descriptor = sys.stdin.fileno()
    while os.read(descriptor, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)
