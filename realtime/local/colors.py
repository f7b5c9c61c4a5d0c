"""The name of the color that most of a picture has.

Owns: `main_color`. Driven by the eyes. Pure; never acts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["main_color"]

_HUES: Final = (
    (15.0, "red"),
    (42.0, "orange"),
    (70.0, "yellow"),
    (165.0, "green"),
    (200.0, "cyan"),
    (260.0, "blue"),
    (295.0, "purple"),
    (340.0, "pink"),
    (360.0, "red"),
)
"""Upper ends, in degrees, of the hues that have names."""
_GRAYS: Final = ("black", "gray", "white")


def main_color(rgb: npt.NDArray[np.uint8]) -> str:
    """The most frequent color by name.

    Args:
        rgb: A picture, shape (height, width, 3). A small copy will do.

    Returns:
        One of black, gray, white, red, orange, brown, yellow, green, cyan, blue, purple and pink.
    """
    pixels = rgb.reshape(-1, 3).astype(np.float64) / 255.0
    most = pixels.max(axis=1)
    spread = most - pixels.min(axis=1)
    names = np.where(most < 0.2, 0, np.where(most < 0.85, 1, 2))
    hue = _hue(pixels, most, spread)
    edges = np.array([edge for edge, _name in _HUES])
    colored = (spread > 0.15) & (most >= 0.2) & (spread > 0.2 * most)
    names = np.where(colored, len(_GRAYS) + np.searchsorted(edges, hue, side="right").clip(0, len(_HUES) - 1), names)
    labels = [*_GRAYS, *(name for _edge, name in _HUES)]
    votes: dict[str, int] = {}
    for number, count in zip(*np.unique(names, return_counts=True), strict=True):
        name = labels[int(number)]
        votes[name] = votes.get(name, 0) + int(count)
    winner = max(votes, key=lambda name: votes[name])
    if winner == "orange" and float(most[names == labels.index("orange")].mean()) < 0.6:
        return "brown"
    return winner


def _hue(
    pixels: npt.NDArray[np.float64], most: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Degrees, 0 where there is no hue."""
    safe = np.where(spread > 0.0, spread, 1.0)
    red, green, blue = pixels.T
    sector: npt.NDArray[np.float64] = (red - green) / safe + 4.0
    sector[most == green] = ((blue - red) / safe + 2.0)[most == green]
    sector[most == red] = ((green - blue) / safe % 6.0)[most == red]
    hue: npt.NDArray[np.float64] = np.where(spread > 0.0, sector * 60.0, 0.0)
    return hue
