"""A synthetic peer says and shows its script over real WebRTC on loopback, and records what it hears."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from realtime.chat.messages import ImageContent
from realtime.errors import ArgumentError, ImageError, UserError
from realtime.pcm import wav_bytes
from realtime.testing import Pause, Say, Show, SyntheticPeer, Turn
from realtime.testing.recording import RECORDED_RATE_HZ
from realtime.testing.showing import pictures_of, sound_of


def tone(seconds: float, *, hz: float = 440, rate_hz: int = 48_000) -> bytes:
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return (8_000 * np.sin(2 * np.pi * hz * t)).astype("<i2").tobytes()


def pitch(pcm: bytes) -> float:
    """The loudest frequency of a sound at `RECORDED_RATE_HZ`: also of one with holes, as a busy machine makes them."""
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return float(np.abs(np.fft.rfft(samples)).argmax() * RECORDED_RATE_HZ / len(samples))


def colors(frame: av.VideoFrame) -> tuple[int, int, int]:
    """The mean color."""
    return tuple(int(value) for value in frame.to_ndarray(format="rgb24").reshape(-1, 3).mean(axis=0))


async def last_frame(peer: SyntheticPeer, holds: Any) -> av.VideoFrame:
    """Read the camera of a peer that is not connected until a frame is right."""
    assert peer.camera is not None
    while not holds(frame := await peer.camera.recv()):
        pass
    return frame


@pytest.mark.parametrize("offers", [True, False], ids=["offers", "answers"])
async def test_two_peers_hear_and_see_each_other_whoever_offers(offers: bool) -> None:
    async with SyntheticPeer() as one, SyntheticPeer() as other:
        await (one.call(other.pc) if offers else one.answer(other.pc))
        assert "127.0.0.1" in one.pc.localDescription.sdp
        await one.say(tone(0.5))
        reply = asyncio.create_task(one.hears_reply())
        await other.hears(0.3)
        await other.say(tone(0.6, hz=880))
        assert pitch(await reply) == pytest.approx(880, abs=25)
        assert pitch(other.heard.sound()) == pytest.approx(440, abs=15)
        assert 0.3 < one.listener.sound_seconds < 0.8
        assert one.listener.frames > 30
        assert one.spoken.seconds > 0.5
        async with asyncio.timeout(60):
            while not (one.video_frames and other.video_frames):
                await one.pause(0.02)


async def test_descriptions_may_be_carried_by_hand() -> None:
    """As a web server's signalling does."""
    async with SyntheticPeer(camera=False) as caller, SyntheticPeer(camera=False) as callee:
        offer = await caller.create_offer()
        answer = await callee.create_answer(offer)
        await caller.accept(answer)
        await callee.connected()
        await caller.say(tone(0.2))
        await callee.hears(0.1)


async def test_a_script_is_played_step_by_step() -> None:
    async with SyntheticPeer() as user, SyntheticPeer(camera=False) as bot:
        await user.call(bot.pc)

        async def answer() -> None:
            await bot.hears_reply()
            await bot.say(tone(0.3, hz=660))

        answering = asyncio.create_task(answer())
        await user.play(Show("red"), Turn(tone(0.3)), Pause(0.01), Show(7), Say(tone(0.1)))
        await answering
        assert 0.1 < user.listener.sound_seconds < 0.5


async def test_the_rest_of_a_reply_that_was_spoken_into_is_not_the_next_reply() -> None:
    async with SyntheticPeer(camera=False) as user, SyntheticPeer(camera=False) as bot:
        await user.call(bot.pc)
        first = asyncio.create_task(bot.say(tone(0.9, hz=300)))
        await user.hears(0.2)
        saying = asyncio.create_task(user.say(tone(0.1)))
        await first
        await saying
        await bot.say(bytes(48_000) + tone(0.5, hz=900))
        assert pitch(await user.hears_reply()) == pytest.approx(900, abs=25)


async def test_waiting_ends_with_an_error_that_says_for_what() -> None:
    async with SyntheticPeer(deadline_seconds=0.05) as peer:
        with pytest.raises(TimeoutError, match=r"a reply, 0\.05 s"):
            await peer.hears_reply()
        with pytest.raises(TimeoutError, match="2 s of sound"):
            await peer.hears(2)
        with pytest.raises(TimeoutError, match="taken"):  # nobody reads its microphone
            await peer.say(tone(1.0))
        with pytest.raises(TimeoutError, match="the connection"):
            await peer.connected()


async def test_a_peer_that_hung_up_is_no_more_called_and_closes_twice() -> None:
    async with SyntheticPeer() as peer, SyntheticPeer() as other:
        await peer.aclose()
        await peer.aclose()
        with pytest.raises(Exception, match="closed"):
            await other.call(peer.pc)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fps": 0}, "fps"),
        ({"deadline_seconds": float("nan")}, "deadline_seconds"),
        ({"size": (31, 20)}, "size"),
        ({"picture": "no such color"}, "picture"),
        ({"picture": None}, "picture"),
    ],
)
async def test_what_a_peer_cannot_be_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        SyntheticPeer(**given)


async def test_without_a_device_there_is_nothing_to_use() -> None:
    async with SyntheticPeer(microphone=False, camera=False) as peer:
        with pytest.raises(ArgumentError, match="microphone"):
            await peer.say(tone(0.1))
        with pytest.raises(ArgumentError, match="camera"):
            peer.show(1)
        assert peer.spoken.seconds == 0


# -- what can be said ----------------------------------------------------------------------------------------------------


def test_a_sound_is_pcm_a_wav_file_or_a_sentence(tmp_path: Path) -> None:
    stereo = np.repeat(np.frombuffer(tone(0.2, rate_hz=16_000), "<i2"), 2).tobytes()
    file = tmp_path / "tone.wav"
    file.write_bytes(wav_bytes(stereo, 16_000, 2))
    spoken: list[str] = []

    def synthesizer(text: str) -> bytes:
        spoken.append(text)
        return tone(0.2)

    sounds = [
        sound_of(tone(0.2)),
        sound_of(tone(0.2, rate_hz=24_000), rate_hz=24_000),
        sound_of(file),
        sound_of(file.read_bytes()),
        sound_of("Hello.", synthesizer=synthesizer),
        sound_of(lambda: iter([tone(0.02)] * 10)),
    ]
    for sound in sounds:
        pieces = list(sound())
        assert len(pieces) == 10
        assert {len(piece) for piece in pieces} == {1_920}
        samples = np.frombuffer(b"".join(pieces), "<i2").astype(float)
        assert np.sqrt((samples**2).mean()) == pytest.approx(8_000 / np.sqrt(2), rel=0.05)
    assert spoken == ["Hello."]


@pytest.mark.parametrize("what", ["Hello.", None, 3, [1.0]])
def test_what_cannot_be_said_is_refused(what: object) -> None:
    with pytest.raises(ArgumentError, match="what"):
        sound_of(what)


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.wav"):
        list(sound_of(tmp_path / "none.wav")())
    (tmp_path / "text.wav").write_bytes(b"not a sound")
    with pytest.raises(ArgumentError, match="RIFF"):
        list(sound_of(tmp_path / "text.wav")())
    with pytest.raises(ArgumentError, match="whole"):
        list(sound_of(b"odd")())


# -- what can be shown ----------------------------------------------------------------------------------------------------


def _first(what: object) -> np.ndarray[Any, Any]:
    [source] = pictures_of(what, size=(64, 48), fps=10)
    return next(source()).frame.to_ndarray(format="rgb24")


@pytest.mark.parametrize("what", ["red", "#ff0000", (255, 0, 0), Image.new("RGB", (200, 150), "red")])
def test_a_color_or_a_picture_fills_the_frame(what: object) -> None:
    shown = _first(what)
    assert shown.shape == (48, 64, 3)
    red, green, blue = shown.reshape(-1, 3).mean(axis=0)
    assert red > 235
    assert max(green, blue) < 20


def test_a_number_is_drawn_dark_on_white() -> None:
    one, other = _first(7), _first(8)
    assert one.min() < 60
    assert one.max() > 235
    assert np.abs(one.astype(int) - other).max() > 150


def test_pictures_come_in_every_shape(tmp_path: Path) -> None:
    image = Image.new("RGB", (63, 31), "blue")
    image.save(tmp_path / "blue.png")
    kinds = [
        np.asarray(image),
        (tmp_path / "blue.png").read_bytes(),
        tmp_path / "blue.png",
        ImageContent.from_bytes((tmp_path / "blue.png").read_bytes(), "image/png"),
        av.VideoFrame.from_ndarray(np.asarray(image), format="rgb24"),
    ]
    for kind in kinds:
        shown = _first(kind)
        assert shown.shape == (30, 62, 3)
        assert shown.reshape(-1, 3).mean(axis=0)[2] > 235


def test_frames_are_shown_one_after_another_and_the_last_one_stays() -> None:
    film = [
        av.VideoFrame.from_ndarray(np.full((48, 64, 3), level, np.uint8), format="rgb24") for level in (0, 128, 255)
    ]
    [source] = pictures_of(iter(film), size=(64, 48), fps=5)
    pictures = source()
    shown = [next(pictures) for _ in range(5)]
    assert [picture.seconds for picture in shown] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    levels = [int(picture.frame.to_ndarray(format="rgb24").mean()) for picture in shown]
    assert levels == pytest.approx([0, 128, 255, 255, 255], abs=4)


@pytest.mark.parametrize("what", [True, None, [1, 2], [], object()])
def test_what_cannot_be_shown_is_refused(what: object) -> None:
    with pytest.raises((ArgumentError, ImageError)):
        pictures_of(what, size=(64, 48), fps=5)


async def test_the_camera_shows_what_it_is_turned_to() -> None:
    async with SyntheticPeer(picture="blue") as peer:
        frame = await last_frame(peer, lambda _: True)
        assert colors(frame)[2] > 235
        assert frame.time_base == Fraction(1, 90_000)
        peer.show((0, 255, 0))
        await last_frame(peer, lambda frame: colors(frame)[1] > 235)


async def test_a_pause_is_silence_that_was_given_however_slow_the_machine_is() -> None:
    async with SyntheticPeer(camera=False) as user, SyntheticPeer(camera=False) as bot:
        await user.call(bot.pc)
        await user.say(tone(0.1))
        assert user.microphone is not None
        before = user.microphone.frames
        await user.pause(0.4)
        assert user.microphone.frames - before >= 20


async def test_a_pause_without_a_connection_ends_too() -> None:
    async with SyntheticPeer() as peer:
        await peer.pause(0.01)
