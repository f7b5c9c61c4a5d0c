"""What the local LLM is made of: six protocols and the values that pass between them.

Owns: `SpeechDetector`, `TurnJudge`, `Recognizer`, `Synthesizer`, `Eyes` and `Responder`, the parts that can be exchanged,
and `Parts`, the set that one server runs. Each has an embedded default (`vad.py`, `recognizer.py`, `synthesizer.py`,
`eyes.py`, `rules.py`). The session drives them; they know nothing of the protocol. Never acts.

Samples are float32, mono, -1..1, unless said otherwise. Whatever is heavy runs in the server's worker pool: a part
takes `owner`, the session it works for, so that sessions get their turns fairly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from realtime.chat.messages import ChatMessage, ImageContent

__all__ = [
    "Eyes",
    "Parts",
    "Recognizer",
    "ReplyRequest",
    "Responder",
    "Samples",
    "Sight",
    "Speech",
    "SpeechDetector",
    "SpeechStream",
    "Synthesizer",
    "TextDelta",
    "Tool",
    "ToolCall",
    "Transcript",
    "TurnJudge",
]

Samples = npt.NDArray[np.float32]
"""Mono samples, float32, -1..1."""


# -- hearing -----------------------------------------------------------------------------------------------------------


class SpeechStream(Protocol):
    """Speech or not, window by window, of one stream of audio."""

    def probability(self, window: Samples) -> float:
        """How sure it is, 0..1, that the next window holds speech. Takes well under a millisecond."""
        ...

    def reset(self) -> None:
        """Forget what was heard: the next window begins another stream."""
        ...


class SpeechDetector(Protocol):
    """Tells speech from silence. Loaded once; every session opens a stream of its own."""

    @property
    def rate_hz(self) -> int:
        """The sample rate that it wants."""
        ...

    @property
    def window_samples(self) -> int:
        """How many samples a window has."""
        ...

    def open(self) -> SpeechStream:
        """Begin to listen to one stream."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said."""

    text: str
    """The words; empty if nothing was said."""
    score: float = 0.0
    """Mean log probability of its tokens: 0 is certain, below -1 is a guess."""
    no_speech: float = 0.0
    """How sure the recognizer is, 0..1, that nothing was said."""


class Recognizer(Protocol):
    """Turns speech into text."""

    @property
    def rate_hz(self) -> int:
        """The sample rate that it wants."""
        ...

    async def recognize(
        self, samples: Samples, *, owner: str, language: str | None = None, speculative: bool = False
    ) -> Transcript:
        """Transcribe one utterance, of any length.

        Args:
            samples: The utterance.
            owner: The session that asks.
            language: ISO 639-1, where the recognizer knows more than one language; None: its default.
            speculative: The result may turn out not to be needed: all other work goes first.

        Raises:
            BusyError: Too much of this owner's work is waiting.
            ModelError: It failed.
        """
        ...

    async def aclose(self) -> None:
        """Give up what it holds."""
        ...


class TurnJudge(Protocol):
    """Tells by the sound of a turn whether it is over. What its words say is another matter."""

    @property
    def rate_hz(self) -> int:
        """The sample rate that it wants."""
        ...

    async def finished(self, samples: Samples, *, owner: str) -> float:
        """How sure it is, 0..1, that whoever spoke has finished.

        Args:
            samples: The turn so far, up to the pause behind it.
            owner: The session that asks.

        Raises:
            BusyError: Too much of this owner's work is waiting.
            ModelError: It failed.
        """
        ...

    async def aclose(self) -> None:
        """Give up what it holds."""
        ...


# -- speaking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """One sentence, spoken."""

    pcm: bytes = b""
    """PCM16, mono, at the synthesizer's rate. Empty if the text cannot be spoken."""
    words: tuple[tuple[str, int], ...] = ()
    """Each word with the white space before it, and the millisecond of `pcm` at which it has been said."""


class Synthesizer(Protocol):
    """Turns text into speech."""

    @property
    def rate_hz(self) -> int:
        """The sample rate of what it gives."""
        ...

    async def synthesize(self, text: str, *, owner: str, speed: float = 1.0, later: bool = False) -> Speech:
        """Speak one sentence of plain text (`speakable.py` makes it plain). What cannot be spoken gives no samples.

        Args:
            text: The sentence.
            owner: The session that asks.
            speed: 1.0 is the voice's own pace.
            later: What is spoken before it is still being heard: all that somebody waits for goes first.

        Raises:
            BusyError: Too much of this owner's work is waiting.
            ModelError: It failed.
        """
        ...

    async def aclose(self) -> None:
        """Give up what it holds."""
        ...


# -- seeing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was found in a picture."""

    lines: tuple[str, ...] = ()
    """The lines of text that it shows, from top to bottom."""
    width: int = 0
    """Its width in pixels, after rotation."""
    height: int = 0
    """Its height in pixels, after rotation."""
    brightness: float = 0.0
    """Its mean luma, 0 (black) to 1 (white)."""
    color: str = ""
    """The name of the color that most of it has."""


class Eyes(Protocol):
    """Looks at pictures."""

    async def look(self, picture: ImageContent, *, owner: str, read: bool = True) -> Sight:
        """Say what a picture shows.

        Args:
            picture: The picture; what was found in it is remembered as long as it lives.
            owner: The session that asks.
            read: Also find the words in it, which takes longer.

        Raises:
            ImageError: It cannot be decoded.
            ModelError: They failed.
        """
        ...

    async def prepare(self) -> None:
        """Make ready to read, when there is time: a picture was shown, and somebody may ask."""
        ...

    async def aclose(self) -> None:
        """Give up what they hold."""
        ...


# -- thinking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the responder may call."""

    name: str
    """Its name."""
    description: str = ""
    """What it does."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More of the reply's text."""

    text: str
    """What is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A wish to call a tool, whole."""

    name: str
    """Which tool."""
    arguments: str
    """Its arguments as JSON."""
    call_id: str = ""
    """The responder's id of it; empty: the session makes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRequest:
    """What a reply is wanted to."""

    messages: Sequence[ChatMessage]
    """The conversation, oldest first: what was typed, said, shown and called. Never changed."""
    owner: str
    """The session, for `Eyes`."""
    instructions: str = ""
    """What the responder is told about its part."""
    tools: Sequence[Tool] = ()
    """What it may call."""
    tool_choice: Literal["auto", "none", "required"] = "auto"
    """Whether it may, must not or must call a tool. With one tool and `required`, that one is forced."""
    max_output_tokens: int | None = None
    """How long the reply may be; the session enforces it."""
    is_spoken: bool = True
    """Whether the reply will be read aloud."""


class Responder(Protocol):
    """Makes replies: the brain."""

    @property
    def name(self) -> str:
        """What `session.model` says."""
        ...

    def respond(self, request: ReplyRequest) -> AsyncIterator[TextDelta | ToolCall]:
        """Reply, piece by piece. It is closed (`aclose`) when the reply is not wanted any more.

        Raises:
            ModelError: It cannot; the response fails with its code and words.
        """
        ...

    async def aclose(self) -> None:
        """Give up what it holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a server runs."""

    detector: SpeechDetector
    """Tells speech from silence."""
    recognizer: Recognizer
    """Speech to text."""
    synthesizer: Synthesizer
    """Text to speech."""
    eyes: Eyes
    """Pictures to words."""
    responder: Responder
    """The brain."""
    judge: TurnJudge | None = None
    """Turns by their sound, for semantic turn detection; None: their words decide alone."""

    async def aclose(self) -> None:
        """Give up what they hold."""
        if self.judge is not None:
            await self.judge.aclose()
        await self.recognizer.aclose()
        await self.synthesizer.aclose()
        await self.eyes.aclose()
        await self.responder.aclose()
