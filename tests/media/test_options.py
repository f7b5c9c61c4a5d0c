"""Options check themselves and name what is wrong (behaviour.md I1, I2)."""

import dataclasses
import subprocess
import sys

import pytest

from realtime.errors import ArgumentError
from realtime.media.options import DEFAULT_REALTIME_ENCODE_OPTIONS, EncodeOptions, ResizeOptions


def test_the_defaults_are_the_seeds():
    """I1."""
    assert EncodeOptions() == DEFAULT_REALTIME_ENCODE_OPTIONS
    assert EncodeOptions("JPEG", ResizeOptions(1024, 1024), 75) == DEFAULT_REALTIME_ENCODE_OPTIONS
    assert ResizeOptions(8, 9).mode == "stretch"


def test_no_resizing_is_said_with_none():
    assert EncodeOptions(resize_options=None).resize_options is None


@pytest.mark.parametrize("quality", [0, 1, 75, 100])
def test_every_quality_from_0_to_100_is_allowed(quality):
    """I1."""
    assert EncodeOptions(quality=quality).quality == quality


@pytest.mark.parametrize("quality", [-1, 101, 75.0, "75", None, True, float("nan")])
def test_another_quality_is_refused_by_name(quality):
    with pytest.raises(ArgumentError, match=r"quality must be an int of 0 to 100, not"):
        EncodeOptions(quality=quality)


@pytest.mark.parametrize("form", ["jpeg", "WEBP", "", None])
def test_another_format_is_refused_by_name(form):
    with pytest.raises(ArgumentError, match="format must be 'JPEG' or 'PNG'"):
        EncodeOptions(format=form)


@pytest.mark.parametrize("resize", [(1024, 1024), 512, "fit"])
def test_a_size_that_is_no_resize_options_is_refused_by_name(resize):
    with pytest.raises(ArgumentError, match="resize_options must be ResizeOptions or None"):
        EncodeOptions(resize_options=resize)


@pytest.mark.parametrize(
    ("width", "height", "name"),
    [(0, 1, "width"), (1, -1, "height"), (20_000, 1, "width"), (1, 2.0, "height"), (True, 1, "width")],
)
def test_a_side_that_cannot_be_is_refused_by_name(width, height, name):
    with pytest.raises(ArgumentError, match=f"{name} must be an int of 1 to 16384"):
        ResizeOptions(width, height)


def test_an_unknown_mode_is_refused_with_the_known_ones():
    """I2."""
    with pytest.raises(ArgumentError, match="mode must be one of 'stretch', 'fit', 'cover', 'pad', not 'crop'"):
        ResizeOptions(1, 1, mode="crop")


def test_options_are_frozen_values():
    with pytest.raises(dataclasses.FrozenInstanceError):
        EncodeOptions().quality = 1


def test_holding_options_loads_no_media_library():
    code = (
        "import sys; from realtime.media import DEFAULT_REALTIME_ENCODE_OPTIONS; import realtime, realtime.tracks; "
        "print(sorted({'av', 'aiortc', 'numpy', 'PIL', 'simplejpeg', 'soxr'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_rooms_name_what_they_have():
    import realtime.media
    import realtime.tracks

    for room in (realtime.media, realtime.tracks):
        assert all(getattr(room, name).__name__ == name for name in room.__all__ if not name.isupper())
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            room.nothing  # noqa: B018
