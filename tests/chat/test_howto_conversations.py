"""What the how-to on conversations says and prints is so."""

import re
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from realtime.chat.messages import ChatMessage

PAGE = (Path(__file__).parents[2] / "docs" / "howto-conversations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PROGRAMS = [block for block in BLOCKS if "print(" in block]


@pytest.mark.parametrize("number", range(5))
def test_a_program_prints_what_its_comments_say(number, capsys):
    exec(compile(PROGRAMS[number], "howto-conversations.md", "exec"), {"__name__": "howto"})
    printed = capsys.readouterr().out.splitlines()
    told = [line[2:] for line in PROGRAMS[number].splitlines() if line.startswith("# ")]
    assert printed == told


def test_every_program_is_run_here():
    assert len(PROGRAMS) == 5
    assert len(BLOCKS) == 6


@pytest.fixture
def notetaker():
    """The one program that asks a provider. Read outside of the loop, as a program is."""
    (block,) = set(BLOCKS) - set(PROGRAMS)
    namespace = {}
    exec(compile(block, "howto-conversations.md", "exec"), namespace)
    namespace["Agent"] = lambda _model, **settings: Agent(TestModel(custom_output_text="- hello"), **settings)
    return namespace["take_notes"]


async def test_the_notetaker_takes_a_history(notetaker):
    class Session:
        def all_messages(self):
            return [ChatMessage("user", "Hello!")]

    assert await notetaker(Session()) == "- hello (3 messages)"
