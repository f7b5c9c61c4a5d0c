"""Numbers and sums as people say them."""

from __future__ import annotations

import pytest

from realtime.local.brain.numbers import parse_number, say_number, solve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("1,250", 1250),
        ("3.5", 3.5),
        ("forty two", 42),
        ("forty-two", None),
        ("two hundred and five", 205),
        ("three thousand four hundred", 3400),
        ("2 million", 2_000_000),
        ("minus five", -5),
        ("twenty twenty", None),
        ("hello", None),
        ("", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("What is 12 times 7?", 84),
        ("what's two plus two", 4),
        ("How much is 10 percent of 50?", 5),
        ("The square root of 144.", 12),
        ("2 plus 3 times 4", 14),
        ("seven hundred and five minus 5", 700),
        ("What is 3 divided by 4?", 0.75),
        ("2 to the power of 10", 1024),
        ("9 squared", 81),
        ("half of 30", 15),
        ("12 + 30", 42),
        ("3 × 3 equals", 9),
    ],
)
def test_sums(text: str, value: float) -> None:
    assert solve(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "What is 5?",
        "How are you?",
        "one two three",
        "10 over 0",
        "the square root of minus 4",
        "9 to the power of 999",
        "call 555 1234",
        "",
    ],
)
def test_no_sums(text: str) -> None:
    assert solve(text) is None


def test_results_are_written_short() -> None:
    assert [say_number(value) for value in (84.0, 0.75, 1 / 3, -2.0)] == ["84", "0.75", "0.333", "-2"]
