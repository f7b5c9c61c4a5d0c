"""Between the sample rates of a session and those of the model that it talks with.

Owns: `RateBridge`. Driven by `pipelines/link.py`, command by command and report by report. A session keeps the rates that
it began with, whichever model takes over: what is played, recorded and waits stays what it is. It never changes what is
said, and positions in milliseconds mean the same on both sides.
"""

from __future__ import annotations

from dataclasses import replace

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import AppendAudio, ClearAudio, CommitAudio, LinkCommand
from realtime.core.model_events import (
    ModelEvent,
    OutputAudio,
    OutputItemDone,
    ResponseEnded,
)
from realtime.media.audio import PcmConverter

__all__ = ["RateBridge"]


class RateBridge:
    """One connection's conversion: the user's sound on its way out, the model's on its way in."""

    def __init__(self, session: ModelCapabilities, model: ModelCapabilities) -> None:
        """Compare the rates; where they are equal nothing is touched.

        Args:
            session: With the session's rates.
            model: With those that the model takes and gives.
        """
        self._out_rates = (model.output_rate_hz, session.output_rate_hz)
        self._heard: dict[tuple[str, str, int], PcmConverter] = {}
        self.takes_as_is = session.input_rate_hz == model.input_rate_hz
        """The user's sound need not be converted: what goes out is what `outgoing` was given."""
        self._spoken = None if self.takes_as_is else PcmConverter(session.input_rate_hz, model.input_rate_hz)

    def outgoing(self, command: LinkCommand) -> list[LinkCommand]:  # hot path: 50 times a second
        """What is sent for a command: nothing where the sound is too short to be converted yet."""
        spoken = self._spoken
        if spoken is None:
            return [command]
        if isinstance(command, AppendAudio):
            sound = spoken.convert(command.pcm)
            return [command._replace(pcm=sound)] if sound else []
        if isinstance(command, ClearAudio):
            spoken.flush()
        elif isinstance(command, CommitAudio):
            rest = spoken.flush()
            if rest:
                return [AppendAudio(command_id=command.command_id, pcm=rest), command]
        return [command]

    def incoming(self, events: list[ModelEvent]) -> list[ModelEvent]:  # hot path: every wire message
        """What is reported, at the session's rate; the rest of an item's sound comes before its end."""
        if self._out_rates[0] == self._out_rates[1]:
            return events
        converted: list[ModelEvent] = []
        for event in events:
            if isinstance(event, OutputAudio):
                key = (event.response_id, event.item_id, event.content_index)
                converter = self._heard.get(key)
                if converter is None:
                    converter = self._heard[key] = PcmConverter(*self._out_rates)
                event = replace(event, pcm=converter.convert(event.pcm))  # noqa: PLW2901  (the same report)
                if not event.pcm:
                    continue
            elif isinstance(event, OutputItemDone):
                converted += self._rest(event.response_id, event.item_id)
            elif isinstance(event, ResponseEnded):
                converted += self._rest(event.response_id, None)
            converted.append(event)
        return converted

    def _rest(self, response_id: str, item_id: str | None) -> list[ModelEvent]:
        """What the converters of an item, or of all of a response's, still hold."""
        rest: list[ModelEvent] = []
        for key in [key for key in self._heard if key[0] == response_id and item_id in (None, key[1])]:
            sound = self._heard.pop(key).flush()
            if sound:
                rest.append(OutputAudio(response_id=key[0], item_id=key[1], content_index=key[2], pcm=sound))
        return rest
