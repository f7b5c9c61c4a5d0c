"""What becomes of a session's commands and of its connection: written, refused, lost, made again.

Owns: `MachineLinkFeeds`, the part of `SessionMachine` that the link feeds. Driven by `pipelines/link.py`, through the driver. Each
feed takes `now`; after the end it does nothing.
"""

from __future__ import annotations

from abc import abstractmethod

from realtime.core.acts import MachineActs
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CommitAudio, CreateItem, CreateResponse
from realtime.core.events import ErrorReported
from realtime.errors import RealtimeError

__all__ = ["MachineLinkFeeds"]


class MachineLinkFeeds(MachineActs):
    """The part of `SessionMachine` that the link feeds."""

    @abstractmethod
    def _close(self, error: RealtimeError | None) -> None:
        """Record everything with what it has and end."""

    def receive_command_done(self, command_id: str, *, now: float) -> None:  # hot path: every wire message
        """A link command was written to the socket. Audio need not be told of: it counts as sent when it was taken."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        command = self._parts.outbox.done(command_id)
        if isinstance(command, CreateItem):
            self._parts.limits.images += len(command.message.images)
            if command.item_ids[0] in self._parts.outgoing:
                self._parts.outgoing.sent(command.item_ids[0])
            if not self._parts.capabilities.reports_item_order:
                for item_id in command.item_ids:
                    self._parts.ledger.add(item_id)
            self._finish()
        elif isinstance(command, CommitAudio):
            self._finish()  # what answers the turn may be asked for now

    def receive_command_failed(self, command_id: str, error: BaseException, *, now: float) -> None:
        """A link command could not be sent (too large, or not in this protocol); the connection stays."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        command = self._parts.outbox.failed(command_id)
        if isinstance(command, CreateItem):
            self._parts.outgoing.reject(command, str(error))
        if isinstance(command, CreateResponse):
            self._responding.refused(command, "")
        self._parts.effects.emit(ErrorReported(error=error, where="link"))
        self._finish()

    def receive_link_lost(
        self,
        reason: str,
        *,
        will_retry: bool,
        error: RealtimeError | None = None,
        silent_seconds: float | None = None,
        now: float,
    ) -> None:
        """The connection is gone.

        Args:
            reason: Why, in words.
            will_retry: Another one will be made; else the session ends.
            error: What it ends with.
            silent_seconds: How long before nothing had come from the provider: what was sent meanwhile may be lost, and
                is sent again (L2). None: unknown.
            now: The present moment.
        """
        if self._is_closed:
            return
        self._parts.effects.now = now
        self._reconnection.lost(reason, will_retry=will_retry, silent_seconds=silent_seconds)
        if will_retry:
            self._finish()
        else:
            self._close(error)

    def receive_link_restored(
        self, *, state_restored: bool = False, capabilities: ModelCapabilities | None = None, now: float
    ) -> None:
        """A connection is ready: it is configured and, unless the provider resumed, told the conversation again.

        Args:
            state_restored: The provider took the conversation up by itself.
            capabilities: Another model's, after a hand-off to one.
            now: The present moment.
        """
        if self._is_closed:
            return
        self._parts.effects.now = now
        self._reconnection.restored(state_restored=state_restored, capabilities=capabilities)
        self.capabilities = self._parts.capabilities
        self._finish()
