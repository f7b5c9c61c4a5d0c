"""Putting an earlier conversation into a new one at the provider (behaviour.md L1, H4; seed: history and handoff).

Owns: what of a message can be replayed, and the commands that do. Driven by `SessionMachine` on every connection and
checked by `RealtimeSession` before the first. Never sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from realtime.chat.formats.text import INTERRUPTED_NOTE, PENDING_OUTPUT
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CreateItem
from realtime.errors import UserError

__all__ = ["Seeds", "check_seed", "item_count", "leading_instructions", "plan_seeds"]


def item_count(message: ChatMessage) -> int:
    """How many items of the provider's conversation a message becomes, so how many ids `CreateItem.item_ids` holds.

    A message with text, pictures or audio is one item, and each of its tool calls is one more, behind it. Only the user
    may show pictures: those of a tool result, or of anyone else, are an item of their own (behaviour.md F11). A message
    with nothing in it is none.
    """
    if message.is_result:
        return 2 if message.images else 1
    has_words = bool(message.content) or message.audio is not None
    if message.role is ChatRole.USER:
        return int(has_words or bool(message.images)) + len(message.tool_calls)
    if message.role is ChatRole.ASSISTANT:
        has_words = has_words or bool(message.thinking)
    return int(has_words) + int(bool(message.images)) + len(message.tool_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """What replays a conversation."""

    commands: tuple[CreateItem, ...]
    """The items, in order."""
    is_whole: bool
    """Whether nothing that could matter was left out."""
    stand_ins: Mapping[str, str]
    """The item that says of an open call that it is not finished, by call id."""


def check_seed(messages: Sequence[ChatMessage], capabilities: ModelCapabilities) -> None:
    """Refuse what cannot be replayed, before anything is connected.

    Raises:
        UserError: The model takes no earlier messages, no earlier pictures, or no earlier audio where there is no
            transcript; it names the message.
    """
    replayable = [message for message in messages if item_count(message) and not _is_instruction(message)]
    if replayable and not capabilities.supports_session_seeding:
        raise UserError(f"{capabilities.model or 'this model'} cannot take up an earlier conversation")
    for message in replayable:
        if message.images and not capabilities.supports_seeding_images:
            raise UserError(
                f"message {message.message_id!r} has a picture, and {capabilities.model or 'this model'} takes no "
                "earlier pictures: leave it out of the history"
            )
        if message.audio is None or message.content or message.audio.transcript:
            continue
        if message.role is ChatRole.ASSISTANT:
            raise UserError(
                f"message {message.message_id!r} is assistant speech without a transcript; it cannot be seeded"
            )
        if not capabilities.supports_seeding_audio or message.audio.rate_hz != capabilities.input_rate_hz:
            raise UserError(
                f"message {message.message_id!r} is speech without a transcript at {message.audio.rate_hz} Hz, and "
                f"{capabilities.model or 'this model'} does not take that: add its transcript as content"
            )


def _is_instruction(message: ChatMessage) -> bool:
    return message.role in (ChatRole.SYSTEM, ChatRole.DEVELOPER)


def leading_instructions(messages: Iterable[ChatMessage]) -> list[str]:
    """The texts of the leading system and developer messages: they become part of the session's instructions (F7)."""
    leading: list[str] = []
    for message in messages:
        if not _is_instruction(message):
            break
        if message.content:
            leading.append(message.content)
    return leading


def plan_seeds(
    messages: Sequence[ChatMessage],
    capabilities: ModelCapabilities,
    *,
    item_ids_of: Callable[[int, int], tuple[str, ...]],
    make_id: Callable[[], str],
) -> Seeds:
    """Plan the replay of a conversation; its leading instructions are no items (`leading_instructions`).

    Args:
        messages: The context, in order.
        capabilities: What the model takes.
        item_ids_of: Given the index of a message and how many items it becomes, gives their ids.
        make_id: Fresh command ids.
    """
    commands: list[CreateItem] = []
    is_whole = True
    stand_ins: dict[str, str] = {}
    results = {message.tool_call_id for message in messages if message.tool_call_id}
    calls = {call.call_id for message in messages for call in message.tool_calls}
    for index, message in enumerate(messages):
        if _is_instruction(message) and not commands:
            continue
        seed = _seedable(message, capabilities)
        if seed is not message and seed is None:
            is_whole = is_whole and not item_count(message)
        if seed is None or not capabilities.supports_session_seeding:
            continue
        if seed.tool_call_id and seed.tool_call_id not in calls:
            is_whole = False
            continue
        is_whole = is_whole and len(seed.images) == len(message.images)
        item_ids = item_ids_of(index, item_count(seed))
        commands.append(CreateItem(command_id=make_id(), message=seed, item_ids=item_ids))
        for call in seed.tool_calls:
            if call.call_id not in results:  # an open call would make the provider wait: it is told so (F3)
                stand_in = ChatMessage(ChatRole.TOOL, PENDING_OUTPUT, "", (), call.call_id, tool_name=call.name)
                stand_ins[call.call_id] = make_id()
                commands.append(CreateItem(command_id=make_id(), message=stand_in, item_ids=(stand_ins[call.call_id],)))
    return Seeds(commands=tuple(commands), is_whole=is_whole, stand_ins=stand_ins)


def _seedable(message: ChatMessage, capabilities: ModelCapabilities) -> ChatMessage | None:
    """What of a message can be replayed: words rather than audio, what was heard, no provider's own data."""
    content = message.content
    if not content and message.audio is not None and message.audio.transcript:
        content = message.audio.transcript
    if message.interrupted and content:
        content = f"{content} {INTERRUPTED_NOTE}"
    if message.thinking and message.role is ChatRole.ASSISTANT:
        content = f"<thinking>{message.thinking}</thinking>\n{content}".strip()
    keeps_audio = (
        not content
        and message.audio is not None
        and message.role is ChatRole.USER
        and capabilities.supports_seeding_audio
        and message.audio.rate_hz == capabilities.input_rate_hz
    )
    seed = replace(
        message,
        content=content,
        thinking="",
        audio=message.audio if keeps_audio else None,
        images=message.images if capabilities.supports_seeding_images else (),
        tool_calls=tuple(
            replace(call, provider_data={}) if call.provider_data else call for call in message.tool_calls
        ),
        provider_data={},
        unheard="",
    )
    return seed if item_count(seed) else None
