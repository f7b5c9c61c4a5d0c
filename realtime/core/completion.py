"""When a turn of the model's is over (events `TurnCompleted`).

Owns: the chain of replies since the last completed turn (a reply that calls tools is followed by another), and the
figures of each turn. Driven by `SessionMachine`. Never ends a reply.
"""

from __future__ import annotations

from collections import deque

from realtime.chat.messages import ChatMessage
from realtime.core.effects import Effects
from realtime.core.events import TurnCompleted, TurnLatency
from realtime.core.model_events import TokenUsage
from realtime.core.places import Place
from realtime.core.reply import Reply
from realtime.core.speech import Speech

__all__ = ["Completion"]


class Completion:
    """The chains of replies that are not reported yet."""

    def __init__(self, *, effects: Effects, speech: Speech) -> None:
        """Start with none."""
        self._effects = effects
        self._speech = speech
        self._chain: list[tuple[Reply, list[Place]]] = []
        self._closed: deque[list[tuple[Reply, list[Place]]]] = deque()

    def reply_over(self, reply: Reply, places: list[Place], *, continues: bool) -> None:
        """A reply is over.

        Args:
            reply: Which.
            places: Where its messages and calls stand.
            continues: Another reply follows, because it called tools.
        """
        self._chain.append((reply, places))
        if not continues:
            self.close_chain()

    def close_chain(self) -> None:
        """The turn has no further reply."""
        if self._chain:
            self._closed.append(self._chain)
            self._chain = []

    def report(self, *, force: bool = False) -> bool:
        """Report each turn whose messages are all visible (at the close: whatever is).

        Returns:
            Whether one was reported.
        """
        reported = False
        while self._closed:
            places = (place for _, places in reversed(self._closed[0]) for place in reversed(places))
            if not force and any(place.message is not None and not place.visible for place in places):
                break  # the last is seen last: this looks at one place, nearly always
            self._effects.emit(self._completed(self._closed.popleft()))
            reported = True
        return reported

    def _completed(self, chain: list[tuple[Reply, list[Place]]]) -> TurnCompleted:
        first, last = chain[0][0], chain[-1][0]
        messages: list[ChatMessage] = []
        for reply, places in chain:
            messages += [place.message for place in places if place.message is not None]
            messages += _results(reply, places)
        usage: TokenUsage | None = None
        for reply, _ in chain:
            if reply.usage is not None:
                usage = reply.usage if usage is None else usage + reply.usage
        return TurnCompleted(
            reply_id=last.reply_id,
            messages=tuple(messages),
            interrupted=any(reply.is_cut for reply, _ in chain),
            usage=usage,
            latency=self._latency(first, chain),
        )

    def _latency(self, first: Reply, chain: list[tuple[Reply, list[Place]]]) -> TurnLatency:
        basis = first.basis
        if basis is None:
            return TurnLatency()
        spoken = self._speech.last_ended_at == basis
        transcribed_at = self._speech.last_transcribed_at if spoken else None

        def since(moment: float | None) -> int | None:
            return None if moment is None or moment < basis else round((moment - basis) * 1000)

        sounding = next((reply for reply, _ in chain if reply.first_audio_at is not None), first)
        return TurnLatency(
            transcript_ms=since(transcribed_at),
            response_ms=since(first.started_at),
            first_audio_ms=since(sounding.first_audio_at),
            first_played_ms=since(sounding.first_played_at),
        )


def _results(reply: Reply, places: list[Place]) -> list[ChatMessage]:
    """The results that stand behind a reply's calls."""
    results: list[ChatMessage] = []
    calls = [place for place in places if place.round_id == reply.reply_id]
    probe = calls[-1].following if calls else None
    while probe is not None and probe.round_id == reply.reply_id:
        if probe.message is not None and probe.message.tool_call_id:
            results.append(probe.message)
        probe = probe.following
    return results
