"""What every format says alike: clean text, the notes that stand for what is not text, legal names.

Owns: the wording of those notes and the rules of F3, F6, F9 and F10 about text. Pure functions; driven by every format.
"""

from __future__ import annotations

import re
from typing import Final

from realtime.chat.messages import ChatMessage, ImageContent

__all__ = [
    "CLOSING_FILLER",
    "INTERRUPTED_NOTE",
    "NO_OUTPUT",
    "OPENING_FILLER",
    "PENDING_OUTPUT",
    "PICTURE_FOLLOWS",
    "SUMMARY_NOTE",
    "UNSEEN_PICTURE",
    "clean",
    "legal_name",
    "pictures_of",
    "result_text",
    "tagged_instruction",
    "words_of",
]

INTERRUPTED_NOTE: Final = "[interrupted by the user]"
"""Stands behind what was heard of a reply that was cut (behaviour.md F10)."""
SUMMARY_NOTE: Final = "[summary of what was said before]"
"""Stands before a digest, so that a model does not take it for something that the user says now (behaviour.md W4)."""
PENDING_OUTPUT: Final = "This call has not finished yet."
"""Stands in for the result of a call that has none yet (behaviour.md F3)."""
NO_OUTPUT: Final = "(no output)"
"""Stands in for a result without text, where a provider demands some (behaviour.md F6)."""
PICTURE_FOLLOWS: Final = "(the picture follows)"
"""… whose pictures must go in a message behind it (behaviour.md F11)."""
UNSEEN_PICTURE: Final = "[a picture of a kind that this model cannot see]"
"""Stands in for a picture that a provider refuses (behaviour.md F1)."""
OPENING_FILLER: Final = "[the conversation begins]"
"""The user's part before a conversation that the model opened, where a provider demands one (behaviour.md F8)."""
CLOSING_FILLER: Final = "[please go on]"
"""… and behind one that the model's words end."""
_UNNAMED: Final = "unnamed_tool"
_MAX_NAME: Final = 64
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


# hot path: once per text of every conversion
def clean(text: str) -> str:
    """Text that encodes as UTF-8: a lone surrogate becomes U+FFFD, a pair becomes its character (behaviour.md F9)."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def words_of(message: ChatMessage, *, unheard: bool = False, transcript: bool = True) -> str:
    """What a message says, as text for a model; empty if it says nothing.

    An interrupted message gives what was heard and a note (behaviour.md F10), a digest a note and its text (W4). Blank text
    is none (F6).

    Args:
        message: Any message.
        unheard: Whether to add what was generated and not heard.
        transcript: Whether a recording speaks by its transcript where there is no text (F11).
    """
    text = message.content
    if message.audio is not None and transcript and not text.strip():
        text = message.audio.transcript
    text = clean(text) if text.strip() else ""
    if message.summary and text:
        text = f"{SUMMARY_NOTE} {text}"
    if not message.interrupted:
        return text
    said = [text, INTERRUPTED_NOTE] if text else []
    if unheard and message.unheard.strip():
        said.append(f"[not heard: {clean(message.unheard)}]")
    return " ".join(said)


def result_text(result: ChatMessage | None) -> str:
    """What a tool gave, as text that is not empty (behaviour.md F3, F6).

    Args:
        result: The result's message; None if there is none yet.
    """
    if result is None:
        return PENDING_OUTPUT
    text = words_of(result)
    if text:
        return text
    return PICTURE_FOLLOWS if pictures_of(result) else NO_OUTPUT


def pictures_of(message: ChatMessage) -> list[ImageContent]:
    """The pictures of a message that are pictures: one that holds nothing is left out, the message is not (V7)."""
    return [image for image in message.images if image.byte_length or image.url]


def tagged_instruction(text: str) -> str:
    """A later instruction, for a provider that knows no such role in mid-conversation (behaviour.md F7)."""
    return f"<system>{text}</system>"


def legal_name(name: str) -> str:
    """A tool's name as every provider takes it: letters, digits, ``_`` and ``-``, at most 64 of them."""
    if name.isascii() and name.isidentifier() and len(name) <= _MAX_NAME:
        return name
    return _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME] or _UNNAMED
