"""The command line: one line for whatever cannot be done, and an orderly end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

COMMAND = [sys.executable, "-m", "realtime.local"]
TELLS_OF_FREEZING = """
import gc, sys
from realtime.local.cli import main
freeze = gc.freeze
gc.freeze = lambda: (freeze(), print("frozen", flush=True))
sys.exit(main())
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run(*options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False, **settings)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--port", "seven"], "--port"),
        (["--port", "-1"], "--port must be"),
        (["--max-sessions", "0"], "--max-sessions must be"),
        (["--silence-ms", "-3"], "--silence-ms must be"),
        (["--no-such-option"], "--no-such-option"),
        (["--brain", "magic"], "--brain must be"),
        (["--brain", "http://127.0.0.1:1/v1"], "--brain-model must be"),
        (["--model-dir", "/nowhere/at/all"], "--model-dir must be"),
        (["--log-level", "loud"], "--log-level"),
        (["--host", ""], "--host must be"),
        (["--api-key", ""], "--api-key must be a key"),
        (["--brain-key", ""], "--brain-key must be a key"),
        (["--origin", "example.com"], "--origin must be"),
        (["--origin", "https://example.com/page"], "--origin must be"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(options: list[str], text: str) -> None:
    done = run(*options)
    assert done.returncode == 2
    assert done.stdout == ""
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("realtime llm: ")


@pytest.mark.local
def test_a_port_that_is_taken_is_one_line_and_exit_code_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"realtime llm: cannot listen on 127.0.0.1 port {port}: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_package_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ctranslate2'] = None\n")
    done = run("--port", "0", env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}", "PATH": ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "realtime llm: speech recognition needs ctranslate2: pip install 'realtime-session[local]'\n"
    )


def test_the_help_names_every_option() -> None:
    done = run("--help")
    assert done.returncode == 0
    for option in ("--host", "--port", "--max-sessions", "--silence-ms", "--model-dir", "--api-key", "--brain"):
        assert option in done.stdout


@pytest.mark.local
def test_it_says_where_it_listens_and_ends_with_its_standard_input() -> None:
    """And what it loaded is out of the cycle collector's sight by then: a full collection would hold the loop."""
    process = subprocess.Popen(
        [sys.executable, "-c", TELLS_OF_FREEZING, "--port", "0", "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "frozen\n"
    line = process.stdout.readline()
    assert line.startswith("listening on ws://127.0.0.1:")
    assert line.endswith("/v1/realtime\n")
    port = line.split(":")[2].split("/")[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
        assert json.load(answer)["status"] == "ok"
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")


@pytest.mark.local
def test_told_to_end_it_lets_a_reply_end_first() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--drain-seconds", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    with connect(url, open_timeout=60) as client:
        response = {"instructions": f'Say exactly: "{"The old sailor looked out at the grey sea. " * 5}"'}
        client.send(json.dumps({"type": "response.create", "response": response}))
        kinds: list[str] = []
        while "response.output_audio.delta" not in kinds:
            kinds.append(json.loads(client.recv(60))["type"])
        process.send_signal(signal.SIGTERM)
        *_others, last = client  # until it is closed
        event = json.loads(last)
        assert (event["type"], event["response"]["status"]) == ("response.done", "completed")
        assert client.close_code == 1001
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "", "")


@pytest.mark.local
def test_it_ends_in_order_when_it_is_interrupted() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on ")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")
