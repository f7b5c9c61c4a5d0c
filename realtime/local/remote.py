"""Ears and a voice at an OpenAI-compatible endpoint, instead of the embedded ones.

Owns: `RemoteRecognizer` (``/audio/transcriptions``) and `RemoteSynthesizer` (``/audio/speech``). Driven by the session
and by a running response. The endpoint is not trusted: what it says is bounded in time and bytes, and whatever goes wrong
is one `ModelError`, in whose text no key appears.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from realtime.core.settings import check_number
from realtime.errors import ArgumentError, ModelError
from realtime.local.alignment import TimedWord, align_words, split_words
from realtime.local.codecs import to_pcm16
from realtime.local.engines import load_engine
from realtime.local.parts import Samples, Speech, Transcript
from realtime.pcm import read_wav, wav_bytes

__all__ = ["Endpoint", "RemoteRecognizer", "RemoteSynthesizer"]

MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
"""The largest answer that is taken: five minutes of speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where and whom to ask."""

    url: str
    """The endpoint's base, such as ``http://127.0.0.1:8000/v1``."""
    model: str
    """The model's name there."""
    api_key: str | None = None
    """Sent as a bearer token."""
    timeout_seconds: float = 30.0
    """How long one answer may take."""

    def __post_init__(self) -> None:
        """Check them."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError("url", self.url, "an http:// or https:// URL")
        if not self.model:
            raise ArgumentError("model", self.model, "the name of the endpoint's model")
        check_number("timeout_seconds", self.timeout_seconds, above=True)


class _Caller:
    """Asks one path of an endpoint."""

    def __init__(self, endpoint: Endpoint, path: str) -> None:
        self._library = load_engine("httpx2", what="a remote recognizer or synthesizer", package="httpx2", extra="chat")
        self._endpoint = endpoint
        self._url = endpoint.url.rstrip("/") + path
        self._host = urlsplit(endpoint.url).hostname or ""
        headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._client: Any = self._library.AsyncClient(
            headers=headers, timeout=self._library.Timeout(endpoint.timeout_seconds)
        )

    async def ask(self, **request: Any) -> tuple[str, bytes]:
        """POST, and give the answer's content type and body.

        Raises:
            ModelError: It refused, failed, was too slow or said too much.
        """
        try:
            async with self._client.stream("POST", self._url, **request) as response:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_REPLY_BYTES:
                        raise ModelError(
                            f"{self._host} answered with more than {MAX_REPLY_BYTES} bytes", code="response_too_large"
                        )
                if not response.is_success:
                    text = self._redacted(bytes(body[:300]).decode("utf-8", "replace").strip())
                    raise ModelError(f"{self._host} refused: {text}", code=f"http_{response.status_code}")
                return response.headers.get("Content-Type", ""), bytes(body)
        except self._library.TimeoutException:
            text = f"{self._host} took longer than {self._endpoint.timeout_seconds:g} s"
            raise ModelError(text, code="timeout") from None
        except (self._library.HTTPError, self._library.StreamError) as error:
            text = self._redacted(f"{self._host} cannot be reached: {type(error).__name__} {error}".strip())
            raise ModelError(text, code="connection_failed") from None

    async def aclose(self) -> None:
        await self._client.aclose()

    def _redacted(self, text: str) -> str:
        key = self._endpoint.api_key
        return text.replace(key, "…") if key else text


class RemoteRecognizer:
    """A `Recognizer` at an endpoint."""

    rate_hz = 16_000

    def __init__(self, endpoint: Endpoint) -> None:
        """Describe it. Nothing is connected yet.

        Raises:
            MissingExtraError: The extra ``chat`` is not installed.
        """
        self._endpoint = endpoint
        self._caller = _Caller(endpoint, "/audio/transcriptions")

    async def recognize(
        self, samples: Samples, *, owner: str, language: str | None = None, speculative: bool = False
    ) -> Transcript:
        """Transcribe one utterance.

        Raises:
            ModelError: The endpoint failed, or what it said is no transcript.
        """
        wav = wav_bytes(to_pcm16(samples * np.float32(32768.0)).tobytes(), self.rate_hz)
        fields = {"model": self._endpoint.model, "response_format": "json"}
        if language:
            fields["language"] = language
        _kind, body = await self._caller.ask(data=fields, files={"file": ("speech.wav", wav, "audio/wav")})
        try:
            text: object = json.loads(body)["text"]
        except (ValueError, TypeError, LookupError):
            text = None
        if not isinstance(text, str):
            raise ModelError("the endpoint's transcript cannot be read", code="malformed")
        return Transcript(text=" ".join(text.split()))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()


class RemoteSynthesizer:
    """A `Synthesizer` at an endpoint. It gives no word timestamps: words share the time by their length."""

    rate_hz = 24_000

    def __init__(self, endpoint: Endpoint, *, voice: str = "alloy") -> None:
        """Describe it. Nothing is connected yet.

        Args:
            endpoint: Whom to ask.
            voice: The voice's name there.

        Raises:
            MissingExtraError: The extra ``chat`` is not installed.
        """
        self._endpoint = endpoint
        self._voice = voice
        self._caller = _Caller(endpoint, "/audio/speech")

    async def synthesize(self, text: str, *, owner: str, speed: float = 1.0, later: bool = False) -> Speech:
        """Speak one sentence.

        Raises:
            ModelError: The endpoint failed, or what it sent is no speech at 24 kHz.
        """
        if not any(char.isalnum() for char in text):
            return Speech()
        wish: Mapping[str, Any] = {
            "model": self._endpoint.model,
            "voice": self._voice,
            "input": text,
            "response_format": "pcm",
            "speed": speed,
        }
        kind, body = await self._caller.ask(json=wish)
        pcm = body
        if body[:4] == b"RIFF":
            pcm, rate, channels = read_wav(body)
            if (rate, channels) != (self.rate_hz, 1):
                text = f"the endpoint speaks at {rate} Hz with {channels} channel(s), not mono at {self.rate_hz} Hz"
                raise ModelError(text, code="malformed")
        elif "json" in kind or "text" in kind:
            raise ModelError(f"the endpoint sent {kind}, no speech", code="malformed")
        pcm = pcm[: len(pcm) // 2 * 2]
        return Speech(pcm=pcm, words=_shared_out(text, len(pcm) // 2 * 1000 // self.rate_hz))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._caller.aclose()


def _shared_out(text: str, length_ms: int) -> tuple[TimedWord, ...]:
    return align_words(split_words(text), [("", length_ms)])
