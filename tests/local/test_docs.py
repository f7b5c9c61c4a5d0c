"""The programs in docs/local-llm.md run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.sync.client import connect

PAGE = Path(__file__).parents[2] / "docs" / "local-llm.md"


@pytest.mark.local
def test_a_server_with_a_part_of_ones_own(tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    program = tmp_path / "parrot.py"
    program.write_text(source.replace("LlmSettings()", "LlmSettings(port=0)"))
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        with connect(process.stdout.readline().strip()) as client:
            content = [{"type": "input_text", "text": "Polly wants a cracker."}]
            item = {"type": "message", "role": "user", "content": content}
            client.send(json.dumps({"type": "conversation.item.create", "item": item}))
            client.send(json.dumps({"type": "response.create"}))
            while (event := json.loads(client.recv(timeout=60)))["type"] != "response.done":
                pass
        assert event["response"]["output"][0]["content"][0]["transcript"] == "Polly wants a cracker."
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_every_option_of_the_command_is_told_of() -> None:
    from realtime.local.cli import add_arguments

    page = PAGE.read_text("utf-8")
    for option in _options(add_arguments):
        assert option in page, option


def test_the_lines_that_install_weights_are_the_same_wherever_they_stand() -> None:
    """Issue of the local LLM: in README and `.ci/run`; an error names them, too."""
    from realtime.local import smart_turn, weights
    from realtime.local.brain import smollm

    root = PAGE.parents[1]
    pages = [path.read_text("utf-8") for path in (PAGE, root / "README.md", root / ".ci" / "run")]
    for line in (*smollm.INSTALL_LINE.split(" && "), weights.BASE_LINE, smart_turn.INSTALL_LINE):
        needed = line.removeprefix("pip install ")
        for page in pages:
            assert re.search(rf"pip install (-q )?{re.escape(needed)}", page), line


def _options(add: object) -> list[str]:
    import argparse

    parser = argparse.ArgumentParser(add_help=False)
    add(parser)  # type: ignore[operator]
    return [option for action in parser._actions for option in action.option_strings]
