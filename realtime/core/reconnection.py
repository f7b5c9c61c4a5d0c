"""What a lost and a new connection mean (behaviour.md L1, L2).

Owns: what is settled when a connection drops, and what a new one is told: the configuration, the conversation again, and
what had not arrived. Driven by `SessionMachine`. Never connects.
"""

from __future__ import annotations

from dataclasses import replace

from realtime.chat.messages import ChatMessage
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CommitAudio, ConfigureSession, CreateItem, LinkCommand
from realtime.core.events import ConnectionDropped, Reconnected
from realtime.core.parts import Parts
from realtime.core.places import Place
from realtime.core.responding import Responding
from realtime.core.seeding import leading_instructions, plan_seeds
from realtime.core.settings import Agent, ToolSpec
from realtime.core.turn import Wish

__all__ = ["Reconnection"]


class Reconnection:
    """The connections of one session, one after the other."""

    def __init__(self, parts: Parts, responding: Responding) -> None:
        """No connection yet."""
        self._parts = parts
        self._responding = responding
        self._lost_at: float | None = None
        self._lost_commands: list[LinkCommand] = []
        self._commit_again = False
        self._was_connected = False
        self.count = 0
        """Connections after the first."""

    def lost(self, reason: str, *, will_retry: bool, silent_seconds: float | None = None) -> None:
        """The connection is gone: a running reply is settled as interrupted, what was not understood will be sent again."""
        parts = self._parts
        parts.effects.emit(ConnectionDropped(reason=reason, will_retry=will_retry))
        if self._lost_at is None:
            self._lost_at = parts.effects.now
        is_manual = parts.settings.turn_detection.mode == "manual"
        is_owed = (
            self._responding.basis is not None
            and parts.settings.turn_detection.create_response
            and not is_manual  # there the application asks
            and parts.capabilities.supports_audio_input  # else the call goes on, and is answered, without us
        )
        parts.barge_in.resume()
        is_unanswered = False
        for reply in parts.replies.open_replies():
            if not reply.response_over:
                self._responding.cut(reply, cause="connection")
                is_unanswered = is_unanswered or not (
                    reply.calls or any(item.place.message for item in reply.items.values())
                )
        self._responding.abandon()
        parts.slot.link_lost()
        said_again = parts.speech.link_lost()
        self._commit_again = self._commit_again or (said_again and is_manual)
        if said_again and not is_manual:
            parts.slot.forget_wish()  # the turn is heard anew, and will be answered
        elif (is_owed or is_unanswered) and parts.slot.waiting is None:
            parts.slot.wish(Wish())  # the server had taken the turn, and nothing was heard of its answer
        self._lost_commands = [*self._lost_commands, *parts.outbox.close()]
        parts.input_audio.restart(silent_seconds)
        parts.ledger.clear()

    def restored(self, *, state_restored: bool, capabilities: ModelCapabilities | None) -> None:
        """A connection is ready."""
        parts = self._parts
        self._responding.is_switching = False
        if capabilities is not None:
            parts.use(capabilities)
            parts.trimming.begin_anew()
        if state_restored:
            self._remember_at_provider()
            earlier, is_whole = self._seeds(since=parts.saved_at)
            waiting: list[LinkCommand] = [each for each in self._lost_commands if isinstance(each, CreateItem)]
        else:
            parts.trimming.apply()
            earlier, is_whole = self._seeds(since=0)
            waiting = [*parts.outgoing.resend(takes_pictures=parts.capabilities.supports_image_input)]
        first: list[LinkCommand] = [self.configuration(earlier_items=len(earlier)), *earlier, *waiting]
        parts.saved_at = None
        self._lost_commands = []
        parts.outbox.open(first, discard_waiting=not state_restored)
        if self._commit_again:
            self._commit_again = False
            parts.outbox.put(CommitAudio(command_id=parts.effects.new_id()))
        if self._was_connected:
            self.count += 1
            gap_ms = 0 if self._lost_at is None else round((parts.effects.now - self._lost_at) * 1000)
            if not state_restored:
                is_whole = is_whole and len(parts.context) == parts.history.visible_count
            parts.effects.emit(Reconnected(state_restored=is_whole, gap_ms=gap_ms))
        self._was_connected = True
        self._lost_at = None

    def _seeds(self, *, since: int | None) -> tuple[list[CreateItem], bool]:
        """The conversation as it is now: what is visible, and what waits behind a turn that is not settled.

        Args:
            since: Only what came after this mark of the history; 0: all of it, None: nothing.
        """
        parts = self._parts
        if since is None:
            return [], True
        told: list[tuple[ChatMessage, Place | None]] = []
        for entry in parts.lease.entries():
            place = parts.history.place_of(entry)
            if since == 0 or (place is not None and place.number > since):
                told.append((entry.message, place))
        for place in parts.history.waiting():
            message = place.message or parts.replies.preview(place)
            if message is not None and place.number > since:
                told.append((message, place))
        seeds = plan_seeds(
            [message for message, _ in told],
            parts.published,
            item_ids_of=lambda index, count: self._item_ids(*told[index], count),
            make_id=parts.effects.new_id,
        )
        for command in seeds.commands:
            for item_id in command.item_ids:
                parts.ledger.add(item_id, is_restored=True)
        parts.tools.note_stand_ins(seeds.stand_ins)
        return list(seeds.commands), seeds.is_whole

    def _remember_at_provider(self) -> None:
        """The provider has what it had: all that is visible."""
        parts = self._parts
        for entry in parts.lease.entries():
            place = parts.history.place_of(entry)
            for item_id in (entry.message.message_id,) if place is None else place.item_ids:
                parts.ledger.add(item_id)

    def _item_ids(self, message: ChatMessage, place: Place | None, count: int) -> tuple[str, ...]:
        """The ids that a message's items had, as far as they may be used again; a digest has its message's."""
        longest = self._parts.capabilities.max_item_id_length
        had = (message.message_id,) if place is None else place.item_ids
        known = tuple(item_id for item_id in had if 0 < len(item_id) <= longest)[:count]
        item_ids = known + tuple(self._parts.effects.new_id() for _ in range(count - len(known)))
        if place is not None and item_ids != place.item_ids:
            self._parts.history.rename(place, item_ids)
        return item_ids

    def configuration(
        self, *, earlier_items: int = 0, taking: tuple[Agent, tuple[ToolSpec, ...]] | None = None
    ) -> ConfigureSession:
        """What the provider is told of the agent: its instructions and the conversation's leading ones, tools, turns.

        Args:
            earlier_items: How many items of an earlier conversation follow.
            taking: The agent that is about to take over, and its tools; None: the one that speaks.
        """
        parts = self._parts
        agent, tools = taking or (parts.agent, parts.tool_specs)
        settings = parts.settings
        leading = leading_instructions(parts.context.messages())
        return ConfigureSession(
            command_id=parts.effects.new_id(),
            instructions="\n\n".join(filter(None, (agent.instructions, *leading))),
            tools=tools,
            voice=agent.voice,
            turn_detection=replace(settings.turn_detection, create_response=False, interrupt_response=False)
            if parts.barge_in.is_ours
            else settings.turn_detection,
            transcription=None if settings.transcription == "off" else settings.transcription,
            output=settings.output,
            earlier_items=earlier_items,
        )
