"""Arrays of any layout and type (behaviour.md I3)."""

import io

import numpy as np
import pytest
from PIL import Image

from realtime.errors import ImageError
from realtime.media.image import (
    EncodeOptions,
    ResizeOptions,
    encode,
)

OWN_SIZE = EncodeOptions("JPEG", None, 95)
PNG = EncodeOptions("PNG", None)
RED, GREEN, BLUE, GRAY = (220, 40, 40), (40, 200, 60), (40, 60, 210), (180, 180, 180)
COLORS = [RED, GREEN, BLUE, GRAY]
WHITE = (255, 255, 255)


def _same_picture(picture: np.ndarray) -> dict[str, np.ndarray]:
    """One picture in many memory layouts."""
    read_only = picture.copy()
    read_only.flags.writeable = False
    rows, columns = np.repeat(picture, 2, axis=0), np.repeat(picture, 3, axis=1)
    return {
        "as it is": picture,
        "read only": read_only,
        "channels reversed twice": picture[:, :, ::-1].copy()[:, :, ::-1],
        "upside down twice": picture[::-1].copy()[::-1],
        "mirrored twice": picture[:, ::-1].copy()[:, ::-1],
        "every second row": rows[::2],
        "every third column": columns[:, ::3],
        "transposed twice": np.ascontiguousarray(picture.transpose(1, 0, 2)).transpose(1, 0, 2),
        "Fortran order": np.asfortranarray(picture),
        "channels first": np.moveaxis(picture, 2, 0),
        "channels first, contiguous": np.ascontiguousarray(np.moveaxis(picture, 2, 0)),
        "of an alpha array": np.dstack([picture, np.zeros(picture.shape[:2], np.uint8)])[:, :, :3],
        "with alpha": np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)]),
        "channels first, with alpha": np.moveaxis(
            np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)]), 2, 0
        ),
        "int64": picture.astype(np.int64),
        "big-endian int16": picture.astype(">i2"),
        "uint16": picture.astype(np.uint16) * 257,
        "big-endian uint16": (picture.astype(np.uint16) * 257).astype(">u2"),
        "float32": picture.astype(np.float32) / 255,
        "float64": picture / 255,
        "float16": (picture / 255).astype(np.float16),
        "a subclass": picture.view(np.memmap)
        if hasattr(picture, "never")
        else picture.view(type("Mine", (np.ndarray,), {})),
    }


@pytest.mark.parametrize("layout", sorted(_same_picture(np.zeros((2, 2, 3), np.uint8))))
def test_layout_and_type_of_an_array_never_matter(quadrants, corners, close_to, layout):
    """I3, B63."""
    picture = _same_picture(quadrants(60, 44))[layout]
    before = picture.copy()
    made = encode(picture, OWN_SIZE)
    assert close_to(corners(made), COLORS)
    assert Image.open(io.BytesIO(made)).size == (60, 44)
    assert np.array_equal(picture, before)


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.full((6, 4), 77, np.uint8), (77, 77, 77)),
        (np.full((6, 4, 1), 77, np.uint8), (77, 77, 77)),
        (np.full((1, 6, 5), 77, np.uint8), (77, 77, 77)),
        (np.dstack([np.full((6, 4), 0, np.uint8), np.full((6, 4), 128, np.uint8)]), (127, 127, 127)),
        (np.ones((6, 4), bool), WHITE),
        (np.zeros((6, 4), bool), (0, 0, 0)),
        (np.full((6, 4), 40_000, np.uint16), (156, 156, 156)),
        (np.full((6, 4), 0.5, np.float32), (128, 128, 128)),
        (np.full((6, 4), np.nan, np.float32), (0, 0, 0)),
        (np.array([[np.nan, 1.0], [1.0, np.nan]]).repeat(8, 0).repeat(8, 1), None),
        (np.full((6, 4), 1.1, np.float32), WHITE),
        (np.full((6, 4), np.inf), WHITE),
        (np.full((6, 4), -np.inf), (0, 0, 0)),
    ],
)
def test_gray_bool_and_odd_values_have_their_rule(array, wanted, opened, close_to):
    """I3, B62, B63."""
    image = opened(encode(array, EncodeOptions("PNG", None))).convert(
        "RGB" if array.ndim == 2 or array.shape[-1] != 2 else "LA"
    )
    if image.mode == "LA":
        assert image.getpixel((0, 0)) == (0, 128)
        image = opened(encode(array, OWN_SIZE))
    if wanted is None:
        assert (image.getpixel((0, 0)), image.getpixel((8, 0))) == ((0, 0, 0), WHITE)
    else:
        assert close_to(image.getpixel((0, 0)), wanted, 2)


def test_three_by_three_by_three_is_read_as_height_width_channels(opened):
    """I3: the last axis decides first."""
    array = np.zeros((3, 3, 3), np.uint8)
    array[0, :, :] = (255, 0, 0)
    assert opened(encode(array, PNG)).getpixel((2, 0)) == (255, 0, 0)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((0, 0), np.uint8), "shape (0, 0) and dtype uint8"),
        (np.zeros((0, 4, 3), np.uint8), "shape (0, 4, 3)"),
        (np.zeros(5, np.uint8), "shape (5,)"),
        (np.ones((), np.uint8), "shape ()"),
        (np.zeros((5, 5, 5), np.uint8), "shape (5, 5, 5)"),
        (np.zeros((2, 5, 7), np.uint8), "shape (2, 5, 7)"),
        (np.zeros((1, 4, 4, 3), np.uint8), "shape (1, 4, 4, 3)"),
        (np.zeros((4, 4), np.complex64), "dtype complex64"),
        (np.zeros((4, 4), "U1"), "dtype <U1"),
        (np.zeros((4, 4), object), "dtype object"),
        (np.zeros((4, 4), [("r", "u1")]), "dtype [('r', 'u1')]"),
        (np.full((4, 4), 256, np.int64), "dtype int64 with values 256 to 256"),
        (np.full((4, 4), -1, np.int16), "dtype int16 with values -1 to -1"),
        (np.full((4, 4), 128.0), "dtype float64 with values 128 to 128"),
        (np.full((4, 4), -1.0, np.float32), "dtype float32 with values -1 to -1"),
        (np.zeros((4, 4), "M8[s]"), "dtype datetime64[s]"),
    ],
)
def test_an_array_that_is_no_picture_is_refused_with_its_shape_and_type(array, said):
    """I3, B63."""
    with pytest.raises(ImageError) as refused:
        encode(array)
    assert said in str(refused.value)
    assert isinstance(refused.value, ValueError)
    assert refused.value.argument == "frame"


@pytest.mark.parametrize("shape", [(30_000, 1, 3), (1, 30_000, 3), (20_000, 2, 3), (3, 5)])
@pytest.mark.parametrize("mode", ["stretch", "fit", "cover", "pad"])
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_extreme_shapes_become_what_was_asked_for(shape, mode, form, opened):
    """I1: neither an error nor gigabytes on the way."""
    image = opened(encode(np.full(shape, 90, np.uint8), EncodeOptions(form, ResizeOptions(256, 256, mode))))
    assert max(image.size) <= 256
    if mode != "fit":
        assert image.size == (256, 256)
    assert 83 <= np.asarray(image).max() <= 97  # a hundred pixels to one cost some steps of rounding


def test_a_cut_out_part_is_the_same_the_direct_way_and_the_careful_way(opened):
    """I2: the middle of a very wide picture."""
    picture = np.zeros((8, 800, 3), np.uint8)
    picture[:, 396:404] = 200
    image = np.asarray(opened(encode(picture, EncodeOptions("JPEG", ResizeOptions(8, 8, "cover"), 95))))
    assert image.min() > 150


def test_a_picture_larger_than_a_jpeg_can_be_is_refused_with_its_size():
    with pytest.raises(ImageError, match="at most 65500 pixels a side for JPEG, not 'a picture of 3x66000'"):
        encode(np.zeros((66_000, 3), np.uint8), EncodeOptions("JPEG", None))
