"""Pictures that are no video frames: Pillow images, arrays, bytes, objects with to_image() (behaviour.md I1–I3)."""

from collections import UserList

import numpy as np
import pytest
from PIL import Image

from realtime.errors import ArgumentError, ImageError
from realtime.media.image import (
    DEFAULT_REALTIME_ENCODE_OPTIONS,
    EncodeOptions,
    ResizeOptions,
    coerce_image_to_jpeg_bytes,
    encode,
)

OWN_SIZE = EncodeOptions("JPEG", None, 95)
PNG = EncodeOptions("PNG", None)
RED, GREEN, BLUE, GRAY = (220, 40, 40), (40, 200, 60), (40, 60, 210), (180, 180, 180)
COLORS = [RED, GREEN, BLUE, GRAY]


# -- the contract ------------------------------------------------------------------------------------------------------


def test_the_default_is_a_jpeg_of_1024_square(quadrants, opened, corners, close_to):
    """I1."""
    for made in (encode(quadrants()), encode(quadrants(), None), coerce_image_to_jpeg_bytes(quadrants())):
        image = opened(made)
        assert (image.format, image.size, image.mode) == ("JPEG", (1024, 1024), "RGB")
        assert close_to(corners(made), COLORS)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_coerce_passes_bytes_through_unchanged(kind):
    """I1."""
    data = b"whatever these are"
    given = coerce_image_to_jpeg_bytes(kind(data))
    assert given == data
    assert type(given) is bytes


def test_coerce_uses_the_options_it_is_given(quadrants, opened):
    """I1."""
    assert opened(coerce_image_to_jpeg_bytes(quadrants(), options=PNG)).format == "PNG"


def test_quality_matters_for_jpeg_and_not_for_png():
    """I1."""
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    sizes = [len(encode(noise, EncodeOptions("JPEG", None, quality))) for quality in (0, 30, 75, 100)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert encode(noise, EncodeOptions("PNG", None, 1)) == encode(noise, EncodeOptions("PNG", None, 99))


@pytest.mark.parametrize("mode", ["stretch", "fit", "cover", "pad"])
def test_every_mode_gives_the_size_it_promises(quadrants, opened, mode):
    """I1, I2."""
    wanted = {"stretch": (48, 48), "fit": (48, 24), "cover": (48, 48), "pad": (48, 48)}[mode]
    for form in ("JPEG", "PNG"):
        options = EncodeOptions(form, ResizeOptions(48, 48, mode))
        assert opened(encode(quadrants(128, 64), options)).size == wanted


def test_pad_has_black_borders_and_cover_cuts_evenly(quadrants, opened, corners, close_to):
    """I2."""
    padded = opened(encode(quadrants(128, 64), EncodeOptions("JPEG", ResizeOptions(64, 64, "pad"), 95)))
    assert close_to([padded.getpixel((32, 4)), padded.getpixel((32, 60))], [(0, 0, 0)] * 2)
    assert close_to(padded.getpixel((8, 24)), RED)
    covered = encode(quadrants(128, 64), EncodeOptions("JPEG", ResizeOptions(64, 64, "cover"), 95))
    assert close_to(corners(covered), COLORS)


def test_options_of_another_kind_are_refused(quadrants):
    with pytest.raises(ArgumentError, match="options must be EncodeOptions or None, not 75"):
        encode(quadrants(), 75)


# -- objects -----------------------------------------------------------------------------------------------------------


class Frame:
    """A frame of somebody else's."""

    def __init__(self, image: object, rotation: object = None) -> None:
        self.image = image
        if rotation is not None:
            self.rotation = rotation

    def to_image(self) -> object:
        return self.image


@pytest.mark.parametrize(
    "case",
    [
        (None, [RED, GREEN, BLUE, GRAY]),
        (0, [RED, GREEN, BLUE, GRAY]),
        (90, [GREEN, GRAY, RED, BLUE]),
        (-270, [GREEN, GRAY, RED, BLUE]),
        (180, [GRAY, BLUE, GREEN, RED]),
        (-180, [GRAY, BLUE, GREEN, RED]),
        (270, [BLUE, RED, GRAY, GREEN]),
        (-90, [BLUE, RED, GRAY, GREEN]),
        (89.6, [GREEN, GRAY, RED, BLUE]),
        ("sideways", [RED, GREEN, BLUE, GRAY]),
        (float("nan"), [RED, GREEN, BLUE, GRAY]),
    ],
)
def test_an_object_with_to_image_is_turned_counter_clockwise_by_its_rotation(
    quadrants, opened, corners, close_to, case
):
    """I3; behaviour.md Shapes: rotation is counter-clockwise degrees, as in PyAV."""
    rotation, wanted = case
    made = encode(Frame(Image.fromarray(quadrants(80, 40)), rotation), OWN_SIZE)
    turned = wanted[0] in {GREEN, BLUE}
    assert opened(made).size == ((40, 80) if turned else (80, 40))
    assert close_to(corners(made), wanted)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (None, "not None"),
        (object(), "an av.VideoFrame, a PIL image, a numpy array"),
        ("photo.jpg", "not 'photo.jpg'"),
        (UserList([1]), "not [1]"),
        (Frame("no image"), "Frame whose to_image() gave str"),
    ],
)
def test_what_is_no_picture_is_refused_by_its_type(frame, said):
    with pytest.raises(ImageError) as refused:
        encode(frame)
    assert said in str(refused.value)


def test_an_error_of_to_image_is_the_callers_own():
    class Broken:
        def to_image(self) -> None:
            raise RuntimeError("camera on fire")

    with pytest.raises(RuntimeError, match="camera on fire"):
        encode(Broken())


def test_the_default_options_are_what_encode_uses(quadrants):
    assert encode(quadrants()) == encode(quadrants(), DEFAULT_REALTIME_ENCODE_OPTIONS)
