"""Every example runs as its docstring says, is short, and tells what it claims."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import connect

from realtime.pcm import read_wav
from realtime.testing import ScriptedPhone

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))

pytestmark = pytest.mark.local


def _run(name: str, *arguments: str | Path) -> str:
    command = [sys.executable, str(FOLDER / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_under_100_lines_and_is_run_here(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 100
    assert f'"{example.name}"' in Path(__file__).read_text(encoding="utf-8")


def test_text_only_answers_every_sentence_within_its_window(llm_url: str) -> None:
    sentences = ["Hello there!", *(f"This is sentence number {number} of a long talk." for number in range(8))]
    said = _run("text_only.py", "--url", llm_url, "--max-tokens", "60", *sentences)
    assert said.count("you:   ") == said.count("model: ") == 9
    assert re.search(r"messages? left the context \(window\)", said)
    history, context = map(int, re.findall(r"(\d+) messages in the history, (\d+) in the context", said)[0])
    assert history >= 18 > context


def test_text_only_starts_a_model_of_its_own() -> None:
    assert "model: " in _run("text_only.py", "Hello there!")


def test_stream_camera_frames_keeps_no_more_than_it_may(llm_url: str) -> None:
    said = _run("stream_camera_frames.py", "--url", llm_url, "--frames", "12", "--keep", "3")
    assert "12 pictures sent, 3 kept" in said
    assert "image_budget" in said
    answer = re.search(r"^model: (.*)$", said, re.MULTILINE)
    assert answer
    assert "gate" in answer[1].lower()


def test_voice_and_camera_hears_sees_and_speaks(llm_url: str, speech: Callable[[str], Path], tmp_path: Path) -> None:
    sign = _sign(tmp_path / "sign.mp4")
    question, reply = speech("What does the sign say?"), tmp_path / "reply.wav"
    said = _run("voice_and_camera.py", question, sign, "--url", llm_url, "--out", reply)
    assert "user: What does the sign" in said
    assert re.search(r"saw:   camera 1024×1024 \(\w+\)", said)
    assert re.search(r"assistant: .*gate", said, re.IGNORECASE)
    pcm, rate_hz, _ = read_wav(reply.read_bytes())
    assert len(pcm) / 2 / rate_hz > 0.5
    assert np.abs(np.frombuffer(pcm, "<i2").astype(int)).max() > 1_000


def test_phone_call_answers_a_caller_until_the_hang_up(llm_url: str, speech: Callable[[str], Path]) -> None:
    pcm, rate_hz, _ = read_wav(speech("Hello there!").read_bytes())
    said, heard_ms = asyncio.run(_phone_call(llm_url, pcm + bytes(4 * rate_hz), rate_hz))
    assert "call CA1: answered" in said
    assert "call CA1: user: Hello there" in said
    assert "call CA1: key 5" in said
    assert re.search(r"call CA1: over, \d+ ms spoken", said)
    assert heard_ms > 500


async def _phone_call(model: str, pcm: bytes, rate_hz: int) -> tuple[str, int]:
    """Say something, hear the answer, press a key, hear that answer, hang up. Gives what was printed and how long was heard."""
    arguments = (FOLDER / "phone_call.py", "--port", "0", "--calls", "1", "--model", model)
    process = await asyncio.create_subprocess_exec(sys.executable, *map(str, arguments), stdout=subprocess.PIPE)
    assert process.stdout is not None
    lines: list[str] = []

    async def wait_for(pattern: str) -> str:
        assert process.stdout is not None
        while not lines or not re.search(pattern, lines[-1]):
            line = await process.stdout.readline()
            assert line, lines
            lines.append(line.decode())
        return lines[-1]

    url = (await wait_for("listening on")).split()[-1]
    async with asyncio.timeout(100), connect(url, compression=None) as websocket:
        phone = ScriptedPhone(websocket, call_id="CA1")
        await phone.start()
        await phone.say(pcm, rate_hz=rate_hz)  # with silence behind it, which ends the turn
        listening = asyncio.create_task(_listen(phone))
        await wait_for(r"call CA1: assistant: \w+")
        await phone.press("5")
        await wait_for("key 5")
        await wait_for(r"call CA1: assistant: \w+")
        await phone.hang_up()
        await wait_for("call CA1: over")
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    assert await process.wait() == 0
    return "".join(lines), len(phone.heard) // 8


async def _listen(phone: ScriptedPhone) -> None:
    while True:
        await phone.play(40)


def _sign(path: Path) -> Path:
    """Two seconds of a camera that looks at a sign."""
    import av
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 360), (30, 60, 50))
    ImageDraw.Draw(picture).text((150, 130), "GATE 7", font=ImageFont.load_default(size=90), fill="white")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for number in range(20):
            frame = av.VideoFrame.from_image(picture)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
