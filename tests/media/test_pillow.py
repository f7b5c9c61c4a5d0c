"""Pillow images of every mode, and encoded pictures (behaviour.md I3)."""

import io

import numpy as np
import pytest
from PIL import EpsImagePlugin, ExifTags, Image, PngImagePlugin

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
