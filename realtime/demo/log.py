"""What a viewer of the call is told, as lines and figures made from the session's events.

Owns: `CallLog`, one line or none per event and the state that a screen shows; `Line`, `KeptFrame`. Driven by
`demo/call.py` with every event and the time; read by the screens and by the folder. Synchronous, no loop, no terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from realtime.chat.messages import ChatRole
from realtime.core import events as ev

__all__ = ["Budget", "CallLog", "KeptFrame", "Kind", "Line", "in_seconds"]

Kind = Literal["user", "model", "frame", "budget", "turn", "tool", "link", "error", "note"]
"""What a line is about."""

_MAX_LINES = 500
_MAX_FRAMES = 500
_PARTIAL_SECONDS = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of a bound is used."""

    name: str
    """What is bounded."""
    used: float
    """How much is used."""
    bound: float | None
    """How much may be; None: without bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened."""

    at: float
    """Seconds since the call began."""
    kind: Kind
    """What it is about."""
    text: str
    """In words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFrame:
    """A frame that the model was shown."""

    message_id: str
    """Its message."""
    source: str
    """Which camera."""
    reason: str
    """Why it was kept."""
    at: float
    """When it was captured, in seconds since the call began."""
    age_ms: int
    """How old it was when it was sent."""
    width: int
    """In pixels."""
    height: int
    """In pixels."""
    byte_length: int
    """Encoded."""
    left: str = ""
    """Why it left the context; empty while it is there."""


def in_seconds(value: float) -> str:
    """A time of the call, to read."""
    return f"{value:6.2f} s"


class CallLog:
    """Tells a call: feed it every event.

    Attributes:
        lines: What was said of it so far, the newest `_MAX_LINES`.
        growing: Speech that is still being said or made, by message id: who and what so far.
        frames: Frames that were kept, by message id, the newest `_MAX_FRAMES`.
        latencies: One per completed turn.
        speaking: Who speaks now.
        evicted: Pictures that retention took away.
        trimmed: Messages that the window took away.
        skipped: Frames that were due and not kept.
        linked: Whether the model is connected.
        open_turns: Turns of the user's that no reply has answered yet.
        speech_starts: How often the user has begun to speak.
    """

    def __init__(self, begun_at: float) -> None:
        """Begin at a time of the session's clock."""
        self.begun_at = begun_at
        self.lines: deque[Line] = deque(maxlen=_MAX_LINES)
        self.growing: dict[str, tuple[ChatRole, str]] = {}
        self.frames: dict[str, KeptFrame] = {}
        self.latencies: deque[ev.TurnLatency] = deque(maxlen=50)
        self.speaking: set[str] = set()
        self.evicted = 0
        self.trimmed = 0
        self.skipped = 0
        self.linked = True
        self.open_turns = 0
        self.speech_starts = 0
        self._partial_at: dict[str, float] = {}

    def take(self, event: ev.SessionEvent, now: float) -> list[Line]:
        """Note an event; gives the lines that it makes."""
        at = now - self.begun_at
        made = [Line(at=at, kind=kind, text=text) for kind, text in self._tell(event, at)]
        self.lines.extend(made)
        return made

    def note(self, text: str, now: float, kind: Kind = "note") -> Line:
        """Add a line of our own."""
        line = Line(at=now - self.begun_at, kind=kind, text=text)
        self.lines.append(line)
        return line

    @property
    def pictures(self) -> int:
        """How many of the kept frames are still in the context."""
        return sum(not frame.left for frame in self.frames.values())

    def _tell(self, event: ev.SessionEvent, at: float) -> Iterator[tuple[Kind, str]]:
        match event:
            case ev.SpeechStarted():
                self.speaking.add("user")
                self.open_turns += 1
                self.speech_starts += 1
                yield "user", "begins to speak"
            case ev.SpeechStopped():
                self.speaking.discard("user")
                yield "user", "has finished"
            case ev.TranscriptUpdated():
                yield from self._tell_transcript(event, at)
            case ev.MessageCommitted(message=message):
                self.growing.pop(message.message_id, None)
                if message.role == ChatRole.ASSISTANT and message.content and not message.interrupted:
                    yield "model", "was heard to the end"
            case ev.AudioReceived():
                self.speaking.add("model")
            case ev.ReplyInterrupted():
                self.speaking.discard("model")
                heard = f"heard {event.heard_ms} ms: “{event.heard}”" if event.heard else "nothing of it was heard"
                yield "model", f"interrupted ({event.cause}), {heard}; unheard: “{event.unheard}”"
            case ev.TurnCompleted():
                self.speaking.discard("model")
                self.open_turns = 0 if "user" not in self.speaking else 1
                self.latencies.append(event.latency)
                yield "turn", _latency_text(event.latency)
            case ev.FrameKept() | ev.FrameSkipped():
                yield from self._tell_frame(event)
            case ev.MessagesRemoved() | ev.MessageChanged() | ev.ContextSummarized():
                yield from self._tell_budget(event)
            case ev.ReplyStarted():
                return
            case _:
                yield from self._tell_other(event)

    def _tell_transcript(self, event: ev.TranscriptUpdated, at: float) -> Iterator[tuple[Kind, str]]:
        kind: Kind = "user" if event.role == ChatRole.USER else "model"
        if event.final:
            self.growing.pop(event.message_id, None)
            self._partial_at.pop(event.message_id, None)
            yield kind, f"“{event.text}”"
            return
        self.growing[event.message_id] = (event.role, event.text)
        if at - self._partial_at.get(event.message_id, -_PARTIAL_SECONDS) >= _PARTIAL_SECONDS:
            self._partial_at[event.message_id] = at
            yield kind, f"“{event.text} …"

    def _tell_frame(self, event: ev.FrameKept | ev.FrameSkipped) -> Iterator[tuple[Kind, str]]:
        if isinstance(event, ev.FrameSkipped):
            self.skipped += 1
            return
        frame = KeptFrame(
            message_id=event.message_id,
            source=event.source,
            reason=event.reason,
            at=event.captured_at - self.begun_at,
            age_ms=event.age_ms,
            width=event.width,
            height=event.height,
            byte_length=event.byte_length,
        )
        self.frames[event.message_id] = frame
        if len(self.frames) > _MAX_FRAMES:
            del self.frames[next(iter(self.frames))]
        size = f"{frame.width}×{frame.height}, {frame.byte_length / 1000:.0f} kB"
        yield "frame", f"{frame.source}: {frame.reason} ({size}, sent {frame.age_ms} ms after capture)"

    def _tell_budget(
        self, event: ev.MessagesRemoved | ev.MessageChanged | ev.ContextSummarized
    ) -> Iterator[tuple[Kind, str]]:
        match event:
            case ev.MessagesRemoved(message_ids=ids, reason=reason):
                pictures = [message_id for message_id in ids if message_id in self.frames]
                for message_id in pictures:
                    self.frames[message_id] = replace(self.frames[message_id], left=reason)
                if reason in ("window", "summary"):
                    self.trimmed += len(ids)
                    yield "budget", f"trimmed {_count(len(ids), 'message')} ({reason})"
                else:
                    self.evicted += len(pictures)
                    yield "budget", f"evicted {_count(len(ids), 'message')} ({reason})"
            case ev.MessageChanged(reason=reason):
                if reason not in ("interrupted", "late_result"):
                    yield "budget", f"a message lost its sound or picture ({reason})"
            case ev.ContextSummarized(message=message, digested=digested):
                self.trimmed += len(digested)
                yield "budget", f"{_count(len(digested), 'message')} became a summary: “{message.content}”"

    def _tell_other(
        self,
        event: ev.ToolCalled
        | ev.ToolFinished
        | ev.ApprovalRequested
        | ev.InputRejected
        | ev.TranscriptionFailed
        | ev.HandedOff
        | ev.TrackEnded
        | ev.DtmfReceived
        | ev.ConnectionDropped
        | ev.Reconnected
        | ev.ErrorReported
        | ev.SessionEnded,
    ) -> Iterator[tuple[Kind, str]]:
        match event:
            case ev.ToolCalled():
                yield "tool", f"{event.name}({event.arguments})"
            case ev.ToolFinished():
                yield "tool", f"{event.name} → {event.output} ({event.seconds * 1000:.0f} ms)"
            case ev.ApprovalRequested():
                yield "tool", f"{event.name} waits for approval"
            case ev.InputRejected():
                yield "error", f"the model did not take a message: {event.reason}"
            case ev.TranscriptionFailed():
                yield "error", f"a turn could not be transcribed: {event.detail}"
            case ev.HandedOff(handoff=handoff):
                reason = f" ({handoff.reason})" if handoff.reason else ""
                yield "note", f"{handoff.from_agent} handed over to {handoff.to_agent}{reason}"
            case ev.TrackEnded():
                yield "link", f"the {event.kind} track {event.source} ended"
            case ev.DtmfReceived():
                yield "note", f"{event.source}: key {event.digit}"
            case ev.ConnectionDropped():
                self.linked = False
                yield "link", f"lost the model: {event.reason}" + (" (trying again)" if event.will_retry else "")
            case ev.Reconnected():
                self.linked = True
                whole = "with the whole conversation" if event.state_restored else "with what is in the window"
                yield "link", f"the model is back after {event.gap_ms} ms, {whole}"
            case ev.ErrorReported():
                yield "error", f"{event.where}: {event.error}"
            case ev.SessionEnded():
                self.speaking.clear()
                yield "link", f"the session ended ({event.reason})" + (f": {event.error}" if event.error else "")
            case _:
                assert_never(event)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _latency_text(latency: ev.TurnLatency) -> str:
    """A turn's steps, in milliseconds from the end of the speech."""
    steps = (
        ("transcript", latency.transcript_ms),
        ("response", latency.response_ms),
        ("first audio", latency.first_audio_ms),
        ("first heard", latency.first_played_ms),
    )
    known = [f"{name} {value} ms" for name, value in steps if value is not None]
    return "after the end of speech: " + (", ".join(known) or "nothing measured")
