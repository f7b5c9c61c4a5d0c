"""Stand-ins for the parts of the local LLM, and a client that speaks to one session without a socket."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import numpy as np
import openai.types.realtime as openai_types
from pydantic import TypeAdapter

from realtime.chat.messages import ImageContent
from realtime.local.metrics import Metrics
from realtime.local.parts import Parts, ReplyRequest, Sight, Speech, TextDelta, ToolCall, Transcript
from realtime.local.session import LocalSession, SessionLimits
from realtime.local.workers import FairPool
from realtime.testing.clock import ManualClock
from realtime.wire.json_fields import dump_message

RATE = 24_000
_official: TypeAdapter[Any] = TypeAdapter(openai_types.RealtimeServerEvent)


def loud(ms: int) -> bytes:
    """PCM16 at 24 kHz that counts as speech."""
    return (8000 * np.sin(np.arange(RATE * ms // 1000) * 0.1)).astype("<i2").tobytes()


def quiet(ms: int) -> bytes:
    """PCM16 at 24 kHz that counts as silence."""
    return bytes(2 * (RATE * ms // 1000))


def picture(color: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 32)) -> ImageContent:
    """A JPEG of one color."""
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "JPEG")
    return ImageContent.from_bytes(file.getvalue(), "image/jpeg")


class LoudnessDetector:
    """Speech is whatever is loud."""

    rate_hz = 16_000
    window_samples = 512

    def open(self) -> LoudnessDetector:
        return self

    def probability(self, window: np.ndarray) -> float:
        return 1.0 if float(np.abs(window).mean()) > 0.02 else 0.0

    def reset(self) -> None:
        pass


class ScriptedRecognizer:
    """Hears what it is told; `hold` makes it wait."""

    rate_hz = 16_000

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.calls: list[tuple[int, bool]] = []
        self.languages: list[str | None] = []
        self.hold: asyncio.Event | None = None
        self.error: Exception | None = None

    async def recognize(
        self, samples: np.ndarray, *, owner: str, language: str | None = None, speculative: bool = False
    ) -> Transcript:
        self.calls.append((len(samples) // 16, speculative))
        self.languages.append(language)
        text = self.texts[0] if len(self.texts) == 1 else (self.texts.pop(0) if self.texts else "")
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        return Transcript(text=text)

    async def aclose(self) -> None:
        pass


class BeepSynthesizer:
    """Every word is 100 ms long; `hold` makes it wait."""

    rate_hz = RATE

    def __init__(self) -> None:
        self.spoken: list[str] = []
        self.later: list[bool] = []
        self.hold: asyncio.Event | None = None

    async def synthesize(self, text: str, *, owner: str, speed: float = 1.0, later: bool = False) -> Speech:
        self.spoken.append(text)
        self.later.append(later)
        if self.hold is not None:
            await self.hold.wait()
        words = text.split()
        timed = tuple((word if number == 0 else f" {word}", 100 * (number + 1)) for number, word in enumerate(words))
        return Speech(pcm=loud(100 * len(words)), words=timed)

    async def aclose(self) -> None:
        pass


class FlatEyes:
    """See the same everywhere."""

    def __init__(self, *lines: str) -> None:
        self.sight = Sight(lines=lines, width=64, height=32, brightness=0.5, color="red")
        self.looks = 0
        self.prepared = 0

    async def look(self, picture: ImageContent, *, owner: str, read: bool = True) -> Sight:
        self.looks += 1
        return self.sight

    async def prepare(self) -> None:
        self.prepared += 1

    async def aclose(self) -> None:
        pass


Reply = str | ToolCall | Exception | asyncio.Event


class ScriptedResponder:
    """Gives the next scripted reply: texts, calls, an error to raise, an event to wait for."""

    name = "scripted"

    def __init__(self, *replies: list[Reply] | str) -> None:
        self.replies: list[list[Reply]] = [[reply] if isinstance(reply, str) else reply for reply in replies]
        self.requests: list[ReplyRequest] = []
        self.closed = 0
        self.ended = False

    async def respond(self, request: ReplyRequest) -> AsyncIterator[TextDelta | ToolCall]:
        self.requests.append(request)
        reply = self.replies.pop(0) if self.replies else ["Fine."]
        try:
            for piece in reply:
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, Exception):
                    raise piece
                elif isinstance(piece, ToolCall):
                    yield piece
                else:
                    yield TextDelta(text=piece)
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        self.ended = True


def make_parts(responder: Any = None, *, recognizer: Any = None, synthesizer: Any = None, eyes: Any = None) -> Parts:
    return Parts(
        detector=LoudnessDetector(),
        recognizer=recognizer or ScriptedRecognizer("hello there"),
        synthesizer=synthesizer or BeepSynthesizer(),
        eyes=eyes or FlatEyes(),
        responder=responder or ScriptedResponder(),
    )


class Client:
    """One session, spoken to directly. Every event that it sends is checked against OpenAI's own types."""

    def __init__(self, parts: Parts, *, limits: SessionLimits | None = None, model: str = "") -> None:
        self.pool = FairPool(1)
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.events: list[dict[str, Any]] = []
        self.room: asyncio.Event | None = None
        self.changed = asyncio.Event()
        self.on_event: Callable[[dict[str, Any]], None] = lambda _event: None
        self.session = LocalSession(
            parts,
            self.pool,
            send=self._take,
            clock=self.clock,
            metrics=self.metrics,
            model=model,
            limits=limits,
        )

    async def __aenter__(self) -> Self:
        await self.session.open()
        await self.settle()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.session.aclose()
        await self.pool.aclose()

    async def _take(self, event: Any) -> None:
        if self.room is not None:
            await self.room.wait()
        message = json.loads(dump_message(event))
        _official.validate_python(message)
        self.events.append(message)
        self.changed.set()
        self.on_event(message)

    # -- what a client says --------------------------------------------------------------------------------------------

    async def say(self, type: str, **fields: Any) -> list[dict[str, Any]]:
        """Send an event; gives what the session said from then on, once it says nothing more."""
        before = len(self.events)
        await self.session.receive(json.dumps({"type": type, **fields}))
        await self.settle()
        return self.events[before:]

    async def update(self, **session: Any) -> list[dict[str, Any]]:
        return await self.say("session.update", session={"type": "realtime", **session})

    async def append(self, pcm: bytes, *, chunk_ms: int = 100) -> list[dict[str, Any]]:
        before = len(self.events)
        step = 2 * RATE * chunk_ms // 1000
        for start in range(0, len(pcm), step):
            audio = base64.b64encode(pcm[start : start + step]).decode()
            await self.session.receive(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            await self.settle(5)
        await self.settle()
        return self.events[before:]

    async def type(self, text: str, **fields: Any) -> list[dict[str, Any]]:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **fields}
        return await self.say("conversation.item.create", item=item)

    async def settle(self, rounds: int = 60) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)

    # -- what it heard -------------------------------------------------------------------------------------------------

    def types(self, events: list[dict[str, Any]] | None = None) -> list[str]:
        """The types of events, repeats folded."""
        folded: list[str] = []
        for event in self.events if events is None else events:
            if not folded or folded[-1] != event["type"]:
                folded.append(event["type"])
        return folded

    def of(self, type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type]

    def last(self, type: str) -> dict[str, Any]:
        return self.of(type)[-1]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [event["error"] for event in self.of("error")]


async def until(condition: Callable[[], bool], *, rounds: int = 2000) -> None:
    """Let the loop turn until something holds."""
    for _ in range(rounds):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")
