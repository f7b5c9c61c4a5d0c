"""What waits for the socket, in three lanes.

Owns: the order in which link commands leave: control before audio before pictures; newest picture of each source only.
Driven by `SessionMachine.next_link_command`, when the socket is writable. Never sends.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace

from realtime.core.commands import (
    AppendAudio,
    ClearAudio,
    CommitAudio,
    CreateItem,
    LinkCommand,
)
from realtime.core.input_audio import InputAudio

__all__ = ["Outbox"]

_REMEMBERED = 256
"""Commands sent lately, so that a provider's error finds the one that caused it (behaviour.md L6)."""


class Outbox:
    """Three lanes and the commands under way."""

    def __init__(self, audio: InputAudio, *, make_id: Callable[[], str]) -> None:
        """Start closed: nothing leaves before `open`."""
        self.control: deque[LinkCommand] = deque()
        """What waits ahead of audio. For looking at."""
        self._audio = audio
        self._pictures: OrderedDict[str, CreateItem] = OrderedDict()
        self._make_id = make_id
        self.is_open = False
        """Whether a connection takes commands."""
        self._first = 0
        self._under_way: OrderedDict[str, LinkCommand] = OrderedDict()
        self._sent: OrderedDict[str, LinkCommand] = OrderedDict()

    # -- in ---------------------------------------------------------------------------------------------------------

    def put(self, command: LinkCommand) -> None:
        """Queue a command in its lane. A picture goes through `put_picture`, audio through `InputAudio`."""
        if isinstance(command, (CommitAudio, ClearAudio)):
            self._audio.mark(command)
        else:
            self.control.append(command)

    def put_picture(self, command: CreateItem) -> CreateItem | None:
        """Queue a sampled frame.

        Returns:
            The waiting frame of the same source that it replaces, if there was one.
        """
        replaced = self._pictures.pop(command.source, None)
        self._pictures[command.source] = command
        return replaced

    def open(self, first: list[LinkCommand], *, discard_waiting: bool) -> None:
        """A connection is up.

        Args:
            first: The configuration and the conversation; they leave before everything that waits.
            discard_waiting: The waiting control commands changed a conversation that `first` tells as it is now.
        """
        if discard_waiting:
            self.control.clear()
        self.control.extendleft(reversed(first))
        self._first = len(first)
        self.is_open = True

    def close(self) -> list[LinkCommand]:
        """The connection is gone.

        Returns:
            The control commands and pictures that were under way or waiting, oldest first. The caller decides which
            of them still mean something; audio is `InputAudio.restart`'s.
        """
        lost: list[LinkCommand] = [*self._under_way.values(), *self.control]
        lost += self._pictures.values()
        self._under_way.clear()
        self._sent.clear()
        self.control.clear()
        self._pictures.clear()
        self.is_open = False
        self._first = 0
        return lost

    def drop_picture(self, command: CreateItem) -> None:
        """Let one waiting frame go."""
        self._pictures.pop(command.source, None)

    def oldest_picture(self) -> CreateItem | None:
        """The frame that has waited longest, if one waits."""
        return next(iter(self._pictures.values()), None)

    # -- out --------------------------------------------------------------------------------------------------------

    def take(self) -> LinkCommand | None:  # hot path: every wire message
        """The next command to send, or None."""
        if not self.is_open:
            return None
        command: LinkCommand | None = None
        if self.control:
            command = self.control.popleft()
            self._first = max(0, self._first - 1)
        elif self._audio.has_waiting():
            command = self._audio.take(self._make_id())
        elif self._pictures:
            _, command = self._pictures.popitem(last=False)
        if command is not None and not isinstance(command, AppendAudio):
            self._under_way[command.command_id] = command
        return command

    def peek_picture(self) -> CreateItem | None:
        """The picture that `take` would give next if the other lanes are empty."""
        if self.control or self._audio.has_waiting() or not self._pictures:
            return None
        return next(iter(self._pictures.values()))

    def done(self, command_id: str) -> LinkCommand | None:
        """A command was written to the socket.

        Returns:
            The command, or None if it is not known (its connection is gone, or it was audio, which is `InputAudio`'s).
        """
        command = self._under_way.pop(command_id, None)
        if command is not None:
            self._sent[command_id] = _without_media(command)
            while len(self._sent) > _REMEMBERED:
                self._sent.popitem(last=False)
        return command

    def failed(self, command_id: str) -> LinkCommand | None:
        """A command could not be written, or the provider refused it; forget it and return it."""
        return self._under_way.pop(command_id, None) or self._sent.pop(command_id, None)

    # -- read -------------------------------------------------------------------------------------------------------

    def has_waiting(self) -> bool:
        """Whether `take` would give something."""
        return self.is_open and bool(self.control or self._audio.has_waiting() or self._pictures)

    @property
    def control_depth(self) -> int:
        """Control commands that wait, but for those that a new connection begins with."""
        return len(self.control) - self._first

    @property
    def picture_depth(self) -> int:
        """Sampled frames that wait."""
        return len(self._pictures)

    @property
    def audio_bytes(self) -> int:
        """Bytes of audio that waits, and of audio kept for a replay."""
        return self._audio.waiting_bytes + self._audio.held_bytes


def _without_media(command: LinkCommand) -> LinkCommand:
    """What is remembered of a command that was sent: never its pictures or recordings (behaviour.md R3)."""
    if not isinstance(command, CreateItem):
        return command
    return replace(command, message=replace(command.message, images=(), audio=None))
