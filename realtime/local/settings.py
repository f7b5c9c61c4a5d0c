"""What a user chooses for the local server.

Owns: `LlmSettings`. Driven by the command line, and by whoever runs the server in their own process. Never acts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from realtime.core.settings import check_count, check_number
from realtime.errors import ArgumentError

__all__ = ["LlmSettings"]

JUDGES = ("auto", "smart-turn", "none")
_URL = ("http://", "https://")
_ORIGIN = re.compile(r"null|file://|[A-Za-z][\w+.-]*://[^/?#\s]+/?")
"""A page that is a file has one of the first two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    """Everything that `realtime llm` can be told."""

    host: str = "127.0.0.1"
    """Where it listens; the default is for this machine alone."""
    port: int = 8765
    """The port; 0: any that is free."""
    max_sessions: int = 8
    """Sessions at once; one more is told that the server is full."""
    silence_ms: int = 200
    """How much silence ends a turn, where a client does not say."""
    threads: int = 2
    """Threads that recognize, synthesize and look, for all sessions together."""
    api_key: str | None = None
    """What clients must show as their key; None: nothing."""
    origins: tuple[str, ...] = ()
    """Web pages that may connect, such as ``https://example.com``; pages of this machine always may."""
    session_seconds: float = 3600.0
    """How long a session may live."""
    requests_per_minute: int = 600
    """How many responses a session may ask for in a minute."""
    max_message_bytes: int = 15_000_000
    """The largest wire message that is taken; one of 15 MB holds the other sessions up for about 0.1 s."""
    drain_seconds: float = 5.0
    """When told to end, how long replies under way may take to end."""

    brain: str = "rules"
    """What replies: ``rules``, ``smollm``, or the URL of an OpenAI-compatible chat endpoint."""
    brain_model: str = ""
    """The chat endpoint's model."""
    brain_key: str | None = None
    """The chat endpoint's key."""
    brain_max_tokens: int = 8_000
    """How much of a conversation the chat endpoint is sent, by estimate."""
    brain_sees: bool = True
    """False: the chat endpoint takes no pictures; what they show is put into words."""

    recognizer: str = "tiny"
    """What hears: ``tiny`` (English), ``base`` (many languages), or the URL of an OpenAI-compatible endpoint."""
    recognizer_model: str = ""
    """The endpoint's model."""
    recognizer_key: str | None = None
    """The endpoint's key."""
    model_dir: Path | None = None
    """A CTranslate2 Whisper model of one's own, instead of `recognizer`."""

    turn_judge: str = "auto"
    """What tells by its sound whether a turn is over, in semantic turn detection: ``smart-turn``, ``none`` (words decide
    alone), or ``auto``: Smart Turn if it is installed."""

    synthesizer: str = "hibari"
    """What speaks: ``hibari``, or the URL of an OpenAI-compatible endpoint."""
    synthesizer_model: str = ""
    """The endpoint's model."""
    synthesizer_voice: str = "alloy"
    """The endpoint's voice."""
    synthesizer_key: str | None = None
    """The endpoint's key."""

    def __post_init__(self) -> None:
        """Check every range."""
        if not self.host:  # an empty variable of a shell; the system takes it for every address
            raise ArgumentError(
                "host", self.host, "an address to listen on, such as 127.0.0.1, or 0.0.0.0 for every one"
            )
        check_count("port", self.port)
        if self.port > 65_535:
            raise ArgumentError("port", self.port, "at most 65535")
        check_count("max_sessions", self.max_sessions, least=1)
        check_count("silence_ms", self.silence_ms)
        if self.silence_ms > 60_000:
            raise ArgumentError("silence_ms", self.silence_ms, "at most 60000")
        check_count("threads", self.threads, least=1)
        check_number("session_seconds", self.session_seconds, above=True)
        check_count("requests_per_minute", self.requests_per_minute, least=1)
        check_count("max_message_bytes", self.max_message_bytes, least=1000)
        check_number("drain_seconds", self.drain_seconds)
        check_count("brain_max_tokens", self.brain_max_tokens, least=1)
        for name in ("api_key", "brain_key", "recognizer_key", "synthesizer_key"):
            if getattr(self, name) == "":
                raise ArgumentError(name, "", "a key, or None for none")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ArgumentError("origins", origin, "origins of web pages, such as https://example.com")
        if self.turn_judge not in JUDGES:
            raise ArgumentError("turn_judge", self.turn_judge, ", ".join(repr(name) for name in JUDGES))
        self._check_part("brain", ("rules", "smollm"))
        self._check_part("recognizer", ("tiny", "base"))
        self._check_part("synthesizer", ("hibari",))

    def _check_part(self, part: str, embedded: tuple[str, ...]) -> None:
        """A part is one of the embedded ones, or an endpoint whose model is named."""
        value = getattr(self, part)
        if value in embedded:
            return
        if not value.startswith(_URL):
            choices = ", ".join(repr(name) for name in embedded)
            raise ArgumentError(part, value, f"{choices} or the http(s) URL of an endpoint")
        if not getattr(self, f"{part}_model"):
            raise ArgumentError(f"{part}_model", "", "the name of the endpoint's model")
