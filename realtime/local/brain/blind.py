"""Pictures put into words, for brains that cannot see.

Owns: `describe_pictures`. Driven by a responder whose model takes no pictures. It looks with `Eyes`, at the newest
pictures only, and leaves the words in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from realtime.chat.messages import ChatMessage
from realtime.errors import ImageError
from realtime.local.brain.looking import describe
from realtime.local.parts import Eyes

__all__ = ["describe_pictures"]

NEWEST = 2
"""So many pictures are looked at; older ones are only mentioned."""


async def describe_pictures(messages: Sequence[ChatMessage], eyes: Eyes, owner: str) -> list[ChatMessage]:
    """The same messages with words in the place of pictures."""
    unseen = sum(len(message.images) for message in messages) - NEWEST
    told: list[ChatMessage] = []
    for message in messages:
        lines: list[str] = []
        for picture in message.images:
            unseen -= 1
            if unseen >= 0:
                lines.append("[The user showed a picture.]")
                continue
            try:
                seen = describe(await eyes.look(picture, owner=owner)).removeprefix("I see ")
            except ImageError:
                seen = "a picture that cannot be made out."
            lines.append(f"[The user shows {seen}]")
        if lines:
            text = "\n".join([message.content, *lines] if message.content else lines)
            message = replace(message, content=text, images=())  # noqa: PLW2901  (the same message, in words)
        told.append(message)
    return told
