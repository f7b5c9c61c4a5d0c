"""A local LLM in a process of its own, and what is said and shown to it.

The clients hold `websockets` back, so they live in an environment of their own. The server runs in the one that
`REALTIME_PYTHON` names, or in this one. What is said to it is spoken by its own voice: the environment of the clients
needs nothing to speak with.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from websockets.sync.client import connect

HERE = Path(__file__).parent
KEY = "s3cret"
WEATHER = "What is the weather in London?"
SIGN = "What does the sign say?"
STORY = "Tell me a story."
SUM = "What is twelve times seven?"
FOG = "It is foggy in London today."
LONG_STORY = " ".join(
    f"On day {number} the old sailor looked out at the grey sea and saw nothing." for number in range(1, 9)
)
_START_SECONDS = 120


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The tests of the main environment leave these alone: their clients are not installed there."""
    return True if config.rootpath != HERE and collection_path.name.startswith("test_client_") else None


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """The address of a local LLM, as clients of OpenAI's write it."""
    python = os.environ.get("REALTIME_PYTHON", sys.executable)
    command = [python, "-m", "realtime.local", "--port", "0", "--exit-with-stdin"]
    environment = {**os.environ, "REALTIME_API_KEY": KEY}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdin is not None
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on ws://"), f"the local LLM did not start: exit code {process.wait(10)}"
    yield line.split()[-1].replace("ws://", "http://").removesuffix("/realtime")
    process.stdin.close()
    process.stdout.close()
    process.wait(60)


@pytest.fixture(scope="session")
def say(base_url: str) -> Callable[[str], bytes]:
    """A sentence and the silence behind it: PCM16 at 24 kHz, spoken by the server's own voice."""
    made: dict[str, bytes] = {}

    def speak(text: str) -> bytes:
        if text not in made:
            made[text] = bytes(4_800) + _ask_to_say(base_url, text) + bytes(2 * 24 * 600)
        return made[text]

    return speak


def _ask_to_say(base_url: str, text: str) -> bytes:
    url = base_url.replace("http://", "ws://") + "/realtime"
    headers = {"Authorization": f"Bearer {KEY}"}
    pcm = b""
    with connect(url, additional_headers=headers, open_timeout=_START_SECONDS) as connection:
        response = {"instructions": f'Say exactly: "{text}"'}
        connection.send(json.dumps({"type": "response.create", "response": response}))
        while True:
            event = json.loads(connection.recv(_START_SECONDS))
            if event["type"] == "response.output_audio.delta":
                pcm += base64.b64decode(event["delta"])
            elif event["type"] == "response.done":
                return pcm


@pytest.fixture(scope="session")
def sign() -> bytes:
    """A JPEG of a sign that says PLATFORM 9."""
    image = Image.new("RGB", (640, 360), "navy")
    ImageDraw.Draw(image).text((40, 120), "PLATFORM 9", font=ImageFont.load_default(72), fill="white")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80)
    return file.getvalue()


def chunks(pcm: bytes, *, ms: int = 40) -> Iterator[bytes]:
    """As a microphone gives it."""
    step = 2 * 24 * ms
    return (pcm[start : start + step] for start in range(0, len(pcm), step))
