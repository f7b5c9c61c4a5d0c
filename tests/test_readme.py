"""What the README and the documents say is true: commands, programs, names, links."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiortc import RTCSessionDescription

from realtime.demo.media import read_sound
from realtime.demo.scene import street
from realtime.pipelines.clock import SystemClock
from realtime.pipelines.worker import WorkerPool
from realtime.testing.devices import Camera, Microphone
from realtime.testing.loopback import make_peer, on_loopback

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
TUTORIAL = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))
WHOLE_PROGRAMS = [block for block in TUTORIAL if "asyncio.run(main())" in block]


def _command(name: str) -> str:
    found = re.search(rf"^<!-- command: {name} -->\n```sh\n(.+)\n```$", README, re.MULTILINE)
    assert found, f"README.md has no command {name}"
    return found[1]


def test_the_two_commands_are_one_line_each_and_set_everything_up() -> None:
    for name in ("demo", "test"):
        assert _command(name).startswith("python -m venv .venv && .venv/bin/pip install ")
    assert _command("demo").endswith(".venv/bin/realtime demo")
    assert _command("test").endswith(".venv/bin/pytest")


def test_ci_runs_the_commands_as_the_readme_writes_them() -> None:
    """CI reads them from the README with the same markers; what it reads is what stands there."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    reader = re.search(r"^command_of\(\) \{.*?^\}", script, re.DOTALL | re.MULTILINE)
    assert reader
    for name in ("demo", "test"):
        done = subprocess.run(
            ["bash", "-c", f"here={ROOT}\n{reader[0]}\ncommand_of {name}"], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == _command(name)
        assert f"${name}_command" in script


def test_the_extras_that_the_commands_install_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"\[(\w+)\]'", _command("demo") + _command("test")):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)


def test_the_bot_is_at_most_twenty_lines() -> None:
    assert len(_bot().splitlines()) <= 20


def _bot() -> str:
    found = re.search(r"^<!-- bot -->\n```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture
def bot(llm_url: str) -> Callable[..., Coroutine[Any, Any, None]]:
    """The README's bot, as it stands there but for the model. Read outside of the loop, as a program is."""
    namespace: dict[str, Any] = {}
    exec(compile(_bot().replace('"local"', repr(llm_url)), "README.md", "exec"), namespace)
    return namespace["bot"]


@pytest.mark.local
async def test_the_bot_of_the_readme_hears_sees_and_answers(
    bot: Callable[..., Coroutine[Any, Any, None]], speech: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    question = speech("What does the sign say?")
    clock, pool = SystemClock(), WorkerPool("realtime-demo", max_threads=2, max_waiting=16)
    member, peer = pool.join(), make_peer()
    microphone = Microphone(clock, pool)
    peer.addTrack(microphone)
    peer.addTrack(Camera(clock, pool, [street]))
    answer: asyncio.Future[RTCSessionDescription] = asyncio.get_running_loop().create_future()
    with on_loopback():
        await peer.setLocalDescription(await peer.createOffer())
        calling = asyncio.create_task(bot(peer.localDescription, answer))
        await peer.setRemoteDescription(await answer)
    await microphone.say(partial(read_sound, question))
    printed = ""
    async with asyncio.timeout(60):
        while "assistant" not in printed:
            await microphone.say(lambda: iter([bytes(1920)] * 5))
            printed += capsys.readouterr().out
    calling.cancel()
    await asyncio.wait({calling})
    await peer.close()
    await pool.leave(member)
    assert "user What does the sign" in printed
    assert "ImageContent" in printed
    assert "bread" in printed.lower()


@pytest.mark.local
@pytest.mark.parametrize("number", range(len(WHOLE_PROGRAMS)))
def test_programs_of_the_tutorial_run(number: int, llm_url: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WHOLE_PROGRAMS[number].replace('"local"', repr(llm_url)), encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()


def test_there_are_programs_in_the_tutorial() -> None:
    assert len(WHOLE_PROGRAMS) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_in_the_pages_compiles_and_names_what_exists(page: Path) -> None:
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        tree = ast.parse(block, str(page))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "realtime":
                module = __import__(node.module, fromlist=["_"])
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{page.name}: {node.module} has no {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_the_reference_names_what_exists() -> None:
    import realtime

    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([A-Z][A-Za-z]+)`", text):
        assert hasattr(realtime, name), f"reference.md names {name}"
    for name in re.findall(r"`realtime\.(\w+)`", text):
        room = importlib.util.find_spec(f"realtime.{name}") is not None
        assert room or hasattr(realtime, name), f"reference.md names realtime.{name}"


def test_the_readme_warns_of_the_other_distribution() -> None:
    assert "Supabase" in README
    assert "same import name" in README
