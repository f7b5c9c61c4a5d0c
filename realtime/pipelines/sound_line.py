"""The user's sound on its short way: from the machine to a socket that takes it at once, without a task in between.

Owns: `SoundLine`, one connection's. Driven by the driver, 50 times a second, while the link's writer has nothing to send.
What it cannot send as usual is the writer's: it never waits, never reconnects and raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime.core.commands import AppendAudio
from realtime.errors import ModelError, UserError
from realtime.pipelines.connection import Connection
from realtime.transports.websocket import PromptTransport

__all__ = ["SoundLine"]


class SoundLine:
    """Sends sound over one connection, in the order in which it is given.

    What it is sent by stands open, for who sends it fifty times a second; what goes wrong is told by `failed`.
    """

    def __init__(
        self,
        connection: Connection,
        transport: PromptTransport,
        *,
        refused: Callable[[str, UserError | ModelError], None],
        broken: Callable[[], None],
    ) -> None:
        """Nothing is sent.

        Args:
            connection: Whose protocol and rates.
            transport: Its transport.
            refused: Told, with the command's id, that it cannot be sent; the connection goes on.
            broken: Told that `fault` ends the connection.
        """
        self.encode = connection.wire.encode if connection.rates.takes_as_is else connection.encode
        """Puts a command as wire messages."""
        self.put = transport.send_at_once
        """Sends each, in order."""
        self.transport = transport
        """Whether it takes something at once is to be asked before."""
        self._refused = refused
        self._broken = broken
        self.fault: Exception | None = None
        """What ends the connection; the writer raises it."""

    def failed(self, command: AppendAudio, error: Exception) -> None:
        """A command could not be sent."""
        if isinstance(error, (UserError, ModelError)):
            self._refused(command.command_id, error)
        else:
            self.fault = error
            self._broken()
