"""What the model says: its replies, from the first delta to what was heard of them (behaviour.md P0–P3).

Owns: the replies that are being made or played, their items, texts and positions, and how each becomes a message.
Driven by `SessionMachine`. Never plays a sound; what to play are commands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal

from realtime import pcm
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import DeleteItem, EndReply, PlayAudio, ResumeReply, StopReply, TruncateItem
from realtime.core.effects import Effects
from realtime.core.events import AudioReceived, ReplyInterrupted, ReplyStarted, TranscriptUpdated
from realtime.core.history import History
from realtime.core.input_audio import AudioTape
from realtime.core.keeping import Keeping
from realtime.core.ledger import Ledger
from realtime.core.model_events import (
    OutputAudio,
    OutputItemDone,
    OutputTextDone,
    OutputTextUpdated,
    OutputWords,
    ResponseStatus,
    ThinkingUpdated,
    TokenUsage,
)
from realtime.core.places import Place
from realtime.core.playout import heard_text
from realtime.core.reply import Reply, ReplyItem

__all__ = ["InterruptionCause", "Replies"]

InterruptionCause = Literal["barge_in", "interrupt", "connection", "close", "hand_off", "provider"]


class Replies:
    """The replies that are not over yet, oldest first."""

    def __init__(
        self,
        *,
        capabilities: ModelCapabilities,
        history: History,
        ledger: Ledger,
        keeping: Keeping,
        effects: Effects,
        can_hold: bool = False,
    ) -> None:
        """Start with none.

        Args:
            capabilities: What the model can do.
            history: Where messages stand.
            ledger: What the provider has.
            keeping: Where recordings are counted.
            effects: Where events and commands go.
            can_hold: Whether replies may be held and go on (their unheard audio is then kept).
        """
        self._can_hold = can_hold
        self._capabilities = capabilities
        self._rate_hz = capabilities.output_rate_hz
        self._history = history
        self._ledger = ledger
        self._keeping = keeping
        self._effects = effects
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self.late_deltas = 0
        """Deltas that belonged to a reply that is cut or unknown."""

    def use(self, capabilities: ModelCapabilities) -> None:
        """Another model answers from now on."""
        self._capabilities = capabilities
        self._rate_hz = capabilities.output_rate_hz

    def find(self, reply_id: str) -> Reply | None:
        """A reply that is not over."""
        return self._replies.get(reply_id)

    def open_replies(self) -> list[Reply]:
        """All that are not over, oldest first."""
        return list(self._replies.values())

    # -- what the model reports -------------------------------------------------------------------------------------

    def start(self, reply_id: str, *, agent_id: str, basis: float | None) -> Reply:
        """The model began a response."""
        reply = self._replies.get(reply_id)
        if reply is None:
            reply = self._replies[reply_id] = Reply(reply_id, agent_id=agent_id, basis=basis)
            reply.started_at = self._effects.now
            reply.unheard = AudioTape() if self._can_hold else None
            self._effects.emit(ReplyStarted(reply_id=reply_id))
        return reply

    def start_item(self, reply: Reply, item_id: str) -> ReplyItem:
        """A response began a message."""
        item = reply.items.get(item_id)
        if item is None:
            place = self._history.reserve(item_id, is_output=True)
            item = reply.items[item_id] = ReplyItem(item_id, place, start=reply.samples)
        return item

    def _item_for(self, response_id: str, item_id: str) -> tuple[Reply, ReplyItem] | None:
        reply = self._replies.get(response_id)
        if reply is None or reply.is_cut:
            self.late_deltas += 1
            return None
        return reply, self.start_item(reply, item_id)

    def receive_audio(self, event: OutputAudio) -> None:  # hot path: every chunk of a reply
        """Audio of a reply arrived."""
        found = self._item_for(event.response_id, event.item_id)
        if found is None or not event.pcm:
            return
        reply, item = found
        samples = len(event.pcm) // 2
        if item.samples == 0:
            item.start = reply.samples
            item.content_index = event.content_index
        item.samples += samples
        item.spoken = True
        reply.samples += samples
        if reply.first_audio_at is None:
            reply.first_audio_at = self._effects.now
        if self._keeping.keeps_output_audio:
            if item.tape is None:
                item.tape = AudioTape()
                self._keeping.audio.watch(item.tape, is_input=False)
            item.tape.append(event.pcm)
            self._keeping.bound_audio()
        self._effects.emit(AudioReceived(reply_id=reply.reply_id, pcm=event.pcm, rate_hz=self._rate_hz))
        if reply.unheard is not None:
            reply.unheard.append(event.pcm)
        if not reply.is_held:
            self._effects.do(PlayAudio(command_id=self._effects.new_id(), reply_id=reply.reply_id, pcm=event.pcm))

    def receive_text(self, event: OutputTextUpdated | OutputTextDone) -> None:
        """Text of a reply grew, or one part of it is final."""
        found = self._item_for(event.response_id, event.item_id)
        if found is None:
            return
        _, item = found
        item.spoken = item.spoken or event.spoken
        delta = ""
        if isinstance(event, OutputTextDone):
            item.fix(event.content_index, event.text)
        else:
            delta = event.delta
            item.grow(event.content_index, delta)
        self._effects.emit(
            TranscriptUpdated(
                message_id=item.item_id,
                role=ChatRole.ASSISTANT,
                delta=delta,
                text=item.text,
                final=isinstance(event, OutputTextDone),
            )
        )

    def receive_words(self, event: OutputWords) -> None:
        """The times of words became known."""
        found = self._item_for(event.response_id, event.item_id)
        if found is not None:
            found[1].words.extend(event.words)

    def receive_thinking(self, event: ThinkingUpdated) -> None:
        """The model thought aloud."""
        found = self._item_for(event.response_id, event.item_id)
        if found is not None:
            found[1].thinking += event.delta

    def finish_item(self, event: OutputItemDone) -> None:
        """An item is complete."""
        reply = self._replies.get(event.response_id)
        item = reply.items.get(event.item_id) if reply is not None else None
        if item is not None:
            item.done = True
            item.provider_data.update(event.provider_data)

    def finish_response(self, reply: Reply, *, status: ResponseStatus, usage: TokenUsage | None) -> None:
        """The response is over; its audio may still be playing."""
        reply.response_over = True
        reply.status = status
        reply.usage = usage
        if reply.samples and not reply.is_cut and not reply.played_out and not reply.is_held:
            self._effects.do(EndReply(command_id=self._effects.new_id(), reply_id=reply.reply_id))

    # -- what was heard ---------------------------------------------------------------------------------------------

    def receive_played(self, reply_id: str, played_ms: int, *, finished: bool) -> Reply | None:
        """The listener has heard a reply up to a position.

        Returns:
            The reply, if it is not over.
        """
        reply = self._replies.get(reply_id)
        if reply is None or reply.is_cut:
            return None
        if reply.first_played_at is None and played_ms > 0:
            reply.first_played_at = self._effects.now
        reply.played_ms = max(reply.played_ms, min(played_ms, pcm.samples_to_ms(reply.samples, self._rate_hz)))
        if reply.unheard is not None:
            reply.unheard.take_until(pcm.ms_to_samples(reply.played_ms, self._rate_hz))
        if finished and reply.response_over:
            reply.played_out = True
        return reply

    def hold(self, reply: Reply) -> None:
        """Silence a reply; what it has not said is kept."""
        if reply.samples:
            self._effects.do(StopReply(command_id=self._effects.new_id(), reply_id=reply.reply_id))
        reply.is_held = True

    def go_on(self, reply: Reply) -> None:
        """A held reply goes on where it stopped."""
        reply.is_held = False
        unheard = reply.unheard.copy_all() if reply.unheard is not None else b""
        if unheard:
            self._effects.do(ResumeReply(command_id=self._effects.new_id(), reply_id=reply.reply_id, pcm=unheard))
        if reply.response_over and reply.samples:
            self._effects.do(EndReply(command_id=self._effects.new_id(), reply_id=reply.reply_id))

    def cut(self, reply: Reply, *, cause: InterruptionCause, played_ms: int | None = None) -> None:
        """Stop a reply: what was heard is what it said (P1), and the provider is told (P2)."""
        if reply.is_cut or reply.is_over:
            return
        received_ms = pcm.samples_to_ms(reply.samples, self._rate_hz)
        heard_ms = min(reply.played_ms if played_ms is None else max(0, played_ms), received_ms)
        reply.played_ms = heard_ms
        reply.is_cut = True
        if reply.samples and not reply.is_held:
            self._effects.do(StopReply(command_id=self._effects.new_id(), reply_id=reply.reply_id))
        heard: list[str] = []
        unheard: list[str] = []
        for item in reply.items.values():
            said, left = self._cut_item(reply, item, heard_ms)
            heard.append(said)
            unheard.append(left)
        self._effects.emit(
            ReplyInterrupted(
                reply_id=reply.reply_id,
                cause=cause,
                heard_ms=heard_ms,
                heard=" ".join(filter(None, heard)),
                unheard=" ".join(filter(None, unheard)),
            )
        )

    def _cut_item(self, reply: Reply, item: ReplyItem, reply_heard_ms: int) -> tuple[str, str]:
        text = item.text
        if text and not item.spoken and not item.samples:
            self._settle_item(reply, item, text, interrupted=not item.done)
            return text, ""
        received_ms = pcm.samples_to_ms(item.samples, self._rate_hz)
        start_ms = pcm.samples_to_ms(item.start, self._rate_hz)
        heard_ms = min(max(0, reply_heard_ms - start_ms), received_ms)
        if heard_ms >= received_ms > 0 and item.done:
            self._settle_item(reply, item, text, interrupted=False)
            return text, ""
        said, left = heard_text(text, heard_ms=heard_ms, total_ms=received_ms, words=item.words)
        self._settle_item(reply, item, said, interrupted=True, heard_ms=heard_ms, unheard=left)
        self._tell_cut(item, said, heard_ms)
        return said, left

    def _tell_cut(self, item: ReplyItem, said: str, heard_ms: int) -> None:
        """P2: truncate what was heard in part, delete what was not heard; nothing for an item that it does not know."""
        if not self._ledger.is_spoken(item.item_id):
            return
        command_id = self._effects.new_id()
        if not said and self._capabilities.supports_item_deletion:
            self._effects.send(DeleteItem(command_id=command_id, item_id=item.item_id))
            self._ledger.delete(item.item_id)
        elif self._capabilities.supports_truncation:
            self._effects.send(
                TruncateItem(
                    command_id=command_id,
                    item_id=item.item_id,
                    content_index=item.content_index,
                    audio_end_ms=heard_ms,
                )
            )

    # -- becoming messages ------------------------------------------------------------------------------------------

    def settle(self, reply: Reply) -> None:
        """A reply is over: every message that is not settled yet says all of its text."""
        if reply.is_settled:
            return
        reply.is_settled = True
        for item in reply.items.values():
            broke_off = not item.done and reply.status != "completed"
            heard_ms = pcm.samples_to_ms(item.samples, self._rate_hz) if broke_off and item.samples else None
            self._settle_item(reply, item, item.text, interrupted=broke_off, heard_ms=heard_ms)
        for place in reply.calls:
            self._history.settle(place, None)  # a call that was never completed; complete ones are settled already
        self._replies.pop(reply.reply_id, None)

    def _settle_item(
        self,
        reply: Reply,
        item: ReplyItem,
        text: str,
        *,
        interrupted: bool,
        heard_ms: int | None = None,
        unheard: str = "",
    ) -> None:
        tape, item.tape = item.tape, None
        audio: AudioContent | None = None
        samples = 0
        if tape is not None:
            self._keeping.audio.leave(tape)
            skipped = tape.start
            until = tape.end if heard_ms is None else pcm.ms_to_samples(heard_ms, self._rate_hz)
            data = tape.take_until(until) if until > skipped else b""
            samples = len(data) // 2
            if samples and text:
                audio = AudioContent.from_wav(pcm.wav_bytes(data, self._rate_hz))
        if not text.strip() and not item.thinking:
            self._history.settle(item.place, None)
            return
        if item.place.message is not None:
            return
        self._history.settle(
            item.place,
            self._message(reply, item, text, audio=audio, interrupted=interrupted, heard_ms=heard_ms, unheard=unheard),
        )
        if audio is not None:
            self._keeping.add_audio(item.place, samples, is_input=False)

    def _message(
        self,
        reply: Reply,
        item: ReplyItem,
        text: str,
        *,
        audio: AudioContent | None = None,
        interrupted: bool = False,
        heard_ms: int | None = None,
        unheard: str = "",
    ) -> ChatMessage:
        data: Mapping[str, object] = item.provider_data
        return ChatMessage(
            ChatRole.ASSISTANT,
            text,
            item.item_id,
            agent_id=reply.agent_id,
            created_at=self._effects.wall,
            audio=audio,
            thinking=item.thinking,
            interrupted=interrupted,
            heard_ms=heard_ms if interrupted else None,
            unheard=unheard,
            provider_data=data,
        )

    def preview(self, place: Place) -> ChatMessage | None:
        """What a place of a reply says so far (for `pending`)."""
        for reply in self._replies.values():
            for item in reply.items.values():
                if item.place is place and item.text:
                    return self._message(reply, item, item.text)
        return None
