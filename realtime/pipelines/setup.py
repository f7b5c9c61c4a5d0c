"""A session's arguments, checked before anything starts.

Owns: the checks of `RealtimeSession`'s arguments that no settings class makes by itself, each raising an error that names
the argument. Driven by `session.py`. It never starts anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, TypeVar

from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.messages import ChatMessage
from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import Agent, SessionSettings
from realtime.errors import ArgumentError, UserError

__all__ = [
    "as_list",
    "check_abilities",
    "check_agents",
    "check_takeover",
    "check_text",
    "check_type",
    "one_of",
    "or_default",
    "starting_point",
]

T = TypeVar("T")


def check_type(argument: str, value: object, kind: type[Any], wanted: str) -> None:
    """Raise `ArgumentError` unless `value` is a `kind`."""
    if not isinstance(value, kind):
        raise ArgumentError(argument, value, wanted)


def as_list(argument: str, value: Any, wanted: str) -> list[Any]:
    """The members of any iterable but text.

    Raises:
        ArgumentError: It is none.
    """
    if isinstance(value, (str, bytes)) or not _is_iterable(value):
        raise ArgumentError(argument, value, wanted)
    return list(value)


def _is_iterable(value: Any) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable)


def check_text(argument: str, value: object) -> str:
    """The text that was given.

    Raises:
        ArgumentError: It is none.
    """
    if not isinstance(value, str):
        raise ArgumentError(argument, value, "text")
    return value


def one_of(argument: str, value: T, allowed: Sequence[T]) -> T:
    """The value, if it is one of those allowed.

    Raises:
        ArgumentError: It is another.
    """
    if value not in allowed:
        raise ArgumentError(argument, value, "one of " + ", ".join(map(repr, allowed)))
    return value


def or_default(argument: str, value: T | None, kind: type[T]) -> T:
    """The value, or the kind's default where None was given.

    Raises:
        ArgumentError: It is something else.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ArgumentError(argument, value, f"a {kind.__name__}, or None for its defaults")
    return value


def starting_point(
    context: ChatContext | None,
    message_history: Any,
    conversation: Conversation | None,
) -> tuple[ChatContext, Conversation]:
    """The context that a session goes on with, and the conversation that it continues.

    Raises:
        ArgumentError: More than one of the three is given, or one is something else.
    """
    given = {"context": context, "message_history": message_history, "conversation": conversation}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ArgumentError(names[1], given[names[1]], f"left out when {names[0]} is given")
    if context is not None:
        check_type("context", context, ChatContext, "a ChatContext (ChatContext.from_dict reads a saved one)")
        return context, Conversation()
    if conversation is not None:
        check_type("conversation", conversation, Conversation, "a Conversation")
        return ChatContext(list(conversation.messages), list(conversation.handoffs)), conversation
    if isinstance(message_history, ChatContext):
        return message_history.copy(), Conversation()
    if message_history is None:
        return ChatContext(), Conversation()
    messages = as_list("message_history", message_history, "a sequence of ChatMessages, or a ChatContext")
    for message in messages:
        check_type("message_history", message, ChatMessage, "a sequence of ChatMessages, or a ChatContext")
    return ChatContext(messages), Conversation()


def check_agents(first: Agent, others: Any) -> dict[str, Agent]:
    """All agents by id.

    Raises:
        ArgumentError: Something is no agent, or two have one id.
    """
    agents = {first.id: first}
    for agent in as_list("agents", others, "an iterable of Agents"):
        check_type("agents", agent, Agent, "an iterable of Agents")
        if agent.id in agents:
            raise ArgumentError("agents", agent.id, f"agents with different ids ({first.id!r} is the session's own)")
        agents[agent.id] = agent
    return agents


def check_abilities(capabilities: ModelCapabilities, settings: SessionSettings) -> None:
    """Refuse what the model cannot do, before anything is connected.

    Raises:
        UserError: The capability that is lacking is named.
    """
    model = capabilities.model or "this model"
    if settings.output == "text" and not capabilities.supports_text_output:
        raise UserError(f"{model} has no text output (supports_text_output): use output='audio'")
    if settings.tools and not capabilities.supports_tools:
        raise UserError(f"{model} calls no tools (supports_tools): leave tools= out")
    _check_turns(model, capabilities, settings)
    kept = settings.retention
    if kept.keeps_output_audio and not capabilities.supports_audio_output:
        raise UserError(
            f"{model}'s speech does not come here (supports_audio_output), so none can be kept: audio_retention"
        )
    if kept.keeps_input_audio and not capabilities.supports_audio_input:
        raise UserError(f"{model} is given no audio (supports_audio_input), so none can be kept: audio_retention")


def check_takeover(capabilities: ModelCapabilities, messages: Sequence[ChatMessage]) -> None:
    """Refuse a model that cannot be told the conversation that it shall take.

    Raises:
        UserError: It takes no earlier messages, and there are some.
    """
    if messages and not capabilities.supports_session_seeding:
        model = capabilities.model or "this model"
        raise UserError(f"{model} cannot take up an earlier conversation (supports_session_seeding)")


def _check_turns(model: str, capabilities: ModelCapabilities, settings: SessionSettings) -> None:
    """Refuse turns that the model cannot take."""
    detection = settings.turn_detection
    if detection.mode == "semantic" and not capabilities.supports_semantic_turns:
        raise UserError(
            f"{model} cannot tell the end of a turn by what is said (supports_semantic_turns): "
            "use TurnDetection(mode='server') or 'manual'"
        )
    if detection.mode == "manual" and not capabilities.supports_manual_turns:
        raise UserError(f"{model} ends turns itself (supports_manual_turns): use TurnDetection(mode='server')")
    holds = settings.resume_after_ms > 0
    goes_unanswered = detection.mode != "manual" and (holds or not detection.create_response)
    if goes_unanswered and not capabilities.supports_unanswered_turns:
        asked = "resume_after_ms" if holds else "TurnDetection(create_response=False)"
        raise UserError(f"{model} answers every turn that it hears (supports_unanswered_turns): leave {asked} out")
