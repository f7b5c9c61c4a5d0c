"""The page of the tables is generated from the tables."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from realtime.core import turn
from realtime.core.turn import TRANSITIONS, TURN_TRANSITIONS, ResponseState

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("turn_table", DOCS / "turn_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date(script):
    assert (DOCS / "turn-table.md").read_text(encoding="utf-8") == script.render(), "run: python docs/turn_table.py"


def test_page_shows_every_transition_and_no_other(script):
    arrows = {}
    for line in script.render().splitlines():
        if line.startswith("    ") and " --> " in line and "[*]" not in line:
            ends, _, inputs = line.strip().partition(": ")
            state, _, target = ends.partition(" --> ")
            arrows |= {(state, what): target for what in inputs.split(" / ")}
    tables = (*TRANSITIONS.items(), *TURN_TRANSITIONS.items())
    assert arrows == {(state.value, what.value): target.value for state, row in tables for what, target in row.items()}


def test_a_change_of_a_table_would_be_seen(script, monkeypatch):
    monkeypatch.setattr(turn, "TRANSITIONS", {**TRANSITIONS, ResponseState.IDLE: {}})
    assert script.render() != (DOCS / "turn-table.md").read_text(encoding="utf-8")
