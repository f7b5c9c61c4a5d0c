"""What the rules can answer, one function per kind of question.

Owns: the answers that need nothing but the conversation and the time of day. Driven by `rules.py`, which asks them in
order: the first that has something to say is the reply. Each takes the talk and gives text, or None. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, cast

from realtime.chat.messages import ChatMessage
from realtime.local.brain.numbers import say_number, solve
from realtime.local.brain.spoken_tools import spoken_name
from realtime.local.brain.talk import Talk
from realtime.local.fields import as_list

__all__ = ["Answer", "about_results", "answers", "echo", "quote"]

Answer = Callable[[Talk, str], str | None]
"""Takes the talk and what was heard, in lower case and without punctuation at its ends."""

MAX_QUOTE_CHARS = 300
"""What is quoted of the user's is cut at this."""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_SAID = _pattern(
    r"\bwhat (?:did|have) i (?:just )?(?:say|said|tell you|ask)|\brepeat what i(?:'ve)? (?:just )?said|\bwhat was i saying"
)
_FIRST_SAID = _pattern(r"\bwhat (?:did|was) .*\bfirst\b|\bfirst thing (?:that )?i said")
_REPLIED = _pattern(
    r"\bwhat did you (?:just )?say|\b(?:say|repeat) that (?:again|please)|\bcome again\b|^(?:pardon|sorry\?)$|\bcan you repeat\b"
)
_SAY = _pattern(r"^(?:please |can you |could you )?(?:repeat after me|say)[:,]? (?P<what>.+)$")
_COUNT_SAID = _pattern(r"\bhow many (?:things|sentences|times).*\bi\b")
_MY_IS = _pattern(r"\bmy (?P<what>[a-z' ]{2,40}?) (?:is|are) (?P<value>[^.?!,;]+)")
_I_AM = _pattern(r"\b(?:i am called|call me|my name's) (?P<value>[^.?!,;]+)")
_ASK_MY = _pattern(
    r"\b(?:what(?:'s| is| are)|who(?:'s| is)|tell me|do you (?:know|remember)) (?:what )?my (?P<what>[a-z' ]{2,40}?)(?: is| are)?(?: again)?\W*$"
)
_TIME = _pattern(r"\bwhat(?:'s| is)? (?:the )?time\b|\btime is it\b|\btell me the time\b")
_DATE = _pattern(
    r"\bwhat(?:'s| is)? (?:the |today's )?(?:date|day)\b|\bwhat day is\b|\bday is (?:it|today)\b|\btoday's date\b"
)
_HELLO = _pattern(r"^(?:hello|hi|hey|good (?:morning|afternoon|evening))\b")
_BYE = _pattern(r"^(?:good ?bye|bye|see you)\b")
_THANKS = _pattern(r"\b(?:thank you|thanks)\b")
_STOP = _pattern(r"^(?:stop|be quiet|quiet|never ?mind|shut up|wait|hold on)\b")
_WHO = _pattern(r"\bwho are you\b|\bwhat are you\b|\byour name\b|\bwhat can you do\b|^help\b")
_HOW = _pattern(r"\bhow are you\b")
_BOT_NAME = _pattern(r"\byour name is (?P<name>[^.,;!?\n]+)|\byou are (?P<who>[A-Z][^.,;!?\n]*)")
_SAY_EXACTLY = _pattern(r"\bsay(?: exactly| only| just)?(?: this)?[:,]? [\"“'](?P<what>[^\"”]+)[\"”']")
_ASKING = _pattern(r"^(?:what|who|when|where|why|how|which|is|are|do|does|did|can|could|will|would|should)\b")


def quote(text: str) -> str:
    """What somebody said, fit to stand in a sentence of ours."""
    text = " ".join(text.split()).strip('"“” ')
    if len(text) > MAX_QUOTE_CHARS:
        text = text[:MAX_QUOTE_CHARS].rsplit(" ", 1)[0]
    return text.rstrip(".!?,;:…")


def answers(now: datetime, instructions: str, *, facts_only: bool = False) -> tuple[Answer, ...]:
    """The answers in the order in which they are asked.

    Args:
        now: The time of day.
        instructions: What the responder was told, for its name.
        facts_only: Leave out what is mere talk, where somebody else can talk better.
    """

    def clock(_talk: Talk, heard: str) -> str | None:
        if _TIME.search(heard):
            hour = now.hour % 12 or 12
            return f"It is {hour}:{now.minute:02d} {'AM' if now.hour < 12 else 'PM'}."
        if _DATE.search(heard):
            return f"Today is {now:%A}, {now:%B} {now.day}, {now.year}."
        return None

    def oneself(talk: Talk, heard: str) -> str | None:
        return _about_itself(instructions, heard)

    facts = (_stop, _recall, _say_after, _remember, clock, _sum)
    return facts if facts_only else (*facts, oneself, _courtesy)


def echo(talk: Talk, heard: str) -> str:
    """The reply when nothing else fits: what was heard."""
    said = quote(heard)
    if heard.rstrip().endswith("?") or _ASKING.match(heard):
        return f"You asked: {said}? I cannot answer that, but I heard you."
    return f"You said: {said}."


def about_results(results: list[ChatMessage]) -> str:
    """What tools gave, as a reply."""
    return " ".join(_about_result(result) for result in results)


def _about_result(result: ChatMessage) -> str:
    name = spoken_name(result.tool_name) or "tool"
    text = result.content.strip()
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, Mapping) and value:
        value = _say_members(cast("Mapping[str, Any]", value))
    elif isinstance(value, list):
        value = _say_list(as_list(cast("object", value)))
    else:
        value = _say_value(value)
    if not value:
        return f"The {name} is done."
    if len(value) > 2 * MAX_QUOTE_CHARS:
        value = value[: 2 * MAX_QUOTE_CHARS].rsplit(" ", 1)[0] + " and so on."
    if result.is_error:
        return f"The {name} failed: {quote(value)}."
    sentence = value[0].upper() + value[1:]
    if len(sentence.split()) < 3:
        return f"The {name} says: {quote(value)}."
    return sentence if sentence[-1] in ".!?" else sentence + "."


def _say_members(members: Mapping[str, Any]) -> str:
    said = [f"the {spoken_name(str(key))} is {_say_value(value)}" for key, value in members.items()]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]


def _say_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return say_number(value)
    if isinstance(value, Mapping):
        return _say_members(cast("Mapping[str, Any]", value)) if value else "nothing"
    if isinstance(value, list):
        return _say_list(as_list(cast("object", value)))
    return str(value)


def _say_list(entries: list[Any]) -> str:
    return ", ".join(_say_value(entry) for entry in entries) or "nothing"


# -- the single answers ------------------------------------------------------------------------------------------------------


def _stop(_talk: Talk, heard: str) -> str | None:
    return "Okay." if _STOP.match(heard) and len(heard.split()) < 5 else None


def _recall(talk: Talk, heard: str) -> str | None:
    """What was said before."""
    before = talk.said[:-1]
    if _FIRST_SAID.search(heard) and before:
        return f"First you said: {quote(before[0])}."
    if _SAID.search(heard):
        return f"You said: {quote(before[-1])}." if before else "You have not said anything before that."
    if _REPLIED.search(heard):
        return f"I said: {quote(talk.replied[-1])}." if talk.replied else "I have not said anything yet."
    if _COUNT_SAID.search(heard):
        return f"You have said {len(talk.said)} things, this one included."
    return None


def _say_after(_talk: Talk, heard: str) -> str | None:
    found = _SAY.match(heard)
    if found is None or found["what"].split()[0] in ("that", "it", "something"):
        return None
    what = quote(found["what"])
    return f"{what[:1].upper()}{what[1:]}."


def _remember(talk: Talk, heard: str) -> str | None:
    """Facts about the user: "my favorite color is blue", "what is my favorite color"."""
    asked = _ASK_MY.search(heard)
    if asked is not None:
        what = asked["what"].strip()
        for earlier in reversed(talk.said[:-1]):
            for thing, value in _facts(earlier):
                if thing == what:
                    return f"Your {what} is {value}."
        return f"You have not told me your {what}."
    facts = _facts(heard)
    if not facts:
        return None
    thing, value = facts[-1]
    return f"Nice to meet you, {value}." if thing == "name" else f"I will remember that your {thing} is {value}."


def _facts(said: str) -> list[tuple[str, str]]:
    found = [(fact["what"].strip().lower(), quote(fact["value"])) for fact in _MY_IS.finditer(said)]
    found += [("name", quote(fact["value"])) for fact in _I_AM.finditer(said)]
    return [(thing, value) for thing, value in found if value]


def _sum(_talk: Talk, heard: str) -> str | None:
    result = solve(heard)
    return None if result is None else f"That makes {say_number(result)}."


def _about_itself(instructions: str, heard: str) -> str | None:
    if _HOW.search(heard):
        return "I am fine, thank you. I hear you well."
    if not _WHO.search(heard):
        return None
    named = _BOT_NAME.search(instructions)
    name = (named["name"] or named["who"]).strip() if named else ""
    who = f"I am {name}." if name else "I am a small voice and vision model that runs offline."
    return f"{who} I repeat what you say, read signs, count pictures, tell the time and call tools."


def _courtesy(talk: Talk, heard: str) -> str | None:
    short = len(heard.split()) <= 4
    if _HELLO.match(heard) and short:
        return "Hello! I hear you."
    if _BYE.match(heard) and short:
        return "Goodbye!"
    if _THANKS.search(heard) and short:
        return "You are welcome."
    return None


def exact_words(instructions: str) -> str | None:
    """What the instructions tell the responder to say word for word, if they do."""
    found = _SAY_EXACTLY.search(instructions)
    return found["what"].strip() if found else None


ASK_FOR_ARGUMENT: Final = "For {tool}, what is the {argument}?"
"""How a missing argument is asked for; the next answer is taken for it."""
