"""The generated scene: the same every time, speech that can be heard, a sign that is always in view."""

from __future__ import annotations

from itertools import islice

import numpy as np

from realtime.demo.media import MAX_PICTURE_SIZE
from realtime.demo.scene import SCENE_QUESTIONS, spoken, street
from realtime.testing.devices import FRAME_SAMPLES


def test_a_spoken_sentence_is_the_same_every_time() -> None:
    pieces = list(spoken(SCENE_QUESTIONS[0]))
    assert pieces == list(spoken(SCENE_QUESTIONS[0]))
    assert {len(piece) for piece in pieces} == {FRAME_SAMPLES * 2}
    assert 1.5 < len(pieces) * 0.02 < 6
    assert np.abs(np.frombuffer(b"".join(pieces), "<i2").astype(int)).max() > 3_000


def test_the_sign_is_in_view_wherever_the_camera_looks() -> None:
    pictures = list(islice(street(), 0, 15 * 9, 15))  # one a second, through one pan
    for picture in pictures:
        image = picture.frame.to_image()
        assert image.width <= MAX_PICTURE_SIZE[0]
        green = np.asarray(image, dtype=int)
        sign = (green[..., 1] - green[..., 0] > 25) & (green[..., 2] < 80)
        columns = np.flatnonzero(sign.any(axis=0))
        assert columns.min() >= 20
        assert columns.max() <= image.width - 20
        assert columns.max() - columns.min() > 300


def test_the_picture_moves() -> None:
    first, later = (np.asarray(picture.frame.to_image(), dtype=int) for picture in islice(street(), 0, 31, 30))
    assert np.abs(first - later).mean() > 5
