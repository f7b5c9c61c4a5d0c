"""Pictures and recordings as values (V1, V3, V7, B18, B23)."""

import base64
import copy
import gc
import io
import pickle
import tracemalloc
import weakref
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from PIL import Image

from realtime import pcm
from realtime.chat import content
from realtime.chat.context import ChatContext
from realtime.chat.image_header import image_size
from realtime.chat.messages import AudioContent, ChatMessage, ImageContent
from realtime.errors import ArgumentError, ImageError


def encoded(format="JPEG", size=(64, 48), color="red"):
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, format)
    return out.getvalue()


JPEG = encoded()
PNG = encoded("PNG")
URL = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()


def test_every_constructor_gives_the_same_picture(tmp_path):
    path = tmp_path / "picture.bin"
    path.write_bytes(JPEG)
    pictures = [
        ImageContent(url=URL),
        ImageContent("image", URL, "auto"),
        ImageContent.from_url(URL),
        ImageContent.from_data_url(URL),
        ImageContent.from_base64(base64.b64encode(JPEG).decode(), "image/jpeg"),
        ImageContent.from_bytes(JPEG, "image/jpeg"),
        ImageContent.from_bytes(bytearray(JPEG), "image/jpeg"),
        ImageContent.from_file(path),
        ImageContent.from_file(str(path), "image/jpeg"),
        ImageContent.from_frame({"data": JPEG}),
        ImageContent.from_frame({"data": JPEG, "mime_type": "image/jpeg"}),
        ImageContent.from_frame({"data": base64.b64encode(JPEG).decode(), "mimeType": "image/jpeg"}),
        ImageContent.from_frame(JPEG),
        ImageContent.from_frame(memoryview(JPEG)),
        ImageContent.from_frame(ImageContent(url=URL)),
    ]
    assert set(pictures) == {pictures[0]}
    for picture in pictures:
        assert (picture.type, picture.url, picture.detail) == ("image", URL, "auto")
        assert (picture.data, picture.mime_type, picture.size, picture.byte_length) == (
            JPEG, "image/jpeg", (64, 48), len(JPEG),
        )  # fmt: skip
        assert picture.is_embedded


def test_seed_fields_and_defaults_in_their_order():
    assert [field.name for field in fields(ImageContent)] == ["type", "url", "detail"]
    nothing = ImageContent()
    assert (nothing.type, nothing.url, nothing.detail) == ("image", "", "auto")
    assert (nothing.data, nothing.byte_length, nothing.size, nothing.is_embedded) == (b"", 0, None, False)


def test_bytes_tell_the_type_whatever_is_declared(tmp_path):
    """V7, B23: PNG bytes labelled as JPEG, and a file named so."""
    path = tmp_path / "picture.jpg"
    path.write_bytes(PNG)
    for picture in (
        ImageContent.from_bytes(PNG, "image/jpeg"),
        ImageContent.from_base64(base64.b64encode(PNG).decode(), "image/jpg"),
        ImageContent.from_file(path),
        ImageContent.from_data_url("data:image/jpeg;base64," + base64.b64encode(PNG).decode()),
    ):
        assert picture.mime_type == "image/png"
        assert picture.url.startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ImageContent.from_bytes(b"", "image/jpeg"),
        lambda: ImageContent.from_bytes(b"<svg/>", "image/svg+xml"),
        lambda: ImageContent.from_bytes("text", "image/jpeg"),
        lambda: ImageContent.from_base64(base64.b64encode(JPEG), "image/jpeg"),
        lambda: ImageContent.from_base64(None, "image/jpeg"),
        lambda: ImageContent.from_data_url("data:image/png;base64,%41\ud800"),
        lambda: ImageContent.from_base64("", "image/jpeg"),
        lambda: ImageContent.from_data_url("data:image/svg+xml,<svg/>"),
        lambda: ImageContent.from_data_url("https://host/a.jpg"),
        lambda: ImageContent.from_url(""),
        lambda: ImageContent.from_url("ftp://host/a.jpg"),
        lambda: ImageContent.from_url("https://"),
        lambda: ImageContent.from_url("a.jpg"),
        lambda: ImageContent.from_url("http://[broken/a.jpg"),
        lambda: ImageContent(url=b"bytes"),
        lambda: ImageContent.from_frame({"mime_type": "image/jpeg"}),
        lambda: ImageContent.from_frame({"data": b"nothing"}),
        lambda: ImageContent.from_frame(object()),
    ],
)
def test_what_is_no_picture_is_refused(make):
    with pytest.raises(ImageError) as caught:
        make()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("before", ["", "\ufeffdata:image/jpeg;base64,", "date:image/jpeg;base64,"])
def test_base64_in_the_place_of_an_address_is_refused_without_echoing_it(before):
    """V7, B23."""
    payload = base64.b64encode(JPEG).decode()
    with pytest.raises(ImageError, match=r"an http\(s\) or data: URL") as caught:
        ImageContent.from_url(before + payload)
    assert payload[:16] not in str(caught.value)


def test_wrong_type_or_detail_is_refused():
    with pytest.raises(ArgumentError, match="type"):
        ImageContent(URL)
    with pytest.raises(ArgumentError, match="detail"):
        ImageContent(url=URL, detail="hihg")


def test_an_address_is_kept_as_it_is():
    picture = ImageContent.from_url("HTTPS://host/a/b.PNG?token=secret", "low")
    assert picture.url == "HTTPS://host/a/b.PNG?token=secret"
    assert (picture.mime_type, picture.data, picture.size) == ("image/png", b"", None)
    assert ImageContent.from_url("https://host/picture").mime_type == ""
    assert "secret" not in repr(picture)


def test_pictures_compare_by_content_and_detail():
    one = ImageContent.from_bytes(JPEG, "image/jpeg")
    assert one == ImageContent.from_bytes(bytes(bytearray(JPEG)), "image/png")
    assert hash(one) == hash(ImageContent(url=URL))
    assert one != ImageContent.from_bytes(JPEG, "image/jpeg", "low")
    assert one != ImageContent.from_bytes(PNG, "image/png")
    assert one != URL


def test_no_repr_shows_the_picture():
    picture = ImageContent.from_bytes(JPEG, "image/jpeg")
    message = ChatMessage("user", "look", images=[picture])
    for shown in (repr(picture), str(picture), repr(message), repr([message]), f"{message}"):
        assert "base64" not in shown
        assert URL[40:60] not in shown
        assert "\\x" not in shown
        assert len(shown) < 600
    assert "image/jpeg" in repr(picture)
    assert "64x48" in repr(picture)
    assert URL[40:60] not in str(ArgumentError("images", picture, "something else"))


def test_a_picture_cannot_be_changed_but_replaced():
    picture = ImageContent.from_bytes(JPEG, "image/jpeg")
    for name in ("type", "url", "detail", "data", "_data", "anything"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(picture, name, "x")
    assert replace(picture, detail="low") == ImageContent.from_bytes(JPEG, "image/jpeg", "low")
    assert copy.deepcopy(picture) is copy.copy(picture) is picture
    assert pickle.loads(pickle.dumps(picture)) == picture


def test_a_later_change_of_the_buffer_or_array_does_not_reach_the_message():
    """B18."""
    buffer = bytearray(JPEG)
    array = np.full((16, 16, 3), 200, np.uint8)
    from_buffer = ImageContent.from_bytes(buffer, "image/jpeg")
    from_array = ImageContent.from_frame(array)
    before = from_array.data
    buffer[:] = bytes(len(buffer))
    array[:] = 0
    assert from_buffer.data == JPEG
    assert from_array.data == before
    assert from_array.size == (1024, 1024)


def test_a_frame_is_encoded_once(monkeypatch):
    """B18: appended once, converted ten times, encoded once."""
    from realtime.media import image as media_image

    calls = []
    real = media_image.coerce_image_to_jpeg_bytes
    monkeypatch.setattr(media_image, "coerce_image_to_jpeg_bytes", lambda frame: calls.append(1) or real(frame))
    context = ChatContext.empty()
    context.add_message("user", "look", images=[ImageContent.from_frame(np.zeros((8, 8, 3), np.uint8))])
    for _ in range(10):
        assert context.to_openai_messages()[0]["content"][1]["image_url"]["url"].startswith("data:image/jpeg;base64,")
        context.to_anthropic_messages()
    assert calls == [1]


def test_converting_leaves_no_second_copy_behind():
    """B18: bytes are held once; what conversions make of them is the caller's alone."""
    data = encoded("PNG") + bytes(1_000_000)
    context = ChatContext.empty()
    context.add_message("user", "look", images=[ImageContent.from_bytes(data, "image/png")])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            context.to_openai_messages()
            context.to_anthropic_messages()
            context.to_google_contents()
        assert context.messages()[0].images[0].url
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200_000


def test_an_evicted_picture_is_really_freed():
    """R3, B18: removed from a context that was converted, it is gone."""
    context = ChatContext.empty()
    context.add_message("user", "look", "m1", images=[ImageContent.from_bytes(encoded(color="blue"), "image/jpeg")])
    context.add_message("assistant", "nice")
    context.to_openai_messages()
    context.to_google_contents()
    picture = weakref.ref(context.messages()[0].images[0])
    assert picture() is not None
    context.update("m1", images=())
    gc.collect()
    assert picture() is None


def test_a_recording_knows_its_length_and_rate():
    samples = bytes(2 * 24_000)
    recording = AudioContent.from_pcm(samples, 24_000, transcript="hello")
    assert (recording.duration_ms, recording.rate_hz, recording.transcript) == (1000, 24_000, "hello")
    assert recording.data == pcm.wav_bytes(samples, 24_000)
    assert recording.byte_length == len(recording.data)
    assert (
        recording == AudioContent.from_wav(recording.data, "hello") == AudioContent(bytearray(recording.data), "hello")
    )
    assert recording != AudioContent.from_wav(recording.data)
    assert hash(recording) == hash(AudioContent.from_wav(recording.data, "hello"))


def test_a_recording_is_a_value_that_hides_its_content():
    recording = AudioContent.from_pcm(b"\x01\x02" * 800, 8000, transcript="my secret")
    assert "secret" not in repr(recording)
    assert "\\x" not in repr(recording)
    assert "100 ms" in repr(recording)
    with pytest.raises(FrozenInstanceError):
        recording.data = b""
    assert pickle.loads(pickle.dumps(recording)) == recording
    assert copy.deepcopy(recording) is recording
    assert weakref.ref(recording)() is recording
    assert replace(recording, transcript="other").transcript == "other"


@pytest.mark.parametrize("given", [10**15, None, [82, 73], "RIFF"])
def test_a_number_is_no_recording_of_that_many_bytes(given):
    """What comes from outside must not choose how much memory is taken."""
    with pytest.raises(ArgumentError, match="data must be the bytes of a WAV file"):
        AudioContent(given)
    with pytest.raises(ArgumentError, match="data must be the bytes of a WAV file"):
        AudioContent.from_wav(given)
    message = {"role": "user", "content": "hi", "audio": {"data": given}}
    assert ChatContext.from_context_messages([message]).messages() == [ChatMessage("user", "hi")]


def test_what_is_no_recording_is_refused():
    with pytest.raises(ArgumentError):
        AudioContent(b"not a WAV file")
    with pytest.raises(ArgumentError):
        AudioContent.from_pcm(b"odd", 24_000)


def test_the_four_kinds_of_a_file_ending_are_known():
    assert {content._type_of_path(f"a.{ending}") for ending in ("jpg", "JPEG", "png", "gif", "webp#x", "txt", "")} == {
        "image/jpeg", "image/png", "image/gif", "image/webp", "",
    }  # fmt: skip


def test_a_picture_is_looked_at_once_however_often_its_size_is_asked_for(monkeypatch):
    """Every count of tokens asks."""
    read = []
    monkeypatch.setattr(content, "image_size", lambda data: (read.append(len(data)), image_size(data))[1])
    out = io.BytesIO()
    Image.new("RGB", (40, 30)).save(out, "JPEG")
    image = ImageContent.from_bytes(out.getvalue(), "image/jpeg")
    for same in (image, image, copy.copy(image), pickle.loads(pickle.dumps(image))):
        assert [same.size for _ in range(5)] == [(40, 30)] * 5
    assert len(read) <= 3  # once for each picture
    assert ImageContent.from_url("https://example.com/a.jpg").size is None
