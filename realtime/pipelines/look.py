"""A ready tool: the model asks to look, and is shown the next frame.

Owns: `look_tool`, to be handed over among a session's ``tools``. Driven by the model. It never decides which frame: the
sampler serves a request with the next one (behaviour.md I4).
"""

from __future__ import annotations

from typing import Protocol, cast

from realtime.chat.messages import ImageContent
from realtime.pipelines.tool import CallContext, Tool

__all__ = ["look_tool"]


class _Looks(Protocol):
    async def look(self, source: str | None = None) -> ImageContent: ...


class _InSession(Protocol):
    session: _Looks


async def look(context: CallContext, source: str | None = None) -> str:
    """Look at what the user's camera or screen shows right now. The picture is put into the conversation.

    Args:
        context: The call's; it is injected.
        source: The name of the camera or screen; leave it out if there is only one.
    """
    image = await cast("_InSession", context).session.look(source)
    width, height = image.size or (0, 0)
    return f"The newest picture ({width}x{height}) is in the conversation, just before this."


look_tool = Tool(look, timeout_seconds=10.0)
"""Lets the model ask for a picture when it needs one. It is shown before the model goes on."""
