"""A chat model as the brain: any OpenAI-compatible endpoint, spoken sentence by sentence as it streams.

Owns: `ChatResponder`. Driven by a running response. The conversation goes out with its tools, its results and its newest
pictures, as much of it as the model can hold; what comes back is passed on piece by piece. A reply that is not wanted any
more is broken off at the endpoint as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.window import ContextWindow
from realtime.local.brain.blind import describe_pictures
from realtime.local.parts import Eyes, ReplyRequest, TextDelta, ToolCall
from realtime.models.chat import ChatModel

__all__ = ["SPOKEN_HINT", "ChatResponder"]

SPOKEN_HINT: Final = (
    "You are talking with somebody: what you write is read aloud as you write it. Answer in short, plain sentences, "
    "without markdown, lists, headings, code or emoji, unless you are asked for them."
)
"""Added to the instructions of replies that are spoken."""
OPENING: Final = "Hello."
"""The user's turn where there is none, as chat endpoints want one."""
MAX_CALL_ID: Final = 32
MAX_MESSAGES: Final = 200
"""No more than the newest of a conversation is looked at for what to send."""


class ChatResponder:
    """A `Responder` that asks a chat endpoint."""

    def __init__(
        self, model: ChatModel, *, max_tokens: int = 8_000, eyes: Eyes | None = None, served_by: object = None
    ) -> None:
        """Take the model; it is closed with the responder.

        Args:
            model: Whom to ask.
            max_tokens: How much of the conversation it is sent, by estimate.
            eyes: Put pictures into words, for a model that cannot see; None: it is sent them.
            served_by: What runs the model in this process, if anything: kept as long as it is needed.

        Raises:
            ArgumentError: `max_tokens` cannot be.
        """
        self._model = model
        self._window = ContextWindow(max_tokens=max_tokens, counter="estimate")
        self._eyes = eyes
        self._served_by = served_by
        self.name = model.model
        """The model's name at its endpoint."""

    async def respond(self, request: ReplyRequest) -> AsyncIterator[TextDelta | ToolCall]:
        """Ask, and pass on what comes.

        Raises:
            ModelError: The endpoint refused, failed or was too slow.
        """
        messages = self._fitting(request.messages)
        if self._eyes is not None:
            messages = await describe_pictures(messages, self._eyes, request.owner)
        hints = (request.instructions, SPOKEN_HINT if request.is_spoken else "")
        pieces = self._model.stream(
            messages,
            instructions="\n\n".join(filter(None, hints)),
            tools=request.tools,
            tool_choice=request.tool_choice,
            max_output_tokens=request.max_output_tokens,
        )
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, str):
                    yield TextDelta(text=piece)
                else:
                    call_id = piece.call_id if len(piece.call_id) <= MAX_CALL_ID else ""
                    yield ToolCall(name=piece.name, arguments=piece.arguments or "{}", call_id=call_id)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()
        self._served_by = None

    def _fitting(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """As much of the conversation as the model is sent, the newest of it."""
        kept = self._window.apply(ChatContext(messages[-MAX_MESSAGES:])).messages()
        if any(message.role is ChatRole.USER for message in kept):
            return kept
        return [*kept, ChatMessage(role=ChatRole.USER, content=OPENING)]
