"""`realtime serve`: the page and the bot on one port.

Owns: the command's options, the server process's life (bind, load the model, serve, drain, end) and the one model that all
calls share. Driven by the command line. What a call is, is the room's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import ipaddress
import secrets
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from realtime.chat.window import ContextWindow
from realtime.command_line import CommandParser, count_or_any, number_or_any, path
from realtime.core.settings import FrameSampling, TurnDetection, check_number
from realtime.errors import ArgumentError, LinkLost, MissingExtraError, UserError
from realtime.models.base import RealtimeModel
from realtime.models.local import LocalRealtime
from realtime.models.resolve import resolve
from realtime.session import RealtimeSession
from realtime.web.ice import IceServer, environment_ice_servers, is_loopback
from realtime.web.options import CallRequest, WebLimits

__all__ = ["DEFAULT_INSTRUCTIONS", "ServeOptions", "main", "parse_options", "serve"]

DEFAULT_INSTRUCTIONS = (
    "You talk with the user and see the user's camera and screen. Answer in one or two short sentences, in plain words."
)

_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What `realtime serve` was asked."""

    model: str = "local"
    """As `RealtimeSession` takes it."""
    host: str = "127.0.0.1"
    """Where it listens; this machine only, by default."""
    port: int = 8800
    """0: any free one."""
    token: str | None = None
    """What callers have to know; made up where others than this machine can call."""
    origins: tuple[str, ...] = ()
    """Origins of pages besides our own."""
    instructions: str = DEFAULT_INSTRUCTIONS
    """What the model is told about its part."""
    max_sessions: int = 8
    """Calls at one time."""
    max_tokens: int | None = 8_000
    """Of the context window."""
    push_to_talk: bool = False
    """The user says when a turn is over, instead of a voice activity detector."""
    record: Path | None = None
    """A folder for recordings of calls (`RealtimeSession.record`); None: none."""
    stun: tuple[str, ...] = ()
    """STUN URLs; none: those of the environment."""
    idle_seconds: float | None = 900.0
    """See `WebLimits`."""
    total_seconds: float | None = 7_200.0
    """See `WebLimits`."""
    drain_seconds: float = 30.0
    """How long calls may go on after SIGTERM."""
    ssl_certfile: Path | None = None
    """For https: other machines' browsers give no microphone to a page without it."""
    ssl_keyfile: Path | None = None
    """For https."""
    loop: Literal["asyncio", "uvloop"] = "asyncio"
    """The event loop that everything runs on."""

    def __post_init__(self) -> None:
        """Check what the system would refuse with other words."""
        if not self.host:  # an empty variable of a shell; the system takes it for every address
            raise ArgumentError(
                "host", self.host, "an address to listen on, such as 127.0.0.1, or 0.0.0.0 for every one"
            )
        if not 0 <= self.port <= _LAST_PORT:
            raise ArgumentError("port", self.port, f"a number from 0 to {_LAST_PORT}")
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ArgumentError("ssl_keyfile", str(self.ssl_keyfile), "given together with a certificate")
        check_number("drain_seconds", self.drain_seconds)
        ContextWindow(max_tokens=self.max_tokens)  # or it would be refused as each call begins


def parse_options(arguments: Sequence[str]) -> ServeOptions:
    """Read a command line."""
    parser = _parser()
    given = parser.parse_args(list(arguments))
    with _naming_options(parser, given):
        return _options(given)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="realtime serve",
        description="Serves a page that you talk to, show things to, and see the model's context in; the bot is on the"
        " same port. Offline with the local model. Ctrl-C or SIGTERM lets calls end first; twice ends at once.",
    )
    defaults = ServeOptions()
    add = parser.add_argument
    add("--model", default=defaults.model, metavar="MODEL",
        help="local (default), openai:…, gemini:…, xai:…, azure:…, ws://host:port/v1/realtime")  # fmt: skip
    add("--host", default=defaults.host, help="where to listen (default: this machine only)")
    add("--port", type=int, default=defaults.port, help="0: any free one (default: 8800)")
    add("--token", help="what callers have to know (made up where others than this machine can call)")
    add("--origin", action="append", default=[], dest="origins", metavar="URL",
        help="a page of this origin may call too; may be given several times")  # fmt: skip
    add("--instructions", default=defaults.instructions, metavar="TEXT", help="what the model is told about its part")
    add("--max-sessions", type=int, default=defaults.max_sessions, metavar="N", help="calls at one time (default: 8)")
    add("--max-tokens", type=count_or_any, default=defaults.max_tokens, metavar="N",
        help="bound of the context window, or any (default: 8000)")  # fmt: skip
    add("--push-to-talk", action="store_true", help="the user says when a turn is over")
    add("--record", type=path, metavar="DIR", help="write a recording of each call into this folder")
    add("--stun", action="append", default=[], metavar="URL",
        help="a STUN server (default: REALTIME_STUN_URLS and REALTIME_TURN_URLS, else none)")  # fmt: skip
    add("--idle-seconds", type=number_or_any, default=defaults.idle_seconds, metavar="S",
        help="end a call in which nobody says anything, or any (default: 900)")  # fmt: skip
    add("--total-seconds", type=number_or_any, default=defaults.total_seconds, metavar="S",
        help="end a call that lasts so long, or any (default: 7200)")  # fmt: skip
    add("--drain-seconds", type=float, default=defaults.drain_seconds, metavar="S",
        help="how long calls may go on after SIGTERM (default: 30)")  # fmt: skip
    add("--ssl-certfile", type=path, metavar="FILE", help="for https")
    add("--ssl-keyfile", type=path, metavar="FILE", help="for https")
    add("--loop", choices=("asyncio", "uvloop"), default=defaults.loop,
        help="the event loop; uvloop takes less of some processors (default: asyncio)")  # fmt: skip
    return parser


def _options(given: argparse.Namespace) -> ServeOptions:
    values: dict[str, Any] = vars(given) | {"origins": tuple(given.origins), "stun": tuple(given.stun)}
    return ServeOptions(**values)


def _naming_options(parser: CommandParser, given: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    return parser.naming_options(given, urls="stun")


def main(arguments: Sequence[str]) -> int:
    """Run the command; gives its exit code.

    Raises:
        UserError: What was asked cannot be.
        OSError: The port is taken.
    """
    parser = _parser()
    given = parser.parse_args(list(arguments))
    with _naming_options(parser, given):
        options = _options(given)
        with asyncio.Runner(loop_factory=_loop_factory(options.loop)) as runner:
            return runner.run(serve(options))


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    try:
        import uvloop  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise MissingExtraError("--loop uvloop", extra="fast", package="uvloop") from error
    return uvloop.new_event_loop


async def serve(options: ServeOptions) -> int:
    """Serve until a signal ends it; gives the exit code.

    Raises:
        UserError: What was asked cannot be.
        LinkLost: The model cannot be reached.
        OSError: The port is taken.
    """
    _check_certificate(options)
    try:
        from realtime.web.application import app  # noqa: PLC0415  (an extra)
        from realtime.web.server import WebServer  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        raise MissingExtraError("realtime serve", extra="web", package=str(error.name)) from error

    shared = _SharedModel(options.model)
    token = options.token
    if token is None and not is_loopback(options.host):
        token = secrets.token_urlsafe(16)
    limits = WebLimits(
        max_sessions=options.max_sessions, idle_seconds=options.idle_seconds, total_seconds=options.total_seconds
    )
    factory = _Factory(options, shared.model)
    if options.record is not None:
        _make_folder(options.record)
    bot = app(
        factory,
        token=token,
        origins=options.origins,
        ice_servers=_ice_servers(options),
        limits=limits,
        model_name=options.model,
        record_folder=options.record,
    )
    listening = _bind(options)
    with listening:
        server = WebServer(bot, limits=limits, ssl_certfile=options.ssl_certfile, ssl_keyfile=options.ssl_keyfile)
        try:
            with server.ended_by_signals(options.drain_seconds):
                if await server.unless_ended(shared.load()):
                    gc.collect()
                    gc.freeze()  # what was loaded stays: to look through it again and again would hold the loop of all calls
                    print(_greeting(options, listening.getsockname()[1], token), flush=True)  # noqa: T201
                    await server.serve(sockets=[listening])
        finally:
            await bot.aclose()
            await shared.aclose()
    return 0


def _ice_servers(options: ServeOptions) -> list[IceServer] | None:
    """The servers that were named; None: those of the environment, read for each call, since its credentials expire.

    Raises:
        ArgumentError: What is named there is none.
    """
    if options.stun:
        return [IceServer(urls=options.stun)]
    environment_ice_servers()
    return None


class _Factory:
    """Makes the session of each call."""

    def __init__(self, options: ServeOptions, model: RealtimeModel) -> None:
        self._options = options
        self._model = model

    def __call__(self, request: CallRequest) -> RealtimeSession:
        options = self._options
        return RealtimeSession(
            self._model,
            instructions=options.instructions,
            window=ContextWindow(max_tokens=options.max_tokens),
            sampling=FrameSampling(),
            turn_detection=TurnDetection(mode="manual") if options.push_to_talk else None,
        )


class _SharedModel:
    """The one model of all calls. A local one is started before the first call and stays until the last."""

    def __init__(self, name: str) -> None:
        self._lasting = _LastingLocal() if name == "local" else None
        self.model: RealtimeModel = self._lasting or resolve(name)

    async def load(self) -> None:
        """Start a local model, so that the first call does not wait for it."""
        if self._lasting is not None:
            try:
                transport = await self._lasting.open()
            except LinkLost as error:
                raise UserError(f"the local model cannot be reached: {error}") from error
            await transport.aclose()

    async def aclose(self) -> None:
        """Let it go."""
        if self._lasting is not None:
            await self._lasting.end()


class _LastingLocal(LocalRealtime):
    """A local model that outlives its sessions."""

    async def aclose(self) -> None:
        """A session is over; the next one will want it."""

    async def end(self) -> None:
        """No more sessions."""
        await super().aclose()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {folder} for recordings cannot be made ({error.strerror})") from error


class _PassphraseNeededError(Exception):
    """A key is encrypted."""


def _ask_nobody() -> str:
    raise _PassphraseNeededError


def _check_certificate(options: ServeOptions) -> None:
    """Said before anything is loaded or promised. A key's passphrase is asked for once, as serving begins.

    Raises:
        UserError: The certificate or its key cannot be used.
    """
    if options.ssl_certfile is None:
        return
    for file in (options.ssl_certfile, options.ssl_keyfile):
        if file is not None and not file.is_file():
            raise UserError(f"{file} is no file, so that https cannot be served with it")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with contextlib.suppress(_PassphraseNeededError):
            context.load_cert_chain(options.ssl_certfile, options.ssl_keyfile, _ask_nobody)
    except OSError as error:
        key = "" if options.ssl_keyfile is None else f" with the key {options.ssl_keyfile}"
        raise UserError(f"{options.ssl_certfile}{key} is no certificate in PEM with its key ({error})") from error


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    return socket.create_server((options.host, options.port), family=family, backlog=128)


def _greeting(options: ServeOptions, port: int, token: str | None) -> str:
    scheme = "https" if options.ssl_certfile is not None else "http"
    host = options.host
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.is_unspecified:
            host = socket.gethostname()
        elif address.version == 6:
            host = f"[{host}]"
    url = f"{scheme}://{host}:{port}/" + (f"#token={token}" if token else "")
    return f"realtime serve: open {url}   (model {options.model}; Ctrl-C ends it)"
