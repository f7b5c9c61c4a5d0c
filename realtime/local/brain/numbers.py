"""Numbers and sums as people say them.

Owns: `parse_number`, `read_number_at`, `solve` and `say_number`. Driven by the rules. Pure; never acts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from realtime.local.wordlists import word_set, word_tuple

__all__ = ["parse_number", "read_number_at", "say_number", "solve", "tokenize"]

_UNITS: Final = {
    name: value
    for value, name in enumerate(
        word_tuple(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
            " eighteen nineteen"
        )
    )
}
_TENS: Final = {
    name: 10 * (value + 2)
    for value, name in enumerate(word_tuple("twenty thirty forty fifty sixty seventy eighty ninety"))
}
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}

_TOKEN: Final = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)*|[-+*/×÷^%=]|√")
_OPERATORS: Final = {
    "plus": "+", "and": "+", "+": "+", "minus": "-", "less": "-", "-": "-", "times": "*", "x": "*", "×": "*", "*": "*",
    "multiplied": "*", "divided": "/", "over": "/", "/": "/", "÷": "/", "power": "^", "^": "^",
}  # fmt: skip
_FILLERS: Final = word_set("by the to of")
_ASKS: Final = word_set(
    "what what's whats is are how much does do make makes equal equals calculate compute tell me can you please = hey so the"
    " result sum ok okay and"
)
_MOST: Final = 1e15


def tokenize(text: str) -> list[str]:
    """Words in lower case, numbers and signs."""
    return [token.lower().replace("’", "'") for token in _TOKEN.findall(text)]


def parse_number(text: str) -> float | None:
    """The number that a text is, in digits or words; None if it is none."""
    tokens = tokenize(text)
    found = read_number_at(tokens, 0)
    return found[0] if found is not None and found[1] == len(tokens) else None


def read_number_at(tokens: Sequence[str], at: int) -> tuple[float, int] | None:
    """The number that begins at a token.

    Returns:
        Its value and the token behind it; None if no number begins there.
    """
    if at < len(tokens) and tokens[at][0].isdigit():
        return _scaled(float(tokens[at].replace(",", "")), tokens, at + 1)
    sign = 1
    if at + 1 < len(tokens) and tokens[at] in ("minus", "negative", "-"):
        sign, at = -1, at + 1
        if tokens[at][0].isdigit():
            return -float(tokens[at].replace(",", "")), at + 1
    total = current = 0.0
    begin = at
    while at < len(tokens):
        word = tokens[at]
        if word in _UNITS:
            if at > begin and tokens[at - 1] in _UNITS:
                break
            current += _UNITS[word]
        elif word in _TENS:
            if at > begin and (tokens[at - 1] in _TENS or tokens[at - 1] in _UNITS):
                break
            current += _TENS[word]
        elif word == "hundred" and at > begin:
            current = max(1.0, current) * 100
        elif word in _SCALES and at > begin:
            total, current = total + max(1.0, current) * _SCALES[word], 0.0
        elif not (word == "and" and at > begin and _continues(tokens, at)):
            break
        at += 1
    return (sign * (total + current), at) if at > begin else None


def solve(text: str) -> float | None:
    """The result of a sum that is asked for in words or signs; None if it is none.

    It knows plus, minus, times, divided by, to the power of, percent of, the square root of, squared, cubed, half of.
    """
    tokens = tokenize(text)
    while tokens and tokens[0] in _ASKS:
        del tokens[0]
    while tokens and tokens[-1] in ("equal", "equals", "make", "is", "=", "please"):
        del tokens[-1]
    terms = _read_terms(tokens)
    if terms is None or read_number_at(tokens, 0) == (terms[0], len(tokens)):
        return None  # no sum, or a bare number
    try:
        result = _evaluate(terms)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return result if abs(result) < _MOST else None


def say_number(value: float) -> str:
    """A number as it is written in a spoken reply."""
    if value == int(value):
        return str(int(value))
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _scaled(value: float, tokens: Sequence[str], at: int) -> tuple[float, int]:
    while at < len(tokens) and tokens[at] in _SCALES:
        value *= _SCALES[tokens[at]]
        at += 1
    return value, at


def _continues(tokens: Sequence[str], at: int) -> bool:
    """Whether "and" belongs to a number ("two hundred and five") rather than joining two."""
    follows = at + 1 < len(tokens) and (tokens[at + 1] in _UNITS or tokens[at + 1] in _TENS)
    return follows and tokens[at - 1] in _SCALES


def _read_terms(tokens: Sequence[str]) -> list[float | str] | None:
    """Numbers and operators in turn; None if anything else is said."""
    terms: list[float | str] = []
    at = 0
    while at < len(tokens):
        if terms and not isinstance(terms[-1], str):
            while tokens[at] in ("to", "the", "raised") and at + 1 < len(tokens):
                at += 1
            operator = _OPERATORS.get(tokens[at])
            if operator is None:
                return None
            terms.append(operator)
            at += 1
            while at < len(tokens) and tokens[at] in _FILLERS:
                at += 1
            continue
        found = _read_operand(tokens, at)
        if found is None:
            return None
        terms.append(found[0])
        at = found[1]
    return terms if terms and not isinstance(terms[-1], str) else None


def _read_operand(tokens: Sequence[str], at: int) -> tuple[float, int] | None:
    rest = " ".join(tokens[at : at + 4])
    for phrase, function in (
        ("the square root of ", math.sqrt),
        ("square root of ", math.sqrt),
        ("√ ", math.sqrt),
        ("half of ", _half),
    ):
        if rest.startswith(phrase):
            inner = _read_operand(tokens, at + len(phrase.split()))
            if inner is None or (function is math.sqrt and inner[0] < 0):
                return None
            return function(inner[0]), inner[1]
    found = read_number_at(tokens, at)
    if found is None:
        return None
    value, at = found
    if tokens[at : at + 1] in (["percent"], ["%"]) and tokens[at + 1 : at + 2] == ["of"]:
        whole = _read_operand(tokens, at + 2)
        return None if whole is None else (value / 100 * whole[0], whole[1])
    if tokens[at : at + 1] == ["squared"]:
        return value**2, at + 1
    if tokens[at : at + 1] == ["cubed"]:
        return value**3, at + 1
    return value, at


def _half(value: float) -> float:
    return value / 2


def _evaluate(terms: Sequence[float | str]) -> float:
    """By precedence: powers, then products, then sums."""
    values: list[float | str] = list(terms)
    for operators in ("^", "*/", "+-"):
        at = 1
        while at < len(values):
            operator = values[at]
            if str(operator) not in operators:
                at += 2
                continue
            left, right = float(values[at - 1]), float(values[at + 1])
            values[at - 1 : at + 2] = [_apply(str(operator), left, right)]
    return float(values[0])


def _apply(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case _:
            if abs(right) > 64:
                raise OverflowError
            result: float = left**right
            return result
