# ruff: noqa: INP001, S603  (documents are no package; the command is our own)
"""Make the pictures of docs/browser.md: the page in a real call with the local LLM, at three widths, light and dark.

    pip install -e '.[dev]' && python docs/screenshots.py [phone tablet desktop]

Needs Chromium. The camera is the street of `realtime demo`, the microphone asks what its sign says.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import wave
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from realtime.demo.scene import SCENE_QUESTIONS, spoken, street

FOLDER = Path(__file__).parent / "images"
SIZES = {"phone": (360, 760), "tablet": (820, 1100), "desktop": (1366, 860)}
TALE = (
    "Tell me again that the bakery bakes its bread before sunrise, that the first loaves are sold at seven, and that by six "
    "in the evening there is never anything left but crumbs and the smell of it."
)
LATER = "And that tomorrow there will be rye bread, and on Sunday nothing at all, because bakers have to sleep as well."


def make_devices(folder: Path) -> tuple[Path, Path]:
    """What the microphone hears and the camera sees, as files."""
    microphone, camera = folder / "question.wav", folder / "street.mjpeg"
    with wave.open(str(microphone), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(bytes(96_000) + b"".join(spoken(SCENE_QUESTIONS[0])) + bytes(96_000))
    with camera.open("wb") as file:
        for picture in islice(street(), 0, 135, 2):
            encoded = io.BytesIO()
            picture.frame.to_image().save(encoded, "JPEG", quality=85)
            file.write(encoded.getvalue())
    return microphone, camera


def hear(page: Page, seconds: float) -> None:
    """Wait until a reply has sounded for so long."""
    page.wait_for_selector("#stop:not([disabled])", timeout=120_000)
    page.wait_for_timeout(1000 * seconds)


def settle(page: Page, replies: int) -> None:
    """Wait until there are so many finished replies."""
    page.wait_for_function(
        "(many) => document.querySelectorAll('.line[data-role=assistant]:not([data-growing])').length >= many",
        arg=replies,
        timeout=120_000,
    )


def say(page: Page, text: str) -> None:
    """Write something."""
    page.fill("#text", text)
    page.press("#text", "Enter")


def hold_call(browser: Browser, address: str, name: str, theme: Any) -> None:
    """Hold a call and take its pictures."""
    width, height = SIZES[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=1.5)
    page.goto(address)
    page.wait_for_function("() => document.querySelector('#model').textContent")
    if name == "desktop":
        save(page, f"lobby-{theme}")
    page.click("#use-camera")
    page.click("#use-microphone")
    page.click("#start")
    page.wait_for_selector("#link[data-link=live]", timeout=120_000)
    page.click("#mute")  # the microphone is opened, and the question comes out of it
    settle(page, 1)
    say(page, TALE)
    hear(page, 3)
    page.click("#stop")
    settle(page, 2)
    say(page, LATER)
    hear(page, 2.2)
    save(page, f"{name}-{theme}")
    if name == "phone":
        page.click("#inspector-toggle")
        page.wait_for_selector(".message img")
        page.wait_for_timeout(700)
        save(page, f"inspector-{theme}")
    page.close()


def save(page: Page, name: str) -> None:
    """Keep what is to be seen now."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").save(FOLDER / f"{name}.webp", quality=82, method=6)


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "realtime", "serve", "--model", "local", "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        microphone, camera = make_devices(Path(folder))
        assert server.stdout is not None
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
                args=[
                    "--use-fake-device-for-media-stream",
                    "--use-fake-ui-for-media-stream",
                    f"--use-file-for-fake-audio-capture={microphone}%noloop",
                    f"--use-file-for-fake-video-capture={camera}",
                ],
            )
            for name in sys.argv[1:] or SIZES:
                for theme in ("light", "dark"):
                    hold_call(browser, address, name, theme)
            browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
