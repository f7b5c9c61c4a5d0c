"""What an inspected context and its messages are told by, in the terminal and on the page alike.

Owns: `Inspection`, the short phrases about a message, its pictures and its sound, and `printable`. Pure; driven by
`inspect_terminal` and `inspect_page`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from realtime.chat.explain import Explanation, Reason
from realtime.chat.messages import AgentHandoff, AudioContent, ImageContent
from realtime.chat.window import ContextWindow

__all__ = ["Inspection", "about", "outcome", "picture_facts", "printable", "sound_facts"]

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, lone surrogates, bidirectional overrides and isolates."""
_REASONS: Final[dict[Reason, str]] = {
    "within_budget": "everything fits",
    "instruction": "an instruction",
    "open_call": "its call is open",
    "recent_turn": "of a recent turn",
    "recent_frame": "a recent frame",
    "part_of_kept_unit": "its tool round stays",
    "newest_that_fit": "among the newest that fit",
    "old_frame": "an old frame",
    "old_turn": "of an old turn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A context, looked at."""

    name: str
    """The file's name."""
    messages: tuple[Explanation, ...]
    """Each message, with what the window makes of it."""
    handoffs: tuple[AgentHandoff, ...]
    """Who handed the conversation to whom."""
    window: ContextWindow
    """The window that was asked."""
    turn_count: int
    """The user's turns, without frames."""

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(one.tokens for one in self.messages)

    @property
    def kept_tokens(self) -> int:
        """Tokens of those that stay."""
        return sum(one.tokens for one in self.messages if one.kept)

    @property
    def summary(self) -> str:
        """It all in one line."""
        kept = sum(one.kept for one in self.messages)
        said = ", ".join(
            (
                _counted(len(self.messages), "message"),
                _counted(self.turn_count, "spoken turn"),
                _counted(self.tokens, "token"),
            )
        )
        if kept == len(self.messages):
            return said
        return f"{said}; the window keeps {_counted(kept, 'message')}, {_counted(self.kept_tokens, 'token')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def printable(text: str) -> str:
    """Text without what steers a terminal or turns the reading direction: U+FFFD stands in its place."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def outcome(one: Explanation) -> str:
    """Whether the window keeps it, and why."""
    return f"{'kept' if one.kept else 'trimmed'}: {_REASONS[one.reason]}"


def about(one: Explanation) -> list[str]:
    """What is to know of a message besides what it says."""
    message = one.message
    facts = [f"turn {one.turn}"] if one.turn else []
    facts.append(f"{one.tokens} tokens")
    if message.created_at is not None:
        facts.append(_clock(message.created_at))
    if message.agent_id:
        facts.append(f"agent {message.agent_id}")
    if message.source:
        facts.append(f"from {message.source}")
    if message.summary:
        facts.append("a summary")
    if message.is_error:
        facts.append("an error")
    if message.interrupted:
        heard = "" if message.heard_ms is None else f" after {message.heard_ms} ms"
        facts.append(f"interrupted{heard}")
    return [printable(fact) for fact in facts]


def picture_facts(image: ImageContent) -> str:
    """What kind of picture it is."""
    if not image.byte_length:
        return f"picture at {printable(urlsplit(image.url).geturl()) or 'no address'}"
    size = "{}×{} ".format(*image.size) if image.size else ""
    detail = "" if image.detail == "auto" else f", detail {image.detail}"
    return f"{size}{image.mime_type}, {image.byte_length / 1000:.1f} kB{detail}"


def sound_facts(audio: AudioContent) -> str:
    """What kind of sound it is."""
    return f"{audio.duration_ms / 1000:.1f} s of sound at {audio.rate_hz} Hz"


def _clock(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"at {seconds:g}"
