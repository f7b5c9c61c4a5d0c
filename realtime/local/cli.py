"""The command line of the local server: ``python -m realtime.local`` and ``realtime llm``.

Owns: its options, and running a server until it is told to end: by SIGTERM or SIGINT, or by the end of its standard input
where a parent asked for that. What was asked and cannot be done is one line on stderr and exit code 2.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from realtime.errors import RealtimeError
from realtime.local.settings import LlmSettings

__all__ = ["add_arguments", "main", "run"]

_OK, _CANNOT = 0, 2
_DEFAULTS = LlmSettings()


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(_CANNOT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `realtime llm` to a parser."""
    add = parser.add_argument
    add("--host", default=_DEFAULTS.host, help="address to listen on (default: %(default)s, this machine only)")
    add("--port", type=int, default=_DEFAULTS.port, help="port to listen on; 0: any free one (default: %(default)s)")
    add(
        "--max-sessions",
        type=int,
        default=_DEFAULTS.max_sessions,
        metavar="N",
        help="sessions at once (default: %(default)s)",
    )
    add("--silence-ms", type=int, default=_DEFAULTS.silence_ms, metavar="MS",
        help="silence that ends a turn, where a client does not say (default: %(default)s)")  # fmt: skip
    add("--threads", type=int, default=_DEFAULTS.threads, metavar="N", help="worker threads (default: %(default)s)")
    add("--model-dir", type=Path, metavar="DIR", help="a CTranslate2 Whisper model of your own")
    add("--api-key", metavar="KEY", help="what clients must show as their key (default: nothing)")
    add("--origin", action="append", default=[], metavar="URL",
        help="a web page that may connect, besides those of this machine; may be given several times")  # fmt: skip
    add("--session-seconds", type=float, default=_DEFAULTS.session_seconds, metavar="S",
        help="how long a session may live (default: %(default)g)")  # fmt: skip
    add("--requests-per-minute", type=int, default=_DEFAULTS.requests_per_minute, metavar="N",
        help="responses that a session may ask for in a minute (default: %(default)s)")  # fmt: skip
    add("--drain-seconds", type=float, default=_DEFAULTS.drain_seconds, metavar="S",
        help="when told to end, how long replies under way may take (default: %(default)g)")  # fmt: skip
    add("--brain", default=_DEFAULTS.brain, metavar="BRAIN",
        help="what replies: rules (default, offline), or the URL of an OpenAI-compatible chat endpoint")  # fmt: skip
    add("--brain-model", default=_DEFAULTS.brain_model, metavar="NAME", help="the chat endpoint's model")
    add("--brain-key", metavar="KEY", help="the chat endpoint's key (default: OPENAI_API_KEY, if set)")
    add("--exit-with-stdin", action="store_true", help="end when standard input ends, as a child of another program")
    add(
        "--log-level", default="warning", choices=("debug", "info", "warning", "error"), help="what is logged to stderr"
    )


def run(options: argparse.Namespace) -> int:
    """Run a server until it is told to end. Returns the exit code."""
    try:
        settings = _settings(options)
        logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
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
    parser = _Parser(
        prog="realtime llm",
        description="A websocket LLM that runs offline and speaks OpenAI's Realtime protocol: speech in and out, pictures, tools.",
    )
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def _settings(options: argparse.Namespace) -> LlmSettings:
    return LlmSettings(
        host=options.host,
        port=options.port,
        max_sessions=options.max_sessions,
        silence_ms=options.silence_ms,
        threads=options.threads,
        model_dir=options.model_dir,
        api_key=options.api_key,
        origins=tuple(options.origin),
        session_seconds=options.session_seconds,
        requests_per_minute=options.requests_per_minute,
        drain_seconds=options.drain_seconds,
        brain=options.brain,
        brain_model=options.brain_model,
        brain_key=options.brain_key or os.environ.get("OPENAI_API_KEY"),
    )


async def _serve(settings: LlmSettings, *, exit_with_stdin: bool) -> None:
    from realtime.local.loading import load_parts  # noqa: PLC0415  (a wrong option needs no models)
    from realtime.local.server import LlmServer  # noqa: PLC0415
    from realtime.local.workers import FairPool  # noqa: PLC0415

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if exit_with_stdin:
        watcher = threading.Thread(target=_watch_stdin, args=(loop, stop), name="realtime-stdin", daemon=True)
        watcher.start()
    async with FairPool(settings.threads) as pool, LlmServer(settings, load_parts(settings, pool), pool) as server:
        print(f"listening on {server.url}", flush=True)  # noqa: T201  (who started it reads this)
        await stop.wait()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Wait for the end of standard input: whoever started this has let it go, or is gone."""
    descriptor = sys.stdin.fileno()
    while os.read(descriptor, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)
