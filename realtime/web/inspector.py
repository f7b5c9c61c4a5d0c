"""The context that the model has now, as a page shows it.

Owns: `Inspector`: what has left and why, the latencies of the newest turns, and the snapshots, at most four a second and
only when something changed. Driven by a call's events and by the page's wish to see them. It only reads.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Protocol

from realtime.chat.explain import Explanation
from realtime.chat.messages import ChatMessage
from realtime.core.events import (
    FrameKept,
    FrameSkipped,
    MessageChanged,
    MessageCommitted,
    MessagesRemoved,
    SessionEvent,
    TurnCompleted,
)
from realtime.session import RealtimeSession
from realtime.web.events import message_to_dict
from realtime.web.peer import Peer

__all__ = ["InspectedCall", "Inspector"]

_EVERY_SECONDS = 0.25
_PAUSES_PER_SNAPSHOT = 20
"""A long context takes a while to be looked through: never more than a twentieth of the time."""
_MEASURE_SECONDS = 1.0
_MOST_MESSAGES = 200
"""Messages in a snapshot, the newest; how many are before them is told."""
_MOST_REMOVED = 100
_MOST_TURNS = 50
_MOST_REMEMBERED = 2_000
"""Messages whose first words are remembered, to say what left."""
_FIRST_WORDS = 200


class InspectedCall(Protocol):
    """What an inspector needs of its call (`realtime.web.call.Call`)."""

    session: RealtimeSession
    """Its session."""

    @property
    def at(self) -> float:
        """Seconds since it began."""
        ...

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        ...

    @property
    def path(self) -> str:
        """Where its pictures and files are."""
        ...

    @property
    def peer(self) -> Peer | None:
        """Its present peer connection."""
        ...

    @property
    def packets(self) -> dict[str, Any]:
        """Figures of that."""
        ...

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell whoever listens."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait."""
        ...


class Inspector:
    """The inspector of one call."""

    def __init__(self, call: InspectedCall) -> None:
        """Take the call."""
        self._call = call
        self.on = False
        """Whether the page wants snapshots."""
        self._running = False
        self._revision = 0
        self._told = -1
        self._words: OrderedDict[str, str] = OrderedDict()
        self._removed: deque[dict[str, Any]] = deque(maxlen=_MOST_REMOVED)
        self._turns: deque[dict[str, Any]] = deque(maxlen=_MOST_TURNS)
        self._last_figures: dict[str, Any] = {}
        self._aspects: OrderedDict[str, float] = OrderedDict()
        """What messages' pictures were made from, width over height."""

    def take(self, event: SessionEvent) -> None:
        """Follow an event."""
        if isinstance(event, FrameSkipped):
            return
        self._revision += 1
        if isinstance(event, (MessageCommitted, MessageChanged)):
            message = event.message
            if isinstance(event, MessageChanged) and event.reason != "interrupted":
                self._note(message.message_id, event.reason, "changed")
            self._remember(message)
        elif isinstance(event, MessagesRemoved):
            for message_id in event.message_ids:
                self._note(message_id, event.reason, "evicted")
        elif isinstance(event, TurnCompleted):
            latency = event.latency
            self._turns.append(
                {
                    "reply_id": event.reply_id,
                    "at": round(self._call.at, 3),
                    "transcript_ms": latency.transcript_ms,
                    "response_ms": latency.response_ms,
                    "first_audio_ms": latency.first_audio_ms,
                    "first_played_ms": latency.first_played_ms,
                    "interrupted": event.interrupted,
                }
            )
        elif isinstance(event, FrameKept):
            self._words.setdefault(event.message_id, f"[{event.source}]")
            if event.source_width and event.source_height:
                self._aspects[event.message_id] = event.source_width / event.source_height
                while len(self._aspects) > _MOST_REMEMBERED:
                    self._aspects.popitem(last=False)

    def _remember(self, message: ChatMessage) -> None:
        words = message.content or (f"[{message.source or 'picture'}]" if message.images else "")
        self._words[message.message_id] = words[:_FIRST_WORDS]
        while len(self._words) > _MOST_REMEMBERED:
            self._words.popitem(last=False)

    def _note(self, message_id: str, reason: str, state: str) -> None:
        self._removed.append(
            {
                "id": message_id,
                "reason": reason,
                "state": state,
                "at": round(self._call.at, 3),
                "text": self._words.get(message_id, ""),
            }
        )

    async def run(self) -> None:
        """Send snapshots while they are wanted."""
        if self._running:
            self._told = -1
            return
        self._running = True
        self._told = -1
        measured_at = -_MEASURE_SECONDS
        try:
            while self.on and not self._call.over:
                if self._call.peer is not None and self._call.at - measured_at >= _MEASURE_SECONDS:
                    measured_at = self._call.at
                    await self._call.peer.measure()
                begun_at = self._call.at
                figures = self._figures()
                if self._told != self._revision or figures != self._last_figures or self._call.session.pending:
                    self._told, self._last_figures = self._revision, figures
                    self._call.tell(self.snapshot() | figures)
                took = self._call.at - begun_at
                await self._call.pause(max(_EVERY_SECONDS, took * _PAUSES_PER_SNAPSHOT))
        finally:
            self._running = False

    def snapshot(self) -> dict[str, Any]:
        """The context and the budgets."""
        session = self._call.session
        explained = session.context.explain(session.settings.window)
        shown = explained[-_MOST_MESSAGES:]
        statistics = session.statistics()
        retention = session.settings.retention
        images = sum(len(one.message.images) for one in explained)
        audio_ms = sum(one.message.audio.duration_ms for one in explained if one.message.audio is not None)
        return {
            "type": "inspect",
            "revision": self._revision,
            "at": round(self._call.at, 3),
            "messages": [self._explained(one) for one in shown]
            + [self._message(message) | {"state": "pending"} for message in session.pending],
            "omitted": len(explained) - len(shown),
            "removed": list(self._removed),
            "budget": {
                "tokens": sum(one.tokens for one in explained),
                "max_tokens": session.settings.window.max_tokens,
                "window_used": session.context_window_used,
                "images": images,
                "images_max": retention.images_max,
                "images_sent": statistics.machine.images_sent,
                "images_evicted": statistics.machine.images_evicted,
                "audio_seconds": round(audio_ms / 1000, 1),
                "audio_seconds_max": retention.audio_max_seconds,
                "memory_bytes": statistics.memory.total,
                "memory_max": session.settings.memory_limit_bytes,
                "messages": statistics.machine.history_messages,
                "messages_max": retention.max_history_messages,
            },
            "turns": list(self._turns),
        }

    def _figures(self) -> dict[str, Any]:
        """The link and the packets."""
        statistics = self._call.session.statistics()
        machine = statistics.machine
        return {
            "link": {
                "state": "connected" if statistics.connected else "reconnecting",
                "reconnects": machine.reconnects,
                "control_waiting": machine.control_waiting,
                "audio_waiting_ms": machine.audio_waiting_ms,
                "audio_dropped_ms": machine.audio_dropped_ms,
                "pictures_waiting": machine.pictures_waiting,
            },
            "frames": {"kept": dict(machine.frames_kept), "skipped": dict(machine.frames_skipped)},
            "packets": self._call.packets,
        }

    def _explained(self, one: Explanation) -> dict[str, Any]:
        told = self._message(one.message)
        return told | {"tokens": one.tokens, "state": "live", "kept": one.kept, "why": one.reason, "turn": one.turn}

    def _message(self, message: ChatMessage) -> dict[str, Any]:
        told = message_to_dict(message)
        aspect = self._aspects.get(message.message_id) if self._is_stretched else None
        told["images"] = [
            {
                "url": f"{self._call.path}/pictures/{message.message_id}/{number}",
                "width": None if image.size is None else image.size[0],
                "height": None if image.size is None else image.size[1],
                "aspect": round(aspect or image.size[0] / image.size[1], 4) if image.size is not None else aspect,
                "bytes": image.byte_length,
                "detail": image.detail,
            }
            for number, image in enumerate(message.images)
        ]
        return told

    @property
    def _is_stretched(self) -> bool:
        """Whether the session's pictures have lost their source's shape (the seeds' options: 1024×1024)."""
        resize = self._call.session.encode_options.resize_options
        return resize is not None and resize.mode == "stretch"
