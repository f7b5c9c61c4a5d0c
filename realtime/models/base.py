"""What every model is to a session.

Owns: `RealtimeModel`. Driven by `session.py` (which model) and `pipelines/link.py` (which opens it, again after a drop).
A model describes itself by data (`capabilities`), makes a wire format for each connection, and opens transports. It
never reads what they carry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.transports.websocket import Transport
from realtime.wire.base import WireFormat

__all__ = ["RealtimeModel", "check_name", "check_settings"]


def check_name(argument: str, value: object, wanted: str) -> None:
    """Raise `ArgumentError` unless `value` is a string with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(argument, value, wanted)


def check_texts(**given: object) -> None:
    """Raise `ArgumentError` for an argument that is neither text nor None. What it is is not shown: it may be a key."""
    for argument, value in given.items():
        if value is not None and not isinstance(value, str):
            raise ArgumentError(argument, type(value).__name__, "text, or None")


def check_settings(provider: str, settings: Mapping[str, object], known: type) -> None:
    """Raise `UserError` if there is a setting that a provider does not have: it is never left out without a word.

    Args:
        provider: Whose.
        settings: What was given, by name.
        known: The `TypedDict` of what there is.
    """
    for name in settings:
        if name not in known.__annotations__:
            has = ", ".join(known.__annotations__)
            raise UserError(f"{provider} has no setting {name!r}; it has {has}")


class RealtimeModel(ABC):
    """A provider's model, and how to reach it. One object may serve several sessions, one after another or at once.

    Attributes:
        name: What messages and logs call it, such as ``openai:gpt-realtime``. Never holds a key.
        capabilities: What it can do.
        voice: Its voice where the agent names none; None: the provider's default.
        turn_detection: Who decides when the user has finished, where the session does not say; None: the session's default.
        transcription: Which model transcribes the user, where the session says ``auto``; None: the provider's default.
        open_timeout_seconds: How long one attempt to open it needs at least: a server that loads its models first takes
            longer than `ReconnectPolicy.connect_timeout_seconds`. 0: nothing special.
    """

    name: str = ""
    capabilities: ModelCapabilities = ModelCapabilities()
    voice: str | None = None
    turn_detection: TurnDetection | None = None
    transcription: str | None = None
    open_timeout_seconds: float = 0.0

    @abstractmethod
    def make_wire(self, *, wall: float | None = None) -> WireFormat:
        """Make the wire format of one connection.

        Args:
            wall: The time of day now, in seconds since the epoch. With it a deadline that the provider gives as a time
                of day becomes `SessionReady.expires_in_seconds`; without it that stays None.
        """

    @abstractmethod
    async def open(self) -> Transport:
        """Connect. The caller bounds it; cancelling leaves nothing behind.

        Raises:
            ModelError: The provider refused for good.
            UserError: Something is missing here, such as a key or a package.
            LinkLost: It could not be reached; another attempt may.
        """

    async def aclose(self) -> None:  # noqa: B027  (most models hold nothing)
        """Let go of what the model holds besides its transports. Bounded, idempotent; `open` works again afterwards."""

    def __repr__(self) -> str:
        """Its class and name; never a key."""
        return f"<{type(self).__name__} {self.name}>"
