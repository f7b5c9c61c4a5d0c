"""Media files become 20 ms of sound and fitted pictures; what cannot be read is one clear error."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from realtime.demo.media import (
    FRAME_SAMPLES,
    MAX_PICTURE_SIZE,
    STILL_FPS,
    STILL_SECONDS,
    open_media,
    read_pictures,
    read_sound,
)
from realtime.errors import UserError

from .conftest import write_movie


def test_sound_is_mono_48_khz_in_pieces_of_20_ms(tone: Path) -> None:
    pieces = list(read_sound(tone))
    assert {len(piece) for piece in pieces} == {FRAME_SAMPLES * 2}
    samples = np.frombuffer(b"".join(pieces), "<i2").astype(float)
    assert abs(len(samples) - 48_000) <= FRAME_SAMPLES
    crossings = np.count_nonzero(np.diff(np.signbit(samples[4_800:43_200])))
    assert abs(crossings - 2 * 440 * 0.8) <= 2  # still 440 Hz: not read as interleaved stereo
    assert 5_500 < np.abs(samples).max() < 6_500  # the mean of 8,000 and 4,000


def test_last_piece_is_filled_with_silence(tmp_path: Path) -> None:
    from realtime.pcm import wav_bytes

    path = tmp_path / "short.wav"
    path.write_bytes(wav_bytes(b"\x10\x10" * (FRAME_SAMPLES + 7), 48_000))
    pieces = list(read_sound(path))
    assert len(pieces) == 2
    assert pieces[1][14 * 4 :].strip(b"\0") == b""


def test_pictures_come_with_the_time_they_are_due(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "film.webm", frames=10, fps=10)
    pictures = list(read_pictures(path))
    assert [round(picture.seconds, 2) for picture in pictures] == [round(0.1 * n, 2) for n in range(10)]
    assert {(picture.frame.width, picture.frame.height) for picture in pictures} == {(64, 48)}
    assert len({id(picture.frame) for picture in pictures}) == 10


def test_a_fast_film_is_shown_at_30_fps_at_most(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "fast.webm", frames=60, fps=60)
    times = [picture.seconds for picture in read_pictures(path)]
    assert 28 <= len(times) <= 31


def test_a_large_picture_is_fitted_and_a_still_is_shown_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    Image.new("RGB", (4001, 1001), (200, 30, 30)).save(path)
    file = open_media(path)
    assert (file.sound_seconds, file.picture_seconds) == (None, STILL_SECONDS)
    pictures = list(read_pictures(path))
    assert len(pictures) == STILL_FPS * STILL_SECONDS
    frame = pictures[0].frame
    assert frame.width == MAX_PICTURE_SIZE[0]
    assert frame.height == 320
    assert pictures[1].frame is not frame  # an encoder may keep the one before
    red, green, _ = pictures[-1].frame.to_image().getpixel((600, 100))
    assert red > 150
    assert green < 80


def test_a_film_with_sound_holds_both(tmp_path: Path) -> None:
    file = open_media(write_movie(tmp_path / "both.webm", frames=10, fps=10, sound=True))
    assert file.sound_seconds == pytest.approx(1.0, abs=0.2)
    assert file.picture_seconds == pytest.approx(1.0, abs=0.2)


def test_the_sleeve_of_a_record_is_no_camera(tmp_path: Path, tone: Path) -> None:
    sleeve, record = tmp_path / "sleeve.png", tmp_path / "record.mp3"
    Image.new("RGB", (32, 32)).save(sleeve)
    with av.open(str(record), "w") as container, av.open(str(tone)) as sound, av.open(str(sleeve)) as picture:
        audio = container.add_stream("libmp3lame", rate=16_000, layout="stereo")
        cover = container.add_stream_from_template(picture.streams.video[0])
        cover.disposition = av.stream.Disposition.attached_pic
        for packet in picture.demux(video=0):
            if packet.size:
                packet.stream = cover
                container.mux(packet)
        for frame in sound.decode(audio=0):
            container.mux(audio.encode(frame))
        container.mux(audio.encode(None))
    with av.open(str(record)) as container:
        assert len(container.streams.video) == 1
    assert open_media(record).picture_seconds is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.wav", None, "no such file"),
        ("notes.txt", b"hello\n" * 40, "cannot be read"),
        ("empty.mp4", b"", "cannot be read"),
        ("broken.png", b"\x89PNG\r\n\x1a\nbroken", "no frame that can be decoded"),
        ("broken.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(200), "no frame that can be decoded"),
    ],
)
def test_what_cannot_be_played_is_one_error_that_names_the_file(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        open_media(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_media_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder"):
        open_media(tmp_path)
