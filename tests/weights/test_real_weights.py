"""SmolLM2, Whisper base and Smart Turn, run for real: each alone, and all in one server that somebody calls."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import connect

from realtime.local.recognizer import WhisperRecognizer
from realtime.local.smart_turn import SmartTurn
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.weights import whisper_base
from realtime.local.workers import FairPool
from realtime.media.resample import Resampler
from realtime.pcm import read_wav

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "media" / "speech"
SENTENCE = "he was not an ill disposed young man"
QUESTION = "Why do people like music?"
BROKEN_OFF = "Send a message to Anna and tell her that I will"
REST = "be late."
HANG_SECONDS = 120


@pytest.fixture(scope="module")
def voice() -> HibariSynthesizer:
    return HibariSynthesizer(FairPool(1))


def resampled(pcm: bytes, from_hz: int, to_hz: int) -> np.ndarray:
    resampler = Resampler(from_hz, to_hz)
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    return np.concatenate([resampler.push(samples), resampler.flush()])


def words_of(text: str) -> list[str]:
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def test_whisper_base_understands_people(voice: HibariSynthesizer) -> None:
    """Eight words, a human's where the recordings are beside the checkout: at most two of them wrong."""
    recording = RECORDINGS / "librivox-0880.wav"
    if recording.is_file():
        pcm, rate, _channels = read_wav(recording.read_bytes())
    else:
        pcm, rate = voice.speak(SENTENCE).pcm, voice.rate_hz
    recognizer = WhisperRecognizer(FairPool(1), whisper_base())
    heard = words_of(recognizer.transcribe(resampled(pcm, rate, 16_000)).text)
    assert abs(len(heard) - 8) <= 1
    assert len(set(words_of(SENTENCE)) - set(heard)) <= 2


def test_smart_turn_tells_a_whole_sentence_from_one_that_is_broken_off(voice: HibariSynthesizer) -> None:
    judge = SmartTurn(FairPool(1))
    speech = voice.speak(f"{BROKEN_OFF} {REST}")
    samples = resampled(speech.pcm, voice.rate_hz, judge.rate_hz)
    broken_off = samples[: 16 * speech.words[len(BROKEN_OFF.split()) - 1][1]]
    pause = np.zeros(16 * 64, np.float32)
    assert judge.judge(np.concatenate([samples, pause])) > 0.8
    assert judge.judge(np.concatenate([broken_off, pause])) < 0.2


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that runs all three."""
    options = ["--brain", "smollm", "--recognizer", "base", "--turn-judge", "smart-turn", "--silence-ms", "300"]
    command = [sys.executable, "-m", "realtime.local", "--port", "0", "--exit-with-stdin", *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), f"the server did not start: exit code {process.wait(10)}"
    yield line.split()[-1]
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0


async def figures(url: str) -> set[str]:
    """The lines of `/metrics`."""
    host = url.removeprefix("ws://").partition("/")[0]
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return set(answer.splitlines())


async def test_a_call_with_all_of_them(server: str, voice: HibariSynthesizer) -> None:
    """A thought that breaks off is waited for; a question for which there is no rule is answered by SmolLM2."""
    events: list[dict[str, Any]] = []

    async def speak(pcm: bytes, silence_ms: int) -> None:
        line = bytes(9_600) + pcm + bytes(48 * silence_ms)
        for start in range(0, len(line), 960):
            audio = base64.b64encode(line[start : start + 960]).decode()
            await connection.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))

    async def receive(kind: str) -> dict[str, Any]:
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                event: dict[str, Any] = json.loads(await connection.recv())
                events.append(event)
                assert event["type"] != "error", event
                if event["type"] == kind:
                    return event

    async def thought_about() -> None:
        """All that was sent is heard, and nothing is thought about any more."""
        await connection.send(json.dumps({"type": "session.update", "session": session}))
        await receive("session.updated")
        async with asyncio.timeout(HANG_SECONDS):
            while not {"realtime_llm_work_running 0", "realtime_llm_work_waiting 0"} <= await figures(server):
                pass

    async with connect(server, max_size=None, open_timeout=HANG_SECONDS) as connection:
        detection = {"type": "semantic_vad", "eagerness": "low"}
        session = {"type": "realtime", "audio": {"input": {"turn_detection": detection, "transcription": {}}}}
        await connection.send(json.dumps({"type": "session.update", "session": session}))
        speech = voice.speak(QUESTION)
        await speak(speech.pcm, 700)
        response = (await receive("response.done"))["response"]
        assert response["status"] == "completed"
        assert len(words_of(response["output"][0]["content"][0]["transcript"])) > 3
        assert events[0]["session"]["model"] == "smollm2-135m"

        speech = voice.speak(f"{BROKEN_OFF} {REST}")
        cut = 48 * speech.words[len(BROKEN_OFF.split()) - 1][1]
        before = len(events)
        await speak(speech.pcm[:cut], 900)
        await thought_about()
        await speak(speech.pcm[cut:], 900)
        await receive("response.done")
    kinds = [event["type"] for event in events]
    heard = [event["transcript"] for event in events if event["type"].endswith("input_audio_transcription.completed")]
    assert kinds[before:].count("input_audio_buffer.committed") == 1
    assert words_of(heard[0]) == words_of(QUESTION)
    assert words_of(heard[-1])[-1] == "late"


def test_the_benchmark_of_turn_detection_runs() -> None:
    """In its smallest form; the other benchmarks' tests are in tests/benchmarks."""
    script = Path(__file__).parents[2] / "benchmarks" / "bench_turns.py"
    command = [sys.executable, script, "--most", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert "Smart Turn: " in done.stdout
