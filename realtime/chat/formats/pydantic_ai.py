"""Handing a conversation to an agent of Pydantic AI, and taking it back (seed: history and handoff).

Owns: `to_pydantic_ai_messages` and `from_pydantic_ai_messages`, which need the extra ``pydantic-ai``; the work is done in
`pydantic_ai_writing` and `pydantic_ai_reading`, which are loaded when they are needed. Driven by applications.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from realtime.chat.messages import ChatMessage
from realtime.errors import MissingExtraError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["from_pydantic_ai_messages", "to_pydantic_ai_messages"]


def to_pydantic_ai_messages(messages: Iterable[ChatMessage]) -> list[ModelMessage]:
    """Convert messages to Pydantic AI's, for ``Agent.run(message_history=…)``.

    Requests and responses alternate. Speech becomes a `SpeechPart` where the installed version has it, with the position
    at which it was cut, of which the library tells the model; elsewhere it is text with a note (behaviour.md F10). An open
    call gets a stand-in result (F3). What Pydantic AI has no field for travels in ``metadata["realtime"]``, so that
    `from_pydantic_ai_messages` gives the same messages back; what belongs to a provider's session does not travel.

    Raises:
        MissingExtraError: Pydantic AI is not installed.
    """
    try:
        from realtime.chat.formats import pydantic_ai_writing  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise _missing() from error
    return pydantic_ai_writing.write(messages)


def from_pydantic_ai_messages(messages: Iterable[ModelMessage] | Any) -> list[ChatMessage]:
    """Convert Pydantic AI's messages, such as ``result.all_messages()``, to messages.

    Of what the library adds for its own use nothing is taken. Messages that came from `to_pydantic_ai_messages` have their
    ids again, so `ChatContext.merge` adds only what is new.

    Raises:
        UserError: There is content that a session cannot take: video, documents, uploaded or generated files, audio that
            is no WAV and has no transcript.
        MissingExtraError: Pydantic AI is not installed.
    """
    try:
        from realtime.chat.formats import pydantic_ai_reading  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise _missing() from error
    return pydantic_ai_reading.read(messages)


def _missing() -> MissingExtraError:
    return MissingExtraError("handing a conversation to Pydantic AI", extra="pydantic-ai", package="pydantic-ai-slim")
