"""Where a picture goes inside its box (behaviour.md I1, I2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.media.geometry import place
from realtime.media.options import ResizeOptions

sides = st.integers(1, 4000)


def test_without_a_box_the_picture_keeps_its_size():
    plan = place((101, 57), None)
    assert (plan.scaled, plan.size, plan.offset) == ((101, 57), (101, 57), (0, 0))


@pytest.mark.parametrize(
    ("source", "mode", "scaled", "size", "offset"),
    [
        ((1280, 720), "stretch", (1024, 1024), (1024, 1024), (0, 0)),
        ((1280, 720), "fit", (1024, 576), (1024, 576), (0, 0)),
        ((720, 1280), "fit", (576, 1024), (576, 1024), (0, 0)),
        ((640, 480), "fit", (640, 480), (640, 480), (0, 0)),
        ((1280, 720), "cover", (1820, 1024), (1024, 1024), (-398, 0)),
        ((720, 1280), "cover", (1024, 1820), (1024, 1024), (0, -398)),
        ((1280, 720), "pad", (1024, 576), (1024, 1024), (0, 224)),
        ((640, 480), "pad", (1024, 768), (1024, 1024), (0, 128)),
        ((4000, 1), "fit", (1024, 1), (1024, 1), (0, 0)),
    ],
)
def test_each_mode_has_its_rule(source, mode, scaled, size, offset):
    """I2."""
    plan = place(source, ResizeOptions(1024, 1024, mode))
    assert (plan.scaled, plan.size, plan.offset) == (scaled, size, offset)


@given(sides, sides, sides, sides)
def test_fit_is_the_largest_inside_and_never_enlarges(width, height, box_width, box_height):
    plan = place((width, height), ResizeOptions(box_width, box_height, "fit"))
    assert plan.size == plan.scaled
    assert plan.size[0] <= min(width, box_width)
    assert plan.size[1] <= min(height, box_height)
    if width > box_width or height > box_height:
        assert plan.size[0] == box_width or plan.size[1] == box_height
    else:
        assert plan.size == (width, height)


@given(sides, sides, sides, sides, st.sampled_from(["stretch", "cover", "pad"]))
def test_the_other_modes_give_exactly_the_box(width, height, box_width, box_height, mode):
    assert place((width, height), ResizeOptions(box_width, box_height, mode)).size == (box_width, box_height)


@given(sides, sides, sides, sides)
def test_cover_leaves_no_border_and_pad_cuts_nothing(width, height, box_width, box_height):
    cover = place((width, height), ResizeOptions(box_width, box_height, "cover"))
    pad = place((width, height), ResizeOptions(box_width, box_height, "pad"))
    for axis, side in enumerate((box_width, box_height)):
        assert cover.offset[axis] <= 0
        assert cover.scaled[axis] + cover.offset[axis] >= side
        assert pad.offset[axis] >= 0
        assert pad.scaled[axis] + pad.offset[axis] <= side
        assert cover.offset[axis] % 2 == pad.offset[axis] % 2 == 0
