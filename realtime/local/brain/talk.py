"""A conversation as the rules look at it: what was said, shown and answered, and what is new.

Owns: `Talk`. Driven by the rules, once per reply. Never acts.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.chat.formats.text import INTERRUPTED_NOTE
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent

__all__ = ["Talk"]


class Talk:
    """What a reply is made from."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        """Look at a conversation, oldest message first."""
        self.said: list[str] = []
        """What the user said or typed, oldest first."""
        self.replied: list[str] = []
        """What was replied, oldest first."""
        self.pictures: list[ImageContent] = []
        """What the user showed, oldest first."""
        self.results: list[ChatMessage] = []
        """Results of tools that no reply has spoken of."""
        self.heard = ""
        """What the user said since the last reply; empty if nothing."""
        self.shown: list[ImageContent] = []
        """What the user showed since the last reply."""
        self.silent = False
        """The last that came from the user is a turn without words."""
        for message in messages:
            self._take(message)

    def _take(self, message: ChatMessage) -> None:
        if message.role is ChatRole.TOOL:
            self.results.append(message)
        elif message.role is ChatRole.ASSISTANT:
            text = message.content.replace(INTERRUPTED_NOTE, "").strip()
            if text:
                self.replied.append(text)
            if text or message.tool_calls:
                self.heard, self.shown = "", []
            if text:
                self.results = []
        elif message.role is ChatRole.USER:
            text = message.content.strip()
            if text:
                self.said.append(text)
                self.heard = f"{self.heard} {text}".strip()
                self.results = []
            self.silent = not text and not message.images
            self.pictures += message.images
            self.shown += message.images
