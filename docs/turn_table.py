# ruff: noqa: INP001  (documents are no package)
"""Writes docs/turn-table.md from the two tables in `realtime.core.turn`: `python docs/turn_table.py`.

A test compares the page with the tables, so neither can change alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from realtime.core import turn
from realtime.core.turn import ResponseInput, ResponseState, TurnInput, TurnState

PAGE = Path(__file__).with_name("turn-table.md")

Table = Mapping[Enum, Mapping[Enum, Enum]]

_MEANINGS: Mapping[Enum, str] = {
    ResponseState.IDLE: "No response is running and none was asked for.",
    ResponseState.REQUESTED: "One was asked for and has not begun.",
    ResponseState.RUNNING: "One is running.",
    ResponseState.CANCELLING: "The running one was cancelled and has not ended.",
    ResponseInput.WISH: "Somebody wants a response: the user's turn is over, a text, a tool's result, the application.",
    ResponseInput.STARTED: "The provider began one, asked for or not.",
    ResponseInput.ENDED: "The running one is over. The end of any other is stale, and no input of this table.",
    ResponseInput.REFUSED: "The provider refused to begin one. If another was running, it is asked for once more after it.",
    ResponseInput.CANCEL: "The running one is not wanted any more.",
    ResponseInput.LINK_LOST: "The connection is gone, and the response with it.",
    TurnState.BEGUN: "Its item is known, and nobody says whether it is still being spoken.",
    TurnState.SPEAKING: "It is being spoken.",
    TurnState.SPOKEN: "It has been spoken.",
    TurnState.COMMITTED: "It is an item of the provider's; its words may be missing.",
    TurnState.RECORDED: "It is a message. What comes for it now is too late.",
    TurnState.DROPPED: "It became nothing: cleared, or lost with its connection to be said again.",
    TurnInput.SOUND: "The user speaks.",
    TurnInput.SILENCE: "The user has stopped.",
    TurnInput.COMMIT: "It became an item.",
    TurnInput.RECORD: "Its words are final, failed, given up or not wanted; or the session ends.",
    TurnInput.DROP: "Nothing comes of it.",
}


def render() -> str:
    """The whole page."""
    return "\n".join(
        [
            "# The response and turn tables",
            "",
            "Generated from [realtime/core/turn.py](../realtime/core/turn.py) by `python docs/turn_table.py`; do not edit.",
            "What is not in a table is illegal: it raises `IllegalTransition` and changes nothing.",
            "",
            "## The model's response: one at a time",
            "",
            *_section(turn.TRANSITIONS, ResponseState, ResponseInput),
            "## A spoken turn of the user's",
            "",
            "Providers differ in what they say and when, so any step may be left out.",
            "",
            *_section(turn.TURN_TRANSITIONS, TurnState, TurnInput),
        ]
    )


def _section(table: Mapping[Enum, Mapping[Enum, Enum]], states: type[Enum], inputs: type[Enum]) -> list[str]:
    first = next(iter(states))
    return [
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {first.value}",
        *_arrows(table),
        "```",
        "",
        *_rows(table, list(states), list(inputs)),
        "",
        *(f"- `{one.value}`: {_MEANINGS[one]}" for one in (*states, *inputs)),
        "",
    ]


def _arrows(table: Table) -> list[str]:
    """Each arrow once, with all inputs that take it; an end where nothing follows."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, row in table.items():
        for what, target in row.items():
            arrows.setdefault((state.value, target.value), []).append(what.value)
    lines = [f"    {state} --> {target}: {' / '.join(inputs)}" for (state, target), inputs in arrows.items()]
    return lines + [f"    {state.value} --> [*]" for state, row in table.items() if not row]


def _rows(table: Table, states: Sequence[Enum], inputs: Sequence[Enum]) -> list[str]:
    """The table: a row per state, a column per input."""
    lines = ["| | " + " | ".join(f"`{what.value}`" for what in inputs) + " |", "| --- |" + " --- |" * len(inputs)]
    for state in states:
        targets = [table[state].get(what) for what in inputs]
        lines.append(f"| `{state.value}` | " + " | ".join("" if one is None else one.value for one in targets) + " |")
    return lines


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
