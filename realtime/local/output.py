"""Writing the items of a response: the events of one message or call, in the order that OpenAI's server has.

Owns: `MessageWriter` (text, or speech sentence by sentence) and `write_call`. Driven by a running response; cancelled
with it at the next chunk. What was sent is in the item, whenever it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict

from realtime.local.alignment import TimedWord, align_words, split_words
from realtime.local.codecs import AudioEncoder, duration_ms
from realtime.local.conversation import LocalConversation
from realtime.local.ids import make_id
from realtime.local.items import StoredItem, StoredPart, item_to_wire
from realtime.local.parts import Synthesizer, ToolCall
from realtime.local.response_config import ResponseSettings
from realtime.local.speakable import Sentence, SentenceSplitter
from realtime.wire.json_fields import encode_base64
from realtime.wire.openai_messages import (
    ArgumentsDeltaEvent,
    ArgumentsDoneEvent,
    ContentPart,
    ContentPartAddedEvent,
    ContentPartDoneEvent,
    ItemAddedEvent,
    ItemDoneEvent,
    ItemStatus,
    OutputAudioDeltaEvent,
    OutputAudioDoneEvent,
    OutputItemAddedEvent,
    OutputItemDoneEvent,
    OutputTextDeltaEvent,
    OutputTextDoneEvent,
    OutputTranscriptDeltaEvent,
    OutputTranscriptDoneEvent,
    ServerEvent,
)

__all__ = ["CHUNK_MS", "MessageWriter", "OutputContext", "Send", "write_call"]

CHUNK_MS = 200
"""The longest audio delta, so that a barge-in stops soon."""

AHEAD_MS = 1_500
"""A sentence behind so much audio of its message can wait for what other sessions wait for."""

Send = Callable[[ServerEvent], Awaitable[None]]
"""Sends an event to the client, once there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContext:
    """What the items of one response share."""

    response_id: str
    """The response."""
    owner: str
    """The session."""
    settings: ResponseSettings
    """What the response is to be."""
    conversation: LocalConversation | None
    """Where items go; None: nowhere, the response is out of band."""
    synthesizer: Synthesizer
    """Speaks."""
    send: Send
    """Sends events."""
    on_audio: Callable[[], None]
    """Called when the first audio was sent."""


class _Ids(TypedDict):
    response_id: str
    item_id: str
    output_index: int
    content_index: int


class _ItemWriter:
    """The events around one item."""

    def __init__(self, context: OutputContext, item: StoredItem, output_index: int) -> None:
        self._context = context
        self._index = output_index
        self.item = item
        """The item, growing."""

    async def open(self) -> None:
        """Say that the item began."""
        context, send = self._context, self._context.send
        wire = item_to_wire(self.item)
        previous = context.conversation.add(self.item) if context.conversation is not None else None
        await send(
            OutputItemAddedEvent(
                type="response.output_item.added",
                event_id=make_id("event_"),
                response_id=context.response_id,
                output_index=self._index,
                item=wire,
            )
        )
        if context.conversation is not None:
            await send(
                ItemAddedEvent(
                    type="conversation.item.added", event_id=make_id("event_"), previous_item_id=previous, item=wire
                )
            )

    async def end(self, status: ItemStatus) -> None:
        """Say that the item is final."""
        context, send = self._context, self._context.send
        self.item.status = status
        self.item.changed()
        wire = item_to_wire(self.item)
        if context.conversation is not None and context.conversation.find(self.item.id) is not None:
            context.conversation.measure(self.item)
            await send(
                ItemDoneEvent(
                    type="conversation.item.done",
                    event_id=make_id("event_"),
                    previous_item_id=context.conversation.previous_of(self.item.id),
                    item=wire,
                )
            )
        await send(
            OutputItemDoneEvent(
                type="response.output_item.done",
                event_id=make_id("event_"),
                response_id=context.response_id,
                output_index=self._index,
                item=wire,
            )
        )


async def write_call(context: OutputContext, call: ToolCall, output_index: int) -> StoredItem:
    """Write a function call, whole. Returns its item."""
    call_id = call.call_id or make_id("call_")
    item = StoredItem(id=make_id("item_"), kind="function_call", status="in_progress", name=call.name, call_id=call_id)
    writer = _ItemWriter(context, item, output_index)
    await writer.open()
    item.arguments = call.arguments
    await context.send(
        ArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            event_id=make_id("event_"),
            response_id=context.response_id,
            item_id=item.id,
            output_index=output_index,
            call_id=call_id,
            delta=call.arguments,
        )
    )
    await context.send(
        ArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            event_id=make_id("event_"),
            response_id=context.response_id,
            item_id=item.id,
            output_index=output_index,
            call_id=call_id,
            name=call.name,
            arguments=call.arguments,
        )
    )
    await writer.end("completed")
    return item


class MessageWriter:
    """Writes one message of the model's, as text or as speech."""

    def __init__(self, context: OutputContext, output_index: int) -> None:
        """Prepare. Nothing is sent yet."""
        self._context = context
        self._index = output_index
        self._spoken = context.settings.modality == "audio"
        self._part = StoredPart(type="output_audio" if self._spoken else "output_text")
        self.item = StoredItem(id=make_id("item_"), kind="message", role="assistant", status="in_progress")
        """The item, growing."""
        self._writer = _ItemWriter(context, self.item, output_index)
        self._splitter = SentenceSplitter()
        self._encoder = AudioEncoder(context.settings.output_format, context.synthesizer.rate_hz)
        self._sent_bytes = 0
        self._words_to_send: list[TimedWord] = []

    async def open(self) -> None:
        """Say that the message and its part began."""
        await self._writer.open()
        self.item.parts.append(self._part)
        part = ContentPart(type="audio", transcript="") if self._spoken else ContentPart(type="text", text="")
        await self._context.send(
            ContentPartAddedEvent(
                type="response.content_part.added",
                event_id=make_id("event_"),
                response_id=self._context.response_id,
                item_id=self.item.id,
                output_index=self._index,
                content_index=0,
                part=part,
            )
        )

    async def feed(self, text: str) -> None:
        """Write more text; speech follows with every whole sentence."""
        if self._spoken:
            for sentence in self._splitter.feed(text):
                await self._speak(sentence)
            return
        self._part.text += text
        await self._context.send(
            OutputTextDeltaEvent(
                type="response.output_text.delta",
                event_id=make_id("event_"),
                response_id=self._context.response_id,
                item_id=self.item.id,
                output_index=self._index,
                content_index=0,
                delta=text,
            )
        )

    async def flush(self) -> None:
        """No more text comes: speak what is left."""
        if self._spoken:
            for sentence in self._splitter.flush():
                await self._speak(sentence)
            await self._send_audio(self._encoder.flush())

    async def close(self, status: ItemStatus) -> None:
        """Say that the message is over, whole or not."""
        send, ids = self._context.send, self._ids()
        text = self._part.text
        if self._spoken:
            await send(OutputAudioDoneEvent(type="response.output_audio.done", event_id=make_id("event_"), **ids))
            await send(
                OutputTranscriptDoneEvent(
                    type="response.output_audio_transcript.done", event_id=make_id("event_"), transcript=text, **ids
                )
            )
            part = ContentPart(type="audio", transcript=text)
        else:
            await send(
                OutputTextDoneEvent(type="response.output_text.done", event_id=make_id("event_"), text=text, **ids)
            )
            part = ContentPart(type="text", text=text)
        await send(
            ContentPartDoneEvent(type="response.content_part.done", event_id=make_id("event_"), part=part, **ids)
        )
        await self._writer.end(status)

    @property
    def audio_ms(self) -> int:
        """How much audio was sent."""
        return self._part.audio_ms

    def _ids(self) -> _Ids:
        return _Ids(
            response_id=self._context.response_id, item_id=self.item.id, output_index=self._index, content_index=0
        )

    async def _speak(self, sentence: Sentence) -> None:
        """Write one sentence: its text, the time of its words, its audio."""
        context = self._context
        self._part.text += sentence.text
        await context.send(
            OutputTranscriptDeltaEvent(
                type="response.output_audio_transcript.delta",
                event_id=make_id("event_"),
                delta=sentence.text,
                **self._ids(),
            )
        )
        begin = self._part.audio_ms
        words = split_words(sentence.text)
        if not sentence.spoken:
            self._part.words += [(word, begin) for word in words]
            return
        speech = await context.synthesizer.synthesize(
            sentence.spoken, owner=context.owner, speed=context.settings.speed, later=begin >= AHEAD_MS
        )
        timed = [(word, begin + end) for word, end in align_words(words, speech.words)]
        self._part.words += timed or [(word, begin) for word in words]
        if not speech.pcm:
            return
        self._words_to_send += timed
        step = 2 * context.synthesizer.rate_hz * CHUNK_MS // 1000
        for start in range(0, len(speech.pcm), step):
            await self._send_audio(self._encoder.encode(speech.pcm[start : start + step]))

    async def _send_audio(self, data: bytes) -> None:
        if not data:
            return
        context = self._context
        # hot path: five times a second of speech
        event = OutputAudioDeltaEvent(
            type="response.output_audio.delta",
            event_id=make_id("event_"),
            response_id=context.response_id,
            item_id=self.item.id,
            output_index=self._index,
            content_index=0,
            delta=encode_base64(data),
        )
        if self._words_to_send:
            event["words"] = self._words_to_send
            self._words_to_send = []
        await context.send(event)
        if not self._sent_bytes:
            context.on_audio()
        self._sent_bytes += len(data)
        self._part.audio_ms = duration_ms(self._sent_bytes, context.settings.output_format)
        await asyncio.sleep(0)  # a barge-in is heard between two chunks
