"""A moving picture with sensor noise whose frames say which they are, so that what is received can be compared with what was sent.

A ground that moves by quarters of a pixel, a patch that moves before it, noise; over them a strip of large blocks, the frame's number in bits.
Whoever has the parts can draw the same frames.
"""

from __future__ import annotations

import av
import numpy as np
from PIL import Image

WIDTH, HEIGHT = 640, 480
PAN, PATCH = 256, 160
"""How far the ground moves to and fro, and the side of what moves before it."""
STRIP, BITS = 32, 16
"""The strip's height, and how many blocks it has: the number's bits, the lowest first."""
LIMITED = np.round(16 + np.arange(256) * 219 / 255).astype(np.uint8)
"""From gray to luma of limited range."""


def bounce(at: int, span: int) -> int:
    """To and fro."""
    return abs(at % (2 * span) - span)


def make_texture(rng: np.random.Generator, width: int, height: int, scale: int = 1) -> np.ndarray:
    """Shapes large and small, in each octave about as strong as in a film of a street, and edges; of so many times finer pixels."""
    width, height = scale * width, scale * height
    texture = np.zeros((height, width))
    for cell in (160, 80, 40, 20, 10, 5, 3):
        rows, columns = height // (cell * scale) + 2, width // (cell * scale) + 2
        rough = rng.normal(0, 4 * cell**0.5, (rows, columns)).astype(np.float32)
        whole = Image.fromarray(rough).resize((columns * cell * scale, rows * cell * scale), Image.Resampling.BICUBIC)
        texture += np.asarray(whole)[:height, :width]
    for _ in range(60):
        x, y = rng.integers(0, (width, height))
        high, wide = scale * rng.integers((10, 4), (90, 60))
        texture[y : y + high, x : x + wide] += rng.normal(0, 30)
    return np.clip(120 + texture, 20, 220)


class Scene:
    """Frames by their number, gray. Chromium draws the same ones from the same parts."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        fine = make_texture(rng, WIDTH + PAN + 1, HEIGHT, scale=4).reshape(HEIGHT, 4, -1).mean(axis=1)
        self.grounds = [
            fine[:, phase : phase + 4 * (WIDTH + PAN)].reshape(HEIGHT, -1, 4).mean(axis=2).round().astype(np.uint8)
            for phase in range(4)
        ]
        """The same, each a quarter of a pixel further."""
        self.patch = make_texture(rng, PATCH, PATCH).astype(np.uint8)
        self.noise = [np.clip(np.round(rng.normal(9, 3, (HEIGHT, WIDTH))), 0, 18).astype(np.uint8) for _ in range(8)]

    def gray(self, number: int) -> np.ndarray:
        """A frame."""
        at = bounce(5 * number, 4 * PAN - 1)
        gray = self.grounds[at % 4][:, at // 4 : at // 4 + WIDTH].copy()
        x, y = bounce(5 * number, WIDTH - PATCH), STRIP + bounce(3 * number, HEIGHT - STRIP - PATCH)
        gray[y : y + PATCH, x : x + PATCH] = self.patch
        gray += self.noise[number % len(self.noise)]
        bits = np.array([255 * (number >> bit & 1) for bit in range(BITS)], np.uint8)
        gray[:STRIP] = np.repeat(bits, WIDTH // BITS)
        return gray

    def judge(self, picture: av.VideoFrame) -> tuple[int, float]:
        """A received frame's number, and its PSNR in dB. Black tells the range of its luma: Chromium's is full, and VP8 does not say so."""
        luma = picture.to_ndarray()[:HEIGHT]
        blocks = luma[8 : STRIP - 8].reshape(-1, BITS, WIDTH // BITS)[:, :, 8:-8].mean(axis=(0, 2))
        number = sum(1 << bit for bit in range(BITS) if blocks[bit] > 128)
        sent = self.gray(number) if blocks.min() < 8 else LIMITED[self.gray(number)]
        error = luma[STRIP:].astype(np.int32) - sent[STRIP:]
        return number, 10 * np.log10(255**2 / np.mean(error * error))
