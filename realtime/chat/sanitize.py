"""Makes a history that came from outside fit to be trusted (seed: history and handoff, "Seeded history is trusted").

Owns: `sanitize_messages`. Driven by applications, before they seed a session with what a browser or another client sent.
A client can forge whatever a server keeps: system prompts that become instructions, addresses that the server would
fetch, tool results that never were, a provider's own data. Never fetches, never judges what people said.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from realtime.chat.formats.context_messages import from_context_messages
from realtime.chat.messages import ChatMessage

__all__ = ["sanitize_messages"]

logger = logging.getLogger("realtime.chat.sanitize")


def sanitize_messages(
    messages: Iterable[ChatMessage | Mapping[str, Any]],
    *,
    strip_system_prompts: bool = True,
    strip_urls: bool = True,
    strip_tool_rounds: bool = True,
) -> list[ChatMessage]:
    """Strip from a history what only a server may have put there.

    Words, pictures and recordings that carry their own bytes stay, with their ids and times. A provider's data, thinking
    and the mark of a summary go always. A message that has nothing left goes whole. What went is told in the log, by
    number.

    Args:
        messages: Messages, or transport dicts as a client sends them.
        strip_system_prompts: Take out system and developer messages, which would become the session's instructions.
        strip_urls: Take out pictures given by address, which the server would fetch.
        strip_tool_rounds: Take out tool calls and results; what was said beside a call stays.

    Returns:
        New messages; the given ones are unchanged.

    Raises:
        ArgumentError: They are no messages.
    """
    kept: list[ChatMessage] = []
    prompts = addresses = rounds = 0
    for message in from_context_messages(messages):
        if strip_system_prompts and message.is_instruction:
            prompts += 1
            continue
        if strip_tool_rounds and message.is_result:
            rounds += 1
            continue
        clean = replace(message, provider_data={}, thinking="", summary=False)
        if strip_tool_rounds and clean.tool_calls:
            rounds += 1
            clean = replace(clean, tool_calls=())
        elif clean.tool_calls:
            clean = replace(clean, tool_calls=tuple(replace(call, provider_data={}) for call in clean.tool_calls))
        if strip_urls and clean.images:
            own = tuple(image for image in clean.images if image.byte_length)
            addresses += len(clean.images) - len(own)
            clean = replace(clean, images=own)
        if not clean.is_empty:
            kept.append(clean)
    if prompts or addresses or rounds:
        logger.warning(
            "an untrusted history lost %d system prompt(s), %d picture(s) by address, %d tool call or result message(s)",
            prompts,
            addresses,
            rounds,
        )
    return kept
