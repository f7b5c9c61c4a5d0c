"""The tests that the page on testing shows pass as they stand there."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import realtime.testing

PAGE = (Path(__file__).parents[2] / "docs" / "howto-testing.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"<!-- program: \w+ -->\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
NAMES = re.findall(r"^(?:async )?def (test_\w+)", "".join(PROGRAMS), re.MULTILINE)


def programs() -> dict[str, Any]:
    """All of the page's programs, one after another: later ones use what earlier ones made."""
    namespace: dict[str, Any] = {"__name__": "howto_testing"}
    for program in PROGRAMS:
        exec(compile(program, "howto-testing.md", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_true(name: str, tmp_path: Path) -> None:
    function = programs()[name]
    given = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(function).parameters else {}
    result = function(**given)
    if inspect.isawaitable(result):

        async def run() -> None:
            async with asyncio.timeout(120):
                await result

        asyncio.run(run())


def test_every_block_of_the_page_is_run_and_shows_a_test() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 6
    assert len(NAMES) == 7


def test_the_kit_is_on_the_page() -> None:
    names = (
        "ScriptedModel",
        "ManualClock",
        "FakeTrack",
        "SyntheticPeer",
        "replay",
        "check_wire_format",
        "check_transport",
    )
    for name in (*names, "Expect", "Reply", "Drop", "Close", "Show", "Say", "Turn", "Pause", "MemoryPair"):
        assert name in realtime.testing.__all__
        assert name in PAGE
