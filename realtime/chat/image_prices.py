"""What a picture costs in tokens, by each provider's published rule (behaviour.md W1; field case B16).

Owns: `ImagePrice`, the rules (`OpenAITiles`, `OpenAIPatches`, `AnthropicArea`, `GeminiTiles`, `GeminiResolution`) and their
names (`IMAGE_PRICES`, `image_price`). Driven by `tokens`. A price depends on the size and `detail` of a picture, never on
how its bytes are written, and is never zero. A picture whose size is unknown (an address) is priced as 1024×1024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from realtime.errors import ArgumentError

__all__ = [
    "IMAGE_PRICES",
    "AnthropicArea",
    "GeminiResolution",
    "GeminiTiles",
    "ImagePrice",
    "OpenAIPatches",
    "OpenAITiles",
    "image_price",
]

UNKNOWN_SIZE: Final = (1024, 1024)
"""What a picture of unknown size is priced as."""


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


def _cells(size: tuple[int, int], cell: int) -> int:
    """How many squares of `cell` pixels cover a picture."""
    return math.ceil(size[0] / cell) * math.ceil(size[1] / cell)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """The size times `scale`, in whole pixels."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _fitted(size: tuple[int, int] | None, longest: int) -> tuple[int, int]:
    """The size scaled down until its longer side fits; never up."""
    size = size or UNKNOWN_SIZE
    return _scaled(size, min(1.0, longest / max(size)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAITiles:
    """OpenAI's tile rule: a base price, and one for each tile of 512×512 pixels.

    The picture is scaled down to fit 2048×2048, then until its shorter side is 768, and cut into tiles. `low` costs the base
    alone; `auto` is priced as `high`. Nothing is enlarged. Example: 1024×1024 at 85 and 170 is 765 tokens, 2048×4096 is 1105.

    Source: OpenAI, "Images and vision", calculating costs, tile-based tokenization,
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
        fitted = _fitted(size, 2048)
        return self.base + self.tile * _cells(_scaled(fitted, min(1.0, 768 / min(fitted))), 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIPatches:
    """OpenAI's patch rule: one token for each patch of 32×32 pixels, times a factor of the model.

    The picture is scaled down until its longer side and the count of its patches are within the model's bounds for the
    `detail`; `low` shows it within 512×512. Example: 1024×1024 has 1024 patches, 1800×2400 within 1,536 patches has 1452.

    Source: OpenAI, "Images and vision", model sizing behavior and patch-based tokenization,
    https://platform.openai.com/docs/guides/images-vision#calculating-costs.
    """

    factor: float = 1.0
    """Tokens of each patch."""
    patches: int = 1536
    """Most patches at `high`."""
    original_patches: int | None = None
    """Most patches at `original`, whose longer side may have 6000 pixels; None: the model knows no `original`."""
    auto_is_original: bool = False
    """Whether `auto` is `original` rather than `high`."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """See `ImagePrice`."""
        longest, most = 2048, self.patches
        if detail == "low":
            longest = 512
        elif self.original_patches is not None and (
            detail == "original" or (detail == "auto" and self.auto_is_original)
        ):
            longest, most = 6000, self.original_patches
        fitted = _fitted(size, longest)
        count = _cells(fitted, 32)
        if count > most:
            shrink = math.sqrt(32 * 32 * most / (fitted[0] * fitted[1]))
            sides = [side * shrink / 32 for side in fitted]
            fit = min(max(1, math.floor(side)) / side for side in sides)
            count = min(most, _cells(_scaled(fitted, shrink * fit), 32))
        return max(1, round(count * self.factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicArea:
    """Anthropic's area rule: width × height / 750, of a picture scaled down to 1568 pixels a side and about 1,600 tokens.

    `detail` does not matter. Example: 1000×1000 is 1334 tokens, 200×200 is 54.

    Source: Anthropic, "Vision", evaluate image size and calculate image costs,
    https://docs.anthropic.com/en/docs/build-with-claude/vision.
    """

    longest: int = 1568
    """Pixels of the longer side at most."""
    most: int = 1600
    """Tokens at most."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """See `ImagePrice`."""
        width, height = _fitted(size, self.longest)
        return max(1, min(self.most, math.ceil(width * height / 750)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiTiles:
    """Gemini's tile rule: 258 tokens up to 384×384 pixels, beyond that 258 for each tile of 768×768.

    The picture is scaled down to fit 3072×3072; `low` is one tile. Example: 1024×1024 is four tiles, 1032 tokens.

    Source: Google, "Understand and count tokens", image files, https://ai.google.dev/gemini-api/docs/tokens; the bound: Vertex
    AI, "Image understanding", https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding.
    """

    tile: int = 258
    """Tokens of each tile."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """See `ImagePrice`."""
        width, height = _fitted(size, 3072)
        if detail == "low" or (width <= 384 and height <= 384):
            return self.tile
        return self.tile * _cells((width, height), 768)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiResolution:
    """Gemini 3's rule: a price for each media resolution, whatever the size; 1120 tokens unless `detail` says otherwise.

    Source: Google, "Media resolution", token counts, https://ai.google.dev/gemini-api/docs/media-resolution.
    """

    low: int = 280
    """Tokens at `low`."""
    high: int = 1120
    """Tokens at `high` and `auto`."""
    original: int = 2240
    """Tokens at `original`, the resolution "ultra high"."""

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """See `ImagePrice`."""
        return {"low": self.low, "original": self.original}.get(detail, self.high)


IMAGE_PRICES: Final[Mapping[str, ImagePrice]] = {
    "openai-tiles": OpenAITiles(base=85, tile=170),
    "openai-tiles-gpt-5": OpenAITiles(base=70, tile=140),
    "openai-tiles-gpt-4o-mini": OpenAITiles(base=2833, tile=5667),
    "openai-tiles-o-series": OpenAITiles(base=75, tile=150),
    "openai-patches": OpenAIPatches(),
    "openai-patches-mini": OpenAIPatches(factor=1.62),
    "openai-patches-nano": OpenAIPatches(factor=2.46),
    "openai-patches-o4-mini": OpenAIPatches(factor=1.72),
    "openai-patches-gpt-5.4": OpenAIPatches(patches=2500, original_patches=10_000),
    "openai-patches-gpt-5.5": OpenAIPatches(patches=2500, original_patches=10_000, auto_is_original=True),
    "anthropic-area": AnthropicArea(),
    "gemini-tiles": GeminiTiles(),
    "gemini-3": GeminiResolution(),
}
"""The rules by name. ``openai-tiles`` is for GPT-4o, 4.1 and 4.5; ``…-mini`` and ``…-nano`` for the models named so."""


def image_price(name: str) -> ImagePrice:
    """The rule of a name.

    Raises:
        ArgumentError: There is none.
    """
    try:
        return IMAGE_PRICES[name]
    except (KeyError, TypeError):  # unhashable is a type error
        raise ArgumentError("image_price", name, f"one of {', '.join(IMAGE_PRICES)}") from None
