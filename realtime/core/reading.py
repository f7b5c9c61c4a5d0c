"""What can be read of a session's machine at any time.

Owns: `MachineReading`, the reading half of `SessionMachine`. Driven by whoever holds the machine. Never changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime import pcm
from realtime.chat.conversation import TokenUsage
from realtime.chat.messages import ChatMessage
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import ConfigureSession
from realtime.core.effects import Effects
from realtime.core.parts import Parts
from realtime.core.playout import heard_text
from realtime.core.reconnection import Reconnection
from realtime.core.settings import Agent, ToolSpec
from realtime.core.statistics import MachineStatistics, collect

__all__ = ["MachineReading"]


class MachineReading:
    """The reading half of `SessionMachine`."""

    _parts: Parts
    _effects: Effects
    _reconnection: Reconnection
    _is_closed: bool
    capabilities: ModelCapabilities
    """What the model can do, with the sample rates of the session."""

    def configuration(self, agent: Agent | None = None, tools: Sequence[ToolSpec] = ()) -> ConfigureSession:
        """What a new connection is told first, as things are now.

        Args:
            agent: Who is about to take over; None: who speaks now.
            tools: That agent's.
        """
        if agent is None:
            return self._reconnection.configuration()
        earlier = len(self._parts.context)
        return self._reconnection.configuration(earlier_items=earlier, taking=(agent, tuple(tools)))

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended."""
        return self._is_closed

    @property
    def is_connected(self) -> bool:
        """Whether a connection takes commands."""
        return self._parts.outbox.is_open

    @property
    def control_waiting(self) -> int:
        """Control commands that wait for the socket, but for those that tell a new connection where things stand."""
        return self._parts.outbox.control_depth

    @property
    def has_link_command(self) -> bool:
        """Whether `next_link_command` may have something."""
        return self._parts.outbox.has_waiting()

    def has_output(self) -> bool:  # hot path: 50 times a second
        """Whether `next_command` or `next_event` has something."""
        effects = self._effects
        return bool(effects.events or effects.local)

    @property
    def is_busy(self) -> bool:
        """Whether a reply is being made, played or waited for."""
        return (
            self._parts.slot.is_busy or self._parts.slot.waiting is not None or bool(self._parts.replies.open_replies())
        )

    @property
    def agent(self) -> Agent:
        """Who speaks."""
        return self._parts.agent

    @property
    def published(self) -> ModelCapabilities:
        """What the model's provider publishes, with the model's own sample rates."""
        return self._parts.published

    @property
    def revision(self) -> int:
        """Rises with every change of the history."""
        return self._parts.history.revision

    def messages(self) -> list[ChatMessage]:
        """The history: a snapshot."""
        return self._parts.history.messages()

    def new_messages(self) -> list[ChatMessage]:
        """The history without what was seeded: a snapshot."""
        return self._parts.history.new_messages()

    @property
    def pending(self) -> tuple[ChatMessage, ...]:
        """Turns that are still being spoken, transcribed or played, as far as they are."""
        found: list[ChatMessage] = []
        for place in self._parts.history.waiting():
            message = place.message or self._parts.speech.preview(place) or self._parts.replies.preview(place)
            if message is not None:
                found.append(message)
        return (*found, *self._parts.outgoing.pending(), *self._parts.speech.unplaced())

    def heard_so_far(self) -> dict[str, str]:
        """What has been heard of each spoken message of the replies that are not over, by message id (behaviour.md P1)."""
        rate = self._parts.capabilities.output_rate_hz
        heard: dict[str, str] = {}
        for reply in self._parts.replies.open_replies():
            for item in reply.items.values():
                if item.samples:
                    begun_ms = pcm.samples_to_ms(item.start, rate)
                    heard[item.item_id], _ = heard_text(
                        item.text,
                        heard_ms=reply.played_ms - begun_ms,
                        total_ms=pcm.samples_to_ms(item.samples, rate),
                        words=item.words,
                    )
        return heard

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all responses."""
        return self._parts.limits.usage

    @property
    def context_window_used(self) -> float | None:
        """The fraction of the model's context window in use, by the last response; None until known."""
        return self._parts.limits.window_fraction(self._parts.capabilities)

    def statistics(self) -> MachineStatistics:
        """Every figure that the machine counts."""
        return collect(self._parts, reconnects=self._reconnection.count)
