"""The user's sound on its short way: from the machine to a socket that takes it at once, without a task in between.

Owns: `SoundLine`, one connection's. Driven by the input audio, 50 times a second, while the link's writer has nothing to send.
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
    """Sends sound over one connection, in the order in which it is given."""

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
        self._encode = connection.wire.encode if connection.rates.takes_as_is else connection.encode
        self.transport = transport
        """Whether it takes something at once is to be asked before `send`."""
        self._put = transport.send_at_once
        self._refused = refused
        self._broken = broken
        self.fault: Exception | None = None
        """What ends the connection; the writer raises it."""

    def send(self, command: AppendAudio) -> None:  # hot path: 50 times a second
        """Send sound now."""
        encode, put = self._encode, self._put
        try:
            for data in encode(command):
                put(data)
        except (UserError, ModelError) as error:
            self._refused(command.command_id, error)
        except Exception as error:
            self.fault = error
            self._broken()
