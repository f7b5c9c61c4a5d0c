"""Every example runs as its docstring says, is short, and tells what it claims."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from aiortc import RTCSessionDescription
from websockets.asyncio.client import connect

from realtime.pcm import read_wav
from realtime.testing import ScriptedPhone, SyntheticPeer

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


@contextlib.contextmanager
def _serve(name: str, *arguments: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """Run an example that serves; gives its address, and the process that prints what happens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(FOLDER / name), "--port", str(port), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        assert f":{port}" in process.stdout.readline()
        _until_open(port, process)
        yield f"http://127.0.0.1:{port}", process
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def _until_open(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        assert process.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("the example does not listen")


def _says(process: subprocess.Popen[str], pattern: str) -> str:
    """Read what an example prints until a line matches."""
    assert process.stdout is not None
    read: list[str] = []
    for line in process.stdout:
        read.append(line)
        if re.search(pattern, line, re.IGNORECASE):
            return line
    raise AssertionError(f"no line matches {pattern!r} in: {''.join(read)}")


async def _ask(url: str, question: Path, picture: Path | None = None) -> bytes:
    """Call, show, ask, and hang up after the reply; gives the reply."""
    async with SyntheticPeer(picture="gray" if picture is None else picture, size=(640, 360)) as peer:
        offer = await peer.create_offer()
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            answer = (await client.post(url, json={"sdp": offer.sdp, "type": "offer"})).json()
        await peer.accept(RTCSessionDescription(answer["sdp"], answer["type"]))
        return await peer.turn(question)


def test_own_signalling_holds_a_spoken_call(llm_url: str, speech: Callable[[str], Path], tmp_path: Path) -> None:
    picture = tmp_path / "sign.png"
    _draw_sign().save(picture)
    with _serve("own_signalling.py", "--model", llm_url) as (url, process):
        foreign = urllib.request.Request(f"{url}/offer", b"{}", {"Origin": "https://evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=60)
        assert asyncio.run(_ask(f"{url}/offer", speech("What does the sign say?"), picture))
        _says(process, "^saw: camera")
        _says(process, "^user: What does the sign")
        _says(process, "^assistant: .*gate")
        _says(process, "the call is over")


def test_fastapi_app_answers_beside_its_own_routes(llm_url: str, speech: Callable[[str], Path]) -> None:
    with _serve("fastapi_app.py", "--model", llm_url) as (url, _):
        with urllib.request.urlopen(f"{url}/orders/17", timeout=60) as answer:
            assert json.load(answer) == {"number": "17", "state": "shipped yesterday"}
        with urllib.request.urlopen(f"{url}/bot/", timeout=60) as page:
            assert b"<html" in page.read()
        assert asyncio.run(_ask(f"{url}/bot/offer?name=Anna", speech("Hello there!")))


def test_screen_helper_says_what_it_was_shown_and_told(llm_url: str, speech: Callable[[str], Path]) -> None:
    with _serve("screen_helper.py", "--model", llm_url) as (url, process):
        asyncio.run(_ask(f"{url}/offer", speech("What do you see?")))
        _says(process, r"^shown: \w+ \d+×\d+")
        _says(process, "^user: What do you see")
        _says(process, "^assistant: ")


def _draw_sign() -> Any:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 360), (30, 60, 50))
    ImageDraw.Draw(picture).text((150, 130), "GATE 7", font=ImageFont.load_default(size=90), fill="white")
    return picture


def _sign(path: Path) -> Path:
    """Two seconds of a camera that looks at a sign."""
    import av

    picture = _draw_sign()
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for number in range(20):
            frame = av.VideoFrame.from_image(picture)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
