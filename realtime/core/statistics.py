"""Figures of one session, as values.

Owns: `MachineStatistics` and its parts. Made by `SessionMachine.statistics`. Never acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from realtime.core.model_events import TokenUsage
from realtime.core.parts import Parts

__all__ = ["MachineStatistics", "MemoryUse", "TokenFigures", "collect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes that the session holds (behaviour.md R5)."""

    images: int
    """Pictures in the history."""
    audio: int
    """Recordings in the history, turns in progress included."""
    queued_audio: int
    """Audio that waits for the socket."""
    replay_audio: int
    """Audio kept to be sent again after a drop."""
    queued_pictures: int
    """Pictures that were given to the link and have no place in the conversation yet."""
    held_frames: int
    """Frames held for the end of the user's turn, about (12 bits a pixel)."""

    @property
    def total(self) -> int:
        """All of it."""
        waiting = self.queued_audio + self.replay_audio + self.queued_pictures + self.held_frames
        return self.images + self.audio + waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFigures:
    """Our count of the context beside the provider's (behaviour.md W6)."""

    own: int
    """Our count of the context."""
    reported: int | None
    """The input tokens of the last response, as the provider counts them."""
    scale: float
    """What trims multiply our count by."""
    gone: int
    """Tokens of items that left the context and that the provider still has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStatistics:
    """What `SessionMachine` counts."""

    history_messages: int
    """Messages in the history."""
    context_messages: int
    """Messages in the context."""
    provider_items: int
    """Items in the provider's conversation, by the ledger."""
    images_sent: int
    """Pictures really sent."""
    images_kept: int
    """Pictures in the history."""
    images_evicted: int
    """Pictures evicted by a budget."""
    audio_evicted: int
    """Recordings evicted by a budget."""
    messages_trimmed: int
    """Messages that the window trimmed."""
    messages_summarized: int
    """Messages that a digest replaced."""
    frames_kept: Mapping[str, int]
    """Frames kept, by reason."""
    frames_skipped: Mapping[str, int]
    """Frames not kept, by reason."""
    audio_sent_ms: int
    """Input audio sent on this connection."""
    audio_waiting_ms: int
    """Input audio that waits for the socket."""
    audio_dropped_ms: int
    """Input audio dropped because the socket was too slow."""
    control_waiting: int
    """Control commands that wait for the socket."""
    pictures_waiting: int
    """Sampled frames that wait for the socket."""
    late_deltas: int
    """Deltas of replies that had been cut."""
    unknown_reports: Mapping[str, int]
    """Wire messages of unknown types, by type."""
    responses: int
    """Responses of the model."""
    reconnects: int
    """Connections after the first."""
    usage: TokenUsage
    """Tokens of all responses."""
    cost: float | None
    """What the conversation has cost so far; None without `UsageLimits.prices`."""
    tokens: TokenFigures
    """The context's tokens."""
    memory: MemoryUse
    """Bytes held."""


def collect(parts: Parts, *, reconnects: int) -> MachineStatistics:
    """Read every part's figures."""
    rate = parts.input_audio.rate_hz
    return MachineStatistics(
        history_messages=parts.history.visible_count,
        context_messages=len(parts.context),
        provider_items=len(parts.ledger),
        images_sent=parts.keeping.images.sent,
        images_kept=parts.keeping.images.kept,
        images_evicted=parts.keeping.evicted_images,
        audio_evicted=parts.keeping.evicted_audio,
        messages_trimmed=parts.trimming.trimmed,
        messages_summarized=parts.trimming.summarized,
        frames_kept=dict(parts.sampler.kept),
        frames_skipped=dict(parts.sampler.skipped),
        audio_sent_ms=parts.input_audio.sent_ms,
        audio_waiting_ms=parts.input_audio.waiting_ms,
        audio_dropped_ms=parts.input_audio.dropped * 1000 // rate,
        control_waiting=parts.outbox.control_depth,
        pictures_waiting=parts.outbox.picture_depth,
        late_deltas=parts.replies.late_deltas,
        unknown_reports=dict(parts.unknown),
        responses=parts.limits.responses,
        reconnects=reconnects,
        usage=parts.limits.usage,
        cost=parts.limits.cost,
        tokens=TokenFigures(
            own=parts.trimming.own_tokens,
            reported=parts.trimming.reported_tokens,
            scale=parts.trimming.scale,
            gone=parts.ledger.gone_tokens,
        ),
        memory=MemoryUse(
            images=parts.keeping.image_bytes,
            audio=parts.keeping.audio_bytes,
            queued_audio=parts.input_audio.waiting_bytes,
            replay_audio=parts.input_audio.held_bytes,
            queued_pictures=parts.outgoing.picture_bytes,
            held_frames=parts.sampler.held_bytes,
        ),
    )
