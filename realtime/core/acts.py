"""What the application may do with a session's machine: say, show, commit, ask, interrupt, look, hand over.

Owns: `MachineActs`, the acting part of `SessionMachine`. Driven by `RealtimeSession`, through the driver. Each act takes
`now` and raises `SessionClosed` after the end; what follows from it is drained like everything else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from realtime.chat.messages import AgentHandoff, AudioContent, ImageContent
from realtime.core.commands import ClearAudio
from realtime.core.events import HandedOff
from realtime.core.outgoing import as_messages
from realtime.core.reading import MachineReading
from realtime.core.responding import Responding
from realtime.core.settings import Agent, ToolSpec
from realtime.core.showing import Showing
from realtime.core.turn import Wish
from realtime.errors import SessionClosed

__all__ = ["MachineActs"]


class MachineActs(MachineReading):
    """The acting part of `SessionMachine`."""

    _responding: Responding
    _showing: Showing

    @abstractmethod
    def _finish(self) -> None:
        """After every feed and act: show what became final, keep within bounds, ask for what is wanted."""

    def _begin(self, now: float) -> None:
        if self._is_closed:
            raise SessionClosed("the session has ended")
        self._parts.effects.now = now

    def send(
        self,
        content: Sequence[str | ImageContent | AudioContent],
        *,
        respond: bool | None,
        source: str = "",
        now: float,
    ) -> list[str]:
        """Send text, pictures and recordings as the user's; see `RealtimeSession.send`.

        Args:
            content: What to send.
            respond: Whether a response is wanted; None: if there is text.
            source: The camera or screen that a picture alone is a frame of (H8).
            now: The present moment.

        Returns:
            The ids of the messages that they become.
        """
        self._begin(now)
        messages = as_messages(
            content, make_id=self._parts.effects.new_id, wall=self._parts.effects.wall, source=source
        )
        for message in messages:
            allowed = self._showing.admit(message)
            if allowed is not None:
                self._parts.outgoing.send(allowed)
        has_text = any(message.content for message in messages)
        if has_text or respond:
            self._parts.tools.new_turn()
        if has_text if respond is None else respond:
            self._responding.basis = now
            self._parts.slot.wish(Wish())
        self._finish()
        return [message.message_id for message in messages]

    def commit_audio(self, *, now: float) -> bool:
        """Make the audio so far a turn; False if there is none (T6)."""
        self._begin(now)
        if self._parts.input_audio.since_commit == 0:
            return False
        self._responding.commit_audio()
        return True

    def clear_audio(self, *, now: float) -> None:
        """Throw the uncommitted audio away."""
        self._begin(now)
        self._parts.outbox.put(ClearAudio(command_id=self._parts.effects.new_id()))

    def create_response(self, *, instructions: str | None = None, now: float) -> None:
        """Ask for a response; while one is running the wish waits, and several fold into one (T1)."""
        self._begin(now)
        if self._responding.basis is None:
            self._responding.basis = now
        self._parts.slot.wish(Wish(instructions=instructions))
        self._finish()

    def interrupt(self, *, played_ms: int | None = None, now: float) -> bool:
        """Stop the reply; False if there is none."""
        self._begin(now)
        was_speaking = self._responding.interrupt(played_ms)
        self._finish()
        return was_speaking

    def look(self, source: str | None = None, *, now: float) -> None:
        """The next frame is wanted, whatever the schedule."""
        self._begin(now)
        self._parts.sampler.look(source)

    def hand_off(self, agent: Agent, tools: Sequence[ToolSpec], *, reason: str = "", now: float) -> AgentHandoff:
        """Another agent takes the same conversation; one with another model, once the running response is over.

        Args:
            agent: Who speaks from now on. With a model of its own the link is made anew; None: the session's.
            tools: The agent's tools.
            reason: Why, for the record.
            now: The present moment.
        """
        self._begin(now)
        handoff = AgentHandoff(agent.id, self._parts.agent.id, reason, self._parts.effects.new_id())
        self._parts.lease.add_handoff(handoff)
        is_elsewhere = agent.model is not self._parts.agent.model or self._responding.wants_switch
        self._parts.agent, self._parts.tool_specs = agent, tuple(tools)
        self._parts.tools.use(agent.id, tools)
        if is_elsewhere:
            self._responding.switch()
        elif self._parts.outbox.is_open and not self._responding.is_switching:
            self._parts.outbox.put(self._reconnection.configuration())
        self._parts.effects.emit(HandedOff(handoff=handoff))
        self._finish()
        return handoff
