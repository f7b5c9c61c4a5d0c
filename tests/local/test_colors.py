"""The name of the color that most of a picture has."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.local.colors import main_color


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((0, 0, 0), "black"),
        ((255, 255, 255), "white"),
        ((128, 128, 128), "gray"),
        ((220, 20, 30), "red"),
        ((255, 140, 0), "orange"),
        ((110, 60, 20), "brown"),
        ((250, 230, 20), "yellow"),
        ((20, 160, 40), "green"),
        ((0, 220, 220), "cyan"),
        ((20, 60, 200), "blue"),
        ((130, 30, 200), "purple"),
        ((255, 80, 180), "pink"),
        ((15, 20, 18), "black"),
    ],
)
def test_colors_have_their_names(rgb: tuple[int, int, int], name: str) -> None:
    assert main_color(np.full((4, 4, 3), rgb, np.uint8)) == name


def test_the_most_frequent_color_counts() -> None:
    picture = np.full((10, 10, 3), (20, 60, 200), np.uint8)
    picture[:4] = (220, 20, 30)
    assert main_color(picture) == "blue"
