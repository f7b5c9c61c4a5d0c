"""The scene that the demo shows and speaks when it is given no file: a street sign to read, and questions about it.

Owns: `SCENE_QUESTIONS`, `spoken` (a sentence as a sound) and `street` (a moving picture with words). Driven by
`demo/call.py` through the player, on a worker thread. Nothing is read from disk but the voice and a font.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

import av
import numpy as np
import soxr  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from realtime.errors import MissingExtraError
from realtime.testing.devices import FRAME_SAMPLES, SOUND_RATE_HZ, Picture

__all__ = ["SCENE_OBJECTION", "SCENE_QUESTIONS", "SIGN_LINES", "spoken", "street"]

SCENE_QUESTIONS = ("What does the sign say?", "How many pictures have you seen so far?", "Please read the sign again")
"""What is asked, one turn each."""
SCENE_OBJECTION = "Thank you, that is enough"
"""What is said into the last reply."""
SIGN_LINES = ("FRESH BREAD", "OPEN UNTIL SIX")
"""What the sign says."""

_WIDTH, _HEIGHT, _FPS = 960, 540, 15
_STREET_WIDTH = 1500
_PAN_SECONDS = 9.0
_VOICE_RATE_HZ = 24_000
_CART = ((0, 430, 90, 26, (200, 40, 40)), (26, 384, 34, 46, (40, 60, 120)))
"""Boxes of the cart: x within it, y, width, height, color."""


class _Voice(Protocol):
    def __call__(self, text: str, speed: float = 1.0, seed: int | None = None) -> NDArray[np.float32]: ...


@cache
def _voice() -> _Voice:
    try:
        # An extra, and half a second: only when a scene is spoken.
        import hibari  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise MissingExtraError("A spoken scene", extra="demo", package="hibari-tts") from error
    return cast("_Voice", hibari.Hibari())


def spoken(text: str) -> Iterator[bytes]:
    """Give a sentence, spoken, as mono PCM16 at 48 kHz in pieces of exactly 20 ms; the last one is filled with silence.

    The same text always gives the same samples.

    Raises:
        MissingExtraError: The extra `demo` is not installed.
    """
    samples = soxr.resample(_voice()(text, seed=0), _VOICE_RATE_HZ, SOUND_RATE_HZ)
    pcm = (np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes()
    size = FRAME_SAMPLES * 2
    for at in range(0, len(pcm), size):
        yield pcm[at : at + size].ljust(size, b"\0")


def street() -> Iterator[Picture]:
    """Show the street for ever: the camera pans to and fro, the sign always in view, a cart passes below it."""
    wall = np.asarray(_draw_street())
    count = 0
    while True:
        seconds = count / _FPS
        turn = (1 - math.cos(2 * math.pi * seconds / _PAN_SECONDS)) / 2
        left = round(turn * (_STREET_WIDTH - _WIDTH))
        view = wall[:, left : left + _WIDTH].copy()
        x = round((seconds * 170) % (_STREET_WIDTH + 160)) - 80 - left
        for dx, y, width, height, color in _CART:
            view[y : y + height, max(0, x + dx) : max(0, x + dx + width)] = color
        yield Picture(seconds, av.VideoFrame.from_ndarray(view, format="rgb24").reformat(format="yuv420p"))
        count += 1


def _draw_street() -> Image.Image:
    """The whole street, wider than what the camera sees."""
    picture = Image.new("RGB", (_STREET_WIDTH, _HEIGHT), (166, 196, 222))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 440, _STREET_WIDTH, _HEIGHT), fill=(104, 104, 110))
    for index, x in enumerate(range(0, _STREET_WIDTH, 250)):
        shade = 150 + 18 * (index % 3)
        draw.rectangle((x, 40 + 20 * (index % 2), x + 244, 440), fill=(shade, shade - 34, shade - 62))
        for window in range(3):
            draw.rectangle((x + 22 + 74 * window, 76, x + 72 + 74 * window, 128), fill=(70, 84, 104))
    middle = _STREET_WIDTH // 2
    draw.rounded_rectangle(
        (middle - 195, 160, middle + 195, 350), 14, fill=(22, 66, 48), outline=(240, 240, 230), width=5
    )
    font = ImageFont.load_default(size=52)
    for row, line in enumerate(SIGN_LINES):
        size = font if row == 0 else ImageFont.load_default(size=44)
        draw.text((middle, 212 + 84 * row), line, font=size, fill=(250, 250, 240), anchor="mm")
    return picture
