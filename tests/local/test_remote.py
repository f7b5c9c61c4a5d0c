"""Ears and a voice at an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import pytest

from realtime.errors import ArgumentError, ModelError
from realtime.local.remote import MAX_REPLY_BYTES, RemoteRecognizer, RemoteSynthesizer
from realtime.local.remote import Endpoint as Address
from realtime.pcm import read_wav, wav_bytes

from .endpoint import Answer, Endpoint, sends
from .kit import loud

T = TypeVar("T")

SAMPLES = (0.3 * np.sin(np.arange(16_000) * 0.1)).astype(np.float32)


def at(url: str, **fields: object) -> Address:
    return Address(url=url, model="whisper-1", api_key="s3cret", timeout_seconds=5.0, **fields)  # type: ignore[arg-type]


async def make(kind: Callable[[Address], T], url: str) -> T:
    """On a thread, as the server does: its certificates are read from disk."""
    return await asyncio.get_running_loop().run_in_executor(None, kind, at(url))


async def test_speech_goes_out_as_wav_and_comes_back_as_words() -> None:
    async with Endpoint(sends(b'{"text": " Hello\\n there. "}')) as endpoint:
        recognizer = await make(RemoteRecognizer, endpoint.url)
        found = await recognizer.recognize(SAMPLES, owner="a", language="de")
        await recognizer.aclose()
        path, headers, body = endpoint.requests[0]
    assert found.text == "Hello there."
    assert path == "/v1/audio/transcriptions"
    assert headers["authorization"] == "Bearer s3cret"
    for name, value in ((b"model", b"whisper-1"), (b"language", b"de"), (b"response_format", b"json")):
        assert b'name="%b"' % name in body
        assert value in body
    wav = body[body.index(b"RIFF") :]
    pcm, rate, channels = read_wav(wav[: 44 + 32_000])
    assert (len(pcm), rate, channels) == (32_000, 16_000, 1)


async def test_text_goes_out_and_comes_back_as_speech_with_shared_out_word_times() -> None:
    async with Endpoint(sends(loud(1000) + b"x", kind="audio/pcm")) as endpoint:
        synthesizer = await make(partial(RemoteSynthesizer, voice="nova"), endpoint.url)
        speech = await synthesizer.synthesize("One two three.", owner="a", speed=1.2)
        await synthesizer.aclose()
        asked = endpoint.asked()
    assert asked == {
        "model": "whisper-1",
        "voice": "nova",
        "input": "One two three.",
        "response_format": "pcm",
        "speed": 1.2,
    }
    assert speech.pcm == loud(1000)
    assert [word for word, _end in speech.words] == ["One", " two", " three."]
    assert speech.words[-1][1] == 1000
    assert 150 < speech.words[0][1] < 350


async def test_an_endpoint_may_answer_with_wav() -> None:
    async with Endpoint(sends(wav_bytes(loud(200), 24_000), kind="audio/wav")) as endpoint:
        synthesizer = await make(RemoteSynthesizer, endpoint.url)
        assert (await synthesizer.synthesize("Hi.", owner="a")).pcm == loud(200)
        await synthesizer.aclose()


async def test_what_cannot_be_spoken_is_not_asked_for() -> None:
    async with Endpoint() as endpoint:
        synthesizer = await make(RemoteSynthesizer, endpoint.url)
        assert (await synthesizer.synthesize("***", owner="a")).pcm == b""
        await synthesizer.aclose()
        assert endpoint.requests == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (sends(b"no key s3cret", status="401 Unauthorized", kind="text/plain"), "http_401"),
        (sends(b"{}"), "malformed"),
        (sends(b"[1]"), "malformed"),
        (sends(b"<html>", kind="text/html"), "malformed"),
        (sends(b"x" * (MAX_REPLY_BYTES + 1)), "response_too_large"),
    ],
)
async def test_faults_are_model_errors_without_the_key(answer: Answer, code: str) -> None:
    async with Endpoint(answer) as endpoint:
        recognizer = await make(RemoteRecognizer, endpoint.url)
        with pytest.raises(ModelError) as failure:
            await recognizer.recognize(SAMPLES, owner="a")
        await recognizer.aclose()
    assert failure.value.code == code
    assert "s3cret" not in str(failure.value)


@pytest.mark.parametrize(
    "answer",
    [sends(json.dumps({"error": "x"}).encode()), sends(wav_bytes(loud(100), 16_000), kind="audio/wav")],
)
async def test_what_is_no_speech_is_refused(answer: Answer) -> None:
    async with Endpoint(answer) as endpoint:
        synthesizer = await make(RemoteSynthesizer, endpoint.url)
        with pytest.raises(ModelError, match=r"no speech|16000 Hz"):
            await synthesizer.synthesize("Hi.", owner="a")
        await synthesizer.aclose()


async def test_an_endpoint_that_is_not_there_is_said_so() -> None:
    async with Endpoint() as endpoint:
        url = endpoint.url
    recognizer = await make(RemoteRecognizer, url)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1 cannot be reached"):
        await recognizer.recognize(SAMPLES, owner="a")
    await recognizer.aclose()


@pytest.mark.parametrize("bad", [{"url": "ftp://x"}, {"url": ""}, {"model": ""}, {"timeout_seconds": 0}])
def test_addresses_that_cannot_be_are_refused(bad: dict[str, object]) -> None:
    given = {"url": "http://127.0.0.1:1/v1", "model": "m", **bad}
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        Address(**given)  # type: ignore[arg-type]
