"""One response: from the wish to `response.done`, whatever happens in between.

Owns: `ResponseRun`. Driven by the session, which starts it, may stop it, and always sees it end. It waits for the words
of what the user said, asks the responder, and writes what comes as items; a stop (the user speaks, the client cancels)
takes effect at the next chunk and still ends every item and the response itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal, cast

from realtime.errors import ModelError
from realtime.local.config_fields import format_to_wire
from realtime.local.conversation import LocalConversation, messages_of
from realtime.local.ids import make_id
from realtime.local.items import StoredItem, item_to_wire
from realtime.local.output import MessageWriter, OutputContext, Send, write_call
from realtime.local.parts import ReplyRequest, Responder, Synthesizer, TextDelta, Tool, ToolCall
from realtime.local.response_config import ResponseSettings
from realtime.local.tokens import count_text, cut_text, usage_of
from realtime.pipelines.channel import Channel, ChannelClosed
from realtime.wire.openai_messages import (
    ErrorDetails,
    Response,
    ResponseCreatedEvent,
    ResponseDoneEvent,
    StatusDetails,
)

__all__ = ["ResponseRun", "StopReason"]

StopReason = Literal["turn_detected", "client_cancelled"]
Status = Literal["completed", "cancelled", "failed", "incomplete"]

AHEAD = 32
"""How many pieces of text the responder may be ahead of what is spoken; then it waits."""

_log = logging.getLogger(__name__)


class ResponseRun:
    """One response of one session."""

    def __init__(
        self,
        settings: ResponseSettings,
        *,
        responder: Responder,
        synthesizer: Synthesizer,
        conversation: LocalConversation,
        conversation_id: str,
        owner: str,
        send: Send,
        ready: Callable[[], Awaitable[bool]],
        on_step: Callable[[str], None],
    ) -> None:
        """Prepare. Nothing is sent yet.

        Args:
            settings: What it is to be.
            responder: The brain.
            synthesizer: The voice.
            conversation: What it answers, and where its items go unless it is out of band.
            conversation_id: The conversation's id.
            owner: The session.
            send: Sends events to the client.
            ready: Returns when the words of everything that was said are known: whether there is anything to answer.
            on_step: Told of `transcript`, `token` and `audio`, each when it is first there.
        """
        self.id = make_id("resp_")
        """The response's id."""
        self.settings = settings
        """What it is to be."""
        self.audio_ms = 0
        """How much audio it sent."""
        self._responder = responder
        self._conversation = conversation
        self._conversation_id = conversation_id
        self._owner = owner
        self._send = send
        self._ready = ready
        self._on_step = on_step
        self._context = OutputContext(
            response_id=self.id,
            owner=owner,
            settings=settings,
            conversation=conversation if settings.in_conversation else None,
            synthesizer=synthesizer,
            send=send,
            on_audio=lambda: on_step("audio"),
        )
        self._input: list[StoredItem] = []
        self._output: list[StoredItem] = []
        self._message: MessageWriter | None = None
        self._text_tokens = 0
        self._work: asyncio.Task[Status] | None = None
        self._stop: StopReason | None = None
        self._ending_item = False

    def stop(self, reason: StopReason) -> None:
        """End it at the next chunk; an item whose end is being written is written first."""
        if self._stop is not None or (self._work is not None and self._work.done()):
            return
        self._stop = reason
        if self._work is not None and not self._ending_item:
            self._work.cancel()

    async def announce(self) -> None:
        """Send `response.created`."""
        await self._send(
            ResponseCreatedEvent(type="response.created", event_id=make_id("event_"), response=self._to_wire(None))
        )

    async def run(self) -> str:
        """Make the response, up to `response.done`. Returns its status."""
        work = self._work = asyncio.get_running_loop().create_task(self._make())
        try:
            await asyncio.wait({work})
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        status, error = self._outcome(work)
        if self._message is not None:
            message, self._message = self._message, None
            self.audio_ms += message.audio_ms
            await message.close("completed" if status == "completed" else "incomplete")
        await self._send(
            ResponseDoneEvent(
                type="response.done", event_id=make_id("event_"), response=self._to_wire(status, error=error)
            )
        )
        return status

    # -- making it -----------------------------------------------------------------------------------------------------

    async def _make(self) -> Status:
        if self._stop is not None:  # before it began
            raise asyncio.CancelledError
        is_asked = await self._ready()
        self._on_step("transcript")
        if not is_asked:
            return "completed"
        settings = self.settings
        self._input = list(self._conversation) if settings.input is None else list(settings.input)
        pieces: Channel[TextDelta | ToolCall] = Channel(AHEAD, "block")
        async with asyncio.TaskGroup() as tasks:
            thinking = tasks.create_task(self._think(pieces))
            try:
                status = await self._write(pieces)
            finally:
                thinking.cancel()
        return status

    async def _think(self, pieces: Channel[TextDelta | ToolCall]) -> None:
        """Ask the responder and pass on what it says, ahead of what is spoken, but not far."""
        error: BaseException | None = None
        reply = self._responder.respond(self._request())
        try:
            async for piece in reply:
                await pieces.send(piece)
        except asyncio.CancelledError:
            raise
        except Exception as caught:
            error = caught
        finally:
            if isinstance(reply, AsyncGenerator):
                await cast("AsyncGenerator[TextDelta | ToolCall, None]", reply).aclose()
            pieces.close(error)

    def _request(self) -> ReplyRequest:
        settings = self.settings
        tools: tuple[Tool, ...] = settings.tools
        choice = settings.tool_choice
        name = choice.removeprefix("function:")
        if name != choice:
            tools, choice = tuple(tool for tool in tools if tool.name == name), "required"
        return ReplyRequest(
            messages=messages_of(self._input),
            owner=self._owner,
            instructions=settings.instructions,
            tools=() if choice == "none" else tools,
            tool_choice=cast("Literal['auto', 'none', 'required']", choice),
            max_output_tokens=settings.max_output_tokens,
            is_spoken=settings.modality == "audio",
        )

    async def _write(self, pieces: Channel[TextDelta | ToolCall]) -> Status:
        first = True
        while True:
            try:
                piece = await pieces.receive()
            except ChannelClosed:
                break
            if first:
                self._on_step("token")
                first = False
            if isinstance(piece, ToolCall):
                await self._end_message()
                await self._write_call(piece)
            elif piece.text and not await self._write_text(piece.text):
                return "incomplete"
            if self._is_over_limit():
                return "incomplete"
        await self._end_message()
        return "completed"

    async def _write_text(self, text: str) -> bool:
        """Write text as far as `max_output_tokens` lets. Returns whether that was all of it."""
        if self._message is None:
            self._message = MessageWriter(self._context, len(self._output))
            self._output.append(self._message.item)
            await self._message.open()
        most = self.settings.max_output_tokens
        allowed = text if most is None else cut_text(text, most - self._text_tokens)
        self._text_tokens += count_text(allowed)
        await self._message.feed(allowed)
        if len(allowed) < len(text):
            await self._message.flush()
            return False
        return True

    def _is_over_limit(self) -> bool:
        most = self.settings.max_output_tokens
        return most is not None and self._text_tokens > most

    async def _end_message(self) -> None:
        if self._message is not None:
            message = self._message
            await message.flush()
            self._message = None
            self.audio_ms += message.audio_ms
            await self._to_its_end(message.close("completed"))

    async def _write_call(self, call: ToolCall) -> None:
        self._text_tokens += count_text(call.name + call.arguments)
        await self._to_its_end(self._append_call(call))

    async def _append_call(self, call: ToolCall) -> None:
        self._output.append(await write_call(self._context, call, len(self._output)))

    async def _to_its_end(self, writing: Awaitable[None]) -> None:
        """Write what a stop must not tear."""
        self._ending_item = True
        await writing
        self._ending_item = False
        if self._stop is not None:
            raise asyncio.CancelledError

    # -- its end -------------------------------------------------------------------------------------------------------

    def _outcome(self, work: asyncio.Task[Status]) -> tuple[Status, ErrorDetails | None]:
        if work.cancelled():
            return "cancelled", None
        error = _innermost(work.exception())
        if error is None:
            return work.result(), None
        if isinstance(error, ModelError):
            return "failed", ErrorDetails(type="server_error", code=error.code or None, message=error.message)
        _log.error("a response failed", exc_info=error)
        return "failed", ErrorDetails(
            type="server_error", code="server_error", message=f"{type(error).__name__}: {error}"
        )

    def _to_wire(self, status: Status | None, *, error: ErrorDetails | None = None) -> Response:
        settings = self.settings
        output = {"format": format_to_wire(settings.output_format), "voice": settings.voice}
        response = Response(
            object="realtime.response",
            id=self.id,
            status=status or "in_progress",
            status_details=self._details(status, error),
            output=[item_to_wire(item) for item in self._output],
            conversation_id=self._conversation_id if settings.in_conversation else None,
            output_modalities=[settings.modality],
            max_output_tokens=settings.max_output_tokens or "inf",
            audio={"output": output},  # type: ignore[typeddict-item]
            usage=None,
            metadata=dict(settings.metadata) if settings.metadata is not None else None,
        )
        if status is not None:
            response["usage"] = usage_of(self._input, settings.instructions, self._output)
        return response

    def _details(self, status: Status | None, error: ErrorDetails | None) -> StatusDetails | None:
        if status == "cancelled":
            return StatusDetails(type="cancelled", reason=self._stop or "client_cancelled")
        if status == "incomplete":
            return StatusDetails(type="incomplete", reason="max_output_tokens")
        if status == "failed" and error is not None:
            return StatusDetails(type="failed", error=error)
        return None


def _innermost(error: BaseException | None) -> BaseException | None:
    """The first error of a task group's."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("tuple[BaseException, ...]", error.exceptions)[0]  # pyright: ignore[reportUnknownMemberType]
    return error
