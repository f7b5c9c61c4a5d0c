"""A real browser, a real server, a real model: started once, shared by all browser tests of a process.

The browser's microphone is a file that begins anew whenever it is opened: silence, one spoken question, then silence for
ever. Its camera is a film of a sign. Everything runs on this machine, without a network.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

QUESTION = "What does the sign say?"
SIGN = ("FRESH BREAD", "OPEN UNTIL SIX")
HANG_MS = 150_000  # a guard, not an expectation: the process that reads signs starts slowly on a busy machine
_LEAD_SECONDS = 1.0

expect.set_options(timeout=HANG_MS)

# What a page's connections are is asked of the browser itself: every peer connection that it makes is noted.
_NOTE_PEERS = """
window.peers = [];
window.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(...options) {
    super(...options);
    window.peers.push(this);
    this.addEventListener("track", ({ track }) => window.listenTo?.(track));
  }
};
window.stats = async (type, kind) => {
  const found = [];
  for (const one of (await window.peers.at(-1).getStats()).values()) {
    if (one.type === type && (!kind || one.kind === kind)) found.push(one);
  }
  return found;
};
"""


def find_chromium() -> str:
    """The browser, wherever it is; without one these tests are not run, which CI does not accept."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI"):
        pytest.fail("Chromium is not installed, and here the browser tests have to run")
    pytest.skip("Chromium is not installed")


class Server:
    """The tests' server, in a process of its own."""

    def __init__(self, llm_url: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("server.py")), "--llm", llm_url]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = ""
        for line in self._process.stdout or ():
            if line.startswith("listening on "):
                self.url = line.split()[-1] + "/"
                break
        assert self.url, f"the server did not start: {self._process.wait(10)}"
        # Whatever it says later is read, so that it never waits for us.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def facts(self) -> dict[str, Any]:
        """What its sessions hold."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request("GET", "/facts")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._process.stdin.close()
        self._process.wait(30)
        self._reader.join(10)
        self._process.stdout.close()


class Visitor:
    """Somebody in front of the page."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server

    def arrive(self, room: str = "") -> None:
        """Open the page."""
        self.page.goto(self.server.url + room)
        expect(self.page.locator("#model")).not_to_be_empty()

    def begin(self, *, microphone: bool = False, camera: bool = False) -> None:
        """Begin a call with these switched on, and be connected."""
        for name, on in (("microphone", microphone), ("camera", camera)):
            switch = self.page.locator(f"#use-{name}")
            if (switch.get_attribute("aria-checked") == "true") != on:
                switch.click()
        self.page.click("#start")
        self.connected()

    def call_id(self) -> str:
        """The call that the page is in."""
        self.until("() => sessionStorage.getItem('realtime.call')")
        return json.loads(self.page.evaluate("() => sessionStorage.getItem('realtime.call')"))["identity"]["call"]

    def session(self) -> dict[str, Any]:
        """What the session of this call holds, asked of the server."""
        return self.server.facts()["calls"][self.call_id()]

    def measured(self) -> None:
        """Wait until what the page reports decides what was heard; it is a while away when the machine is busy."""
        ends = time.monotonic() + HANG_MS / 1000
        while not self.session()["measured"]:
            assert time.monotonic() < ends, "the page never told what it has heard"
            self.page.wait_for_timeout(50)

    def leave(self) -> None:
        """Hang up, if there is something to hang up."""
        if not self.page.is_closed() and self.page.locator("#end").is_visible():
            self.page.evaluate("() => document.querySelector('#end').click()")

    def connected(self) -> None:
        """Wait until sound flows; a call that ended instead says why."""
        self.until("() => document.querySelector('#link[data-link=live], [data-state=lobby] .notice')")
        link = self.page.locator("#link").get_attribute("data-link")
        assert link == "live", self.page.locator("#notices").inner_text()

    def speak(self) -> None:
        """Open the microphone of a call that was begun without one: the question comes out of it, once, and all of it is sent."""
        assert self.page.locator("#use-microphone").get_attribute("aria-checked") == "false"
        self.page.click("#mute")

    def say(self, text: str) -> None:
        """Write something."""
        self.page.fill("#text", text)
        self.page.press("#text", "Enter")

    def line(self, role: str, text: str = "") -> Any:
        """The newest caption of a side, with these words in it."""
        return self.page.locator(f'.line[data-role="{role}"]:not([data-growing])').filter(has_text=text).last

    def until(self, expression: str, argument: Any = None) -> None:
        """Wait until something is true in the page. (The browser driver's own wait takes a promise for true.)"""
        ends = time.monotonic() + HANG_MS / 1000
        while not self.page.evaluate(f"async (argument) => Boolean(await ({expression})(argument))", argument):
            assert time.monotonic() < ends, f"this never came true: {expression}"
            self.page.wait_for_timeout(50)

    def hear(self, seconds: float = 1.5) -> None:
        """Wait until the reply has sounded in the page for so long."""
        self.until(
            """async (seconds) => {
              const [sound] = await stats("inbound-rtp", "audio");
              if (window.since === undefined && sound?.audioLevel > 0.01) window.since = sound.totalSamplesDuration;
              return sound?.totalSamplesDuration - window.since > seconds;
            }""",
            seconds,
        )


# -- what the microphone hears and the camera sees ----------------------------------------------------------------------


@pytest.fixture(scope="session")
def microphone_file(speech: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A moment of silence and the question."""
    with wave.open(str(speech(QUESTION))) as file:
        rate, pcm = file.getframerate(), file.readframes(file.getnframes())
    path = tmp_path_factory.mktemp("microphone") / "question.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(int(rate * _LEAD_SECONDS) * 2) + pcm + bytes(rate))
    return path


@pytest.fixture(scope="session")
def camera_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of a sign."""
    picture = Image.new("RGB", (640, 360), (166, 196, 222))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((110, 80, 530, 280), 14, fill=(22, 66, 48), outline=(240, 240, 230), width=5)
    for row, line in enumerate(SIGN):
        draw.text((320, 145 + 75 * row), line, font=ImageFont.load_default(size=46), fill="white", anchor="mm")
    encoded = io.BytesIO()
    picture.save(encoded, "JPEG", quality=90)
    path = tmp_path_factory.mktemp("camera") / "sign.mjpeg"
    path.write_bytes(encoded.getvalue() * 20)
    return path


# -- server, browser, visitors ------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def server(llm_url: str) -> Iterator[Server]:
    """The server, with the one local LLM behind it."""
    server = Server(llm_url)
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser(microphone_file: Path, camera_file: Path) -> Iterator[Browser]:
    """One browser. It ends with the module: its loop must not be there when tests with a loop of their own run."""
    executable = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=[
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={microphone_file}%noloop",
                f"--use-file-for-fake-video-capture={camera_file}",
                "--autoplay-policy=no-user-gesture-required",
            ],
        )
        yield browser
        browser.close()


def _is_of_a_picture_that_left(message: ConsoleMessage) -> bool:
    """Between the inspector's look at the conversation and the browser's question a picture may have been trimmed."""
    return "404" in message.text and "/pictures/" in message.location.get("url", "")


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Callable[..., Visitor]]:
    """Let somebody come to the page, each with a browser profile of their own. What a page complains about is a failure."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []
    complaints: list[str] = []

    def come(room: str = "", *, arrive: bool = True, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.add_init_script(_NOTE_PEERS)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(HANG_MS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(f"{message.text} ({message.location.get('url', '')})")
                if message.type in {"error", "warning"} and not _is_of_a_picture_that_left(message)
                else None
            ),
        )
        visitor = Visitor(page, server)
        visitors.append(visitor)
        if arrive:
            visitor.arrive(room)
        return visitor

    yield come
    for visitor in visitors:
        visitor.leave()
    for context in contexts:
        context.close()
    assert not complaints, complaints


@pytest.fixture
def visitor(visit: Callable[..., Visitor]) -> Visitor:
    """Somebody at the page."""
    return visit()


# -- ears ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def transcribe() -> Callable[[bytes], str]:
    """Find the words in a recording that a browser made."""
    import av

    from realtime.local.recognizer import WhisperRecognizer
    from realtime.local.weights import whisper_tiny
    from realtime.local.workers import FairPool

    recognizer = WhisperRecognizer(FairPool(1), whisper_tiny())

    def find_words(recording: bytes) -> str:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=16_000)
        pieces = []
        with av.open(io.BytesIO(recording)) as container:
            for frame in container.decode(audio=0):
                pieces += [part.to_ndarray()[0] for part in resampler.resample(frame)]
        samples = np.concatenate(pieces)
        loud = np.flatnonzero(np.abs(samples) > 0.01)
        assert loud.size, "nothing was played"
        return recognizer.transcribe(samples[max(0, loud[0] - 4_000) : loud[-1] + 4_000]).text

    return find_words


def start_recording(page: Page) -> None:
    """Record what the page plays, over whichever connection it comes."""
    page.evaluate(
        """() => {
          const context = new AudioContext();
          const ears = context.createMediaStreamDestination();
          window.listenTo = (track) => context.createMediaStreamSource(new MediaStream([track])).connect(ears);
          window.listenTo(peers.at(-1).getReceivers()[0].track);
          window.pieces = [];
          window.recorder = new MediaRecorder(ears.stream);
          window.recorder.ondataavailable = ({ data }) => window.pieces.push(data);
          window.recorder.start();
        }"""
    )


def stop_recording(page: Page) -> bytes:
    """What was played since, as the browser recorded it."""
    encoded = page.evaluate(
        """() => new Promise((resolve) => {
          window.recorder.onstop = () => {
            const reader = new FileReader();
            reader.onload = () => resolve(reader.result.split(",")[1]);
            reader.readAsDataURL(new Blob(window.pieces));
          };
          window.recorder.stop();
        })"""
    )
    return base64.b64decode(encoded)


@pytest.fixture
def recording() -> tuple[Callable[[Page], None], Callable[[Page], bytes]]:
    """Start and stop the recording of what a page plays."""
    return start_recording, stop_recording
