"""How a picture is to be encoded, as frozen values that check themselves.

Owns: `EncodeOptions`, `ResizeOptions`, `DEFAULT_REALTIME_ENCODE_OPTIONS`. Loads no media library, so that a session
can hold options without paying for PyAV. Driven by nothing; never acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from realtime.errors import ArgumentError

__all__ = ["DEFAULT_REALTIME_ENCODE_OPTIONS", "EncodeOptions", "ResizeMode", "ResizeOptions"]

ResizeMode = Literal["stretch", "fit", "cover", "pad"]
"""What becomes of a picture whose shape is not that of the box (behaviour.md I2)."""

_MODES = ("stretch", "fit", "cover", "pad")
_FORMATS = ("JPEG", "PNG")
_MAX_SIDE = 16_384


def _check_side(argument: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_SIDE:
        raise ArgumentError(argument, value, f"an int of 1 to {_MAX_SIDE} pixels")


def _check_resize(value: object) -> None:
    if value is not None and not isinstance(value, ResizeOptions):
        raise ArgumentError("resize_options", value, "ResizeOptions or None")


def _check_quality(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise ArgumentError("quality", value, "an int of 0 to 100")


@dataclass(frozen=True, slots=True)
class ResizeOptions:
    """The box that a picture is brought into. Fields may be given by position, as the seed has them."""

    width: int
    """Width of the box in pixels, 1–16384."""
    height: int
    """Height of the box in pixels, 1–16384."""
    mode: ResizeMode = "stretch"
    """`stretch`: exactly the box, aspect lost (the seeds' rule) · `fit`: aspect kept, inside the box, never enlarged ·
    `cover`: aspect kept, exactly the box, what hangs over is cut off evenly · `pad`: aspect kept, exactly the box,
    black borders."""

    def __post_init__(self) -> None:
        """Check every range."""
        _check_side("width", self.width)
        _check_side("height", self.height)
        if self.mode not in _MODES:
            raise ArgumentError("mode", self.mode, "one of " + ", ".join(map(repr, _MODES)))


@dataclass(frozen=True, slots=True)
class EncodeOptions:
    """How a frame becomes the bytes of a picture (behaviour.md I1). Fields may be given by position."""

    format: Literal["JPEG", "PNG"] = "JPEG"
    """The picture's format."""
    resize_options: ResizeOptions | None = ResizeOptions(1024, 1024)
    """The box it is brought into before encoding; None: its own size."""
    quality: int = 75
    """JPEG quality, 0–100, on libjpeg's scale; PNG takes no notice of it."""

    def __post_init__(self) -> None:
        """Check every range."""
        if self.format not in _FORMATS:
            raise ArgumentError("format", self.format, "'JPEG' or 'PNG'")
        _check_resize(self.resize_options)
        _check_quality(self.quality)


DEFAULT_REALTIME_ENCODE_OPTIONS = EncodeOptions(
    format="JPEG", resize_options=ResizeOptions(width=1024, height=1024), quality=75
)
"""What a session encodes sampled frames with: JPEG, 1024×1024, quality 75."""
