"""A second connection to a call that a browser holds with OpenAI directly.

Owns: `SidebandWire`. Driven by `pipelines/link.py`, one instance per connection. OpenAI's protocol, but that no sound comes or
goes here: what the model says is reported by its words alone, and counts as heard when it is known. The call is OpenAI's to
keep, so that a new connection finds it as it is (developers.openai.com, "Webhooks and server-side controls").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from realtime.core.commands import AppendAudio, ClearAudio, CommitAudio, ConfigureSession, LinkCommand
from realtime.core.model_events import ModelEvent, OutputAudio, OutputTextDone, OutputTextUpdated, SessionUpdated
from realtime.errors import UserError
from realtime.wire.base import Resumption
from realtime.wire.json_fields import JsonObject
from realtime.wire.openai import OpenAIOptions, OpenAIWire
from realtime.wire.openai_decode import OpenAIDecoder
from realtime.wire.openai_shapes import SessionConfig

__all__ = ["SidebandWire"]


class _SidebandDecoder(OpenAIDecoder):
    """The reading half of one connection."""

    def __init__(self, *, wall: float | None, resumes: bool) -> None:
        self._resumes = resumes
        super().__init__(wall=wall)

    def handlers(self) -> dict[str, Callable[[JsonObject], list[ModelEvent]]]:
        """OpenAI's, without its sound."""
        theirs = super().handlers()
        return {name: self._silenced(handler) for name, handler in theirs.items()}

    @staticmethod
    def _silenced(handler: Callable[[JsonObject], list[ModelEvent]]) -> Callable[[JsonObject], list[ModelEvent]]:
        def read(message: JsonObject) -> list[ModelEvent]:
            events: list[ModelEvent] = []
            for event in handler(message):
                if isinstance(event, (OutputTextUpdated, OutputTextDone)):
                    events.append(replace(event, spoken=False))
                elif not isinstance(event, OutputAudio):
                    events.append(event)
            return events

        return read

    def _session_updated(self, message: JsonObject) -> list[ModelEvent]:
        super()._session_updated(message)
        return [SessionUpdated(resumed=self._resumes)]


class SidebandWire(OpenAIWire):
    """The wire format of one connection to a browser's call."""

    def __init__(
        self, options: OpenAIOptions | None = None, *, call_id: str, wall: float | None = None, resumes: bool = False
    ) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            call_id: The call.
            wall: The time of day now, in seconds since the epoch, to count the provider's `expires_at` from.
            resumes: An earlier connection of the same session had been told of the call.
        """
        super().__init__(options, wall=wall, decoder=_SidebandDecoder(wall=wall, resumes=resumes), resumes=resumes)
        self._call_id = call_id

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            UserError: It is about sound: that goes between the browser and OpenAI.
        """
        if isinstance(command, (AppendAudio, CommitAudio, ClearAudio)):
            raise UserError("a sideband carries no sound (supports_audio_input): the browser speaks to OpenAI directly")
        return super().encode(command)

    def resumption(self) -> Resumption | None:
        """The call's id: it goes on without us."""
        return Resumption(handle=self._call_id)

    def session_config(self, command: ConfigureSession) -> SessionConfig:
        """The whole configuration, but for the formats of sound: those are the browser's business."""
        config = super().session_config(command)
        audio = config.get("audio", {})
        audio.get("input", {}).pop("format", None)
        audio.get("output", {}).pop("format", None)
        return config
