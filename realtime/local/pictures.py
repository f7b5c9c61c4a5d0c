"""Decoding a picture, and what can be told of it at a glance.

Owns: `open_picture` and `glance`. Driven by the eyes, on the server's worker pool, and by the reader in its own process.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageOps

from realtime.errors import ImageError
from realtime.local.colors import main_color
from realtime.local.parts import Sight

__all__ = ["MAX_PIXELS", "glance", "open_picture"]

MAX_PIXELS = 50_000_000
"""Larger pictures are refused before they are decoded."""


def open_picture(data: bytes) -> Image.Image:
    """Decode a picture upright, as RGB.

    Raises:
        ImageError: It cannot be decoded, or is too large.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ImageError("picture", f"{image.width}×{image.height}", f"at most {MAX_PIXELS:,} pixels")
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError("picture", f"{len(data)} bytes", f"an image that can be decoded ({error})") from None


def glance(data: bytes) -> Sight:
    """Size, brightness and main color of a picture.

    Raises:
        ImageError: It cannot be decoded.
    """
    image = open_picture(data)
    small = np.asarray(image.resize((48, 48), Image.Resampling.BOX))
    luma = small @ np.array([0.299, 0.587, 0.114])
    return Sight(width=image.width, height=image.height, brightness=float(luma.mean()) / 255.0, color=main_color(small))
