"""Type and size of a picture without decoding it (V7, W1), beside Pillow."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime.chat import image_header
from realtime.chat.image_header import image_size, image_type

KINDS = {
    "jpeg": ("image/jpeg", "JPEG", {}),
    "progressive jpeg": ("image/jpeg", "JPEG", {"progressive": True}),
    "jpeg with comment and exif": (
        "image/jpeg",
        "JPEG",
        {"comment": b"\xff\xc0" * 200, "exif": b"Exif\0\0" + b"\xff" * 500},
    ),
    "png": ("image/png", "PNG", {}),
    "gif": ("image/gif", "GIF", {}),
    "lossy webp": ("image/webp", "WEBP", {"quality": 50}),
    "lossless webp": ("image/webp", "WEBP", {"lossless": True}),
    "extended webp": ("image/webp", "WEBP", {"exif": b"Exif\0\0abcd"}),
}


def encoded(kind, size, mode="RGB"):
    _, format, options = KINDS[kind]
    out = io.BytesIO()
    Image.new(mode, size, "red" if mode == "RGB" else 1).save(out, format, **options)
    return out.getvalue()


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (640, 480), (1023, 769)])
@pytest.mark.parametrize("kind", KINDS)
def test_header_tells_type_and_size(kind, size):
    data = encoded(kind, size)
    assert image_type(data) == KINDS[kind][0]
    assert image_size(data) == size == Image.open(io.BytesIO(data)).size


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_that_is_cut_off_has_a_size_or_none(kind):
    data = encoded(kind, (320, 200))
    for length in range(len(data)):
        assert image_size(data[:length]) in {None, (320, 200)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"BM" + bytes(60),
        b"II*\0" + bytes(60),
        b"RIFF\0\0\0\0WAVEfmt ",
        b"%PDF-1.7",
        b"GIF88a" + bytes(10),
    ],
)
def test_what_is_none_of_the_four_has_no_type(data):
    assert image_type(data) is None
    assert image_size(data) is None


@given(st.sampled_from([b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBP"]), st.binary(max_size=200))
def test_nothing_that_follows_a_signature_raises(signature, rest):
    size = image_size(signature + rest)
    assert size is None or min(size) > 0


def test_jpeg_without_a_frame_header_has_no_size():
    assert image_size(b"\xff\xd8\xff\xda\x00\x08" + bytes(20)) is None
    assert image_size(b"\xff\xd8 no marker at all") is None


def test_fill_bytes_and_markers_that_stand_alone_are_passed_over():
    frame_header = b"\xff\xc0\x00\x11\x08\x00\x07\x00\x03\x03" + bytes(9)
    assert image_size(
        b"\xff\xd8" + b"\xff" * 5 + b"\xff\xe0\x00\x04ab" + b"\xff\xd0\xff\x01\xff\x00" + frame_header
    ) == (3, 7)


@pytest.mark.parametrize("filling", [b"\xff", b"\xff\x00", b"\xff\xd0", b"\xff\xe0\x00\x02"])
def test_looking_for_a_header_that_is_not_there_ends_soon(filling, monkeypatch):
    """Eight megabytes made to keep a reader busy; counted in the bytes that are searched."""
    data = b"\xff\xd8" + filling * (8_000_000 // len(filling))
    searches = []
    real = image_header._SEGMENT

    class Counting:
        def search(self, data, begin, end):
            searches.append(end - begin)
            return real.search(data, begin, end)

    monkeypatch.setattr(image_header, "_SEGMENT", Counting())
    assert image_size(data) is None
    assert len(searches) <= 1_000
    assert sum(searches) <= 1_000 * 4_096
