"""Pictures that are no video frames: Pillow images, arrays, bytes, objects with to_image() (behaviour.md I1–I3)."""

import io
from collections import UserList

import numpy as np
import pytest
from PIL import EpsImagePlugin, ExifTags, Image, PngImagePlugin

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
WHITE = (255, 255, 255)


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


# -- Pillow images -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "P", "RGBa"])
def test_every_colour_mode_keeps_its_colours(quadrants, corners, close_to, mode):
    """I3."""
    image = Image.fromarray(quadrants())
    if mode == "RGBa":
        image = image.convert("RGBA")
    image = image.convert(mode, palette=Image.Palette.ADAPTIVE) if mode == "P" else image.convert(mode)
    assert close_to(corners(encode(image, OWN_SIZE)), COLORS, 8)
    assert close_to(corners(encode(image, PNG)), COLORS, 8)


def test_lab_is_brought_to_srgb(corners, close_to):
    """I3."""
    middle_gray = Image.new("LAB", (16, 16), (128, 128, 128))
    assert close_to(corners(encode(middle_gray, OWN_SIZE)), [(119, 119, 119)] * 4)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "PA"])
def test_gray_modes_stay_gray(mode, corners, close_to):
    """I3."""
    image = Image.new("LA", (16, 16), (255, 255)).convert("L" if mode in {"1", "PA"} else "LA")
    image = image.convert(mode)
    assert close_to(corners(encode(image, OWN_SIZE)), [WHITE] * 4)


def test_a_gray_picture_becomes_a_jpeg_of_three_channels(opened):
    assert opened(encode(Image.new("L", (8, 8), 7))).mode == "RGB"


@pytest.mark.parametrize("hidden", [(0, 0, 0, 0), (255, 0, 0, 0)])
def test_what_is_transparent_lies_on_white_whatever_colour_hides_there(hidden, corners, close_to):
    """I3: a fixed background."""
    assert close_to(corners(encode(Image.new("RGBA", (16, 16), hidden), OWN_SIZE)), [WHITE] * 4, 1)


def test_half_transparent_is_half_the_background(corners, close_to):
    """I3."""
    assert close_to(corners(encode(Image.new("RGBA", (16, 16), (0, 0, 0, 128)), OWN_SIZE)), [(127,) * 3] * 4)
    assert close_to(corners(encode(Image.new("LA", (16, 16), (0, 64)), OWN_SIZE)), [(191,) * 3] * 4)


def test_a_palette_with_a_transparent_colour_is_transparent_there(corners, close_to):
    """I3."""
    image = Image.new("P", (16, 16), 1)
    image.putpalette([0, 0, 0, 10, 200, 10])
    assert close_to(corners(encode(image, OWN_SIZE)), [(10, 200, 10)] * 4)
    image.info["transparency"] = 1
    assert close_to(corners(encode(image, OWN_SIZE)), [WHITE] * 4)


def test_png_keeps_transparency(opened):
    """I3."""
    image = opened(encode(Image.new("RGBA", (16, 16), (9, 8, 7, 100)), PNG))
    assert image.mode == "RGBA"
    assert image.getpixel((3, 3)) == (9, 8, 7, 100)


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_sixteen_bit_gray_is_scaled_by_its_full_range(mode, opened):
    """I3, B62: 300 and 40000 differ, and neither is white."""
    dark, bright = (opened(encode(Image.new(mode, (8, 8), value), PNG)).getpixel((1, 1)) for value in (300, 40_000))
    assert (dark, bright) == (1, 156)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 128.0, 255.0], [0, 128, 255]),
        ([0.0, 300.0, 40_000.0], [0, 1, 156]),
        ([-100.0, 155.0, -50.0], [0, 255, 50]),
        ([0.0, float("nan"), 1.0], [0, 0, 255]),
        ([0.0, 0.0, float("inf")], [0, 0, 0]),
        ([float("nan")] * 3, [0, 0, 0]),
        ([7.0, 1e30, -1e30], [128, 255, 0]),
    ],
)
def test_pillow_floats_are_scaled_by_what_they_hold(values, wanted, opened):
    """I3, B62: NaN is safe."""
    image = Image.fromarray(np.array([values], np.float32))
    assert image.mode == "F"
    assert list(np.asarray(opened(encode(image, PNG)))[0]) == wanted


@pytest.mark.parametrize(("high", "wanted"), [(255, 255), (40_000, 156), (100_000, 255)])
def test_pillow_integers_are_scaled_by_what_they_hold(high, wanted, opened):
    """I3, B62."""
    image = Image.fromarray(np.array([[0, high]], np.int32))
    assert image.mode == "I"
    assert list(np.asarray(opened(encode(image, PNG)))[0]) == [0, wanted]


def test_a_pillow_image_is_left_as_it_was(quadrants):
    image = Image.fromarray(quadrants()).convert("P")
    image.info["exif"] = b"kept"
    before = image.tobytes()
    encode(image)
    assert (image.mode, image.size, image.info["exif"], image.tobytes()) == ("P", (64, 64), b"kept", before)


def test_an_empty_image_is_refused():
    with pytest.raises(ImageError, match="0x4"):
        encode(Image.new("RGB", (0, 4)))


def test_a_file_that_ends_too_soon_is_refused(quadrants):
    whole = encode(quadrants(), EncodeOptions("PNG", None))
    with pytest.raises(ImageError, match="readable"):
        encode(Image.open(io.BytesIO(whole[: len(whole) // 2])))


# -- orientation and metadata ------------------------------------------------------------------------------------------


def photo(orientation: int, form: str = "JPEG") -> bytes:
    """A 40×20 picture, red at the top left as stored, with an orientation and a position in its EXIF."""
    picture = np.full((20, 40, 3), 60, np.uint8)
    picture[:10, :20] = RED
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitude] = (52.0, 31.0, 0.0)
    out = io.BytesIO()
    Image.fromarray(picture).save(out, form, exif=exif, quality=95)
    return out.getvalue()


RED_CORNER = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 1), 8: (0, 1)}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("given", ["bytes", "image"])
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_orientation_is_applied_once_and_left_out(orientation, given, form, opened, close_to):
    """I3, B67."""
    data = photo(orientation)
    picture = data if given == "bytes" else Image.open(io.BytesIO(data))
    once = encode(picture, EncodeOptions(form, None, 95))
    for made in (once, encode(once, EncodeOptions(form, None, 95))):
        image = opened(made)
        assert image.size == ((20, 40) if orientation >= 5 else (40, 20))
        x, y = RED_CORNER[orientation]
        assert close_to(
            image.convert("RGB").getpixel((image.width * (1 + 2 * x) // 4, image.height * (1 + 2 * y) // 4)), RED, 12
        )
        assert not image.getexif()
        assert b"Exif" not in made


def test_orientation_comes_before_the_size(opened, close_to):
    """I2, B67: a picture held upright is fitted as an upright one."""
    image = opened(encode(photo(6), EncodeOptions("JPEG", ResizeOptions(10, 20, "fit"), 95)))
    assert image.size == (10, 20)


def test_no_metadata_of_any_kind_gets_through(quadrants, opened):
    """I3: no EXIF, no GPS, no comment, no profile."""
    image = Image.fromarray(quadrants())
    image.info.update(exif=photo(1)[:100], comment=b"at home", icc_profile=b"x" * 200, xmp=b"<x/>")
    for form in ("JPEG", "PNG"):
        made = opened(encode(image, EncodeOptions(form, None)))
        assert not made.getexif()
        assert not {"exif", "comment", "icc_profile", "xmp"} & set(made.info)


def test_a_broken_exif_block_turns_nothing(quadrants, opened, corners, close_to):
    """I3."""
    image = Image.fromarray(quadrants())
    image.info["exif"] = b"Exif\0\0II*\0\xff\xff\xff\xff"
    assert close_to(corners(encode(image, OWN_SIZE)), COLORS)


# -- bytes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_encoded_pictures_are_decoded_and_encoded_again(quadrants, corners, close_to, form, kind):
    """I1."""
    out = io.BytesIO()
    Image.fromarray(quadrants()).save(out, form)
    assert close_to(corners(encode(kind(out.getvalue()), OWN_SIZE)), COLORS, 12)


@pytest.mark.parametrize("data", [b"", b"no picture", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n" + bytes(40), b"GIF89a"])
def test_bytes_that_are_no_picture_are_refused(data):
    """I3: the text says how many bytes, never which."""
    with pytest.raises(ImageError, match=f"{len(data)} bytes"):
        encode(data)


def test_a_program_that_draws_is_no_picture_and_is_not_run(monkeypatch):
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "EPS")
    monkeypatch.setattr(EpsImagePlugin.EpsImageFile, "load", lambda _image: pytest.fail("it was run"))
    with pytest.raises(ImageError, match="picture of a known kind"):
        encode(out.getvalue())


@pytest.mark.parametrize(
    "raised", [RuntimeError("decoder"), NotImplementedError("kind"), AttributeError("offset"), UserWarning("odd")]
)
def test_whatever_a_decoder_raises_is_a_broken_picture(raised, monkeypatch):
    """I3: decoders of odd formats raise what they like (AVIF, SPIDER, BLP), and warnings may be errors."""

    def load(self):
        raise raised

    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", load)
    with pytest.raises(ImageError, match="can be decoded"):
        encode(out.getvalue())


def test_floats_that_signal_are_not_a_number(opened):
    signalling = np.array([[0x7FA00000, 0x3F800000]], np.uint32).view(np.float32)
    picture = opened(encode(Image.fromarray(signalling), PNG))
    assert np.asarray(picture.convert("L")).tolist() == [[255, 255]]


def test_a_picture_that_would_burst_memory_is_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    out = io.BytesIO()
    Image.new("L", (100, 100)).save(out, "PNG")
    with pytest.raises(ImageError, match="safe size"):
        encode(out.getvalue())


# -- arrays ------------------------------------------------------------------------------------------------------------


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
