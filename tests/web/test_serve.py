"""`realtime serve`: one command, one port; its options, its address, its end."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.sync.client import connect

from realtime import RealtimeSession
from realtime.cli import main as run_command
from realtime.errors import MissingExtraError, UserError
from realtime.web import IceServer, WebLimits, app
from realtime.web import serve as serving
from realtime.web.serve import ServeOptions, _check_certificate, _greeting, _ice_servers, main, parse_options
from realtime.web.server import WebServer

Started = tuple[subprocess.Popen[str], str]
SOON = {"timeout": 60}


TELLS_OF_FREEZING = """
import gc, sys
from realtime.cli import main
freeze = gc.freeze
gc.freeze = lambda: (freeze(), print("frozen", flush=True))
sys.exit(main())
"""
"""What was loaded is out of the cycle collector's sight before the first call: a full collection would hold the loop."""


@pytest.fixture
def start(llm_url: str) -> Iterator[Callable[..., Started]]:
    """Run the command against the shared local LLM; gives the process and its address."""
    running: list[subprocess.Popen[str]] = []

    def run(*options: str) -> Started:
        command = [sys.executable, "-c", TELLS_OF_FREEZING, "serve", "--port", "0", "--model", llm_url, *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "frozen\n", line + process.stdout.read()
        line = process.stdout.readline()
        assert "open http://127.0.0.1:" in line, line + process.stdout.read()
        return process, line.split("open ", 1)[1].split()[0]

    yield run
    for process in running:
        process.kill()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.local
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_typed_call_is_answered_and_a_signal_lets_it_end_first(start: Callable[..., Started], loop: str) -> None:
    process, url = start("--drain-seconds", "50", "--loop", loop)
    with urllib.request.urlopen(f"{url}healthz", timeout=60) as answer:
        assert json.load(answer) == {"status": "ok", "calls": 0}
    with connect(url.replace("http", "ws") + "call", proxy=None) as page:
        page.send(json.dumps({"type": "hello"}))
        assert json.loads(page.recv(**SOON))["type"] == "welcome"
        process.send_signal(signal.SIGTERM)
        while json.loads(page.recv(**SOON))["type"] != "draining":
            pass
        page.send(json.dumps({"type": "text", "text": "Hello!"}))
        while (said := json.loads(page.recv(**SOON))).get("event") != "TurnCompleted":
            pass
        assert said["messages"][0]["text"]
        page.send(json.dumps({"type": "bye"}))
        while json.loads(page.recv(**SOON))["type"] != "bye":
            pass
    assert process.wait(60) == 0
    assert process.stdout is not None
    assert process.stdout.read() == ""


@pytest.mark.local
def test_a_second_signal_ends_it_at_once(start: Callable[..., Started]) -> None:
    process, url = start("--drain-seconds", "5000")
    with connect(url.replace("http", "ws") + "call", proxy=None) as page:
        page.send(json.dumps({"type": "hello"}))
        page.recv(**SOON)
        process.send_signal(signal.SIGINT)
        while json.loads(page.recv(**SOON))["type"] != "draining":
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_port_that_is_taken_is_said_in_one_line(
    run_realtime: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run_realtime("serve", "--model", "ws://127.0.0.1:9/", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert done.stderr.startswith("realtime serve: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "99999"], "port must be"),
        (["--port", "-1"], "port must be"),
        (["--ssl-keyfile", "k"], "together with a certificate"),
        (["--host", ""], "host must be"),
        (["--drain-seconds", "-2"], "--drain-seconds must be"),
        (["--max-tokens", "-5"], "--max-tokens must be"),
        (["--ssl-certfile", "nowhere.pem"], "nowhere.pem is no file"),
        (["--ssl-certfile", __file__, "--ssl-keyfile", "nowhere.key"], "nowhere.key is no file"),
        (["--ssl-certfile", __file__], f"{__file__} is no certificate"),
        (
            ["--model", "ws://127.0.0.1:9/", "--record", __file__],
            f"the folder {__file__} for recordings cannot be made",
        ),
    ],
)
def test_what_the_system_would_refuse_is_said_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["serve", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("realtime serve: ")
    assert words in said
    assert said.count("\n") == 1


def test_a_passphrase_is_left_to_whoever_serves_to_ask_for(tmp_path: Path) -> None:
    """It is typed, or piped in, once."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + dt.timedelta(days=9))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    files = ServeOptions(ssl_certfile=tmp_path / "cert.pem", ssl_keyfile=tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(certificate)
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    _check_certificate(files)


async def test_a_signal_while_the_model_loads_ends_the_loading_and_nothing_is_served() -> None:
    server = WebServer(app(lambda _: RealtimeSession("local")), limits=WebLimits())
    loading, cancelled = asyncio.Event(), asyncio.Event()

    async def load() -> None:
        loading.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with server.ended_by_signals(0.0):
        preparing = asyncio.get_running_loop().create_task(server.unless_ended(load()))
        await loading.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await preparing is False
    assert cancelled.is_set()


async def test_a_model_that_has_loaded_is_served_and_one_that_cannot_be_is_told() -> None:
    server = WebServer(app(lambda _: RealtimeSession("local")), limits=WebLimits())

    async def load() -> None:
        pass

    async def fail() -> None:
        raise UserError("no model")

    assert await server.unless_ended(load()) is True
    with pytest.raises(UserError, match="no model"):
        await server.unless_ended(fail())


@pytest.mark.parametrize(
    "arguments", [["--port", "x"], ["--nonsense"], ["--max-tokens", "many"], ["--record", ""], ["--ssl-certfile", ""]]
)
def test_an_option_that_cannot_be_is_said_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parse_options(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("realtime serve: ")
    assert said.count("\n") == 1


def test_a_model_that_is_none_is_refused() -> None:
    with pytest.raises(UserError):
        main(["--model", "nobody:nothing"])


def test_without_the_extra_the_command_says_how_to_get_it(tmp_path: Path) -> None:
    """A `starlette` that cannot be imported stands for one that is not there."""
    (tmp_path / "starlette.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'starlette'\", name='starlette')"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "realtime", "serve", "--model", "ws://127.0.0.1:9/"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 2
    assert "pip install 'realtime-session[web]'" in done.stderr


def test_servers_of_the_environment_are_read_for_each_call_and_checked_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Credentials made from a secret expire."""
    monkeypatch.setenv("REALTIME_TURN_URLS", "turn:t.example")
    monkeypatch.setenv("REALTIME_TURN_SECRET", "s")
    assert _ice_servers(ServeOptions()) is None
    assert _ice_servers(ServeOptions(stun=("stun:s.example",))) == [IceServer(urls=("stun:s.example",))]
    monkeypatch.setenv("REALTIME_ICE_SERVERS", "nonsense")
    with pytest.raises(UserError, match="REALTIME_ICE_SERVERS"):
        _ice_servers(ServeOptions())


def test_the_loop_is_the_one_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def note(options: ServeOptions) -> int:
        ran.append(f"{options.loop} {type(asyncio.get_running_loop()).__module__}")
        return 0

    monkeypatch.setattr(serving, "serve", note)
    assert main([]) == main(["--loop", "uvloop"]) == 0
    assert ran == ["asyncio asyncio.unix_events", "uvloop uvloop"]
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(MissingExtraError, match=r"--loop uvloop needs uvloop: pip install 'realtime-session\[fast\]'"):
        main(["--loop", "uvloop"])


def test_options_have_the_defaults_of_the_help() -> None:
    assert parse_options([]) == ServeOptions()
    given = parse_options(["--origin", "https://a.example", "--origin", "https://b.example", "--max-tokens", "any"])
    assert given.origins == ("https://a.example", "https://b.example")
    assert given.max_tokens is None


@pytest.mark.parametrize(
    ("options", "token", "address"),
    [
        (ServeOptions(), None, "http://127.0.0.1:5/ "),
        (ServeOptions(), "t", "http://127.0.0.1:5/#token=t "),
        (ServeOptions(host="::1"), None, "http://[::1]:5/ "),
        (ServeOptions(host="0.0.0.0", ssl_certfile=Path("c")), "t", f"https://{socket.gethostname()}:5/#token=t "),
    ],
)
def test_the_address_to_open_is_printed(options: ServeOptions, token: str | None, address: str) -> None:
    assert address in _greeting(options, 5, token)
