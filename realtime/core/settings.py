"""What a user chooses for a session, as frozen values that check themselves.

Owns: `Agent`, `ToolSpec`, `FrameSampling`, `TurnDetection`, `ReconnectPolicy`, `Prices`, `UsageLimits`, `Retention`,
`SessionSettings`. Driven by nothing; never acts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from realtime.chat.conversation import TokenUsage
from realtime.chat.window import ContextWindow
from realtime.errors import ArgumentError

__all__ = [
    "Agent",
    "AudioRetention",
    "FrameSampling",
    "Prices",
    "ReconnectPolicy",
    "Retention",
    "SessionSettings",
    "ToolSpec",
    "TurnDetection",
    "UsageLimits",
    "check_count",
    "check_name",
    "check_number",
]

AudioRetention = Literal["transcript_only", "input_audio", "output_audio", "all"]
"""Whose audio the history keeps: nobody's (the default), the user's, the model's, or both (seed: history and handoff)."""

_AUDIO_RETENTIONS = ("transcript_only", "input_audio", "output_audio", "all")


def check_count(argument: str, value: object, *, least: int = 0, none_is: str | None = None) -> None:
    """Raise `ArgumentError` unless `value` is an int of at least `least` (bool is not), or None where that means something.

    Args:
        argument: The argument's name.
        value: What was given.
        least: The smallest allowed.
        none_is: What None means; None is refused if this is not given.
    """
    if value is None and none_is is not None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        wanted = f"an int of at least {least}" + (f", or None for {none_is}" if none_is else "")
        raise ArgumentError(argument, value, wanted)


def check_number(
    argument: str,
    value: object,
    *,
    least: float = 0.0,
    most: float | None = None,
    above: bool = False,
    none_is: str | None = None,
) -> None:
    """Raise `ArgumentError` unless `value` is a finite number in range (bool is not), or None where that means something.

    Args:
        argument: The argument's name.
        value: What was given.
        least: The smallest allowed.
        most: The largest allowed; None: no bound.
        above: True: `least` itself is not allowed.
        none_is: What None means; None is refused if this is not given.
    """
    if value is None and none_is is not None:
        return
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if good:
        assert isinstance(value, (int, float))
        good = (value > least if above else value >= least) and (most is None or value <= most)
    if not good:
        bound = f"a number above {least:g}" if above else f"a number of at least {least:g}"
        wanted = (
            bound
            + (f" and at most {most:g}" if most is not None else "")
            + (f", or None for {none_is}" if none_is else "")
        )
        raise ArgumentError(argument, value, wanted)


def check_name(argument: str, value: object) -> None:
    """Raise `ArgumentError` unless `value` is a string with something in it."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(argument, value, "a non-empty string")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What the model is told of a tool, and how its calls are run. Users write functions; see `realtime.Tool`."""

    name: str
    """Unique within an agent; `[a-zA-Z0-9_-]{1,64}`."""
    description: str = ""
    """What it does, for the model."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON schema of its arguments; an object."""
    sequential: bool = False
    """True: it waits for all calls before it, and calls after it wait (behaviour.md T2)."""
    timeout_seconds: float | None = None
    """How long one call may take; None: the session's `tool_timeout_seconds`."""
    needs_approval: bool = False
    """True: the application is asked first (`ApprovalRequested`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who speaks: instructions, tools and voice. `RealtimeSession.hand_off` changes it in mid-call."""

    id: str = "agent"
    """Its name in `AgentHandoff` and in `ChatMessage.agent_id`."""
    instructions: str = ""
    """What the model is told about its part."""
    tools: tuple[Any, ...] = ()
    """Plain or async functions, or `Tool`s. Any iterable is taken."""
    voice: str | None = None
    """The model's voice; None: its default."""
    model: Any = None
    """Another model for this agent; None: the session's."""

    def __post_init__(self) -> None:
        """Check the id, copy the tools in."""
        check_name("id", self.id)
        object.__setattr__(self, "tools", tuple(self.tools))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSampling:
    """Which frames of a camera or a screen the model is shown (behaviour.md I4)."""

    fps_speaking: float = 1.0
    """Frames a second, per source, while the user speaks."""
    fps_idle: float = 0.3
    """Frames a second, per source, otherwise; 0: none."""
    end_of_turn: bool = True
    """Also keep the newest frame within the user's speech when the turn ends, if none is as fresh."""
    min_change: float = 1.5
    """A scheduled frame is skipped if its 32×32 thumbnail differs from the last kept one by less than this mean luma
    difference (0–255). 0: never skipped."""
    max_gap_seconds: float = 10.0
    """An unchanged picture is kept all the same when the last kept frame is this old."""
    max_age_seconds: float = 2.0
    """A frame that waited longer than this before it could be sent is dropped."""
    decode: Literal["wanted", "all"] = "wanted"
    """Of the video of an attached peer connection: `wanted`: only frames that will be looked at are decoded, and the sender
    is asked for a key frame when one is; `all`: every frame, which costs four to eight times as much and asks for nothing. If the
    worker is behind as a key frame comes, what waited before that is left out, and counted (`TrackStatistics.undecoded`)."""

    def __post_init__(self) -> None:
        """Check every range."""
        if self.decode not in ("wanted", "all"):
            raise ArgumentError("decode", self.decode, "'wanted' or 'all'")
        check_number("fps_speaking", self.fps_speaking)
        check_number("fps_idle", self.fps_idle)
        check_number("min_change", self.min_change, most=255)
        check_number("max_gap_seconds", self.max_gap_seconds, above=True)
        check_number("max_age_seconds", self.max_age_seconds, above=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDetection:
    """Who decides when the user has finished."""

    mode: Literal["server", "semantic", "manual"] = "server"
    """`server`: the provider, by silence; `semantic`: the provider, by what is said; `manual`: `commit_audio()`."""
    threshold: float | None = None
    """How sure of speech, 0–1, for `server`; None: the provider's default."""
    silence_ms: int | None = None
    """How much silence ends a turn, for `server`; None: the provider's default."""
    prefix_padding_ms: int | None = None
    """How much audio before the speech belongs to it, for `server`; None: the provider's default."""
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    """How soon a turn is taken to be over, for `semantic`."""
    create_response: bool = True
    """The end of a turn asks for a response."""
    interrupt_response: bool = True
    """The user's speech interrupts a running reply."""

    def __post_init__(self) -> None:
        """Check every range."""
        if self.mode not in ("server", "semantic", "manual"):
            raise ArgumentError("mode", self.mode, "'server', 'semantic' or 'manual'")
        if self.eagerness not in ("low", "medium", "high", "auto"):
            raise ArgumentError("eagerness", self.eagerness, "'low', 'medium', 'high' or 'auto'")
        check_number("threshold", self.threshold, most=1.0, none_is="the provider's default")
        check_count("silence_ms", self.silence_ms, none_is="the provider's default")
        check_count("prefix_padding_ms", self.prefix_padding_ms, none_is="the provider's default")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectPolicy:
    """What happens when the connection to the provider drops (behaviour.md L1, L2)."""

    enabled: bool = True
    """False: a dropped connection ends the session with `LinkLost`."""
    max_attempts: int | None = 20
    """Attempts in a row before giving up; None: for ever."""
    first_delay_seconds: float = 0.25
    """Wait before the second attempt; the first is made at once."""
    max_delay_seconds: float = 10.0
    """The wait doubles up to this."""
    jitter: float = 0.25
    """Each wait is spread by this share, so that many sessions do not come back at once."""
    connect_timeout_seconds: float = 10.0
    """One attempt may take this long, handshake included."""
    replay_audio_seconds: float = 30.0
    """How much uncommitted and gap audio is kept to be sent again."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_count("max_attempts", self.max_attempts, least=1, none_is="no end of them")
        check_number("first_delay_seconds", self.first_delay_seconds)
        check_number("max_delay_seconds", self.max_delay_seconds)
        check_number("jitter", self.jitter, most=1.0)
        check_number("connect_timeout_seconds", self.connect_timeout_seconds, above=True)
        check_number("replay_audio_seconds", self.replay_audio_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a model costs, by its provider's list, in any one currency. Tokens are priced by the million."""

    input_text: float = 0.0
    """Text that goes in."""
    input_audio: float | None = None
    """Audio that goes in; None: as text."""
    input_image: float | None = None
    """Pictures that go in, by their tokens; None: as text."""
    cached_input: float | None = None
    """What the provider served from its cache, of any kind; None: as if it had not. Text is taken to be cached first."""
    output_text: float = 0.0
    """Text that comes out."""
    output_audio: float | None = None
    """Audio that comes out; None: as text."""
    image: float = 0.0
    """Each picture sent, where the provider prices them so."""
    minute: float = 0.0
    """Each minute of the session, where the provider prices it so."""

    def __post_init__(self) -> None:
        """Check that no price is negative."""
        for name in ("input_text", "output_text", "image", "minute"):
            check_number(name, getattr(self, name))
        for name in ("input_audio", "input_image", "output_audio"):
            check_number(name, getattr(self, name), none_is="the price of text")
        check_number("cached_input", self.cached_input, none_is="the price of input")

    def cost(self, usage: TokenUsage, *, images: int = 0, seconds: float = 0.0) -> float:
        """What a use costs.

        Args:
            usage: Tokens.
            images: Pictures sent.
            seconds: Length of the session.
        """
        audio, image = usage.input_audio_tokens, usage.input_image_tokens
        cached = usage.cached_tokens
        total = 0.0
        for tokens, price in (
            (max(0, usage.input_tokens - audio - image), self.input_text),
            (audio, _or(self.input_audio, self.input_text)),
            (image, _or(self.input_image, self.input_text)),
        ):
            from_cache = min(tokens, cached)
            cached -= from_cache
            total += (tokens - from_cache) * price + from_cache * _or(self.cached_input, price)
        total += max(0, usage.output_tokens - usage.output_audio_tokens) * self.output_text
        total += usage.output_audio_tokens * _or(self.output_audio, self.output_text)
        return total / 1_000_000 + images * self.image + seconds / 60 * self.minute


def _or(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimits:
    """What a session may use. When a limit is reached the session ends with `UsageLimitExceeded`, after the running reply.

    What a continued `conversation` has used counts.
    """

    max_tokens: int | None = None
    """Tokens of all responses together; None: no limit."""
    max_responses: int | None = None
    """Responses; None: no limit."""
    max_seconds: float | None = None
    """Seconds since the session began; None: no limit."""
    max_images: int | None = None
    """Pictures sent; None: no limit. It is reached when one more is wanted, which is not sent."""
    max_cost: float | None = None
    """Money, in the currency of `prices`; None: no limit."""
    prices: Prices | None = None
    """What the model costs; needed with `max_cost`."""

    def __post_init__(self) -> None:
        """Check every range."""
        check_count("max_tokens", self.max_tokens, none_is="no limit")
        check_count("max_responses", self.max_responses, none_is="no limit")
        check_number("max_seconds", self.max_seconds, none_is="no limit")
        check_count("max_images", self.max_images, none_is="no limit")
        check_number("max_cost", self.max_cost, none_is="no limit")
        if self.prices is not None and not isinstance(self.prices, Prices):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("prices", self.prices, "a Prices, or None")
        if self.max_cost is not None and self.prices is None:
            raise ArgumentError(
                "prices", self.prices, "given with max_cost: what the model costs, by its provider's list"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many pictures and how much audio the session keeps (behaviour.md R1, R2)."""

    audio: AudioRetention = "transcript_only"
    """Whose audio is kept."""
    audio_max_seconds: float | None = 1800
    """Seconds of audio kept, both speakers and turns in progress together; 0 none, None unbounded."""
    images_every_n: int = 1
    """Keep the first picture sent and then one of every N."""
    images_max: int | None = 100
    """Pictures kept; 0 none, None unbounded."""
    max_history_messages: int = 10_000
    """Messages kept in the history; the oldest whole units leave first."""
    mirror_evictions: bool = False
    """True: what leaves the history's budgets is deleted in the provider's conversation too."""

    def __post_init__(self) -> None:
        """Check every range, naming the session's arguments."""
        if self.audio not in _AUDIO_RETENTIONS:
            raise ArgumentError("audio_retention", self.audio, "one of " + ", ".join(map(repr, _AUDIO_RETENTIONS)))
        check_number("retain_audio_max_seconds", self.audio_max_seconds, none_is="no bound")
        check_count("retain_images_every_n", self.images_every_n, least=1)
        check_count("retain_images_max", self.images_max, none_is="no bound")
        check_count("max_history_messages", self.max_history_messages, least=1)

    @property
    def keeps_input_audio(self) -> bool:
        """Whether the user's audio is kept."""
        return self.audio in ("input_audio", "all") and self.audio_max_seconds != 0

    @property
    def keeps_output_audio(self) -> bool:
        """Whether the model's audio is kept."""
        return self.audio in ("output_audio", "all") and self.audio_max_seconds != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Everything that `SessionMachine` needs to know about one session."""

    agent: Agent = field(default_factory=Agent)
    """Who speaks first."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools of `agent`, as the model is told of them."""
    window: ContextWindow = field(default_factory=ContextWindow)
    """What the model may hold."""
    retention: Retention = field(default_factory=Retention)
    """What the session keeps."""
    sampling: FrameSampling = field(default_factory=FrameSampling)
    """Which frames the model is shown."""
    turn_detection: TurnDetection = field(default_factory=TurnDetection)
    """Who decides when the user has finished."""
    transcription: str = "auto"
    """`auto`: the provider's default model; `off`: none; else the transcription model's name."""
    output: Literal["audio", "text"] = "audio"
    """Whether the model speaks or writes."""
    reconnect: ReconnectPolicy = field(default_factory=ReconnectPolicy)
    """What happens when the connection drops."""
    usage_limits: UsageLimits = field(default_factory=UsageLimits)
    """What the session may use."""
    usage_before: TokenUsage = field(default_factory=TokenUsage)
    """What the conversation had used before this session; limits keep counting from here."""
    memory_limit_bytes: int | None = None
    """Hard cap on what the session holds (behaviour.md R5); None: none."""
    resume_after_ms: int = 0
    """A barge-in without words behind it within this time after the sound resumes the reply; 0: never. With it the session
    asks for responses itself, once the user's words are known, so that a cough neither interrupts nor is answered."""
    tool_timeout_seconds: float = 30.0
    """How long a tool call may take, unless the tool says otherwise."""
    image_detail: str = "auto"
    """`detail` of sampled frames: `auto`, `low` or `high`."""

    def __post_init__(self) -> None:
        """Check what has no type of its own."""
        check_count("memory_limit_bytes", self.memory_limit_bytes, least=1, none_is="no cap")
        check_count("resume_after_ms", self.resume_after_ms)
        if self.resume_after_ms and (self.transcription == "off" or self.turn_detection.mode == "manual"):
            raise ArgumentError("resume_after_ms", self.resume_after_ms, "0 without transcription or turn detection")
        check_number("tool_timeout_seconds", self.tool_timeout_seconds, above=True)
        if self.output not in ("audio", "text"):
            raise ArgumentError("output", self.output, "'audio' or 'text'")
