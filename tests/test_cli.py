"""The command: bad input is one clear line and exit code 2, never a traceback; light to start; honest about its namesake."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realtime.cli import main

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says to bad input; checks that it is one line and the exit code 2."""
    try:
        code = main(arguments)
    except SystemExit as exit_:
        code = exit_.code
    said = capsys.readouterr().err
    assert code == 2, f"exit code {code}: {said}"
    assert said.count("\n") == 1, f"not one line: {said}"
    assert said.endswith("\n")
    assert said.startswith("realtime")
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--media", "no-such-file.wav"], "no such file: no-such-file.wav"),
        (["demo", "--model", "nobody:nothing"], "nobody:nothing"),
        (["demo", "--model", "openai:gpt-realtime"], "OPENAI_API_KEY"),
        (["demo", "--retain-images-max", "-3"], "--retain-images-max must be"),
        (["demo", "--retain-images-every-n", "0"], "--retain-images-every-n must be"),
        (["demo", "--max-tokens", "0"], "--max-tokens must be"),
        (["demo", "--max-tokens", "many"], "--max-tokens"),
        (["demo", "--seconds", "0"], "--seconds must be a number above 0, not"),
        (["demo", "--pause", "-1"], "--pause must be a number of at least 0, not"),
        (["demo", "--text", " "], "--text must be a sentence"),
        (["demo", "--media", ""], "--media: a path is wanted"),
        (["demo", "--out", ""], "--out: a path is wanted"),
        (["demo", "--fps-idle", "-1"], "--fps-idle must be"),
        (["demo", "--audio-retention", "some"], "--audio-retention"),
        (["demo", "--frobnicate"], "--frobnicate"),
        (["dance"], "dance"),
        ([], "COMMAND"),
        (["llm", "--frobnicate"], "--frobnicate"),
        (["llm", "--port", "99999"], "--port must be"),
        (["inspect", "no-such-context.json"], "no-such-context.json"),
        (["llm", "--model-dir", ""], "--model-dir: a path is wanted"),
        (["llm", "--api-key", ""], "--api-key must be a key, not"),
        (["inspect", "-", "--max-tokens", "-1"], "--max-tokens must be an int of at least 0, not -1"),
        (["inspect", "-", "--html", ""], "cannot be read"),
        (["demo", "--retain-audio-max-seconds", "-1"], "--retain-audio-max-seconds must be"),
        (["demo", "--max-tokens", "-1"], "or any for no bound"),
        (["serve", "--port", "99999"], "--port must be"),
        (["serve", "--host", ""], "--host must be"),
        (["serve", "--stun", "stun:good.example", "--stun", "example.com"], "--stun must be a URL of scheme"),
        (["serve", "--origin", "https://good.example", "--origin", "example.com"], "--origin must be an origin"),
        (["serve", "--max-sessions", "0"], "--max-sessions must be"),
        (["serve", "--max-tokens", "-1"], "--max-tokens must be"),
        (["serve", "--idle-seconds", "-1"], "--idle-seconds must be"),
        (["serve", "--total-seconds", "nan"], "--total-seconds must be"),
        (["serve", "--drain-seconds", "-1"], "--drain-seconds must be"),
        (["serve", "--model", ""], "--model must be"),
        (["serve", "--token", ""], "--token must be"),
        (["serve", "--ssl-keyfile", "key.pem"], "--ssl-keyfile must be given together with a certificate"),
        (["inspect", ""], "FILE must be the path of a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert words in _refusal(capsys, *arguments)


def test_a_broken_picture_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(200))
    said = _refusal(capsys, "demo", "--media", str(broken), "--out", str(tmp_path / "out"))
    assert "broken.jpg" in said


def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    assert "not a folder" in _refusal(capsys, "demo", "--out", str(file))


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_port_in_use_is_one_clear_line(busy_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    said = _refusal(capsys, "llm", "--port", str(busy_port))
    assert str(busy_port) in said
    assert "in use" in said


def test_a_model_that_nobody_serves_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], busy_port: int
) -> None:
    with socket.socket() as free:  # a port that was free a moment ago
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = _refusal(capsys, "demo", "--model", f"ws://127.0.0.1:{port}/v1/realtime", "--out", str(tmp_path / "out"))
    assert str(port) in said or "refused" in said.lower()


def test_the_process_ends_with_2_and_no_traceback(run_realtime: Run, tmp_path: Path) -> None:
    done = run_realtime("demo", "--media", str(tmp_path / "nothing.mp4"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"realtime demo: no such file: {tmp_path / 'nothing.mp4'}\n"


def test_version_and_help_name_every_command(run_realtime: Run) -> None:
    assert re.fullmatch(r"realtime-session \d+\.\d+\.\d+\S*\n", run_realtime("--version").stdout)
    shown = run_realtime("--help").stdout
    for command in ("demo", "llm", "inspect"):
        assert command in shown


def test_the_command_starts_without_loading_media_libraries() -> None:
    code = (
        "import sys, realtime.cli\n"
        "try: realtime.cli.main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = {'aiortc', 'av', 'numpy', 'PIL', 'onnxruntime', 'websockets', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_other_distribution_of_the_same_import_name_is_named(run_realtime: Run, tmp_path: Path) -> None:
    folder = tmp_path / "realtime-2.99.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: realtime\nVersion: 2.99.0\n")
    done = run_realtime("--version", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert "'realtime' 2.99.0" in done.stderr
    assert "Supabase" in done.stderr
    assert "pip uninstall" in done.stderr
    assert done.stderr.count("\n") == 1


def test_alone_the_command_says_nothing_of_a_namesake(run_realtime: Run) -> None:
    assert run_realtime("--version").stderr == ""
