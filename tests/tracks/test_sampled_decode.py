"""Only pictures that are looked at are decoded, and those are right and fresh (behaviour.md I4, I5; field cases B43, B44)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest
from aiortc.codecs.h264 import H264Encoder, h264_depayload
from aiortc.codecs.vpx import Vp8Encoder, vp8_depayload

from realtime.errors import ImageError
from realtime.media.frame import frame_size, pts_ms
from realtime.tracks import h264_header, picture_decoder, vp8_header
from realtime.tracks.chain_worker import MOST_PICTURES
from realtime.tracks.encoded_video import FrameAssembler
from realtime.tracks.picture_decoder import PIECE_FRAMES, PictureDecoder, UndecodedFrame
from realtime.tracks.sampled_decode import (
    CHAIN_FRAMES,
    CHEAP_FRAMES,
    SETTLED_FRAMES,
    VideoIntake,
)

CODECS = ["vp8", "h264"]
HEADERS = {"vp8": vp8_header, "h264": h264_header}
FPS = 30


def _picture(index: int, size: tuple[int, int]) -> np.ndarray[Any, Any]:
    """A bar that moves over a gradient: each frame is another."""
    width, height = size
    picture = np.full((height * 3 // 2, width), 128, np.uint8)
    picture[:height] = np.linspace(30, 200, width, dtype=np.uint8)
    left = index * 4 % (width - 16)
    picture[:height, left : left + 16] = 235
    return picture


class Camera:
    """A sender: encodes live, answers requests for key frames and packets, and keeps what was sent."""

    def __init__(self, codec: str, *, answers: bool = True, size: tuple[int, int] = (192, 128)) -> None:
        self.codec = codec
        self.size = size
        self.requests: list[float] = []
        self.missing: list[int] = []
        self.answers = answers
        self.now: Callable[[], float] = lambda: 0.0
        self.delay_frames = 1
        self._encoder: Any = Vp8Encoder() if codec == "vp8" else H264Encoder()
        self._key_in: int | None = None
        self.number = 65_500  # wraps around soon
        self.index = 0

    def request_key_frame(self) -> None:
        self.requests.append(self.now())
        if self.answers and self._key_in is None:
            self._key_in = self.delay_frames

    def report_missing(self, numbers: list[int]) -> None:
        self.missing += numbers

    def shoot(self) -> list[tuple[int, int, bytes, bool]]:
        """The next frame's packets."""
        wants_key = self._key_in == 0
        if self._key_in is not None:
            self._key_in = None if wants_key else self._key_in - 1
        frame = av.VideoFrame.from_ndarray(_picture(self.index, self.size), format="yuv420p")
        frame.pts, frame.time_base = self.index * 90_000 // FPS, Fraction(1, 90_000)
        payloads, _ = self._encoder.encode(frame, wants_key)
        packets = []
        for at, payload in enumerate(payloads):
            packets.append((self.number & 0xFFFF, self.timestamp(), payload, at == len(payloads) - 1))
            self.number += 1
        self.index += 1
        return packets

    def timestamp(self) -> int:
        return (0xFFFFF000 + self.index * 90_000 // FPS) & 0xFFFFFFFF


class Eye:
    """A sink: looks when it is told to. Its worker works at once, or when it is let."""

    def __init__(self) -> None:
        self.time = 0.0
        self.due: Callable[[int], bool] = lambda _: False
        self.pictures: list[tuple[Any, float]] = []
        self.passed: list[UndecodedFrame] = []
        self.developed: list[Any] = []
        self.decoded: list[Any] = []
        self.works = True
        self.holds = True
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def now(self) -> float:
        return self.time

    def is_due(self, pts_ms: int) -> bool:
        return self.due(pts_ms)

    def may_hold(self, pts_ms: int) -> bool:
        return self.holds

    def lull(self) -> None:
        return None

    def develop(self, frame: Any, /) -> Any:
        self.developed.append(frame)
        return frame

    def receive(self, frame: Any, arrived_at: float, /) -> None:
        if isinstance(frame, UndecodedFrame):
            self.passed.append(frame)
        else:
            self.pictures.append((frame, arrived_at))

    def run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], /) -> None:
        self.jobs.append((job, done))
        if self.works:
            self.work()

    def work(self) -> None:
        while self.jobs:
            job, done = self.jobs.pop(0)
            try:
                result = job()
                self.decoded += result[0] if result is not None else []
            except Exception as error:
                done(None, error)
            else:
                done(result, None)


class Call:
    """A camera, an eye and what is between them, frame by frame."""

    def __init__(self, codec: str, *, fps: int = FPS, decodes_all: bool = False, **camera: Any) -> None:
        self.camera = Camera(codec, **camera)
        self.eye = Eye()
        self.camera.now = self.eye.now
        self.fps = fps
        self.intake = VideoIntake(self.camera)
        self.intake.use(self.eye, decodes_all=decodes_all)
        self.reference: Any = None
        self.truth: dict[int, bytes] = {}
        """What full decoding gives, by media time."""

    def go(self, frames: int, *, lose: Callable[[int], bool] = lambda _: False) -> None:
        for _ in range(frames):
            packets = self.camera.shoot()
            self._decode(packets)
            for at, packet in enumerate(packets):
                if not (lose(self.camera.index - 1) and at == len(packets) - 1):
                    self.put(packet)
            self.eye.time += 1 / self.fps
            if self.camera.index % 8 == 0:
                self.intake.tick()

    def put(self, packet: tuple[int, int, bytes, bool], source: int = 1) -> None:
        number, timestamp, payload, marker = packet
        self.intake.receive(self.camera.codec, source, number, timestamp, payload, marker)

    def _decode(self, packets: list[tuple[int, int, bytes, bool]]) -> None:
        if self.reference is None:
            self.reference = av.CodecContext.create("libvpx" if self.camera.codec == "vp8" else "h264", "r")
            self.reference.thread_count = 1
        unpack = vp8_depayload if self.camera.codec == "vp8" else h264_depayload
        packet = av.Packet(b"".join(unpack(payload) for _, _, payload, _ in packets))
        packet.pts = self.camera.index - 1
        for frame in self.reference.decode(packet):
            self.truth[frame.pts] = _luma(frame)

    def every(self, seconds: float) -> None:
        """Be due every so often, in media time."""
        last = [-1e9]

        def due(at_ms: int) -> bool:
            seen = pts_ms(self.eye.pictures[-1][0]) if self.eye.pictures else None
            last[0] = -1e9 if seen is None else seen
            return at_ms >= last[0] + seconds * 1000 - 5

        self.eye.due = due

    def shown(self) -> list[int]:
        """Which frames were shown, each the same as full decoding gives it, bit by bit."""
        indices = []
        for picture, _ in self.eye.pictures:
            index = round(picture.pts * FPS / 90_000)
            assert _luma(picture) == self.truth[index]
            indices.append(index)
        return indices


def _luma(frame: Any) -> bytes:
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return rows[: frame.height, : frame.width].tobytes()


@pytest.fixture(autouse=True)
def filtered(monkeypatch):
    """Every picture is filtered as its encoder meant it, so that it can be compared bit by bit (`test_picture_decoder` has the others)."""
    monkeypatch.setattr(vp8_header, "FAINT", -1)


@pytest.fixture
def decoded(monkeypatch):
    """How many frames each job decoded."""
    counts: list[int] = []
    decode = PictureDecoder.decode

    def count(self: PictureDecoder, frames: Any, **others: Any) -> Any:
        counts.append(len(frames))
        return decode(self, frames, **others)

    monkeypatch.setattr(PictureDecoder, "decode", count)
    return counts


@pytest.mark.parametrize("codec", CODECS)
def test_what_nobody_looks_at_is_not_decoded(codec):
    call = Call(codec)
    call.go(20)
    assert len(call.eye.passed) == 20  # each could be held
    call.eye.holds = False
    call.go(20)
    assert len(call.eye.passed) == 20
    assert call.intake.frames == call.intake.undecoded == 40
    assert not call.eye.pictures
    assert not call.camera.requests


@pytest.mark.parametrize("codec", CODECS)
def test_a_picture_a_second_comes_in_time_and_is_what_full_decoding_gives(codec, monkeypatch):
    monkeypatch.setattr(HEADERS[codec], "FINE", -1)
    call = Call(codec)
    call.every(1.0)
    call.go(155)
    shown = call.shown()
    assert len(shown) == 6
    assert shown[0] == SETTLED_FRAMES[codec]  # a key frame and those after it
    gaps = [b - a for a, b in pairwise(shown)]
    assert all(28 <= gap <= 33 for gap in gaps)
    assert all(b - a >= 0.299 for a, b in pairwise(call.camera.requests))
    for picture, arrived_at in call.eye.pictures:
        assert arrived_at * FPS == pytest.approx(picture.pts * FPS / 90_000, abs=0.01)


@pytest.mark.parametrize("codec", CODECS)
def test_a_key_frame_that_is_a_good_picture_is_shown_alone(codec, monkeypatch, decoded):
    """A frame after it would cost more and come later, and may be a poorer one."""
    for fine, frames in ((127, 1), (-1, 1 + SETTLED_FRAMES[codec])):
        monkeypatch.setattr(HEADERS[codec], "FINE", fine)
        call = Call(codec)
        call.every(1.0)
        call.go(FPS * 4)
        decoded.clear()
        call.go(FPS * 4)
        assert decoded == [frames] * 4
        assert all(29 <= b - a <= 31 for a, b in pairwise(call.shown()[-4:]))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("delay", [0, 1, 4, 7])
def test_a_key_frame_is_asked_for_just_in_time(codec, delay, decoded):
    """Whatever the sender takes: not much more is decoded than has to be, and the picture is not late."""
    call = Call(codec)
    call.camera.delay_frames = delay
    call.every(1.0)
    call.go(FPS * 6)
    decoded.clear()
    call.go(FPS * 5)
    shown = call.shown()
    assert len(shown) >= 10
    assert all(29 <= b - a <= 31 for a, b in pairwise(shown[-5:]))
    assert sum(decoded) <= 5 * (1 + SETTLED_FRAMES[codec] + 1)


@pytest.mark.parametrize("codec", CODECS)
def test_no_decoder_is_kept_for_pictures_that_are_far_apart(codec):
    """It would hold several pictures: megabytes for each call."""
    call = Call(codec)
    call.every(1.0)
    call.go(FPS * 3)
    assert call.shown()
    assert call.intake._worker.decoder is None
    near = Call(codec)
    near.every(0.2)
    near.go(FPS * 3)
    assert near.shown()
    assert near.intake._worker.decoder is not None


@pytest.mark.parametrize("codec", CODECS)
def test_a_decoder_is_let_go_once_the_next_picture_will_not_go_on_from_it(codec):
    call = Call(codec)
    call.every(1.0)
    call.go(FPS * 3)
    call.every(0.1)
    call.go(FPS * 3)
    assert call.intake._worker.decoder is not None
    call.eye.due = lambda _: False
    call.go(CHEAP_FRAMES + 2)
    assert call.intake._worker.decoder is None


@pytest.mark.parametrize("codec", CODECS)
def test_key_frames_are_not_asked_for_while_pictures_are_close_together_and_in_time_again_after_it(codec):
    """The user speaks for a while. A sender that takes long to answer: the next picture is always due before it could."""
    call = Call(codec)
    call.camera.delay_frames = 4
    call.every(1.0)
    call.go(FPS * 6)
    call.every(0.1)
    call.go(FPS * 2)
    asked = len(call.camera.requests)
    call.go(FPS * 2)
    assert len(call.camera.requests) - asked <= 1  # the chain has its longest
    call.every(1.0)
    call.go(FPS * 4)
    assert all(29 <= b - a <= 31 for a, b in pairwise(call.shown()[-4:]))


@pytest.mark.parametrize("codec", CODECS)
def test_calls_that_take_turns_see_what_each_would_see_alone(codec):
    """On one thread, in the middle of each other's streams; one of them loses packets."""
    calls = [Call(codec), Call(codec, size=(128, 192)), Call(codec, size=(160, 96))]
    for at, call in enumerate(calls):
        call.every(0.5 + 0.1 * at)
    for _ in range(100):
        calls[0].go(1)
        calls[1].go(1, lose=lambda index: index % 11 == 7)
        calls[2].go(1)
    assert all(len(call.shown()) >= 3 for call in calls)
    assert all(call.intake.faults == 0 for call in calls)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_made_of_a_picture_is_made_where_it_was_decoded(codec):
    call = Call(codec)
    call.every(1.0)
    call.eye.works = False
    call.go(5)
    ((job, done),) = call.eye.jobs
    assert not call.eye.developed
    result = job()
    assert len(call.eye.developed) == 1
    done(result, None)
    assert [picture for picture, _ in call.eye.pictures] == call.eye.developed


@pytest.mark.parametrize("codec", CODECS)
def test_somebody_who_looks_gets_a_fresh_picture(codec):
    """`session.look()`: not one of those that were there already."""
    call = Call(codec)
    call.go(60)
    call.eye.due = lambda _: not call.eye.pictures
    call.go(15)
    (index,) = call.shown()
    assert 60 <= index <= 70
    assert call.camera.requests


@pytest.mark.parametrize("codec", CODECS)
def test_a_sender_of_few_frames_is_asked_for_nothing(codec):
    """Two frames a second are decoded all: that costs less than a key frame, and is better."""
    call = Call(codec, fps=2)
    call.every(6 / FPS)  # 0.3 pictures a second
    call.go(20)
    assert not call.camera.requests
    assert len(call.shown()) >= 2


@pytest.mark.parametrize("codec", CODECS)
def test_a_sender_that_never_answers_is_decoded_as_a_whole(codec):
    call = Call(codec, answers=False)
    call.every(2.0)
    call.go(200)
    assert len(call.shown()) >= 3
    assert max(b - a for a, b in pairwise(call.shown())) <= 100


def test_a_sender_whose_answers_are_coarse_is_left_in_peace_for_half_a_minute(monkeypatch):
    """A picture from the stream that nobody asks is better by several dB; its rate may be another later."""
    monkeypatch.setattr(h264_header, "FINE", -1)
    monkeypatch.setattr(h264_header, "COARSE", 0)
    call = Call("h264")
    call.every(1.0)
    call.go(FPS * 3)
    assert len(call.camera.requests) == 2
    shown = len(call.eye.pictures)
    call.go(FPS * 28)
    assert len(call.camera.requests) == 2
    assert len(call.eye.pictures) == shown + FPS * 28  # every frame, right and in order
    assert [b - a for a, b in pairwise(call.shown()[shown:])] == [1] * (FPS * 28 - 1)
    monkeypatch.setattr(h264_header, "COARSE", 52)
    call.go(FPS * 10)
    assert len(call.camera.requests) >= 8
    assert all(28 <= b - a <= 32 for a, b in pairwise(call.shown()[-4:]))


def test_whoever_looks_next_is_not_bound_by_what_the_last_answers_were_like(monkeypatch):
    monkeypatch.setattr(h264_header, "FINE", -1)
    monkeypatch.setattr(h264_header, "COARSE", 0)
    call = Call("h264")
    call.every(1.0)
    call.go(FPS * 3)
    call.intake.use(None)
    call.intake.use(call.eye, decodes_all=True)
    call.go(FPS * 31)
    assert len(call.camera.requests) == 3  # the last one for a frame to begin with
    assert len(call.eye.pictures) > FPS * 30


@pytest.mark.parametrize("codec", CODECS)
def test_a_request_that_was_lost_is_repeated(codec):
    call = Call(codec)
    call.go(60)
    call.camera.answers = False
    call.eye.due = lambda _: not call.eye.pictures
    call.go(10)
    call.camera.answers = True
    call.go(20)
    assert len(call.camera.requests) >= 2
    assert len(call.shown()) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_lost_packets_end_in_the_next_picture_not_in_a_damaged_one(codec):
    call = Call(codec)
    call.every(1.0)
    call.go(200, lose=lambda index: index % 17 == 9)
    shown = call.shown()  # each as full decoding of everything that was sent
    assert len(shown) >= 5
    assert call.intake.faults == 0


@pytest.mark.parametrize("codec", CODECS)
def test_every_key_frame_lost_once_is_asked_for_again(codec):
    call = Call(codec)
    call.every(1.0)
    call.go(5)
    lost: list[int] = []

    def lose(index: int) -> bool:
        is_answer = bool(call.camera.requests) and len(lost) < 3 and index > 20
        if is_answer:
            lost.append(index)
        return is_answer

    call.go(90, lose=lose)
    assert len(lost) == 3
    assert len(call.shown()) >= 3


@pytest.mark.parametrize("codec", CODECS)
def test_packets_are_asked_for_again_while_they_matter(codec):
    call = Call(codec)
    call.every(1.0)
    call.go(3)
    packets = call.camera.shoot()
    call._decode(packets)
    held, call.eye.time = packets[-1], call.eye.time + 1 / FPS
    for packet in packets[:-1]:
        call.put(packet)
    call.go(1)
    assert call.camera.missing == [held[0]]
    call.put(held)
    call.go(3)
    assert call.shown()
    assert call.intake.frames == 8


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_may_change_at_any_frame(codec):
    """I5: a phone that is turned, a screen that is shared in another size."""
    call = Call(codec)
    call.every(0.5)
    call.go(40)
    call.camera.size = (128, 192)
    call.go(40)
    call.camera.size = (320, 192)
    call.go(40)
    assert {frame_size(picture) for picture, _ in call.eye.pictures} == {(192, 128), (128, 192), (320, 192)}
    assert call.intake.faults == 0
    assert len(call.shown()) >= 6


@pytest.mark.parametrize("codec", CODECS)
def test_another_sender_on_the_same_track_is_followed(codec):
    call = Call(codec)
    call.every(0.2)
    call.go(20)
    before = len(call.eye.pictures)
    times = [picture.pts for picture, _ in call.eye.pictures]
    other = Camera(codec, size=(64, 64))
    other.number, other.index = 7, 500
    for _ in range(30):
        for packet in other.shoot():
            call.put(packet, source=2)
        call.eye.time += 1 / FPS
    assert len(call.eye.pictures) > before
    assert call.eye.pictures[-1][0].width == 64
    times += [picture.pts for picture, _ in call.eye.pictures[before:]]
    assert times == sorted(times)


@pytest.mark.parametrize("codec", CODECS)
def test_a_frame_that_was_passed_over_can_be_decoded_afterwards(codec):
    """What is held for the end of a turn costs its encoded bytes, and is decoded if it is shown."""
    call = Call(codec)
    call.go(30)
    frame = call.eye.passed[20]
    call.go(30)
    assert pts_ms(frame) == pytest.approx(20 * 1000 / FPS, abs=1)
    assert frame_size(frame.decode()) == (192, 128)
    assert _luma(frame.decode()) == call.truth[20]


@pytest.mark.parametrize("codec", CODECS)
def test_what_may_be_held_but_cannot_be_decoded_is_asked_for(codec):
    """Nothing is scheduled, the stream is broken, and the user speaks: the end of the turn will want a picture."""
    call = Call(codec)
    call.eye.holds = False
    call.go(20, lose=lambda index: index == 10)
    call.go(10)
    assert not call.camera.requests
    call.eye.holds = True
    call.go(10)
    assert len(call.camera.requests) == 1
    assert _luma(call.eye.passed[-1].decode()) == call.truth[39]


def test_a_damaged_frame_that_was_held_is_an_error():
    call = Call("h264")
    call.put((1, 0, b"\x67\x42\xc0\x1f" + bytes(9), False))
    call.put((2, 0, b"\x65" + b"\x5a" * 300, True))
    with pytest.raises(ImageError):
        call.eye.passed[0].decode()


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_frames_are_counted_and_the_next_key_frame_heals(codec):
    call = Call(codec)
    call.every(0.4)
    call.go(20)
    for _ in range(30):
        packets = [
            (number, timestamp, payload[:3] + bytes(reversed(payload[3:])) if call.camera.index == 25 else payload, m)
            for number, timestamp, payload, m in call.camera.shoot()
        ]
        for packet in packets:
            call.put(packet)
        call.eye.time += 1 / FPS
    call.go(40)
    assert round(call.eye.pictures[-1][0].pts * FPS / 90_000) > 60


@pytest.mark.parametrize("codec", CODECS)
def test_everything_can_be_decoded(codec):
    """`FrameSampling(decode="all")`: nothing is asked for."""
    call = Call(codec, decodes_all=True)
    call.go(3 * CHAIN_FRAMES)
    assert call.shown() == list(range(3 * CHAIN_FRAMES))
    assert call.intake.undecoded == 0
    assert not call.camera.requests


def test_a_worker_that_was_busy_catches_up_in_small_pieces():
    """B44: everything is decoded, and yet never more pictures at once than memory is meant for."""
    call = Call("vp8", decodes_all=True)
    call.eye.works = False
    call.go(60)
    sizes = []
    while call.eye.jobs:
        job, done = call.eye.jobs.pop(0)
        result = job()
        sizes.append(len(result[0]))
        done(result, None)
    assert call.shown() == list(range(60))
    assert max(sizes) == MOST_PICTURES
    assert call.intake.undecoded == 0


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_worker_behind_never_came_to_is_counted(codec):
    """A new key frame lets go of what waited before it: every frame is shown, or told as not decoded."""
    call = Call(codec, decodes_all=True)
    call.go(5)
    call.eye.works = False
    for _ in range(3):
        call.go(12)
        call.camera.request_key_frame()
    call.go(12)
    call.eye.works = True
    call.eye.work()
    call.go(12)
    assert len(call.shown()) < 60  # it went over to the newest key frame
    assert call.shown()[-1] == call.intake.frames - 1
    assert len(call.shown()) + call.intake.undecoded == call.intake.frames


@pytest.mark.parametrize("codec", CODECS)
def test_fewer_large_pictures_are_decoded_at_once_and_none_is_left_out(codec, monkeypatch):
    """8192×4320 is allowed: eight of them are 420 MB. The worker is busy for so long that the chain is shortened meanwhile."""
    monkeypatch.setattr(picture_decoder, "MOST_PIXELS", 2 * 192 * 128)
    call = Call(codec, decodes_all=True)
    call.eye.works = False
    call.intake._requests.answers = True  # so that no more is kept
    for index in range(2 * CHAIN_FRAMES):
        call.go(1)
        if index < CHAIN_FRAMES - 20 or index % 2 == 0:
            continue
        while call.eye.jobs and len(call.eye.pictures) < index - 20:
            (job, done) = call.eye.jobs.pop(0)
            result = job()
            assert len(result[0]) <= 2
            done(result, None)
    call.eye.works = True
    call.eye.work()
    assert call.shown() == list(range(2 * CHAIN_FRAMES))


@pytest.mark.parametrize("codec", CODECS)
def test_a_long_way_to_a_picture_is_gone_in_pieces(codec, decoded):
    """A request that was lost for a second: the whole chain is decoded then, and other jobs have their turn between."""
    call = Call(codec)
    call.every(1.0)
    call.go(FPS * 3)
    call.camera.answers = False
    call.eye.works = False
    decoded.clear()
    call.go(FPS * 2 + 10)
    jobs = 0
    while call.eye.jobs:
        ((job, done),) = call.eye.jobs
        call.eye.jobs.clear()
        done(job(), None)
        jobs += 1
    assert jobs == len(decoded) > 1
    assert max(decoded) <= PIECE_FRAMES
    assert len(call.eye.developed) == len(call.shown())
    assert call.shown()[-1] > FPS * 4


def test_on_the_way_to_a_wanted_picture_the_others_are_let_go():
    """Memory is flat: pictures that nobody wanted are not kept until the wanted one is there."""
    call = Call("vp8")
    call.go(CHEAP_FRAMES - 2)
    call.eye.due = lambda _: True
    call.go(1)
    assert len(call.shown()) == 1
    assert len(call.eye.decoded) == 1


def test_a_worker_without_time_gets_one_job_at_a_time_and_nothing_piles_up():
    """B44: the newest wins."""
    call = Call("vp8")
    call.eye.due = lambda _: True
    call.eye.works = False
    call.go(100)
    assert len(call.eye.jobs) == 1
    call.eye.works = True
    call.eye.work()
    call.go(10)
    assert call.shown()[-1] >= 100


def test_what_is_kept_of_a_stream_is_bounded():
    """B43: a camera that nobody looks at for minutes."""
    call = Call("vp8")
    longest = 0
    for _ in range(10):
        call.go(60)
        chain = call.intake._chain
        longest = max(longest, len(chain.frames) if chain is not None else 0)
    assert longest <= 4 * CHAIN_FRAMES
    call.every(1.0)
    call.go(60)
    assert len(call.shown()) >= 1


def test_nobody_looks_any_more():
    call = Call("vp8")
    call.every(0.5)
    call.go(30)
    seen = len(call.eye.pictures)
    call.intake.use(None)
    call.go(30)
    assert len(call.eye.pictures) == seen
    call.intake.use(call.eye)
    call.go(30)
    assert len(call.eye.pictures) > seen


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("answers", [True, False])
def test_whoever_looks_next_sees_although_a_job_of_the_one_before_answers_late_or_never(leaves, answers):
    """A session that is closed while it decodes; the track goes on with the next one."""
    call = Call("vp8")
    before = call.eye
    before.due = lambda _: True
    before.works = False
    call.go(10)
    assert len(before.jobs) == 1
    if leaves:
        call.intake.use(None)
    call.eye = Eye()
    call.eye.time = before.time
    call.camera.now = call.eye.now
    call.eye.due = lambda _: True
    call.eye.works = False
    call.intake.use(call.eye)
    call.go(20)
    assert len(call.eye.jobs) == 1
    if answers:
        before.work()
        call.go(1)
        assert not before.pictures
        assert len(call.eye.jobs) == 1
    call.eye.works = True
    call.eye.work()
    call.go(10)
    assert call.shown()[-1] >= 35


def test_a_still_camera_is_asked_when_somebody_looks():
    """A shared screen that does not change sends nothing for seconds."""
    call = Call("vp8")
    call.go(40)
    call.eye.time += 5
    call.eye.due = lambda _: not call.eye.pictures
    for _ in range(3):
        call.intake.tick()
        call.eye.time += 0.25
    assert call.camera.requests
    call.go(6)
    assert call.shown()


def test_few_frames_behind_are_decoded_rather_than_asked_for():
    call = Call("vp8")
    call.eye.due = lambda _: not call.eye.pictures
    call.go(6)
    call.eye.due = lambda _: len(call.eye.pictures) < 2
    call.go(CHEAP_FRAMES - 1)
    assert len(call.shown()) == 2
    assert not call.camera.requests


def test_what_is_missing_in_a_wide_gap_is_not_looked_for_with_every_packet(monkeypatch):
    """It takes a hundred microseconds, and a peer decides how often."""
    looked: list[float] = []
    missing = FrameAssembler.missing
    call = Call("vp8")
    monkeypatch.setattr(FrameAssembler, "missing", lambda self: looked.append(call.eye.time) or missing(self))
    call.every(1.0)
    call.go(3)
    ahead = call.camera.number + 2_900
    for at in range(100):
        call.put(((ahead + at) & 0xFFFF, 0, b"\x10\x01content", False))
    assert len(looked) == 1
    assert not call.camera.missing
