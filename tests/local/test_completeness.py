"""What sounds like the end of a turn, by its words."""

from __future__ import annotations

import pytest

from realtime.local.completeness import sounds_complete


@pytest.mark.parametrize(
    "text",
    [
        "What time is it?",
        "He was not an ill-disposed young man.",
        "Stop!",
        "No.",
        "Read it",
        "Where are you from?",
        "My name is Robin.",
        "Turn off the light, please.",
        "What",
    ],
)
def test_finished(text: str) -> None:
    assert sounds_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "I would like to",
        "My name is",
        "I went to the",
        "Um",
        "Because",
        "Tell me about...",
        "First,",
        "I think that—",
        "What time does the train to Manchester",
    ],
)
def test_not_finished(text: str) -> None:
    assert not sounds_complete(text)
