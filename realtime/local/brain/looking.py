"""Answers about what was shown: reading, describing and counting pictures.

Owns: `answer_about_pictures`. Driven by the rules. It looks with `Eyes`, at the newest picture, and only when it is asked
to.
"""

from __future__ import annotations

import re
from typing import Final

from realtime.errors import ImageError
from realtime.local.brain.talk import Talk
from realtime.local.parts import Eyes, Sight

__all__ = ["answer_about_pictures", "describe"]

_READ: Final = re.compile(
    r"\bread\b|\bwhat does (?:it|this|that|the \w+) say|\bwhat(?:'s| is) (?:written|the text)|\bsays? on\b|\bwritten\b"
    r"|\bwhat (?:words?|text)\b|\bwhich words?\b|\bthe (?:sign|label|text|screen)\b.*\bsay",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(r"\bhow many (?:pictures?|images?|frames?|photos?|screenshots?)\b", re.IGNORECASE)
_DESCRIBE: Final = re.compile(
    r"\bwhat (?:do|can) you see\b|\bdescribe\b|\blook at\b|\bwhat(?:'s| is) (?:this|that|in (?:the|this|my) (?:picture|image|photo|camera))"
    r"|\bwhat am i (?:showing|holding)\b|\bcan you see\b|\bdo you see\b",
    re.IGNORECASE,
)
_COLOR: Final = re.compile(r"\bwhat colou?rs?\b|\bwhich colou?r\b", re.IGNORECASE)
_BRIGHT: Final = re.compile(r"\bhow (?:bright|dark)\b|\bis it (?:bright|dark)\b", re.IGNORECASE)
_SIZE: Final = re.compile(
    r"\bhow (?:big|large|wide|high)\b.*\b(?:picture|image|photo|frame|it)\b|\bsize of the (?:picture|image|photo|frame)\b",
    re.IGNORECASE,
)
_LOOKING: Final = (_READ, _DESCRIBE, _COLOR, _BRIGHT, _SIZE)

MAX_LINES = 8
"""More lines of text than this are not read aloud."""


async def answer_about_pictures(talk: Talk, eyes: Eyes, owner: str) -> str | None:
    """Answer a question about what was shown; None if there is none."""
    heard = talk.heard
    if _COUNT.search(heard):
        count = len(talk.pictures)
        return f"I have seen {count} picture{'' if count == 1 else 's'}."
    if not any(pattern.search(heard) for pattern in _LOOKING):
        return None
    if not talk.pictures:
        return "I have not seen a picture yet." if _asks_for_picture(heard) else None
    wants_words = bool(_READ.search(heard) or _DESCRIBE.search(heard))
    try:
        sight = await eyes.look(talk.pictures[-1], owner=owner, read=wants_words)
    except ImageError:
        return "I cannot make out that picture."
    if _READ.search(heard):
        return say_words(sight)
    if _COLOR.search(heard):
        return f"It is mostly {sight.color}."
    if _BRIGHT.search(heard):
        return f"The picture is {_brightness(sight)}."
    if _SIZE.search(heard):
        return f"The picture is {sight.width} by {sight.height} pixels."
    return describe(sight)


def say_words(sight: Sight) -> str:
    """What a picture says."""
    if not sight.lines:
        return "I see no words in it."
    lines = [line.strip().rstrip(".") for line in sight.lines[:MAX_LINES]]
    return f"It says: {', '.join(lines)}."


def describe(sight: Sight) -> str:
    """What a picture shows."""
    facts = f"I see a {_brightness(sight)}, mostly {sight.color} picture, {sight.width} by {sight.height} pixels."
    return f"{facts} {say_words(sight)}" if sight.lines else facts


def _asks_for_picture(heard: str) -> bool:
    return bool(
        _READ.search(heard)
        or _DESCRIBE.search(heard)
        or re.search(r"\b(?:picture|image|photo)\b", heard, re.IGNORECASE)
    )


def _brightness(sight: Sight) -> str:
    if sight.brightness < 0.25:
        return "dark"
    return "bright" if sight.brightness > 0.7 else "medium bright"
