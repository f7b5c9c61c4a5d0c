"""Where a picture goes inside the box that was asked for.

Owns: `Placement` and `place`, pure arithmetic (behaviour.md I1, I2). Driven by the encoders; touches no pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime.media.options import ResizeOptions

__all__ = ["Placement", "place"]

_MOST_WASTE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a source picture becomes the target: scale, then cut or border."""

    scaled: tuple[int, int]
    """Width and height to scale the whole source to, at least 1×1."""
    size: tuple[int, int]
    """Width and height of the encoded picture."""
    offset: tuple[int, int]
    """Where the scaled picture's top left corner lies in the encoded one: negative where it is cut, positive where a
    border is. Always even, so that 4:2:0 chroma stays in place."""

    @property
    def is_wasteful(self) -> bool:
        """Whether far more would be scaled than is kept, as when a thread of a picture is to cover a square."""
        return self.scaled[0] * self.scaled[1] > _MOST_WASTE * self.size[0] * self.size[1]

    def kept(self, source: tuple[int, int]) -> tuple[float, float, float, float]:
        """The part of a source of this size, in its own pixels, that is kept: left, top, right, bottom."""
        left, right = self._kept_side(0, source[0])
        top, bottom = self._kept_side(1, source[1])
        return left, top, right, bottom

    def _kept_side(self, axis: int, source: int) -> tuple[float, float]:
        scale = source / self.scaled[axis]
        begin = max(0, -self.offset[axis])
        return begin * scale, min(self.scaled[axis], begin + self.size[axis]) * scale


def place(source: tuple[int, int], resize: ResizeOptions | None) -> Placement:
    """Plan the way from a source of `source` (width, height) pixels to the picture that `resize` asks for.

    Args:
        source: Width and height as displayed (after rotation), at least 1×1.
        resize: The box; None keeps the source's own size.
    """
    if resize is None:
        return Placement(scaled=source, size=source, offset=(0, 0))
    box = (resize.width, resize.height)
    if resize.mode == "stretch":
        return Placement(scaled=box, size=box, offset=(0, 0))
    width, height = source
    if resize.mode == "cover":
        scaled = _scaled(source, box, cover=True)
    elif resize.mode == "fit" and width <= box[0] and height <= box[1]:
        scaled = source
    else:
        scaled = _scaled(source, box, cover=False)
    if resize.mode == "fit":
        return Placement(scaled=scaled, size=scaled, offset=(0, 0))
    offset = (_even_half(box[0] - scaled[0]), _even_half(box[1] - scaled[1]))
    return Placement(scaled=scaled, size=box, offset=offset)


def _scaled(source: tuple[int, int], box: tuple[int, int], *, cover: bool) -> tuple[int, int]:
    """The source's size with one side that of the box: the largest inside it, or the smallest that covers it."""
    width, height = source
    wider = width * box[1] > height * box[0]
    if wider != cover:
        across = max(1, round(height * box[0] / width))
        return (box[0], max(across, box[1]) if cover else min(across, box[1]))
    across = max(1, round(width * box[1] / height))
    return (max(across, box[0]) if cover else min(across, box[0]), box[1])


def _even_half(slack: int) -> int:
    """Half of what is over or missing, rounded towards zero to an even number."""
    half = abs(slack) // 2 // 2 * 2
    return half if slack >= 0 else -half
