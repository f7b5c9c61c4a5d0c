"""What a picture costs in tokens, by each provider's published rule (behaviour.md W1; field case B16).

Owns: `ImagePrice` and the rules by name (`image_price`). Driven by `tokens`. A price depends on the size and `detail` of a
picture, never on how its bytes are written, and is never zero. A picture whose size is unknown (an address) is priced as
1024×1024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from realtime.errors import ArgumentError

__all__ = ["IMAGE_PRICES", "ImagePrice", "OpenAITiles", "image_price"]

UNKNOWN_SIZE: Final = (1024, 1024)


class ImagePrice(Protocol):
    """A provider's rule."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """What a picture costs.

        Args:
            size: Width and height in pixels; None if unknown.
            detail: ``auto``, ``low``, ``high`` or ``original``.

        Returns:
            Tokens, at least 1.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAITiles:
    """OpenAI's tile rule: a base price and one per tile of 512×512 pixels.

    Scaled to fit 2048×2048, then so that the shorter side is 768, then cut into tiles; `low` costs the base alone, `auto` is
    priced as `high`. Nothing is enlarged. Source: OpenAI, "Images and vision", section on calculating costs,
    https://platform.openai.com/docs/guides/images-vision#calculating-costs.
    """

    base: int
    """Tokens of any picture."""
    tile: int
    """Tokens of each tile."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """See `ImagePrice`."""
        if detail == "low":
            return self.base
        width, height = size or UNKNOWN_SIZE
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height)) if min(width, height) * scale > 768 else scale
        tiles = math.ceil(width * scale / 512 - 1e-9) * math.ceil(height * scale / 512 - 1e-9)
        return self.base + self.tile * max(1, tiles)


IMAGE_PRICES: Final[Mapping[str, ImagePrice]] = {"openai-tiles": OpenAITiles(base=85, tile=170)}
"""The rules by name."""


def image_price(name: str) -> ImagePrice:
    """The rule of a name.

    Raises:
        ArgumentError: There is none.
    """
    try:
        return IMAGE_PRICES[name]
    except KeyError:
        raise ArgumentError("image_price", name, f"one of {', '.join(IMAGE_PRICES)}") from None
